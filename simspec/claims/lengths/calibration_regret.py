"""What acting on wrong confidences costs at most (L14, L14b).

p_k = true chance that place k is accepted once all before it were, q_k = the chance believed; S_j = product
of the first j. A cycle of d places takes T(d) and gives tau(d) = S_1 + .. + S_d tokens, one more with the
bonus; rate(d) = tau(d) / T(d). Acting on q means submitting a length that is best if q is true; its regret is
the best rate under p less its own rate under p, in tokens per unit of time, the worst of q's ties counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.plain import number, shown
from simspec.strategies.costs import Curve, affine, rising_costs, staircase
from simspec.strategies.survivals import Conditional, conditionals, grid, survival, tokens_by_outcome


@dataclass(frozen=True)
class Believed:
    """True chances, believed ones, T(0) .. T(D) and the bonus (0 or 1)."""

    p: Conditional
    q: Conditional
    cost: Curve
    bonus: int


def rates(p: Conditional, cost: Curve, bonus: int) -> tuple[Fraction, ...]:
    """Tokens per unit of time at d = 0..D, tokens averaged over the ways in which a cycle can go."""
    return tuple(n / t for n, t in zip(tokens_by_outcome(p, bonus), cost, strict=True))


def acted_on(case: Believed) -> tuple[Fraction, int, int]:
    """The regret, a length best under p, and the worst of those best under q."""
    true, believed = rates(case.p, case.cost, case.bonus), rates(case.q, case.cost, case.bonus)
    chosen = min((d for d, r in enumerate(believed) if r == max(believed)), key=lambda d: true[d])
    return max(true) - true[chosen], true.index(max(true)), chosen


def widest(p: Conditional, q: Conditional) -> Fraction:
    """The largest |q_k - p_k|."""
    return max(abs(a - b) for a, b in zip(p, q, strict=True))


def grown(e: Fraction, depth: int) -> tuple[Fraction, ...]:
    """1 - (1 - e)^j, j = 1..D: how far survivals can be apart when every chance is off by e at most."""
    return tuple(1 - (1 - e) ** j for j in range(1, depth + 1))


@lru_cache(maxsize=2048)
def bound(cost: Curve, errors: tuple[Fraction, ...]) -> tuple[Fraction, int, int]:
    """Most regret when survival j is off by ``errors[j - 1]`` at most, and the two lengths a < b it is for.

    max over a < b of (1/T(a) - 1/T(b)) (errors of places 1..a) + (errors of places a+1..b) / T(b).
    """
    candidates = []
    for b in range(1, len(cost)):
        for a in range(b):
            shared = (1 / cost[a] - 1 / cost[b]) * sum(errors[:a], Fraction(0))
            candidates.append((shared + sum(errors[a:b], Fraction(0)) / cost[b], a, b))
    return max(candidates, key=lambda one: (one[0], -one[1], -one[2]))


@lru_cache(maxsize=2048)
def largest_shift(cost: Curve, errors: tuple[Fraction, ...]) -> Fraction:
    """How far the difference of two lengths' rates can move if survival j moves by ``errors[j - 1]`` at most.

    Over all x and y: rate(x) - rate(y) is a sum of survivals, each with a weight of 1/T(x) where place j is
    in x, less 1/T(y) where it is in y; every survival moves to the side of its weight.
    """
    most = Fraction(0)
    for x, y in combinations(range(len(cost)), 2):
        weights = (int(j <= x) / cost[x] - int(j <= y) / cost[y] for j in range(1, len(cost)))
        most = max(most, sum((abs(w) * e for w, e in zip(weights, errors, strict=True)), Fraction(0)))
    return most


# L14, L14b

# How far each survival is off at most, and what is claimed of errors of that size: a bound on the regret.
Errors = Callable[[Believed], tuple[Fraction, ...]]
Bound = Callable[[Curve, tuple[Fraction, ...]], Fraction]


def _by_chances(case: Believed) -> tuple[Fraction, ...]:
    return grown(widest(case.p, case.q), len(case.p))


def _by_survivals(case: Believed) -> tuple[Fraction, ...]:
    return (widest(survival(case.p), survival(case.q)),) * len(case.p)


def _not_accumulated(case: Believed) -> tuple[Fraction, ...]:
    return (widest(case.p, case.q),) * len(case.p)


def _g(cost: Curve, errors: tuple[Fraction, ...]) -> Fraction:
    return bound(cost, errors)[0]


def _shared_once(cost: Curve, errors: tuple[Fraction, ...]) -> Fraction:
    """As g, but places that both lengths hold count over T(a), without the 1/T(b) that takes from it."""
    pairs = ((a, b) for b in range(1, len(cost)) for a in range(b))
    return max(
        sum(errors[:a], Fraction(0)) / cost[a] + sum(errors[a:b], Fraction(0)) / cost[b] for a, b in pairs
    )


def _from_nothing(cost: Curve, errors: tuple[Fraction, ...]) -> Fraction:
    """As g for a = 0: the largest error of a single length's rate."""
    return max(sum(errors[:b], Fraction(0)) / cost[b] for b in range(1, len(cost)))


