"""Requests with different acceptance rates, each independent within itself (S3b and its parts).

alpha = acceptance rate, gamma = draft length, E(alpha, gamma) = (1 - alpha^(gamma+1)) / (1 - alpha)
(arXiv 2211.17192). Which mean of the rates is meant decides to which side the
formula errs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement

from hypothesis import strategies as st

from simspec.claims.acceptance.expected_tokens import Sequence, counted, mean_over_outcomes
from simspec.claims.base import Claim, Outcome, Plot, Statement, against
from simspec.claims.plain import number, shown
from simspec.strategies.survivals import chances, grid
from simspec.theory.acceptance import emitted_tokens

Requests = tuple[tuple[Fraction, ...], int]


@cache
def _tokens(rate: Fraction, drafts: int) -> Fraction:
    return mean_over_outcomes((rate,) * drafts, counted)


def mean(values: list[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def by_cycles(rates: tuple[Fraction, ...], drafts: int) -> Fraction:
    """Tokens a cycle where each request runs as many cycles as any other."""
    return mean([_tokens(a, drafts) for a in rates])


def by_outputs(rates: tuple[Fraction, ...], drafts: int) -> Fraction:
    """Tokens a cycle, in the long run, where each request emits as many tokens as any other."""
    return 1 / mean([1 / _tokens(a, drafts) for a in rates])


def pooled_rate(rates: tuple[Fraction, ...], drafts: int) -> Fraction:
    """Drafts accepted over drafts tested (those up to the first refusal), equal cycles: what a log gives."""

    def tested(agreed: Sequence) -> int:
        return min(counted(agreed), len(agreed))

    accepted = by_cycles(rates, drafts) - 1
    return accepted / mean([mean_over_outcomes((a,) * drafts, tested) for a in rates])


Sides = Callable[[tuple[Fraction, ...], int], tuple[Fraction, Fraction]]


def _against_mean(
    truth: Callable[[tuple[Fraction, ...], int], Fraction],
) -> Sides:
    return lambda rates, drafts: (truth(rates, drafts), emitted_tokens(mean(list(rates)), drafts))


def _cycles_against_pooled(rates: tuple[Fraction, ...], drafts: int) -> tuple[Fraction, Fraction]:
    return by_cycles(rates, drafts), emitted_tokens(pooled_rate(rates, drafts), drafts)


def _compared(sides: Sides, sign: int, linear: int) -> Callable[[Requests], Outcome]:
    """The truth is above (1), below (-1) or at (0) the formula; exactly at it where nothing can differ.

    Args:
        linear: largest gamma at which different rates make no difference.
    """

    def rule(case: Requests) -> Outcome:
        rates, drafts = case
        truth, said = sides(rates, drafts)
        wanted = sign if len(set(rates)) > 1 and drafts > linear else 0
        if (truth > said) - (truth < said) == wanted:
            return None
        return against(
            f"requests accept with rates {shown(rates)}, {drafts} drafted",
            f"tokens a cycle: {number(truth)}",
            f"(1 - a^{drafts + 1}) / (1 - a) at the one rate: {number(said)}",
        )

    return rule


def _sandwich(case: Requests) -> Outcome:
    rates, drafts = case
    at_mean = emitted_tokens(mean(list(rates)), drafts)
    numbers = (
        by_outputs(rates, drafts),
        at_mean,
        by_cycles(rates, drafts),
        emitted_tokens(pooled_rate(rates, drafts), drafts),
    )
    if list(numbers) == sorted(numbers):
        return None
    return against(f"rates {shown(rates)}, {drafts} drafted: not rising: {shown(numbers)}")


def _mixes(level: int) -> Iterator[Requests]:
    for size in (2, 3):
        for drafts in range(1, 4 + level):
            for rates in combinations_with_replacement(grid(3 + level), size):
                yield rates, drafts


def _curve(case: Requests) -> Plot:
    """Tokens a cycle over the rate: convex, so that a mean of it lies above it."""
    rates, drafts = case
    steps = [Fraction(k, 20) for k in range(21)]
    low, high = min(rates), max(rates)
    ends = [emitted_tokens(a, drafts) for a in (low, high)]
    chord = [
        float(ends[0] + (ends[1] - ends[0]) * (a - low) / (high - low)) if low <= a <= high else float("nan")
        for a in steps
    ]
    return Plot(
        f"Tokens a cycle, {drafts} drafted",
        "line",
        "acceptance rate",
        "tokens",
        tuple(map(float, steps)),
        {
            "one rate for all": tuple(float(emitted_tokens(a, drafts)) for a in steps),
            "half of the cycles at each end": tuple(chord),
        },
    )


CYCLES = Statement(
    words=(
        "Where requests differ in their acceptance rate and each runs as many cycles, a cycle emits more "
        "tokens on average than at the mean rate"
    ),
    formula="mean E(a_i, gamma) >= E(mean a_i, gamma), strictly for gamma >= 2 and rates that differ",
    rule=_compared(_against_mean(by_cycles), 1, 1),
    over="2 and 3 requests with rates in quarters, gamma 1 to 4 (finer at larger budgets); random ones",
    domain=st.tuples(st.lists(chances(), min_size=2, max_size=4).map(tuple), st.integers(1, 5)),
    every=_mixes,
    examples=60,
)
OUTPUTS = CYCLES.but(
    "Where each request emits as many tokens instead, cycles emit fewer tokens on average than at the "
    "mean rate",
    _compared(_against_mean(by_outputs), -1, 0),
    formula="1 / mean(1 / E(a_i, gamma)) <= E(mean a_i, gamma), strictly for rates that differ",
)
POOLED = CYCLES.but(
    "With as many cycles each, cycles emit fewer tokens on average than at the pooled conditional rate "
    "(drafts accepted over drafts tested)",
    _compared(_cycles_against_pooled, -1, 1),
    formula=(
        "mean E(a_i, gamma) <= E(r, gamma), r = sum a_i w_i / sum w_i, w_i = E(a_i, gamma - 1); strictly for "
        "gamma >= 2 and rates that differ"
    ),
)
CONVEX = (
    "1/E is convex: for u = 1 + a + .. + a^g the coefficient of a^(s-2) in 2 u'^2 - u u'' is the sum of "
    "3ij - (s^2 - s)/2 over i + j = s, i, j <= g, which is 0 for s <= g (all i from 0 to s) and at least 0 "
    "beyond, since what is left out then has i and j furthest apart and ij smallest."
)
S3B = Claim(
    id="S3b",
    source="arXiv 2211.17192 Eq. 1, used with a mean acceptance rate",
    statement=CYCLES.but(
        "The formula still holds with the mean rate where the acceptance rate varies between requests",
        _compared(_against_mean(by_cycles), 0, 0),
        formula="mean E(a_i, gamma) = E(mean a_i, gamma)",
    ),
    expected="refuted",
    because=(
        "E bends in the rate, and which mean is meant decides to which side: S3b-cycles, S3b-outputs and "
        "S3b-pooled state the three. Only at one drafted token and equal cycles is nothing lost."
    ),
    pinned=((Fraction(0), Fraction(1)), 2),
    repaired=CYCLES.but(
        "Equal outputs give at most the formula at the mean rate, equal cycles at least that, and the "
        "formula at the pooled conditional rate at least as much again",
        _sandwich,
        formula="1 / mean(1 / E(a_i)) <= E(mean a_i) <= mean E(a_i) <= E(pooled rate)",
    ),
    plot=_curve,
)
S3B_CYCLES = Claim(
    id="S3b-cycles",
    source="convexity of arXiv 2211.17192's Eq. 1",
    statement=CYCLES,
    expected="holds",
    because="E(a) = 1 + a + .. + a^gamma is convex, and strictly so from gamma = 2 on: Jensen's inequality.",
    broken=(CYCLES.but("It emits fewer", _compared(_against_mean(by_cycles), -1, 1)),),
)
S3B_OUTPUTS = Claim(
    id="S3b-outputs",
    source="as S3b-cycles, weighed by output",
    statement=OUTPUTS,
    expected="holds",
    because=(
        "A request with rate a needs 1/E(a) cycles a token in the long run, so the mean is harmonic. "
        + CONVEX
    ),
    broken=(OUTPUTS.but("They emit more", _compared(_against_mean(by_outputs), 1, 0)),),
)
S3B_POOLED = Claim(
    id="S3b-pooled",
    source="as S3b-cycles, against the rate that a log of verdicts gives",
    statement=POOLED,
    expected="holds",
    because=(
        "Let w(a) = E(a, gamma - 1), the drafts tested a cycle, so that E = 1 + a w and the pooled rate r is "
        "the mean of a weighed by w. Under those weights the mean of 1/w is 1 / mean(w), and by convexity of "
        "1/w it is at least 1/w(r). Hence mean(w) <= w(r), and mean(a w) = r mean(w) <= r w(r). " + CONVEX
    ),
    broken=(
        POOLED.but(
            "The pooled rate gives the tokens a cycle exactly", _compared(_cycles_against_pooled, 0, 0)
        ),
    ),
)

CLAIMS = (S3B, S3B_CYCLES, S3B_OUTPUTS, S3B_POOLED)
