"""How tight the bounds on the regret of wrong confidences are (L38, L39).

p_k = true chance that place k is accepted once all before it were, q_k = the chance believed; S_j = product
of the first j. A cycle of d places takes T(d) and gives tau(d) = S_1 + .. + S_d tokens, one more with the
bonus; rate(d) = tau(d) / T(d). Acting on q means submitting a length that is best if q is true; its regret is
the best rate under p less its own rate under p, in tokens per unit of time, the worst of q's ties counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Plot, Statement, against
from simspec.claims.lengths.calibration_regret import Believed, acted_on, bound, grown, rates, widest
from simspec.claims.plain import number, shown
from simspec.strategies.costs import Curve, affine
from simspec.strategies.survivals import Conditional, grid, survival

# L38


@dataclass(frozen=True)
class Margin:
    """T(d) = ``fixed`` + d for d = 0..``depth``; survivals off by ``apart``."""

    fixed: Fraction
    depth: int
    bonus: int
    apart: Fraction

    def cost(self) -> Curve:
        return affine(self.fixed, Fraction(1), self.depth)


def conditional(survivals: Sequence[Fraction]) -> Conditional:
    """Chances whose products are these survivals; 0 once there is no survivor."""
    before = (Fraction(1), *survivals)
    return tuple(s / b if b else Fraction(0) for s, b in zip(survivals, before, strict=False))


def worst_pair(case: Margin) -> Believed | None:
    """p and q for which lengths a and b of the bound tie under q, and part as far as can be under p."""
    _, a, b = bound(case.cost(), (case.apart,) * case.depth)
    after, gap = [Fraction(0)] * (case.depth - b), case.apart
    if a == 0 and not case.bonus:
        survivals = ([gap] * b + after, [Fraction(0)] * case.depth)
    else:
        # With the bonus, no survival that ties can be below that which ties with length 0.
        late = max(gap, 1 / case.fixed) if case.bonus else gap
        early = (late * (case.fixed + a) - case.bonus) / a if a else late
        if early + gap * bool(a) > 1 or (a == 0 and gap > 1 / case.fixed):
            return None
        survivals = (
            [early + gap] * a + [late - gap] * (b - a) + after,
            [early] * a + [late] * (b - a) + after,
        )
    p, q = map(conditional, survivals)
    return Believed(p, q, case.cost(), case.bonus)


def _reached(case: Margin, share: Fraction) -> Outcome:
    pair = worst_pair(case)
    if pair is None:
        return UNMET
    apart = widest(survival(pair.p), survival(pair.q))
    lost, most = acted_on(pair)[0], bound(case.cost(), (apart,) * case.depth)[0]
    if apart == case.apart and lost >= share * most:
        return None
    return against(
        f"{shown(case)}: p = {shown(pair.p)}, q = {shown(pair.q)}, survivals {number(apart)} apart",
        f"lost {number(lost)}, bound {number(most)}",
    )


def all_margins(level: int) -> Iterator[Margin]:
    for depth, fixed, bonus in product(range(1, 5 + 2 * level), (1, 2, 5, 20), (0, 1)):
        for parts in (20, 50):
            yield Margin(Fraction(fixed), depth, bonus, Fraction(1, parts))


L38_STATEMENT = Statement(
    words=(
        "The bound on survivals cannot be improved: for every affine cost there are p and q, D apart in "
        "survival, for which acting on q loses just that (D small enough for the pair to exist)"
    ),
    formula="max over |E_j| <= D of the regret = g_S(D), for T = T0 + c d",
    rule=lambda case: _reached(case, Fraction(1)),
    over="T0 of 1, 2, 5, 20, up to 6 places, D of 1/20 and 1/50, with and without bonus; random ones",
    domain=st.builds(
        Margin,
        st.builds(Fraction, st.integers(4, 80), st.just(4)),
        st.integers(1, 8),
        st.integers(0, 1),
        st.builds(Fraction, st.just(1), st.integers(8, 100)),
    ),
    every=all_margins,
    examples=60,
)
L38 = Claim(
    id="L38",
    source="derived, for claim L14",
    statement=L38_STATEMENT,
    expected="holds",
    because=(
        "Let a < b be the pair that g_S is for. Believed survivals: one level up to a, a lower one s = c "
        "rate(a) from a + 1 to b, so that all lengths from a to b tie, and nothing after. The true ones are "
        "D above on places 1..a and D below on a+1..b: that changes rate(a) by D a / T(a) and rate(b) by "
        "D (2 a - b) / T(b). Submitting b loses the first less the second. Without a bonus and with a = 0, "
        "q = 0 makes all lengths tie."
    ),
    broken=(L38_STATEMENT.but("It is exceeded by a tenth", lambda case: _reached(case, Fraction(11, 10))),),
)

# L39


@dataclass(frozen=True)
class Corner:
    """T(d) = ``fixed`` + d, d = 0..``depth``; chances in multiples of 1/``parts``."""

    fixed: Fraction
    depth: int
    bonus: int
    parts: int


def largest_share(case: Corner) -> dict[Fraction, tuple[Fraction, Believed]]:
    """For each e > 0 the largest regret / g(e) among all p, q within e, and the pair that has it."""
    cost = affine(case.fixed, Fraction(1), case.depth)
    curves = list(product(grid(case.parts), repeat=case.depth))
    known = {p: rates(p, cost, case.bonus) for p in curves}
    most = {e: bound(cost, grown(e, case.depth))[0] for e in grid(case.parts, zero=False)}
    lost: dict[Fraction, tuple[Fraction, Believed]] = {}
    for q in curves:
        chosen = [d for d, rate in enumerate(known[q]) if rate == max(known[q])]
        for p in curves:
            e = widest(p, q)
            regret = max(known[p]) - min(known[p][d] for d in chosen)
            if e and (e not in lost or regret > lost[e][0]):
                lost[e] = regret, Believed(p, q, cost, case.bonus)
    shares: dict[Fraction, tuple[Fraction, Believed]] = {}
    for e in sorted(lost):  # whoever is within a smaller e is within this one
        within = max((lost[f] for f in lost if f <= e), key=lambda one: one[0])
        shares[e] = within[0] / most[e], within[1]
    return shares


def _reached_somewhere(case: Corner) -> Outcome:
    shares = largest_share(case)
    e = max(shares, key=lambda one: shares[one][0])
    share, pair = shares[e]
    if share == 1:
        return None
    return against(
        f"T(d) = {case.fixed} + d, {case.depth} places in multiples of 1/{case.parts}, bonus {case.bonus}",
        f"the most that is reached is {number(share)} of the bound, at e = {e}, p = {shown(pair.p)}, "
        f"q = {shown(pair.q)}",
        "largest share for each e: " + ", ".join(f"{e}: {float(shares[e][0]):.3f}" for e in shares),
    )


def _reached_by_sure(case: Margin) -> Outcome:
    e, cost = case.apart, case.cost()
    most = bound(cost, grown(e, case.depth))[0]
    pair = Believed((1 - e,) * case.depth, (Fraction(1),) * case.depth, cost, case.bonus)
    lost = acted_on(pair)[0]
    return None if lost == most else against(f"{shown(case)}: lost {number(lost)}, bound {number(most)}")


def _shares(case: Corner) -> Plot:
    both = {bonus: largest_share(Corner(case.fixed, case.depth, bonus, case.parts)) for bonus in (1, 0)}
    return Plot(
        f"How much of the bound is reached (T = {case.fixed} + d, {case.depth} places)",
        "line",
        "e, how far each chance may be off",
        "largest regret / bound",
        tuple(float(e) for e in both[1]),
        {
            "with bonus": tuple(float(share) for share, _ in both[1].values()),
            "without bonus": tuple(float(share) for share, _ in both[0].values()),
        },
    )


def all_corners(level: int) -> Iterator[Corner]:
    for depth, parts in ((2, 3 + level), (3, 2 + level // 2)):
        for fixed, bonus in product((1, 2, 5, 20), (0, 1)):
            yield Corner(Fraction(fixed), depth, bonus, parts)


L39 = Claim(
    id="L39",
    source="derived, for claim L14",
    statement=Statement(
        words="The bound on conditional chances is reached for every affine cost, at some e",
        formula="max over e and |p_k - q_k| <= e of regret / g(e) = 1",
        rule=_reached_somewhere,
        over="2 and 3 places, chances on a grid, T0 of 1, 2, 5 and 20, with and without bonus: all p and q",
        every=all_corners,
    ),
    expected="refuted",
    because=(
        "Equality needs a tie under q and each error at full size. Past the first place 1 - (1 - e)^j is "
        "full size only if one of p and q is 1 at all places and the other 1 - e; so all errors have one "
        "sign, and the pair of lengths must be 0 and b. With the bonus and b > 1: if q = 1, lengths 0 and b "
        "tie only where T0 = c; if q = 1 - e, its survivals fall, and where 0 and b tie a length between "
        "them is better. Without the bonus, q = 0 and e = 1. So the grid misses no pair that reaches the "
        "bound; how near others come is a lower estimate. For given q the exact answer is L14c."
    ),
    pinned=Corner(Fraction(2), 2, 1, 4),
    repaired=Statement(
        words=(
            "With T(d) = c (1 + d), the bonus and up to 3 places it is reached at every e, by q = 1 and p = "
            "1 - e"
        ),
        formula="regret = sum_{j<=D} (1 - (1 - e)^j) / (c (1 + D)) = g(e)",
        rule=_reached_by_sure,
        over="e = 1/n with n up to 30, and up to 3 places",
        every=lambda level: (
            Margin(Fraction(1), depth, 1, Fraction(1, n)) for depth in range(1, 4) for n in range(1, 31)
        ),
    ),
    plot=_shares,
)

CLAIMS = (L38, L39)
