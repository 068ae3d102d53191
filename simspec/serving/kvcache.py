"""Paged KV memory: blocks that slots hold, counted and not named.

Which block it is makes no difference to time, so a pool keeps one count a slot. The state machine in
the tests sets it beside a twin that hands out blocks by number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simspec.errors import BadInput
from simspec.serving.clock import nanoseconds

Ints = NDArray[np.int64]
UNBOUNDED = 1 << 50


@dataclass(frozen=True)
class Memory:
    """How much a device holds.

    Attributes:
        block_tokens: tokens of one request that a block holds.
        target_blocks: blocks for the target's cache; None for no limit.
        drafter_blocks: blocks for the drafter's own cache, charged apart; None for no limit. Engines that
            give both models one table of blocks have fewer target blocks and no limit here.
        middle_blocks: (name, blocks) for the own cache of an intermediate; those that are not named have no
            limit. A row holds its text in every cache, whichever chain is in use.
        lookahead: ``reserved``: every row holds room for the longest draft and the token after it, and
            keeps it (as vLLM does); ``used``: for the tokens that it drafts in this step, and what was
            rejected is given back.
        preemption: ``recompute``: who loses its place reads its text again; ``swap``: its blocks are moved to
            the host, which is taken to have room, and back. A prompt that was still being read is read again
            in any case.
        block_swap_seconds: how long it takes to move one block one way; nothing else is done meanwhile.
    """

    block_tokens: int = 16
    target_blocks: int | None = None
    drafter_blocks: int | None = None
    lookahead: Literal["reserved", "used"] = "reserved"
    preemption: Literal["recompute", "swap"] = "recompute"
    block_swap_seconds: float = 0.0
    middle_blocks: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        for name in ("block_tokens", "target_blocks", "drafter_blocks"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadInput(f"{name} is {value}", allowed="at least 1")
        for name, value in self.middle_blocks:
            if value < 1:
                raise BadInput(f"middle_blocks of {name!r} is {value}", allowed="at least 1")
        if len(dict(self.middle_blocks)) < len(self.middle_blocks):
            raise BadInput(f"middle_blocks {self.middle_blocks}", allowed="each intermediate once")
        if self.lookahead not in ("reserved", "used"):
            raise BadInput(f"lookahead is {self.lookahead!r}", allowed="reserved, used")
        if self.preemption not in ("recompute", "swap"):
            raise BadInput(f"preemption is {self.preemption!r}", allowed="recompute, swap")
        nanoseconds(self.block_swap_seconds, "block_swap_seconds")


class Pool:
    """The blocks of one model.

    Attributes:
        held: blocks that each slot holds, shape (C,).
        free: blocks that nobody holds.
        short: what the last :meth:`missing` found and nobody has been given yet.
    """

    def __init__(self, slots: int, blocks: int | None, block_tokens: int):
        self.total = UNBOUNDED if blocks is None else blocks
        self.block_tokens = block_tokens
        self.free = self.total
        self.held = np.zeros(slots, np.int64)
        self._extra = np.zeros(slots, np.int64)
        self.short = 0

    def blocks(self, tokens: int) -> int:
        """Blocks that so many tokens of one request need."""
        return -(-tokens // self.block_tokens)

    @property
    def used(self) -> int:
        return self.total - self.free

    def missing(self, tokens: Ints) -> int:
        """Blocks that slots lack to hold ``tokens``, shape (C,), in all; 0 tokens lack nothing."""
        need = tokens + (self.block_tokens - 1)
        need //= self.block_tokens
        need -= self.held
        np.maximum(need, 0, out=self._extra)
        self.short = int(np.add.reduce(self._extra))
        return self.short

    def grow(self) -> None:
        """Hand out what the last :meth:`missing` found; raises ValueError when there is not enough."""
        if self.short > self.free:
            raise ValueError(f"{self.short} blocks asked of {self.free}")
        if self.short:
            self.held += self._extra
            self.free -= self.short
            self.short = 0

    def take(self, slot: int, tokens: int) -> None:
        """Blocks for ``tokens`` to an empty slot; raises ValueError when there are not enough.

        What :meth:`missing` found for the other slots stands.
        """
        need = self.blocks(tokens)
        if need > self.free or self.held[slot]:
            raise ValueError(f"slot {slot} holds {self.held[slot]}, asks {need} of {self.free}")
        self.held[slot] = need
        self.free -= need

    def shrink(self, tokens: Ints) -> None:
        """Take back what slots with tokens do not need to hold them; slots of 0 tokens are left alone."""
        need = -(-tokens // self.block_tokens)
        back = np.where(tokens > 0, np.maximum(self.held - need, 0), 0)
        self.held -= back
        self.free += int(back.sum())

    def release(self, slot: int) -> None:
        """Take back all that a slot holds."""
        self.free += int(self.held[slot])
        self.held[slot] = self.short = 0

    def check_integrity(self) -> None:
        """Raise ValueError unless used + free = total and no count is negative."""
        if self.free < 0 or (self.held < 0).any() or int(self.held.sum()) + self.free != self.total:
            raise ValueError(f"{self.held.sum()} blocks held and {self.free} free of {self.total}")
