"""The engine on cases small enough to count by hand, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from simspec.errors import BadInput
from simspec.scenario.itl import ends_of
from simspec.serving.arrivals import ClosedLoop, OpenLoop
from simspec.serving.config import Serving, Speculation
from simspec.serving.figures import figures
from simspec.serving.kvcache import Memory
from simspec.serving.policies import Fixed
from simspec.serving.pricing import Costs
from simspec.serving.request import Request
from simspec.serving.simulate import simulate
from simspec.serving.verdicts import Rates, Recorded
from simspec.strategies.small_engines import affine

# A forward of n tokens takes 4 + n ns, a fourth of it for the drafter; a step's overhead is 1 ns.
COST = affine(4e-9, 1e-9, 0.0)
PLAIN = Costs(COST, "target")
DRAFTING = Costs(COST, "target", "small")


def rows(table, *columns: str) -> list[tuple[int, ...]]:
    """Some columns of a table, row by row."""
    return list(zip(*(table[c].to_pylist() for c in columns), strict=True))


def test_one_request_alone():
    """Prompt of 3 at 10: 1 + 4 + 3 = 8 ns, first token at 18; two steps of 1 + 4 + 1 = 6 ns, done at 30."""
    records = simulate(Serving(PLAIN, 1), OpenLoop([(10, Request(0, 3, 3))]), 0)
    parts = ("started_at_ns", "verify_ns", "prefill_ns", "overhead_ns", "context_tokens")
    assert rows(records.steps, *parts) == [(10, 0, 7, 1, 0), (18, 5, 0, 1, 4), (24, 5, 0, 1, 5)]
    (row,) = records.requests.to_pylist()
    assert (row["admitted_at_ns"], row["first_token_at_ns"], row["ended_at_ns"]) == (10, 18, 30)
    found = figures(records.steps, records.requests)
    assert found.ttft_seconds.mean == pytest.approx(8e-9)
    assert found.tpot_seconds.mean == pytest.approx(6e-9)
    assert found.e2e_seconds.p99 == pytest.approx(20e-9)
    assert found.emitted_per_pass_pooled == found.emitted_per_pass_mean == 1
    assert found.draft_waste is None


def test_drafting_is_priced_forward_by_forward():
    """Sure acceptance, length 2, 8 tokens: after the prompt, passes of 3, 3 and 1.

    The drafter reads one token, then one more for the second draft: (4 + 1) / 4 = 1.25 ns, 1 each. After a
    full acceptance its first forward is two wide: (4 + 2) / 4 = 1.5, rounded to 2. The last pass may draft
    nothing.
    """
    serving = Serving(DRAFTING, 1, Speculation(Fixed(2), Rates((1.0, 1.0))))
    records = simulate(serving, OpenLoop([(0, Request(0, 4, 8))]), 0)
    parts = ("draft_ns", "verify_ns", "prefill_ns", "drafted_tokens", "emitted_tokens")
    # The drafter reads the prompt too: (4 + 4) / 4.
    assert rows(records.steps, *parts) == [(2, 0, 8, 0, 1), (2, 7, 0, 2, 3), (3, 7, 0, 2, 3), (0, 5, 0, 0, 1)]


def test_an_idle_drafter_catches_up():
    """After three steps without drafts its first forward reads the prompt's token and three more."""

    class Late(Fixed):
        rows_only = False

        def length(self, view, state):
            return (0 if state < 3 else 1), state + 1

    serving = Serving(DRAFTING, 1, Speculation(Late(1), Rates((0.0,))))
    records = simulate(serving, OpenLoop([(0, Request(0, 4, 9))]), 0)
    # (4 + 4) / 4 = 2 once, then one token a step.
    assert records.steps["draft_ns"].to_pylist()[4:7] == [2, 1, 1]


def test_prompts_are_read_in_chunks_beside_decoding():
    """Budget 4: the second prompt of 6 goes 3 + 3 beside one row that decodes."""
    serving = Serving(PLAIN, 2, prefill="chunked", token_budget=4)
    records = simulate(serving, OpenLoop([(0, Request(0, 2, 9)), (1, Request(1, 6, 2))]), 0)
    found = rows(records.steps, "prefill_tokens", "decoding_requests", "verify_ns", "prefill_ns")
    assert found[:4] == [(2, 0, 0, 6), (3, 1, 5, 3), (3, 1, 5, 3), (0, 2, 6, 0)]


