"""How wrong one number may be before acting on it costs something (L14c).

p_k = true chance that place k is accepted once all before it were, q_k = the chance believed; S_j = product
of the first j. A cycle of d places takes T(d) and gives tau(d) = S_1 + .. + S_d tokens, one more with the
bonus; rate(d) = tau(d) / T(d). Acting on q means submitting a length that is best if q is true; its regret is
the best rate under p less its own rate under p, in tokens per unit of time, the worst of q's ties counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.lengths.calibration_regret import rates
from simspec.claims.plain import number, shown
from simspec.strategies.costs import Curve, affine, rising_costs
from simspec.strategies.survivals import Conditional, chances, conditionals, grid

# L14c


@dataclass(frozen=True)
class Tolerance:
    """Beliefs q, each off by at most e."""

    q: Conditional
    e: Fraction
    cost: Curve
    bonus: int

    def box(self) -> list[tuple[Fraction, Fraction]]:
        """The least and the greatest that each chance can be."""
        return [(max(Fraction(0), q - self.e), min(Fraction(1), q + self.e)) for q in self.q]


def worst_regret(case: Tolerance, submitted: int) -> Fraction:
    """The most that ``submitted`` can lose if each p_k is within e of q_k, exactly, O(D) a rival length.

    Against a rival x the loss is bonus/T(x) - bonus/T(y) + sum_j w_j S_j = .. + p_1 (w_1 + p_2 (w_2 + ..)),
    w_j = [j <= x]/T(x) - [j <= y]/T(y). From the last place on, p_k is taken large where the bracket is above
    0 and small where it is below.
    """
    y, most = submitted, Fraction(0)
    for x in range(len(case.cost)):
        rest = Fraction(0)
        for j, (least, greatest) in reversed(list(enumerate(case.box(), 1))):
            rest += int(j <= x) / case.cost[x] - int(j <= y) / case.cost[y]
            rest *= greatest if rest > 0 else least
        most = max(most, case.bonus / case.cost[x] - case.bonus / case.cost[y] + rest)
    return most


def _same_direction(case: Tolerance, submitted: int) -> Fraction:
    """As if the worst were that all beliefs are too high, or all too low."""
    ends = list(zip(*case.box(), strict=True))
    true = [rates(p, case.cost, case.bonus) for p in ends]
    return max(max(one) - one[submitted] for one in true)


def _apart(case: Tolerance, submitted: int) -> Fraction:
    """As if a rival could have each chance at its greatest and the submitted length have it at its least."""
    low, high = zip(*case.box(), strict=True)
    least, most = (rates(p, case.cost, case.bonus) for p in (low, high))
    return max(Fraction(0), *(most[x] - least[submitted] for x in range(len(case.cost)) if x != submitted))


def _is_worst(case: Tolerance, formula: Callable[[Tolerance, int], Fraction]) -> Outcome:
    thinkable = [(low, (low + high) / 2, high) for low, high in case.box()]
    true = {p: rates(p, case.cost, case.bonus) for p in product(*thinkable)}
    for submitted in range(len(case.cost)):
        p, found = max(
            ((p, max(one) - one[submitted]) for p, one in true.items()), key=lambda worst: worst[1]
        )
        if found != formula(case, submitted):
            return against(
                f"q = {shown(case.q)}, each chance off by at most e = {case.e}, T(0), T(1), .. = "
                f"{shown(case.cost)}, {'with' if case.bonus else 'without'} bonus; submitted {submitted}",
                f"worst of all p with each chance at its least, middle or greatest: p = {shown(p)}, rates "
                f"{shown(true[p])}, {number(found)} lost; the formula says "
                f"{number(formula(case, submitted))}",
            )
    return None


def all_tolerances(level: int) -> Iterator[Tolerance]:
    one = Fraction(1)
    for depth in range(1, 3 + (level > 1)):
        for q, fixed, bonus in product(product(grid(2 + min(level, 1)), repeat=depth), (1, 3), (0, 1)):
            for e in (Fraction(1, 10), Fraction(1, 2)):
                yield Tolerance(q, e, affine(Fraction(fixed), one, depth), bonus)


@st.composite
def tolerances(draw: st.DrawFn) -> Tolerance:
    q = draw(conditionals(longest=4))
    return Tolerance(q, draw(chances()), draw(rising_costs(len(q))), draw(st.integers(0, 1)))


L14C_STATEMENT = Statement(
    words=(
        "How much a length can lose, given the beliefs and that each is off by e at most, is found exactly "
        "by one pass back over the block for each rival length: a certificate that can be had while decoding"
    ),
    formula=(
        "max over |p_k - q_k| <= e and x of rate_p(x) - rate_p(y) = max over x of bonus/T(x) - bonus/T(y) + "
        "p_1 (w_1 + p_2 (w_2 + ..)), w_j = [j <= x]/T(x) - [j <= y]/T(y), from the last place on p_k = "
        "min(1, q_k + e) where the bracket is above 0, else max(0, q_k - e)"
    ),
    rule=lambda case: _is_worst(case, worst_regret),
    over=(
        "all q of 1 and 2 places in thirds, e = 1/10 and 1/2, T0 = 1 and 3; random ones of up to 4 places; "
        "the truth is the worst over all p with each chance at its least, middle or greatest"
    ),
    domain=tolerances(),
    every=all_tolerances,
    examples=60,
)
L14C = Claim(
    id="L14c",
    source="derived, for Assumption 3.7 of LibraSpec (2608.08721)",
    statement=L14C_STATEMENT,
    expected="holds",
    because=(
        "The difference of two rates is p_1 (w_1 + p_2 (w_2 + ..)) and a constant, w_j as places j count "
        "for the one, the other or both. All p_k are 0 or more, so whatever the earlier places do, the "
        "brackets should be as large as can be; each is linear in its next chance, and so greatest at one "
        "end of its range."
    ),
    broken=(
        L14C_STATEMENT.but(
            "... all beliefs too high, or all too low, is the worst",
            lambda case: _is_worst(case, _same_direction),
        ),
        L14C_STATEMENT.but(
            "... the best that a rival can be, less the least that the submitted length can be",
            lambda case: _is_worst(case, _apart),
        ),
    ),
)

CLAIMS = (L14C,)
