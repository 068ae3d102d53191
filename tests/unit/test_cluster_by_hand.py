"""Clusters small enough to be counted by hand: the engine and its slow twin both come to these numbers.

A forward of n tokens takes 4 + n ns, a fourth of it for the drafter, and a step 1 ns more: a prompt of 3 is
read in 8 ns, and a step of one row takes 6.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from simspec.claims.serving.laws import PARTS
from simspec.serving.policies import Fixed
from simspec.strategies.clusters import ClusterScenario, Fleet, serve_cluster
from simspec.strategies.small_engines import Drafting, Scenario, Setup, Survival
from tests.oracles.test_cluster_against_twin import twin

PLAIN = Setup()
SURE = Setup(drafting=Drafting(Fixed(2), Survival((1.0, 1.0))))
REQUEST = ("outcome", "replica", "admitted_at_ns", "first_token_at_ns", "ended_at_ns", "produced_tokens")


def sent(fleet: Fleet, *requests: tuple[int, int, int]) -> ClusterScenario:
    """(instant, prompt, output) of each request."""
    sizes = tuple((prompt, output) for _, prompt, output in requests)
    return ClusterScenario(fleet, Scenario(fleet.replicas[0], 0, sizes, tuple(at for at, _, _ in requests)))


def hit(on_failure: str, at: int = 10, **more: Any) -> ClusterScenario:
    """One request to two replicas, of which the first fails."""
    fleet = Fleet((PLAIN, PLAIN), outages=((0, at, 20),), on_failure=on_failure, **more)  # type: ignore[arg-type]
    return sent(fleet, (0, 3, 3))


APART = Fleet((PLAIN,), prefill=(PLAIN,), transfer_ns=5, transfer_token_ns=2)
DOWN = Fleet((PLAIN,), outages=((0, 5, 10),))

# Steps: engine, begin, end, tokens. Requests: as REQUEST, then discarded tokens and restarts.
BY_HAND: dict[str, tuple[ClusterScenario, list[tuple[Any, ...]], list[tuple[Any, ...]]]] = {
    "each in turn": (
        sent(Fleet((PLAIN, PLAIN)), (0, 3, 2), (0, 3, 2), (0, 3, 2)),
        [(0, 0, 8, 1), (0, 8, 14, 1), (0, 14, 22, 1), (0, 22, 28, 1), (1, 0, 8, 1), (1, 8, 14, 1)],
        [
            ("finished", 0, 0, 8, 14, 2, 0, 0),
            ("finished", 1, 0, 8, 14, 2, 0, 0),
            ("finished", 0, 14, 22, 28, 2, 0, 0),
        ],
    ),
    "the turn of one that is down is the next one's": (
        sent(Fleet((PLAIN,) * 3, outages=((1, 0, 100),)), *((at, 1, 1) for at in (0, 10, 20, 30))),
        [(0, 0, 6, 1), (0, 20, 26, 1), (2, 10, 16, 1), (2, 30, 36, 1)],
        [("finished", n, at, at + 6, at + 6, 1, 0, 0) for n, at in ((0, 0), (2, 10), (0, 20), (2, 30))],
    ),
    # At 8 nobody has left the second yet; at 9 it is empty.
    "fewest requests": (
        sent(Fleet((PLAIN, PLAIN), "least-loaded"), (0, 3, 2), (0, 3, 1), (8, 1, 1), (9, 1, 1)),
        [(0, 0, 8, 1), (0, 8, 14, 1), (0, 14, 20, 1), (1, 0, 8, 1), (1, 9, 15, 1)],
        [
            ("finished", 0, 0, 8, 14, 2, 0, 0),
            ("finished", 1, 0, 8, 8, 1, 0, 0),
            ("finished", 0, 14, 20, 20, 1, 0, 0),
            ("finished", 1, 9, 15, 15, 1, 0, 0),
        ],
    ),
    "begun anew elsewhere": (
        hit("restart"),
        [(0, 0, 8, 1), (1, 10, 18, 1), (1, 18, 24, 1), (1, 24, 30, 1)],
        [("finished", 1, 0, 18, 30, 3, 1, 1)],
    ),
    "a step that ends as its replica fails": (
        hit("restart", at=8),
        [(1, 8, 16, 1), (1, 16, 22, 1), (1, 22, 28, 1)],
        [("finished", 1, 0, 16, 28, 3, 0, 1)],
    ),
    # Four tokens are read then.
    "gone on with elsewhere": (
        hit("resume"),
        [(0, 0, 8, 1), (1, 10, 19, 1), (1, 19, 25, 1)],
        [("finished", 1, 0, 8, 25, 3, 0, 1)],
    ),
    "lost": (hit("lost"), [(0, 0, 8, 1)], [("lost", 0, 0, 8, 10, 1, 0, 0)]),
    "once too often": (hit("restart", retries=0), [(0, 0, 8, 1)], [("lost", 0, 0, None, 10, 0, 1, 1)]),
    "held until it is back": (
        sent(DOWN, (7, 3, 1)),
        [(0, 15, 23, 1)],
        [("finished", 0, 15, 23, 23, 1, 0, 0)],
    ),
    "held for too long": (
        sent(replace(DOWN, replicas=(Setup(patience_ns=8),)), (7, 3, 1)),
        [],
        [("timed_out", 0, None, None, 15, 0, 0, 0)],
    ),
    # Three tokens of text and 5 ns: 11 ns.
    "read elsewhere": (
        sent(APART, (0, 3, 3)),
        [(0, 19, 25, 1), (0, 25, 31, 1), (1, 0, 8, 1)],
        [("finished", 0, 0, 8, 31, 3, 0, 0)],
    ),
    # The drafter reads the prompt in 2 ns, then one token, or after a full acceptance two: 1 and 2 ns.
    "read elsewhere, by the drafter too": (
        sent(replace(APART, replicas=(SURE,), prefill=(SURE,)), (0, 3, 6)),
        [(0, 21, 31, 3), (0, 31, 40, 2), (1, 0, 10, 1)],
        [("finished", 0, 0, 10, 40, 6, 0, 0)],
    ),
    # It first reads all four tokens: 2 ns.
    "read elsewhere, by the target alone": (
        sent(replace(APART, replicas=(SURE,)), (0, 3, 6)),
        [(0, 19, 30, 3), (0, 30, 39, 2), (1, 0, 8, 1)],
        [("finished", 0, 0, 8, 39, 6, 0, 0)],
    ),
    # Prompts: 2 ns each on the device, the second until 4; drafts: from 8 to 10 and to 12. The link takes 6.
    "drafters on one device": (
        sent(Fleet((SURE, SURE), devices=1, link_ns=3), (0, 3, 4), (0, 3, 4)),
        [(0, 0, 8, 1), (0, 8, 24, 3), (1, 0, 8, 1), (1, 8, 26, 3)],
        [("finished", 0, 0, 8, 24, 4, 0, 0), ("finished", 1, 0, 8, 26, 4, 0, 0)],
    ),
}
OUTAGES = {
    "begun anew elsewhere": (0, 10, 30, 8, 1, 0),
    "a step that ends as its replica fails": (0, 8, 28, 0, 1, 0),
    "held until it is back": (0, 5, 15, None, 0, 0),
}


@pytest.mark.parametrize("what", BY_HAND)
def test_by_hand(what):
    scenario, steps, requests = BY_HAND[what]
    records, plain = serve_cluster(scenario), twin(scenario)
    for found in (records.steps.to_pylist(), plain.steps):
        seen = [
            (
                row["replica"],
                row["started_at_ns"],
                row["started_at_ns"] + sum(row[p] for p in PARTS),
                row["emitted_tokens"],
            )
            for row in found
        ]
        assert sorted(seen) == steps
    for found in (records.requests.to_pylist(), plain.requests):
        by_number = sorted(found, key=lambda row: row["request_id"])
        columns = (*REQUEST, "discarded_tokens", "restarts")
        assert [tuple(row[name] for name in columns) for row in by_number] == requests


@pytest.mark.parametrize("what", OUTAGES)
def test_outages_by_hand(what):
    scenario = BY_HAND[what][0]
    for found in (serve_cluster(scenario).outages.to_pylist(), twin(scenario).outages):
        assert [tuple(row.values()) for row in found] == [OUTAGES[what]]


def test_waiting_for_the_device_is_told_apart():
    steps = serve_cluster(BY_HAND["drafters on one device"][0]).steps
    waits = zip(*(steps[name].to_pylist() for name in ("replica", "step", "wait_ns")), strict=True)
    assert sorted(waits) == [(0, 0, 0), (0, 1, 6), (1, 0, 0), (1, 1, 8)]
