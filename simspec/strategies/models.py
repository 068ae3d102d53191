"""Language models as small tables: what a model says after every text, as plain data.

A model that sees the last ``sees`` tokens says one thing after each of the texts of 0 .. ``sees`` tokens;
after a longer text it looks at the last ``sees``. With ``sees = n`` it is any model at all for
texts of n + 1 tokens. What it says is a token (greedy decoding) or a distribution (sampling).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Generic, TypeVar

from hypothesis import strategies as st

from simspec.strategies.distributions import (
    Distribution,
    all_distributions,
    distributions,
    mixture,
    point_mass,
)

Text = tuple[int, ...]
Said = TypeVar("Said")


@dataclass(frozen=True)
class Table(Generic[Said]):
    """What a model says after each text.

    Attributes:
        vocabulary: tokens are 0 .. vocabulary - 1, at least 2.
        sees: how many of the last tokens it looks at.
        values: what it says, in the order of :func:`texts`.
    """

    vocabulary: int
    sees: int
    values: tuple[Said, ...]

    def __post_init__(self) -> None:
        wanted = contexts(self.vocabulary, self.sees)
        if len(self.values) != wanted:
            raise ValueError(f"a table of this kind has {wanted} values, not {len(self.values)}")

    def index(self, text: Text) -> int:
        """Where what it says after ``text`` stands in ``values``."""
        seen = text[len(text) - min(len(text), self.sees) :]
        place = 0
        for token in seen:
            place = place * self.vocabulary + token
        return contexts(self.vocabulary, len(seen) - 1) + place

    def after(self, text: Text) -> Said:
        return self.values[self.index(text)]

    def lines(self, name: str, say: Callable[[Said], str] = str) -> tuple[str, ...]:
        """The table in words, one line: what it says after each text."""
        if len(set(self.values)) == 1:
            return (f"{name} says {say(self.values[0])} after every text",)
        parts = [
            f"{say(said)} after {' '.join(map(str, text)) or 'nothing'}"
            for text, said in zip(texts(self.vocabulary, self.sees), self.values, strict=True)
        ]
        return (f"{name} says {', '.join(parts)}",)


def contexts(vocabulary: int, sees: int) -> int:
    """How many texts there are of 0 .. ``sees`` tokens; 0 where ``sees`` is -1."""
    return sum(vocabulary**n for n in range(sees + 1))


def texts(vocabulary: int, sees: int) -> Iterator[Text]:
    """All texts of 0 .. ``sees`` tokens, short ones first."""
    for n in range(sees + 1):
        yield from product(range(vocabulary), repeat=n)


Tokens = Table[int]
Chances = Table[Distribution]


def all_next_tokens(vocabulary: int, sees: int) -> Iterator[Tokens]:
    """Every next-token function."""
    for values in product(range(vocabulary), repeat=contexts(vocabulary, sees)):
        yield Table(vocabulary, sees, values)


def all_next_distributions(vocabulary: int, sees: int, parts: int) -> Iterator[Chances]:
    """Every table of distributions in whole multiples of 1/n, n up to ``parts``."""
    grid = tuple(all_distributions(vocabulary, parts))
    for values in product(grid, repeat=contexts(vocabulary, sees)):
        yield Table(vocabulary, sees, values)


def next_tokens(vocabulary: int, sees: int) -> st.SearchStrategy[Tokens]:
    """Any next-token function."""
    return _tables(st.integers(0, vocabulary - 1), vocabulary, sees)


def next_distributions(vocabulary: int, sees: int) -> st.SearchStrategy[Chances]:
    """Any table of distributions: zeros, point masses, ties and near ties among them."""
    return _tables(distributions(vocabulary), vocabulary, sees)


def _tables(one: st.SearchStrategy[Said], vocabulary: int, sees: int) -> st.SearchStrategy[Table[Said]]:
    size = contexts(vocabulary, sees)
    return st.lists(one, min_size=size, max_size=size).map(
        lambda values: Table(vocabulary, sees, tuple(values))
    )


@st.composite
def token_levels(draw: st.DrawFn, count: int, vocabulary: int, sees: int) -> tuple[Tokens, ...]:
    """``count`` next-token functions, drafter first and target last.

    Levels are independent, the same, or correlated: each is the one above it but for some places, so
    that a level inherits the errors of the one above it.
    """
    above = draw(next_tokens(vocabulary, sees))
    levels = [above]
    for _ in range(count - 1):
        kind = draw(st.sampled_from(["independent", "same", "correlated"]))
        other = draw(next_tokens(vocabulary, sees)) if kind != "same" else above
        if kind == "correlated":
            other = _patched(draw, above, other)
        levels.append(other)
        above = other
    return tuple(reversed(levels))


@st.composite
def distribution_levels(draw: st.DrawFn, count: int, vocabulary: int, sees: int) -> tuple[Chances, ...]:
    """``count`` tables of distributions, drafter first and target last.

    Levels are independent, the same, sure (point masses), or correlated: each is the one above it but
    for some places, or a mixture of the one above it and another.
    """
    above = draw(next_distributions(vocabulary, sees))
    levels = [above]
    for _ in range(count - 1):
        kind = draw(st.sampled_from(["independent", "same", "sure", "correlated", "mixture"]))
        other = above
        if kind in ("independent", "correlated", "mixture"):
            other = draw(next_distributions(vocabulary, sees))
        elif kind == "sure":
            tokens = draw(next_tokens(vocabulary, sees))
            other = Table(vocabulary, sees, tuple(point_mass(t, vocabulary) for t in tokens.values))
        if kind == "correlated":
            other = _patched(draw, above, other)
        if kind == "mixture":
            share = draw(st.sampled_from([Fraction(1, 4), Fraction(1, 2), Fraction(7, 8)]))
            pairs = zip(above.values, other.values, strict=True)
            other = Table(vocabulary, sees, tuple(mixture(p, q, share) for p, q in pairs))
        levels.append(other)
        above = other
    return tuple(reversed(levels))


def _patched(draw: st.DrawFn, table: Table[Said], other: Table[Said]) -> Table[Said]:
    """``table`` with some of its values from ``other``."""
    size = len(table.values)
    taken = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    values = [b if t else a for a, b, t in zip(table.values, other.values, taken, strict=True)]
    return Table(table.vocabulary, table.sees, tuple(values))
