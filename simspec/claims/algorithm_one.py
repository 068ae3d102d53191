"""LibraSpec's Algorithm 1 (arXiv 2608.08721): what it computes, and how far from best (L7-L11, L30-L37).

p_k = chance that place k is accepted once all before it were; S_d = p_1 .. p_d. A cycle of d places takes
T(d) = T0 + c d and gives tau(d) = S_1 + .. + S_d tokens, one more with the bonus; its rate is tau(d) / T(d).
The unit of time is c = 1. G_i(d) and alpha are those of ``simspec.theory.libraspec``; q = p throughout.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, combinations, pairwise, product
from operator import mul

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Plot, Statement, against
from simspec.claims.plain import number, shown
from simspec.strategies.survivals import (
    Conditional,
    all_conditionals,
    chances,
    conditionals,
    grid,
    survival,
    tokens_by_outcome,
)
from simspec.theory.lengths import conditional_gain
from simspec.theory.libraspec import (
    algorithm_one,
    last_extension,
    pass_limits,
    theorem_limit,
)

PAPER = "LibraSpec (2608.08721)"
ALPHAS = tuple(Fraction(k, 5) for k in (2, 5, 8, 9, 10, 11, 16))
weights = st.builds(Fraction, st.integers(1, 40), st.integers(1, 10))


# One pass: q, alpha and the present length d.


@dataclass(frozen=True)
class Pass:
    q: Conditional
    alpha: Fraction
    d: int


@st.composite
def passes(draw: st.DrawFn) -> Pass:
    q = draw(conditionals(longest=8))
    return Pass(q, draw(weights), draw(st.integers(1, len(q))))


def all_passes(level: int) -> Iterator[Pass]:
    for q in all_conditionals(3 if level < 2 else 4, grid(2 + 2 * min(level, 1))):
        yield from (Pass(q, alpha, d) for d in range(1, len(q) + 1) for alpha in ALPHAS)


OVER_PASSES = "all q of up to 3 places in quarters, 7 values of alpha, each d; random q of up to 8 places"

# L7


def _same_limit(case: Pass) -> Outcome:
    for i, found in enumerate(pass_limits(case.q, case.alpha, case.d), 1):
        # Algorithm 1 rounds as with <= for <: that difference is left out, so that only the sums differ.
        meant = theorem_limit(case.q, case.alpha, i, or_equal=True)
        if found != meant:
            to_d, to_own = conditional_gain(case.q, i, case.d), conditional_gain(case.q, i, meant)
            return against(
                f"q = {shown(case.q)}, alpha = {case.alpha}, place i = {i}, present length d = {case.d}",
                f"Algorithm 1: the gain of places {i}..{case.d} is {number(to_d)}; "
                f"alpha x gain + i = {number(case.alpha * to_d + i)}, rounded down {found}",
                f"the theorems: d' = {meant} is the greatest d' <= alpha x (gain of places {i}..d') + i; "
                f"there the gain is {number(to_own)} and the bound {number(case.alpha * to_own + i)}",
            )
    return None


def _towards_limit(case: Pass) -> Outcome:
    for i, found in enumerate(pass_limits(case.q, case.alpha, case.d), 1):
        meant = theorem_limit(case.q, case.alpha, i, or_equal=True)
        low, high = sorted((case.d, meant))
        if not low <= found <= high or (found == case.d > meant):
            return against(f"from d = {case.d}, eps_{i} = {found} is not on the way to {meant}")
    return None


L7 = Claim(
    id="L7",
    source=f"{PAPER}, Algorithm 1 beside Theorems 3.3 and 3.4",
    statement=Statement(
        words="The eps_i that Algorithm 1 computes at a length d is the eps_i of the theorems",
        formula="floor(alpha G_i(d) + i) = max{d' : d' <= alpha G_i(d') + i}",
        rule=_same_limit,
        over=OVER_PASSES,
        domain=passes(),
        every=all_passes,
    ),
    expected="refuted",
    because=(
        "The theorems' sum runs to the length that is being bounded, Algorithm 1's to the length that it "
        "has. (They also differ in rounding: the theorems' strict '<' is one less wherever alpha G_i + i is "
        "whole.) What is true: F(d) = floor(alpha G_i(d) + i) never falls with d, and the theorems' eps is "
        "the greatest d' with d' <= F(d'). The lengths with d <= F(d) have no gap below eps, since alpha "
        "G_i(d) - d is concave. So d <= eps gives d <= F(d) <= F(eps) = eps, and d > eps gives eps <= F(d) "
        "< d: a pass goes part of the way, and can stop short where alpha G_i(d) + i - d is between 0 and 1."
    ),
    pinned=Pass((Fraction(1, 2), Fraction(1)), Fraction(1), 1),
    repaired=Statement(
        words="Algorithm 1's eps_i lies between the present length and the theorems' eps_i, never past it",
        formula="d <= eps_i: d <= floor(alpha G_i(d) + i) <= eps_i;  d > eps_i: eps_i <= floor(..) < d",
        rule=_towards_limit,
        over=OVER_PASSES,
        domain=passes(),
        every=all_passes,
        examples=150,
    ),
)

# L30


def _goes_on(case: Pass, suffixes: Iterable[int]) -> Outcome:
    """Whether "these suffixes have mean survival 1 / alpha or more" says what the pass does."""
    found = min(pass_limits(case.q, case.alpha, case.d)) > case.d
    means = {}
    for i in suffixes:
        products = list(accumulate(case.q[i - 1 : case.d], mul))
        means[i] = sum(products, Fraction(0)) / len(products)
    if found == all(case.alpha * mean >= 1 for mean in means.values()):
        return None
    told = ", ".join(f"{i}..{case.d}: {number(mean)}" for i, mean in means.items())
    return against(
        f"q = {shown(case.q)}, alpha = {case.alpha}, d = {case.d}: the pass "
        f"{'extends' if found else 'stops'}",
        f"1 / alpha = {number(1 / case.alpha)}; mean survival of places {told}",
    )


L30_STATEMENT = Statement(
    words=(
        "A pass of Algorithm 1 extends the block exactly if each of its suffixes, taken as a block of its "
        "own, has a mean survival of at least 1 / alpha"
    ),
    formula="min_i floor(alpha G_i(d) + i) > d  <=>  G_i(d) / (d + 1 - i) >= 1 / alpha for all i <= d",
    rule=lambda case: _goes_on(case, range(1, case.d + 1)),
    over=OVER_PASSES,
    domain=passes(),
    every=all_passes,
    examples=150,
)
L30 = Claim(
    id="L30",
    source=f"derived from {PAPER}, Algorithm 1",
    statement=L30_STATEMENT,
    expected="holds",
    because=(
        "floor(x + i) >= d + 1 is x >= d + 1 - i, the number of places in the suffix. Algorithm 1 thus asks "
        "an average what a marginal decides: one more place pays while its own survival S_{d+1} is worth "
        "its cost."
    ),
    broken=(
        L30_STATEMENT.but("... if the whole block has", lambda case: _goes_on(case, (1,))),
        L30_STATEMENT.but("... if its last place has", lambda case: _goes_on(case, (case.d,))),
    ),
)


# A whole run: q, alpha, block n and d_max.


@dataclass(frozen=True)
class Start:
    q: Conditional
    alpha: Fraction
    block: int
    longest: int

    def submitted(self) -> int:
        return algorithm_one(self.q, self.alpha, self.block, self.longest).submitted

    def limit(self) -> int:
        """W: the last length at which a pass extends, d_max - 1 at most."""
        return min(last_extension(self.q, self.alpha), self.longest - 1)

    def told(self) -> str:
        lengths = " -> ".join(map(str, algorithm_one(self.q, self.alpha, self.block, self.longest).lengths))
        knobs = f"alpha = {self.alpha}, block n = {self.block}, d_max = {self.longest}"
        return f"q = {shown(self.q)}, {knobs}: {lengths}"


@st.composite
def starts(draw: st.DrawFn) -> Start:
    q = draw(st.one_of(conditionals(longest=10), conditionals(longest=10, shortest=4, positive=True)))
    return Start(q, draw(weights), draw(st.integers(1, 6)), draw(st.integers(1, 10)))


def all_starts(level: int) -> Iterator[Start]:
    for q in all_conditionals(3 if level < 2 else 4, grid(2 + min(level, 1))):
        for longest, alpha in product(range(1, len(q) + 1), ALPHAS):
            yield from (Start(q, alpha, block, longest) for block in range(1, longest + 1))


OVER_STARTS = (
    "all q of up to 3 places in thirds with 7 values of alpha, every d_max and every n <= d_max; random q "
    "of up to 10 places, n up to 6, d_max up to 10"
)

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


# alpha as the paper means it, T_i / (tau_i c), at the best length; d_max is the length of p.


@dataclass(frozen=True)
class Tuned:
    p: Conditional
    fixed: Fraction
    bonus: bool
    block: int

    @property
    def d_max(self) -> int:
        return len(self.p)

    def tokens(self) -> tuple[Fraction, ...]:
        """tau(0) .. tau(d_max)."""
        return tokens_by_outcome(self.p, int(self.bonus))

    def rates(self) -> tuple[Fraction, ...]:
        """tau(d) / T(d), d = 0..d_max."""
        return tuple(tau / (self.fixed + d) for d, tau in enumerate(self.tokens()))

    def best(self) -> list[int]:
        """All best lengths, shortest first; empty where drafting does not pay, that is, none is above 0."""
        rates = self.rates()
        return [d for d, rate in enumerate(rates) if d and rate == max(rates) > 0]

    def alpha(self, i: int) -> Fraction:
        return (self.fixed + i) / self.tokens()[i]

    def lengths(self, alpha: Fraction) -> tuple[int, ...]:
        """Algorithm 1's d, pass by pass; an overshoot past d_max is forgiven (it is L10)."""
        passed = algorithm_one(self.p, alpha, self.block, self.d_max).lengths
        return tuple(min(d, self.d_max) for d in passed)

    def told(self) -> str:
        return (
            f"p = {shown(self.p)}, T(d) = {self.fixed} + d, {'with' if self.bonus else 'without'} bonus, "
            f"n = {self.block}, d_max = {self.d_max}"
        )


