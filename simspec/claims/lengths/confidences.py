"""What confidences make of Algorithm 1's result: one for all places, and one that is raised (L35, L36).

G_i(d) and alpha are those of ``simspec.theory.libraspec``; q_k = confidence that place k is accepted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product

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

    def start(self) -> Start:
        """With places enough for the longest overshoot past d_max."""
        return Start(
            (self.q,) * (self.longest + math.floor(self.alpha)), self.alpha, self.block, self.longest
        )


def _total(q: Fraction, d: int) -> Fraction:
    """q + q^2 + .. + q^d, in closed form."""
    return Fraction(d) if q == 1 else q * (1 - q**d) / (1 - q)


@dataclass(frozen=True)
class Reading:
    """What L36 says, part by part.

    Attributes:
        step: the most that a pass adds.
        whole: whether the whole block bounds a pass, too.
        lasts: what of a block of d places is compared with 1/alpha, for W.
        ends: the least and the most submitted, given the start, W and the step.
    """

    step: Callable[[Constant], int] = lambda case: math.floor(case.alpha * case.q)
    whole: bool = True
    lasts: Callable[[Fraction, int], Fraction] = lambda q, d: _total(q, d) / d
    ends: Callable[[Constant, int, int], tuple[int, int]] = lambda case, w, step: (
        w + 1,
        w + step if case.block <= w else case.block,
    )


def _closed_form(case: Constant, reading: Reading) -> Outcome:
    step = reading.step(case)
    told = f"q = {case.q} throughout, alpha = {case.alpha}, n = {case.block}, d_max = {case.longest}"
    lengths = case.start().lengths()
    for d, found in pairwise(lengths):
        by_block = 1 + math.floor(case.alpha * _total(case.q, d))
        meant = min(d + step, by_block) if reading.whole else d + step
        if found != meant:
            bounds = f"d + {step} = {d + step}" + f", by the whole block {by_block}" * reading.whole
            return against(told, f"from d = {d} a pass goes to {found}; the closed form: {bounds}")
    w = max((d for d in range(1, case.longest) if case.alpha * reading.lasts(case.q, d) >= 1), default=0)
    low, high = reading.ends(case, w, step)
    if low <= lengths[-1] <= high:
        return None
    return against(told, f"W = {w}: {lengths[-1]} submitted, not within {low}..{high}")


def _most_or_n(case: Constant, w: int, step: int) -> tuple[int, int]:
    return (w + step, w + step) if case.block <= w else (w + 1, case.block)


def _least_or_n(case: Constant, w: int, step: int) -> tuple[int, int]:
    return (w + 1, w + 1) if case.block <= w else (w + 1, case.block)


def all_constants(level: int) -> Iterator[Constant]:
    for longest in (4, 8, 16)[: level + 2]:
        for q, alpha, block in product(grid(8, zero=False), ALPHAS, (1, 3)):
            yield Constant(q, alpha, block, longest)


L36_STATEMENT = Statement(
    words=(
        "At a constant confidence q only the last place and the whole block count: a pass of Algorithm 1 "
        "takes a length d to the lesser of d + floor(alpha q) and 1 + floor(alpha (q + .. + q^d)), and W + "
        "1 to W + floor(alpha q) tokens are submitted, W being the longest block below d_max whose mean "
        "survival is 1/alpha or more (from a block n longer than W: W + 1 to n)"
    ),
    formula=(
        "d -> min(d + floor(alpha q), 1 + floor(alpha q (1 - q^d) / (1 - q))); W = max{0, d < d_max : q (1 "
        "- q^d) / ((1 - q) d) >= 1/alpha}; W + 1 <= result <= (W + floor(alpha q) if n <= W else n)"
    ),
    rule=lambda case: _closed_form(case, Reading()),
    over=(
        "q in eighths, 7 values of alpha from 2/5 to 16/5, n of 1 and 3, d_max of 4, 8 (and 16); random q, "
        "alpha up to 40, n up to 5, d_max up to 12"
    ),
    domain=st.builds(Constant, chances(), weights, st.integers(1, 5), st.integers(1, 12)),
    every=all_constants,
    examples=80,
)
L36 = Claim(
    id="L36",
    source=f"derived from {PAPER}, Algorithm 1",
    statement=L36_STATEMENT,
    expected="holds",
    because=(
        "The place i = d + 1 - m begins a suffix of m places and bounds the pass by d + 1 + floor(alpha (q "
        "+ .. + q^m) - m). The bracket is concave in m, so it is least at an end, m = 1 or m = d. The mean "
        "(q + .. + q^m) / m never rises with m, so by L30 the longest suffix, the block itself, decides "
        "whether a pass extends. The rest is L31; a step adds at most floor(alpha q), by i = d."
    ),
    broken=(
        L36_STATEMENT.but(
            "... W being the longest block whose last survival q^d is 1/alpha or more",
            lambda case: _closed_form(case, Reading(lasts=pow)),
        ),
        L36_STATEMENT.but(
            "... with steps of up to floor(alpha), not floor(alpha q)",
            lambda case: _closed_form(case, Reading(step=lambda c: math.floor(c.alpha))),
        ),
        L36_STATEMENT.but(
            "... with the last place alone to bound a pass",
            lambda case: _closed_form(case, Reading(whole=False)),
        ),
        L36_STATEMENT.but(
            "... and from n <= W it submits the most of these, W + floor(alpha q)",
            lambda case: _closed_form(case, Reading(ends=_most_or_n)),
        ),
        L36_STATEMENT.but(
            "... and from n <= W it submits the least of these, W + 1",
            lambda case: _closed_form(case, Reading(ends=_least_or_n)),
        ),
        L36_STATEMENT.but(
            "... and from any n it submits no more than W + floor(alpha q) or W + 1",
            lambda case: _closed_form(case, Reading(ends=lambda c, w, step: (w + 1, w + max(1, step)))),
        ),
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


def all_lowered(level: int) -> Iterator[Raised]:
    """The same changes, undone."""
    for case in all_raises(level):
        yield Raised(case.after(), case.place, case.start.q[case.place - 1])


OVER_RAISES = (
    "all q of up to 2 places in quarters with up to 7 values of alpha from 2/5 to 16/5, n = 1, d_max of 2 "
    "to 4, each place raised to 1/2 and to 1; random starts as for L31, one place changed"
)


def _no_fewer(case: Raised, fewer: int, lowered: bool = False) -> Outcome:
    """``lowered``: whether a confidence that is lowered counts, too."""
    if case.to < case.start.q[case.place - 1] and not lowered:
        return UNMET
    before, after = case.start.submitted(), case.after().submitted()
    if after >= before - fewer:
        return None
    return against(
        case.start.told(),
        f"place {case.place} changed to {case.to}",
        case.after().told(),
        f"{after} tokens are submitted where {before} were",
    )


def _overshoot(case: Raised, spare: int = 1) -> int:
    return max(0, math.floor(case.start.alpha) - spare)


L35_STATEMENT = Statement(
    words="Raising one confidence never makes Algorithm 1 submit fewer tokens",
    formula="q <= q'  =>  result(q) <= result(q')",
    rule=lambda case: _no_fewer(case, 0),
    over=OVER_RAISES,
    domain=raises(),
    every=all_raises,
    examples=150,
)
L35_REPAIRED = L35_STATEMENT.but(
    "Raising one confidence takes away fewer than floor(alpha) tokens; with alpha < 2 the result never falls",
    lambda case: _no_fewer(case, _overshoot(case)),
    formula="q <= q'  =>  result(q') >= result(q) - max(0, floor(alpha) - 1)",
)
L35 = Claim(
    id="L35",
    source=f"derived from {PAPER}, Algorithm 1",
    statement=L35_STATEMENT,
    expected="refuted",
    because=(
        "A longer step can land on a weak place and see it, where a shorter one followed by another jumps "
        "over it unseen into d_max, or sees it together with a strong place behind. The repaired bound: say "
        "the run on q extends last at a. The run on q' >= q extends from every length up to a (L31, and "
        "sums rise with q), so it ends at a + 1 or more, while the run on q ends at a + floor(alpha) or "
        "less. If the run on q never extends, its first pass, or n itself, is no more than the other's."
    ),
    pinned=Raised(Start((Fraction(3, 4), Fraction(1)), Fraction(2), 1, 3), 1, Fraction(1)),
    repaired=L35_REPAIRED,
    broken=(
        L35_REPAIRED.but(
            "It takes away fewer than floor(alpha) - 1 tokens; with alpha < 3 the result never falls",
            lambda case: _no_fewer(case, _overshoot(case, spare=2)),
        ),
        L35_REPAIRED.but(
            "Raising or lowering one confidence takes away fewer than floor(alpha) tokens",
            lambda case: _no_fewer(case, _overshoot(case), lowered=True),
            every=all_lowered,
        ),
    ),
)

CLAIMS = (L35, L36)
