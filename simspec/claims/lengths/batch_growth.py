"""How the best length moves with the batch (L23).

p_k = probability that draft k is accepted given that those before it were; tau_d = expected tokens of a
request's cycle that submits d drafts; B requests alike; the best length maximises B tau_d over the time of
the batch's cycle. Where several lengths are best, the shortest and the longest of them are both looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.lengths.blocks import listed
from simspec.claims.lengths.ties import (
    Best,
    Reading,
    as_found,
    best,
    longest_after,
    never_rises,
    shortest_before,
    told,
)
from simspec.claims.plain import shown
from simspec.strategies.costs import Curve, amounts, concave_costs, convex_costs
from simspec.strategies.survivals import Conditional, all_conditionals, conditionals, grid, tokens_by_outcome

# L23: cost of the batch's tokens


@dataclass(frozen=True)
class Batched:
    """Requests alike: chances p_1 .. p_D, and ``step``, the time of a forward over 1, 2, 3, .. tokens."""

    p: Conditional
    step: Curve
    bonus: int = 1

    def batches(self) -> range:
        """Batches whose longest forward is still told."""
        return range(1, len(self.step) // (len(self.p) + 1) + 1)

    def best(self) -> list[Best]:
        """Best lengths for each batch: a request of d drafts is d + 1 tokens of the forward."""
        tokens = tokens_by_outcome(self.p, self.bonus)
        sizes = range(1, len(tokens) + 1)
        return [best(tokens, [self.step[batch * size - 1] for size in sizes]) for batch in self.batches()]


def _shorter_in_larger(read: Reading = as_found) -> Callable[[Batched], Outcome]:
    def rule(case: Batched) -> Outcome:
        found = case.best()
        if never_rises(found, read):
            return None
        return against(
            f"draft k is accepted, given all before it were, with probability {shown(case.p)}",
            f"expected tokens of a request, {'with' if case.bonus else 'without'} the target's own: "
            + listed(tokens_by_outcome(case.p, case.bonus)),
            f"time of a forward over 1, 2, 3, .. tokens: {listed(case.step)}",
            "d drafts for each of B requests are B (d + 1) tokens",
            f"best number of drafts by batch: {told(case.batches(), found)}",
        )

    return rule


def _batched(step: Callable[[int], st.SearchStrategy[Curve]], bonus: int = 1) -> st.SearchStrategy[Batched]:
    def of(p: Conditional) -> st.SearchStrategy[Batched]:
        return st.builds(Batched, st.just(p), step(5 * (len(p) + 1) - 1), st.just(bonus))

    return conditionals(longest=4).flatmap(of)


def _lines_of(
    step: Callable[[int, int, int, int], int], bonus: int = 1
) -> Callable[[int], Iterator[Batched]]:
    """All small cases with f(x) = step(x, overhead, floor, start) and x up to 5 requests' tokens."""

    def every(level: int) -> Iterator[Batched]:
        for p in all_conditionals(2 + level // 2, grid(2 + level)):
            for overhead in (0, 1, 3):
                for floor in (1, 2, 4, 6):
                    for start in (0, 1, 3):
                        tokens = range(1, 5 * (len(p) + 1) + 1)
                        times = tuple(Fraction(step(x, overhead, floor, start)) for x in tokens)
                        yield Batched(p, times, bonus)

    return every


def _roofline(x: int, overhead: int, floor: int, start: int) -> int:
    """A floor (memory-bound), then x - start, and one more piece twice as steep past 8 tokens."""
    return overhead + max(floor, x - start, 2 * x - start - 8)


@st.composite
def _padded(draw: st.DrawFn, depth: int) -> Curve:
    tread, fixed = draw(st.integers(2, 5)), draw(amounts(1))
    return tuple(fixed + -(-(x + 1) // tread) for x in range(depth + 1))


@st.composite
def _any_convex(draw: st.DrawFn, depth: int) -> Curve:
    """Convex curves of a few straight pieces."""
    kinks = sorted(draw(st.lists(st.integers(0, depth), max_size=3)))
    slopes = sorted(draw(st.lists(amounts(), min_size=len(kinks) + 1, max_size=len(kinks) + 1)))
    rises = [slopes[sum(kink <= x for kink in kinks)] for x in range(depth)]
    return tuple(accumulate(rises, initial=draw(amounts(1))))


@st.composite
def _falling_first(draw: st.DrawFn, depth: int) -> Curve:
    """Convex curves that fall to begin with, and stay above 0."""
    rises = sorted(draw(st.lists(st.integers(-8, 4), min_size=depth, max_size=depth)))
    curve = list(accumulate(map(Fraction, rises), initial=Fraction(0)))
    lift = draw(amounts(1)) - min(curve)
    return tuple(t + lift for t in curve)


L23_STATEMENT = Statement(
    words=(
        "With the bonus, the best length never grows with the batch if a forward's time is a convex "
        "function of its tokens, as an affine cost and a roofline are"
    ),
    formula=(
        "T_B(d) = f(B (d + 1)), f > 0 convex, tau_d = 1 + S_1 + .. + S_d  =>  argmax_d "
        "tau_d/T_B(d) never rises with B   (of several best lengths the shortest and the longest)"
    ),
    rule=_shorter_in_larger(),
    over=(
        "all blocks of up to 2 places with chances in thirds (smallest effort: 0, 1/2, 1; largest: 3 places, "
        "quarters), forwards with an overhead of 0, 1, 3, a floor of 1, 2, 4, 6 and two slopes, B = 1 .. 5; "
        "random convex costs (a few straight pieces, any, or falling at first) and blocks of up to 4 places"
    ),
    domain=st.one_of(_batched(_any_convex), _batched(convex_costs), _batched(_falling_first)),
    every=_lines_of(_roofline),
    examples=60,
)
L23 = Claim(
    id="L23",
    source="serving folklore; the cost models of TurboSpec (2406.14066) and SpecDecode-Bench (2601.11580)",
    statement=L23_STATEMENT,
    expected="holds",
    because=(
        "Affine: tau_d/(T0 + c B (d+1)), d < e: e is at least as good as d exactly if F (tau_e - tau_d) >= "
        "tau_d (e+1) - tau_e (d+1), F = T0/(c B). The left side falls with B, so an e that has lost to a "
        "shorter length stays beaten. Convex f: let E(x) = x f'(x)/f(x). While the tangent at x meets the "
        "axis at or above 0, E <= 1 and E rises; once below, it stays below, and E > 1. The ratio "
        "f(B(e+1))/f(B(d+1)) rises with B unless E(B(e+1)) < E(B(d+1)), which needs E(B(d+1)) > 1; then the "
        "ratio exceeds (e+1)/(d+1) for this B and all larger ones, and that is at least tau_e/tau_d by L18. "
        "So again e never wins back. Where f falls at first, an e that costs less than d is better than d; "
        "one that costs more is past the least of f, with E > 0, and d is there, too, or has E <= 0: then "
        "the ratio rises."
    ),
    broken=(
        L23_STATEMENT.but(
            "The same with padding of the batch's tokens to a multiple",
            _shorter_in_larger(),
            domain=_batched(_padded),
            every=_lines_of(lambda x, overhead, floor, start: overhead + -(-x // floor)),
        ),
        L23_STATEMENT.but(
            "The same without the bonus",
            _shorter_in_larger(),
            domain=_batched(_any_convex, bonus=0),
            every=_lines_of(_roofline, bonus=0),
        ),
        L23_STATEMENT.but(
            "The same with a concave cost",
            _shorter_in_larger(),
            domain=_batched(concave_costs),
            every=_lines_of(lambda x, overhead, floor, start: overhead + 3 * min(x, floor) + x),
        ),
        L23_STATEMENT.but(
            "The same if, before, the shortest of several best lengths stands for the longest",
            _shorter_in_larger(shortest_before),
        ),
        L23_STATEMENT.but(
            "The same if, afterwards, the longest of several best lengths stands for the shortest",
            _shorter_in_larger(longest_after),
        ),
    ),
)

CLAIMS = (L23,)
