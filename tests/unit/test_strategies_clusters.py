"""Small random clusters: that drawing them reaches what is to be tested, and that they can be printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from simspec.claims.serving.laws import PARTS
from simspec.serving.simulate import Records
from simspec.strategies.clusters import ClusterScenario, Fleet, cluster_scenarios, serve_cluster
from simspec.strategies.small_engines import Scenario, Setup

Rows = list[dict[str, Any]]


class Seen:
    """What became of a scenario, as rows."""

    def __init__(self, scenario: ClusterScenario, records: Records):
        self.fleet = scenario.fleet
        self.steps: Rows = records.steps.to_pylist()
        self.requests: Rows = records.requests.to_pylist()
        self.outages: Rows = [] if records.outages is None else records.outages.to_pylist()
        self.ends = [row["started_at_ns"] + sum(row[part] for part in PARTS) for row in self.steps]

    def any(self, rows: Rows, **least: int) -> bool:
        """Whether a row has at least so much of everything."""
        return any(all(row[name] >= n for name, n in least.items()) for row in rows)

    def ended(self, outcome: str, **least: int) -> bool:
        return self.any([row for row in self.requests if row["outcome"] == outcome], **least)


def alone(seen: Seen) -> bool:
    """A request comes while the only replica is down, and is served later."""
    return len(seen.fleet.engines) == 1 and any(
        out["failed_at_ns"] <= row["arrived_at_ns"] < out["back_at_ns"] and row["outcome"] == "finished"
        for out in seen.outages
        for row in seen.requests
    )


def together(seen: Seen) -> bool:
    """Steps of two replicas end at one instant."""
    ends = {(end, step["replica"]) for end, step in zip(seen.ends, seen.steps, strict=True)}
    return len({end for end, _ in ends}) < len(ends)


def moved(seen: Seen) -> bool:
    """A session is served by more than one replica, routed by sessions."""
    places = {(row["session"], row["replica"]) for row in seen.requests if row["session"] is not None}
    sessions = {session for session, replica in places if replica is not None}
    return seen.fleet.routing == "session-affine" and len(sessions) < len(
        [p for p in places if p[1] is not None]
    )


REACHED: dict[str, Callable[[Seen], bool]] = {
    "lost at once": lambda s: s.fleet.on_failure == "lost" and s.ended("lost"),
    "lost after retries": lambda s: s.ended("lost", restarts=2),
    "finished after two failures": lambda s: s.ended("finished", restarts=2),
    "tokens thrown away": lambda s: s.ended("finished", discarded_tokens=2),
    "gone on with": lambda s: s.fleet.on_failure == "resume" and s.ended("finished", restarts=1, passes=1),
    "held while nobody is up": alone,
    "a step is cut": lambda s: s.any(
        [o for o in s.outages if o["step_began_at_ns"] is not None], queued_requests=1
    ),
    "a failure with nobody there": lambda s: any(o["step_began_at_ns"] is None for o in s.outages),
    "two fail at once": lambda s: len({o["failed_at_ns"] for o in s.outages}) < len(s.outages),
    "read elsewhere, and preempted": lambda s: bool(s.fleet.prefill) and s.ended("finished", preemptions=1),
    "read elsewhere, and failed": lambda s: bool(s.fleet.prefill) and s.ended("finished", restarts=1),
    "waits for a device": lambda s: any(row["wait_ns"] > 2 * s.fleet.link_ns for row in s.steps),
    "several ends at one instant": together,
    "a session moves": moved,
    "stopped in the midst of it": lambda s: len(s.fleet.engines) > 1 and s.ended("unfinished", passes=1),
}


@pytest.fixture(scope="module")
def reached() -> set[str]:
    """What 2,000 scenarios at most, the same in every run, come to."""
    found: set[str] = set()

    @settings(max_examples=2000, derandomize=True, database=None, phases=[Phase.generate])
    @given(cluster_scenarios())
    def look(scenario: ClusterScenario) -> None:
        if len(found) == len(REACHED):
            return
        seen = Seen(scenario, serve_cluster(scenario))
        found.update(what for what, happened in REACHED.items() if happened(seen))

    look()
    return found


@pytest.mark.parametrize("what", REACHED)
def test_scenarios_reach(reached, what):
    assert what in reached


def test_a_cluster_is_printed_by_what_is_not_usual_in_it():
    load = Scenario(Setup(2), 7, ((3, 2),), (5,))
    fleet = Fleet((Setup(2), Setup(2), Setup(1)), "least-loaded", outages=((1, 4, 9),))
    assert str(ClusterScenario(fleet, load)) == (
        "requests (prompt, output) ((3, 2),) at (5,) ns; seed 7; sessions none; 2 replicas [slots 2]; "
        "1 replicas [slots 1]; routing least-loaded; outages ((1, 4, 9),)"
    )
