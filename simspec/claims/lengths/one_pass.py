"""What one pass of LibraSpec's Algorithm 1 computes (L7, L30).

G_i(d) and alpha are those of ``simspec.theory.libraspec``; q_k = confidence that place k is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from operator import mul

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.lengths.runs import ALPHAS, PAPER, weights
from simspec.claims.plain import number, shown
from simspec.strategies.survivals import Conditional, all_conditionals, conditionals, grid, survival
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


OVER_PASSES = (
    "all q of up to 3 places in quarters, 7 values of alpha from 2/5 to 16/5, each d; random q of up to 8 "
    "places"
)

# L7


def _gain_told(q: Conditional, i: int, d: int) -> str:
    """The sum that G_i(d) is; places past the end of q add nothing."""
    return " + ".join(map(str, accumulate(q[i - 1 : d], mul))) or "0"


def _same_limit(case: Pass) -> Outcome:
    for i, found in enumerate(pass_limits(case.q, case.alpha, case.d), 1):
        printed = theorem_limit(case.q, case.alpha, i)
        rounded = theorem_limit(case.q, case.alpha, i, or_equal=True)
        if found not in (printed, rounded):
            bounds = "; ".join(
                f"d' = {d}: bound {case.alpha} x ({_gain_told(case.q, i, d)}) + {i} = "
                f"{number(case.alpha * conditional_gain(case.q, i, d) + i)}"
                for d in sorted({printed, printed + 1, rounded, rounded + 1})
            )
            return against(
                f"q = {shown(case.q)}, alpha = {case.alpha}, place i = {i}, present length d = {case.d}; the "
                f"gain of places {i}..d' is q_{i} + q_{i} q_{i + 1} + .. to d'",
                f"Algorithm 1 at d: {case.alpha} x ({_gain_told(case.q, i, case.d)}) + {i} = "
                f"{number(case.alpha * conditional_gain(case.q, i, case.d) + i)}, rounded down {found}",
                f"the theorems bound d' by its own gain. {bounds}",
                f"the greatest d' below its bound is {printed}, the greatest not above its bound {rounded}; "
                f"Algorithm 1 has {found}",
            )
    return None


def _towards_limit(case: Pass, up: tuple[int, int] = (0, 0), down: tuple[int, int] = (1, 0)) -> Outcome:
    """``up`` and ``down``: how far a pass moves at least, and how far from eps_i it stays at least."""
    for i, found in enumerate(pass_limits(case.q, case.alpha, case.d), 1):
        meant = theorem_limit(case.q, case.alpha, i, or_equal=True)
        if case.d <= meant:
            low, high = min(meant, case.d + up[0]), max(case.d, meant - up[1])
        else:
            low, high = min(case.d - 1, meant + down[1]), max(meant, case.d - down[0])
        if not low <= found <= high:
            return against(
                f"q = {shown(case.q)}, alpha = {case.alpha}: from length {case.d} Algorithm 1 has eps_{i} = "
                f"{found}, not within {low}..{high}; the theorems, with <=, have {meant}"
            )
    return None


L7_REPAIRED = Statement(
    words=(
        "Algorithm 1's eps_i lies between the present length d and the theorems' eps_i (their '<' read as "
        "'<='), never past it, and below d where d is past it"
    ),
    formula=(
        "eps_i = max{d' : d' <= alpha G_i(d') + i}.  d <= eps_i: d <= floor(alpha G_i(d) + i) <= eps_i;  "
        "d > eps_i: eps_i <= floor(alpha G_i(d) + i) < d"
    ),
    rule=_towards_limit,
    over=OVER_PASSES,
    domain=passes(),
    every=all_passes,
    examples=100,
)
L7 = Claim(
    id="L7",
    source=f"{PAPER}, Algorithm 1 beside Theorems 3.3 and 3.4",
    statement=Statement(
        words=(
            "The eps_i that Algorithm 1 computes at a length d is the eps_i of the theorems, with '<' as "
            "they print it or with '<=', as the algorithm rounds"
        ),
        formula="floor(alpha G_i(d) + i) = max{d' : d' < alpha G_i(d') + i}, or that with <= for <",
        rule=_same_limit,
        over=OVER_PASSES,
        domain=passes(),
        every=all_passes,
    ),
    expected="refuted",
    because=(
        "The theorems' sum runs to the length that is being bounded, Algorithm 1's to the length that it "
        "has. (They also differ in rounding: the theorems' strict '<' is one less wherever alpha G_i + i is "
        "whole; a case counts against the claim only where neither reading agrees.) What is true, with '<=': "
        "F(d) = floor(alpha G_i(d) + i) never falls with d, and the theorems' eps is the greatest d' with d' "
        "<= F(d'). The lengths with d <= F(d) have no gap below eps, since alpha G_i(d) - d is concave. So d "
        "<= eps gives d <= F(d) <= F(eps) = eps, and d > eps gives eps <= F(d) < d: a pass goes part of the "
        "way, and can stop short where alpha G_i(d) + i - d is between 0 and 1."
    ),
    pinned=Pass((Fraction(1), Fraction(1)), Fraction(2), 1),
    repaired=L7_REPAIRED,
    broken=(
        L7_REPAIRED.but(
            "... and a pass below it goes on by one place or more",
            lambda case: _towards_limit(case, up=(1, 0)),
        ),
        L7_REPAIRED.but(
            "... and a pass that goes on stays below it", lambda case: _towards_limit(case, up=(0, 1))
        ),
        L7_REPAIRED.but(
            "... and a pass past it gives back two places or more, if it is that far past",
            lambda case: _towards_limit(case, down=(2, 0)),
        ),
        L7_REPAIRED.but(
            "... and a pass past it does not fall to it at once",
            lambda case: _towards_limit(case, down=(1, 1)),
        ),
    ),
)

# L30

# What is compared with 1/alpha: a name and a number for each.
Measures = Callable[[Pass], list[tuple[str, Fraction]]]


def _mean_survivals(case: Pass) -> list[tuple[str, Fraction]]:
    """Of every suffix of the block, taken as a block of its own; the whole block is the first."""
    means = []
    for i in range(1, case.d + 1):
        products = list(accumulate(case.q[i - 1 : case.d], mul))
        means.append((f"mean of places {i}..{case.d}", sum(products, Fraction(0)) / len(products)))
    return means


def _goes_on(case: Pass, measures: Measures) -> Outcome:
    """Whether "all these are 1/alpha or more" says what the pass does."""
    found = min(pass_limits(case.q, case.alpha, case.d)) > case.d
    held = measures(case)
    if found == all(case.alpha * measure >= 1 for _, measure in held):
        return None
    return against(
        f"q = {shown(case.q)}, alpha = {case.alpha}, d = {case.d}: the pass "
        f"{'extends' if found else 'stops'}",
        f"1 / alpha = {number(1 / case.alpha)}; "
        + ", ".join(f"{name}: {number(measure)}" for name, measure in held),
    )


L30_STATEMENT = Statement(
    words=(
        "A pass of Algorithm 1 extends the block exactly if each of its suffixes, taken as a block of its "
        "own, has a mean survival of at least 1 / alpha"
    ),
    formula="min_i floor(alpha G_i(d) + i) > d  <=>  G_i(d) / (d + 1 - i) >= 1 / alpha for all i <= d",
    rule=lambda case: _goes_on(case, _mean_survivals),
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
        L30_STATEMENT.but(
            "... if the whole block has", lambda case: _goes_on(case, lambda c: _mean_survivals(c)[:1])
        ),
        L30_STATEMENT.but(
            "... if its last place has", lambda case: _goes_on(case, lambda c: _mean_survivals(c)[-1:])
        ),
        L30_STATEMENT.but(
            "... exactly if the survival of its last place, p_1 .. p_d, is at least 1 / alpha",
            lambda case: _goes_on(case, lambda c: [(f"survival of place {c.d}", survival(c.q)[c.d - 1])]),
        ),
    ),
)

CLAIMS = (L7, L30)