def _fractions(rates: Iterable[Fraction]) -> str:
    return ", ".join(str(rate) for rate in rates)


@st.composite
def tuned(draw: st.DrawFn) -> Tuned:
    p = draw(conditionals(longest=10))
    return Tuned(p, draw(weights), draw(st.booleans()), draw(st.integers(1, len(p))))


def all_tuned(level: int) -> Iterator[Tuned]:
    for p in all_conditionals(3 if level < 2 else 4, grid(2 + min(level, 1))):
        for fixed, bonus in product((1, 2, 10), (False, True)):
            yield from (Tuned(p, Fraction(fixed), bonus, block) for block in range(1, len(p) + 1))


OVER_TUNED = (
    "all p of up to 3 places in thirds, T0 of 1, 2 and 10, with and without bonus, each n <= d_max; random "
    "p of up to 10 places"
)

# L8


def _against_best(case: Tuned, chosen: Callable[[Tuned, Fraction], int]) -> Outcome:
    best = case.best()
    if not best:
        return UNMET
    alpha = case.alpha(best[-1])
    found, rates = chosen(case, alpha), case.rates()
    if found in best:
        return None
    return against(
        case.told(),
        f"speedups at d = 0..{case.d_max}, as tokens per unit of time: {_fractions(rates)}",
        f"best: d = {shown(tuple(best))}, where alpha = T / (tau c) = {number(alpha)}",
        f"with this alpha {found} is submitted: {number(1 - rates[found] / max(rates))} of the best speedup "
        f"lost",
    )


