"""Exact formulas of block lengths, against numbers worked out elsewhere and the code that simulates."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from simspec.claims.base import Against
from simspec.claims.lengths.adjustments import L4, L21
from simspec.claims.lengths.blocks import Block, Endless, all_convex, all_lines, blocks, has_values, lines
from simspec.claims.lengths.conditions import (
    PRINTED,
    REPAIRED,
    REPAIRED_TIES,
    later_sum,
    looked_for,
    printed,
    printed_sum,
)
from simspec.claims.lengths.endless import FAR_FIRST, NEAR_FIRST, TAILS, Unbounded, adjusted
from simspec.claims.lengths.measured_peak import L20
from simspec.claims.lengths.one_factor import L12
from simspec.claims.lengths.repaired_bounds import L5
from simspec.claims.lengths.stopping import L13_FREE
from simspec.claims.lengths.unbounded import L6_LIMIT
from simspec.speculation import lengths as simulated
from simspec.strategies.costs import Curve, affine, convex_costs, rising_costs, tying_costs, vllm_curve
from simspec.strategies.survivals import Conditional, conditionals, tokens_by_outcome
from simspec.theory.acceptance import emitted_tokens
from simspec.theory.lengths import (
    best_lengths,
    conditional_gain,
    envelope_corners,
    eps_printed,
    eps_repaired,
    expected_tokens,
    first_stop,
    is_unimodal,
    marginal_gain,
    speedups,
    survivals,
)
from simspec.theory.libraspec import theorem_limit

FALLING = tuple(Fraction(n, 100) for n in (95, 80, 80, 80, 75, 65, 45, 35, 25, 20, 20, 15))


def of(*values: int | str) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, values))


def floats(values: tuple[Fraction, ...]) -> np.ndarray:
    return np.array([[float(v) for v in values]])


# Expected tokens and speedup.


@given(conditionals(), st.integers(0, 1))
def test_expected_tokens_are_the_mean_of_the_process(p: Conditional, bonus: int) -> None:
    assert expected_tokens(p, bonus=bool(bonus)) == tokens_by_outcome(p, bonus)


@given(conditionals(longest=20))
def test_the_simulator_expects_as_many_tokens(p: Conditional) -> None:
    found = simulated.expected_tokens(floats(p))[0]
    assert found == pytest.approx([float(n) for n in expected_tokens(p)], rel=1e-12)


@pytest.mark.parametrize("alpha", ["0", "1/2", "9/10", "1"])
def test_at_one_rate_it_is_the_geometric_sum(alpha: str) -> None:
    found = expected_tokens((Fraction(alpha),) * 9)
    wanted = emitted_tokens(float(Fraction(alpha)), np.arange(10))
    assert [float(n) for n in found] == pytest.approx(wanted.tolist(), rel=1e-12)


@given(conditionals(longest=8), st.booleans())
def test_floats_give_floats_and_fractions_fractions(p: Conditional, bonus: bool) -> None:
    cost = tuple(5 + Fraction(d, 3) for d in range(len(p) + 1))
    exact = speedups(p, cost, bonus=bonus)
    rough = speedups([float(x) for x in p], [float(t) for t in cost], bonus=bonus)
    assert all(type(rate) is Fraction for rate in exact)
    assert all(type(rate) is float for rate in rough)
    assert list(rough) == pytest.approx([float(rate) for rate in exact], rel=1e-12)


def test_speedups_by_hand_and_their_refusals() -> None:
    """p = 1/2, 1/2: 1, 1.5, 1.75 tokens in 2, 3, 4; times 2, a plain token's time."""
    p, cost = of("1/2", "1/2"), of(2, 3, 4)
    assert speedups(p, cost) == of("1/2", "1/2", "7/16")
    assert speedups(p, cost, plain=2) == of(1, 1, "7/8")
    assert speedups(p, of(0, 3, 4), bonus=False, shortest=1) == of("1/6", "3/16")
    with pytest.raises(ValueError, match="times above 0"):
        speedups(p, of(0, 3, 4))
    with pytest.raises(ValueError, match="need 3 times"):
        speedups(p, of(1, 2))
    with pytest.raises(ValueError, match="at least one place"):
        expected_tokens(())


