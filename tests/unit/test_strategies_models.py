"""Models as tables: they say what they should, and the strategies reach the cases that matter."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from hypothesis import Phase, find, given, settings

from simspec.claims.plain import plain
from simspec.strategies.distributions import argmax, normalised, overlap
from simspec.strategies.models import (
    Table,
    all_next_distributions,
    all_next_tokens,
    contexts,
    distribution_levels,
    next_distributions,
    next_tokens,
    texts,
    token_levels,
)

# The first case that is found will do: no shrinking.
SEARCH = settings(max_examples=3000, database=None, deadline=None, phases=[Phase.generate])


def test_a_table_looks_at_the_last_tokens_that_it_sees():
    """After nothing 0; after 0, 1 and 2: 1, 2, 0."""
    table = Table(3, 1, (0, 1, 2, 0))
    assert [table.after(text) for text in ((), (0,), (1,), (2,), (0, 1), (2, 2, 1))] == [0, 1, 2, 0, 2, 2]
    assert Table(2, 0, (1,)).after((0, 0, 1)) == 1


def test_each_text_has_its_own_value():
    everything = list(texts(2, 2))
    assert everything == [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1)]
    table = Table(2, 2, tuple(everything))
    assert [table.after(text) for text in everything] == everything
    assert table.after((1, 0, 1)) == (0, 1)


def test_a_table_of_the_wrong_size_is_refused():
    with pytest.raises(ValueError, match="has 3 values, not 2"):
        Table(2, 1, (0, 1))


def test_a_table_in_words_and_as_data():
    table = Table(2, 1, (normalised((1, 1)), normalised((1, 0)), normalised((0, 1))))
    assert plain(table) == {"vocabulary": 2, "sees": 1, "values": [["1/2", "1/2"], ["1", "0"], ["0", "1"]]}
    assert Table(2, 1, (1, 0, 0)).lines("M") == ("M says 1 after nothing, 0 after 0, 0 after 1",)
    assert Table(2, 1, (1, 1, 1)).lines("M") == ("M says 1 after every text",)


@pytest.mark.parametrize(("vocabulary", "sees"), [(2, 0), (2, 1), (3, 1), (2, 2)])
def test_enumerations_have_every_function_once(vocabulary, sees):
    everything = list(all_next_tokens(vocabulary, sees))
    assert len(set(everything)) == len(everything) == vocabulary ** contexts(vocabulary, sees)


def test_enumerated_distributions():
    """Over 2 tokens in multiples of 1/2 there are 3: two point masses and the even one."""
    everything = list(all_next_distributions(2, 1, 2))
    assert len(set(everything)) == len(everything) == 3**3
    assert all(sum(p) == 1 for table in everything for p in table.values)


@given(levels=distribution_levels(4, 3, 1))
def test_levels_are_distributions_of_one_kind(levels):
    assert len(levels) == 4
    for level in levels:
        assert (level.vocabulary, level.sees) == (3, 1)
        assert all(sum(p) == 1 and min(p) >= 0 for p in level.values)


def _near(level) -> bool:
    """A near tie: two probabilities that differ by less than a millionth."""
    return any(0 < abs(p[0] - p[1]) < Fraction(1, 10**6) for p in level.values)


@pytest.mark.parametrize(
    "wanted",
    [
        lambda t: any(0 in p and max(p) < 1 for p in t.values),
        lambda t: any(max(p) == 1 for p in t.values),
        lambda t: any(p[0] == p[1] > 0 for p in t.values),
        _near,
        lambda t: t.after((0,)) != t.after((1,)),
        lambda t: len(set(t.values)) == 1,
    ],
    ids=["zero", "point mass", "tie", "near tie", "memory", "no memory"],
)
def test_next_distributions_reach(wanted):
    find(next_distributions(3, 1), wanted, settings=SEARCH, random=Random(0))


@pytest.mark.parametrize(
    "wanted",
    [
        lambda m: m[0] == m[1] == m[2],
        lambda m: m[0] == m[1] != m[2],
        lambda m: m[1] == m[2] != m[0],
        lambda m: all(a != b for a, b in zip(m[0].values, m[2].values, strict=True)),
        # A drafter that inherits an error of the level above it, and is right elsewhere.
        lambda m: (
            [d == t for d, t in zip(m[0].values, m[2].values, strict=True)]
            == [i == t for i, t in zip(m[1].values, m[2].values, strict=True)]
            and m[0] not in (m[1], m[2])
        ),
        # Refused by the intermediate, though the target would take it.
        lambda m: m[0].after(()) == m[2].after(()) != m[1].after(()),
    ],
    ids=["all agree", "wrong together", "one wrong", "never agree", "correlated", "refused in vain"],
)
def test_token_levels_reach(wanted):
    find(token_levels(3, 3, 1), wanted, settings=SEARCH, random=Random(0))


def _overlaps(m) -> list[Fraction]:
    return [overlap(a, b) for a, b in zip(m[0].values, m[1].values, strict=True)]


@pytest.mark.parametrize(
    "wanted",
    [
        lambda m: set(_overlaps(m)) == {1},
        lambda m: set(_overlaps(m)) == {0},
        # Survival that tells the token before it.
        lambda m: (
            overlap(m[0].after((0,)), m[1].after((0,))) == 1
            and overlap(m[0].after((1,)), m[1].after((1,))) == 0
        ),
        lambda m: all(0 < x < 1 for x in _overlaps(m)),
        # Near to one another, and different tokens in front.
        lambda m: any(
            overlap(a, b) > Fraction(99, 100) and argmax(a) != argmax(b)
            for a, b in zip(m[0].values, m[1].values, strict=True)
        ),
        # The drafter never says what the target may say.
        lambda m: any(
            a[x] == 0 < c[x] for a, c in zip(m[0].values, m[2].values, strict=True) for x in range(2)
        ),
        lambda m: all(_near(level) for level in m),
    ],
    ids=["equal", "disjoint", "telling", "partial", "near, other argmax", "unsupported", "near ties"],
)
def test_distribution_levels_reach(wanted):
    find(distribution_levels(3, 2, 1), wanted, settings=SEARCH, random=Random(0))


def test_next_tokens_reach_every_function():
    seen = {
        find(next_tokens(2, 1), lambda t, f=f: t == f, settings=SEARCH, random=Random(0))
        for f in all_next_tokens(2, 1)
    }
    assert len(seen) == 8
