"""How likely each place of a block is accepted, as fractions.

p_k = the probability that place k is accepted given that all before it were (k = 1, 2, ...; LibraSpec's
p). S_j = p_1 ... p_j is the survival: the probability that at least j drafts are accepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate, product
from operator import mul

from hypothesis import strategies as st

# p_1 .. p_D, each in [0, 1].
Conditional = tuple[Fraction, ...]


def chances(parts: int = 20) -> st.SearchStrategy[Fraction]:
    """Probabilities in whole multiples of 1/n, n up to ``parts``, 0 and 1 among them."""
    return st.builds(lambda n, k: Fraction(min(k, n), n), st.integers(1, parts), st.integers(0, parts))


def inner_chances(parts: int = 20) -> st.SearchStrategy[Fraction]:
    """Probabilities strictly between 0 and 1."""
    return st.builds(
        lambda n, k: Fraction(k % n + 1, n + 1), st.integers(1, parts - 1), st.integers(0, parts)
    )


@st.composite
def conditionals(
    draw: st.DrawFn, *, longest: int = 12, shortest: int = 1, positive: bool = False
) -> Conditional:
    """p_1 .. p_D: constant, falling, rising or any; with zeros and ones unless ``positive``.

    Args:
        longest, shortest: bounds of D.
        positive: leave out 0 (after a 0 nothing more is accepted).
    """
    size = draw(st.integers(shortest, longest))
    one = inner_chances() if positive else chances()
    shape = draw(st.sampled_from(["any", "constant", "falling", "rising"]))
    if shape == "constant":
        return (draw(one),) * size
    values = draw(st.lists(one, min_size=size, max_size=size))
    if shape == "falling":
        values.sort(reverse=True)
    elif shape == "rising":
        values.sort()
    return tuple(values)


def all_conditionals(depth: int, grid: tuple[Fraction, ...]) -> Iterator[Conditional]:
    """Every p_1 .. p_D with values from ``grid``, D = 1..``depth``, short ones first."""
    for size in range(1, depth + 1):
        yield from product(grid, repeat=size)


def grid(parts: int, *, zero: bool = True, one: bool = True) -> tuple[Fraction, ...]:
    """0, 1/parts, ..., 1, with or without the ends."""
    return tuple(Fraction(k, parts) for k in range(0 if zero else 1, parts + (1 if one else 0)))


def survival(p: Conditional) -> tuple[Fraction, ...]:
    """S_1 .. S_D."""
    return tuple(accumulate(p, mul))


def expected_accepted(p: Conditional) -> tuple[Fraction, ...]:
    """E[accepted drafts] when d are submitted, d = 0..D: the sum of S_1 .. S_d."""
    return tuple(accumulate(survival(p), initial=Fraction(0)))
