"""Survival and cost strategies: they give what they say, and do reach the awkward cases."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from simspec.strategies.costs import (
    GRAPH_SIZES,
    VLLM_DRAFTED,
    VLLM_STEP_MS,
    Curve,
    affine,
    affine_costs,
    all_affine_costs,
    all_curves,
    concave_costs,
    convex_costs,
    is_concave,
    is_convex,
    measured_costs,
    padded,
    padded_costs,
    rising_costs,
    staircase,
    staircase_costs,
    tying_costs,
    vllm_curve,
)
from simspec.strategies.survivals import (
    all_conditionals,
    chances,
    conditionals,
    expected_accepted,
    grid,
    inner_chances,
    outcomes,
    survival,
    tokens_by_outcome,
)

ONE = Fraction(1)


def drawn(strategy: st.SearchStrategy[Any], count: int = 200) -> list[Any]:
    """That many draws, the same in every run."""
    found: list[Any] = []

    @seed(1)
    @settings(max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


def share(values: list[Any], holds: Callable[[Any], bool]) -> float:
    return sum(map(holds, values)) / len(values)


def exact(*values: int | str) -> Curve:
    return tuple(map(Fraction, values))


def rises(curve: Curve) -> list[Fraction]:
    return [b - a for a, b in pairwise(curve)]


# Survivals.


def test_chances_reach_both_ends_and_the_inner_ones_neither() -> None:
    told = drawn(chances())
    assert all(0 <= p <= 1 for p in told)
    assert {Fraction(0), ONE} <= set(told)
    assert len(set(told)) > 30
    inner = drawn(inner_chances())
    assert all(0 < p < 1 for p in inner)
    assert len(set(inner)) > 20


@cache
def many_conditionals() -> list[Any]:
    return drawn(conditionals(), 400)


@pytest.mark.parametrize(
    "holds",
    [
        lambda p: len(p) > 2 and len(set(p)) == 1,
        lambda p: len(set(p)) > 2 and list(p) == sorted(p),
        lambda p: len(set(p)) > 2 and list(p) == sorted(p, reverse=True),
        lambda p: len(set(p)) > 2 and list(p) not in (sorted(p), sorted(p, reverse=True)),
        lambda p: 0 in p[1:-1],
        lambda p: p[0] == 0,
        lambda p: p[0] == 1 and p[-1] < 1,
        lambda p: len(p) > 2 and p[0] < 1 and p[-1] == p[-2] == 1,
        lambda p: len(p) == 1,
        lambda p: len(p) == 12,
    ],
    ids=[
        "constant",
        "rising",
        "falling",
        "neither",
        "a zero inside",
        "never",
        "sure at first",
        "sure end",
        "1",
        "12",
    ],
)
def test_conditionals_cover(holds: Callable[[Any], bool]) -> None:
    assert share(many_conditionals(), holds) >= 0.015


def test_conditionals_keep_their_bounds() -> None:
    told = drawn(conditionals(shortest=2, longest=5))
    assert {len(p) for p in told} == {2, 3, 4, 5}
    assert all(0 <= one <= 1 for p in told for one in p)


def test_positive_conditionals_have_no_zero() -> None:
    told = drawn(conditionals(positive=True))
    assert all(one > 0 for p in told for one in p)
    assert share(told, lambda p: max(p) < 1) > 0.5


def test_all_conditionals_are_all_once_and_short_ones_first() -> None:
    told = list(all_conditionals(3, grid(2)))
    assert len(told) == len(set(told)) == 3 + 9 + 27
    assert [len(p) for p in told] == sorted(len(p) for p in told)


def test_grid() -> None:
    assert grid(4) == exact(0, "1/4", "1/2", "3/4", 1)
    assert grid(2, zero=False) == exact("1/2", 1)
    assert grid(2, one=False) == exact(0, "1/2")


@given(conditionals(longest=6))
def test_outcomes_are_all_ways_of_independent_coins(p: tuple[Fraction, ...]) -> None:
    """Toss every place, needed or not, and count those before the first refusal: 2^D ways."""
    told = dict.fromkeys(range(len(p) + 1), Fraction(0))
    for tosses in product((True, False), repeat=len(p)):
        probability = ONE
        for heads, chance in zip(tosses, p, strict=True):
            probability *= chance if heads else 1 - chance
        told[(*tosses, False).index(False)] += probability
    assert dict(outcomes(p)) == told
    assert sum(told.values()) == 1


@given(conditionals(longest=8), st.integers(0, 1))
def test_tokens_by_outcome_average_the_outcomes_of_each_length(p: tuple[Fraction, ...], bonus: int) -> None:
    wanted = [sum(chance * (k + bonus) for k, chance in outcomes(p[:d])) for d in range(len(p) + 1)]
    assert list(tokens_by_outcome(p, bonus)) == wanted


@given(conditionals(longest=8))
def test_expected_accepted_is_the_mean_of_the_process(p: tuple[Fraction, ...]) -> None:
    assert expected_accepted(p) == tokens_by_outcome(p, 0)
    assert list(survival(p)) == rises(expected_accepted(p))


# Costs.

DEPTHS = st.integers(1, 12)


@given(DEPTHS.flatmap(lambda d: st.tuples(st.just(d), rising_costs(d))))
def test_costs_have_their_length_are_positive_and_never_fall(case: tuple[int, Curve]) -> None:
    depth, curve = case
    assert len(curve) == depth + 1
    assert min(curve) > 0
    assert min(rises(curve)) >= 0
    assert all(isinstance(t, Fraction) for t in curve)


@given(DEPTHS.flatmap(affine_costs))
def test_affine_costs_are_straight_and_rise(curve: Curve) -> None:
    assert is_convex(curve)
    assert is_concave(curve)
    assert curve[1] > curve[0] > 0


@given(DEPTHS.flatmap(lambda d: affine_costs(d, free_start=True)))
def test_affine_costs_through_the_origin(curve: Curve) -> None:
    assert curve[0] == 0
    assert all(t == d * curve[1] for d, t in enumerate(curve))


@given(DEPTHS.flatmap(convex_costs))
def test_convex_costs_are_convex(curve: Curve) -> None:
    assert is_convex(curve)


@given(DEPTHS.flatmap(concave_costs))
def test_concave_costs_are_concave(curve: Curve) -> None:
    assert is_concave(curve)


def test_convex_costs_cover_flat_beginnings_and_real_bends() -> None:
    told = drawn(convex_costs(6))
    assert share(told, lambda c: rises(c)[0] == 0 < rises(c)[-1]) > 0.2
    assert share(told, lambda c: rises(c)[0] > 0) > 0.2
    assert share(told, lambda c: not is_concave(c)) > 0.5
    assert share(told, lambda c: all(r == 0 for r in rises(c))) > 0


def test_concave_costs_cover_real_bends() -> None:
    assert share(drawn(concave_costs(6)), lambda c: not is_convex(c)) > 0.5


@given(st.integers(2, 12).flatmap(staircase_costs))
def test_staircases_step_by_one_height_at_even_distances(curve: Curve) -> None:
    heights = {r for r in rises(curve) if r > 0}
    assert len(heights) == 1
    steps = [d for d, r in enumerate(rises(curve), 1) if r > 0]
    assert 2 <= steps[0] <= 8
    assert steps == list(range(steps[0], len(curve), steps[0]))


def test_staircases_cover_every_tread() -> None:
    told = drawn(staircase_costs(12), 300)
    first = [next(d for d, r in enumerate(rises(c), 1) if r > 0) for c in told]
    assert set(first) == set(range(2, 9))


def test_a_staircase_by_hand() -> None:
    """1 + 1 drafts fill a tread of 2: T(0) = T(1) = 5 + 3, T(2) = T(3) = 5 + 6."""
    assert staircase(Fraction(5), Fraction(3), 2, 4) == exact(8, 8, 11, 11, 14)


def test_padding_by_hand() -> None:
    """1, 2, 3, 4, 5 tokens in sizes 1, 2, 4, 8: 1, 2, 4, 4, 8, each 3 and 5 besides."""
    assert padded(Fraction(5), Fraction(3), GRAPH_SIZES, 4) == exact(8, 11, 17, 17, 29)
    with pytest.raises(ValueError, match="33 tokens do not fit into 32"):
        padded(Fraction(5), Fraction(3), GRAPH_SIZES, 32)
    assert len(padded(Fraction(5), Fraction(3), GRAPH_SIZES, 31)) == 32


@given(st.integers(1, 40).flatmap(padded_costs))
def test_padded_costs_take_so_much_a_token_of_their_sizes(curve: Curve) -> None:
    """Where a size is full time is on one straight line, and between two it stays."""
    assert min(curve) > 0
    assert min(rises(curve)) >= 0
    full = [d for d, step in enumerate(rises(curve)) if step > 0]
    slopes = {(curve[b] - curve[a]) / (b - a) for a, b in pairwise(full)}
    assert len(slopes) <= 1


def test_padded_costs_cover_16_graphs_and_irregular_sizes() -> None:
    told = [[d for d, step in enumerate(rises(c), 1) if step > 0] for c in drawn(padded_costs(24), 300)]
    assert [16] in told
    assert [1, 2, 4, 8, 16, 24] in told
    gaps = [{b - a for a, b in pairwise([0, *steps])} for steps in told]
    assert share(gaps, lambda g: len(g) > 2) > 0.2


def test_measured_costs_are_the_published_table() -> None:
    """0, 1, 3, 4, 5 and 7 drafts were timed; 2 and 6 lie half-way between their neighbours."""
    told = drawn(measured_costs(7), 60)
    assert {tuple(curve[d] for d in VLLM_DRAFTED) for curve in told} == {
        tuple(map(Fraction, row)) for row in VLLM_STEP_MS.values()
    }
    assert not any(is_convex(c) or is_concave(c) for c in told)
    assert vllm_curve(1, 9)[5:] == exact("10.8", "11.545", "12.29", "13.035", "13.78")
    assert vllm_curve(16, 3) == exact("7.3", "8.39", "9.17", "9.95")


def test_rising_costs_cover_every_kind() -> None:
    told = drawn(rising_costs(6), 300)
    measured = {vllm_curve(batch, 6) for batch in VLLM_STEP_MS}
    kinds: dict[str, Callable[[Curve], bool]] = {
        "affine": lambda c: is_convex(c) and is_concave(c) and c[1] > c[0],
        "convex": lambda c: is_convex(c) and not is_concave(c),
        "concave": lambda c: is_concave(c) and not is_convex(c),
        "staircase": lambda c: 0 in rises(c) and not is_convex(c) and not is_concave(c),
    }
    assert {kind: share(told, holds) > 0.04 for kind, holds in kinds.items()} == dict.fromkeys(kinds, True)
    assert measured <= set(told)  # three curves in all, and no draw is repeated


def _near(p: tuple[Fraction, ...], bonus: int, curve: Curve) -> Fraction | None:
    """The least relative difference of neighbouring speedups, where a draft can survive."""
    tokens = tokens_by_outcome(p, bonus)
    rates = [n / t for n, t in zip(tokens, curve, strict=True) if t > 0]
    gaps = [abs(a - b) / max(a, b) for a, b in pairwise(rates) if max(a, b) > 0]
    return min(gaps, default=None)


@st.composite
def _tied(draw: st.DrawFn) -> tuple[tuple[Fraction, ...], int, Curve]:
    p, bonus = draw(conditionals(longest=6)), draw(st.integers(0, 1))
    return p, bonus, draw(tying_costs(p, bonus))


@given(_tied())
def test_tying_costs_are_affine_and_tie_or_nearly_so(case: tuple[tuple[Fraction, ...], int, Curve]) -> None:
    p, bonus, curve = case
    assert is_convex(curve)
    assert is_concave(curve)
    assert curve[0] >= 0
    assert curve[1] > curve[0]
    gap = _near(p, bonus, curve)
    assert gap is None or p[0] == 0 or gap <= Fraction(2, 10**6) or curve[0] <= Fraction(1, 10**6)


def test_tying_costs_cover_ties_and_near_ties() -> None:
    gaps = [gap for case in drawn(_tied(), 300) if (gap := _near(*case)) is not None]
    assert share(gaps, lambda gap: gap == 0) > 0.15
    assert share(gaps, lambda gap: 0 < gap < Fraction(1, 10**5)) > 0.3


def test_enumerated_costs_are_all_once() -> None:
    assert list(all_affine_costs(2, 2)) == [exact(1, 2, 3), exact(2, 3, 4)]
    assert list(all_affine_costs(2, 2, free_start=True)) == [exact(0, 1, 2)]
    curves = list(all_curves(2, 2))
    assert len(curves) == len(set(curves)) == 2 * 3 * 3
    assert all(min(c) > 0 and min(rises(c)) >= 0 for c in curves)


def test_shape_tests_by_hand() -> None:
    bent, hollow, wavy = exact(1, 1, 2, 4), exact(1, 3, 4, 4), exact(1, 2, 2, 3)
    assert [is_convex(c) for c in (bent, hollow, wavy)] == [True, False, False]
    assert [is_concave(c) for c in (bent, hollow, wavy)] == [False, True, False]
    assert is_convex(affine(ONE, ONE, 4))
    assert is_concave(affine(ONE, ONE, 4))
