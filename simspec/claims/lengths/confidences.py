"""What confidences make of Algorithm 1's result: one for all places, and one that is raised (L35, L36).

G_i(d) and alpha are those of ``simspec.theory.libraspec``; q_k = confidence that place k is accepted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.lengths.runs import ALPHAS, PAPER, Start, starts, weights
from simspec.strategies.survivals import all_conditionals, chances, grid

# L36


@dataclass(frozen=True)
class Constant:
    q: Fraction
    alpha: Fraction
    block: int
    longest: int


def _mean(q: Fraction, d: int) -> Fraction:
    """Mean of q, q^2, .., q^d, in closed form."""
    return Fraction(1) if q == 1 else q * (1 - q**d) / ((1 - q) * d)


def _closed_form(case: Constant, lasts: Callable[[Fraction, int], Fraction]) -> Outcome:
    lengths = range(1, case.longest)
    w = max((d for d in lengths if case.alpha * lasts(case.q, d) >= 1), default=0)
    high = w + math.floor(case.alpha * case.q) if case.block <= w else max(case.block, w + 1)
    start = Start((case.q,) * (case.longest + math.floor(case.alpha)), case.alpha, case.block, case.longest)
    found = start.submitted()
    if w + 1 <= found <= high:
        return None
    return against(
        f"q = {case.q} throughout, alpha = {case.alpha}, n = {case.block}, d_max = {case.longest}",
        f"{found} tokens are submitted; the closed form has {w + 1}..{high}",
    )


def all_constants(level: int) -> Iterator[Constant]:
    for longest in (4, 8, 16)[: level + 2]:
        for q, alpha, block in product(grid(8, zero=False), ALPHAS, (1, 3)):
            yield Constant(q, alpha, block, longest)


L36_STATEMENT = Statement(
    words=(
        "At a constant confidence q, Algorithm 1 submits 1 to floor(alpha q) tokens more than the longest "
        "block below d_max whose mean survival is 1/alpha or more (from a longer start, at most that): only "
        "the whole block's average counts"
    ),
    formula=(
        "W = max{d < d_max : q (1 - q^d) / ((1 - q) d) >= 1/alpha}; W + 1 <= result <= (W + floor(alpha q) "
        "if n <= W else n)"
    ),
    rule=lambda case: _closed_form(case, _mean),
    over="q in eighths, 7 values of alpha, n of 1 and 3, d_max of 4, 8 (and 16); random ones beyond",
    domain=st.builds(Constant, chances(), weights, st.integers(1, 5), st.integers(1, 12)),
    every=all_constants,
    examples=150,
)
L36 = Claim(
    id="L36",
    source=f"derived from {PAPER}, Algorithm 1",
    statement=L36_STATEMENT,
    expected="holds",
    because=(
        "Every suffix of m places has the mean (q + .. + q^m) / m, which never rises with m: the longest "
        "suffix, the block itself, decides. The rest is L31; a step adds at most floor(alpha q), by i = d."
    ),
    broken=(
        L36_STATEMENT.but("... whose last survival q^d is 1/alpha or more", lambda c: _closed_form(c, pow)),
    ),
)

# L35


@dataclass(frozen=True)
class Raised:
    """One confidence of a start, at ``place``, is raised to ``to``."""

    start: Start
    place: int
    to: Fraction

    def after(self) -> Start:
        q = self.start.q
        return replace(self.start, q=(*q[: self.place - 1], self.to, *q[self.place :]))


@st.composite
def raises(draw: st.DrawFn) -> Raised:
    start = draw(starts())
    return Raised(start, draw(st.integers(1, len(start.q))), draw(chances()))


def all_raises(level: int) -> Iterator[Raised]:
    for q, alpha in product(all_conditionals(2, grid(4)), ALPHAS[: 5 + level]):
        for longest, place in product(range(2, 5), range(1, len(q) + 1)):
            start = Start(q, alpha, 1, longest)
            yield from (Raised(start, place, to) for to in grid(2) if to > q[place - 1])


OVER_RAISES = (
    "all q of up to 2 places in quarters with up to 7 values of alpha, n = 1, d_max of 2 to 4, each place "
    "raised to 1/2 and to 1; random starts as for L31, one place changed"
)


def _no_fewer(case: Raised, fewer: Callable[[Start], int]) -> Outcome:
    if case.to < case.start.q[case.place - 1]:
        return UNMET
    before, after = case.start.submitted(), case.after().submitted()
    if after >= before - fewer(case.start):
        return None
    return against(
        case.start.told(),
        f"place {case.place} raised to {case.to}",
        case.after().told(),
        f"{after} tokens are submitted where {before} were",
    )


L35 = Claim(
    id="L35",
    source=f"derived from {PAPER}, Algorithm 1",
    statement=Statement(
        words="Raising one confidence never makes Algorithm 1 submit fewer tokens",
        formula="q <= q'  =>  result(q) <= result(q')",
        rule=lambda case: _no_fewer(case, lambda start: 0),
        over=OVER_RAISES,
        domain=raises(),
        every=all_raises,
        examples=150,
    ),
    expected="refuted",
    because=(
        "A longer step can land on a weak place and see it, where a shorter one followed by another jumps "
        "over it unseen into d_max, or sees it together with a strong place behind. The repaired bound: say "
        "the run on q extends last at a. The run on q' >= q extends from every length up to a (L31, and "
        "sums rise with q), so it ends at a + 1 or more, while the run on q ends at a + floor(alpha) or "
        "less. If the run on q never extends, its first pass, or n itself, is no more than the other's."
    ),
    pinned=Raised(Start((Fraction(3, 4), Fraction(1)), Fraction(2), 1, 4), 1, Fraction(1)),
    repaired=Statement(
        words="It takes away fewer than floor(alpha) tokens; with alpha < 2 the result never falls",
        formula="q <= q'  =>  result(q') >= result(q) - max(0, floor(alpha) - 1)",
        rule=lambda case: _no_fewer(case, lambda start: max(0, math.floor(start.alpha) - 1)),
        over=OVER_RAISES,
        domain=raises(),
        every=all_raises,
        examples=150,
    ),
)

CLAIMS = (L35, L36)
