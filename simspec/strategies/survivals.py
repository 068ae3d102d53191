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
    """p_1 .. p_D: constant, falling, rising, any, or sure from some place on; with zeros and ones unless
    ``positive``.

    Args:
        longest, shortest: bounds of D.
        positive: leave out 0 (after a 0 nothing more is accepted), and 1 but in the shape that ends in ones.
    """
    size = draw(st.integers(shortest, longest))
    one = inner_chances() if positive else chances()
    shape = draw(st.sampled_from(["any", "constant", "falling", "rising", "sure end"]))
    if shape == "constant":
        return (draw(one),) * size
    if shape == "sure end":
        unsure = draw(st.integers(0, size))
        begun = draw(st.lists(one, min_size=unsure, max_size=unsure))
        return (*begun, *(Fraction(1),) * (size - unsure))
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


def outcomes(p: Conditional) -> Iterator[tuple[int, Fraction]]:
    """Every way in which a cycle that submits all of p_1 .. p_D can go: accepted drafts and probability.

    Place after place is accepted until one is refused: the process itself, without a formula for its mean.
    """
    so_far = Fraction(1)
    for accepted, chance in enumerate(p):
        yield accepted, so_far * (1 - chance)
        so_far *= chance
    yield len(p), so_far


def tokens_by_outcome(p: Conditional, bonus: int) -> tuple[Fraction, ...]:
    """Expected tokens when 0 .. D drafts are submitted, averaged over the ways of :func:`outcomes`.

    Cutting the block at d leaves the refusals before d as they are and makes one outcome of all the rest.
    """
    refused, so_far = Fraction(0), Fraction(1)
    tokens = [Fraction(bonus)]
    for accepted, chance in enumerate(p):
        refused += so_far * (1 - chance) * (accepted + bonus)
        so_far *= chance
        tokens.append(refused + so_far * (accepted + 1 + bonus))
    return tuple(tokens)
