"""Algorithm 1 of LibraSpec (arXiv 2608.08721): exact code, simulator and published settings agree.

And what wrong confidences cost at most: the claims' bounds beside linear programs.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import linprog

from simspec.claims.lengths.calibration_regret import Believed, acted_on, bound, grown
from simspec.claims.lengths.families import Family, regret, spread
from simspec.claims.lengths.from_one import best_from_one, pays, rates_from_one
from simspec.claims.lengths.one_pass import Pass, passes
from simspec.claims.lengths.regret_reached import Margin, reachable, room, worst_pair
from simspec.claims.lengths.regret_shares import L39, Corner, share_reached
from simspec.claims.lengths.runs import Start, starts
from simspec.claims.lengths.tuned import L8
from simspec.claims.lengths.tuned_cases import Tuned, by_algorithm, threshold
from simspec.speculation.lengths import LibraSpec, View
from simspec.strategies.costs import affine
from simspec.strategies.survivals import conditionals, survival
from simspec.theory.lengths import conditional_gain, eps_printed
from simspec.theory.libraspec import algorithm_one, pass_limits, theorem_limit

weights = st.builds(Fraction, st.integers(1, 60), st.integers(1, 12))


# The float code that the simulator runs, with the same order of operations: equal to the last bit.


def simulated(q: list[float], alpha: float, block: int, longest: int) -> tuple[int, int]:
    view = View(np.array([q]), np.array([len(q)]), np.ones((1, len(q) + 1)))
    found = LibraSpec(alpha, block, longest).decide(view, np.zeros(1))
    return int(found.drafted[0]), int(found.submitted[0])


@given(
    q=st.lists(st.one_of(st.floats(0, 1), st.floats(0.85, 1)), min_size=1, max_size=40),
    alpha=st.one_of(st.floats(0.1, 12), st.sampled_from([1.8, 2.0, 2.2])),
    block=st.integers(1, 12),
    longest=st.integers(1, 40),
)
@example(q=[0.5] * 30, alpha=2.0, block=4, longest=12)
@example(q=[1.0], alpha=7.5, block=1, longest=30)
def test_the_simulator_runs_algorithm_one(q: list[float], alpha: float, block: int, longest: int) -> None:
    found = algorithm_one(q, alpha, block, longest)
    assert (found.drafted, found.submitted) == simulated(q, alpha, block, longest)


# Rows: q, the three settings, then argmax (1 + sum q^j) / (a + d) for a = 10, 40, 100; worked out from the
# paper's formulas apart from this code.
SETTINGS = ((Fraction(2), 10, 60), (Fraction(11, 5), 16, 24), (Fraction(11, 5), 1, 60))
CONSTANT = {
    "0.5": (2, 3, 2, 2, 4, 5),
    "0.7": (5, 6, 4, 4, 7, 9),
    "0.8": (8, 9, 7, 6, 10, 14),
    "0.9": (14, 17, 17, 10, 18, 24),
    "0.95": (30, 24, 35, 15, 28, 40),
    "0.97": (51, 24, 60, 21, 39, 57),
}


@pytest.mark.parametrize("q", CONSTANT)
def test_results_at_constant_confidence(q: str) -> None:
    p = (Fraction(q),) * 70
    assert tuple(algorithm_one(p, *setting).submitted for setting in SETTINGS) == CONSTANT[q][:3]
    best = tuple(Tuned(p, Fraction(a), True, 1).best() for a in (10, 40, 100))
    assert best == tuple([d] for d in CONSTANT[q][3:])


def test_61_tokens_where_60_are_allowed() -> None:
    assert algorithm_one((Fraction(99, 100),) * 80, Fraction(11, 5), 1, 60).submitted == 61


# The parts.


@given(p=conditionals(longest=6), alpha=weights, i=st.integers(1, 6), or_equal=st.booleans())
def test_the_theorems_limit_is_the_greatest_of_its_set(
    p: tuple[Fraction, ...], alpha: Fraction, i: int, or_equal: bool
) -> None:
    far = i + math.ceil(alpha * len(p)) + 2
    held = [
        d
        for d in range(far)
        if (bound := alpha * conditional_gain(p, i, d) + i) > d or (or_equal and bound == d)
    ]
    assert theorem_limit(p, alpha, i, or_equal=or_equal) == max(held)


@given(p=conditionals(longest=6, positive=True), fixed=weights, bonus=st.booleans(), data=st.data())
def test_the_theorems_limit_in_units_of_cost(
    p: tuple[Fraction, ...], fixed: Fraction, bonus: bool, data: st.DataObject
) -> None:
    i = data.draw(st.integers(1, len(p)))
    alpha = Tuned(p, fixed, bonus, 1).alpha(i)
    assert theorem_limit(p, alpha, i) == eps_printed(p, i, lambda d: fixed + d, bonus=bonus)


@given(case=starts())
def test_passes_go_on_from_every_length_up_to_the_last_and_from_none_beyond(case: Start) -> None:
    """So that W, the last of them, can be found by a scan that stops at the first refusal."""
    lengths = range(1, len(case.q) + 3)
    last = replace(case, longest=len(case.q) + 3).limit()
    assert [min(pass_limits(case.q, case.alpha, d)) > d for d in lengths] == [d <= last for d in lengths]


@given(case=passes())
def test_what_bounds_a_pass_is_the_sum_of_the_products(case: Pass) -> None:
    bounds = [math.floor(case.alpha * conditional_gain(case.q, i, case.d) + i) for i in range(1, case.d + 1)]
    assert list(pass_limits(case.q, case.alpha, case.d)) == bounds


@given(case=starts())
def test_only_the_last_pass_goes_back_and_what_is_submitted_was_drafted(case: Start) -> None:
    run = algorithm_one(case.q, case.alpha, case.block, case.longest)
    assert all(a < b for a, b in zip(run.lengths[:-1], run.lengths[1:-1], strict=False))
    assert run.drafted % case.block == 0
    assert max(run.lengths) <= run.drafted < max(run.lengths) + case.block


@pytest.mark.parametrize("block", [0, -1])
def test_a_block_holds_a_token(block: int) -> None:
    with pytest.raises(ValueError, match="at least 1 token"):
        algorithm_one((0.5,), 2.0, block, 4)


# What the ledger says in numbers.

TOLD = (
    Family("grid", (1, 2, 10), True, 1, 4),
    Family("grid", (1, 2, 10), False, 1, 4),
    Family("constant", (5, 10, 20, 40, 100), True, 10, 60),
    Family("constant", (5, 10, 20, 40, 100), False, 10, 60),
)


@pytest.mark.parametrize("family", TOLD, ids=lambda f: f"{f.shape}-{'bonus' if f.bonus else 'none'}")
def test_the_distribution_of_regret_is_as_told(family: Family) -> None:
    ending = "with the bonus" if family.bonus else "without"
    assert f"{spread(map(regret, family.members()))} {ending}" in L8.first_look


def test_half_of_the_best_is_reached() -> None:
    """T = 1 + d, no bonus: p = (1/3, 0, 0) is best at 1, 1/6 a unit of time; alpha 6 takes 3, at 1/12."""
    case = Tuned((Fraction(1, 3), Fraction(0), Fraction(0)), Fraction(1), False, 1)
    assert (case.best(), case.lengths(case.alpha(1))[-1], regret(case)) == ([1], 3, Fraction(1, 2))


def test_all_but_nothing_can_be_lost_from_a_long_start() -> None:
    case = Tuned((Fraction(1), *(Fraction(0),) * 59), Fraction(1), False, 60)
    assert case.best() == [1]
    assert regret(case) == 1 - Fraction(2, 61)


def test_the_threshold_is_best_with_alpha_taken_there() -> None:
    """T = 1 + d, no bonus, p = (1, 12/25): 1/2 at 1, (37/25)/3 at 2. alpha = 2, and 2 x 12/25 is below 1."""
    case = Tuned((Fraction(1), Fraction(12, 25)), Fraction(1), False, 1)
    assert case.rates() == (Fraction(0), Fraction(1, 2), Fraction(37, 75))
    assert (case.best(), case.alpha(1), threshold(case, case.alpha(1))) == ([1], Fraction(2), 1)
    assert by_algorithm(case, case.alpha(1)) == 2


@pytest.mark.parametrize("block", [1, 2])
def test_where_a_token_must_be_drafted_though_none_should(block: int) -> None:
    """T = d, bonus, p = (1, 1, 0): 2, 3/2 and 1 tokens a unit of time; alpha = 1/2 keeps a block of 2."""
    case = Tuned((Fraction(1), Fraction(1), Fraction(0)), Fraction(0), True, block)
    assert rates_from_one(case) == {1: 2, 2: Fraction(3, 2), 3: 1}
    assert (best_from_one(case), pays(case)) == ([1], False)
    assert by_algorithm(case, case.alpha(1)) == block


# How tight the bounds on regret are, as the ledger tells it.

ERRORS = tuple(map(Fraction, ("1/10", "1/4", "1/2", "3/4", "1")))


@pytest.mark.parametrize(("fixed", "bonus"), [(2, 1), (5, 1), (20, 1), (2, 0)])
def test_the_shares_of_the_bound_are_as_told(fixed: int, bonus: int) -> None:
    corner = Corner(Fraction(fixed), 2, bonus, 20)
    told = ", ".join(f"{float(share_reached(corner, e)[0]):.1%}" for e in ERRORS)
    assert f"T0 = {fixed}c: {told}" in L39.because


def test_how_far_survivals_can_be_apart_is_reached_by_certain_beliefs() -> None:
    e = Fraction(1, 3)
    apart = [1 - s for s in survival((1 - e,) * 5)]
    assert list(grown(e, 5)) == apart


@given(
    fixed=st.builds(Fraction, st.integers(1, 12), st.just(12)),
    depth=st.integers(1, 4),
    p=conditionals(longest=4, shortest=4),
    q=conditionals(longest=4, shortest=4),
)
def test_nothing_is_lost_where_no_length_beats_none(
    fixed: Fraction, depth: int, p: tuple[Fraction, ...], q: tuple[Fraction, ...]
) -> None:
    """Bonus, T0 <= c: D depth / (c (1 + depth)) at most where T0 = c, and nothing where it is less."""
    case = Believed(p[:depth], q[:depth], affine(fixed, Fraction(1), depth), 1)
    apart = max(abs(a - b) for a, b in zip(survival(case.p), survival(case.q), strict=True))
    most = apart * depth / (1 + depth) if fixed == 1 else 0
    assert acted_on(case)[0] <= most


def most_lost(margin: Margin) -> float:
    """The greatest regret over all survivals within D: a linear program for each x best and y submitted."""
    depth, gap = margin.depth, float(margin.apart)
    weights = np.array([[(j < d) / float(t) for j in range(depth)] for d, t in enumerate(margin.cost())])
    alone = np.array([margin.bonus / float(t) for t in margin.cost()])
    none, never_rises = np.zeros((depth - 1, depth)), np.eye(depth)[1:] - np.eye(depth)[:-1]
    each = np.eye(depth)
    within = np.block([[each, -each], [-each, each], [never_rises, none], [none, never_rises]])
    bounds = np.concatenate([np.full(2 * depth, gap), np.zeros(2 * (depth - 1))])
    most = 0.0
    for x, y in permutations(range(depth + 1), 2):
        tied = np.hstack([np.zeros_like(weights), weights - weights[y]])  # y is best if the beliefs are true
        found = linprog(
            np.concatenate([weights[y] - weights[x], np.zeros(depth)]),
            A_ub=np.vstack([within, tied]),
            b_ub=np.concatenate([bounds, alone[y] - alone]),
            bounds=(0, 1),
        )
        if found.status == 0:
            most = max(most, alone[x] - alone[y] - found.fun)
    return most


@pytest.mark.parametrize("fixed", ["1/2", "1", "2"])
@pytest.mark.parametrize(("depth", "bonus"), [(2, 1), (4, 1), (2, 0), (4, 0)])
def test_no_beliefs_lose_more_than_the_pair(fixed: str, depth: int, bonus: int) -> None:
    t0 = Fraction(fixed)
    margin = Margin(t0, depth, bonus, room(t0, bonus) / 2)
    lost, most = acted_on(worst_pair(margin))[0], bound(margin.cost(), (margin.apart,) * depth)[0]
    assert most_lost(margin) == pytest.approx(float(lost), abs=1e-9)
    assert (lost == most) == reachable(margin)


@pytest.mark.parametrize(("depth", "share"), [(3, Fraction(1)), (4, Fraction(8, 9)), (6, Fraction(4, 5))])
def test_what_share_of_the_bound_a_tie_of_all_lengths_reaches(depth: int, share: Fraction) -> None:
    margin = Margin(Fraction(1), depth, 1, Fraction(1, 10))
    most = bound(margin.cost(), (margin.apart,) * depth)[0]
    assert acted_on(worst_pair(margin))[0] == share * most
