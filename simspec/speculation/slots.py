"""Which slots of a batch's KV cache hold tokens: rolling back without moving anything.

SpecRouter's StateManager (arXiv 2505.07680): rolled-back entries are marked invalid in a
validity mask and no data moves; the cache itself is cut only by what the whole batch has
rolled back. What it does not say, and what a batch needs (claim S9b), is added here:
finished rows leave that minimum, and a rule says when to pack the rows to the left.

Only the bookkeeping is here. Keys and values live elsewhere, in a rectangle of rows x slots,
and follow what :class:`Slots` returns: write new entries from ``first_slot`` on, cut after
:meth:`Slots.truncate`, gather after :meth:`Slots.compact`, take rows after :meth:`Slots.remove`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Appended:
    """Where new tokens go and what they may attend to.

    Attributes:
        first_slot: the new slots are ``first_slot .. first_slot + width - 1`` in every row.
        width: new tokens of the row that has most.
        positions: position ids, shape (rows, width); padding goes on counting from the row's length.
        mask: which slots each new token may see, shape (rows, width, first_slot + width). A padded
            query sees at least itself, so that a softmax over it is finite. None where plain causal
            order over all slots is right for every token: no row that gets tokens has an invalid slot.
            (Padding stands behind a row's tokens, so causal order hides it from them.)
    """

    first_slot: int
    width: int
    positions: Ints
    mask: Bools | None


class Slots:
    """The validity mask of a cache of rows x slots.

    Attributes:
        valid: which slots hold a token of their row, shape (rows, slots).
        lengths: valid tokens of each row, shape (rows,).
        finished: rows that hold nothing any more and wait for :meth:`remove`, shape (rows,).

    A row's valid slots in order are its tokens in order, and the i-th has position id i. The three
    arrays are replaced, never written to: what was read from here stays as it was read.

    **Waste is bounded, at any batch size** (claim S9b). The longest row's ``needed`` tokens fill as many
    slots in any arrangement; what S has beyond them is waste that can be won back. Let the owner compact
    whenever :meth:`should_compact` says so, asking between the last roll back and the next append. Then

    1. after each append S <= needed * (1 + slack) + floor + width. Before it, either the rule was quiet,
       which is S <= needed * (1 + slack) + floor, or S = needed. The append adds ``width`` to S and does
       not lower ``needed``.
    2. compacting costs less than ``1 / slack`` slots copied in each row for every slot appended. Let n_i
       be ``needed`` at compaction i (n_0 = 0 at the start) and W_i the slots appended since the one
       before. As each compaction leaves S = n_i, the next finds S <= n_{i-1} + W_i, and it runs because
       S > n_i + slack * n_i + floor: so slack * n_i + floor < W_i + n_{i-1} - n_i. Summed over k
       compactions the right side telescopes: slack * sum(n_i) + k * floor < sum(W_i). This holds
       whatever is rolled back, finished, removed or joined in between.

    Without the rule neither S nor its waste has such a bound for two rows or more: the common minimum can
    be 0 in every cycle though each row is rolled back in every other one. At batch sizes where S would stay
    below (1 + slack) rows by itself the rule does nothing; with slack 0 the waste has a fixed bound, floor +
    width, and the copies have none.
    """

    def __init__(self, rows: int = 0) -> None:
        """An empty cache of ``rows`` rows. Raises ValueError if that is negative."""
        if rows < 0:
            raise ValueError(f"rows must be at least 0, not {rows}")
        self.valid: Bools = np.zeros((rows, 0), dtype=np.bool_)
        self.lengths: Ints = np.zeros(rows, dtype=np.int64)
        self.finished: Bools = np.zeros(rows, dtype=np.bool_)

    @property
    def rows(self) -> int:
        """Rows of the rectangle, finished ones included."""
        return int(self.valid.shape[0])

    @property
    def slots(self) -> int:
        """Slots of every row, S."""
        return int(self.valid.shape[1])

    @property
    def wasted(self) -> Ints:
        """Slots of each live row that hold none of its tokens, shape (rows,); 0 for finished rows."""
        return np.where(self.finished, 0, self.slots - self.lengths)

    @property
    def needed(self) -> int:
        """Tokens of the longest live row: no arrangement has fewer slots."""
        return int(self.lengths.max(initial=0))

    def append(self, widths: Ints) -> Appended:
        """Add slots for new tokens.

        Args:
            widths: new tokens of each row, shape (rows,). Row r's take the first ``widths[r]`` of the
                new slots; the rest of its new slots are padding and never valid.

        Raises ValueError if no row gets a token, if a finished row does, or if a width is negative.
        """
        widths = self._counts("widths", widths)
        width = int(widths.max(initial=0))
        if not width:
            raise ValueError("widths are all 0: there is nothing to append")
        if widths[self.finished].any():
            raise ValueError(
                f"rows {np.flatnonzero(self.finished & (widths > 0))} are finished and get tokens"
            )
        first, offset = self.slots, np.arange(width)
        real = offset < widths[:, None]
        positions = self.lengths[:, None] + offset
        mask = None
        if not self.valid[widths > 0].all():
            mask = np.empty((self.rows, width, first + width), dtype=np.bool_)
            mask[:, :, :first] = self.valid[:, None, :]
            earlier, itself = offset < offset[:, None], offset == offset[:, None]
            mask[:, :, first:] = (earlier & real[:, None, :]) | itself
        self.valid = np.concatenate([self.valid, real], axis=1)
        self.lengths = self.lengths + widths
        return Appended(first, width, positions, mask)

    def roll_back(self, lengths: Ints) -> None:
        """Keep each row's first ``lengths[r]`` tokens and mark those after them invalid; nothing moves.

        Raises ValueError if a length is negative or more than the row has.
        """
        lengths = self._counts("lengths", lengths)
        if (lengths > self.lengths).any():
            row = int(np.argmax(lengths > self.lengths))
            raise ValueError(f"row {row} has {self.lengths[row]} tokens, fewer than {lengths[row]}")
        cut = np.flatnonzero(lengths < self.lengths)
        if len(cut):
            valid = self.valid.copy()
            rank = np.cumsum(valid[cut], axis=1, dtype=np.int32)
            valid[cut] &= rank <= lengths[cut, None]
            self.valid = valid
        self.lengths = lengths

    def truncate(self) -> int:
        """Drop the trailing slots that no row uses, and return how many slots are left.

        That is the common minimum of what the live rows have rolled back (and of their padding);
        finished rows use no slot, so they do not hold it up.
        """
        used = np.flatnonzero(self.valid.any(axis=0))
        slots = int(used[-1]) + 1 if len(used) else 0
        self.valid = self.valid[:, :slots]
        return slots

    def finish(self, rows: Ints) -> None:
        """Give up the tokens of these rows (indices); they leave the minimum at once.

        Raises ValueError if an index is out of range.
        """
        rows = self._indices("rows", rows)
        ended = self.finished.copy()
        ended[rows] = True
        self.finished = ended
        self.valid = self.valid & ~ended[:, None]
        self.lengths = np.where(ended, 0, self.lengths)

    def remove(self, keep: Ints) -> None:
        """Keep only these rows (indices), in this order. Slots stay as they are: see :meth:`truncate`.

        Raises ValueError if an index is out of range or given twice.
        """
        keep = self._indices("keep", keep)
        if len(np.unique(keep)) < len(keep):
            raise ValueError(f"keep names a row twice: {keep}")
        self.valid, self.lengths, self.finished = self.valid[keep], self.lengths[keep], self.finished[keep]

    def join(self, rows: int) -> Ints:
        """Add ``rows`` rows without tokens at the end, all their slots invalid; returns their indices.

        Raises ValueError if ``rows`` is negative.
        """
        if rows < 0:
            raise ValueError(f"rows must be at least 0, not {rows}")
        before = self.rows
        self.valid = np.concatenate([self.valid, np.zeros((rows, self.slots), dtype=np.bool_)])
        self.lengths = np.concatenate([self.lengths, np.zeros(rows, dtype=np.int64)])
        self.finished = np.concatenate([self.finished, np.zeros(rows, dtype=np.bool_)])
        return np.arange(before, before + rows)

    def should_compact(self, slack: float, floor: int) -> bool:
        """Whether S > needed * (1 + slack) + floor. Ask before an append; the class says what it bounds.

        Args:
            slack: waste allowed, as a share of the longest row; at 0 the copies have no bound.
            floor: slots of waste allowed on top, so that short rows are not packed again and again.

        Raises ValueError if either is negative or not finite.
        """
        for name, value in (("slack", slack), ("floor", floor)):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be finite and at least 0, not {value}")
        return self.slots > self.needed * (1 + slack) + floor

    def compact(self) -> Ints:
        """Pack every row to the left, its tokens in order, and cut the slots to ``needed``.

        Returns where each new slot comes from, shape (rows, new slots): slot j of row r from the old
        slot ``source[r, j]``. Behind a row's tokens that is j itself, in range and invalid, so leading
        columns in which nothing moves are recognised by ``source[:, j] == j``.
        """
        slots = np.arange(self.needed)
        valid = slots < self.lengths[:, None]
        source = np.tile(slots, (self.rows, 1))
        # Both masks are read row by row and hold lengths[r] entries in row r: the i-th goes to the i-th.
        source[valid] = np.nonzero(self.valid)[1]
        self.valid = valid
        return source

    def check_integrity(self) -> None:
        """Raise AssertionError with the reason if the arrays contradict one another."""
        rows = self.rows
        if self.lengths.shape != (rows,) or self.finished.shape != (rows,):
            raise AssertionError(
                f"{rows} rows of slots, but {self.lengths.shape} lengths and {self.finished.shape} finished"
            )
        counted = self.valid.sum(axis=1)
        if (counted != self.lengths).any():
            row = int(np.argmax(counted != self.lengths))
            raise AssertionError(f"row {row} has {counted[row]} valid slots, but length {self.lengths[row]}")
        if self.lengths[self.finished].any():
            raise AssertionError(
                f"finished rows hold tokens: {np.flatnonzero(self.finished & (counted > 0))}"
            )

    def _counts(self, name: str, values: Ints) -> Ints:
        """``values`` as a copy of whole numbers, one for each row, none negative."""
        given = np.asarray(values)
        if given.shape != (self.rows,):
            raise ValueError(
                f"{name} must have one entry for each of {self.rows} rows, not shape {given.shape}"
            )
        if given.size and not np.issubdtype(given.dtype, np.integer):
            raise ValueError(f"{name} must be whole numbers, not {given.dtype}")
        if (given < 0).any():
            raise ValueError(f"{name} must be at least 0, not {given.min()}")
        return given.astype(np.int64)

    def _indices(self, name: str, values: Ints) -> Ints:
        """``values`` as row indices in range."""
        given = np.asarray(values)
        if given.ndim != 1 or (given.size and not np.issubdtype(given.dtype, np.integer)):
            raise ValueError(
                f"{name} must be a list of row indices, not {given.dtype} of shape {given.shape}"
            )
        if given.size and not (given.min() >= 0 and given.max() < self.rows):
            raise ValueError(f"{name} must be indices from 0 to {self.rows - 1}, not {given}")
        return given.astype(np.int64)
