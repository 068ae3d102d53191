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
from functools import partial
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
    in_turn,
    some_rows,
)
from simspec.claims.plain import number, shown
from simspec.strategies.costs import rising_costs
from simspec.strategies.survivals import Conditional, grid, survival

# L15e: rows may sit a step out


Choice = tuple[Rows, Allocation]
Choices = Callable[[Rows], Iterator[Choice]]


def _all_rows_alike(rows: Rows) -> Iterator[Choice]:
    return ((rows, shared) for shared in common(rows))


def _fullest(rows: Rows, ranked_within: bool = True) -> Iterator[Choice]:
    """For each width and number of rows those that emit most within that width, filled up to it.

    Args:
        ranked_within: False: those that emit most when each drafts all that it can.
    """
    for width in range(max(map(len, rows)) + 1):
        judged = width if ranked_within else None
        ranked = sorted(rows, key=partial(_emitted_within, width=judged), reverse=True)
        for count in range(1, len(rows) + 1):
            cut = tuple(p[:width] for p in ranked[:count])
            yield cut, tuple(map(len, cut))


def _emitted_within(p: Conditional, width: int | None) -> Fraction:
    cut = p[:width]
    return emitted((cut,), (len(cut),))


def _leaving_out(batch: Batch, choices: Choices) -> Outcome:
    """T by rows x (1 + width). A row left out emits nothing and costs nothing in this step."""
    rows = batch.rows

    def rate_of(choice: Choice) -> Fraction:
        some, shared = choice
        return emitted(some, shared) / batch.cost[len(some) * (1 + max(shared))]

    best = max(((some, shared) for some in subsets(rows) for shared in allocations(some)), key=rate_of)
    found = max(choices(rows), key=rate_of)
    if rate_of(found) == rate_of(best):
        return None
    return against(
        f"{batch.told()}, the argument of T being rows x (1 + width)",
        *(
            f"{name}: {len(some)} rows of width {max(shared)}, {number(emitted(some, shared))} tokens in "
            f"{batch.cost[len(some) * (1 + max(shared))]} = {number(rate_of((some, shared)))}; their p: "
            f"{shown(some)}"
            for name, (some, shared) in (("best of those looked at", found), ("best of all", best))
        ),
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


def late_row(_level: int) -> Iterator[Batch]:
    """A row that is better within two places, and one that is better as a whole."""
    one = Fraction(1)
    rows = ((one, one), (Fraction(3, 4), one, one, one))
    yield Batch(rows, tuple(Fraction(max(s, 3)) for s in range(11)))


def all_falling(level: int) -> Iterator[Batch]:
    """The same rows where more slots may take less time."""
    for batch in all_slots(level):
        yield Batch(batch.rows, tuple(Fraction(t) for t in (9, 9, 9, 1, 9, 9, 9)[: len(batch.cost)]))


L15E_STATEMENT = Statement(
    words=(
        "Where a step's time depends on rows x (1 + width), one common length for all rows is best even "
        "if rows may be left out of a step"
    ),
    formula="max over rows kept and d of E[tokens] / T(rows kept x (1 + max d_r)) keeps all rows",
    rule=lambda batch: _leaving_out(batch, _all_rows_alike),
    over=(
        "all pairs of rows of 1 and 2 places in halves with T = T0 + rows x (1 + width); up to 3 random "
        "rows with costs of every kind that never fall; the truth from all choices of rows and "
        "allocations"
    ),
    domain=slots(),
    every=all_slots,
    examples=40,
)
L15E_REPAIRED = L15E_STATEMENT.but(
    "Where a step's time depends on rows x (1 + width) and never falls with it, it is best to take, for "
    "some width and some number of rows, the rows that emit most within that width, each filled up to it; a "
    "scan over both finds it",
    lambda batch: _leaving_out(batch, _fullest),
    formula="T never falls: max over w, m of (the m largest tokens_r(min(w, limit_r))) / T(m (1 + w))",
)
L15E = Claim(
    id="L15e",
    source="derived, for claim L15",
    statement=L15E_STATEMENT,
    expected="refuted",
    because=(
        "A row in which little is accepted pays 1 + width slots for hardly more than one token. Leaving it "
        "for another step, or padding two groups of rows apart, can be faster. For a given width and number "
        "of rows the time is given, and the rows that emit most within that width are the best choice; if "
        "none of them can be filled up to it, the step takes no longer for being narrower."
    ),
    pinned=Batch(
        ((Fraction(0),), (Fraction(1), Fraction(1))),
        tuple(Fraction(4 + s) for s in range(7)),
    ),
    repaired=L15E_REPAIRED,
    broken=(
        L15E_REPAIRED.but(
            "... the rows that emit most when each drafts all that it can, cut at that width",
            lambda batch: _leaving_out(batch, lambda rows: _fullest(rows, ranked_within=False)),
            every=late_row,
        ),
        L15E_REPAIRED.but(
            "... also where T may fall with rows x (1 + width)",
            lambda batch: _leaving_out(batch, _fullest),
            every=all_falling,
        ),
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


def _below_each_width(
    rows: Rows, worth: Callable[[Conditional], Conditional] = survival
) -> Iterator[Allocation]:
    for width in range(max(map(len, rows)) + 1):
        yield from by_descending(tuple(p[:width] for p in rows), worth)


def _turns_below_each_width(rows: Rows) -> Iterator[Allocation]:
    for width in range(max(map(len, rows)) + 1):
        yield from in_turn(tuple(p[:width] for p in rows))


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


def good_second_place(_level: int) -> Iterator[Mixed]:
    """A second place likely to be accepted, behind a first that is not, with a third row worth the width."""
    half, one = Fraction(1, 2), Fraction(1)
    yield Mixed(((half, Fraction(3, 4)), (half,), (one, one)), Fraction(10), one, Fraction(0))


L15F_STATEMENT = Statement(
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
)
L15F_REPAIRED = L15F_STATEMENT.but(
    "Where a step's time grows with its drafted tokens and with its width, a scan over both, admitting by "
    "descending survival among places up to the width, is best",
    lambda case: _mixed(case, _below_each_width),
    formula="T = T0 + c sum d_r + k max d_r: max over w, B of (R + the B largest S_j with j <= w) / T(B, w)",
    over=f"{OVER_MIXED}; it needs only that T never falls as the width grows",
    examples=40,
)
L15F = Claim(
    id="L15f",
    source="derived, for claim L15",
    statement=L15F_STATEMENT,
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
    repaired=L15F_REPAIRED,
    broken=(
        L15F_REPAIRED.but(
            "... admitting by descending chance of the place itself, p_j",
            lambda case: _mixed(case, lambda rows: _below_each_width(rows, lambda p: p)),
            every=good_second_place,
        ),
        L15F_REPAIRED.but(
            "... admitting one token to each row in turn", lambda case: _mixed(case, _turns_below_each_width)
        ),
    ),
)

CLAIMS = (L15E, L15F)