@given(conditionals(longest=8), st.data())
def test_the_two_gains_differ_by_the_reach(p: Conditional, data: st.DataObject) -> None:
    i = data.draw(st.integers(1, len(p)))
    longer = data.draw(st.integers(i, len(p) + 3))
    reach = survivals(p)[i - 2] if i > 1 else Fraction(1)
    assert marginal_gain(p, i - 1, longer) == reach * conditional_gain(p, i, longer)


# Where rules stop.


@st.composite
def _priced(draw: st.DrawFn) -> tuple[Conditional, Curve]:
    p = draw(conditionals(longest=10))
    return p, draw(st.one_of(convex_costs(len(p)), rising_costs(len(p)), tying_costs(p, 1)))


@given(_priced())
def test_the_simulated_rule_stops_where_the_exact_one_does(case: tuple[Conditional, Curve]) -> None:
    """Unless two neighbours are so near to a tie that floats may take them for one, or not."""
    p, cost = case
    rates = speedups(p, cost) if cost[0] > 0 else ()
    assume(rates and all(abs(b - a) > Fraction(1, 10**12) * a for a, b in pairwise(rates)))
    view = simulated.View(floats(p), np.array([len(p)]), floats(cost))
    decided = simulated.ExactMarginal(24).decide(view, np.zeros(1))
    assert decided.submitted[0] == first_stop(rates)


@given(st.lists(st.integers(0, 4).map(Fraction), min_size=1, max_size=7))
def test_shape_helpers_are_their_definitions(values: list[Fraction]) -> None:
    valleys = [v for v in combinations(values, 3) if v[0] > v[1] < v[2]]
    assert is_unimodal(values) == (not valleys)
    assert list(best_lengths(values)) == [
        d for d in range(len(values)) if all(v <= values[d] for v in values)
    ]
    stop = first_stop(values)
    assert all(values[d] < values[d + 1] for d in range(stop))
    assert stop == len(values) - 1 or values[stop + 1] <= values[stop]


@given(st.lists(st.integers(0, 12).map(Fraction), min_size=2, max_size=8))
def test_corners_are_what_lies_below_every_chord(cost: list[Fraction]) -> None:
    corners = envelope_corners(cost)
    last = len(cost) - 1
    for d in range(1, last):
        chords = [
            cost[a] + (cost[b] - cost[a]) * (d - a) / (b - a)
            for a in range(d)
            for b in range(d + 1, last + 1)
        ]
        assert (d in corners) == all(cost[d] < chord for chord in chords)
    assert corners[0] == 0
    assert corners[-1] == last


def test_the_published_table_with_published_acceptance() -> None:
    """vLLM's manager takes three drafts at batch 1, 16 and 32 for these rates of acceptance by place."""
    told = of("0.68", "0.39", "0.20", "0.10", "0.06")
    p = (told[0], *(b / a for a, b in pairwise(told)))
    assert survivals(p) == told
    for batch in (1, 16, 32):
        assert best_lengths(speedups(p, vllm_curve(batch, 5))) == (3,)


# LibraSpec's bounds.


@given(lines(longest=6), st.data())
def test_the_printed_bound_is_its_formula(block: Block, data: st.DataObject) -> None:
    """eps_i = max{d' : d' < T_i / (tau_i c) E[tau_{i:d'}] + i}: tried d' by d', and as other code has it."""
    assume(block.bonus or block.p[0] > 0)
    i = data.draw(st.integers(1, len(block.p)))
    slope = block.cost[1] - block.cost[0]
    alpha = block.cost[i] / (tokens_by_outcome(block.p, block.bonus)[i] * slope)
    assume(alpha < 60)
    end = i + int(60 * len(block.p)) + 1  # d' - i < alpha D
    allowed = [d for d in range(i, end) if d < alpha * conditional_gain(block.p, i, d) + i]
    assert printed(block, i) == max(allowed, default=i - 1) == theorem_limit(block.p, alpha, i)