def _threshold(case: Tuned, alpha: Fraction) -> int:
    return max((d for d, s in enumerate(survival(case.p), 1) if alpha * s >= 1), default=1)


def _speedups(case: Tuned) -> Plot:
    rates = case.rates()
    found = case.lengths(case.alpha(case.best()[-1]))[-1]
    return Plot(
        f"Best at {case.best()[-1]}; Algorithm 1 submits {found}",
        "line",
        "submitted tokens",
        "tokens per unit of time",
        tuple(range(len(rates))),
        {"speedup": tuple(map(float, rates))},
    )


L8_STATEMENT = Statement(
    words=(
        "With true confidences and alpha = T/(tau c) taken at the best length, Algorithm 1 submits a best "
        "length"
    ),
    formula="q = p, alpha = T(d*) / (c tau(d*))  =>  tau(d)/T(d) is greatest at d = result",
    rule=lambda case: _against_best(case, lambda c, alpha: c.lengths(alpha)[-1]),
    over=OVER_TUNED,
    domain=tuned(),
    every=all_tuned,
    examples=150,
)
L8 = Claim(
    id="L8",
    source=f"{PAPER}, Algorithm 1 with Assumption 3.7 and Theorem 3.6",
    statement=L8_STATEMENT,
    expected="refuted",
    because=(
        "It asks for the average survival of a suffix where the survival of the next place decides (L30), "
        "and so goes past the best length whenever that is below d_max (L32, with proof). The repaired "
        "rule: let r = tau(d*)/T(d*) be the best speedup. Then tau(d) - r T(d) is 0 at the best lengths and "
        "below 0 elsewhere; from d - 1 to d it changes by S_d - r c, which never rises with d. So the last "
        "d with S_d >= r c = 1/alpha is best."
    ),
    pinned=Tuned((Fraction(1), Fraction(0)), Fraction(1), False, 1),
    repaired=L8_STATEMENT.but(
        "With the same alpha, the last d with alpha p_1 .. p_d >= 1 (1 if there is none) is a best length",
        lambda case: _against_best(case, _threshold),
        formula="max{d : alpha S_d >= 1} is in argmax tau(d)/T(d)",
    ),
    first_look=(
        "Optimal in 0 of 6,000 is right where the best length is below d_max, and there it is a theorem "
        "(L32); where it is d_max, Algorithm 1 is optimal. Medians and worst cases are those of the curves "
        "drawn. All p of 4 places in quarters that drafting pays for, T0 = 1, 2, 10, n = 1: "
        "optimal 79 of 1000, median regret 11.2%, worst 33.3% with the bonus, "
        "optimal 208 of 1500, median regret 16.7%, worst 50.0% without. Constant p = .05 to .95, T0 = 5 to "
        "100, n = 10, d_max = 60, where the first look's medians (24% and 37%) and worst (36% and 48%) are "
        "nearly met: optimal 0 of 91, median regret 21.1%, worst 35.1% with the bonus, "
        "optimal 0 of 95, median regret 40.5%, worst 49.3% without. From n <= d* no more than half can be "
        "lost, and without a bonus half is (L33)."
    ),
    plot=_speedups,
)

