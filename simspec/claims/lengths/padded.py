"""Sharing a step's drafted tokens where rows are padded to the longest (L15-padded, L15c, L15d).

Row r has chances p_1 .. p_D (place k accepted once all before it were) for as many places as it can draft;
S_j = p_1 .. p_j. An allocation submits the first d_r places of each row; every row emits its accepted drafts
and one token of the target's own. A step takes T. What one step gains per unit of time is all that is looked
at here (L17 is about runs of steps).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Plot, against
from simspec.claims.lengths.batches import (
    Allocation,
    Batch,
    Measure,
    Rows,
    common,
    common_lengths,
    first_stop,
    has_best,
    rate,
)
from simspec.claims.lengths.packed import L15B_STATEMENT
from simspec.claims.plain import number
from simspec.strategies.costs import rising_costs
from simspec.strategies.survivals import conditionals, survival


def _same_for_all(batch: Batch) -> Iterator[Allocation]:
    """One length that every row can draft."""
    return ((width,) * len(batch.rows) for width in range(min(map(len, batch.rows)) + 1))


# L15-padded: rows of equal limits


def _equal(batch: Batch, of: Measure, candidates: Callable[[Batch], Iterator[Allocation]]) -> Outcome:
    if len({len(p) for p in batch.rows}) > 1:
        return UNMET
    return has_best(batch, of, candidates)


@st.composite
def equal_batches(draw: st.DrawFn) -> Batch:
    """Up to 3 rows of as many places, with times for all their tokens (by width, the first of them count)."""
    size = draw(st.integers(1, 3))
    rows = draw(st.lists(conditionals(longest=size, shortest=size), min_size=2, max_size=3).map(tuple))
    most = size * len(rows)
    anything = st.lists(st.integers(1, 12), min_size=most + 1, max_size=most + 1)
    return Batch(rows, draw(st.one_of(rising_costs(most), anything.map(lambda ts: tuple(map(Fraction, ts))))))


PADDED_STATEMENT = L15B_STATEMENT.but(
    "Where all rows can draft equally many tokens and are padded to the longest (a step's time depends on "
    "the greatest d_r only, in whatever way), one length, the same for all rows, is best; a scan over it "
    "finds it",
    lambda batch: _equal(batch, max, _same_for_all),
    formula="limit_1 = .. = limit_R: max over d of E[tokens] / T(max d_r) is had by d_1 = .. = d_R",
    domain=equal_batches(),
)
PADDED = Claim(
    id="L15-padded",
    source="derived, for claim L15; D-Cut (2607.14647) and padded verification in general",
    statement=PADDED_STATEMENT,
    expected="holds",
    because=(
        "Of two allocations with the same greatest length the one that gives every row that length emits at "
        "least as much, as no S_j is below 0, in the same time."
    ),
    broken=(
        PADDED_STATEMENT.but(
            "... and the scan may stop at the first length that is no better",
            lambda batch: _equal(batch, max, lambda b: first_stop(b, max, _same_for_all)),
        ),
        PADDED_STATEMENT.but(
            "... even where a step's time depends on its drafted tokens, not its width",
            lambda batch: _equal(batch, sum, _same_for_all),
        ),
        PADDED_STATEMENT.but(
            "... where rows can draft unequally many tokens, too",
            lambda batch: has_best(batch, max, _same_for_all),
        ),
    ),
)

# L15c: rows of unlike limits


def _speed_by_width(batch: Batch) -> Plot:
    widths = list(common(batch.rows))
    return Plot(
        "One common length, rows cut where they can draft no more",
        "line",
        "width",
        "expected tokens per unit of time",
        tuple(max(shared) for shared in widths),
        {"speedup": tuple(float(rate(batch, shared, max)) for shared in widths)},
    )


L15C_STATEMENT = L15B_STATEMENT.but(
    "Where all rows are padded to the longest (time depends on the greatest d_r), one length that all rows "
    "can draft is best, even if some could draft more",
    lambda batch: has_best(batch, max, _same_for_all),
    formula="max over d of E[tokens] / T(max d_r) is had by d_1 = .. = d_R",
)
L15C_REPAIRED = L15C_STATEMENT.but(
    "Then one length, cut in each row where it can draft no more, is best, whatever T; a scan over it finds "
    "it",
    lambda batch: has_best(batch, max, common_lengths),
    formula="max over d of E[tokens] / T(max d_r) is had by d_r = min(w, limit_r) for some w",
    examples=40,
)
L15C = Claim(
    id="L15c",
    source="D-Cut (2607.14647) and padded verification in general",
    statement=L15C_STATEMENT,
    expected="refuted",
    because=(
        "Rows differ in how many tokens they can draft (an end of text, a look-up that found few). A common "
        "length that all can draft wastes what the others could: the padding is paid for anyway. Of two "
        "allocations with the same greatest length the one that fills every row up to it emits at least as "
        "much, in the same time: so min(width, limit of the row), scanned over the width, is best, whatever "
        "T. It is the same if T depends on rows x (1 + width), as long as the rows of the step are given."
    ),
    pinned=Batch(((Fraction(1),), (Fraction(1), Fraction(1))), (Fraction(1), Fraction(1), Fraction(1))),
    repaired=L15C_REPAIRED,
    broken=(
        L15C_REPAIRED.but(
            "... and the scan may stop at the first length that is no better",
            lambda batch: has_best(batch, max, lambda b: first_stop(b, max, common_lengths)),
        ),
        L15C_REPAIRED.but(
            "... even where a step's time depends on its drafted tokens, not its width",
            lambda batch: has_best(batch, sum, common_lengths),
        ),
    ),
    first_look=(
        "Right where all rows can draft equally many tokens (L15-padded), and with the length cut at each "
        "row's own limit; not if rows may be left out of a step (L15e) or the time depends on tokens and "
        "width both (L15f)."
    ),
    plot=_speed_by_width,
)

# L15d: a batch as one row


def _mean_row(batch: Batch, mean: Callable[[Rows, int], Fraction]) -> Outcome:
    widths = list(common(batch.rows))
    best = max(rate(batch, shared, max) for shared in widths)
    tokens = [Fraction(1)]
    for j in range(1, len(widths)):
        tokens.append(tokens[-1] + mean(batch.rows, j))
    single = [n / batch.cost[w] for w, n in enumerate(tokens)]
    chosen = single.index(max(single))
    if rate(batch, widths[chosen], max) == best:
        return None
    return against(
        batch.told(),
        f"the one row would take {chosen}: {number(rate(batch, widths[chosen], max))}; best is "
        f"{number(best)}",
    )


def mean_survival(rows: Rows, j: int) -> Fraction:
    """Mean of S_j over rows; 0 for a row that cannot draft so many."""
    return sum((survival(p)[j - 1] for p in rows if len(p) >= j), Fraction(0)) / len(rows)


def survival_of_means(rows: Rows, j: int) -> Fraction:
    """Product of the rows' mean chances of places 1..j."""
    survived = Fraction(1)
    for k in range(j):
        survived *= sum((p[k] for p in rows if len(p) > k), Fraction(0)) / len(rows)
    return survived


