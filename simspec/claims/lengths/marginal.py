"""Marginal gain against marginal cost, and the factors made of them (L1, L12, L18).

p_k = probability that draft k is accepted given that those before it were; S_j = p_1 .. p_j; tau_d =
expected tokens of a cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Plot, Statement, against
from simspec.claims.lengths.blocks import (
    OVER_BLOCKS,
    OVER_LINES,
    OVER_ORIGIN,
    Block,
    all_blocks,
    all_lines,
    blocks,
    lines,
    listed,
    working,
)
from simspec.claims.plain import number, shown
from simspec.strategies.costs import (
    Curve,
    affine,
    rising_costs,
)
from simspec.strategies.survivals import Conditional, all_conditionals, conditionals, grid, tokens_by_outcome
from simspec.theory.lengths import (
    best_lengths,
    conditional_gain,
    marginal_gain,
)

# L1


def _criterion(gain: Callable[[Conditional, int, int], Fraction]) -> Callable[[Block], Outcome]:
    """Thm 3.2 for every pair of lengths, with the gain of places between them told by ``gain``."""

    def rule(block: Block) -> Outcome:
        tokens, cost = tokens_by_outcome(block.p, block.bonus), block.cost
        met = False
        for e in range(1, len(cost)):
            for d in range(e):
                extra = cost[e] - cost[d]
                if cost[d] <= 0 or cost[e] <= 0 or extra == 0:
                    continue
                met = True
                short, long = tokens[d] / cost[d], tokens[e] / cost[e]
                ratio = gain(block.p, d, e) / extra
                if (ratio > short) != (long > short) or (ratio < long) != (short > long):
                    return against(
                        *working(block),
                        f"lengths {d} and {e}: the places between gain {number(ratio)} a unit of time",
                        f"the speedups are {number(short)} and {number(long)}",
                    )
        return None if met else UNMET

    return rule


@st.composite
def _falling(draw: st.DrawFn, depth: int) -> Curve:
    """A cost with a step down in it: measured curves have them."""
    cost = list(draw(rising_costs(depth)))
    cut = draw(st.integers(0, depth))
    return tuple(cost[:cut] + [t / 2 for t in cost[cut:]])


L1_STATEMENT = Statement(
    words=(
        "Going from one block length to a longer one raises expected speedup exactly if the expected tokens "
        "that it adds, over the time that it adds, exceed the speedup there is; going back, if they fall "
        "short"
    ),
    formula=(
        "extend: (tau_e - tau_d)/(T_e - T_d) > tau_d/T_d <=> eta_e > eta_d; "
        "truncate: (tau_e - tau_d)/(T_e - T_d) < tau_e/T_e <=> eta_d > eta_e   (d < e)"
    ),
    rule=_criterion(marginal_gain),
    over=OVER_BLOCKS,
    domain=blocks(rising_costs),
    every=all_blocks,
    examples=150,
)
L1 = Claim(
    id="L1",
    source="LibraSpec (2608.08721) Thm 3.2",
    statement=L1_STATEMENT,
    expected="holds",
    because=(
        "eta_e = (tau_d + g)/(T_d + h) with gain g and h > 0 is the mean of tau_d/T_d and g/h with weights "
        "T_d and h: it lies strictly between them unless the two are equal. Needs T_d > 0 and h > 0, "
        "nothing else: any cost, with a bonus or without. Where a measured curve falls (h < 0) the "
        "inequality turns round."
    ),
    broken=(
        L1_STATEMENT.but(
            "The gain is that of places d+1..e given that the first d were accepted (Thm 3.3's products)",
            _criterion(lambda p, d, e: conditional_gain(p, d + 1, e)),
        ),
        L1_STATEMENT.but(
            "It holds for costs that fall somewhere, too",
            _criterion(marginal_gain),
            domain=blocks(_falling),
            every=lambda level: (Block(b.p, b.cost[::-1], b.bonus) for b in all_blocks(level)),
        ),
    ),
)

# L12


def _alphas(block: Block) -> tuple[Fraction, ...]:
    """T_i / (tau_i c), i = 1 .. D; empty where no token is expected."""
    tokens = tokens_by_outcome(block.p, block.bonus)
    slope = block.cost[1] - block.cost[0]
    return tuple(t / (n * slope) for n, t in zip(tokens[1:], block.cost[1:], strict=True) if n > 0)


def _constant(block: Block) -> Outcome:
    values = _alphas(block)
    if not values:
        return UNMET
    if len(set(values)) == 1:
        return None
    return against(*working(block), "T_i / (tau_i c) from 1 draft on: " + listed(values))


def _least_at_best(block: Block) -> Outcome:
    values = _alphas(block)
    if not values:
        return UNMET
    rates = block.speedups()[1 - block.shortest :]
    best = best_lengths(rates)
    falls = all(a > b for a, b in pairwise(values[: best[0] + 1]))
    rises = all(a < b for a, b in pairwise(values[best[-1] :]))
    if falls and rises and best == best_lengths([-value for value in values]):
        return None
    return against(*working(block), f"T_i / (tau_i c): {shown(values)}; best: {shown([d + 1 for d in best])}")


def _rises_throughout(block: Block) -> Outcome:
    values = _alphas(block)
    if all(a <= b for a, b in pairwise(values)):
        return None
    return against(*working(block), f"T_i / (tau_i c): {shown(values)}")


L12_STATEMENT = Statement(
    words="The factor T_i/(tau_i c), which Algorithm 1 takes to be one constant alpha, does not depend on i",
    formula="T_i/(tau_i c) = T_d/(tau_d c) for all i, d >= 1",
    rule=_constant,
    over=OVER_LINES,
    domain=lines(),
    every=all_lines,
    examples=250,
)
L12 = Claim(
    id="L12",
    source="LibraSpec (2608.08721) Thm 3.3 and Algorithm 1",
    statement=L12_STATEMENT,
    expected="refuted",
    because=(
        "It is 1/(c eta_i), so it is least where speedup is greatest: by L2 it falls until the best length "
        "and rises after it. With T0 = 12, c = 1, p = 9/10 and no bonus it goes 14.4, 8.2, 6.2 .. 3.72 .. "
        "4.4. It is constant only where speedup is: without the bonus for p_2 = c/(T0 + c) and sure places "
        "after that."
    ),
    first_look=(
        "'It grows throughout only when T0 = 0' is too narrow: T0 = 0 makes it grow (or stay) for every p, "
        "but with a fixed cost it grows throughout whenever one draft is the best length, as for p = (1/2, "
        "1/4), T0 = c = 1 (4, then 24/5)."
    ),
    pinned=Block((Fraction(1), Fraction(1), Fraction(0)), affine(Fraction(1), Fraction(1), 3), 0),
    repaired=L12_STATEMENT.but(
        "It falls up to the best length and rises from there on",
        _least_at_best,
        formula="T_i/(tau_i c) = 1/(c eta_i)",
    ),
    broken=(L12_STATEMENT.but("It rises (or stays) throughout", _rises_throughout),),
    plot=lambda block: Plot(
        "What Algorithm 1 takes to be constant",
        "line",
        "i",
        "T_i / (tau_i c)",
        tuple(range(1, len(block.p) + 1)),
        {"T_i / (tau_i c)": tuple(map(float, _alphas(block)))},
    ),
)

# L18


def _prefix_means(
    means: Callable[[Conditional], list[Fraction]], strict: bool
) -> Callable[[Conditional], Outcome]:
    def rule(p: Conditional) -> Outcome:
        values = means(p)
        fine = all(b < a if strict else b <= a for a, b in pairwise(values))
        return None if fine else against(f"p = {shown(p)}", f"means: {shown(values)}")

    return rule


def _mean_tokens(p: Conditional) -> list[Fraction]:
    tokens = tokens_by_outcome(p, 0)
    return [tokens[d] / d for d in range(1, len(tokens))]


def _mean_chance(p: Conditional) -> list[Fraction]:
    return [sum(p[:d], Fraction(0)) / d for d in range(1, len(p) + 1)]


L18_STATEMENT = Statement(
    words="Expected accepted drafts per submitted draft do not rise with the length of the block",
    formula="E[tau_{d+1}]/(d+1) <= E[tau_d]/d",
    rule=_prefix_means(_mean_tokens, strict=False),
    over=OVER_ORIGIN,
    domain=conditionals(longest=10),
    every=lambda level: all_conditionals((3, 4, 5)[level], grid(4)),
    examples=250,
)
L18 = Claim(
    id="L18",
    source="LibraSpec (2608.08721): the lemma that the proof of Thm 3.5 leaves out",
    statement=L18_STATEMENT,
    expected="holds",
    because=(
        "E[tau_d] = S_1 + .. + S_d, so the ratio is the mean of the first d survivals; S_{d+1} = S_d "
        "p_{d+1} is at most each of those, so it cannot raise their mean. The chances p_d themselves may "
        "rise."
    ),
    broken=(
        L18_STATEMENT.but(
            (
                "The same of the chances p_k, each given that all before were accepted: their prefix means "
                "do not rise"
            ),
            _prefix_means(_mean_chance, strict=False),
        ),
        L18_STATEMENT.but("It falls with every draft", _prefix_means(_mean_tokens, strict=True)),
    ),
)

CLAIMS = (L1, L12, L18)