# L9


def _each_raises(case: Tuned, path: Callable[[Tuned, Fraction], Iterable[int]]) -> Outcome:
    best = case.best()
    if not best or case.block == case.d_max:
        return UNMET
    rates, alpha = case.rates(), case.alpha(best[-1])
    lengths = tuple(path(case, alpha))
    for before, after in pairwise(lengths):
        if rates[after] < rates[before]:
            return against(
                case.told(),
                f"alpha at the best length {best[-1]}: {number(alpha)}; d = {' -> '.join(map(str, lengths))}",
                f"the pass {before} -> {after} takes the speedup from {number(rates[before])} to "
                f"{number(rates[after])}",
            )
    return None


def _one_by_one(case: Tuned, alpha: Fraction) -> Iterator[int]:
    s, d = survival(case.p), case.block
    yield d
    while d < case.d_max and alpha * s[d] >= 1:
        d += 1
        yield d
    while d > 1 and alpha * s[d - 1] < 1:
        d -= 1
        yield d


L9_STATEMENT = Statement(
    words="With true confidences and alpha at the best length, no pass of Algorithm 1 lowers the speedup",
    formula="q = p, a pass takes d to e  =>  tau(e)/T(e) >= tau(d)/T(d)",
    rule=lambda case: _each_raises(case, lambda c, alpha: c.lengths(alpha)),
    over=OVER_TUNED,
    domain=tuned(),
    every=all_tuned,
    examples=150,
)
L9 = Claim(
    id="L9",
    source=f'{PAPER}, Algorithm 1 ("monotonically converges")',
    statement=L9_STATEMENT,
    expected="refuted",
    because=(
        "At the best length d* < d_max a pass extends (L32), which can only lower the speedup. The repaired "
        "steps, with r the best rate and r(d) that of d: alpha S_{d+1} >= 1 means that place d + 1 brings r "
        "c or more for its c, no less than the r(d) c that keeps the rate. Past d*, the longest best "
        "length, rates fall, to d* + 1 by what d* is. Later on, were S_d > c r(d-1), then S_j > c r(d-1) "
        "for all j < d, and tau(d-1) > r T(d*) + c r(d-1) (d - 1 - d*) >= r(d-1) T(d-1) would be more than "
        "itself."
    ),
    pinned=Tuned((Fraction(1), Fraction(0)), Fraction(1), False, 1),
    repaired=L9_STATEMENT.but(
        "Going on by one place while alpha S_{d+1} >= 1, then back by one while alpha S_d < 1, never lowers "
        "it",
        lambda case: _each_raises(case, _one_by_one),
        formula="S_j = p_1 .. p_j",
    ),
    plot=_speedups,
)

