"""How a step's drafted tokens are shared among the rows of a batch (L15, L15b, L15c, L15d).

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

from simspec.claims.base import Claim, Outcome, Plot, Statement, against
from simspec.claims.plain import number, shown
from simspec.strategies.costs import Curve, rising_costs, staircase
from simspec.strategies.survivals import Conditional, conditionals, grid, survival, tokens_by_outcome

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
    """Allocations of 0, 1, 2, .. tokens: next comes the open place that is worth most, of equals the "
    "shallowest."""
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


def all_rows(level: int) -> Iterator[Rows]:
    one_row = [p for depth in (1, 2) for p in product(grid(2 + min(level, 1)), repeat=depth)]
    for i, first in enumerate(one_row):
        yield from ((first, second) for second in one_row[i:])
    if level:
        yield from product(product(grid(2), repeat=1), product(grid(2), repeat=2), product(grid(1), repeat=2))


def some_rows(most: int = 3) -> st.SearchStrategy[Rows]:
    """Rows of unlike length."""
    return st.lists(conditionals(longest=4), min_size=2, max_size=most).map(tuple)


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


# The best tokens per unit of time, where a step takes T of something.

Measure = Callable[[Allocation], int]
Candidates = Callable[[Batch], Iterator[Allocation]]


def rate(batch: Batch, shared: Allocation, of: Measure) -> Fraction:
    return emitted(batch.rows, shared) / batch.cost[of(shared)]


def _has_best(batch: Batch, of: Measure, candidates: Candidates) -> Outcome:
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


def _descending(batch: Batch) -> Iterator[Allocation]:
    return by_descending(batch.rows, survival)


def _common(batch: Batch) -> Iterator[Allocation]:
    return common(batch.rows)


def _same_for_all(batch: Batch) -> Iterator[Allocation]:
    """One length that every row can draft."""
    return ((width,) * len(batch.rows) for width in range(min(map(len, batch.rows)) + 1))


def first_stop(batch: Batch, of: Measure, candidates: Candidates) -> Iterator[Allocation]:
    """The candidates up to the first that is no better than the one before."""
    before = Fraction(-1)
    for shared in candidates(batch):
        if rate(batch, shared, of) <= before:
            return
        before = rate(batch, shared, of)
        yield shared


def all_batches(level: int) -> Iterator[Batch]:
    """T long enough for all tokens together; by width, its beginning is used."""
    for rows in all_rows(0):
        most = sum(map(len, rows))
        yield Batch(rows, tuple(Fraction(4 + d) for d in range(most + 1)))
        yield Batch(rows, staircase(Fraction(1), Fraction(1), 2, most))
        if level:
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
L15B_STATEMENT = Statement(
    words=(
        "Where a step's time depends on its number of drafted tokens only, in whatever way, a scan over that "
        "number, tokens admitted by descending survival, finds the most tokens per unit of time"
    ),
    formula="max over d of E[tokens] / T(sum d_r) = max over B of (R + sum of the B largest S_j) / T(B)",
    rule=lambda batch: _has_best(batch, sum, _descending),
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
            lambda batch: _has_best(batch, sum, lambda b: first_stop(b, sum, _descending)),
        ),
        L15B_STATEMENT.but(
            "... and one common length, cut where a row can draft no more, will do",
            lambda batch: _has_best(batch, sum, _common),
        ),
    ),
)

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
    lambda batch: _has_best(batch, max, _same_for_all),
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
        lambda batch: _has_best(batch, max, _common),
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

CLAIMS = (L15, L15B, L15C, L15D, L15E, L15F)