def test_prompts_go_first_where_steps_are_not_mixed():
    serving = Serving(PLAIN, 2, mixed=False)
    records = simulate(serving, OpenLoop([(0, Request(0, 2, 4)), (1, Request(1, 6, 2))]), 0)
    assert rows(records.steps, "prefill_tokens", "decoding_requests")[:3] == [(2, 0), (6, 0), (0, 2)]


def test_the_last_admitted_is_preempted_and_reads_its_text_again():
    """Blocks of one token, 9 of them, no lookahead. Prompts of 3, both of 5 tokens in all.

    Each is admitted with 4 blocks, for its prompt and its first token. At contexts of 5 they would need 10:
    the second leaves with 2 tokens. When the first has ended, 3 + 2 are read again, which gives the third.
    """
    serving = Serving(PLAIN, 2, memory=Memory(1, 9))
    records = simulate(serving, OpenLoop([(0, Request(0, 3, 5)), (0, Request(1, 3, 5))]), 0)
    found = rows(records.steps, "decoding_requests", "prefill_tokens", "target_blocks", "preempted_requests")
    first = [(0, 6, 8, 0), (2, 0, 8, 0), (1, 0, 5, 1), (1, 0, 6, 0), (1, 0, 7, 0)]
    second = [(0, 5, 6, 0), (1, 0, 6, 0), (1, 0, 7, 0)]
    assert found == first + second
    assert rows(records.requests, "request_id", "preemptions", "produced_tokens") == [(0, 0, 5), (1, 1, 5)]


def test_swapped_out_it_goes_on_where_it_was():
    """The same two requests: 5 blocks move out at 1 ns each, and back when the first has ended."""
    memory = Memory(1, 9, preemption="swap", block_swap_seconds=1e-9)
    load = OpenLoop([(0, Request(0, 3, 5)), (0, Request(1, 3, 5))])
    records = simulate(Serving(PLAIN, 2, memory=memory), load, 0)
    found = rows(records.steps, "decoding_requests", "prefill_tokens", "target_blocks", "swap_ns")
    first = [(0, 6, 8, 0), (2, 0, 8, 0), (1, 0, 5, 5), (1, 0, 6, 0), (1, 0, 7, 0)]
    second = [(1, 0, 6, 5), (1, 0, 6, 0), (1, 0, 7, 0)]
    assert found == first + second
    assert rows(records.requests, "request_id", "preemptions", "passes") == [(0, 0, 4), (1, 1, 4)]


@pytest.mark.parametrize(("lookahead", "blocks"), [("reserved", [11, 11, 12, 13]), ("used", [6, 9, 9, 9])])
def test_lookahead(lookahead, blocks):
    """Length 4, blocks of one token, a prompt of 6 and 4 tokens.

    The first pass has a context of 7 and three tokens to go, so it may draft 2: 7 + 2 are used, 7 + 4
    reserved, and so since admission. It accepts none, so the second has 8 + 1 and 8 + 4, the third 9 and 13.
    """
    serving = Serving(
        DRAFTING, 1, Speculation(Fixed(4), Rates((0.0,) * 4)), memory=Memory(1, 40, 30, lookahead)
    )
    records = simulate(serving, OpenLoop([(0, Request(0, 6, 4))]), 0)
    assert records.steps["target_blocks"].to_pylist() == blocks
    assert records.steps["drafter_blocks"].to_pylist() == blocks


def test_who_cannot_fit_or_finds_the_queue_full_is_rejected():
    serving = Serving(PLAIN, 1, memory=Memory(2, 5), queue_limit=1)
    load = [(0, Request(0, 9, 2)), (0, Request(1, 2, 8)), (1, Request(2, 2, 2)), (1, Request(3, 2, 2))]
    records = simulate(serving, OpenLoop(load), 0)
    found = dict(rows(records.requests, "request_id", "outcome"))
    assert found == {0: "rejected", 1: "finished", 2: "finished", 3: "rejected"}


def test_patience_ends_before_a_step_that_begins_then():
    """Request 1 comes at 1 and waits 7 ns; the slot is free at 8, when it has just gone."""
    for patience, outcome in ((7e-9, "timed_out"), (8e-9, "finished")):
        serving = Serving(PLAIN, 1, patience_seconds=patience)
        records = simulate(serving, OpenLoop([(0, Request(0, 3, 1)), (1, Request(1, 3, 1))]), 0)
        assert dict(rows(records.requests, "request_id", "outcome"))[1] == outcome
        assert ends_of(records.steps)[0] == 8


