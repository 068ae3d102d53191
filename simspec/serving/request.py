"""A request, and what has become of it so far."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from simspec.serving.clock import Signal

NEVER = -1


class Request(NamedTuple):
    """What is asked for; the simulator knows the length of the answer, the policies do not."""

    request_id: int
    prompt_tokens: int
    output_tokens: int


class Outcome(IntEnum):
    """How a request ended, as the request table's codes."""

    FINISHED = 0
    REJECTED = 1
    TIMED_OUT = 2
    UNFINISHED = 3


class Ticket:
    """A request inside the engine. Outlives its place in a batch: a preempted one comes back.

    Attributes:
        arrived_at, admitted_at, first_token_at: nanoseconds, :data:`NEVER` before; admitted for the
            first time.
        produced: output tokens so far.
        drafted, accepted, passes: drafted tokens, accepted drafts, and decoding passes of the target,
            over all places it has held.
        admission: sequence number of its last admission.
        lags: tokens that each drafter had not read when it lost its place.
        swapped: whether its blocks are on the host.
        done: fired when it has ended, where somebody waits for that.
    """

    __slots__ = (
        "accepted",
        "admission",
        "admitted_at",
        "arrived_at",
        "done",
        "drafted",
        "first_token_at",
        "lags",
        "passes",
        "preemptions",
        "produced",
        "request",
        "swapped",
    )

    def __init__(self, request: Request, arrived_at: int, done: Signal | None = None):
        self.request = request
        self.done = done
        self.arrived_at = arrived_at
        self.admitted_at = self.first_token_at = self.admission = NEVER
        self.swapped = False
        self.lags: tuple[int, ...] = ()
        self.produced = self.drafted = self.accepted = self.passes = self.preemptions = 0