@given(lines(longest=6), st.data(), st.booleans())
def test_the_repaired_bound_is_the_last_length_as_fast(block: Block, data: st.DataObject, ties: bool) -> None:
    assume(block.bonus or block.p[0] > 0)
    i = data.draw(st.integers(1, len(block.p)))
    tokens = tokens_by_outcome(block.p, block.bonus)
    cost = [block.cost[0] + d * (block.cost[1] - block.cost[0]) for d in range(200)]
    rates = [tokens[min(d, len(block.p))] / t for d, t in enumerate(cost) if d >= i]
    assume(rates[-1] < rates[0])
    wanted = max(
        d for d, rate in enumerate(rates) if rate > rates[0] or (d == 0) or (ties and rate == rates[0])
    )
    found = eps_repaired(block.p, i, lambda d: cost[d], bonus=bool(block.bonus), ties=ties, limit=199)
    assert found == i + wanted


def test_bounds_refuse_what_has_no_value() -> None:
    p = of("1/2", 0)
    with pytest.raises(ValueError, match="no token is expected of 1 places"):
        eps_printed(of(0, 1), 1, lambda d: Fraction(1 + d), bonus=False)
    with pytest.raises(ValueError, match="does not rise"):
        eps_printed(p, 1, lambda d: Fraction(3))
    with pytest.raises(ValueError, match="does not rise"):
        eps_repaired(p, 1, lambda d: Fraction(3))
    assert eps_printed(p, 1, lambda d: Fraction(3), limit=7) == 7
    assert eps_repaired(p, 1, lambda d: Fraction(3), limit=7) == 7
    assert eps_printed(p, 2, lambda d: Fraction(3 + d)) == 1  # p_2 = 0: not even place 2 itself


def test_the_smallest_harmful_extension() -> None:
    """p = 1/4, 1/4, T = d, no bonus: from 1 draft to 2, from 1/4 to 5/32."""
    block = L4.pinned
    assert printed(block, 1) == 2
    assert block.speedups() == of("1/4", "5/32")


def test_the_larger_harmful_extension() -> None:
    """T = 12 + d with the bonus: .194 at 2; min eps is 16, or 12 where no more places are given."""
    block = Block(FALLING, affine(Fraction(12), Fraction(1), 12), 1)
    rates = block.speedups()
    assert (printed(block, 1), printed(block, 2)) == (24, 16)
    assert (round(float(rates[2]), 3), round(float(rates[12]), 3)) == (0.194, 0.190)
    assert round(float(expected_tokens(FALLING)[12] / 28), 3) == 0.163
    assert best_lengths(rates) == (5,)


def test_with_only_the_start_repaired_some_extensions_pay() -> None:
    """Of blocks of up to three places, chances in thirds, T0 = 0..2: about one extension in six (L27)."""
    extended = raised = 0
    for block in all_lines(0):
        if block.bonus == 0 and block.p[0] == 0:
            continue
        tokens = tokens_by_outcome(block.p, block.bonus)
        size, fixed, bounds = len(block.p), block.cost[0], []
        for d in range(1, size + 1):
            rate = tokens[d] / (fixed + d)
            gains = [conditional_gain(block.p, d + 1, e) for e in range(d, size + 1)]
            allowed = [e for e in range(d, 60) if e - d < gains[min(e, size) - d] / rate]
            bounds.append(max(allowed, default=d))
            e = min(bounds)
            extended += e > d
            raised += e > d and tokens[min(e, size)] / (fixed + e) > rate
    assert 0.1 < raised / extended < 0.25


def test_what_algorithm_one_takes_to_be_constant() -> None:
    """T0 = 12, c = 1, p = 9/10, no bonus: 14.4, 8.2, 6.2, down to 3.72 and up to 4.4 at 25 drafts."""
    tokens = expected_tokens((Fraction(9, 10),) * 25, bonus=False)
    factor = [float((12 + d) / tokens[d]) for d in range(1, 26)]
    assert [round(f, 1) for f in factor[:3]] == [14.4, 8.2, 6.2]
    assert round(min(factor), 2) == 3.72
    assert round(factor[-1], 1) == 4.4
    least = factor.index(min(factor))
    assert all(a > b for a, b in pairwise(factor[: least + 1]))
    assert all(a < b for a, b in pairwise(factor[least:]))
    outcome = L12.statement.rule(L12.pinned)
    assert isinstance(outcome, Against)
    assert outcome.working[-1].endswith("2, 3/2 = 1.5, 2")


