"""What one pass of LibraSpec's Algorithm 1 computes (L7, L30).

G_i(d) and alpha are those of ``simspec.theory.libraspec``; q_k = confidence that place k is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from operator import mul

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.lengths.runs import ALPHAS, PAPER, weights
from simspec.claims.plain import number, shown
from simspec.strategies.survivals import Conditional, all_conditionals, conditionals, grid
from simspec.theory.lengths import conditional_gain
from simspec.theory.libraspec import pass_limits, theorem_limit

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

CLAIMS = (L7, L30)
