"""How best lengths move from one case to the next where several lengths may be best (L23 to L26)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

from simspec.theory.lengths import best_lengths

# The shortest and the longest best length.
Best = tuple[int, int]
# Of two neighbours: what is read as the shortest and the longest of each.
Reading = Callable[[Best, Best], tuple[Best, Best]]


def best(tokens: Sequence[Fraction], cost: Sequence[Fraction]) -> Best:
    found = best_lengths([n / t for n, t in zip(tokens, cost, strict=True)])
    return found[0], found[-1]


def as_found(before: Best, now: Best) -> tuple[Best, Best]:
    return before, now


def shortest_before(before: Best, now: Best) -> tuple[Best, Best]:
    """Before, the shortest is taken for the longest as well."""
    return (before[0], before[0]), now


def longest_before(before: Best, now: Best) -> tuple[Best, Best]:
    return (before[1], before[1]), now


def shortest_after(before: Best, now: Best) -> tuple[Best, Best]:
    return before, (now[0], now[0])


def longest_after(before: Best, now: Best) -> tuple[Best, Best]:
    """Afterwards the longest is taken for the shortest as well."""
    return before, (now[1], now[1])


def never_rises(found: Sequence[Best], read: Reading = as_found) -> bool:
    """Whether neither the shortest nor the longest best length ever rises."""
    pairs = (read(*pair) for pair in pairwise(found))
    return all(now[0] <= before[0] and now[1] <= before[1] for before, now in pairs)


def never_falls(found: Sequence[Best], read: Reading = as_found) -> bool:
    """Whether neither the shortest nor the longest best length ever falls."""
    pairs = (read(*pair) for pair in pairwise(found))
    return all(now[0] >= before[0] and now[1] >= before[1] for before, now in pairs)


def told(names: Sequence[object], found: Sequence[Best]) -> str:
    one = (
        f"{name}: {low}" if low == high else f"{name}: {low} to {high}"
        for name, (low, high) in zip(names, found, strict=True)
    )
    return "; ".join(one)
