"""Distributions as fractions: sums by hand, and the strategy reaches zeros, point masses and ties."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from simspec.strategies.distributions import (
    all_distributions,
    argmax,
    distributions,
    mixture,
    normalised,
    overlap,
    point_mass,
    total_variation,
)

# The first case that is found will do: no shrinking.
SEARCH = settings(max_examples=3000, database=None, deadline=None, phases=[Phase.generate])
HALF = Fraction(1, 2)


@given(distributions())
def test_they_are_distributions(p):
    assert 2 <= len(p) <= 3
    assert sum(p) == 1
    assert min(p) >= 0


@pytest.mark.parametrize(
    "wanted",
    [
        lambda p: 0 in p and max(p) < 1,
        lambda p: p == point_mass(2, 3),
        lambda p: p[0] == p[1] == p[2],
        lambda p: 0 < max(p) - sorted(p)[1] < Fraction(1, 10**6),
        lambda p: min(p) > 0 and len(set(p)) == 3,
    ],
    ids=["zero", "point mass", "tie", "near tie", "all different"],
)
def test_distributions_reach(wanted):
    find(distributions(3), wanted, settings=SEARCH, random=Random(0))


def test_enumeration():
    """Over 2 tokens with denominators to 4: 2 + 1 + 2 + 2 (Farey); each once, small denominators first."""
    found = list(all_distributions(2, 4))
    assert len(found) == len(set(found)) == 7
    denominators = [max(x.denominator for x in p) for p in found]
    assert denominators == sorted(denominators) == [1, 1, 2, 3, 3, 4, 4]
    # Over 3 tokens: 3 point masses, 3 halves, and 1 + 6 in thirds.
    assert len(set(all_distributions(3, 3))) == 3 + 3 + 7


@pytest.mark.parametrize("weights", [(0, 0), (1, -1)])
def test_weights_that_are_none(weights):
    with pytest.raises(ValueError, match="at least 0 and not all 0"):
        normalised(weights)


def test_by_hand():
    p, q = normalised((1, 1)), normalised((3, 1))
    assert total_variation(p, q) == Fraction(1, 4)
    assert overlap(p, q) == Fraction(3, 4)
    assert mixture(p, q, HALF) == (Fraction(5, 8), Fraction(3, 8))
    assert argmax(q) == 0
    assert argmax(normalised((1, 2, 2))) == 1


@given(p=distributions(3), q=distributions(3), share=st.integers(0, 8).map(lambda k: Fraction(k, 8)))
def test_a_mixture_lies_between(p, q, share):
    mixed = mixture(p, q, share)
    assert sum(mixed) == 1
    assert total_variation(mixed, q) == share * total_variation(p, q)
    assert total_variation(mixed, p) == (1 - share) * total_variation(p, q)


@pytest.mark.parametrize("share", [Fraction(-1, 8), Fraction(9, 8)])
def test_shares_that_are_none(share):
    with pytest.raises(ValueError, match="from 0 to 1"):
        mixture(point_mass(0, 2), point_mass(1, 2), share)
