"""Draft lengths for whole batches, by rules whose memory lasts from request to request.

The bulk form of :mod:`simspec.speculation.lengths`: G streams, each a server that decodes one batch of B
requests after another in lock-step. A planner is its frozen parameters; what it remembers is a dictionary of
arrays whose first axis is the stream. It is shown a :class:`Waiting` before a cycle and what came of it
(:class:`Happened`) afterwards, never a verdict that is still to come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from simspec.speculation.lengths import Decision, LengthRule, View

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
State = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Waiting:
    """What a planner may know before a cycle, for G streams, B requests each, blocks of at most D tokens.

    Attributes:
        running: whether the request has text left to emit, (G, B).
        fresh: whether this is its first cycle, (G, B).
        confidence: the drafter's probability of each token it would draft, (G, B, D); 0 from ``limit`` on.
        limit: tokens that can be drafted at most, 0 where nothing runs, (G, B).
        draft: seconds of drafting in which the running rows draft n tokens each; n of shape (W,) or (G, W),
            to (G, W). The drafter has read all of the text but one token.
        verify: seconds of the target's forward that submits so many drafts in the widest row and so many in
            all rows, two arrays of shape (W,) or (G, W), to (G, W).
        overhead: fixed seconds of a cycle.
        behind: seconds more of drafting, whatever its length, since the drafter has read less, (G,).
        entropy: as in :class:`~simspec.speculation.lengths.View`, (G, B, D), or None.
    """

    running: Bools
    fresh: Bools
    confidence: Floats
    limit: Ints
    draft: Callable[[Ints], Floats]
    verify: Callable[[Ints, Ints], Floats]
    overhead: float
    entropy: Floats | None = None
    behind: Floats | float = 0.0

    def alike(self) -> Floats:
        """Seconds of a cycle in which every running row drafts and submits n = 0..D tokens, (G, D + 1)."""
        n = np.arange(self.confidence.shape[2] + 1)
        rows = self.running.sum(axis=1)[:, None]
        return self.draft(n) + self.verify(np.broadcast_to(n, (len(rows), len(n))), n * rows) + self.overhead


@dataclass(frozen=True)
class Happened:
    """What a cycle did.

    Attributes:
        waiting: what was known before it.
        decision: tokens drafted and submitted as carried out, (G, B) each.
        accepted, emitted: tokens of each request, (G, B); 0 where it did not run.
        drafting, verifying: seconds of either part, (G,).
    """

    waiting: Waiting
    decision: Decision
    accepted: Ints
    emitted: Ints
    drafting: Floats
    verifying: Floats

    @property
    def seconds(self) -> Floats:
        """Of the whole cycle, (G,)."""
        return self.drafting + self.verifying + self.waiting.overhead


class Planner(Protocol):
    """Frozen parameters.

    Attributes:
        sampling_safe: as in :class:`~simspec.speculation.lengths.LengthRule`.
    """

    @property
    def sampling_safe(self) -> bool: ...

    def begin(self, streams: int, batch: int, depth: int) -> State:
        """State before the first cycle: arrays whose first axis is the stream."""

    def decide(self, waiting: Waiting, state: State) -> Decision:
        """Lengths for this cycle, (G, B) each. May exceed ``waiting.limit``: the caller cuts."""

    def observe(self, state: State, happened: Happened) -> State:
        """State after a cycle."""


@dataclass(frozen=True)
class EachAlone:
    """A :class:`~simspec.speculation.lengths.LengthRule` for every request, which begins anew with each.

    What it is told a cycle costs is that of the running rows when all do alike.
    """

    rule: LengthRule

    @property
    def sampling_safe(self) -> bool:
        return self.rule.sampling_safe

    def begin(self, streams: int, batch: int, depth: int) -> State:
        return {"rule": self.rule.begin(streams * batch).reshape(streams, batch)}

    def decide(self, waiting: Waiting, state: State) -> Decision:
        streams, batch, depth = waiting.confidence.shape
        moved = np.where(
            waiting.fresh, self.rule.begin(waiting.fresh.size).reshape(streams, batch), state["rule"]
        )
        state["rule"] = moved
        seconds = np.broadcast_to(waiting.alike()[:, None], (streams, batch, depth + 1))
        view = View(
            waiting.confidence.reshape(-1, depth),
            waiting.limit.ravel(),
            seconds.reshape(-1, depth + 1),
            None if waiting.entropy is None else waiting.entropy.reshape(-1, depth),
        )
        found = self.rule.decide(view, moved.ravel())
        return Decision(found.drafted.reshape(streams, batch), found.submitted.reshape(streams, batch))

    def observe(self, state: State, happened: Happened) -> State:
        flat = Decision(happened.decision.drafted.ravel(), happened.decision.submitted.ravel())
        moved = self.rule.observe(state["rule"].ravel(), flat, happened.accepted.ravel())
        kept = np.where(happened.waiting.running, moved.reshape(state["rule"].shape), state["rule"])
        return {"rule": kept}


class Together:
    """One length for all rows of a batch, whatever their confidences: what engines with CUDA graphs do."""

    sampling_safe: ClassVar[bool] = True

    @staticmethod
    def all_rows(waiting: Waiting, length: Ints) -> Decision:
        same = np.broadcast_to(length[:, None], waiting.limit.shape)
        return Decision(same, same)