# L32


@dataclass(frozen=True)
class TunedAt:
    """alpha is taken at length ``i``, best or not."""

    case: Tuned
    i: int


def all_tuned_at(level: int) -> Iterator[TunedAt]:
    for case in all_tuned(min(level, 1)):
        yield from (TunedAt(case, i) for i in {1, len(case.p)})


def _past_best(at: TunedAt, alpha: Callable[[TunedAt], Fraction], most: int | None = None) -> Outcome:
    case, best = at.case, at.case.best()
    if not best or best[-1] == case.d_max or not case.tokens()[at.i]:
        return UNMET
    found = case.lengths(alpha(at))[-1]
    if best[-1] < found and (most is None or found <= best[-1] + most):
        return None
    return against(case.told(), f"best: {best[-1]}; alpha = {number(alpha(at))}: {found} is submitted")


L32_STATEMENT = Statement(
    words=(
        "With true confidences and alpha = T_i/(tau_i c) taken at any length i, Algorithm 1 submits more "
        "than the longest best length d*, from every block n, unless d* is d_max or 0"
    ),
    formula="q = p, alpha = T(i) / (c tau(i)), 1 <= d* < d_max  =>  result > d*",
    rule=lambda at: _past_best(at, lambda a: a.case.alpha(a.i)),
    over=f"{OVER_TUNED}; alpha at i = 1 and i = d_max, and at random i",
    domain=tuned().flatmap(lambda case: st.builds(TunedAt, st.just(case), st.integers(1, len(case.p)))),
    every=all_tuned_at,
    examples=150,
)
L32 = Claim(
    id="L32",
    source=f"derived from {PAPER}, Algorithm 1 with Assumption 3.7",
    statement=L32_STATEMENT,
    expected="holds",
    because=(
        "No rate is above the best one, r, so alpha >= 1/(c r) whatever i. The place d* pays: S_{d*} >= c r "
        ">= 1/alpha. For each suffix i..d* the products from i on are at least those from 1 on, and those "
        "are at least S_{d*}: each suffix has mean survival 1/alpha or more, and a pass at d* extends "
        "(L30). So W >= d* if d* < d_max, and the result is W + 1 or more (L31)."
    ),
    broken=(
        L32_STATEMENT.but(
            "... with half that alpha", lambda at: _past_best(at, lambda a: a.case.alpha(a.i) / 2)
        ),
        L32_STATEMENT.but("... with alpha = 2.2", lambda at: _past_best(at, lambda a: Fraction(11, 5))),
        L32_STATEMENT.but(
            "... and by one token only", lambda at: _past_best(at, lambda a: a.case.alpha(a.i), most=1)
        ),
    ),
)

# L33


def _keeps(case: Tuned, share: Fraction) -> Outcome:
    best = case.best()
    if not best or case.block > best[-1]:
        return UNMET
    rates = case.rates()
    found = case.lengths(case.alpha(best[-1]))[-1]
    if rates[found] >= share * max(rates):
        return None
    return against(
        case.told(),
        f"best d = {best[-1]}, submitted {found}: {float(rates[found] / max(rates)):.4f} of the best speedup",
    )


