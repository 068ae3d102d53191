"""LibraSpec's position-wise theorem with both repairs (L5, L22).

p_k = probability that draft k is accepted given that those before it were; S_j = p_1 .. p_j; tau_d =
expected tokens of a cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d).
Past the last place nothing is accepted, and the cost goes on as it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

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
    working,
)
from simspec.claims.plain import number, shown
from simspec.strategies.costs import convex_costs, staircase
from simspec.strategies.survivals import Conditional, grid
from simspec.theory.lengths import conditional_gain, eps_repaired, marginal_gain

# L5, L22: the theorem with both repairs

Conditions = Callable[[Block, int, bool], int]


def repaired(block: Block, i: int, ties: bool) -> int:
    """eps_i with products from place 1 and a sum from i + 1."""
    return eps_repaired(block.p, i, Endless(block).cost, bonus=bool(block.bonus), ties=ties)


def _with_gain(told: Callable[[Conditional, int, int], Fraction]) -> Conditions:
    """eps_i with another gain, by looking at every length up to three past the last place."""

    def eps(block: Block, i: int, ties: bool) -> int:
        endless = Endless(block)
        last = i
        for longer in range(i + 1, len(block.p) + 4):
            spent = endless.cost(longer) - endless.cost(i)
            worth = told(block.p, i, longer) / endless.speedup(i)
            if spent < worth or (ties and spent == worth):
                last = longer
        return last

    return eps


def _decides(eps: Conditions, looked_at: Callable[[int], range]) -> Callable[[Block], Outcome]:
    """Whether min eps_i tells every extension and every cut that raises expected speedup, from every d.

    Args:
        looked_at: the i that the least is taken over, given d.
    """

    def rule(block: Block) -> Outcome:
        if not has_values(block):
            return UNMET
        endless, size = Endless(block), len(block.p)
        rates = [Fraction(0), *(endless.speedup(d) for d in range(1, size + 3))]
        strict = [eps(block, i, False) for i in range(1, size + 1)]
        loose = [eps(block, i, True) for i in range(1, size + 1)]
        for d in range(1, size + 1):
            far = min(strict[i - 1] for i in looked_at(d))
            for longer in range(d + 1, size + 3):
                if (rates[longer] > rates[d]) != (longer <= far):
                    return against(
                        *working(block),
                        f"at length {d} the conditions allow up to {far}; {longer} drafts would have "
                        f"{number(rates[longer])} instead of {number(rates[d])}",
                    )
            near = min(loose[i - 1] for i in looked_at(d))
            if (max(rates[1 : d + 1]) > rates[d]) != (near < d) or (near < d and not rates[near] > rates[d]):
                return against(
                    *working(block),
                    f"at length {d} the conditions say {near}",
                    f"the best length up to {d} has {number(max(rates[1 : d + 1]))}",
                )
        return None

    return rule


def _four_stairs(level: int) -> Iterator[Block]:
    """Blocks of four places padded to multiples of 2, so that the last one begins a tread."""
    for p in product(grid(2 + level), repeat=4):
        for fixed in (0, 1, 2):
            yield Block(p, staircase(Fraction(fixed), Fraction(1), 2, 4), 1)


def _all_up_to(d: int) -> range:
    return range(1, d + 1)


L5_STATEMENT = Statement(
    words=(
        "With products from place 1 and sums from i + 1 the position-wise theorem is right: a longer block "
        "raises expected speedup exactly if it is within eps_i for every i up to d; some cut raises it "
        "exactly if the least eps_i is below d, and then the cut to it does"
    ),
    rule=_decides(repaired, _all_up_to),
    over=OVER_LINES,
    domain=lines(),
    every=all_lines,
    examples=50,
    formula=(
        "eps_i = max{d' >= i : c (d' - i) <= T_i/tau_i sum_{j=i+1..d'} S_j} (extending: <);  eta_d' > eta_d "
        "<=> d' <= min_{i<=d} eps_i for d' > d;  max_{d'<d} eta_d' > eta_d <=> min eps_i < d"
    ),
)
L5 = Claim(
    id="L5",
    source="LibraSpec (2608.08721) Thm 3.3 and 3.4, both repaired",
    statement=L5_STATEMENT,
    expected="holds",
    because=(
        "By L1 'd' within eps_i' says eta_d' > eta_i (cutting: >=). Sufficient: take i = d. Necessary: if "
        "eta_d' > eta_d with d' > d, no i < d has eta_i > eta_d, or speedup would fall and then rise, "
        "against L2; so eta_d' > eta_i for all of them. Cutting: the least eps_i is below d exactly if some "
        "eta_i > eta_d. If it is e, attained at i, then eta_{e+1} < eta_i <= eta_e: a strict fall at or "
        "before e + 1 <= d, which goes on, so eta_e > eta_d. Both need one peak, so a convex cost."
    ),
    broken=(
        L5_STATEMENT.but(
            "The same with the printed products and start",
            _decides(_with_gain(conditional_gain), _all_up_to),
        ),
        L5_STATEMENT.but(
            "The same with products from place 1 but sums from i",
            _decides(_with_gain(lambda p, i, longer: marginal_gain(p, i - 1, longer)), _all_up_to),
        ),
        L5_STATEMENT.but(
            "The same with sums from i + 1 but products from there on",
            _decides(_with_gain(lambda p, i, longer: conditional_gain(p, i + 1, longer)), _all_up_to),
        ),
        L5_STATEMENT.but(
            "The same with the first condition alone, i = 1", _decides(repaired, lambda d: range(1, 2))
        ),
        L5_STATEMENT.but(
            "The same with a staircase cost",
            _decides(_with_gain(marginal_gain), _all_up_to),
            domain=None,
            every=_four_stairs,
        ),
    ),
)


def _last_alone(
    eps: Conditions, first: Callable[[int], int], cut_from: Callable[[int], int]
) -> Callable[[Block], Outcome]:
    """Whether one condition implies the others, extending (i = ``first``(d)) and cutting (``cut_from``)."""

    def rule(block: Block) -> Outcome:
        if not has_values(block):
            return UNMET
        every_strict = [eps(block, i, False) for i in range(1, len(block.p) + 1)]
        every_loose = [eps(block, i, True) for i in range(1, len(block.p) + 1)]
        for d in range(1, len(block.p) + 1):
            bounds, loose = every_strict[:d], every_loose[: d - 1]
            alone = bounds[first(d) - 1]
            if alone > d and min(bounds) < alone:
                return against(
                    *working(block),
                    f"at length {d} condition {first(d)} allows {alone}; all of them: {shown(bounds)}",
                )
            if loose and (min(loose) < d) != (loose[cut_from(d) - 1] < d):
                return against(
                    *working(block),
                    f"at length {d} condition {cut_from(d)} is not the least of {shown(loose)}",
                )
        return None

    return rule


L22_STATEMENT = L5_STATEMENT.but(
    "One condition decides: where that of i = d allows a longer block, those of all i < d do; and some cut "
    "raises expected speedup exactly if the condition of i = d - 1 fails at d, that is, if cutting one "
    "draft does",
    _last_alone(repaired, lambda d: d, lambda d: d - 1),
    formula="d' > d and d' <= eps_d  =>  d' <= eps_i for all i < d;   min_{i<d} eps_i < d <=> eps_{d-1} < d",
    over=OVER_CONVEX,
    domain=blocks(convex_costs),
    every=all_convex,
)
L22 = Claim(
    id="L22",
    source="LibraSpec (2608.08721) Thm 3.3: which of its d conditions say something",
    statement=L22_STATEMENT,
    expected="holds",
    because=(
        "With one peak (any convex cost, L2c) eta_d' > eta_d for some d' > d makes eta_1 <= .. <= eta_d: "
        "the conditions at smaller i are weaker. And if some shorter block is better, speedup has fallen "
        "strictly before d, and so it does from d - 1 to d. The position-wise form adds nothing to Thm 3.2."
    ),
    broken=(
        L22_STATEMENT.but(
            "The condition of i = 1 decides extending", _last_alone(repaired, lambda d: 1, lambda d: d - 1)
        ),
        L22_STATEMENT.but(
            "The condition of i = 1 decides cutting",
            _last_alone(repaired, lambda d: d, lambda d: 1),
            domain=lines(),
            every=all_lines,
        ),
        L22_STATEMENT.but(
            "The same with a staircase cost",
            _last_alone(_with_gain(marginal_gain), lambda d: d, lambda d: d - 1),
            domain=None,
            every=_four_stairs,
        ),
    ),
)


CLAIMS = (L5, L22)
