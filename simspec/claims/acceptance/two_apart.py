"""Acceptance two levels apart, from that of adjacent levels (S8, S8b).

alpha_ij = sum min(p_i, p_j) = 1 - TV(p_i, p_j), p_i the distribution of M_i, TV total variation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from operator import mul

from simspec.claims.acceptance.cases import Triple, alike
from simspec.claims.base import Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import number, shown
from simspec.strategies.distributions import all_distributions, normalised, overlap


def _triples(level: int) -> Iterator[Triple]:
    for size, parts in ((2, 5 + 2 * level), (3, 2 + level)):
        yield from product(all_distributions(size, parts), repeat=3)


OVER_TRIPLES = "all triples over 2 and 3 tokens with small denominators; random triples over 2 to 4 tokens"


def _alphas(triple: Triple) -> tuple[Fraction, Fraction, Fraction]:
    first, second, third = triple
    return overlap(first, second), overlap(second, third), overlap(first, third)


Bound = Callable[[Fraction, Fraction], Fraction]


def _between(low: Bound, high: Bound) -> Rule:
    """alpha_13 within bounds made of alpha_12 and alpha_23."""

    def rule(triple: Triple) -> Outcome:
        a12, a23, a13 = _alphas(triple)
        least, most = low(a12, a23), high(a12, a23)
        if least <= a13 <= most:
            return None
        bound = f"at least {number(least)}" if a13 < least else f"at most {number(most)}"
        return against(
            *(f"M{i} = {shown(p)}" for i, p in enumerate(triple, 1)),
            f"alpha_12 = {number(a12)} and alpha_23 = {number(a23)}, so alpha_13 should be {bound}",
            f"alpha_13 = {number(a13)}",
        )

    return rule


def _triangle(a12: Fraction, a23: Fraction) -> Fraction:
    return a12 + a23 - 1


def _apart(a12: Fraction, a23: Fraction) -> Fraction:
    return 1 - abs(a12 - a23)


def _one(a12: Fraction, a23: Fraction) -> Fraction:
    return Fraction(1)


S8_STATEMENT = Statement(
    words="Acceptance two levels apart is at least the sum of the adjacent ones less 1",
    formula="alpha_13 >= alpha_12 + alpha_23 - 1",
    rule=_between(_triangle, _one),
    over=OVER_TRIPLES,
    domain=alike(3),
    every=_triples,
)
S8 = Claim(
    id="S8",
    source="triangle inequality of total variation, for SpecRouter's (2505.07680) alpha",
    statement=S8_STATEMENT,
    expected="holds",
    because="TV(1,3) <= TV(1,2) + TV(2,3), and alpha = 1 - TV.",
    broken=(
        S8_STATEMENT.but("It is at least their product", _between(mul, _one)),
        S8_STATEMENT.but("It is at least the smaller of them", _between(min, _one)),
    ),
)
S8B_REPAIRED = S8_STATEMENT.but(
    "It lies between the sum of the adjacent ones less 1, and 1 less their difference",
    _between(_triangle, _apart),
    formula="alpha_12 + alpha_23 - 1 <= alpha_13 <= 1 - |alpha_12 - alpha_23|",
)
S8B = Claim(
    id="S8b",
    source="the product form of chain acceptance in readings of SpecRouter's (2505.07680) Eq. 7",
    statement=S8_STATEMENT.but(
        "Acceptance two levels apart is the product of the adjacent ones",
        _between(mul, mul),
        formula="alpha_13 = alpha_12 alpha_23",
    ),
    expected="refuted",
    because=(
        "The three numbers obey only the triangle inequality, from both sides. M1 = M3 far from M2 makes "
        "alpha_13 = 1 over any product; disjoint overlaps make it 0 under a product above 0."
    ),
    pinned=(normalised((1, 0)), normalised((0, 1)), normalised((1, 0))),
    repaired=S8B_REPAIRED,
    broken=(
        S8B_REPAIRED.but("It is at most their product", _between(_triangle, mul)),
        S8B_REPAIRED.but("It is at most the greater of them", _between(_triangle, max)),
        S8B_REPAIRED.but("It is at least their product, and within the upper bound", _between(mul, _apart)),
    ),
)

CLAIMS = (S8, S8B)
