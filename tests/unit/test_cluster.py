"""Clusters of made-up engines, worked by hand: a prompt of 3 takes 8 ns alone, each token after it 6."""

from __future__ import annotations

import pytest

from simspec.errors import BadInput
from simspec.serving.arrivals import ClosedLoop, OpenLoop
from simspec.serving.cluster import Cluster, DrafterDevice, Failures, Outage
from simspec.serving.config import Serving, Speculation
from simspec.serving.kvcache import Memory
from simspec.serving.policies import Fixed
from simspec.serving.pricing import Costs
from simspec.serving.request import Request
from simspec.serving.routing import Router
from simspec.serving.simulate import Records, simulate
from simspec.serving.verdicts import Rates
from simspec.strategies.small_engines import affine

NANO = 1e-9
COST = affine(4e-9, 1e-9, 0.0)
ALONE = Serving(Costs(COST, "target"), 1)
TWO = (ALONE, ALONE)


def served(cluster: Cluster, *requests: tuple[int, ...], until: float | None = None) -> Records:
    """Requests (instant, prompt, output, session)."""
    asked = [(at, Request(i, *sizes)) for i, (at, *sizes) in enumerate(requests)]
    return simulate(cluster, OpenLoop(asked), 0, until_seconds=until)


def column(records: Records, name: str) -> list[object]:
    """Of requests, by number."""
    rows = sorted(records.requests.to_pylist(), key=lambda row: row["request_id"])
    return [row[name] for row in rows]


def test_round_robin_takes_turns_and_least_loaded_looks():
    """The first request is long: turn by turn the third waits for it, the least loaded replica is free."""
    requests = ((0, 3, 9), (0, 3, 1), (20, 3, 1), (20, 3, 1))
    assert column(served(Cluster(TWO), *requests), "replica") == [0, 1, 0, 1]
    found = served(Cluster(TWO, "least-loaded"), *requests)
    assert column(found, "replica") == [0, 1, 1, 0]
    assert column(found, "ended_at_ns")[:3] == [8 + 8 * 6, 8, 28]


def test_a_session_stays_where_it_is_and_moves_when_that_fails():
    sessions = range(12)
    requests = [(100 * turn, 3, 1, session) for turn in range(4) for session in sessions]
    three = (ALONE,) * 3
    whole = column(served(Cluster(three, "session-affine"), *requests), "replica")
    assert set(whole) == {0, 1, 2}
    assert whole == whole[:12] * 4
    failed = Cluster(three, "session-affine", outages=(Outage(1, 150 * NANO, 100 * NANO),))
    moved = column(served(failed, *requests), "replica")
    # Down from 150 to 250: in the third turn its sessions are elsewhere, in the fourth they are back.
    assert moved[:24] == whole[:24]
    assert moved[36:] == whole[36:]
    for before, after in zip(whole[24:36], moved[24:36], strict=True):
        assert after == before if before != 1 else after != 1


OUTAGE = (Outage(0, 21 * NANO, 9 * NANO),)


@pytest.mark.parametrize(
    ("how", "ended", "first", "produced", "discarded"),
    [
        # Read by 8, tokens at 14 and 20, then the step from 20 on is lost at 21.
        ("lost", 21, 8, 3, 0),
        # Back at 30: read 8 ns, then 4 tokens.
        ("restart", 30 + 8 + 4 * 6, 38, 5, 3),
        # Prompt and 3 tokens are read in 1 + 4 + 6 and give the fourth.
        ("resume", 30 + 11 + 6, 8, 5, 0),
    ],
)
def test_a_replica_fails(how, ended, first, produced, discarded):
    found = served(Cluster((ALONE,), outages=OUTAGE, on_failure=how), (0, 3, 5))
    (row,) = found.requests.to_pylist()
    assert (row["ended_at_ns"], row["first_token_at_ns"]) == (ended, first)
    assert (row["produced_tokens"], row["discarded_tokens"]) == (produced, discarded)
    assert row["outcome"] == ("lost" if how == "lost" else "finished")
    assert row["restarts"] == (how != "lost")
    (outage,) = found.outages.to_pylist()
    assert outage == {
        "replica": 0,
        "failed_at_ns": 21,
        "back_at_ns": 30,
        "step_began_at_ns": 20,
        "batch_requests": 1,
        "queued_requests": 0,
    }


def test_a_step_that_would_end_as_its_replica_fails_does_not():
    cluster = Cluster((ALONE,), outages=(Outage(0, 20 * NANO, NANO),), on_failure="lost")
    found = served(cluster, (0, 3, 5))
    assert column(found, "produced_tokens") == [2]
    assert found.steps["started_at_ns"].to_pylist() == [0, 8]


def test_retries_are_counted():
    again = tuple(Outage(0, (8 * n + 5) * NANO, NANO) for n in range(3))
    found = served(Cluster((ALONE,), outages=again, retries=1), (0, 3, 1))
    assert column(found, "outcome") == ["lost"]
    assert column(found, "restarts") == [2]
    assert column(found, "ended_at_ns") == [13]


