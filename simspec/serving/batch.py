"""The rows of a batch as arrays: a step works on all of them at once.

A request keeps its slot until it leaves. A slot that is empty, or whose prompt is still being read, holds
zeros, so that a sum over slots is a sum over the rows that decode, without a mask.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simspec.serving.candidates import Links
from simspec.serving.chain_verdicts import Handed
from simspec.serving.request import Ticket

Ints = NDArray[np.int64]

_FAR = 1 << 40


class Batch:
    """C slots and who is in them. Arrays have shape (C,) and are views of one table.

    With several chains no model reads a prompt beside the target: each reads what it has missed, the prompt
    too, when it is used.

    Attributes:
        tickets: who holds each slot.
        prefilling: slots whose prompt is being read, with the tokens still to read; in order of admission.
        reach: context plus the lookahead that is reserved.
        context: tokens of text, the prompt included.
        lag: of these, tokens that the drafter in use has not read; ``lags``: of each model below the target,
            (M, C).
        passes, drafted, accepted: sums over a request's steps in this slot and before it.
        room: tokens still to come, less one: what may be drafted at most. Below 0, it is finished; where
            nobody decodes it is out of reach.
        step: this step's (1 for a row that decodes, its drafted tokens, its accepted drafts), (3, C).
        submitted_now: of the drafted tokens, those that the target is given; with intermediates, what they
            hand up to it.
        middles: rows of ``lags`` of the intermediates in use, the drafter's neighbour first.
        given: tokens that each verifier of such a chain is given, the target last, (K, C); ``passed``: of
            these, the leading ones that each intermediate agrees with, (K - 1, C).
        rows, context_tokens: rows that decode, and the sum of their context.
        accepted_sum: accepted drafts over all rows in the last step that drafted.
        shortest: no row has less room than this.
    """

    def __init__(self, slots: int, lookahead: int, chains: Sequence[Links] = (Links(0),)):
        self.slots, self.lookahead, self.several = slots, lookahead, len(chains) > 1
        models = 1 + max(max(links.drafter, *links.middles, 0) for links in chains)
        self.tickets: list[Ticket | None] = [None] * slots
        self.vacant = list(range(slots))[::-1]
        self.prefilling: dict[int, int] = {}
        self.table = np.zeros((6 + models, slots), np.int64)
        self.reach: Ints = self.table[0]
        self.context: Ints = self.table[1]
        self.lags: Ints = self.table[2:-4]
        self.passes, self.drafted, self.accepted, self.room = self.table[-4:]
        self.step = np.zeros((3, slots), np.int64)
        self.decoding, self.drafted_now, self.accepted_now = self.step
        # The same array, unless rows choose for themselves.
        self.submitted_now, self._submitted = self.drafted_now, np.zeros(slots, np.int64)
        self.room[:] = _FAR
        self.rows = self.context_tokens = self.accepted_sum = 0
        self.shortest = _FAR
        self._seen = self._drafts = 0
        self._emitted, self._ones = np.zeros(slots, np.int64), np.ones(slots, np.int64)
        self._some = np.zeros(slots, np.int64)
        self._empty = np.zeros(6 + models, np.int64)
        self._empty[-1] = _FAR
        self._places, self._all, self._sums = self.table[:2], self.table[:-3], self.table[-4:-1]
        self._chains = chains
        deepest = max(len(links.middles) for links in chains)
        self._funnel = np.zeros((2 * deepest + (deepest > 0), slots), np.int64)
        self.use(0)

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

    def begin(self, slot: int, lags: tuple[int, ...] = ()) -> None:
        """All of its text but for the last token is read: from now on it decodes.

        Of that text, each drafter has not read the last ``lags`` tokens. Left out: it has just been read.
        """
        ticket = self.ticket(slot)
        del self.prefilling[slot]
        context = ticket.request.prompt_tokens + ticket.produced
        room = ticket.request.output_tokens - ticket.produced - 1
        if not lags:
            lags = (context if self.several else 1,) * len(self.lags)
        self.table[:, slot] = (
            context + self.lookahead,
            context,
            *lags,
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
            _, context, *lags, ticket.passes, ticket.drafted, ticket.accepted, room = self.table[
                :, slot
            ].tolist()
            ticket.lags = tuple(lags)
            ticket.produced = ticket.request.output_tokens - 1 - room
            self.table[:, slot] = self._empty
            self.step[:, slot] = self._funnel[:, slot] = self._submitted[slot] = 0
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
        self.submitted_now = self.drafted_now
        self._drafts = int(np.add.reduce(self.drafted_now))
        return self._drafts

    def draft_each(self, drafted: Ints, submitted: Ints, available: Ints) -> tuple[int, int]:
        """The same with a length for each row, of which it submits a part; returns both sums.

        Raises:
            ValueError: for a length below 0.
        """
        now, given = self.drafted_now, self._submitted
        np.minimum(available, self.room, out=now)
        np.minimum(now, drafted, out=now)
        now *= self.decoding
        np.minimum(now, submitted, out=given)
        if _least(given) < 0:
            raise ValueError(f"lengths below 0: {drafted.tolist()}, {submitted.tolist()} submitted")
        self.submitted_now = given
        self._drafts = int(np.add.reduce(now))
        return self._drafts, int(np.add.reduce(given))

    def use(self, chain: int) -> None:
        """From now on this chain drafts."""
        links = self._chains[chain]
        self.lag, self.middles, self.replaces = self.lags[links.drafter], links.middles, links.replace
        depth = len(links.middles)
        self.given, self.passed = self._funnel[: depth + 1], self._funnel[depth + 1 : 2 * depth + 1]

    def hand_up(self, handed: Handed) -> int:
        """What is submitted goes up the chain in use; returns what the target is given in all."""
        np.multiply(handed.given, self.decoding, out=self.given)
        np.multiply(handed.passed, self.decoding, out=self.passed)
        self.submitted_now = self.given[-1]
        submitted = int(np.add.reduce(self.submitted_now))
        self._drafts = max(self._drafts, submitted)
        return submitted

    def draft_nothing(self) -> None:
        """No row drafts."""
        if self._drafts:
            self.step[1:] = 0
            self._drafts = 0
            self.submitted_now = self.drafted_now

    def advance(self, accepted: Ints) -> Ints:
        """Every row emits its accepted drafts and one token; returns emitted tokens, (C,), until the next."""
        emitted, drafted = self._emitted, self.drafted_now
        self.accepted_now[:] = accepted
        np.add(accepted, self.decoding, out=emitted)
        lag, ones, some = self.lag, self._ones, self._some
        if self.middles:
            self._read_up(emitted, accepted)
        else:
            if self.several:  # the other models fall behind by all of it
                self.lags += emitted
                lag -= emitted
            # The drafter has not read its last draft, unless that was refused, nor the token after the
            # accepted drafts. A row that drafted nothing falls one further behind.
            np.copyto(lag, ones, where=drafted > 0)
            lag += self.decoding
            lag -= np.minimum(np.subtract(drafted, accepted, out=some), ones, out=some)
        self._places += emitted
        self._sums += self.step
        self.room -= emitted
        self.shortest = _least(self.room)
        self.accepted_sum = int(np.add.reduce(accepted))
        self.context_tokens += self.rows + self.accepted_sum
        return emitted

    def _read_up(self, emitted: Ints, accepted: Ints) -> None:
        """How far every model is behind after a step with intermediates.

        Of the emitted tokens a model has read those that it was given and that stand; a drafter all of its
        drafts that stand but its very last. Who was idle has read none.
        """
        kept, drafted = np.minimum(accepted, self.passed[-1]), self.drafted_now
        self.lags += emitted
        read = np.minimum(kept, np.maximum(drafted - 1, 0))
        np.copyto(self.lag, emitted - read, where=drafted > 0)
        for row, given in zip(self.middles, self.given, strict=False):
            ran = self.decoding > 0 if self.replaces else given > 0
            np.copyto(self.lags[row], emitted - kept, where=ran)

    def advance_plainly(self, steps: int = 1) -> None:
        """``steps`` steps in which no row drafts: a token each."""
        emitted = self.decoding if steps == 1 else self.decoding * steps
        self._all += emitted
        self.room -= emitted
        self.shortest = _least(self.room)
        self.context_tokens += self.rows * steps

    def finished(self) -> list[int]:
        """Slots whose request has all its tokens, ascending."""
        if self.shortest >= 0:
            return []
        found: list[int] = np.flatnonzero(self.room < 0).tolist()
        return found


def _least(values: Ints) -> int:
    """The least of a few dozen numbers; numpy takes several times as long for a minimum."""
    return int(values[values.argmin()])
