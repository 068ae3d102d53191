"""How tight the bound on the regret of wrong survivals is (L38).

p_k = true chance that place k is accepted once all before it were, q_k = the chance believed; S_j = product
of the first j. A cycle of d places takes T(d) = T0 + c d and gives tau(d) = S_1 + .. + S_d tokens, one more
with the bonus; rate(d) = tau(d) / T(d); the unit of time is c = 1. Acting on q means submitting a length that
is best if q is true; its regret is the best rate under p less its own rate under p, in tokens per unit of
time, the worst of q's ties counted. Length 0 is a choice, and T0 > 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.lengths.calibration_regret import Believed, acted_on, bound, rates, widest
from simspec.claims.plain import number, shown
from simspec.strategies.costs import Curve, affine
from simspec.strategies.survivals import Conditional, survival

ONE, NONE = Fraction(1), Fraction(0)

# L38


@dataclass(frozen=True)
class Margin:
    """T(d) = ``fixed`` + d for d = 0..``depth``; survivals off by ``apart``."""

    fixed: Fraction
    depth: int
    bonus: int
    apart: Fraction

    def cost(self) -> Curve:
        return affine(self.fixed, ONE, self.depth)


Where = Callable[[Margin], bool]


def reachable(case: Margin) -> bool:
    """No bonus, or T0 > c, or T0 = c and up to 3 places."""
    return not case.bonus or case.fixed > 1 or (case.fixed == 1 and case.depth <= 3)


def room(fixed: Fraction, bonus: int) -> Fraction:
    """How large D may be for the pair of beliefs to exist, whatever the number of places."""
    if not bonus:
        return 1 / (fixed + 2)
    return min(1 / fixed, 1 - 1 / fixed) if fixed > 1 else ONE


def conditional(survivals: Sequence[Fraction]) -> Conditional:
    """Chances whose products are these survivals; 0 once there is no survivor."""
    before = (ONE, *survivals)
    return tuple(s / b if b else NONE for s, b in zip(survivals, before, strict=False))


def worst_pair(case: Margin, early: int = 1) -> Believed:
    """p and q for which lengths a and b of the bound tie under q, and part as far as can be under p.

    With the bonus and T0 < c, or T0 = c and a > 0, there are none; then the pair that loses most: all lengths
    certain, and believed a little more than they are.

    Args:
        early: 1 for true survivals above the believed ones up to a, -1 for below, as from a + 1 to b.
    """
    _, a, b = bound(case.cost(), (case.apart,) * case.depth)
    d, after = case.apart, [NONE] * (case.depth - b)
    if case.bonus and (case.fixed < 1 or (case.fixed == 1 and a)):
        return Believed(conditional([1 - d] * case.depth), (ONE,) * case.depth, case.cost(), case.bonus)
    if not case.bonus and a == 0:
        believed, true = [NONE] * case.depth, [d] * b + after
    else:
        # With the bonus every place is worth what a plain step is, 1/T0, so that lengths 0..b tie. Without it
        # places up to a are worth so much that rate(a) is what the later ones are worth.
        late = 1 / case.fixed if case.bonus else d
        level = late if case.bonus else late * (case.fixed + a) / a
        believed = [level] * a + [late] * (b - a) + after
        true = [level + early * d] * a + [late - d] * (b - a) + after
    return Believed(conditional(true), conditional(believed), case.cost(), case.bonus)


def _reached(case: Margin, where: Where = reachable, early: int = 1, within: Fraction = ONE) -> Outcome:
    """``within``: which part of D the survivals of the pair are apart at most."""
    if not where(case):
        return UNMET
    pair = worst_pair(case, early)
    apart = widest(survival(pair.p), survival(pair.q))
    (lost, best, chosen), (most, a, b) = acted_on(pair), bound(case.cost(), (case.apart,) * case.depth)
    if apart <= within * case.apart and lost == most:
        return None
    certain = rates((ONE,) * case.depth, case.cost(), case.bonus)
    why = (
        f"no chances make a length better than 0: certain places give {shown(certain)} at d = "
        f"0..{case.depth}",
    )
    return against(
        f"T(d) = {case.fixed} + d, {case.depth} places, {'with' if case.bonus else 'without'} bonus, "
        f"survivals off by D = {case.apart}: the bound is {number(most)}, for the lengths {a} and {b}",
        f"true p = {shown(pair.p)}, believed q = {shown(pair.q)}: survivals {number(apart)} apart; {chosen} "
        f"is submitted, {best} is best, {number(lost)} lost",
        *(why if max(certain) == certain[0] else ()),
    )


def all_margins(level: int) -> Iterator[Margin]:
    fixed = (Fraction(1, 2), ONE, Fraction(2), Fraction(5), Fraction(20))
    for depth, first, bonus in product(range(1, 5 + 2 * level), fixed, (0, 1)):
        for part in (1, 20):
            yield Margin(first, depth, bonus, room(first, bonus) / part)


@st.composite
def margins(draw: st.DrawFn) -> Margin:
    fixed = draw(st.builds(Fraction, st.integers(1, 80), st.sampled_from((4, 40))))
    bonus = draw(st.integers(0, 1))
    apart = room(fixed, bonus) * draw(st.builds(Fraction, st.integers(1, 20), st.just(20)))
    return Margin(fixed, draw(st.integers(1, 8)), bonus, apart)


L38_STATEMENT = Statement(
    words=(
        "Without the bonus, or with it if T0 > c (or T0 = c and there are up to 3 places), the bound on "
        "survivals cannot be improved for small D: for T(d) = T0 + c d there are p and q with survivals D "
        "apart for which acting on q loses g_S(D)"
    ),
    formula=(
        "T(d) = T0 + c d; no bonus, T0 > 0, D <= c/(T0 + 2c); or bonus, T0 > c, D <= min(c/T0, 1 - c/T0); "
        "or bonus, T0 = c, up to 3 places, D <= 1: max over |E_j| <= D of the regret = g_S(D) (as in L14b)"
    ),
    rule=_reached,
    over=(
        "T0 of 1/2, 1, 2, 5, 20 (c = 1), up to 6 places, with and without bonus, the largest D and a 20th "
        "of it; random T0 from 1/40 to 20, up to 8 places, D from a 20th of the largest on"
    ),
    domain=margins(),
    every=all_margins,
    examples=60,
)
L38 = Claim(
    id="L38",
    source="derived, for claim L14",
    statement=L38_STATEMENT,
    expected="holds",
    because=(
        "Let a < b be the pair of lengths that g_S is for. With the bonus let all believed survivals up to "
        "b be c/T0, so that each place is worth what a plain step is and lengths 0..b tie; without it let "
        "those of places a+1..b be D and those up to a D (T0 + c a)/(c a), so that rate(a) = D/c and "
        "lengths a..b tie. Nothing after b. The true ones are D above on places 1..a and D below on a+1..b: "
        "that changes rate(a) by D a / T(a) and rate(b) by D (2 a - b) / T(b). Submitting b loses the first "
        "less the second, which is g_S(D). Without a bonus and with a = 0, q = 0 makes all lengths tie, and "
        "p has survivals D. The survivals stay within 0 and 1 for D as given; with T0 = c they are 1, so a "
        "must be 0, which is so for up to 3 places. Elsewhere: with the bonus and T0 < c length 0 has the "
        "rate 1/T0 > (1 + d)/(T0 + c d), so nothing is ever lost; with T0 = c length 0 is always best, and "
        "a length y ties only if q_1 = .. = q_y = 1, so at most D y/(c (1 + y)) is lost, with 4 places 8/9 "
        "of the bound and with 6 places 4/5."
    ),
    broken=(
        L38_STATEMENT.but("... for every affine cost", lambda case: _reached(case, lambda c: True)),
        L38_STATEMENT.but(
            "... with the bonus and T0 = c whatever the number of places",
            lambda case: _reached(case, lambda c: not c.bonus or c.fixed >= 1),
        ),
        L38_STATEMENT.but(
            "... with beliefs that are too high at every place", lambda case: _reached(case, early=-1)
        ),
        L38_STATEMENT.but(
            "... with survivals that are half of D apart", lambda case: _reached(case, within=Fraction(1, 2))
        ),
    ),
)

CLAIMS = (L38,)