L33_STATEMENT = Statement(
    words=(
        "With true confidences and alpha taken at the best length, from a block no longer than that, "
        "Algorithm 1 keeps at least half of the best speedup"
    ),
    formula="q = p, alpha = T(d*) / (c tau(d*)), n <= d*  =>  rate(result) >= rate(d*) / 2",
    rule=lambda case: _keeps(case, Fraction(1, 2)),
    over=OVER_TUNED,
    domain=tuned(),
    every=all_tuned,
    examples=150,
)
L33 = Claim(
    id="L33",
    source=f"derived from {PAPER}, Algorithm 1 with Assumption 3.7",
    statement=L33_STATEMENT,
    expected="holds",
    because=(
        "Write t(d) for tau(d) without the bonus, b = 1 with a bonus and 0 without, r for the best speedup, "
        "R for the result. The last extension went from some d < R to R or beyond, and by i = 1 no further "
        "than alpha t(d) + 1, so R - 1 <= alpha t(R), alpha = 1/(c r). Then T(R) = T(1) + c (R - 1) <= "
        "T(d*) + t(R)/r = (t(d*) + b + t(R)) / r <= (2 t(R) + b) / r, as R >= d* (L32). So rate(R) = (t(R) "
        "+ b) / T(R) >= r (t(R) + b) / (2 t(R) + b) >= r / 2. Without a bonus the half is reached: p = "
        "(1/3, 0, 0), T0 = c; with one it is approached. From n > d* nothing of the kind holds: n = d_max "
        "is submitted unseen."
    ),
    broken=(L33_STATEMENT.but("... at least 51/100 of it", lambda case: _keeps(case, Fraction(51, 100))),),
)

# L34


@dataclass(frozen=True)
class Knob:
    alpha: Fraction
    fixed: Fraction
    bonus: bool
    block: int
    d_max: int


def _somewhere_wrong(case: Knob, sure: tuple[int, ...]) -> Outcome:
    """``sure``: one curve for each, which many places being certain and the rest impossible."""
    if case.block >= case.d_max or (case.bonus and case.fixed <= 1):
        return UNMET
    for count in sure:
        p = tuple(Fraction(int(k < count)) for k in range(case.d_max))
        curve = Tuned(p, case.fixed, case.bonus, case.block)
        if curve.lengths(case.alpha)[-1] not in curve.best():
            return None
    return against(f"{shown(case)}: a best length is submitted on each curve")


def all_knobs(level: int) -> Iterator[Knob]:
    for d_max, alpha in product(range(2, 4 + level), ALPHAS):
        for fixed, bonus, block in product((2, 10), (False, True), range(1, d_max)):
            yield Knob(alpha, Fraction(fixed), bonus, block, d_max)


L34_STATEMENT = Statement(
    words=(
        "Whatever alpha, and whatever the cost and n < d_max, Algorithm 1 misses the best length on one of "
        "two curves: n certain places followed by impossible ones, or all places certain"
    ),
    formula="no alpha: result = d* for both p = (1, .., 1, 0, .., 0) (n ones) and p = (1, .., 1)",
    rule=lambda case: _somewhere_wrong(case, (case.block, case.d_max)),
    over="7 values of alpha, T0 of 2 and 10, with and without bonus, d_max of 2 to 4, n < d_max; random ones",
    domain=st.integers(2, 8).flatmap(
        lambda top: st.builds(
            Knob, weights, weights, st.booleans(), st.integers(1, top - 1), st.sampled_from([top])
        )
    ),
    every=all_knobs,
    examples=150,
)
L34 = Claim(
    id="L34",
    source=f"derived from {PAPER}, Algorithm 1",
    statement=L34_STATEMENT,
    expected="holds",
    because=(
        "With T0 > 0 (T0 > c with a bonus) the rate rises along certain places and falls along impossible "
        "ones: best are n and d_max. At n all suffixes have mean survival 1. If alpha < 1 the first pass "
        "does not extend, and n < d_max is submitted on the second curve. If alpha >= 1 it extends, and on "
        "the first curve n + 1 or more is submitted: the place that stops Algorithm 1 is itself submitted."
    ),
    broken=(
        L34_STATEMENT.but("The first curve alone will do", lambda c: _somewhere_wrong(c, (c.block,))),
        L34_STATEMENT.but("The second curve alone will do", lambda c: _somewhere_wrong(c, (c.d_max,))),
    ),
)

# L37


