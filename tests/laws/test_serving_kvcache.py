"""Blocks that are counted beside blocks that have numbers and owners (M3)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from simspec.serving.kvcache import Pool
from tests.reference_serving import Blocks

SLOTS = 4


class Memory(RuleBasedStateMachine):
    """Slots take, grow, shrink and release; the twin does it block by block."""

    @initialize(total=st.integers(1, 30) | st.none(), size=st.integers(1, 5))
    def begin(self, total, size):
        self.pool, self.twin = Pool(SLOTS, total, size), Blocks(total, size)
        self.held: list[list[int]] = [[] for _ in range(SLOTS)]
        self.tokens = [0] * SLOTS

    def fits(self, slot, tokens):
        return self.twin.need(tokens) <= self.twin.left()

    @rule(slot=st.integers(0, SLOTS - 1), tokens=st.integers(1, 40))
    def take(self, slot, tokens):
        if self.held[slot] or not self.fits(slot, tokens):
            with pytest.raises(ValueError, match="holds"):
                self.pool.take(slot, tokens)
            return
        self.pool.take(slot, tokens)
        self.twin.give(self.held[slot], tokens)
        self.tokens[slot] = tokens

    @rule(more=st.lists(st.integers(0, 12), min_size=SLOTS, max_size=SLOTS))
    def grow(self, more):
        wanted = [t + m if t else 0 for t, m in zip(self.tokens, more, strict=True)]
        lacks = [max(0, self.twin.need(w) - len(h)) for w, h in zip(wanted, self.held, strict=True)]
        assert self.pool.missing(np.array(wanted)) == sum(lacks)
        if sum(lacks) > self.twin.left():
            with pytest.raises(ValueError, match="asked"):
                self.pool.grow()
            return
        self.pool.grow()
        for slot, tokens in enumerate(wanted):
            self.twin.give(self.held[slot], tokens)
        self.tokens = wanted

    @rule(less=st.lists(st.integers(0, 12), min_size=SLOTS, max_size=SLOTS))
    def shrink(self, less):
        kept = [max(t - n, 1) if t else 0 for t, n in zip(self.tokens, less, strict=True)]
        self.pool.shrink(np.array(kept))
        for slot, tokens in enumerate(kept):
            if tokens:
                self.twin.take(self.held[slot], self.twin.need(tokens))
        self.tokens = kept

    @rule(slot=st.integers(0, SLOTS - 1))
    def release(self, slot):
        self.pool.release(slot)
        self.twin.take(self.held[slot], 0)
        self.tokens[slot] = 0

    @precondition(lambda self: hasattr(self, "pool"))
    @invariant()
    def same_counts(self):
        assert self.pool.held.tolist() == [len(h) for h in self.held]
        assert self.pool.used == len(self.twin.owned)
        owners = [block for held in self.held for block in held]
        assert len(owners) == len(set(owners))
        self.pool.check_integrity()


TestMemory = Memory.TestCase


def test_integrity_is_not_taken_on_trust():
    pool = Pool(2, 10, 4)
    pool.take(0, 9)
    pool.held[1] = 1
    with pytest.raises(ValueError, match="4 blocks held and 7 free of 10"):
        pool.check_integrity()
