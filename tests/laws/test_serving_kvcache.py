"""What a pool of KV blocks says of itself; that it counts as numbered blocks would is claim M3."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.serving.kvcache import Pool


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 12)), min_size=1, max_size=4), st.integers(1, 5))
def test_missing_is_what_growing_takes(slots, size):
    pool = Pool(len(slots), None, size)
    for slot, (tokens, _) in enumerate(slots):
        pool.take(slot, tokens)
    before = pool.used
    missing = pool.missing(np.array([tokens + more for tokens, more in slots]))
    assert pool.used == before
    pool.grow()
    assert pool.used == before + missing
    assert pool.missing(np.array([tokens + more for tokens, more in slots])) == 0
    pool.check_integrity()


def test_what_is_not_there_is_refused_by_name():
    pool = Pool(2, 3, 4)
    pool.take(0, 9)
    with pytest.raises(ValueError, match="slot 0 holds 3, asks 1 of 0"):
        pool.take(0, 1)
    pool.missing(np.array([13, 0]))
    with pytest.raises(ValueError, match="1 blocks asked of 0"):
        pool.grow()


def test_integrity_is_not_taken_on_trust():
    pool = Pool(2, 10, 4)
    pool.take(0, 9)
    pool.held[1] = 1
    with pytest.raises(ValueError, match="4 blocks held and 7 free of 10"):
        pool.check_integrity()
