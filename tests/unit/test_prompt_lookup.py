"""Prompt look-up against a loop that compares one place at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.speculation.drafters import PromptLookup


def naive(text: list[int], length: int, longest: int, shortest: int) -> list[int]:
    for size in range(longest, shortest - 1, -1):
        if size >= len(text):
            continue
        for place in range(len(text) - size - 1, -1, -1):
            if text[place : place + size] == text[-size:]:
                return text[place + size :][:length]
    return []


@given(
    st.lists(st.integers(0, 3), max_size=24),
    st.integers(0, 8),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
)
def test_is_the_loop(text: list[int], length: int, sizes: tuple[int, int]) -> None:
    rule = PromptLookup(max(sizes), min(sizes))
    found = rule.draft(np.array(text, dtype=np.int32), length)
    assert found.dtype == np.int32
    assert found.tolist() == naive(text, length, max(sizes), min(sizes))


@given(st.lists(st.integers(0, 3), max_size=24), st.integers(0, 8))
def test_a_shorter_block_is_the_start_of_a_longer_one(text: list[int], length: int) -> None:
    whole = PromptLookup().draft(np.array(text, dtype=np.int32), 20)
    assert PromptLookup().draft(np.array(text, dtype=np.int32), length).tolist() == whole[:length].tolist()


def test_examples() -> None:
    def draft(text: list[int], length: int = 4) -> list[int]:
        return PromptLookup().draft(np.array(text, dtype=np.int32), length).tolist()

    assert draft([1, 2, 3, 9, 1, 2]) == [3, 9, 1, 2]
    assert draft([1, 2, 3, 1, 2, 4, 1, 2]) == [4, 1, 2], "the most recent place"
    assert draft([7, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2]) == [3, 8, 1, 2], "the longest suffix first"
    assert draft([5, 5, 5]) == [5], "a place may overlap the ending"
    assert draft([1, 2, 3]) == []
    assert draft([]) == []


@pytest.mark.parametrize("sizes", [(2, 3), (0, 0), (3, 0), (1, -1)])
def test_sizes_that_make_no_sense(sizes: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="min_ngram"):
        PromptLookup(*sizes)
