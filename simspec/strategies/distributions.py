"""Probability distributions over a small vocabulary, as fractions."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import reduce
from math import gcd

from hypothesis import strategies as st

# Probabilities of the tokens 0, 1, ...; they sum to 1.
Distribution = tuple[Fraction, ...]

# Weights this near to one another are a tie for float32 logits and none for fractions.
NEARLY = 10**7


def normalised(weights: tuple[int, ...]) -> Distribution:
    """Whole weights as probabilities; ValueError if none is positive or one is negative."""
    total = sum(weights)
    if total <= 0 or min(weights) < 0:
        raise ValueError(f"weights must be at least 0 and not all 0, not {weights}")
    return tuple(Fraction(w, total) for w in weights)


def point_mass(token: int, size: int) -> Distribution:
    """All probability on one token."""
    return normalised(tuple(int(t == token) for t in range(size)))


@st.composite
def distributions(draw: st.DrawFn, size: int | None = None, *, largest: int = 3) -> Distribution:
    """Distributions with zeros, point masses, exact ties and near ties.

    Args:
        size: how many tokens; drawn from 2..``largest`` if None.
    """
    n = draw(st.integers(2, largest)) if size is None else size
    kind = draw(st.sampled_from(["weights", "point", "near tie"]))
    if kind == "point":
        return point_mass(draw(st.integers(0, n - 1)), n)
    if kind == "near tie":
        return normalised(tuple(NEARLY + draw(st.integers(-1, 1)) for _ in range(n)))
    weights = draw(st.lists(st.integers(0, 8), min_size=n, max_size=n).filter(any))
    return normalised(tuple(weights))


def all_distributions(size: int, parts: int) -> Iterator[Distribution]:
    """Every distribution over ``size`` tokens in whole multiples of 1/n, n = 1..``parts``, each once.

    Those with the smallest denominator come first.
    """
    for n in range(1, parts + 1):
        for weights in _compositions(n, size):
            if reduce(gcd, weights) == 1:
                yield normalised(weights)


def _compositions(total: int, size: int) -> Iterator[tuple[int, ...]]:
    if size == 1:
        yield (total,)
        return
    for first in range(total, -1, -1):
        for rest in _compositions(total - first, size - 1):
            yield (first, *rest)


def total_variation(p: Distribution, q: Distribution) -> Fraction:
    """Half the sum of absolute differences."""
    return sum((abs(a - b) for a, b in zip(p, q, strict=True)), Fraction(0)) / 2


def overlap(p: Distribution, q: Distribution) -> Fraction:
    """sum min(p, q), which is 1 - TV."""
    return sum((min(a, b) for a, b in zip(p, q, strict=True)), Fraction(0))


def mixture(p: Distribution, q: Distribution, share: Fraction) -> Distribution:
    """``share`` of p and the rest of q; ValueError unless the share is from 0 to 1."""
    if not 0 <= share <= 1:
        raise ValueError(f"a share is from 0 to 1, not {share}")
    return tuple(share * a + (1 - share) * b for a, b in zip(p, q, strict=True))


def argmax(p: Distribution) -> int:
    """The most probable token, the first of equals, as a decoder takes it."""
    return max(range(len(p)), key=lambda token: (p[token], -token))