def _within(case: Believed, errors: Errors, most: Bound = _g) -> Outcome:
    """The regret is ``most`` at most, and that is what such errors can do to the difference of two rates."""
    lost, best, chosen = acted_on(case)
    off = errors(case)
    limit, shift = most(case.cost, off), largest_shift(case.cost, off)
    if lost <= limit == shift:
        return None
    told = (
        f"p = {shown(case.p)}, q = {shown(case.q)}, T(0), T(1), .. = {shown(case.cost)}, "
        f"{'with' if case.bonus else 'without'} bonus; survivals off by at most {shown(off)}",
        f"rates: true {shown(rates(case.p, case.cost, case.bonus))}, "
        f"believed {shown(rates(case.q, case.cost, case.bonus))}",
    )
    if lost > limit:
        return against(
            *told,
            f"{chosen} is submitted, {best} is best: {number(lost)} lost, over the bound {number(limit)}",
        )
    return against(
        *told,
        f"such errors move the difference of two rates by up to {number(shift)}; the bound is "
        f"{number(limit)}",
    )


def _nothing_lost(case: Believed) -> Outcome:
    """Where no chances make any length better than 0: the bonus, and T(d) >= (1 + d) T(0) for all d."""
    certain = rates((Fraction(1),) * len(case.p), case.cost, case.bonus)
    if not case.bonus or max(certain) > certain[0]:
        return UNMET
    return _within(case, lambda c: (Fraction(0),) * len(c.p))


def all_believed(level: int) -> Iterator[Believed]:
    one, parts = Fraction(1), (2, 3, 4)[level]
    for depth in (1, 2):
        steep = (one, one, 4 * one)[: depth + 1]
        costs = (affine(one, one, depth), staircase(one, one, 2, depth), steep)
        pairs = product(product(grid(parts), repeat=depth), repeat=2)
        for (p, q), cost, bonus in product(pairs, costs, (0, 1)):
            yield Believed(p, q, cost, bonus)


def all_long(level: int) -> Iterator[Believed]:
    """All places alike, T = 1 + d: with 4 places or more the greatest pair of lengths does not begin at 0."""
    one = Fraction(1)
    for depth, (p, q), bonus in product(range(1, 5 + level), combinations(grid(2), 2), (0, 1)):
        yield Believed((p,) * depth, (q,) * depth, affine(one, one, depth), bonus)


@st.composite
def believed(draw: st.DrawFn) -> Believed:
    """Also q near p, where lengths are close to tied."""
    p = draw(conditionals(longest=7))
    if draw(st.booleans()):
        q = draw(conditionals(longest=len(p), shortest=len(p)))
    else:
        shifts = draw(st.lists(st.integers(-5, 5), min_size=len(p), max_size=len(p)))
        q = tuple(
            min(Fraction(1), max(Fraction(0), a + Fraction(s, 50))) for a, s in zip(p, shifts, strict=True)
        )
    return Believed(p, q, draw(rising_costs(len(p))), draw(st.integers(0, 1)))


