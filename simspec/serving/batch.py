"""The rows of a batch as arrays: a step works on all of them at once.

A request keeps its slot until it leaves. A slot that is empty, or whose prompt is still being read, holds
zeros, so that a sum over slots is a sum over the rows that decode, without a mask.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simspec.serving.request import Ticket

Ints = NDArray[np.int64]

_FAR = 1 << 40
_EMPTY = np.array([0, 0, 0, 0, 0, 0, _FAR])


class Batch:
    """C slots and who is in them. Arrays have shape (C,) and are views of one table.

    Attributes:
        tickets: who holds each slot.
        prefilling: slots whose prompt is being read, with the tokens still to read; in order of admission.
        reach: context plus the lookahead that is reserved.
        context: tokens of text, the prompt included.
        lag: of these, tokens that the drafter has not read.
        passes, drafted, accepted: sums over a request's steps in this slot and before it.
        room: tokens still to come, less one: what may be drafted at most. Below 0, it is finished; where
            nobody decodes it is out of reach.
        step: this step's (1 for a row that decodes, its drafted tokens, its accepted drafts), (3, C).
        rows, context_tokens: rows that decode, and the sum of their context.
        accepted_sum: accepted drafts over all rows in the last step that drafted.
        shortest: no row has less room than this.
    """

    def __init__(self, slots: int, lookahead: int):
        self.slots, self.lookahead = slots, lookahead
        self.tickets: list[Ticket | None] = [None] * slots
        self.vacant = list(range(slots))[::-1]
        self.prefilling: dict[int, int] = {}
        self.table = np.zeros((7, slots), np.int64)
        self.reach, self.context, self.lag, self.passes, self.drafted, self.accepted, self.room = self.table
        self.step = np.zeros((3, slots), np.int64)
        self.decoding, self.drafted_now, self.accepted_now = self.step
        self.room[:] = _FAR
        self.rows = self.context_tokens = self.accepted_sum = 0
        self.shortest = _FAR
        self._seen = self._drafts = 0
        self._emitted = np.zeros(slots, np.int64)
        self._places, self._all, self._sums = self.table[:2], self.table[:4], self.table[3:6]

    @property
    def occupied(self) -> int:
        return self.slots - len(self.vacant)

    def seat(self, ticket: Ticket) -> int:
        """Give a ticket a slot, all that it has so far to be read."""
        slot = self.vacant.pop()
        self.tickets[slot] = ticket
        self.prefilling[slot] = ticket.request.prompt_tokens + ticket.produced
        ticket.admission = self._seen
        self._seen += 1
        return slot

    def ticket(self, slot: int) -> Ticket:
        """Who holds a slot that is held."""
        ticket = self.tickets[slot]
        assert ticket is not None
        return ticket

    def read(self, slot: int, tokens: int) -> bool:
        """So many more tokens of its prompt are read; whether that was the last of it."""
        self.prefilling[slot] -= tokens
        return not self.prefilling[slot]

    def begin(self, slot: int, lag: int = 1) -> None:
        """All of its text but for the last token is read: from now on it decodes.

        Of that text, the drafter has not read the last ``lag`` tokens.
        """
        ticket = self.ticket(slot)
        del self.prefilling[slot]
        context = ticket.request.prompt_tokens + ticket.produced
        room = ticket.request.output_tokens - ticket.produced - 1
        self.table[:, slot] = (
            context + self.lookahead,
            context,
            lag,
            ticket.passes,
            ticket.drafted,
            ticket.accepted,
            room,
        )
        self.shortest = min(self.shortest, room)
        self.decoding[slot] = 1
        self.rows += 1
        self.context_tokens += context

    def leave(self, slot: int) -> Ticket:
        """Empty a slot; what its request has done so far goes into the ticket."""
        ticket = self.ticket(slot)
        self.tickets[slot] = None
        self.vacant.append(slot)
        if self.prefilling.pop(slot, None) is None:
            _, context, ticket.lag, *sums, room = self.table[:, slot].tolist()
            ticket.passes, ticket.drafted, ticket.accepted = sums
            ticket.produced = ticket.request.output_tokens - 1 - room
            self.table[:, slot] = _EMPTY
            self.step[:, slot] = 0
            self.rows -= 1
            self.context_tokens -= context
        return ticket

    def youngest(self) -> int:
        """The slot that was admitted last."""
        held = [(t.admission, slot) for slot, t in enumerate(self.tickets) if t is not None]
        return max(held)[1]

    def draft(self, length: int, available: Ints) -> int:
        """Settle how many tokens each row drafts; returns their sum."""
        np.minimum(available, self.room, out=self.drafted_now)
        np.minimum(self.drafted_now, length, out=self.drafted_now)
        self.drafted_now *= self.decoding
        self._drafts = int(np.add.reduce(self.drafted_now))
        return self._drafts

    def draft_nothing(self) -> None:
        """No row drafts."""
        if self._drafts:
            self.step[1:] = 0
            self._drafts = 0

    def advance(self, accepted: Ints) -> Ints:
        """Every row emits its accepted drafts and one token; returns emitted tokens, (C,), until the next."""
        emitted, drafted = self._emitted, self.drafted_now
        self.accepted_now[:] = accepted
        np.add(accepted, self.decoding, out=emitted)
        # The drafter has not read the token after the accepted drafts, nor the last draft if that was among
        # them. A row that drafted nothing falls one further behind.
        idle = drafted == 0
        self.lag *= idle
        self.lag += self.decoding
        self.lag += (accepted == drafted) > idle
        self._places += emitted
        self._sums += self.step
        self.room -= emitted
        self.shortest = int(np.minimum.reduce(self.room))
        self.accepted_sum = int(np.add.reduce(accepted))
        self.context_tokens += self.rows + self.accepted_sum
        return emitted

    def advance_plainly(self, steps: int = 1) -> None:
        """``steps`` steps in which no row drafts: a token each."""
        emitted = self.decoding if steps == 1 else self.decoding * steps
        self._all += emitted
        self.room -= emitted
        self.shortest = int(np.minimum.reduce(self.room))
        self.context_tokens += self.rows * steps

    def finished(self) -> list[int]:
        """Slots whose request has all its tokens, ascending."""
        if self.shortest >= 0:
            return []
        found: list[int] = np.flatnonzero(self.room < 0).tolist()
        return found
