"""Slots that do one thing wrong each: what the claims on a batch's KV cache have to catch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simspec.speculation.slots import Appended, Bools, Ints, Slots

# What a token sees, and where a row's tokens are.


class CausalOnly(Slots):
    """Leaves the validity mask out."""

    def append(self, widths: Ints) -> Appended:
        return replace(super().append(widths), mask=None)


def _written_out(slots: Slots, added: Appended, widths: Ints) -> tuple[Bools, Bools]:
    """The mask, also where causal order would do, and which of the new slots are tokens, (rows, width)."""
    real = np.arange(added.width) < widths[:, None]
    if added.mask is not None:
        return added.mask.copy(), real
    mask = np.repeat(slots.valid[:, None, :], added.width, axis=1)
    mask[:, :, added.first_slot :] &= np.tri(added.width, dtype=np.bool_)
    return mask, real


class OneMaskForAll(Slots):
    """Hands the first row's mask to all rows."""

    def append(self, widths: Ints) -> Appended:
        added = super().append(widths)
        mask, _ = _written_out(self, added, widths)
        return replace(added, mask=np.repeat(mask[:1], self.rows, axis=0))


class NewSeeOnlyThemselves(Slots):
    """Masks the other new tokens of an append."""

    def append(self, widths: Ints) -> Appended:
        added = super().append(widths)
        mask, _ = _written_out(self, added, widths)
        mask[:, :, added.first_slot :] = np.eye(added.width, dtype=np.bool_)
        return replace(added, mask=mask)


class NewSeeAllNew(Slots):
    """Lets the tokens of an append see those behind them."""

    def append(self, widths: Ints) -> Appended:
        added = super().append(widths)
        mask, real = _written_out(self, added, widths)
        mask[:, :, added.first_slot :] |= real[:, None, :]
        return replace(added, mask=mask)


class CountsSlots(Slots):
    """Gives a token the position of its slot."""

    def append(self, widths: Ints) -> Appended:
        added = super().append(widths)
        count = np.arange(added.first_slot, added.first_slot + added.width)
        return replace(added, positions=np.tile(count, (self.rows, 1)))


class CutsSlots(Slots):
    """Rolls back the last n slots of a row where it should roll back its last n tokens."""

    def roll_back(self, lengths: Ints) -> None:
        back = self.lengths - lengths
        self.valid = self.valid & (np.arange(self.slots) < self.slots - back[:, None])
        self.lengths = self.valid.sum(axis=1)


class NeverFinishes(Slots):
    """Leaves a finished row's tokens where they are."""

    def finish(self, rows: Ints) -> None:
        pass


class PacksBackwards(Slots):
    """Packs each row's tokens last one first, their positions with them."""

    def compact(self) -> Ints:
        source = super().compact()
        for row, length in zip(source, self.lengths.tolist(), strict=True):
            row[:length] = row[:length][::-1].copy()
        return source


class MovesNothing(Slots):
    """Packs the mask and leaves the entries where they are."""

    def compact(self) -> Ints:
        source = super().compact()
        return np.tile(np.arange(source.shape[1]), (self.rows, 1))


# What truncating cuts.


def _trailing(row: list[bool]) -> int:
    return next((back for back, used in enumerate(reversed(row)) if used), len(row))


def _cut(slots: Slots, by: int) -> int:
    """Cut the last ``by`` slots, whatever they hold."""
    left = slots.slots - by
    slots.valid = slots.valid[:, :left]
    slots.lengths = slots.valid.sum(axis=1)
    return left


class CutsMost(Slots):
    """Cuts what the row with most to give up has free at its end."""

    def truncate(self) -> int:
        return _cut(self, max((_trailing(row) for row in self.valid.tolist()), default=0))


class CutsByThoseWithSome(Slots):
    """Takes the minimum over the rows that have anything to give up."""

    def truncate(self) -> int:
        free = [_trailing(row) for row in self.valid.tolist()]
        return _cut(self, min((n for n in free if n), default=0))


class CutsOnlyTokens(Slots):
    """Cuts the least number of tokens that a row has just rolled back, and no padding."""

    just = 0

    def append(self, widths: Ints) -> Appended:
        self.just = 0
        return super().append(widths)

    def roll_back(self, lengths: Ints) -> None:
        back = (self.lengths - lengths)[~self.finished]
        super().roll_back(lengths)
        self.just = int(back.min(initial=self.slots))

    def remove(self, keep: Ints) -> None:
        self.just = 0
        super().remove(keep)

    def join(self, rows: int) -> Ints:
        self.just = 0
        return super().join(rows)

    def compact(self) -> Ints:
        self.just = 0
        return super().compact()

    def truncate(self) -> int:
        by, self.just = self.slots if self.finished.all() else self.just, 0
        return _cut(self, by)


# When to pack.


class FinishedStay(Slots):
    """A finished row keeps its slots, and so stays in the common minimum and in what packing needs."""

    def finish(self, rows: Ints) -> None:
        self.finished = self.finished | np.isin(np.arange(self.rows), rows)


class AsksMean(Slots):
    """Allows twice the mean row in place of the longest."""

    def should_compact(self, slack: float, floor: int) -> bool:
        return self.slots * max(self.rows, 1) > 2 * int(self.lengths.sum()) * (1 + slack) + floor


class PacksAlways(Slots):
    """Asks to be packed whenever that wins a slot."""

    def should_compact(self, slack: float, floor: int) -> bool:
        return self.slots > self.needed


class NeverPacks(Slots):
    """Never asks to be packed."""

    def should_compact(self, slack: float, floor: int) -> bool:
        return False
