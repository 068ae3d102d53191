"""How the best length moves with the batch (L23, L26).

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
from simspec.claims.lengths.best_length import Best, best, never_falls, never_rises, told
from simspec.claims.lengths.blocks import listed
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


def _shorter_in_larger(case: Batched) -> Outcome:
    found = case.best()
    if never_rises(found):
        return None
    return against(
        f"draft k is accepted, given all before it were, with probability {shown(case.p)}",
        f"time of a forward over 1, 2, 3, .. tokens: {listed(case.step)}",
        f"best number of drafts by batch: {told(case.batches(), found)}",
    )


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


L23_STATEMENT = Statement(
    words=(
        "The best length never grows with the batch if a forward's time is a convex function of its tokens, "
        "as an affine cost and a roofline are"
    ),
    formula=(
        "T_B(d) = f(B (d + 1)), f convex, tau_d = 1 + S_1 + .. + S_d  =>  argmax_d tau_d/T_B(d) falls in B"
    ),
    rule=_shorter_in_larger,
    over=(
        "all small blocks with an overhead, a floor and two slopes, B = "
        "1..5; random convex costs and blocks of up to 4 places"
    ),
    domain=st.one_of(_batched(_any_convex), _batched(convex_costs)),
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
        "So again e never wins back."
    ),
    broken=(
        L23_STATEMENT.but(
            "The same with padding of the batch's tokens to a multiple",
            _shorter_in_larger,
            domain=_batched(_padded),
            every=_lines_of(lambda x, overhead, floor, start: overhead + -(-x // floor)),
        ),
        L23_STATEMENT.but(
            "The same without the bonus",
            _shorter_in_larger,
            domain=_batched(_any_convex, bonus=0),
            every=_lines_of(_roofline, bonus=0),
        ),
        L23_STATEMENT.but(
            "The same with a concave cost",
            _shorter_in_larger,
            domain=_batched(concave_costs),
            every=_lines_of(lambda x, overhead, floor, start: overhead + 3 * min(x, floor) + x),
        ),
    ),
)


# L26: a drafter with a time of its own


@dataclass(frozen=True)
class Drafted:
    """T_B(d) = fixed + draft d + B (request + d).

    The target's weights are read once, the drafter's for every draft; each request costs something whatever
    is drafted (its own token, its context) and 1 for each draft.
    """

    p: Conditional
    fixed: Fraction
    draft: Fraction
    request: Fraction

    def best(self) -> list[Best]:
        tokens = tokens_by_outcome(self.p, 1)
        return [
            best(tokens, [self.fixed + self.draft * d + b * (self.request + d) for d in range(len(tokens))])
            for b in BATCHES
        ]


BATCHES = (1, 2, 3, 4, 6, 8, 16, 64)


def _direction(
    shorter: Callable[[Drafted], bool], longer: Callable[[Drafted], bool]
) -> Callable[[Drafted], Outcome]:
    def rule(case: Drafted) -> Outcome:
        found = case.best()
        if (never_rises(found) or not shorter(case)) and (never_falls(found) or not longer(case)):
            return None
        return against(
            f"draft k is accepted, given all before it were, with probability {shown(case.p)}",
            f"time = {case.fixed} + {case.draft} d + B ({case.request} + d)",
            f"best number of drafts by batch: {told(BATCHES, found)}",
        )

    return rule


def _all_drafted(level: int) -> Iterator[Drafted]:
    for p in all_conditionals(2, grid(2 + level, zero=False)):
        for fixed in range(3):
            for draft in range(3):
                for request in (1, 2, 6):
                    yield Drafted(p, Fraction(fixed), Fraction(draft), Fraction(request))


L26_STATEMENT = Statement(
    words=(
        "With a drafter that reads its weights for every token, the best length falls with the batch if g k "
        "<= c T0 and rises with it if g k >= c T0 (T0: target's fixed time; g: drafter's, a token; k: each "
        "request's own time, its context included; c: a draft's)"
    ),
    formula="T_B(d) = T0 + g d + B (k + c d):  argmax falls in B if g k <= c T0, rises if g k >= c T0",
    rule=_direction(lambda x: x.draft * x.request <= x.fixed, lambda x: x.draft * x.request >= x.fixed),
    over=("all small blocks, T0 and g in 0..2, k = 1, 2, 6, c = 1, B = 1..64; random ones of up to 6 places"),
    domain=st.builds(Drafted, conditionals(longest=6), amounts(), amounts(), amounts(1)),
    every=_all_drafted,
    examples=60,
)
L26 = Claim(
    id="L26",
    source="MagicDec (2408.11049): at long context speculation gains with the batch",
    statement=L26_STATEMENT,
    expected="holds",
    because=(
        "For d < e the ratio T_B(e)/T_B(d) goes monotonically from (T0 + g e)/(T0 + g d) at B = 0 to (k + c "
        "e)/(k + c d); it rises exactly if g k <= c T0. A long context makes k large against c: then a "
        "larger batch favours longer blocks, as it does not with a short one (k = c, g below T0)."
    ),
    broken=(
        L26_STATEMENT.but("It always falls with the batch", _direction(lambda x: True, lambda x: False)),
        L26_STATEMENT.but(
            "It falls with the batch if the drafter's fixed time is at most the target's, g <= T0",
            _direction(lambda x: x.draft <= x.fixed, lambda x: False),
        ),
    ),
)

CLAIMS = (L23, L26)
