"""Two runs on common random numbers: what a change to a cluster may change, and what it may not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simspec.serving.arrivals import OpenLoop
from simspec.serving.policies import Fixed
from simspec.serving.request import Request
from simspec.serving.simulate import Records, simulate
from simspec.strategies.clusters import ClusterScenario, Fleet, cluster_scenarios, serve_cluster
from simspec.strategies.serving import LUCKY, draftings, scenarios
from simspec.strategies.small_engines import NANO, Drafting, Scenario, Setup, Survival

Row = dict[str, Any]
EVER = 10**12


def rows(records: Records) -> tuple[list[Row], list[Row]]:
    """Steps by engine, and requests by number."""
    steps = sorted(records.steps.to_pylist(), key=lambda row: (row["replica"], row["step"]))
    return steps, sorted(records.requests.to_pylist(), key=lambda row: row["request_id"])


def alone(load: Scenario, engine: Setup, mine: Callable[[int], bool]) -> tuple[list[Row], list[Row]]:
    """One engine serves some of the requests of an open loop."""
    sizes = enumerate(load.sizes)
    asked = [(at, Request(i, p, o)) for at, (i, (p, o)) in zip(load.instants, sizes, strict=True) if mine(i)]
    until = None if load.until is None else load.until * NANO
    return rows(simulate(engine.serving(), OpenLoop(asked), load.seed, until_seconds=until))


def quiet(fleet: Fleet) -> Fleet:
    """Without outages."""
    return replace(fleet, outages=(), failures=None)


def alike(fleet: Fleet) -> Fleet:
    """Replicas that are all as the first, which takes whatever comes, and do all of the work."""
    return replace(simple(fleet), replicas=fleet.replicas[:1] * len(fleet.replicas))


def unaided(fleet: Fleet) -> Fleet:
    """Replicas that read prompts themselves, as many failures as they have, and sessions for routing."""
    outages = tuple(one for one in fleet.outages if one[0] < len(fleet.replicas))
    return replace(fleet, prefill=(), outages=outages, routing="session-affine")


def simple(fleet: Fleet) -> Fleet:
    """Every replica reads and drafts for itself, and none fails."""
    return replace(quiet(fleet), prefill=(), devices=0)


OPEN = scenarios().map(lambda load: replace(load, clients=0))


@given(cluster_scenarios(OPEN, lambda fleet: replace(simple(fleet), routing="round-robin")))
def test_taking_turns_is_engines_side_by_side(scenario):
    """Each serves every n-th request, and knows nothing of the others."""
    fleet, load = scenario.fleet, scenario.load
    steps, requests = rows(serve_cluster(replace(scenario, sessions=())))
    count = len(fleet.replicas)
    for number, engine in enumerate(fleet.replicas):
        own, theirs = alone(load, engine, lambda i, number=number: i % count == number)  # type: ignore[misc]
        assert [row | {"replica": 0} for row in steps if row["replica"] == number] == own
        held = [row for row in requests if row["request_id"] % count == number]
        assert {row["replica"] for row in held} <= {number, None}
        assert [row | {"replica": row["replica"] and 0} for row in held] == theirs


@given(cluster_scenarios(scenarios(memory=False, open_loop=True), alike))
def test_turns_differ_by_one_at_most(scenario):
    requests = serve_cluster(scenario).requests["replica"].to_pylist()
    counts = [requests.count(number) for number in range(len(scenario.fleet.replicas))]
    assert sum(counts) == len(scenario.load.sizes)
    if scenario.fleet.routing == "round-robin":
        assert max(counts) - min(counts) <= 1


@given(cluster_scenarios(OPEN, lambda fleet: replace(simple(fleet), routing="session-affine")))
def test_one_session_is_one_engine(scenario):
    """All of it goes to one replica, which does what it does without the others."""
    steps, requests = rows(serve_cluster(replace(scenario, sessions=(5,) * len(scenario.load.sizes))))
    homes = {row["replica"] for row in requests} - {None}
    assert len(homes) <= 1
    for home in homes:
        own, theirs = alone(scenario.load, scenario.fleet.replicas[home], lambda i: True)
        assert [row | {"replica": 0} for row in steps] == own
        same = [row | {"replica": row["replica"] and 0, "session": None} for row in requests]
        assert same == theirs


@given(cluster_scenarios(OPEN, lambda fleet: replace(quiet(fleet), devices=0, routing="round-robin")))
def test_who_only_reads_is_an_engine_that_is_asked_for_one_token(scenario):
    """Replicas that read prompts do what engines would whose requests end with their first token."""
    fleet, load = scenario.fleet, scenario.load
    steps, _ = rows(serve_cluster(scenario))
    short = replace(load, sizes=tuple((prompt, 1) for prompt, _ in load.sizes))
    first, count = len(fleet.replicas), len(fleet.prefill)
    for place, engine in enumerate(fleet.prefill):
        own, _ = alone(short, engine, lambda i, place=place: i % count == place)  # type: ignore[misc]
        # Who is handed over has not finished.
        found = [row for row in steps if row["replica"] == first + place]
        assert [row | {"replica": 0, "finished_requests": 0} for row in found] == [
            row | {"finished_requests": 0} for row in own
        ]


def never_up(fleet: Fleet) -> Fleet:
    """With one replica more, which is down from the start."""
    more = ((len(fleet.replicas), 0, EVER),)
    return replace(fleet, replicas=(*fleet.replicas, fleet.replicas[0]), outages=fleet.outages + more)


@given(cluster_scenarios(change=lambda fleet: replace(fleet, prefill=(), failures=None, outages=())))
def test_a_replica_that_is_never_up_changes_nothing(scenario):
    """Even of requests that come at the instant at which it goes."""
    both = [serve_cluster(scenario.on(fleet)) for fleet in (scenario.fleet, never_up(scenario.fleet))]
    assert rows(both[0]) == rows(both[1])
    assert both[0].request_ns == both[1].request_ns


# -- luck ---------------------------------------------------------------------------------------------------


def luck(scenario: ClusterScenario) -> dict[tuple[int, int, int], int]:
    """Accepted drafts by request, position in its answer, and drafts; nothing of it was thrown away."""
    found, position = {}, [0] * len(scenario.load.sizes)
    records = serve_cluster(scenario, emissions=True)
    assert records.emissions is not None
    ends = {}
    for step in records.steps.to_pylist():
        ends[step["replica"], step["step"]] = step["started_at_ns"]
    in_time = sorted(records.emissions.to_pylist(), key=lambda row: ends[row["replica"], row["step"]])
    for row in in_time:
        number, drafted = row["request_id"], row["drafted_tokens"]
        if drafted:
            found[number, position[number], drafted] = row["accepted_tokens"]
        position[number] += row["emitted_tokens"]
    return found


def contradictions(one: dict[Any, int], other: dict[Any, int]) -> list[Any]:
    """Where the same drafts at the same place of the same text are worth something else."""
    return [key for key in one.keys() & other.keys() if one[key] != other[key]]


RESUMED = Setup(2, Drafting(Fixed(3), Survival((0.7, 0.5, 0.3))))
LOADED = ClusterScenario(
    Fleet((RESUMED, RESUMED), outages=((0, 40, 30),), on_failure="resume"),
    Scenario(RESUMED, 4, ((3, 20),) * 6, (0,) * 6),
)


@example(LOADED, 1)
@given(
    cluster_scenarios(scenarios(draftings(acceptances=LUCKY)), lambda f: replace(f, on_failure="resume")),
    st.integers(1, 2),
)
def test_another_replica_changes_nobodys_luck(scenario, more):
    """Whichever replica serves it, after whatever failures, a text's drafts are worth the same at a place."""
    fleet = scenario.fleet
    wider = replace(fleet, replicas=fleet.replicas + (fleet.replicas[0],) * more)
    shifted = tuple((n + more * (n >= len(fleet.replicas)), at, length) for n, at, length in fleet.outages)
    assert contradictions(luck(scenario), luck(scenario.on(replace(wider, outages=shifted)))) == []