def test_a_client_sends_its_next_request_in_time_for_the_next_step():
    requests = [Request(i, 3, 1) for i in range(4)]
    records = simulate(Serving(PLAIN, 2), ClosedLoop(2, requests), 0)
    assert records.requests["arrived_at_ns"].to_pylist() == [0, 0, 11, 11]
    thinking = simulate(Serving(PLAIN, 2), ClosedLoop(2, requests, 5e-9), 0)
    assert thinking.requests["arrived_at_ns"].to_pylist() == [0, 0, 16, 16]


def test_a_step_that_the_end_cuts_off_is_not_recorded():
    load = [(0, Request(0, 3, 3)), (20, Request(1, 3, 3))]
    records = simulate(Serving(PLAIN, 1), OpenLoop(load), 0, until_seconds=14e-9)
    assert records.steps.num_rows == 1
    assert (records.arrived, records.ended_at) == (1, 14)
    (row,) = records.requests.to_pylist()
    assert (row["outcome"], row["produced_tokens"], row["ended_at_ns"]) == ("unfinished", 1, 14)


def test_tables_on_disk_are_the_tables_in_memory(tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    from simspec.serving import recorder

    monkeypatch.setattr(recorder, "PIECE", 7)
    load = [(n, Request(n, 3, 20)) for n in range(9)]
    serving = Serving(DRAFTING, 2, Speculation(Fixed(0), Rates(())))
    kept = simulate(serving, OpenLoop(load), 0)
    gone = simulate(serving, OpenLoop(load), 0, folder=tmp_path)
    assert gone.steps.num_rows == gone.requests.num_rows == 0
    for name in ("steps", "requests"):
        assert pq.read_table(tmp_path / f"{name}.parquet").equals(getattr(kept, name))
        assert pq.ParquetFile(tmp_path / f"{name}.parquet").num_row_groups > 1


def test_arrivals_that_go_back_are_refused():
    with pytest.raises(BadInput, match="request 1 arrives before the one ahead of it"):
        simulate(Serving(PLAIN, 1), OpenLoop([(5, Request(0, 1, 1)), (4, Request(1, 1, 1))]), 0)


def test_a_policy_that_answers_out_of_its_range_is_a_fault():
    class Wrong(Fixed):
        def length(self, view, state):
            return 3, state

    serving = Serving(DRAFTING, 1, Speculation(Wrong(2), Rates((0.5, 0.5))))
    with pytest.raises(ValueError, match="answered 3"):
        simulate(serving, OpenLoop([(0, Request(0, 1, 5))]), 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Serving(PLAIN, 0), "slots is 0"),
        (lambda: Serving(PLAIN, 1, token_budget=0), "token_budget is 0"),
        (lambda: Serving(PLAIN, 1, queue_limit=-1), "queue_limit is -1"),
        (lambda: Serving(PLAIN, 1, prefill="some"), "prefill is 'some'"),
        (lambda: Serving(PLAIN, 1, patience_seconds=float("nan")), "patience_seconds of nan"),
        (lambda: Serving(PLAIN, 1, Speculation(Fixed(1), Rates((0.5,)))), "speculation needs a drafter"),
        (lambda: Speculation(Fixed(1), Rates((0.5,)), 1.0), "remembered is 1.0"),
        (lambda: Memory(0), "block_tokens is 0"),
        (lambda: Memory(lookahead="some"), "lookahead is 'some'"),
        (lambda: Memory(preemption="some"), "preemption is 'some'"),
        (lambda: Memory(block_swap_seconds=-1.0), "block_swap_seconds of -1.0"),
        (lambda: Costs(COST, "targte"), "did you mean 'target'"),
        (lambda: Costs(COST, "target", "smal"), "did you mean 'small'"),
        (lambda: Costs(COST, "target", idle_seconds=-1.0), "idle_seconds of -1.0"),
        (lambda: Rates((0.5, 0.6)), "never rise"),
        (lambda: Rates((1.5,)), "probabilities"),
        (lambda: Recorded.of_lengths([[1, 7]], 4), "1 to 5"),
        (lambda: Recorded(np.array([0, 0]), np.zeros(0, int), np.zeros(0, int)), "no positions"),
        (lambda: Recorded(np.array([0, 1]), np.array([-1]), np.array([1])), "matched is negative"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(BadInput, match=message):
        make()
