"""How many tokens to draft in a step, one length for all rows: asked before every step that decodes.

A policy is its frozen parameters; its state is one number, passed in and out. It sees a :class:`View`,
which holds nothing of what the verdict of the coming step will be. Lengths that differ between rows are in
:mod:`simspec.serving.row_policies`, choices among drafters in :mod:`simspec.serving.switching`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from simspec.errors import BadInput


class View(NamedTuple):
    """What a policy may see before a step.

    Attributes:
        rows: requests that will decode in this step.
        queued: requests that wait, after admission.
        context_tokens: tokens of text over the rows that will decode.
        free_blocks: free KV blocks of the target.
        accepted, tried: drafts accepted, and drafts accepted or the first of their block to be refused, in
            the steps so far, older steps counting less. Their ratio is the recent acceptance of a draft,
            given that all before it were accepted.
        seconds: what a step of these rows costs at draft lengths 0..n, n + 1 numbers, when asked with n.
    """

    rows: int
    queued: int
    context_tokens: int
    free_blocks: int
    accepted: float
    tried: float
    seconds: Callable[[int], Sequence[float]]


class Policy(Protocol):
    """Chooses the draft length of a step, the same for all rows.

    Attributes:
        rows_only: whether the answer depends on ``rows`` and the state alone, and asking again with the
            same rows gives the same again: several steps may then be computed at once.
    """

    rows_only: ClassVar[bool]

    @property
    def longest(self) -> int:
        """The greatest length that it can answer: what lookahead slots are reserved for."""

    def begin(self) -> int:
        """State before the first step."""

    def length(self, view: View, state: int) -> tuple[int, int]:
        """Draft length for this step, and the state after it."""


@dataclass(frozen=True)
class Fixed:
    """Always ``draft_tokens``; 0 is plain decoding with speculation on."""

    draft_tokens: int
    rows_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _length(self.draft_tokens)

    @property
    def longest(self) -> int:
        return self.draft_tokens

    def begin(self) -> int:
        return 0

    def length(self, view: View, state: int) -> tuple[int, int]:
        return self.draft_tokens, state


@dataclass(frozen=True)
class OffAbove:
    """``draft_tokens`` until more than ``off_above`` rows decode, then 0 until at most ``on_at`` do."""

    draft_tokens: int
    off_above: int
    on_at: int
    rows_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _length(self.draft_tokens)
        if not 0 <= self.on_at <= self.off_above:
            raise BadInput(f"on_at is {self.on_at}", allowed=f"0 to off_above, which is {self.off_above}")

    @property
    def longest(self) -> int:
        return self.draft_tokens

    def begin(self) -> int:
        return 1

    def length(self, view: View, state: int) -> tuple[int, int]:
        on = view.rows <= (self.off_above if state else self.on_at)
        return (self.draft_tokens if on else 0), int(on)


@dataclass(frozen=True)
class ByRows:
    """A table of (fewest rows, most rows, draft tokens), as vLLM's num_speculative_tokens_per_batch_size.

    Rows that no entry covers draft nothing.
    """

    table: tuple[tuple[int, int, int], ...]
    rows_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        last = 0
        for low, high, length in self.table:
            _length(length)
            if not last < low <= high:
                raise BadInput(f"entry {[low, high, length]}", allowed="ascending ranges that do not overlap")
            last = high

    @property
    def longest(self) -> int:
        return max((length for _, _, length in self.table), default=0)

    def begin(self) -> int:
        return 0

    def length(self, view: View, state: int) -> tuple[int, int]:
        for low, high, length in self.table:
            if low <= view.rows <= high:
                return length, state
        return 0, state


@dataclass(frozen=True)
class ByRowsAndContext:
    """A table of (fewest rows, most rows, fewest context, most context, draft tokens).

    Context is the mean over the rows that decode of their tokens of text, rounded down. What no entry
    covers drafts nothing.
    """

    table: tuple[tuple[int, int, int, int, int], ...]
    rows_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for i, entry in enumerate(self.table):
            least, most, low, high, length = entry
            _length(length)
            if not (1 <= least <= most and 0 <= low <= high):
                raise BadInput(f"entry {list(entry)}", allowed="fewest to most, rows from 1")
            for other in self.table[:i]:
                if least <= other[1] and other[0] <= most and low <= other[3] and other[2] <= high:
                    raise BadInput(f"entries {list(other)} and {list(entry)} overlap")

    @property
    def longest(self) -> int:
        return max((entry[-1] for entry in self.table), default=0)

    def begin(self) -> int:
        return 0

    def length(self, view: View, state: int) -> tuple[int, int]:
        context = view.context_tokens // view.rows
        for least, most, low, high, length in self.table:
            if least <= view.rows <= most and low <= context <= high:
                return length, state
        return 0, state


@dataclass(frozen=True)
class Goodput:
    """The length with the most expected tokens a second (TurboSpec, arXiv 2406.14066).

    Expected tokens are 1 + a + .. + a^n with the recent acceptance a, to which ``prior_drafts`` drafts of
    acceptance ``prior`` are added: one unlucky row must not end speculation. Steps that draft nothing
    teach nothing, so after ``probe_every`` of them in a row one token is drafted; 0 never does.
    """

    longest: int
    prior: float = 0.7
    prior_drafts: float = 50.0
    probe_every: int = 64
    rows_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _length(self.longest)
        if not 0 <= self.prior <= 1:
            raise BadInput(f"prior is {self.prior}", allowed="a probability")
        if not 0 < self.prior_drafts < math.inf:
            raise BadInput(f"prior_drafts is {self.prior_drafts}", allowed="a finite number above 0")
        if self.probe_every < 0:
            raise BadInput(f"probe_every is {self.probe_every}", allowed="at least 0")

    def begin(self) -> int:
        return 0

    def length(self, view: View, state: int) -> tuple[int, int]:
        alpha = (view.accepted + self.prior * self.prior_drafts) / (view.tried + self.prior_drafts)
        tokens, reached = 0.0, 1.0
        best, most = 0, -1.0
        # Half a dozen numbers: a loop is faster than arrays.
        for n, seconds in enumerate(view.seconds(self.longest)):
            tokens += reached
            reached *= alpha
            if tokens > most * seconds:
                best, most = n, tokens / seconds if seconds else math.inf
        if best:
            return best, 0
        if self.probe_every and self.longest and state >= self.probe_every:
            return 1, 0
        return 0, state + 1


def _length(value: int) -> None:
    if value < 0:
        raise BadInput(f"draft length {value}", allowed="at least 0")
