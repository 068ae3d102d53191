"""Sharing a step's drafted tokens where rows are padded to the longest (L15c, L15d).

Row r has chances p_1 .. p_D (place k accepted once all before it were) for as many places as it can draft;
S_j = p_1 .. p_j. An allocation submits the first d_r places of each row; every row emits its accepted drafts
and one token of the target's own. A step takes T. What one step gains per unit of time is all that is looked
at here (L17 is about runs of steps).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from simspec.claims.base import Claim, Outcome, Plot, against
from simspec.claims.lengths.batches import Allocation, Batch, Rows, common, common_lengths, has_best, rate
from simspec.claims.lengths.packed import L15B_STATEMENT
from simspec.claims.plain import number
from simspec.strategies.survivals import survival


def _same_for_all(batch: Batch) -> Iterator[Allocation]:
    """One length that every row can draft."""
    return ((width,) * len(batch.rows) for width in range(min(map(len, batch.rows)) + 1))


# L15c: padded


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
    "Where all rows are padded to the longest (time depends on the greatest d_r), one length, the same for "
    "all rows, is best",
    lambda batch: has_best(batch, max, _same_for_all),
    formula="max over d of E[tokens] / T(max d_r) is had by d_1 = .. = d_R",
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
    repaired=L15C_STATEMENT.but(
        "Then one length, cut in each row where it can draft no more, is best, whatever T; a scan over it "
        "finds it",
        lambda batch: has_best(batch, max, common_lengths),
        formula="max over d of E[tokens] / T(max d_r) is had by d_r = min(w, limit_r) for some w",
    ),
    first_look=(
        "Right where all rows can draft equally many tokens, and with the length cut at each row's own "
        "limit; not if rows may be left out of a step (L15e) or the time depends on tokens and width both "
        "(L15f)."
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
        "Expectations add: the tokens of all rows are R (1 + sum of the mean survivals). Mean chances are "
        "not enough: the rows that are still in the running at place j are the good ones."
    ),
    broken=(
        L15D_STATEMENT.but(
            "... whose chances are the rows' mean chances", lambda batch: _mean_row(batch, survival_of_means)
        ),
    ),
)

CLAIMS = (L15C, L15D)
