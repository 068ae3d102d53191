"""Batches whose rows share a step's drafted tokens: the cases of claims on how to share them.

Row r has chances p_1 .. p_D (place k accepted once all before it were) for as many places as it can draft;
S_j = p_1 .. p_j. An allocation submits the first d_r places of each row; every row emits its accepted drafts
and one token of the target's own. A step takes T. What one step gains per unit of time is all that is looked
at here (L17 is about runs of steps).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import Outcome, against
from simspec.claims.plain import number, shown
from simspec.strategies.costs import Curve, rising_costs, staircase
from simspec.strategies.survivals import Conditional, conditionals, grid, tokens_by_outcome

Rows = tuple[Conditional, ...]
# d_r for each row.
Allocation = tuple[int, ...]


@dataclass(frozen=True)
class Batch:
    """Rows, and a step's time by tokens or by width: what T's argument is, each statement says."""

    rows: Rows
    cost: Curve

    def told(self) -> str:
        rows = "; ".join(f"row {i}: p = {shown(p)}" for i, p in enumerate(self.rows, 1))
        return f"{rows}; T(0), T(1), .. = {shown(self.cost)}"


def emitted(rows: Rows, shared: Allocation) -> Fraction:
    """Expected tokens of a step, averaged over the ways in which each row can go."""
    return sum((tokens_by_outcome(p[:d], 1)[-1] for p, d in zip(rows, shared, strict=True)), Fraction(0))


def allocations(rows: Rows) -> Iterator[Allocation]:
    """Every one."""
    return product(*(range(len(p) + 1) for p in rows))


def by_descending(rows: Rows, worth: Callable[[Conditional], tuple[Fraction, ...]]) -> Iterator[Allocation]:
    """Allocations of 0, 1, 2, .. tokens: next the open place that is worth most, of equals the shallowest."""
    values = [worth(p) for p in rows]
    shared = [0] * len(rows)
    yield tuple(shared)
    for _ in range(sum(map(len, rows))):
        open_rows = [r for r, p in enumerate(rows) if shared[r] < len(p)]
        best = max(open_rows, key=lambda r: (values[r][shared[r]], -shared[r], -r))
        shared[best] += 1
        yield tuple(shared)


def in_turn(rows: Rows) -> Iterator[Allocation]:
    """One token to each row that still has one, again and again."""
    return by_descending(rows, lambda p: tuple(Fraction(-k) for k in range(len(p))))


def common(rows: Rows) -> Iterator[Allocation]:
    """One length for all rows, each cut where it can draft no more."""
    for width in range(max(map(len, rows)) + 1):
        yield tuple(min(width, len(p)) for p in rows)


def all_rows(level: int) -> Iterator[Rows]:
    one_row = [p for depth in (1, 2) for p in product(grid(2 + min(level, 1)), repeat=depth)]
    for i, first in enumerate(one_row):
        yield from ((first, second) for second in one_row[i:])
    if level:
        yield from product(product(grid(2), repeat=1), product(grid(2), repeat=2), product(grid(1), repeat=2))


def some_rows(most: int = 3) -> st.SearchStrategy[Rows]:
    """Rows of unlike length."""
    return st.lists(conditionals(longest=4), min_size=2, max_size=most).map(tuple)


# The best tokens per unit of time, where a step takes T of something.

Measure = Callable[[Allocation], int]
Candidates = Callable[[Batch], Iterator[Allocation]]


def rate(batch: Batch, shared: Allocation, of: Measure) -> Fraction:
    return emitted(batch.rows, shared) / batch.cost[of(shared)]


def has_best(batch: Batch, of: Measure, candidates: Candidates) -> Outcome:
    best = max(allocations(batch.rows), key=lambda shared: rate(batch, shared, of))
    found = max(candidates(batch), key=lambda shared: rate(batch, shared, of))
    if rate(batch, found, of) == rate(batch, best, of):
        return None
    return against(
        batch.told(),
        f"best of those looked at: {shown(found)}, {number(emitted(batch.rows, found))} tokens in "
        f"{batch.cost[of(found)]} = {number(rate(batch, found, of))}",
        f"best of all: {shown(best)}, {number(emitted(batch.rows, best))} tokens in "
        f"{batch.cost[of(best)]} = {number(rate(batch, best, of))}",
    )


def common_lengths(batch: Batch) -> Iterator[Allocation]:
    return common(batch.rows)


def first_stop(batch: Batch, of: Measure, candidates: Candidates) -> Iterator[Allocation]:
    """The candidates up to the first that is no better than the one before."""
    before = Fraction(-1)
    for shared in candidates(batch):
        if rate(batch, shared, of) <= before:
            return
        before = rate(batch, shared, of)
        yield shared


def all_batches(_level: int) -> Iterator[Batch]:
    """T long enough for all tokens together; by width, its beginning is used."""
    for rows in all_rows(0):
        most = sum(map(len, rows))
        yield Batch(rows, tuple(Fraction(4 + d) for d in range(most + 1)))
        yield Batch(rows, staircase(Fraction(1), Fraction(1), 2, most))
        yield Batch(rows, tuple(Fraction(t) for t in (3, 5, 4, 9, 6)[: most + 1]))


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """With costs that never fall, and with any positive ones."""
    rows = draw(some_rows())
    most = sum(map(len, rows))
    anything = st.lists(st.integers(1, 12), min_size=most + 1, max_size=most + 1)
    return Batch(rows, draw(st.one_of(rising_costs(most), anything.map(lambda ts: tuple(map(Fraction, ts))))))


OVER_BATCHES = (
    "all pairs of rows of 1 and 2 places in halves, with an affine, a staircase and a zigzag cost; up to 3 "
    "random rows of 1 to 4 places, with costs of every kind, also ones that fall; the truth from all "
    "allocations"
)