def test_whoever_comes_while_all_are_down_is_held_and_may_lose_patience():
    patient = Serving(ALONE.costs, 1, patience_seconds=10 * NANO)
    cluster = Cluster((patient,) * 2, outages=(Outage(0, 0, 20 * NANO), Outage(1, 0, 40 * NANO)))
    found = served(cluster, (1, 3, 1), (15, 3, 1))
    assert column(found, "outcome") == ["timed_out", "finished"]
    assert column(found, "ended_at_ns") == [11, 28]
    assert column(found, "replica") == [None, 0]


def test_prompts_are_read_elsewhere():
    """Two prompts are read one after the other, the first request decodes meanwhile: 5 ns for 3 tokens."""
    cluster = Cluster((ALONE,), prefill=(ALONE,), transfer_seconds=5 * NANO, transfer_token_seconds=NANO)
    found = served(cluster, (0, 3, 3), (0, 3, 2))
    assert column(found, "first_token_at_ns") == [8, 16]
    # 8 + 5 + 3 = 16, two tokens; then the second, there since 24, one.
    assert column(found, "ended_at_ns") == [28, 34]
    assert column(found, "replica") == [0, 0]
    assert found.steps["replica"].to_pylist() == [1, 1, 0, 0, 0]
    assert found.steps["prefill_tokens"].to_pylist() == [3, 3, 0, 0, 0]


@pytest.mark.parametrize("reads", [True, False])
def test_a_drafter_that_has_not_read_the_prompt_reads_it_as_it_drafts(reads):
    """A draft of one costs 1 + .25 ns for a token, and .25 more for each token of the text not read."""
    costs = Costs(affine(16e-9, 4e-9, 0.0), "target", "small")
    drafts = Serving(costs, 1, Speculation(Fixed(1), Rates((1.0,))))
    plain = Serving(costs, 1)
    found = served(Cluster((drafts,), prefill=(drafts if reads else plain,)), (0, 3, 3))
    # Text of 4, all but the last token of it read, or nothing: 4 + 1 or 4 + 4 ns.
    assert found.steps["draft_ns"].to_pylist() == [4 + 3 if reads else 0, 5 if reads else 8]


def test_drafters_share_a_device():
    """Each step drafts for 5 ns on the only device; the second waits for the first, and for the link."""
    costs = Costs(affine(16e-9, 4e-9, 0.0), "target", "small")
    drafts = Serving(costs, 1, Speculation(Fixed(1), Rates((1.0,))), Memory())
    device = DrafterDevice(1, link_seconds=2 * NANO)
    found = served(Cluster((drafts,) * 2, drafter_device=device), (0, 3, 3), (0, 3, 3))
    steps = found.steps.to_pylist()
    # Prompts of 3: 16 + 12 on the target, 4 + 3 on the device beside it.
    assert [s["draft_ns"] for s in steps] == [0, 0, 5, 5]
    assert [s["wait_ns"] for s in steps] == [0, 0, 4, 9]
    assert found.drafters_ns == 2 * (7 + 5)


def test_one_client_goes_on_after_a_loss():
    cluster = Cluster((ALONE,), outages=OUTAGE, on_failure="lost")
    loop = ClosedLoop(1, [Request(i, 3, 5) for i in range(2)])
    found = simulate(cluster, loop, 0)
    assert column(found, "outcome") == ["lost", "finished"]
    assert column(found, "arrived_at_ns") == [0, 21]
    assert column(found, "admitted_at_ns") == [0, 30]
    assert column(found, "session") == [0, 0]


def test_failures_by_chance_end_with_the_work():
    failures = Failures(50 * NANO, 10 * NANO)
    found = served(Cluster(TWO, failures=failures, retries=1000), *((i, 3, 4) for i in range(30)))
    assert column(found, "outcome") == ["finished"] * 30
    assert found.outages.num_rows > 10
    assert max(found.outages["failed_at_ns"].to_pylist()) < max(column(found, "ended_at_ns"))


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("no replica", {"replicas": ()}),
        ("routing is 'random'", {"routing": "random"}),
        ("outage of replica 2", {"outages": (Outage(2, 0, 1),)}),
        ("fails again before it is back", {"outages": (Outage(0, 0, 2), Outage(0, 1, 1))}),
        ("failures by chance too", {"outages": (Outage(0, 0, 2),), "failures": Failures(1, 1)}),
        ("retries is -1", {"retries": -1}),
        ("unlike patience", {"replicas": (ALONE, Serving(ALONE.costs, 1, patience_seconds=1.0))}),
        ("transfer_seconds", {"transfer_seconds": float("nan")}),
    ],
)
def test_what_makes_no_cluster_is_refused(what, changes):
    with pytest.raises(BadInput, match=what):
        Cluster(**{"replicas": TWO, **changes})


def test_turns_go_on_past_a_replica_that_is_down():
    class Stub:
        load = 0

        def __init__(self, number):
            self.number = number

    router, all_three = Router("round-robin"), [Stub(n) for n in range(3)]
    asked = Request(0, 1, 1)
    picks = [up[router.choose(asked, up)].number for up in (all_three, all_three[::2], all_three, all_three)]
    assert picks == [0, 2, 0, 1]


def test_the_end_is_that_of_the_last_request():
    """Not that of an outage which is not carried out, nor of a patience that is over."""
    patient = Serving(ALONE.costs, 1, patience_seconds=1.0)
    found = served(Cluster((patient,), outages=(Outage(0, 5.0, 1.0),)), (0, 3, 1))
    assert found.ended_at == 8
    assert found.outages.num_rows == 0
