"""How tight the bound on the regret of wrong chances is (L39).

p_k = true chance that place k is accepted once all before it were, q_k = the chance believed; S_j = product
of the first j. A cycle of d places takes T(d) = T0 + c d and gives tau(d) = S_1 + .. + S_d tokens, one more
with the bonus; rate(d) = tau(d) / T(d); the unit of time is c = 1. Acting on q means submitting a length that
is best if q is true; its regret is the best rate under p less its own rate under p, in tokens per unit of
time, the worst of q's ties counted. Length 0 is a choice, and T0 > 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from simspec.claims.base import UNMET, Claim, Outcome, Plot, Statement, against
from simspec.claims.lengths.calibration_regret import bound, grown, rates
from simspec.claims.lengths.tolerance import Tolerance, worst_regret
from simspec.claims.plain import number, shown
from simspec.strategies.costs import Curve, affine
from simspec.strategies.survivals import Conditional, grid

ONE, NONE = Fraction(1), Fraction(0)


@dataclass(frozen=True)
class Corner:
    """T(d) = ``fixed`` + d, d = 0..``depth``; beliefs on a grid of 1/``parts``."""

    fixed: Fraction
    depth: int
    bonus: int
    parts: int

    def cost(self) -> Curve:
        return affine(self.fixed, ONE, self.depth)

    def grid(self) -> tuple[Fraction, ...]:
        """Multiples of 1/``parts``, and c/T0: a survival of that makes a place worth what a plain step is."""
        return tuple(sorted({*grid(self.parts), min(ONE, 1 / self.fixed)}))

    def told(self) -> str:
        return f"T(d) = {self.fixed} + d, {self.depth} places, {'with' if self.bonus else 'without'} bonus"


def share_reached(case: Corner, e: Fraction) -> tuple[Fraction, Conditional]:
    """At least so much of g(e) can be lost, and the beliefs of which: the best of all q on the grid.

    What each q can lose is exact (L14c); beliefs between those of the grid may lose more.
    """
    cost = case.cost()
    most, best = NONE, (NONE,) * case.depth
    for q in product(case.grid(), repeat=case.depth):
        believed = rates(q, cost, case.bonus)
        for d, rate in enumerate(believed):
            if rate == max(believed):
                lost = worst_regret(Tolerance(q, e, cost, case.bonus), d)
                most, best = max((most, best), (lost, q))
    return most / bound(cost, grown(e, case.depth))[0], best


def _reached_somewhere(case: Corner) -> Outcome:
    """Against only where no chances make a length better than 0; otherwise a grid can find, but not deny."""
    cost = case.cost()
    certain = rates((ONE,) * case.depth, cost, case.bonus)
    if certain[0] > max(certain[1:]):
        e = Fraction(1, 10)
        return against(
            case.told(),
            f"certain places give the rates {shown(certain)} at d = 0..{case.depth}: length 0 is best "
            "whatever p and q are, is submitted, and nothing is lost",
            f"the bound is above 0 for every e > 0: {number(bound(cost, grown(e, case.depth))[0])} at e = "
            f"{e}",
        )
    found = any(share_reached(case, e)[0] == 1 for e in grid(case.parts, zero=False))
    return None if found else UNMET


def all_corners(level: int) -> Iterator[Corner]:
    for depth, fixed, bonus in product(range(1, 3 + level), (2, 1, 4, 10), (1, 0)):
        yield Corner(Fraction(fixed, 2), depth, bonus, 2)


@dataclass(frozen=True)
class Reach:
    corner: Corner
    e: Fraction


def _reached_where(case: Reach, where: Callable[[Corner], bool]) -> Outcome:
    """With the bonus: whether the search over q reaches the bound just ``where`` it is said to."""
    share, q = share_reached(case.corner, case.e)
    if (share == 1) == where(case.corner):
        return None
    return against(
        f"{case.corner.told()}, each chance off by at most e = {case.e}",
        f"of all q with chances of {shown(case.corner.grid())} the one that can lose most is {shown(q)}: "
        f"{number(share)} of the bound",
    )


def _tie_of_all(corner: Corner, most: int | None = 3) -> bool:
    """T0 = c, and no more places than ``most``."""
    return corner.fixed == 1 and (most is None or corner.depth <= most)


def _shares() -> Plot:
    """Of several T0, for the figure: the pinned one loses nothing at any e."""
    errors = grid(8, zero=False)
    return Plot(
        "How much of the bound is reached at least (with bonus, 2 places, T0 in units of c)",
        "line",
        "e, how far each chance may be off",
        "largest regret found / bound",
        tuple(float(e) for e in errors),
        {
            f"T0 = {fixed}": tuple(float(share_reached(Corner(fixed, 2, 1, 5), e)[0]) for e in errors)
            for fixed in (Fraction(1, 2), ONE, Fraction(2), Fraction(5), Fraction(20))
        },
    )


def all_reaches(level: int) -> Iterator[Reach]:
    most = 5 if level else 3
    for depth, parts, halves in (
        (2, 2 + 2 * level, (1, 2, 4, 10, 40)[:most]),
        (3, 1 + level, (1, 2, 4)),
        (4, 1, (1, 2)),
    ):
        for fixed, e in product(halves, (Fraction(1, 10), Fraction(1, 2), ONE)):
            yield Reach(Corner(Fraction(fixed, 2), depth, 1, parts), e)


L39_REPAIRED = Statement(
    words=(
        "With the bonus and 2 places or more it is reached exactly where T0 = c and there are 2 or 3 "
        "places; there at every e, by q = 1 and p = 1 - e"
    ),
    formula=(
        "bonus, D >= 2 places, 0 < e <= 1: max over |p_k - q_k| <= e of regret = g(e)  <=>  T0 = c, D <= 3"
    ),
    rule=lambda case: _reached_where(case, _tie_of_all),
    over=(
        "2 places with T0 of 1/2, 1, 2, 5 and 20 (c = 1), 3 with 1/2, 1 and 2, 4 with 1/2 and 1; e of 1/10, "
        "1/2 and 1: all q with chances of c/T0 and on a grid (quarters, halves, and 0 and 1), each with the "
        "worst p, exactly"
    ),
    every=all_reaches,
)
L39 = Claim(
    id="L39",
    source="derived, for claim L14",
    statement=Statement(
        words="The bound on conditional chances, g(e) of L14, is reached for every affine cost at some e > 0",
        formula="T(d) = T0 + c d, T0 > 0: max over e > 0 and |p_k - q_k| <= e of regret / g(e) = 1",
        rule=_reached_somewhere,
        over=(
            "1 to 3 places, T0 of 1/2, 1, 2 and 5 (c = 1), with and without bonus: refuted only where "
            "nothing can be lost whatever p and q; elsewhere all q in halves are looked through for one "
            "that reaches it"
        ),
        every=all_corners,
    ),
    expected="refuted",
    because=(
        "Equality needs a tie under q and, at every place up to the longer length b, an error of full size. "
        "Past the first place 1 - (1 - e)^j is reached only if one of p and q is 1 at all places and the "
        "other 1 - e. So for b > 1 all errors have one sign, the lengths must be 0 and b, and g's pair must "
        "be one of these; with 2 places or more b > 1, as lengths 0 and 1 give e/(T0 + c), less than (3e - "
        "e^2)/(T0 + 2c). With the bonus: if q = 1, lengths 0 and b tie only where T0 = c; if q = 1 - e < 1, "
        "its survivals fall, and where 0 and b tie a length between them is better. With T0 = c, q = 1 and "
        "p = 1 - e lose sum_j D_j / (c (1 + D)), which is g(e) for D of 2 and 3; for D > 3 lengths 1 and D "
        "give more, as T(D) > 2 T(1). With T0 < c nothing is lost. Without the bonus only q = 0, p = 1 and "
        "e = 1 reach it. How near the rest come, at least: all q in twentieths and c/T0, the worst p "
        "exactly (L14c), 2 places, e = 1/10, 1/4, 1/2, 3/4, 1. With the bonus T0 = 2c: 82.8%, 81.8%, 80.0%, "
        "59.3%, 50.0%; T0 = 5c: 72.4%, 72.7%, 80.0%, 88.9%, 80.0%; T0 = 20c: 69.0%, 72.7%, 80.0%, 88.9%, "
        "95.0%. Without it T0 = 2c: 69.0%, 72.7%, 80.0%, 88.9%, 100.0%."
    ),
    pinned=Corner(Fraction(1, 2), 1, 1, 2),
    repaired=L39_REPAIRED,
    broken=(
        L39_REPAIRED.but(
            "... exactly where T0 = c, whatever the number of places",
            lambda case: _reached_where(case, lambda c: _tie_of_all(c, None)),
        ),
        L39_REPAIRED.but(
            "... exactly where T0 = c and there are 2 places",
            lambda case: _reached_where(case, lambda c: _tie_of_all(c, 2)),
        ),
        L39_REPAIRED.but(
            "... exactly where T0 >= c and there are 2 or 3 places",
            lambda case: _reached_where(case, lambda c: c.fixed >= 1 and c.depth <= 3),
        ),
    ),
    plot=lambda case: _shares(),
)

CLAIMS = (L39,)
