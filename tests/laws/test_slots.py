"""What bounds the waste of a cache that is rolled back, over runs longer than claims S9 to S9e look at.

That a masked cache is a cache built afresh, that truncating spares valid entries, and that compaction bounds
waste whatever happens in between are claims (:mod:`simspec.claims.simulator`).
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.speculation.slots import Slots


def cycle(slots: Slots, widths: np.ndarray, kept: np.ndarray) -> None:
    """Append ``widths`` tokens, keep the first ``kept`` of them, cut what the whole batch rolled back."""
    before = slots.lengths
    slots.append(widths)
    slots.roll_back(before + kept)
    slots.truncate()


def alternating(cycles: int, gamma: int) -> list[np.ndarray]:
    """Two rows: one accepts all of gamma drafts where the other accepts none; the next cycle they swap."""
    return [np.array([gamma + 1, 1] if c % 2 else [1, gamma + 1]) for c in range(cycles)]


# Tokens that each of some rows keeps in each of some cycles, 1 .. 5 of 5.
keeps = st.integers(1, 5).flatmap(
    lambda rows: st.lists(st.lists(st.integers(1, 5), min_size=rows, max_size=rows), min_size=1, max_size=40)
)


@given(keeps)
def test_without_compaction_every_cycle_costs_what_its_best_row_keeps(kept):
    """The sum that S9c's proof rests on; for one row it leaves no waste."""
    slots = Slots(len(kept[0]))
    for row in kept:
        cycle(slots, np.full(len(row), 5), np.array(row))
    assert slots.slots == sum(max(row) for row in kept)
    if len(kept[0]) == 1:
        assert slots.wasted.tolist() == [0]


@pytest.mark.parametrize("gamma", [1, 4, 9])
def test_waste_grows_without_bound_at_batch_two(gamma):
    """S9c, refuted: cutting by the common minimum cuts nothing, and waste is gamma/2 a cycle."""
    slots = Slots(2)
    for c, kept in enumerate(alternating(200, gamma), start=1):
        cycle(slots, np.full(2, gamma + 1), kept)
        assert slots.slots == (gamma + 1) * c
        if c % 2 == 0:
            assert slots.wasted.tolist() == [gamma * c // 2] * 2


class Bounded:
    """A cache that is compacted before an append whenever the rule says so, and what that costs."""

    def __init__(self, rows: int, slack: float, floor: int) -> None:
        self.slots, self.slack, self.floor = Slots(rows), slack, floor
        self.appended = self.copied = self.compactions = 0  # slots of one row

    def append(self, widths: np.ndarray) -> None:
        slots = self.slots
        if slots.should_compact(self.slack, self.floor):
            slots.compact()
            self.copied += slots.slots
            self.compactions += 1
        width = slots.append(widths).width
        self.appended += width
        assert slots.slots <= slots.needed * (1 + self.slack) + self.floor + width
        paid = self.slack * self.copied + self.compactions * self.floor
        assert paid < self.appended or not self.compactions


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize("slack", [0.0, 0.01, 0.25, 0.5, 3.0])
def test_one_row_that_grows_beside_others_that_start_again(slack, cut):
    """600 appends; every other one the longest row's place is taken by an empty one."""
    cache = Bounded(4, slack, 0)
    slots = cache.slots
    for step in range(600):
        cache.append(np.array([6, step % 7, (step * 5) % 3, 1]))
        slots.roll_back(np.maximum(slots.lengths - [5 * (step % 2), 5 * (1 - step % 2), 3, 6], 0))
        if cut:
            slots.truncate()
        if step % 2:
            slots.remove(np.delete(np.arange(4), slots.lengths.argmax()))
            slots.join(1)


@pytest.mark.parametrize("gamma", [1, 4, 9])
@pytest.mark.parametrize(("slack", "floor"), [(0.25, 16), (0.5, 0), (1.0, 16)])
def test_the_rule_bounds_the_waste_that_grew_without_it(gamma, slack, floor):
    """The rows that alternate again: the rule acts, and afterwards waste is below a fixed share of a row."""
    cache = Bounded(2, slack, floor)
    for kept in alternating(400, gamma):
        before = cache.slots.lengths
        cache.append(np.full(2, gamma + 1))
        cache.slots.roll_back(before + kept)
        cache.slots.truncate()
        assert cache.slots.slots - cache.slots.needed <= slack * cache.slots.needed + floor + gamma + 1
    # Without the rule S comes to 2 (gamma + 1) / (gamma + 2) rows: it acts if slack is below the surplus.
    assert (cache.compactions > 0) == (slack < gamma / (gamma + 2))
