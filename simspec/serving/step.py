"""The nouns of a step: what it does, what it costs, what came of it."""

from __future__ import annotations

from typing import NamedTuple


class Chunk(NamedTuple):
    """Tokens of a prompt to read in a step, and how many were read before."""

    slot: int
    tokens: int
    read: int


class Plan(NamedTuple):
    """What a step does.

    Attributes:
        rows: requests that decode.
        length: draft length that the policy asked for; of those of rows, the greatest.
        drafted: tokens that they draft in all; each row's own are in the batch.
        submitted: of these, tokens that the target is given; what intermediates hand up, where there are any.
        chunks: prompts to read.
        preempted: requests that lost their place when this was planned.
        queued: requests that wait.
        context_tokens: tokens of text over the rows that decode.
        blocks: KV blocks in use, of the target and of the drafter.
        moved: KV blocks to move to the host or back.
        drafter: who drafts, of several; the number of the chain, where there are chains.
    """

    rows: int
    length: int
    drafted: int
    submitted: int
    chunks: list[Chunk]
    preempted: int
    queued: int
    context_tokens: int
    blocks: tuple[int, int]
    moved: int
    drafter: int = 0


class Price(NamedTuple):
    """Nanoseconds of a step's parts, as in the table of steps."""

    draft_ns: int
    middle_ns: int
    verify_ns: int
    prefill_ns: int
    swap_ns: int
    wait_ns: int
    overhead_ns: int

    @property
    def total_ns(self) -> int:
        return self[0] + self[1] + self[2] + self[3] + self[4] + self[5] + self[6]


# The same without their unit; a step's parts sum to its duration.
PARTS = tuple(name.removesuffix("_ns") for name in Price._fields)


class Done(NamedTuple):
    """What came of a step: accepted drafts, emitted tokens, prompt tokens read, slots that are finished."""

    accepted: int
    emitted: int
    read: int
    finished: list[int]
