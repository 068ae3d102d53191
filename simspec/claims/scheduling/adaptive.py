"""What adapting to the kind of a cycle can gain over one scheme for all (S47 to S49).

Cycles are drawn afresh, and every policy that sees the kind is enumerated. On a text they are not: S47b.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.plain import number, shown
from simspec.claims.scheduling.kinds import ONE, Kinds, random_kinds
from simspec.strategies.costs import affine, rising_costs
from simspec.strategies.survivals import chances, grid, survival
from simspec.theory import renewal

# S47, S48, S49: what adapting can gain


@dataclass(frozen=True)
class Schemes:
    """Schemes of any sort (chains, lengths) in kinds of cycles.

    Attributes:
        weights: how often each kind comes.
        tokens: expected tokens, shape (kinds, schemes); the first scheme is plain decoding, 1 token.
        seconds: of a cycle, for each scheme; none is shorter than plain decoding's.
    """

    weights: tuple[Fraction, ...]
    tokens: tuple[tuple[Fraction, ...], ...]
    seconds: tuple[Fraction, ...]


def gain(case: Schemes, dearer: int = 1) -> tuple[Fraction, Fraction]:
    """Speedups over plain decoding: of the best policy that sees the kind (all are tried), and of the
    best single scheme.

    Args:
        dearer: in every kind but the first, what a cycle takes beyond a plain step is so many times as much.
    """
    kinds, schemes, plain = len(case.weights), range(len(case.seconds)), case.seconds[0]
    made = [[w * x for x in row] for w, row in zip(case.weights, case.tokens, strict=True)]
    taken = [
        [w * (plain + (dearer if i else 1) * (t - plain)) for t in case.seconds]
        for i, w in enumerate(case.weights)
    ]

    def speedup(choice: tuple[int, ...]) -> Fraction:
        tokens = sum((made[i][k] for i, k in enumerate(choice)), Fraction(0))
        return plain * tokens / sum(taken[i][k] for i, k in enumerate(choice))

    adaptive = max(speedup(choice) for choice in product(schemes, repeat=kinds))
    return adaptive, max(speedup((k,) * kinds) for k in schemes)


def _of_lengths(case: Kinds) -> Schemes:
    return Schemes(case.weights, tuple(map(tuple, case.tokens)), case.seconds[0])


def _within(case: Schemes, bound: Fraction, squared: bool = False, dearer: int = 1) -> Outcome:
    adaptive, static = gain(case, dearer)
    more = adaptive - static
    if (more**2 if squared else more) <= bound:
        return None
    name = "square of the bound" if squared else "bound"
    return against(
        *(
            f"kind {i} of cycles, weight {weight}: the schemes make {shown(tuple(row))} tokens"
            for i, (weight, row) in enumerate(zip(case.weights, case.tokens, strict=True), 1)
        ),
        f"a cycle of each takes {shown(case.seconds)} s, plain decoding first"
        + (f"; in all kinds but the first what is more than that is {dearer} times as much" * (dearer > 1)),
        f"speedup of the best choice by kind {number(adaptive)}, of the best single scheme {number(static)}: "
        f"{number(more)} more; {name} {number(bound)}",
    )


def _excess_bounds(case: Schemes, share: Fraction = ONE, dearer: int = 1) -> Outcome:
    return _within(case, share * renewal.excess(case.weights, case.tokens), dearer=dearer)


def _spread_bounds(case: Kinds, share: Fraction = ONE) -> Outcome:
    survivals = [survival(p) for p in case.accepted]
    return _within(_of_lengths(case), share * renewal.spread(case.weights, survivals))


def _variance_bounds(
    case: Kinds, share: Fraction = ONE, places: int | None = None, order: int = 2
) -> Outcome:
    """Args:
    share: of the first bound, that is claimed.
    places: of the block, that it counts.
    order: of 1 - r in the second bound.
    """
    rates = [p[0] for p in case.accepted]
    if any(set(p) != {p[0]} for p in case.accepted):
        return UNMET
    depth = len(case.accepted[0]) if places is None else places
    bound = share**2 * renewal.spread_squared_at_most(case.weights, rates, depth)
    if max(rates) < 1:
        limit = renewal.variance(case.weights, rates) / 4 / (1 - max(rates)) ** (2 * order)
        if bound > limit:
            return against(
                f"rates {shown(tuple(rates))}, weights {shown(case.weights)}, {depth} drafts: square of the "
                f"first bound {number(bound)}, of the second {number(limit)}"
            )
    return _within(_of_lengths(case), bound, squared=True)


def _constant_kinds(level: int) -> Iterator[Kinds]:
    """Two kinds with one rate each; verification costs what the mean kind just repays, or a third of it."""
    for depth, weight in product((1, 2, 3)[: 2 + level // 2], (1, 3)):
        for low, high in product(grid(10)[: 6 + 3 * level], repeat=2):
            if low >= high:
                continue
            mean = (weight * low + high) / (weight + 1)
            for slope in (mean, mean / 3):
                weights = (Fraction(weight), ONE)
                yield Kinds(weights, ((low,) * depth, (high,) * depth), (affine(ONE, slope, depth),))


@st.composite
def _random_schemes(draw: st.DrawFn) -> Schemes:
    kinds, schemes = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    weights = draw(st.lists(st.integers(1, 8), min_size=kinds, max_size=kinds))
    plain = draw(st.integers(1, 20))
    more = st.builds(Fraction, st.integers(10, 60), st.just(10))
    tokens = tuple((ONE, *(draw(more) for _ in range(schemes))) for _ in range(kinds))
    seconds = (plain, *(plain + draw(st.integers(0, 40)) for _ in range(schemes)))
    return Schemes(tuple(map(Fraction, weights)), tokens, tuple(map(Fraction, seconds)))


@st.composite
def _random_constant(draw: st.DrawFn) -> Kinds:
    count, depth = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    weights = draw(st.lists(st.integers(1, 8), min_size=count, max_size=count))
    rates = draw(st.lists(chances(), min_size=count, max_size=count))
    return Kinds(
        tuple(map(Fraction, weights)), tuple((a,) * depth for a in rates), (draw(rising_costs(depth)),)
    )


TIGHT = Fraction(19, 20)
ADAPTIVE = "any adaptive scheme over a fixed candidate set, such as SpecRouter's (2505.07680); new here"
S47_STATEMENT = Statement(
    words=(
        "Where each cycle's kind is drawn afresh, whatever was chosen before, and a cycle's time depends on "
        "the scheme alone, plain decoding being the shortest: however a scheduler chooses among schemes, its "
        "speedup over plain decoding exceeds the best single scheme's by at most the mean, over kinds, of "
        "how many tokens a kind is ahead of the average where it is most"
    ),
    formula=(
        "kinds i.i.d. with weights w_i, T_k >= T_0  =>  speedup_adaptive - speedup_static <= sum_i w_i max_k "
        "(X_ik - mean X_k)"
    ),
    rule=_excess_bounds,
    over=(
        "two kinds with rates in tenths, up to 2 drafts (3 at the greatest effort), cost at and below "
        "break-even; random ones with up to 3 kinds and 3 schemes besides plain decoding; all policies of "
        "each that see the kind"
    ),
    domain=_random_schemes(),
    every=lambda level: map(_of_lengths, _constant_kinds(level)),
    examples=100,
)
S47 = Claim(
    id="S47",
    source=ADAPTIVE,
    statement=S47_STATEMENT,
    expected="holds",
    because=(
        "Let the policy take k(i) in kind i, at rate R; r is the best static rate. Then sum w_i (X_ik(i) - "
        "r T_k(i)) = (R - r) E[T]. As r is the best, mean X_k <= r T_k for every k, so the left side is at "
        "most sum w_i (X_ik(i) - mean X_k(i)). E[T] >= T_0, the plain step; speedup is rate times T_0. A "
        "policy that uses more than the kind gains nothing: kinds are drawn afresh. On a text what is chosen "
        "decides what comes next, and none of this holds (S47b)."
    ),
    broken=(
        S47_STATEMENT.but(
            "... at most 19/20 of that: the bound is sharp where acceptance is low and verification just "
            "breaks even",
            partial(_excess_bounds, share=TIGHT),
        ),
        S47_STATEMENT.but(
            "... even if what a cycle takes beyond a plain step is ten times as much in all kinds but the "
            "first",
            partial(_excess_bounds, dearer=10),
        ),
    ),
)
S48_STATEMENT = Statement(
    words=(
        "Under the premise of S47 (each cycle's kind drawn afresh, its time settled by its length), however "
        "draft lengths are chosen, the speedup exceeds the best static length's by at most half the mean "
        "absolute deviation of survival over kinds, summed over the places of the block"
    ),
    formula="kinds i.i.d.  =>  speedup_adaptive - speedup_static <= 1/2 sum_{j<=D} E|S_j - E S_j|",
    rule=_spread_bounds,
    over=(
        "two kinds with rates in tenths, up to 2 drafts (3 at the greatest effort), cost at and below "
        "break-even; random ones with up to 3 kinds, 3 drafts and any rising cost; all policies of each that "
        "see the kind"
    ),
    domain=random_kinds(),
    every=_constant_kinds,
    examples=100,
)
S48 = Claim(
    id="S48",
    source=ADAPTIVE,
    statement=S48_STATEMENT,
    expected="holds",
    because=(
        "S47 with X_i(d) = 1 + S_i1 + .. + S_id: X_i(d) - mean X(d) is at most the sum of the positive "
        "parts of S_ij - mean S_j, and the mean positive part of a deviation is half its mean absolute "
        "value. Sharp: one place, probability h or 0 equally often, cost 1 + d h/2: 1/(1 + h/4) of the "
        "bound is reached, all of it as h -> 0."
    ),
    broken=(
        S48_STATEMENT.but("... by at most 19/20 of that", partial(_spread_bounds, share=TIGHT)),
        S48_STATEMENT.but(
            "... of that at the first place only",
            lambda case: _within(
                _of_lengths(case), renewal.spread(case.weights, [p[:1] for p in case.accepted])
            ),
        ),
    ),
)
S49_STATEMENT = Statement(
    words=(
        "Under the premise of S47, and where each kind has one acceptance rate, r at most, choosing lengths "
        "gains at most half the standard deviation of the rate times 1 + 2r + 3r^2 + ... + D r^(D-1); that "
        "sum is at most 1/(1-r)^2 where r < 1"
    ),
    formula=(
        "kinds i.i.d.  =>  speedup_adaptive - speedup_static <= 1/2 sd(a) sum_{j<=D} j r^(j-1)  (<= sd(a) / "
        "(2 (1 - r)^2) if r < 1)"
    ),
    rule=_variance_bounds,
    over=f"{S48_STATEMENT.over}; the same rate at every place",
    domain=_random_constant(),
    every=_constant_kinds,
    examples=100,
)
S49 = Claim(
    id="S49",
    source=ADAPTIVE,
    statement=S49_STATEMENT,
    expected="holds",
    because=(
        "S48 with S_j = a^j. On [0, r] a^j has slope at most j r^(j-1), so sd(a^j) <= j r^(j-1) sd(a): Var "
        "f(a) is half the mean of (f(a) - f(a'))^2 over independent a, a'. And a mean absolute deviation is "
        "at most the standard deviation. The sum without end of j r^(j-1) is 1/(1-r)^2. Compared as "
        "squares, in fractions."
    ),
    broken=(
        S49_STATEMENT.but("... by at most 19/20 of that", partial(_variance_bounds, share=TIGHT)),
        S49_STATEMENT.but("... of that at the first place only", partial(_variance_bounds, places=1)),
        S49_STATEMENT.but("... that sum is at most 1/(1-r) where r < 1", partial(_variance_bounds, order=1)),
    ),
)

CLAIMS = (S47, S48, S49)
