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
from simspec.claims.lengths.runs import ALPHAS, OVER_STARTS, PAPER, Start, all_starts, starts
from simspec.strategies.survivals import Conditional, all_conditionals, grid

# L10


def _within(case: Start, most: Callable[[Start], int]) -> Outcome:
    if case.block > case.longest:
        return UNMET
    if case.submitted() <= most(case):
        return None
    return against(case.told(), f"{case.submitted()} tokens are submitted, over {most(case)}")


L10_STATEMENT = Statement(
    words="Algorithm 1, started at n <= d_max, submits at most d_max tokens",
    formula="n <= d_max  =>  result <= d_max",
    rule=lambda case: _within(case, lambda c: c.longest),
    over=OVER_STARTS,
    domain=starts(),
    every=all_starts,
    examples=200,
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
    repaired=L10_STATEMENT.but(
        "It submits at most max(n, d_max - 1 + floor(alpha)) tokens",
        lambda case: _within(case, lambda c: max(c.block, c.longest - 1 + math.floor(c.alpha))),
        formula="n <= d_max  =>  result <= max(n, d_max - 1 + floor(alpha))",
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
    for start in all_starts(level):
        yield from (_two(start, other) for other in range(start.block + 1, start.longest + 1))


def all_short_starts(level: int) -> Iterator[TwoStarts]:
    """Two starts that are W at most."""
    for q in all_conditionals(3 + min(level, 1), grid(2 + min(level, 1), zero=False)):
        for alpha, longest in product(ALPHAS[3:], (3, 6)):
            w = Start(q, alpha, 1, longest).limit()
            for first, second in combinations(range(1, w + 1), 2):
                yield TwoStarts(q, alpha, (first, second), longest)


def _same_end(case: TwoStarts) -> Outcome:
    first, second = case.starts()
    if max(case.blocks) > case.longest:
        return UNMET
    if first.submitted() == second.submitted():
        return None
    return against(first.told(), second.told(), f"{first.submitted()} and {second.submitted()} are submitted")


def _near_end(case: TwoStarts) -> Outcome:
    first, second = case.starts()
    if max(case.blocks) > first.limit():
        return UNMET
    if abs(first.submitted() - second.submitted()) <= math.floor(case.alpha) - 1:
        return None
    return against(first.told(), second.told())


L11 = Claim(
    id="L11",
    source=f"{PAPER}, Algorithm 1 (block size n)",
    statement=Statement(
        words="What Algorithm 1 submits does not depend on the block n that it starts from",
        formula="result(n) = result(n') for n, n' <= d_max",
        rule=_same_end,
        over="as for L31, with two values of n <= d_max",
        domain=st.builds(_two, starts(), st.integers(1, 6)),
        every=all_two_starts,
        examples=150,
    ),
    expected="refuted",
    because=(
        "A block of n = d_max is submitted unseen. Short of that, a first pass from beyond W (see L31) cuts "
        "back to wherever its sums put it, and steps of different phase pass W by different amounts."
    ),
    pinned=TwoStarts((Fraction(0),), Fraction(1), (1, 2), 2),
    repaired=Statement(
        words=(
            "From any two starts n, n' <= W (see L31) the results differ by at most floor(alpha) - 1; so "
            "with alpha < 2 not at all"
        ),
        formula="n, n' <= W  =>  |result(n) - result(n')| <= floor(alpha) - 1",
        rule=_near_end,
        over="all q of up to 4 places in thirds above 0, alpha of 1.8 to 3.2, d_max of 3 and 6; random ones",
        domain=st.builds(_two, starts(), st.integers(1, 6)),
        every=all_short_starts,
        examples=150,
    ),
)

# L31


def _ends_in(case: Start, least: int, most: int) -> Outcome:
    w = case.limit()
    high = w + most if case.block <= w else max(case.block, w + least)
    if w + least <= case.submitted() <= high:
        return None
    return against(case.told(), f"W = {w}: the result is not in {w + least}..{high}")


L31_STATEMENT = Statement(
    words=(
        "Algorithm 1 submits the longest block that its passes extend, W (or d_max - 1 if that is less), "
        "and 1 to floor(alpha) tokens more; with alpha < 2, exactly one more. From a block n that is longer "
        "than W it submits W + 1 to n"
    ),
    formula=(
        "W = min(d_max - 1, max{d : G_i(d) / (d + 1 - i) >= 1/alpha for all i <= d}); "
        "W + 1 <= result <= (W + floor(alpha) if n <= W else n)"
    ),
    rule=lambda case: _ends_in(case, 1, math.floor(case.alpha)),
    over=OVER_STARTS,
    domain=starts(),
    every=all_starts,
    examples=200,
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
        L31_STATEMENT.but("It submits W", lambda case: _ends_in(case, 0, 0)),
        L31_STATEMENT.but("It submits W + 1 whatever alpha", lambda case: _ends_in(case, 1, 1)),
    ),
)

CLAIMS = (L10, L11, L31)
