"""What acting on wrong confidences costs at most (L14, L14b).

p_k = true chance that place k is accepted once all before it were, q_k = the chance believed; S_j = product
of the first j. A cycle of d places takes T(d) and gives tau(d) = S_1 + .. + S_d tokens, one more with the
bonus; rate(d) = tau(d) / T(d). Acting on q means submitting a length that is best if q is true; its regret is
the best rate under p less its own rate under p, in tokens per unit of time, the worst of q's ties counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
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


def bound(cost: Curve, errors: Sequence[Fraction]) -> tuple[Fraction, int, int]:
    """Most regret when survival j is off by ``errors[j - 1]`` at most, and the two lengths a < b it is for.

    max over a < b of (1/T(a) - 1/T(b)) (errors of places 1..a) + (errors of places a+1..b) / T(b).
    """
    candidates = []
    for b in range(1, len(cost)):
        for a in range(b):
            shared = (1 / cost[a] - 1 / cost[b]) * sum(errors[:a], Fraction(0))
            candidates.append((shared + sum(errors[a:b], Fraction(0)) / cost[b], a, b))
    return max(candidates, key=lambda one: (one[0], -one[1], -one[2]))


# L14, L14b


def _conditional_bound(case: Believed) -> Fraction:
    return bound(case.cost, grown(widest(case.p, case.q), len(case.p)))[0]


def _survival_bound(case: Believed) -> Fraction:
    apart = widest(survival(case.p), survival(case.q))
    return bound(case.cost, (apart,) * len(case.p))[0]


def _not_accumulated(case: Believed) -> Fraction:
    return bound(case.cost, (widest(case.p, case.q),) * len(case.p))[0]


def _chosen_only(errors: Callable[[Believed], Sequence[Fraction]]) -> Callable[[Believed], Fraction]:
    def of(case: Believed) -> Fraction:
        chosen = acted_on(case)[2]
        return sum(errors(case)[:chosen], Fraction(0)) / case.cost[chosen]

    return of


def _within(case: Believed, most: Callable[[Believed], Fraction]) -> Outcome:
    lost, best, chosen = acted_on(case)
    if lost <= most(case):
        return None
    return against(
        f"p = {shown(case.p)}, q = {shown(case.q)}, T(0), T(1), .. = {shown(case.cost)}, bonus {case.bonus}",
        f"rates: true {shown(rates(case.p, case.cost, case.bonus))}, "
        f"believed {shown(rates(case.q, case.cost, case.bonus))}",
        f"{chosen} is submitted, {best} is best: {number(lost)} lost, over the bound {number(most(case))}",
    )


def all_believed(level: int) -> Iterator[Believed]:
    one, parts = Fraction(1), (2, 3, 4)[level]
    for depth in (1, 2):
        costs = [affine(Fraction(fixed), one, depth) for fixed in (1, 3)]
        costs.append(staircase(one, one, 2, depth))
        pairs = product(product(grid(parts), repeat=depth), repeat=2)
        for (p, q), cost, bonus in product(pairs, costs, (0, 1)):
            yield Believed(p, q, cost, bonus)


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
        "If every believed chance is within e of the true one, the rate lost by acting on the beliefs is at "
        "most g(e), which depends on e and the cost curve only"
    ),
    formula=(
        "g(e) = max_{a<b} (1/T(a) - 1/T(b)) sum_{j<=a} D_j + (1/T(b)) sum_{a<j<=b} D_j with D_j = 1 - (1 - "
        "e)^j"
    ),
    rule=lambda case: _within(case, _conditional_bound),
    over=(
        "all p and q of 1 and 2 places in thirds with three cost curves, with and without bonus; random p "
        "and q of up to 7 places with affine, convex, concave, staircase and measured costs that never fall"
    ),
    domain=believed(),
    every=all_believed,
    examples=200,
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
        "1/T(a) - 1/T(b) >= 0 left of them up to sign, and places a+1..b in one, over T(b). For T = T0 + c "
        "d and D_j <= D this is 2 D / c at most, whatever T0."
    ),
    broken=(
        L14_STATEMENT.but(
            "... as if e were how far survivals are off (errors do not add up along the block)",
            lambda case: _within(case, _not_accumulated),
        ),
        L14_STATEMENT.but(
            "... counting only the error of the rate at the length that is submitted",
            lambda case: _within(case, _chosen_only(lambda case: grown(widest(case.p, case.q), len(case.p)))),
        ),
    ),
)
L14B_STATEMENT = L14_STATEMENT.but(
    "If every believed survival p_1 .. p_j is within D of the true one, the rate lost is at most g_S(D)",
    lambda case: _within(case, _survival_bound),
    formula="g_S(D) = D max_{a<b} [ a / T(a) + (b - 2 a) / T(b) ]",
)
L14B = Claim(
    id="L14b",
    source="derived, for Assumption 3.7 of LibraSpec (2608.08721)",
    statement=L14B_STATEMENT,
    expected="holds",
    because="As for L14 from (2) on, with |E_j| <= D for every j. L38 shows that no smaller bound will do.",
    broken=(
        L14B_STATEMENT.but(
            "... counting only the error of the rate at the length that is submitted",
            lambda case: _within(
                case,
                _chosen_only(lambda case: (widest(survival(case.p), survival(case.q)),) * len(case.p)),
            ),
        ),
        L14B_STATEMENT.but(
            "... at most nine tenths of that",
            lambda case: _within(case, lambda c: _survival_bound(c) * 9 / 10),
        ),
    ),
)

CLAIMS = (L14, L14B)
