"""The cache's bookkeeping: a masked cache is a cache built afresh (S9), and what bounds its waste (S9b)."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from simspec.speculation.slots import Slots

PADDING = -1


class Physical:
    """A cache of (token, position) entries that does only what Slots says, as keys and values would."""

    def __init__(self, rows: int) -> None:
        self.slots = Slots(rows)
        self.entries = np.empty((rows, 0, 2), dtype=np.int64)

    def append(self, tokens: list[list[int]]) -> list[list[list[tuple[int, int]]]]:
        """Add tokens; what each query of each row sees, padded queries too, in slot order."""
        added = self.slots.append(np.array([len(row) for row in tokens], dtype=np.int64))
        rows, held = self.entries.shape[:2]
        assert added.first_slot == held
        assert added.width == max(len(row) for row in tokens)
        assert added.positions.shape == (rows, added.width)
        new = np.full((rows, added.width, 2), PADDING, dtype=np.int64)
        for r, row in enumerate(tokens):
            new[r, : len(row), 0] = row
        new[:, :, 1] = added.positions
        self.entries = np.concatenate([self.entries, new], axis=1)
        slots = held + added.width
        mask = added.mask
        if mask is None:
            causal = np.arange(slots) <= held + np.arange(added.width)[:, None]
            mask = np.broadcast_to(causal, (rows, added.width, slots))
        assert mask.shape == (rows, added.width, slots)
        return [
            [[tuple(entry) for entry in self.entries[r][mask[r, j]].tolist()] for j in range(added.width)]
            for r in range(rows)
        ]

    def truncate(self) -> None:
        self.entries = self.entries[:, : self.slots.truncate()]

    def remove(self, keep: list[int]) -> None:
        self.slots.remove(np.array(keep, dtype=np.int64))
        self.entries = self.entries[keep]

    def join(self, rows: int) -> list[int]:
        joined = self.slots.join(rows).tolist()
        empty = np.full((rows, self.entries.shape[1], 2), PADDING, dtype=np.int64)
        self.entries = np.concatenate([self.entries, empty])
        return joined

    def compact(self) -> None:
        source = self.slots.compact()
        self.entries = np.take_along_axis(self.entries, source[:, :, None], axis=1)

    def held(self, row: int) -> list[tuple[int, int]]:
        return [tuple(entry) for entry in self.entries[row][self.slots.valid[row]].tolist()]


def afresh(tokens: list[int]) -> list[tuple[int, int]]:
    """The entries of a cache that read these tokens and nothing else."""
    return [(token, position) for position, token in enumerate(tokens)]


class Caches(RuleBasedStateMachine):
    """S9. The twin is a list of tokens for each row; None is a finished row."""

    @initialize(rows=st.integers(1, 4))
    def start(self, rows: int) -> None:
        self.cache = Physical(rows)
        self.twin: list[list[int] | None] = [[] for _ in range(rows)]
        self.token = 0  # every token is another one, so that none stands in for another

    def live(self) -> list[int]:
        return [r for r, tokens in enumerate(self.twin) if tokens is not None]

    def texts(self) -> list[list[int]]:
        return [tokens or [] for tokens in self.twin]

    def read(self, widths: list[int], cache: Physical) -> list[list[int]]:
        """Append to ``cache`` and see that every query sees what a cache built afresh would show it."""
        ends = np.cumsum([0, *widths]) + self.token
        new = [list(range(ends[r], ends[r + 1])) for r in range(len(widths))]
        self.token = int(ends[-1])
        for text, row, seen in zip(self.texts(), new, cache.append(new), strict=True):
            for j, entries in enumerate(seen):
                if j < len(row):
                    assert entries == afresh(text + row[: j + 1])
                else:
                    assert entries, "a padded query sees nothing"
        return new

    def extend(self, widths: list[int]) -> None:
        for tokens, row in zip(self.twin, self.read(widths, self.cache), strict=True):
            if tokens is not None:
                tokens.extend(row)

    @precondition(lambda self: self.live())
    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        widths = [0] * len(self.twin)
        live = self.live()
        widths[data.draw(st.sampled_from(live))] = data.draw(st.integers(1, 4))
        for r in live:
            widths[r] = widths[r] or data.draw(st.integers(0, 4))
        self.extend(widths)

    @precondition(lambda self: self.live())
    @rule(width=st.integers(1, 4))
    def append_alike(self, width: int) -> None:
        self.extend([0 if tokens is None else width for tokens in self.twin])

    @precondition(lambda self: self.live())
    @rule(data=st.data(), width=st.integers(2, 5))
    def cycle(self, data: st.DataObject, width: int) -> None:
        """What decoding does: as many tokens in every row, of which each keeps at least one."""
        self.append_alike(width)
        self.keep([max(len(text) - data.draw(st.integers(0, width - 1)), 0) for text in self.texts()])
        self.truncate()

    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        most = data.draw(st.sampled_from([1, 4, 1000]))
        self.keep([len(text) - data.draw(st.integers(0, min(most, len(text)))) for text in self.texts()])

    def keep(self, keep: list[int]) -> None:
        before = self.cache.slots.slots
        self.cache.slots.roll_back(np.array(keep, dtype=np.int64))
        assert self.cache.slots.slots == before, "a roll back moves nothing"
        for tokens, length in zip(self.twin, keep, strict=True):
            if tokens is not None:
                del tokens[length:]

    @rule()
    def truncate(self) -> None:
        """S9b, first half: exactly the common minimum goes, and (by the invariant) no valid entry."""
        slots, valid = self.cache.slots.slots, self.cache.slots.valid
        trailing = [
            next((back for back in range(slots) if valid[r, slots - 1 - back]), slots) for r in self.live()
        ]
        self.cache.truncate()
        assert self.cache.slots.slots == slots - min(trailing, default=slots)

    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        few = st.lists(st.integers(0, max(len(self.twin) - 1, 0)), max_size=min(len(self.twin), 2))
        rows = data.draw(few)
        self.cache.slots.finish(np.array(rows, dtype=np.int64))
        for r in rows:
            self.twin[r] = None

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        order = data.draw(st.permutations(range(len(self.twin))))
        keep = list(order)[data.draw(st.integers(0, 2)) :]
        self.cache.remove(keep)
        self.twin = [self.twin[r] for r in keep]

    @precondition(lambda self: len(self.twin) < 7)
    @rule(rows=st.integers(0, 2))
    def join(self, rows: int) -> None:
        assert self.cache.join(rows) == list(range(len(self.twin), len(self.twin) + rows))
        self.twin.extend([] for _ in range(rows))

    @rule()
    def compact(self) -> None:
        self.cache.compact()
        assert self.cache.slots.slots == max((len(text) for text in self.texts()), default=0)

    @invariant()
    def same_as_built_afresh(self) -> None:
        slots = self.cache.slots
        slots.check_integrity()
        texts = self.texts()
        assert [self.cache.held(r) for r in range(len(texts))] == [afresh(text) for text in texts]
        assert slots.lengths.tolist() == [len(text) for text in texts]
        assert slots.finished.tolist() == [tokens is None for tokens in self.twin]
        assert slots.needed == max((len(text) for text in texts), default=0)
        for r in self.live():
            assert slots.wasted[r] == np.count_nonzero(~slots.valid[r])

    @invariant()
    def next_token_sees_it(self) -> None:
        """One more token in every live row, on a copy: what the next forward would attend to."""
        widths = [0 if tokens is None else 1 for tokens in self.twin]
        if any(widths):
            self.read(widths, copy.deepcopy(self.cache))


TestCaches = Caches.TestCase
TestCaches.settings = settings(stateful_step_count=30)


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
    """Then waste is what the best row kept, cycle by cycle, over what a row kept itself: 0 for one row."""
    slots = Slots(len(kept[0]))
    for row in kept:
        cycle(slots, np.full(len(row), 5), np.array(row))
    assert slots.slots == sum(max(row) for row in kept)
    assert slots.slots <= 5 * slots.lengths.min()  # S9b: the ratio stays within gamma + 1
    if len(kept[0]) == 1:
        assert slots.wasted.tolist() == [0]


@pytest.mark.parametrize("gamma", [1, 4, 9])
def test_waste_grows_without_bound_at_batch_two(gamma):
    """S9b, second half, refuted: cutting by the common minimum cuts nothing, and waste is gamma/2 a cycle."""
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


# One step of a batch: new tokens of each row, share of each row's tokens rolled back to at most (0: none of
# what was there before), which row finishes, which joins.
ROWS = 4
steps = st.lists(
    st.tuples(
        st.lists(st.integers(0, 6), min_size=ROWS, max_size=ROWS),
        st.lists(st.integers(0, 12), min_size=ROWS, max_size=ROWS),
        st.sampled_from(["go on"] * 6 + ["finish", "replace"]),
        st.booleans(),
    ),
    max_size=60,
)


@given(steps, st.sampled_from([0.0, 0.01, 0.25, 0.5, 1.0, 3.0]), st.sampled_from([0, 1, 5, 16]))
@example([([6, 0, 0, 0], [0, 0, 0, 0], "go on", False)] * 60, 0.25, 0)
@example([([6, 6, 6, 6], [5 * (c % 2), 5 * (1 - c % 2), 3, 6], "go on", True) for c in range(60)], 0.25, 4)
def test_the_rule_bounds_waste_and_copies(steps, slack, floor):
    """The two statements of the class, checked after every append, whatever happens between appends."""
    cache = Bounded(ROWS, slack, floor)
    slots = cache.slots
    for new, drop, event, cut in steps:
        widths = np.where(slots.finished, 0, new)
        if widths.any():
            cache.append(widths)
        slots.roll_back(np.maximum(slots.lengths - drop, 0))
        if cut:
            slots.truncate()
        if event == "finish":
            slots.finish(np.array([int(slots.lengths.argmax())]))
        elif event == "replace":  # the longest row leaves and an empty one comes
            slots.remove(np.delete(np.arange(ROWS), slots.lengths.argmax()))
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
