"""Sharing a step's drafted tokens where its time depends on their number (L15, L15b).

Row r has chances p_1 .. p_D (place k accepted once all before it were) for as many places as it can draft;
S_j = p_1 .. p_j. An allocation submits the first d_r places of each row; every row emits its accepted drafts
and one token of the target's own. A step takes T. What one step gains per unit of time is all that is looked
at here (L17 is about runs of steps).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.lengths.batches import (
    OVER_BATCHES,
    Allocation,
    Batch,
    Rows,
    all_batches,
    all_rows,
    allocations,
    batches,
    by_descending,
    common_lengths,
    emitted,
    first_stop,
    has_best,
    in_turn,
    some_rows,
)
from simspec.claims.plain import number, shown
from simspec.strategies.survivals import survival

# L15: the tokens of a budget


def _most_of_each_budget(rows: Rows, order: Callable[[Rows], Iterator[Allocation]]) -> Outcome:
    most: dict[int, Fraction] = {}
    for shared in allocations(rows):
        most[sum(shared)] = max(emitted(rows, shared), most.get(sum(shared), Fraction(0)))
    for budget, shared in enumerate(order(rows)):
        found = emitted(rows, shared)
        if found != most[budget]:
            return against(
                "; ".join(f"row {i}: p = {shown(p)}" for i, p in enumerate(rows, 1)),
                f"{budget} tokens as {shown(shared)}: {number(found)} emitted; {number(most[budget])} can "
                f"be had",
            )
    return None


OVER_ROWS = (
    "all pairs of rows of 1 and 2 places in thirds, triples in halves; up to 3 random rows of 1 to 4 places"
)
L15_STATEMENT = Statement(
    words=(
        "In a batch, admitting tokens by descending survival gives the most expected tokens that a step can "
        "emit with so many drafted tokens, for every number of them"
    ),
    formula="for all B: max over sum d_r = B of E[tokens] = R + sum of the B largest S_j of all rows",
    rule=lambda rows: _most_of_each_budget(rows, lambda rows: by_descending(rows, survival)),
    over=OVER_ROWS,
    domain=some_rows(),
    every=all_rows,
    examples=60,
)
L15 = Claim(
    id="L15",
    source="DSpark (2607.05147): sort all (request, position) survivals",
    statement=L15_STATEMENT,
    expected="holds",
    because=(
        "Place j of a row adds S_j to what is expected, whatever else is admitted. The B largest of all "
        "these numbers have the largest sum, and as S_j never rises along a row they can be taken to be the "
        "first places of each row, which is what can be submitted."
    ),
    broken=(
        L15_STATEMENT.but(
            "... by descending chance of the place itself, p_j",
            lambda rows: _most_of_each_budget(rows, lambda rows: by_descending(rows, lambda p: p)),
        ),
        L15_STATEMENT.but(
            "... one token to each row in turn", lambda rows: _most_of_each_budget(rows, in_turn)
        ),
    ),
)


def _descending(batch: Batch) -> Iterator[Allocation]:
    return by_descending(batch.rows, survival)


L15B_STATEMENT = Statement(
    words=(
        "Where a step's time depends on its number of drafted tokens only, in whatever way, a scan over that "
        "number, tokens admitted by descending survival, finds the most tokens per unit of time"
    ),
    formula="max over d of E[tokens] / T(sum d_r) = max over B of (R + sum of the B largest S_j) / T(B)",
    rule=lambda batch: has_best(batch, sum, _descending),
    over=OVER_BATCHES,
    domain=batches(),
    every=all_batches,
    examples=60,
)
L15B = Claim(
    id="L15b",
    source="DSpark (2607.05147): admit while tau x SPS(total tokens) rises",
    statement=L15B_STATEMENT,
    expected="holds",
    because=(
        "Among allocations of B tokens the time is the same, and L15 gives the most tokens; the scan takes "
        "the best B. It must go to the end: DSpark's stop at the first B that is no better misses what lies "
        "beyond a step of a staircase. With a convex T the stop is enough, since the tokens' rises never "
        "grow."
    ),
    broken=(
        L15B_STATEMENT.but(
            "... and it may stop at the first number that is no better",
            lambda batch: has_best(batch, sum, lambda b: first_stop(b, sum, _descending)),
        ),
        L15B_STATEMENT.but(
            "... and one common length, cut where a row can draft no more, will do",
            lambda batch: has_best(batch, sum, common_lengths),
        ),
    ),
)

CLAIMS = (L15, L15B)
