"""Algorithm 1 of LibraSpec (arXiv 2608.08721): exact code, simulator and published settings agree."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simspec.claims.lengths.families import Family, regret, spread
from simspec.claims.lengths.one_pass import Pass, passes
from simspec.claims.lengths.runs import Start, starts
from simspec.claims.lengths.tuned import L8
from simspec.claims.lengths.tuned_cases import Tuned
from simspec.speculation.lengths import LibraSpec, View
from simspec.strategies.survivals import conditionals
from simspec.theory.lengths import conditional_gain, eps_printed
from simspec.theory.libraspec import (
    algorithm_one,
    extends,
    last_extension,
    pass_limits,
    theorem_limit,
)

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


@given(case=passes())
def test_a_pass_goes_on_where_it_is_said_to(case: Pass) -> None:
    q, alpha, d = case.q, case.alpha, case.d
    assert extends(q, alpha, d) == (min(pass_limits(q, alpha, d)) > d)
    assert [extends(q, alpha, n) for n in range(1, len(q) + 3)] == [
        n <= last_extension(q, alpha) for n in range(1, len(q) + 3)
    ]


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
