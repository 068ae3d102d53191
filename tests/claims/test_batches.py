"""Sharing a step's tokens: the helpers that the claims on batches rest on, and a padded step by hand."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.claims.lengths.batches import (
    Batch,
    Rows,
    allocations,
    by_descending,
    common,
    emitted,
    first_stop,
    in_turn,
    some_rows,
)
from simspec.claims.lengths.partly_padded import subsets
from simspec.speculation.lengths import expected_tokens
from simspec.strategies.survivals import expected_accepted, survival

HALF, ONE, NONE = Fraction(1, 2), Fraction(1), Fraction(0)


@given(rows=some_rows())
def test_emitted_tokens_are_one_a_row_and_the_survivals(rows: Rows) -> None:
    for shared in allocations(rows):
        wanted = sum(1 + expected_accepted(p)[d] for p, d in zip(rows, shared, strict=True))
        assert emitted(rows, shared) == wanted


@given(rows=some_rows())
def test_emitted_tokens_are_those_that_the_simulators_rules_expect(rows: Rows) -> None:
    whole = tuple(map(len, rows))
    floats = [expected_tokens(np.array([p], dtype=np.float64))[0, -1] for p in rows]
    assert float(emitted(rows, whole)) == pytest.approx(sum(floats), rel=1e-12)


@given(rows=some_rows())
def test_admission_adds_one_token_at_a_time_from_the_largest_survival_down(rows: Rows) -> None:
    path = list(by_descending(rows, survival))
    assert path[0] == (0,) * len(rows)
    assert path[-1] == tuple(map(len, rows))
    largest = sorted((s for p in rows for s in survival(p)), reverse=True)
    steps = []
    for before, after in pairwise(path):
        (row,) = (r for r in range(len(rows)) if after[r] != before[r])
        assert after[row] == before[row] + 1
        steps.append(survival(rows[row])[before[row]])
    assert steps == largest


def test_of_equal_survivals_the_shallowest_is_admitted_first() -> None:
    assert list(by_descending(((ONE, ONE), (ONE,)), survival)) == [(0, 0), (1, 0), (1, 1), (2, 1)]


def test_turns_and_common_lengths_stop_at_a_rows_limit() -> None:
    rows = ((HALF,), (HALF, HALF, HALF))
    assert list(in_turn(rows)) == [(0, 0), (1, 0), (1, 1), (1, 2), (1, 3)]
    assert list(common(rows)) == [(0, 0), (1, 1), (1, 2), (1, 3)]


@given(rows=some_rows())
def test_every_allocation_and_every_choice_of_rows_comes_once(rows: Rows) -> None:
    every = list(allocations(rows))
    assert len(set(every)) == len(every) == np.prod([len(p) + 1 for p in rows])
    assert len(list(subsets(rows))) == 2 ** len(rows) - 1


def test_a_scan_that_stops_misses_what_lies_beyond_a_step() -> None:
    """One certain row, T = 2, 4, 4, 4: 1/2, then 2/4 (no better: stop), but 4/4 at three tokens."""
    batch = Batch(((ONE, ONE, ONE),), (Fraction(2), Fraction(4), Fraction(4), Fraction(4)))
    scanned = list(first_stop(batch, sum, lambda b: by_descending(b.rows, survival)))
    assert scanned == [(0,)]


@given(rows=some_rows(), fixed=st.integers(0, 9), step=st.integers(1, 4))
def test_rows_times_width_is_a_cost_by_width_for_given_rows(rows: Rows, fixed: int, step: int) -> None:
    """Padded to whole tiles of ``step`` slots: one length, cut at each row's limit, is best (L15c)."""

    def rate(shared: tuple[int, ...]) -> Fraction:
        slots = len(rows) * (1 + max(shared))
        return emitted(rows, shared) / (fixed + -(-slots // step))

    assert max(map(rate, allocations(rows))) == max(map(rate, common(rows)))


def test_padding_by_hand() -> None:
    """Two rows, the second of one place. Width 2 fills both: 2 + (1 + 1) + 1/2 tokens of 6 slots."""
    rows = ((ONE, ONE), (HALF,))
    assert [emitted(rows, shared) for shared in common(rows)] == [2, Fraction(7, 2), Fraction(9, 2)]
    assert emitted(rows, (2, 0)) == 4
