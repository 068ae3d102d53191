"""What acting on wrong confidences costs: bounds on the regret, and how tight they are (L14, L38, L39).

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

from simspec.claims.base import UNMET, Claim, Outcome, Plot, Statement, against
from simspec.claims.plain import number, shown
from simspec.strategies.costs import Curve, affine, rising_costs, staircase
from simspec.strategies.survivals import Conditional, chances, conditionals, grid, survival, tokens_by_outcome


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


def _is_worst(case: Tolerance, formula: Callable[[Tolerance, int], Fraction]) -> Outcome:
    thinkable = [(low, (low + high) / 2, high) for low, high in case.box()]
    true = [rates(p, case.cost, case.bonus) for p in product(*thinkable)]
    for submitted in range(len(case.cost)):
        found = max(max(one) - one[submitted] for one in true)
        if found != formula(case, submitted):
            return against(
                f"{shown(case)}: {submitted} can lose {number(found)}, not {number(formula(case, submitted))}"
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
    formula="max_p max_x rate_p(x) - rate_p(y), over |p_k - q_k| <= e",
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
    ),
)

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

CLAIMS = (L14, L14B, L14C, L38, L39)
