"""A request, and what has become of it so far."""

from __future__ import annotations

from collections import deque
from enum import IntEnum
from typing import NamedTuple

from simspec.serving.clock import Signal

NEVER = -1


class Request(NamedTuple):
    """What is asked for; the simulator knows the length of the answer, the policies do not.

    ``session``: whose conversation it belongs to, for routing; :data:`NEVER` for none.
    """

    request_id: int
    prompt_tokens: int
    output_tokens: int
    session: int = NEVER


class Outcome(IntEnum):
    """How a request ended, as the request table's codes."""

    FINISHED = 0
    REJECTED = 1
    TIMED_OUT = 2
    UNFINISHED = 3
    LOST = 4


class Ticket:
    """A request inside. Outlives its place in a batch, and in a replica: who lost it comes back.

    Attributes:
        arrived_at, admitted_at, first_token_at: nanoseconds, :data:`NEVER` before; admitted for the
            first time.
        queued_at: when it came to where it is now.
        waits_in: the queue that it joined last.
        replica: the number of the replica that has it, or had it last.
        produced: output tokens so far.
        drafted, accepted, passes: drafted tokens, accepted drafts, and decoding passes of the target,
            over all places it has held.
        admission: sequence number of its last admission.
        lags: tokens that each drafter had not read when it lost its place.
        swapped: whether its blocks are on the host.
        carried: whether its blocks come with it, from the replica that has read its prompt.
        ended: whether it is over.
        restarts: how often its replica failed under it; ``discarded``: tokens that were thrown away then.
        done: fired when it has ended, where somebody waits for that.
    """

    __slots__ = (
        "accepted",
        "admission",
        "admitted_at",
        "arrived_at",
        "carried",
        "discarded",
        "done",
        "drafted",
        "ended",
        "first_token_at",
        "lags",
        "passes",
        "preemptions",
        "produced",
        "queued_at",
        "replica",
        "request",
        "restarts",
        "swapped",
        "waits_in",
    )

    def __init__(self, request: Request, arrived_at: int, done: Signal | None = None):
        self.request = request
        self.done = done
        self.arrived_at = self.queued_at = arrived_at
        self.admitted_at = self.first_token_at = self.admission = self.replica = NEVER
        self.swapped = self.carried = self.ended = False
        self.waits_in: deque[Ticket] | None = None
        self.lags: tuple[int, ...] = ()
        self.produced = self.drafted = self.accepted = self.passes = self.preemptions = 0
        self.restarts = self.discarded = 0

    def start_over(self, *, keep: bool) -> None:
        """Its replica is gone, and all caches with it; ``keep``: what it has produced stays."""
        self.restarts += 1
        self.swapped = self.carried = False
        self.lags = ()
        if not keep:
            self.discarded += self.produced
            self.produced = 0
            self.first_token_at = NEVER
