"""Sharing a step's tokens where rows may sit it out, or both tokens and width take time (L15e, L15f).

Row r has chances p_1 .. p_D (place k accepted once all before it were) for as many places as it can draft;
S_j = p_1 .. p_j. An allocation submits the first d_r places of each row; every row emits its accepted drafts
and one token of the target's own. A step takes T. What one step gains per unit of time is all that is looked
at here (L17 is about runs of steps).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations_with_replacement, product

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.lengths.batches import (
    Allocation,
    Batch,
    Rows,
    all_rows,
    allocations,
    by_descending,
    common,
    emitted,
    some_rows,
)
from simspec.claims.plain import number, shown
from simspec.strategies.costs import rising_costs
from simspec.strategies.survivals import grid, survival

# L15e: rows may sit a step out


def _leaving_out(batch: Batch, keep_all: bool) -> Outcome:
    """T by rows x (1 + width). A row left out emits nothing and costs nothing in this step."""
    rows = batch.rows
    depth = max(map(len, rows))
    best = max(
        emitted(some, shared) / batch.cost[len(some) * (1 + max(shared))]
        for some in subsets(rows)
        for shared in allocations(some)
    )
    if keep_all:
        tried = [(rows, shared) for shared in common(rows)]
    else:
        tried = []
        for width in range(depth + 1):
            cut = sorted((p[:width] for p in rows), key=lambda p: emitted((p,), (len(p),)), reverse=True)
            for count in range(1, len(rows) + 1):
                some = tuple(cut[:count])
                tried.append((some, tuple(map(len, some))))
    found = max(emitted(some, shared) / batch.cost[len(some) * (1 + max(shared))] for some, shared in tried)
    if found == best:
        return None
    return against(
        f"{batch.told()}, by rows x (1 + width)",
        f"with {'all rows' if keep_all else 'the best rows'}: {number(found)}; best of all: {number(best)}",
    )


def subsets(rows: Rows) -> Iterator[Rows]:
    """Every choice of at least one row."""
    for kept in product((True, False), repeat=len(rows)):
        if any(kept):
            yield tuple(p for p, keep in zip(rows, kept, strict=True) if keep)


def all_slots(level: int) -> Iterator[Batch]:
    for rows in all_rows(0):
        most = len(rows) * (1 + max(map(len, rows)))
        for fixed in (4, 0)[: 1 + level]:
            yield Batch(rows, tuple(Fraction(fixed + max(s, 1)) for s in range(most + 1)))


@st.composite
def slots(draw: st.DrawFn) -> Batch:
    rows = draw(some_rows())
    return Batch(rows, draw(rising_costs(len(rows) * (1 + max(map(len, rows))))))


L15E = Claim(
    id="L15e",
    source="derived, for claim L15",
    statement=Statement(
        words=(
            "Where a step's time depends on rows x (1 + width), one common length for all rows is best even "
            "if rows may be left out of a step"
        ),
        formula="max over rows kept and d of E[tokens] / T(rows kept x (1 + max d_r)) keeps all rows",
        rule=lambda batch: _leaving_out(batch, keep_all=True),
        over=(
            "all pairs of rows of 1 and 2 places in halves with T = T0 + rows x (1 + width); up to 3 random "
            "rows with costs of every kind that never fall; the truth from all choices of rows and "
            "allocations"
        ),
        domain=slots(),
        every=all_slots,
        examples=40,
    ),
    expected="refuted",
    because=(
        "A row in which little is accepted pays 1 + width slots for hardly more than one token. Leaving it "
        "for another step, or padding two groups of rows apart, can be faster. For a given width and number "
        "of rows the time is given, and the rows that emit most within that width are the best choice."
    ),
    pinned=Batch(
        ((Fraction(0),), (Fraction(1), Fraction(1))),
        tuple(Fraction(4 + s) for s in range(7)),
    ),
    repaired=Statement(
        words=(
            "Then it is best to take, for some width and some number of rows, the rows that emit most "
            "within that width, each filled up to it; a scan over both finds it"
        ),
        formula="max over w, m of (the m largest tokens_r(min(w, limit_r))) / T(m (1 + w))",
        rule=lambda batch: _leaving_out(batch, keep_all=False),
        over="as above, for costs that never fall",
        domain=slots(),
        every=all_slots,
        examples=40,
    ),
)

# L15f: tokens and width


@dataclass(frozen=True)
class Mixed:
    """T = fixed + per_token x tokens + per_place x width."""

    rows: Rows
    fixed: Fraction
    per_token: Fraction
    per_place: Fraction

    def rate(self, shared: Allocation) -> Fraction:
        time = self.fixed + self.per_token * sum(shared) + self.per_place * max(shared)
        return emitted(self.rows, shared) / time


def _mixed(case: Mixed, candidates: Callable[[Rows], Iterator[Allocation]]) -> Outcome:
    best = max(allocations(case.rows), key=case.rate)
    found = max(candidates(case.rows), key=case.rate)
    if case.rate(found) == case.rate(best):
        return None
    rows = "; ".join(f"row {i}: p = {shown(p)}" for i, p in enumerate(case.rows, 1))
    return against(
        f"{rows}; T = {case.fixed} + {case.per_token} x tokens + {case.per_place} x width",
        f"{shown(found)} gives {number(case.rate(found))}, {shown(best)} gives {number(case.rate(best))}",
    )


def _either(rows: Rows) -> Iterator[Allocation]:
    yield from by_descending(rows, survival)
    yield from common(rows)


def _below_each_width(rows: Rows) -> Iterator[Allocation]:
    for width in range(max(map(len, rows)) + 1):
        yield from by_descending(tuple(p[:width] for p in rows), survival)


mixed = st.builds(
    Mixed,
    some_rows(),
    st.integers(1, 9).map(Fraction),
    st.builds(Fraction, st.integers(0, 6), st.just(4)),
    st.builds(Fraction, st.integers(0, 6), st.just(2)),
)


def all_mixed(level: int) -> Iterator[Mixed]:
    halves = [p for depth in (1, 2) for p in product(grid(2), repeat=depth)]
    triples = product(product(grid(2), repeat=1), [(Fraction(1, 2),)], product(grid(4), repeat=2))
    every = chain(combinations_with_replacement(halves, 2), triples)
    for rows, cost in product(every, ((9, 1, 1), (1, 0, 1), (4, 1, 2))[: 1 + level]):
        fixed, per_token, per_place = map(Fraction, cost)
        yield Mixed(rows, fixed, per_token, per_place)


OVER_MIXED = (
    "all pairs of rows of 1 and 2 places in halves and triples with 2 places in quarters, two costs; up to "
    "3 random rows of 1 to 4 places"
)
L15F = Claim(
    id="L15f",
    source="derived, for claim L15",
    statement=Statement(
        words=(
            "Where a step's time grows with its drafted tokens and with its width, the better of the two "
            "scans (by descending survival, and over one common length) is still best"
        ),
        formula="T = T0 + c sum d_r + k max d_r",
        rule=lambda case: _mixed(case, _either),
        over=OVER_MIXED,
        domain=mixed,
        every=all_mixed,
        examples=60,
    ),
    expected="refuted",
    because=(
        "Order by survival goes deep into one good row and pays for the width; one common length fills weak "
        "rows and pays for the tokens. Below a width that is given, and with so many tokens, order by "
        "survival emits most, and takes no longer: so both are scanned."
    ),
    pinned=Mixed(
        ((Fraction(0),), (Fraction(1, 2),), (Fraction(3, 4), Fraction(3, 4))),
        Fraction(9),
        Fraction(1),
        Fraction(1),
    ),
    repaired=Statement(
        words="A scan over both, admitting by descending survival among places up to the width, is best",
        formula="max over w and B of (R + the B largest S_j with j <= w) / T(B, w)",
        rule=lambda case: _mixed(case, _below_each_width),
        over=f"{OVER_MIXED}; it needs only that T never falls as the width grows",
        domain=mixed,
        every=all_mixed,
        examples=60,
    ),
)

CLAIMS = (L15E, L15F)