L15D_STATEMENT = L15B_STATEMENT.but(
    "With padding, the batch's best common length is that of a single row whose survivals are the rows' mean "
    "survivals",
    lambda batch: _mean_row(batch, mean_survival),
    formula="argmax_w sum_r tokens_r(min(w, limit_r)) / T(w) = argmax_w (1 + sum_{j<=w} mean_r S_rj) / T(w)",
)
L15D = Claim(
    id="L15d",
    source="derived, for claim L15",
    statement=L15D_STATEMENT,
    expected="holds",
    because=(
        "Expectations add: the tokens of all rows are R (1 + sum of the mean survivals), whatever T. So far "
        "nothing of drafting is used: it would be so for any numbers that add up over rows. What the claim "
        "says of drafting is which mean to take: not that of the chances, as the rows that are still in the "
        "running at place j are the good ones; nor that over the rows that can still draft, as the others "
        "take part in the step, too. And mean survivals never rise along the row, so what holds of one "
        "row's stop (L13) holds of the batch."
    ),
    broken=(
        L15D_STATEMENT.but(
            "... whose chances are the rows' mean chances", lambda batch: _mean_row(batch, survival_of_means)
        ),
        L15D_STATEMENT.but(
            "... whose survivals are the means over the rows that can draft so many",
            lambda batch: _mean_row(
                batch, lambda rows, j: mean_survival(tuple(p for p in rows if len(p) >= j), j)
            ),
        ),
    ),
)

CLAIMS = (PADDED, L15C, L15D)