def test_not_drafting_hides_the_best_length() -> None:
    """.9, C = 1, V = 1 + .05 n: one draft .93, plain decoding 1, ten drafts 2.74."""
    p = (Fraction(9, 10),) * 10
    cost = (Fraction(1), *(2 + Fraction(n, 20) for n in range(1, 11)))
    rates = speedups(p, cost)
    assert [round(float(rates[n]), 2) for n in (1, 0, 10)] == [0.93, 1, 2.74]
    assert first_stop(rates) == 0
    assert L13_FREE.statement.rule(Block(p, cost, 1)) is not None


def test_two_peaks_on_the_published_table() -> None:
    """1/7.64, (7/6)/8.97, (307/216)/10.78; 2 drafts were not timed. 307/216 = 1 + 1/6 + 5/36 + 25/216."""
    rates = [round(float(rate), 5) for rate in L20.pinned.speedups()]
    assert [rates[0], rates[1], rates[3]] == [0.13089, 0.13006, 0.13185]


def test_an_extension_that_pays_under_a_convex_cost() -> None:
    """1, 2, 3, 3 tokens in 1, 1, 1, 2: eps_1 = 2, so 1 draft (2) becomes 2 (3)."""
    assert printed(L21.pinned, 1) == 2
    assert L21.pinned.speedups() == of(1, 2, 3, "3/2")


def test_the_cut_to_plain_decoding_that_only_condition_0_tells() -> None:
    """p = 1/6, 11/12, T = 3 + d, bonus: 1/3, (7/6)/4, (7/6 + 11/72)/5. eps_1 = 1, but eps_0 = 0."""
    block = Block(of("1/6", "11/12"), of(3, 4, 5), 1)
    assert block.speedups() == of("1/3", "7/24", "19/72")
    numbers = Endless(block)
    assert [REPAIRED_TIES.eps(numbers, i) for i in range(3)] == [0, 1, 2]
    assert L5.statement.rule(block) is None


def test_a_bound_far_past_the_last_place() -> None:
    """Three sure drafts, T = 10 + d, no bonus: 1/11 at 1, 3/(10 + d) from 3 on, more until d = 22."""
    block = Block(of(1, 1, 1), of(10, 11, 12, 13), 0)
    numbers = Endless(block)
    assert REPAIRED.eps(numbers, 1) == 22
    assert numbers.speedup(22) > numbers.speedup(1) == numbers.speedup(23)
    assert REPAIRED_TIES.eps(numbers, 1) == 23


def test_equal_speedups_with_the_bonus() -> None:
    """p = 1/2, 3/4, T = 3 + d: 3/2 in 4, 15/8 in 5. The factor of Algorithm 1 is constant there."""
    block = Block(of("1/2", "3/4"), of(3, 4, 5), 1)
    assert block.speedups()[1:] == of("3/8", "3/8")
    assert L12.statement.rule(block) is None


@given(st.one_of(lines(longest=5), blocks(convex_costs, longest=5)), st.data())
def test_bounds_found_by_looking_are_those_of_the_formulas(block: Block, data: st.DataObject) -> None:
    assume(has_values(block))
    numbers, i = Endless(block), data.draw(st.integers(1, len(block.p)))
    assert looked_for(printed_sum, least=-1).eps(numbers, i) == PRINTED.eps(numbers, i)
    assert looked_for(marginal_gain, least=0).eps(numbers, i) == REPAIRED.eps(numbers, i)
    assert looked_for(marginal_gain, least=0, ties=True).eps(numbers, i) == REPAIRED_TIES.eps(numbers, i)


