"""Keys and values of a batch, kept where :class:`simspec.speculation.slots.Slots` says.

Storage grows by doubling and is written in place, so that an append copies nothing but the new
entries, truncation is a smaller number, and only compaction and the removal of rows move data.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin


class _Where:
    """Shared by all layers of one cache: the rows and the slots of the forward that is going on."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.slots = 0
        self.first_slot = 0
        self.taking: torch.Tensor | None = None  # rows in the forward; None for all of them


class _Layer(CacheLayerMixin):
    """One layer's rectangle, (rows, heads, capacity, head size)."""

    is_sliding = False
    is_croppable = False

    def __init__(self, where: _Where) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.where = where

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        rows, capacity = self.where.rows, max(64, self.where.slots)
        self.keys = key_states.new_zeros(rows, key_states.shape[1], capacity, key_states.shape[3])
        self.values = value_states.new_zeros(rows, value_states.shape[1], capacity, value_states.shape[3])
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        where = self.where
        first, last = where.first_slot, where.slots
        found = []
        for name, new in (("keys", key_states), ("values", value_states)):
            held: torch.Tensor = getattr(self, name)
            if held.shape[2] < last:
                held = _grown(held, last)
                setattr(self, name, held)
            if where.taking is None:
                held[:, :, first:last] = new
                found.append(held[:, :, :last])
            else:
                held[where.taking, :, first:last] = new
                found.append(held[where.taking, :, :last])
        return found[0], found[1]

    def each(self, change: Any) -> None:
        if self.is_initialized:
            assert self.keys is not None
            assert self.values is not None
            self.keys, self.values = change(self.keys), change(self.values)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        # Asked before the forward's tokens are written, when the slots already count them.
        return self.where.slots, 0

    def get_seq_length(self) -> int:
        return self.where.first_slot

    def get_max_length(self) -> int:
        return -1


class SlotCache(Cache):
    """The cache of one model for a batch; what moves, and when, is the caller's :class:`Slots`."""

    def __init__(self, layers: int, rows: int) -> None:
        self.where = _Where(rows)
        self.own = [_Layer(self.where) for _ in range(layers)]
        super().__init__(layers=list(self.own))

    def place(self, first_slot: int, slots: int, taking: torch.Tensor | None) -> None:
        """Before a forward: its tokens go to ``first_slot .. slots - 1`` of the rows ``taking``."""
        self.where.first_slot, self.where.slots, self.where.taking = first_slot, slots, taking

    # What a forward wrote belongs to inference mode, and may be written to only there.
    @torch.inference_mode()
    def gather(self, source: torch.Tensor, first: int) -> None:
        """After compaction: slot ``first + j`` of row r comes from ``source[r, j]``, shape (rows, moved)."""

        def packed(held: torch.Tensor) -> torch.Tensor:
            index = source[:, None, :, None].expand(-1, held.shape[1], -1, held.shape[3])
            held[:, :, first : first + source.shape[1]] = held.gather(2, index)
            return held

        self._each(packed)

    @torch.inference_mode()
    def take_rows(self, keep: torch.Tensor) -> None:
        """Keep only these rows, in this order."""
        self.where.rows = len(keep)
        self._each(lambda held: held.index_select(0, keep))

    @torch.inference_mode()
    def add_rows(self, rows: int) -> None:
        """Room for more rows, at the end."""
        self.where.rows += rows
        self._each(lambda held: torch.cat([held, held.new_zeros(rows, *held.shape[1:])]))

    @torch.inference_mode()
    def copy_tensors(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Every layer's keys and values in the slots in use, as copies."""
        found = []
        for layer in self.own:
            assert layer.keys is not None
            assert layer.values is not None
            end = self.where.slots
            found.append((layer.keys[:, :, :end].clone(), layer.values[:, :, :end].clone()))
        return found

    @torch.inference_mode()
    def adopt_tensors(self, tensors: list[tuple[torch.Tensor, torch.Tensor]], rows: int, slots: int) -> None:
        """Begin with copies of these keys and values."""
        self.where.rows, self.where.slots = rows, slots
        for layer, (keys, values) in zip(self.own, tensors, strict=True):
            layer.keys, layer.values = _grown(keys, slots), _grown(values, slots)
            layer.is_initialized = True

    def _each(self, change: Any) -> None:
        for layer in self.own:
            layer.each(change)


def _grown(held: torch.Tensor, slots: int) -> torch.Tensor:
    """Twice the room, or what is needed; a token then pays for a bounded number of copies."""
    rows, heads, capacity, size = held.shape
    larger = held.new_zeros(rows, heads, max(slots, 2 * capacity), size)
    larger[:, :, :capacity] = held
    return larger
