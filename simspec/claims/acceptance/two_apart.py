"""Acceptance two levels apart, from that of adjacent levels (S8, S8b).

alpha_ij = sum min(p_i, p_j) = 1 - TV(p_i, p_j), p_i the distribution of M_i, TV total variation.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from simspec.claims.acceptance.cases import Triple, alike
from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.plain import number, shown
from simspec.strategies.distributions import all_distributions, normalised, overlap


def _triples(level: int) -> Iterator[Triple]:
    for size, parts in ((2, 5 + 2 * level), (3, 2 + level)):
        yield from product(all_distributions(size, parts), repeat=3)


OVER_TRIPLES = "all triples over 2 and 3 tokens with small denominators; random triples over 2 to 4 tokens"


def _alphas(triple: Triple) -> tuple[Fraction, Fraction, Fraction]:
    first, second, third = triple
    return overlap(first, second), overlap(second, third), overlap(first, third)


def _at_least(triple: Triple) -> Outcome:
    a12, a23, a13 = _alphas(triple)
    return None if a13 >= a12 + a23 - 1 else against(f"{a13} < {a12} + {a23} - 1")


def _product(triple: Triple) -> Outcome:
    a12, a23, a13 = _alphas(triple)
    if a13 == a12 * a23:
        return None
    sign = "<" if a13 < a12 * a23 else ">"
    return against(
        *(f"M{i} = {shown(p)}" for i, p in enumerate(triple, 1)),
        f"alpha_12 = {number(a12)}, alpha_23 = {number(a23)}: their product is {number(a12 * a23)}",
        f"alpha_13 = {number(a13)}, which is {sign} the product",
    )


def _at_least_product(triple: Triple) -> Outcome:
    a12, a23, a13 = _alphas(triple)
    return None if a13 >= a12 * a23 else against(f"{a13} < {a12} x {a23}")


def _at_most_product(triple: Triple) -> Outcome:
    a12, a23, a13 = _alphas(triple)
    return None if a13 <= a12 * a23 else against(f"{a13} > {a12} x {a23}")


def _bounds(triple: Triple) -> Outcome:
    a12, a23, a13 = _alphas(triple)
    if a12 + a23 - 1 <= a13 <= 1 - abs(a12 - a23):
        return None
    return against(f"{a13} is outside [{a12 + a23 - 1}, {1 - abs(a12 - a23)}]")


S8_STATEMENT = Statement(
    words="Acceptance two levels apart is at least the sum of the adjacent ones less 1",
    formula="alpha_13 >= alpha_12 + alpha_23 - 1",
    rule=_at_least,
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
        S8_STATEMENT.but("It is at least their product", _at_least_product),
        S8_STATEMENT.but("It is at most their product", _at_most_product),
    ),
)
S8B = Claim(
    id="S8b",
    source="the product form of chain acceptance in readings of SpecRouter's (2505.07680) Eq. 7",
    statement=S8_STATEMENT.but(
        "Acceptance two levels apart is the product of the adjacent ones",
        _product,
        formula="alpha_13 = alpha_12 alpha_23",
    ),
    expected="refuted",
    because=(
        "The three numbers obey only the triangle inequality, from both sides. M1 = M3 far from M2 makes "
        "alpha_13 = 1 over any product; disjoint overlaps make it 0 under a product above 0."
    ),
    pinned=(normalised((1, 0)), normalised((0, 1)), normalised((1, 0))),
    repaired=S8_STATEMENT.but(
        "It lies between the sum of the adjacent ones less 1, and 1 less their difference",
        _bounds,
        formula="alpha_12 + alpha_23 - 1 <= alpha_13 <= 1 - |alpha_12 - alpha_23|",
    ),
)

CLAIMS = (S8, S8B)
