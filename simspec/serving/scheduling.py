"""Who gets a place and what a step does: all of its decisions, none of its luck."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from simspec.serving.batch import Batch
from simspec.serving.candidates import Links
from simspec.serving.chain_verdicts import Handed
from simspec.serving.config import Serving
from simspec.serving.drafting import Drafting
from simspec.serving.kvcache import Pool
from simspec.serving.request import NEVER, Ticket
from simspec.serving.step import Chunk, Plan
from simspec.serving.stepcost import StepCost
from simspec.serving.verdicts import Seen

Ints = NDArray[np.int64]


class Scheduler:
    """The state that decisions rest on.

    Attributes:
        queue: who waits, the next to be admitted first.
        batch, pools: rows and blocks; the target's pool first, then the drafters' if they are charged, then
            those of intermediates that are.
        drafting: None for plain decoding.
    """

    def __init__(
        self,
        serving: Serving,
        available: Callable[[], Ints] | None,
        cost: StepCost,
        blocks: Callable[[], Seen] | None = None,
        use: Callable[[int], None] | None = None,
        handed: Callable[[Ints, Ints], Handed] | None = None,
    ):
        """What drafts there could be is asked of the last arguments, see :class:`Drafting`."""
        self.serving, self.cost = serving, cost
        memory, speculation = serving.memory, serving.speculation
        self.batch = Batch(serving.slots, serving.lookahead, serving.chains or (Links(0),))
        self.drafting: Drafting | None = None
        if speculation is not None and available is not None:
            self.drafting = Drafting(speculation, self.batch, cost, available, blocks, use, handed)
        self.pools = [Pool(serving.slots, memory.target_blocks, memory.block_tokens)]
        self.charges_drafter = speculation is not None and memory.drafter_blocks is not None
        if self.charges_drafter:
            self.pools.append(Pool(serving.slots, memory.drafter_blocks, memory.block_tokens))
        if speculation is not None:
            self.pools += [Pool(serving.slots, n, memory.block_tokens) for _, n in memory.middle_blocks]
        self.queue: deque[Ticket] = deque()
        self._counted = False
        self._moved = 0
        self._reserved = memory.lookahead == "reserved"

    @property
    def has_work(self) -> bool:
        return bool(self.queue) or self.batch.occupied > 0

    def fits_alone(self, prompt_tokens: int, output_tokens: int) -> bool:
        """Whether a request could be served to its end with all of the memory to itself."""
        tokens = prompt_tokens + output_tokens + self.serving.lookahead
        return all(pool.blocks(tokens) <= pool.total for pool in self.pools)

    # -- admission ----------------------------------------------------------------------------------------

    def admit(self, now: int) -> list[int]:
        """First come, first served: while there is a slot, and memory beyond what the rows may need now.

        A request gets blocks for all of its text at once. Returns slots of those that go on where they were
        when their blocks were swapped out, or brought by whoever read them; the others read their text first.
        """
        resumed: list[int] = []
        batch, queue = self.batch, self.queue
        if not queue or not batch.vacant:
            return resumed
        wanted = batch.reach if self._reserved else batch.context + self.serving.lookahead * batch.decoding
        needed = [pool.missing(wanted) for pool in self.pools]
        # Whoever is admitted below gets what the coming step may need, so the plan need not count again.
        self._counted = self._reserved
        ahead = self.serving.lookahead + 1 if self._reserved else 0
        while queue and batch.vacant:
            ticket = queue[0]
            tokens = ticket.request.prompt_tokens + ticket.produced + ahead
            for pool, short in zip(self.pools, needed, strict=True):
                if pool.blocks(tokens) > pool.free - short:
                    return resumed
            queue.popleft()
            slot = batch.seat(ticket)
            for pool in self.pools:
                pool.take(slot, tokens)
            if ticket.admitted_at == NEVER:
                ticket.admitted_at = now
            if ticket.swapped or ticket.carried:
                if ticket.swapped:
                    self._move(ticket)
                ticket.carried = False
                batch.begin(slot, ticket.lags)
                resumed.append(slot)
        return resumed

    def in_order(self) -> list[int]:
        """Slots that are held, in order of admission."""
        tickets = self.batch.tickets
        held = [(ticket.admission, slot) for slot, ticket in enumerate(tickets) if ticket is not None]
        return [slot for _, slot in sorted(held)]

    def leave(self, slot: int) -> Ticket:
        """Empty a slot and free its blocks; whoever was in it."""
        for pool in self.pools:
            pool.release(slot)
        if self.drafting is not None:
            self.drafting.leave(slot)
        return self.batch.leave(slot)

    # -- the step -----------------------------------------------------------------------------------------

    def plan(self) -> Plan:
        """What the coming step does; rows that find no block are preempted, the last admitted first."""
        batch, serving, drafting = self.batch, self.serving, self.drafting
        rows = length = drafted = submitted = preempted = 0
        if batch.rows and (serving.mixed or not batch.prefilling):
            if drafting is not None:
                length = drafting.settle(len(self.queue), self.pools[0].free)
            if self._lacks_blocks():
                preempted = self._preempt()
                if drafting is not None:
                    drafting.count()
            if drafting is not None:
                drafted, submitted = drafting.drafted, drafting.submitted
            for pool in self.pools:
                pool.grow()
            rows = batch.rows
        self._counted = False
        chunks = self._chunks(serving.token_budget - rows - submitted) if batch.prefilling else []
        if not rows and not chunks:
            raise ValueError(f"{len(self.queue)} requests wait and there is nothing to do: blocks were lost")
        blocks = (self.pools[0].used, self.pools[1].used if self.charges_drafter else 0)
        moved, self._moved = self._moved, 0
        return Plan(
            rows,
            length,
            drafted,
            submitted,
            chunks,
            preempted,
            len(self.queue),
            batch.context_tokens if rows else 0,
            blocks,
            moved,
            0 if drafting is None else drafting.drafter,
        )

    def _lacks_blocks(self) -> bool:
        if self._counted:
            self._counted = False
            return any(pool.short > pool.free for pool in self.pools)
        batch, tokens = self.batch, self.batch.reach
        if not self._reserved:
            more = batch.drafted_now
            tokens = batch.context + (np.maximum(more, batch.submitted_now) if batch.replaces else more)
        lacks = False
        for pool in self.pools:
            lacks |= pool.missing(tokens) > pool.free
        return lacks

    def _preempt(self) -> int:
        preempted = 0
        while self._lacks_blocks():
            slot = self.batch.youngest()
            decoding = slot not in self.batch.prefilling
            ticket = self.leave(slot)
            ticket.preemptions += 1
            if decoding and self.serving.memory.preemption == "swap":
                self._move(ticket)
            self.queue.appendleft(ticket)
            preempted += 1
        return preempted

    def _move(self, ticket: Ticket) -> None:
        """Move a request's text from the device to the host, or back."""
        ticket.swapped = not ticket.swapped
        tokens = ticket.request.prompt_tokens + ticket.produced
        self._moved += sum(pool.blocks(tokens) for pool in self.pools)

    def _chunks(self, budget: int) -> list[Chunk]:
        whole = self.serving.prefill == "whole"
        chunks: list[Chunk] = []
        for slot, unread in self.batch.prefilling.items():
            tokens = unread if whole else min(unread, budget)
            # A whole prompt beyond the budget would never be read if the first were not let through.
            if (tokens > budget and chunks) or tokens < 1:
                break
            ticket = self.batch.ticket(slot)
            chunks.append(Chunk(slot, tokens, ticket.request.prompt_tokens + ticket.produced - unread))
            budget -= tokens
        return chunks

    # -- after it -----------------------------------------------------------------------------------------

    def can_hold(self, steps: int) -> bool:
        """Whether there are blocks for ``steps`` more steps in which every row emits one token."""
        wanted = self._plain_tokens() + steps * self.batch.decoding
        return all(pool.missing(wanted) <= pool.free for pool in self.pools)

    def hold(self, steps: int) -> None:
        """Take them."""
        if not self.can_hold(steps):
            raise ValueError(f"no blocks for {steps} steps")
        for pool in self.pools:
            pool.grow()

    def blocks_during(self, pool: Pool, past: Ints) -> Ints:
        """Blocks in use when so many such steps, shape (m,), are past; shape (m,)."""
        tokens = self._plain_tokens() + past[:, None] * self.batch.decoding
        need = -(-tokens // pool.block_tokens)
        used: Ints = np.maximum(need, pool.held).sum(axis=1)
        return used

    def _plain_tokens(self) -> Ints:
        return self.batch.reach if self._reserved else self.batch.context

    def give_back(self) -> None:
        """After a step: blocks of rejected drafts, where only what is used is held."""
        if not self._reserved:
            for pool in self.pools:
                pool.shrink(self.batch.context)