L14_STATEMENT = Statement(
    words=(
        "If every believed chance is within e of the true one and the cost never falls, the rate lost by "
        "acting on the beliefs is at most g(e), which depends on e and the cost curve only: the most that "
        "survivals off by 1 - (1 - e)^j can move the difference of two lengths' rates"
    ),
    formula=(
        "T(0) <= T(1) <= ..: regret <= g(e) = max_{a<b} (1/T(a) - 1/T(b)) sum_{j<=a} D_j + (1/T(b)) "
        "sum_{a<j<=b} D_j with D_j = 1 - (1 - e)^j; g(e) = max_{x,y} sum_j D_j |[j<=x]/T(x) - [j<=y]/T(y)|"
    ),
    rule=lambda case: _within(case, _by_chances),
    over=(
        "all p and q of 1 and 2 places in thirds with T = 1 + d, a staircase and 1, 1, 4, with and without "
        "bonus; random p and q of up to 7 places with affine, convex, concave, staircase and measured costs "
        "that never fall"
    ),
    domain=believed(),
    every=all_believed,
    examples=120,
)
L14 = Claim(
    id="L14",
    source="derived, for Assumption 3.7 of LibraSpec (2608.08721)",
    statement=L14_STATEMENT,
    expected="holds",
    because=(
        "Let E_j be the believed survival j less the true one. (1) |E_j| <= 1 - (1 - e)^j: take the larger "
        "and the smaller of p_k and q_k at each place, which only widens the difference of the two "
        "products; moving both up together by the same amount until the larger is 1 widens it further; then "
        "it is 1 - (1 - e)^j at most. (2) Let x be best under p and y under q. rate_p(x) - rate_p(y) = "
        "[rate_q(x) - rate_q(y)] + sum_{j<=y} E_j / T(y) - sum_{j<=x} E_j / T(x), and the bracket is 0 or "
        "less. With a the shorter and b the longer of the two, places up to a stand in both sums, with "
        "1/T(a) - 1/T(b) >= 0 left of them up to sign, and places a+1..b in one, over T(b): each weight's "
        "size times D_j, summed, is the most that E_j of size D_j can give, so for sums of that kind g is "
        "exact; whether the regret gets there is L39. For T = T0 + c d and D_j <= D this is 2 D / c at "
        "most, whatever T0."
    ),
    broken=(
        L14_STATEMENT.but(
            "... as if e were how far survivals are off (errors do not add up along the block)",
            lambda case: _within(case, _not_accumulated),
        ),
        L14_STATEMENT.but(
            "... counting only the error of one length's rate",
            lambda case: _within(case, _by_chances, _from_nothing),
        ),
        L14_STATEMENT.but(
            "... counting places that both lengths hold over T(a) in full",
            lambda case: _within(case, _by_chances, _shared_once),
        ),
    ),
)
L14B_STATEMENT = L14_STATEMENT.but(
    "If every believed survival p_1 .. p_j is within D of the true one and the cost never falls, the rate "
    "lost is at most g_S(D), the most that survivals off by D can move the difference of two lengths' rates",
    lambda case: _within(case, _by_survivals),
    formula=(
        "T(0) <= T(1) <= ..: regret <= g_S(D) = D max_{a<b} [ a / T(a) + (b - 2 a) / T(b) ]; g_S(D) = D "
        "max_{x,y} sum_j |[j<=x]/T(x) - [j<=y]/T(y)|"
    ),
)
L14B = Claim(
    id="L14b",
    source="derived, for Assumption 3.7 of LibraSpec (2608.08721)",
    statement=L14B_STATEMENT,
    expected="holds",
    because=(
        "As for L14 from (2) on, with |E_j| <= D for every j. For T = T0 + c d without the bonus, or with "
        "it and T0 > c, no smaller bound will do for small D (L38). With the bonus and T0 < c nothing can "
        "be lost at all, as no length is better than 0 whatever the chances, and g_S says too much."
    ),
    broken=(
        L14B_STATEMENT.but(
            "... counting only the error of one length's rate",
            lambda case: _within(case, _by_survivals, _from_nothing),
            every=all_long,
        ),
        L14B_STATEMENT.but(
            "... counting places that both lengths hold over T(a) in full",
            lambda case: _within(case, _by_survivals, _shared_once),
        ),
        L14B_STATEMENT.but(
            "... as if each survival were off only by what its own chance is, over survival 1",
            lambda case: _within(case, lambda c: (abs(c.p[0] - c.q[0]),) * len(c.p)),
        ),
        L14B_STATEMENT.but(
            "Where no chances make any length better than 0 (bonus, T(d) >= (1 + d) T(0)) nothing is lost, "
            "whichever of the lengths that tie is submitted",
            _nothing_lost,
        ),
    ),
)

CLAIMS = (L14, L14B)