def test_a_bound_with_a_flat_beginning() -> None:
    """T = 1, 1, 1, 2 and p_2 = 0: d' = 2 gains nothing and costs nothing, so eps_2 = 1 with '<'."""
    block = Block(of(1, 0, 1), of(1, 1, 1, 2), 1)
    assert printed(block, 2) == 1
    assert (
        looked_for(later_sum, least=0).eps(Endless(block), 2) == 2
    )  # p_3 = 1: as much as it costs, not more


def test_costs_that_are_flat_to_the_end_are_looked_at() -> None:
    """Past the end such a cost is read as rising by 1 a draft: three sure drafts, T = 2, 2, 2, 2, 3, .."""
    block = Block(of(1, 1, 1), of(2, 2, 2, 2), 1)
    numbers = Endless(block)
    assert [numbers.cost(d) for d in (3, 4, 6)] == [2, 3, 5]
    assert REPAIRED.eps(numbers, 2) == 3  # 3/2 at 2, 4/2 at 3, 4/3 at 4
    flat = [b for b in all_convex(1) if b.cost[0] == b.cost[-1]]
    assert flat
    assert all(L5.statement.rule(b) is None for b in flat if has_values(b))


# Blocks without an end.


@pytest.mark.parametrize("name", sorted(TAILS))
def test_survival_past_the_lead_is_what_its_name_says(name: str) -> None:
    """Excess and limit against sums of a thousand terms, chances against 0 and 1."""
    tail = TAILS[name]
    values = [tail.after(j) for j in range(1001)]
    assert values[0] == 1
    assert all(0 <= b <= a for a, b in pairwise(values))
    assert abs(values[-1] - tail.limit) < Fraction(1, 500)
    assert tail.reached == (values[-1] == tail.limit)
    over = sum(float(value - tail.limit) for value in values[1:])
    # The harmonic ones grow like ln 1000 = 6.9, or half of that.
    assert over > 3 if tail.excess is None else over == pytest.approx(float(tail.excess))
    if tail.summed is not None:
        assert all(tail.summed(n) == sum(values[1 : n + 1], Fraction(0)) for n in (0, 1, 2, 7))


def test_adjusting_without_a_bound() -> None:
    """Sure drafts: d/(1 + d) rises for ever; with the bonus and T = 1 + d every length has 1, at once."""
    habits = (FAR_FIRST, NEAR_FIRST)
    path = adjusted(L6_LIMIT.pinned, 1, habits)
    assert path[:4] == (1, 2, 4, 5)
    assert path[-1] > 4096
    assert adjusted(Unbounded((), "1", Fraction(1), 1), 1, habits) == (1,)
    # Halves: 1, 1.5, 1.75 tokens in 3, 4, 5: from 1 draft at .375 nothing is gained.
    assert adjusted(Unbounded((), "(1/2)^j", Fraction(3), 1), 1, habits) == (1,)
    assert Unbounded(of("1/2"), "(3/4)^j", Fraction(2), 1).tokens(3) == 1 + Fraction(1, 2) * (
        1 + Fraction(21, 16)
    )


@pytest.mark.parametrize("name", sorted(TAILS))
@pytest.mark.parametrize("fixed", [0, 1, 3])
def test_best_without_a_bound_is_best_as_far_as_one_looks(name: str, fixed: int) -> None:
    case = Unbounded(of("1/2"), name, Fraction(fixed), 0)
    rates = [case.speedup(d) for d in range(1, 400)]
    for d in (1, 2, 5, 20):
        assert case.is_best(d) <= (rates[d - 1] == max(rates))
    if case.limit == 0:
        assert case.is_best(1 + rates.index(max(rates)))


def test_survival_that_falls_slowly_to_a_half_always_has_a_best_length() -> None:
    """S_j = (1 + 1/(j + 1))/2: its excess over 1/2 has no bound, so some length is above 1/2 at any T0."""
    for fixed in (1, 2, 3):
        case = Unbounded((), "(1 + 1/(j + 1))/2", Fraction(fixed), 0)
        end = adjusted(case, 1, (FAR_FIRST, NEAR_FIRST))[-1]
        assert case.speedup(end) > Fraction(1, 2)
        assert case.is_best(end)
