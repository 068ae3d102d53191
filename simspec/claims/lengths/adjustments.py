"""LibraSpec's adjustments from one block length to another (L4, L21, L27).

p_k = probability that draft k is accepted given that those before it were; S_j = p_1 .. p_j; tau_d =
expected tokens of a cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d). Past the
last place nothing is accepted, and the cost goes on as it did.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.lengths.blocks import (
    OVER_CONVEX,
    OVER_LINES,
    Block,
    Endless,
    all_convex,
    all_lines,
    blocks,
    has_values,
    lines,
    speedup_curve,
    working,
)
from simspec.claims.plain import number, shown
from simspec.strategies.costs import affine, convex_costs
from simspec.strategies.survivals import Conditional, tokens_by_outcome
from simspec.theory.lengths import conditional_gain, eps_printed, marginal_gain

Eps = Callable[[Block, int], int]


def printed(block: Block, i: int) -> int:
    """eps_i as printed."""
    return eps_printed(block.p, i, Endless(block).cost, bonus=bool(block.bonus))


def clipped(block: Block, i: int) -> int:
    """eps_i as printed, cut at the last place."""
    return min(printed(block, i), len(block.p))


# L4


def _adjusted(
    eps: Eps, verdict: Callable[[Fraction, Fraction, bool], bool], longer: bool
) -> Callable[[Block], Outcome]:
    """Adjust every length d to min eps_i, i <= d, and look at speedups before and after.

    Args:
        verdict: of the speedup before, the one after, and whether place d' + 1 can still be accepted.
        longer: look at extensions, else at cuts.
    """

    def rule(block: Block) -> Outcome:
        if not has_values(block):
            return UNMET
        endless, met = Endless(block), False
        bounds: list[int] = []
        for d in range(1, len(block.p) + 1):
            bounds.append(eps(block, d))
            new = min(bounds)
            if new == d or (new > d) != longer or endless.cost(new) == 0:
                continue
            met = True
            before, after = endless.speedup(d), endless.speedup(new)
            if not verdict(before, after, endless.tokens(new + 1) > endless.tokens(new)):
                return against(
                    *working(block),
                    f"eps_1 .. eps_{d} = {shown(bounds)}, so the length goes from {d} to {new}",
                    f"speedup before: {number(before)}; after: {number(after)}",
                )
        return None if met else UNMET

    return rule


L4_STATEMENT = Statement(
    words="Extending a block from d to d' = min eps_i (i = 1 .. d) raises expected speedup",
    formula=(
        "eps_i = max{d' : d' < T_i/(tau_i c) sum_{j=i..d'} p_i .. p_j + i};  d' = min eps_i > d  =>  eta_d' "
        "> eta_d"
    ),
    rule=_adjusted(printed, lambda before, after, _: after > before, longer=True),
    over=OVER_LINES,
    domain=lines(),
    every=all_lines,
    examples=80,
)
L4 = Claim(
    id="L4",
    source="LibraSpec (2608.08721) Thm 3.4, extending",
    statement=L4_STATEMENT,
    expected="refuted",
    because=(
        "No extension to min eps_i ever raises it, for any p, any affine cost with T0 >= 0, c > 0, with the "
        "bonus or without. Proof. Let e = min eps_i > d be attained at i <= d. (1) e + 1 is not allowed at "
        "i, so c (e + 1 - i) >= (1/eta_i) sum_{j=i..e+1} p_i .. p_j >= (1/eta_i) (S_i + .. + S_{e+1}), "
        "since a product that starts at i is S_j / S_{i-1} >= S_j. As S_{i+1} + .. + S_e = tau_e - tau_i "
        "this says tau_e - tau_i <= eta_i c (e - i) + (c eta_i - S_i - S_{e+1}). (2) If speedup does not "
        "fall into i (eta_i >= eta_{i-1}), the last place pays: S_i >= c eta_i. Then tau_e - tau_i <= eta_i "
        "c (e - i), which by L1 is eta_e <= eta_i; with one peak (L2) and i <= d < e, eta_e <= eta_d. (3) "
        "If it falls into i, one peak says that it goes on falling: eta_e < eta_d. For i = 1 read eta_0 = "
        "tau_0/T0 (with T0 = 0: without the bonus S_1 = c eta_1, case 2; with it S_1 < c eta_1, case 3). "
        "Equality needs, in (2), S_i = c eta_i and S_{e+1} = 0: if a draft can still survive at e + 1, "
        "every extension strictly lowers. What makes the theorem fail is its sum's first term: place i, "
        "already paid for, is counted again as if it were new."
    ),
    first_look=(
        "'Every extension lowers' has exceptions, ties: p = (1/4, 1), T0 = 0 goes from 1 to 2 at the same "
        "speedup. The larger example's '2 -> 12' cuts eps at the twelve places given; uncut, with nothing "
        "accepted beyond them, it is 2 -> 16, .194 -> .163. The condition is the affine cost: with a convex "
        "one an extension may pay (L21), and so may one that is cut at the last place."
    ),
    pinned=Block((Fraction(1, 4), Fraction(1, 4)), affine(Fraction(0), Fraction(1), 2), 0),
    repaired=L4_STATEMENT.but(
        "Extending to min eps_i never raises expected speedup, and lowers it if draft d' + 1 could survive",
        _adjusted(
            printed,
            lambda before, after, alive: after < before or (after == before and not alive),
            longer=True,
        ),
        formula="d' = min eps_i > d  =>  eta_d' <= eta_d, and < if S_{d'+1} > 0",
    ),
    broken=(
        L4_STATEMENT.but(
            "Extending to min eps_i always lowers it",
            _adjusted(printed, lambda before, after, _: after < before, longer=True),
        ),
        L4_STATEMENT.but(
            "Extending to min eps_i, cut at the last place, never raises it",
            _adjusted(clipped, lambda before, after, _: after <= before, longer=True),
        ),
    ),
    plot=speedup_curve,
)


def _cut_is_best(block: Block) -> Outcome:
    if not has_values(block):
        return UNMET
    endless, met = Endless(block), False
    for d in range(1, len(block.p) + 1):
        new = min(printed(block, i) for i in range(1, d + 1))
        if 1 <= new < d:
            met = True
            best = max(endless.speedup(cut) for cut in range(1, d))
            if endless.speedup(new) < best:
                return against(*working(block), f"{d} is cut to {new}; the best cut has {number(best)}")
    return None if met else UNMET


L4B_STATEMENT = L4_STATEMENT.but(
    "Cutting a block from d back to d' = min eps_i (i = 1 .. d) raises expected speedup",
    _adjusted(printed, lambda before, after, _: after > before, longer=False),
    formula="d' = min eps_i < d  =>  eta_d' > eta_d",
)
L4B = Claim(
    id="L4b",
    source="LibraSpec (2608.08721) Thm 3.4, truncating",
    statement=L4B_STATEMENT,
    expected="holds",
    because=(
        "Let e = min eps_i < d be attained at i. If p_i > 0 then e >= i (d' = i is always allowed), and (1) "
        "of L4 gives tau_{e+1} - tau_i <= eta_i c (e + 1 - i) - S_i, so eta_{e+1} < eta_i if S_i > 0: "
        "speedup falls strictly somewhere between i and e + 1 <= d, and by one peak ever after, so eta_e > "
        "eta_d. If p_i = 0 then e = i - 1 (with i the first such place, as it is when it attains the "
        "least): nothing after e is accepted, and d costs more. S_i = 0 < p_i cannot attain the least. So "
        "it needs only tau_1 > 0, not p_i > 0. It is right for a weak reason: its cut comes too late (the "
        "conditions overstate every gain)."
    ),
    first_look="p_i > 0 is not needed.",
    broken=(
        L4B_STATEMENT.but("... and no other cut is better", _cut_is_best),
        L4B_STATEMENT.but(
            "The same one further back: d' = min eps_i - 1",
            _adjusted(
                lambda block, i: max(1, printed(block, i) - 1),
                lambda before, after, _: after > before,
                longer=False,
            ),
        ),
    ),
)

# L21: convex costs


def _rising(level: int) -> Iterator[Block]:
    return (block for block in all_convex(max(1, level)) if has_values(block))


L21_STATEMENT = L4_STATEMENT.but(
    "Extending to d' = min eps_i, with differences of the true cost in place of c (d' - i), never raises "
    "expected speedup for any convex cost",
    _adjusted(printed, lambda before, after, _: after <= before, longer=True),
    formula="eps_i = max{d' : T(d') - T(i) < T_i/tau_i sum_{j=i..d'} p_i .. p_j}",
    over=OVER_CONVEX,
    domain=blocks(convex_costs),
    every=_rising,
)
L21 = Claim(
    id="L21",
    source="L4 with a convex cost",
    statement=L21_STATEMENT,
    expected="refuted",
    because=(
        "Step (2) of L4's proof sets what place i brings against the cost of place e + 1, which a convex "
        "cost lets grow. What is left of it: (1) still gives eta_{e+1} < eta_i, so one place past min eps_i "
        "is always too far."
    ),
    pinned=Block(tuple(map(Fraction, (1, 1, 0))), tuple(map(Fraction, (1, 1, 1, 2))), 1),
    repaired=L21_STATEMENT.but(
        "Extending one place past min eps_i always lowers it",
        _adjusted(
            lambda block, i: printed(block, i) + 1, lambda before, after, _: after < before, longer=True
        ),
    ),
    plot=speedup_curve,
)

# L27: which of the two mistakes does the harm


def _affine_bound(told: Callable[[Conditional, int, int], Fraction]) -> Eps:
    """max{d' >= i : c (d' - i) < (T_i/tau_i) told(p, i, d')} for an affine cost, or i - 1."""

    def eps(block: Block, i: int) -> int:
        size, slope = len(block.p), block.cost[1] - block.cost[0]
        alpha = block.cost[i] / (tokens_by_outcome(block.p, block.bonus)[i] * slope)
        if size - i < alpha * told(block.p, i, size):
            # Nothing is gained past the last place: the largest whole number below a fixed one.
            return math.ceil(i + alpha * told(block.p, i, size)) - 1
        return max((d for d in range(i, size) if d - i < alpha * told(block.p, i, d)), default=i - 1)

    return eps


def _from_one_start(p: Conditional, i: int, longer: int) -> Fraction:
    return marginal_gain(p, i - 1, longer)


def _later_start(p: Conditional, i: int, longer: int) -> Fraction:
    return conditional_gain(p, i + 1, longer)


L27_STATEMENT = L4_STATEMENT.but(
    "With products from place 1, but the sum still from i, extending to min eps_i never raises expected "
    "speedup: the term counted twice does the harm",
    _adjusted(_affine_bound(_from_one_start), lambda before, after, _: after <= before, longer=True),
    formula=(
        "eps_i = max{d' : d' < T_i/(tau_i c) sum_{j=i..d'} S_j + i};  d' = min eps_i > d  =>  eta_d' <= eta_d"
    ),
)
L27 = Claim(
    id="L27",
    source="LibraSpec (2608.08721) Thm 3.4 with one of the two repairs",
    statement=L27_STATEMENT,
    expected="holds",
    because=(
        "The proof of L4 uses of the products only that they are at least S_j, so it holds word for word. "
        "The other half repaired alone (the sum from i + 1, products from there on) is too long by "
        "overstated gains only: among small blocks about one such extension in six does raise speedup."
    ),
    broken=(
        L27_STATEMENT.but(
            "With the sum from i + 1, but products from there on, it never does either",
            _adjusted(_affine_bound(_later_start), lambda before, after, _: after <= before, longer=True),
        ),
    ),
)

CLAIMS = (L4, L4B, L21, L27)