def test_another_seed_does():
    again = replace(LOADED, load=replace(LOADED.load, seed=5))
    one, other = luck(LOADED), luck(again)
    assert len(one.keys() & other.keys()) > 10
    assert len(contradictions(one, other)) > 3
    assert contradictions(one, luck(LOADED.on(quiet(LOADED.fleet)))) == []


# -- sessions -----------------------------------------------------------------------------------------------


def homes(scenario: ClusterScenario) -> dict[int, set[int]]:
    """Where requests of each session were last; those that no replica took are left out."""
    found: dict[int, set[int]] = {}
    for row in serve_cluster(scenario).requests.to_pylist():
        if row["session"] is not None and row["replica"] is not None:
            found.setdefault(row["session"], set()).add(row["replica"])
    return found


@given(cluster_scenarios(change=unaided))
def test_only_sessions_of_a_replica_that_fails_move(scenario):
    calm = homes(scenario.on(quiet(scenario.fleet)))
    assert all(len(places) == 1 for places in calm.values())
    records = serve_cluster(scenario)
    assert records.outages is not None or scenario.fleet == quiet(scenario.fleet)
    outages = [] if records.outages is None else records.outages.to_pylist()
    for row in records.requests.to_pylist():
        home = min(calm.get(row["session"], {row["replica"]}), key=str)
        down = [
            out
            for out in outages
            if out["replica"] == home
            and out["failed_at_ns"] <= row["ended_at_ns"]
            and row["arrived_at_ns"] < out["back_at_ns"]
        ]
        if row["session"] is not None and row["replica"] not in (home, None):
            assert down


@pytest.mark.parametrize("down", range(3))
def test_sessions_of_the_others_stay_and_those_of_one_that_fails_spread(down):
    fleet = Fleet((Setup(4),) * 3, "session-affine")
    scenario = ClusterScenario(
        fleet, Scenario(fleet.replicas[0], 0, ((1, 1),) * 60, (0,) * 60), tuple(range(60))
    )
    before, after = homes(scenario), homes(scenario.on(replace(fleet, outages=((down, 0, EVER),))))
    left = [s for s in before if before[s] == {down}]
    assert len(left) >= 10  # of 60 sessions a third is 20, give or take 3.7
    assert all(before[s] == after[s] for s in before if s not in left)
    assert len({min(after[s]) for s in left}) == 2
