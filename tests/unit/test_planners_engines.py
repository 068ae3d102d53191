"""What engines do for a whole batch, by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from simspec.errors import BadInput
from simspec.speculation.lengths import Decision
from simspec.speculation.planners_engines import BanditSpec, EmaWalk, GoodputByPlace, GoodputByRate
from simspec.speculation.planning import Happened, Planner, State, Waiting


def waiting(seconds: Callable[[np.ndarray], np.ndarray], running, fresh=False, depth=8) -> Waiting:
    """One stream; ``seconds`` of a cycle by length, all of it drafting."""
    runs = np.array([running], dtype=bool)
    return Waiting(
        running=runs,
        fresh=np.full(runs.shape, fresh),
        confidence=np.full((*runs.shape, depth), 0.5),
        limit=np.where(runs, depth, 0),
        draft=lambda n: np.broadcast_to(seconds(n), (1, n.shape[-1])),
        verify=lambda widest, total: np.zeros(np.broadcast_shapes(widest.shape, total.shape)),
        overhead=0.0,
    )


def line(n):
    return 10.0 + n


def cycle(planner: Planner, state: State, accepted, running=None, seconds=line, fresh=False) -> int:
    """Goes through a cycle, changes the state, and says the length of the running rows."""
    running = [True] * len(accepted) if running is None else running
    seen = waiting(seconds, running, fresh)
    decision = planner.decide(seen, state)
    submitted = np.where(seen.running, np.minimum(decision.submitted, seen.limit), 0)
    kept = np.minimum(np.array([accepted]), submitted)
    took = seconds(submitted.max(axis=1)).astype(float)
    emitted = np.where(seen.running, kept + 1, 0)
    done = Happened(seen, Decision(submitted, submitted), kept, emitted, took, np.zeros(1))
    state.update(planner.observe(state, done))
    return int(decision.submitted[0, 0])


# SGLang.


def test_the_walk():
    """From 2, with 3 accepted: 2.2, 2.36, 2.488, 2.59 > 2.5; then of 7 drafts none: 2.07 <= 2.25."""
    planner = EmaWalk(warmup=0, every=1)
    state = planner.begin(1, 1, 8)
    assert [cycle(planner, state, [3]) for _ in range(4)] == [3, 3, 3, 3]
    assert cycle(planner, state, [0]) == 7
    assert state["mean"][0] == pytest.approx(0.8 * (3 - 0.8**4))
    assert cycle(planner, state, [0]) == 3
    # On to 1 at or below .25, and up again above .5.
    lengths = [cycle(planner, state, [0]) for _ in range(12)]
    assert lengths[0] == 3
    assert lengths[-1] == 1
    assert [cycle(planner, state, [1]) for _ in range(5)][-1] == 3


def test_the_walk_takes_the_mean_over_running_rows_and_moves_when_it_is_due():
    planner = EmaWalk()
    state = planner.begin(1, 3, 8)
    cycle(planner, state, [3, 1, 3], running=[True, True, False])
    assert state["mean"][0] == pytest.approx(0.8 * 2 + 0.2 * 2)
    lengths = [cycle(planner, state, [9, 9, 9]) for _ in range(20)]
    # Cycles 2 to 15 of those that passed were decided before the first move, after cycle 15.
    assert lengths == [3] * 14 + [7] * 6


def test_the_walk_goes_down_when_it_is_due():
    """2 x .8^n is at most .25 from n = 10 on; due after 4, 8 and 12 cycles."""
    planner = EmaWalk(warmup=0, every=4)
    state = planner.begin(1, 1, 8)
    assert [cycle(planner, state, [0]) for _ in range(14)] == [3] * 12 + [1] * 2


def test_the_walk_goes_several_steps_at_once():
    planner = EmaWalk(weight=1.0, warmup=0, every=1)
    state = planner.begin(1, 1, 8)
    assert [cycle(planner, state, [3]), cycle(planner, state, [0]), cycle(planner, state, [0])] == [3, 7, 1]


@pytest.mark.parametrize("given", [{"lengths": (3, 1)}, {"lengths": (0, 3)}, {"first": 2}])
def test_a_walk_that_cannot_be(given):
    with pytest.raises(BadInput):
        EmaWalk(**given)


# vLLM.

# Its table: milliseconds by rows and draft tokens, and the acceptance of places 1 to 7.
ITL = {
    1: (6.87, 7.97, 9.41, 9.91, 10.8, 12.29),
    16: (7.3, 8.39, 9.95, 10.8, 11.59, 13.11),
    32: (7.64, 8.97, 10.78, 11.79, 12.81, 14.86),
}
RATES = (0.68, 0.39, 0.20, 0.10, 0.06, 0.03, 0.02)


@pytest.mark.parametrize("rows", ITL)
def test_vllms_own_table(rows):
    """Published: K* = 3 for 1, 16 and 32 rows."""
    planner = GoodputByPlace()
    state = planner.begin(1, rows, 8)
    state["tried"][:] = 1e9
    state["accepted"][:] = 1e9 * np.array(RATES)
    seen = waiting(lambda n: np.interp(n, (0, 1, 3, 4, 5, 7), ITL[rows]), [True] * rows)
    assert planner.decide(seen, state).submitted.tolist() == [[3] * rows]


def test_places_are_counted_where_they_were_submitted():
    planner = GoodputByPlace(longest=3, prior_drafts=2.0)
    state = planner.begin(1, 3, 8)
    assert cycle(planner, state, [3, 1, 0], running=[True, True, False]) == 3
    assert state["accepted"].tolist() == [[2, 1, 1]]
    assert state["tried"].tolist() == [[2, 2, 2]]
    # (2 + 2 x .7) / 4, (1 + 2 x .49) / 4, (1 + 2 x .343) / 4.
    assert planner._gains(state)[0] == pytest.approx([0.85, 0.495, 0.4215])
    state["accepted"][:], state["tried"][:] = [[0, 0, 0]], [[8, 0, 0]]
    # A place that nobody tried is no better than the one before it: 1.4 / 10.
    assert planner._gains(state)[0] == pytest.approx([0.14, 0.14, 0.14])


# TurboSpec.


def test_the_length_of_most_goodput():
    """At rate 1/2 and 10 + n seconds: 1/10, 1.5/11, 1.75/12, 1.875/13: most at 2."""
    planner = GoodputByRate(prior=0.5)
    assert cycle(planner, planner.begin(1, 1, 8), [0]) == 2


def test_the_rate_counts_accepted_drafts_and_first_refusals():
    planner = GoodputByRate(remembered=0.5)
    state = planner.begin(1, 3, 8)
    drafted = cycle(planner, state, [9, 1, 9], running=[True, True, False])
    assert (state["accepted"][0], state["tried"][0]) == (drafted + 1, drafted + 2)
    cycle(planner, state, [0, 0, 0], running=[True, True, False])
    assert (state["accepted"][0], state["tried"][0]) == ((drafted + 1) / 2, (drafted + 2) / 2 + 2)


@pytest.mark.parametrize("planner", [GoodputByRate(probe_every=3), GoodputByPlace(probe_every=3)], ids=str)
def test_after_idle_cycles_one_token_is_tried(planner):
    state = planner.begin(1, 1, 8)
    lengths = [cycle(planner, state, [0], seconds=lambda n: 1.0 + 100.0 * n) for _ in range(8)]
    assert lengths == [0, 0, 0, 1, 0, 0, 0, 1]


# BanditSpec.


def test_the_bandit_tries_all_in_turn_and_then_takes_the_best():
    """One draft is accepted: 2 tokens in 10 + n seconds, best at 1; with little spread it stays there."""
    planner = BanditSpec(spread=1e-6)
    state = planner.begin(1, 1, 8)
    lengths = [cycle(planner, state, [1], fresh=i == 0) for i in range(12)]
    assert lengths == [1, 2, 3, 4] * 2 + [1] * 4
    assert state["mean"][0] == pytest.approx([2 / 11, 2 / 12, 2 / 13, 2 / 14])
    # Another batch: anew, unless it is to last.
    assert cycle(planner, state, [1], fresh=True) == 1
    assert state["pulls"].sum() == 1
    lasting = BanditSpec(spread=1e-6, lasting=True)
    state = lasting.begin(1, 1, 8)
    for _ in range(9):
        cycle(lasting, state, [1], fresh=True)
    assert state["pulls"].tolist() == [[3, 2, 2, 2]]


def test_the_bandits_bonus():
    """Means 1 and .9 after 8 and 2 pulls: sqrt(.01 ln 11 / n) adds .055 and .109, too little for the second;
    sqrt(.1 ln 11 / n) adds .173 and .346."""
    for spread, best in ((0.01, 1), (0.1, 2)):
        planner = BanditSpec(arms=(1, 2), rounds=1, spread=spread, lasting=True)
        state = planner.begin(1, 1, 8)
        state["pulls"][:], state["mean"][:] = [[8, 2]], [[1.0, 0.9]]
        assert cycle(planner, state, [1]) == best