@dataclass(frozen=True)
class Family:
    """Curves for which drafting pays; ``fixed`` lists the T0."""

    shape: str
    fixed: tuple[int, ...]
    bonus: bool
    block: int
    d_max: int

    def curves(self) -> Iterator[Conditional]:
        """``grid``: all in quarters; ``constant``: in twentieths; ``falling``: straight, between tenths."""
        if self.shape == "grid":
            yield from product(grid(4), repeat=self.d_max)
        elif self.shape == "constant":
            yield from ((q,) * self.d_max for q in grid(20, zero=False, one=False))
        else:
            for first, last in product(grid(10, zero=False), grid(10)):
                if last < first:
                    fall = (first - last) / (self.d_max - 1)
                    yield tuple(first - k * fall for k in range(self.d_max))

    def members(self) -> Iterator[Tuned]:
        for p, fixed in product(self.curves(), self.fixed):
            member = Tuned(p, Fraction(fixed), self.bonus, self.block)
            if member.best():
                yield member


def regret(case: Tuned) -> Fraction:
    """Share of the best speedup that Algorithm 1 loses, alpha taken at the best length."""
    rates = case.rates()
    return 1 - rates[case.lengths(case.alpha(case.best()[-1]))[-1]] / max(rates)


def spread(regrets: Iterable[Fraction]) -> str:
    """How many are 0, the median and the worst."""
    found = sorted(regrets)
    return (
        f"optimal {found.count(Fraction(0))} of {len(found)}, median regret "
        f"{float(found[len(found) // 2]):.1%}, worst {float(found[-1]):.1%}"
    )


def _mostly_best(case: Family) -> Outcome:
    regrets = [regret(member) for member in case.members()]
    if 2 * regrets.count(Fraction(0)) >= len(regrets):
        return None
    at_end = sum(member.best()[-1] == case.d_max for member in case.members())
    return against(
        f"{shown(case)}: {spread(regrets)}", f"best lengths that are d_max: {at_end} of {len(regrets)}"
    )


def _best_at_end(case: Family) -> Outcome:
    for member in case.members():
        if (regret(member) == 0) != (member.best()[-1] == case.d_max):
            return against(
                member.told(), f"regret {number(regret(member))}, best {shown(tuple(member.best()))}"
            )
    return None


def families(level: int) -> Iterator[Family]:
    for bonus in (True, False):
        yield Family("grid", (1, 2, 10), bonus, 1, 3 + min(level, 1))
    if level:
        for bonus in (True, False):
            yield Family("constant", (5, 20, 100), bonus, 16, 24)
            yield Family("falling", (20,), bonus, 16, 24)
    if level > 1:
        for shape, bonus in product(("constant", "falling"), (True, False)):
            yield Family(shape, (5, 10, 20, 40, 100), bonus, 10, 60)


def _histogram(case: Family) -> Plot:
    edges = range(0, 50, 5)
    series = {}
    for bonus in (True, False):
        found = [float(100 * regret(member)) for member in replace(case, bonus=bonus).members()]
        counts = [0.0] * (len(edges) + 1)
        for lost in found:
            counts[0 if lost == 0 else 1 + min(int(lost / 5), len(edges) - 1)] += 100 / len(found)
        series["with bonus" if bonus else "without bonus"] = tuple(counts)
    names = ("none", *(f"{edge} to {edge + 5}%" for edge in edges))
    return Plot(
        f"Speedup lost by Algorithm 1 ({case.shape} p, n {case.block}, d_max {case.d_max})",
        "bars",
        "part of the best speedup that is lost",
        "curves (%)",
        names,
        series,
    )


L37_STATEMENT = Statement(
    words=(
        "With true confidences and alpha at the best length, Algorithm 1 submits a best length for at least "
        "half of the curves of a family (among curves for which drafting pays)"
    ),
    rule=_mostly_best,
    over=(
        "families with and without bonus: all p of 4 places in quarters, T0 1, 2, 10, n = 1, d_max = 4; "
        "constant and falling p, T0 5 to 100, n = 16, d_max = 24 (and n = 10, d_max = 60 at the largest "
        "effort)"
    ),
    every=families,
)
L37 = Claim(
    id="L37",
    source=f"derived from {PAPER}, Algorithm 1 with Assumption 3.7",
    statement=L37_STATEMENT,
    expected="refuted",
    because="L32: it is optimal only where the best length is d_max. There it is, as it stops no sooner.",
    pinned=Family("constant", (5, 20, 100), True, 16, 24),
    repaired=L37_STATEMENT.but("It does so exactly for the curves whose best length is d_max", _best_at_end),
    plot=_histogram,
)

CLAIMS = (L7, L8, L9, L10, L11, L30, L31, L32, L33, L34, L35, L36, L37)
