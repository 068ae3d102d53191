"""Where LibraSpec's Algorithm 1 ends (L10, L11, L31).

G_i(d) and alpha are those of ``simspec.theory.libraspec``; q_k = confidence that place k is accepted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.lengths.runs import ALPHAS, OVER_STARTS, PAPER, W_FORMULA, Start, all_starts, starts
from simspec.strategies.survivals import Conditional, all_conditionals, grid

# L10


def _within(case: Start, most: Callable[[Start], int]) -> Outcome:
    if case.block > case.longest:
        return UNMET
    if case.submitted() <= most(case):
        return None
    return against(case.told(), f"{case.submitted()} tokens are submitted, more than {most(case)}")


def _condition(case: Start) -> int:
    """d_max - 1 + floor(alpha)."""
    return case.longest - 1 + math.floor(case.alpha)


L10_STATEMENT = Statement(
    words="Algorithm 1, started at n <= d_max, submits at most d_max tokens",
    formula="n <= d_max  =>  result <= d_max",
    rule=lambda case: _within(case, lambda c: c.longest),
    over=OVER_STARTS,
    domain=starts(),
    every=all_starts,
    examples=200,
)
L10_REPAIRED = L10_STATEMENT.but(
    "Started at n <= d_max it submits at most max(n, d_max - 1 + floor(alpha)) tokens",
    lambda case: _within(case, lambda c: max(c.block, _condition(c))),
    formula="n <= d_max  =>  result <= max(n, d_max - 1 + floor(alpha))",
)
L10 = Claim(
    id="L10",
    source=f"{PAPER}, Algorithm 1 (d_max in its loop's condition only)",
    statement=L10_STATEMENT,
    expected="refuted",
    because=(
        "The condition d < d_max is looked at before a pass. The place i = d bounds the pass by floor(alpha "
        "q_d + d) <= d + floor(alpha) <= d_max - 1 + floor(alpha), which is reached where all q = 1."
    ),
    pinned=Start((Fraction(1),), Fraction(2), 1, 2),
    repaired=L10_REPAIRED,
    broken=(
        L10_REPAIRED.but(
            "It submits at most d_max - 1 + floor(alpha) tokens, from any block",
            lambda case: _within(case, _condition),
        ),
        L10_REPAIRED.but(
            "It submits at most max(n, d_max - 2 + floor(alpha)) tokens",
            lambda case: _within(case, lambda c: max(c.block, _condition(c) - 1)),
        ),
    ),
    first_look="Right for alpha >= 1; with alpha < 1 nothing is ever extended, and the result is n at most.",
)

# L11


@dataclass(frozen=True)
class TwoStarts:
    q: Conditional
    alpha: Fraction
    blocks: tuple[int, int]
    longest: int

    def starts(self) -> tuple[Start, Start]:
        first, second = (Start(self.q, self.alpha, block, self.longest) for block in self.blocks)
        return first, second


def _two(start: Start, other: int) -> TwoStarts:
    return TwoStarts(start.q, start.alpha, (start.block, other), start.longest)


def all_two_starts(level: int) -> Iterator[TwoStarts]:
    """Two starts below d_max."""
    for start in all_starts(level):
        yield from (_two(start, other) for other in range(start.block + 1, start.longest))


def all_short_starts(level: int) -> Iterator[TwoStarts]:
    """Two starts that are W at most."""
    for q in all_conditionals(3 + min(level, 1), grid(2 + min(level, 1), zero=False)):
        for alpha, longest in product(ALPHAS[3:], (3, 6)):
            w = Start(q, alpha, 1, longest).limit()
            for first, second in combinations(range(1, w + 1), 2):
                yield TwoStarts(q, alpha, (first, second), longest)


def _differ_by(case: TwoStarts, most: int, below: Callable[[Start], int]) -> Outcome:
    """Two starts of which neither is above ``below``: their results are ``most`` apart at most."""
    first, second = case.starts()
    if max(case.blocks) > below(first):
        return UNMET
    if abs(first.submitted() - second.submitted()) <= most:
        return None
    return against(
        first.told(),
        second.told(),
        f"{first.submitted()} and {second.submitted()} are submitted; the longest length below d_max from "
        f"which a pass extends is W = {first.limit()}",
    )


def _before_end(start: Start) -> int:
    return start.longest - 1


L11_REPAIRED = Statement(
    words=(
        "From any two starts n, n' <= W, the longest length below d_max from which a pass extends, the "
        "results differ by at most floor(alpha) - 1; so with alpha < 2 not at all"
    ),
    formula=f"{W_FORMULA}; n, n' <= W  =>  |result(n) - result(n')| <= floor(alpha) - 1",
    rule=lambda case: _differ_by(case, math.floor(case.alpha) - 1, Start.limit),
    over="all q of up to 4 places in thirds above 0, alpha of 1.8 to 3.2, d_max of 3 and 6; random ones",
    domain=st.builds(_two, starts(), st.integers(1, 6)),
    every=all_short_starts,
    examples=150,
)
L11 = Claim(
    id="L11",
    source=f"{PAPER}, Algorithm 1 (block size n)",
    statement=Statement(
        words="What Algorithm 1 submits does not depend on the block n < d_max that it starts from",
        formula="result(n) = result(n') for n, n' < d_max",
        rule=lambda case: _differ_by(case, 0, _before_end),
        over=f"{OVER_STARTS}, each with two values of n < d_max",
        domain=st.builds(_two, starts(), st.integers(1, 6)),
        every=all_two_starts,
        examples=150,
    ),
    expected="refuted",
    because=(
        "Let W be the longest length below d_max from which a pass extends (L31). A first pass from beyond W "
        "cuts back to wherever its sums put it, and steps of different phase pass W by different amounts. (A "
        "block of n = d_max is submitted unseen, whatever it holds; that is left out here.) From n, n' <= W "
        "both results lie in W + 1 .. W + floor(alpha), by L31."
    ),
    pinned=TwoStarts((Fraction(1),), Fraction(2), (1, 2), 3),
    repaired=L11_REPAIRED,
    broken=(
        L11_REPAIRED.but(
            "From any two starts n, n' <= W the results are the same",
            lambda case: _differ_by(case, 0, Start.limit),
        ),
        L11_REPAIRED.but(
            "From any two starts n, n' < d_max the results differ by at most floor(alpha) - 1",
            lambda case: _differ_by(case, max(0, math.floor(case.alpha) - 1), _before_end),
            every=all_two_starts,
        ),
    ),
)

# L31

# The least and the most that may be submitted, given W.
Ends = Callable[[Start, int], tuple[int, int]]


def _ends_in(case: Start, ends: Ends) -> Outcome:
    w = case.limit()
    low, high = ends(case, w)
    if low <= case.submitted() <= high:
        return None
    return against(
        case.told(),
        f"the longest length below d_max = {case.longest} from which a pass extends is W = {w}; "
        f"{case.submitted()} submitted, not within {low}..{high}",
    )


def _ends(case: Start, w: int) -> tuple[int, int]:
    return w + 1, w + math.floor(case.alpha) if case.block <= w else case.block


def _if_short(case: Start, w: int, low: int, high: int) -> tuple[int, int]:
    """Other ends from a block that is no longer than W."""
    return (w + low, w + high) if case.block <= w else _ends(case, w)


def _if_long(case: Start, w: int, low: int, high: int) -> tuple[int, int]:
    """Other ends from a block that is longer than W."""
    return _ends(case, w) if case.block <= w else (low, high)


L31_STATEMENT = Statement(
    words=(
        "Let W be the longest length below d_max from which a pass of Algorithm 1 extends (0 if none does). "
        "From a block n <= W it submits 1 to floor(alpha) tokens more than W; with alpha < 2, exactly one "
        "more. From a block n that is longer than W it submits W + 1 to n"
    ),
    formula=f"{W_FORMULA}; W + 1 <= result <= (W + floor(alpha) if n <= W else n)",
    rule=lambda case: _ends_in(case, _ends),
    over=OVER_STARTS,
    domain=starts(),
    every=all_starts,
    examples=150,
)
L31 = Claim(
    id="L31",
    source=f"derived from {PAPER}, Algorithm 1",
    statement=L31_STATEMENT,
    expected="holds",
    because=(
        "By L30 a pass extends while all suffixes i..d have mean survival 1/alpha or more. (1) Then it "
        "extends from each shorter length too: the products from i on never rise, so dropping the last ones "
        "never lowers a mean. Let w be the last length with an extension. (2) At any length above w the "
        "pass gives w + 1 or more: for i <= w the sum is no less than at w, where it gave w + 1; for i > w "
        "it gives at least i. (3) A step adds at most floor(alpha), by i = d. So from n <= W the run passes "
        "W by at most floor(alpha), and ends there: by d_max, or by a pass that does not extend and by (2) "
        "gives W + 1 or more. From n > W its first pass is such a pass, or n >= d_max and there is none."
    ),
    broken=(
        L31_STATEMENT.but(
            "From n <= W it submits W", lambda case: _ends_in(case, lambda c, w: _if_short(c, w, 0, 0))
        ),
        L31_STATEMENT.but(
            "From n <= W it submits W + 1, whatever alpha",
            lambda case: _ends_in(case, lambda c, w: _if_short(c, w, 1, 1)),
        ),
        L31_STATEMENT.but(
            "From n <= W it submits W + floor(alpha)",
            lambda case: _ends_in(
                case, lambda c, w: _if_short(c, w, math.floor(c.alpha), math.floor(c.alpha))
            ),
        ),
        L31_STATEMENT.but(
            "From n > W, too, it submits no more than W + floor(alpha), or n if that is less",
            lambda case: _ends_in(
                case, lambda c, w: _if_long(c, w, w + 1, max(w + 1, min(c.block, w + math.floor(c.alpha))))
            ),
        ),
        L31_STATEMENT.but(
            "A block n > W is submitted whole",
            lambda case: _ends_in(case, lambda c, w: _if_long(c, w, c.block, c.block)),
        ),
    ),
)

CLAIMS = (L10, L11, L31)
