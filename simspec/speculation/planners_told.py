"""Planners that are told something else of costs than is so, or draft what they need not: for comparison."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from simspec.speculation.lengths import Count, Decision, Floats, Ints, LengthRule, View
from simspec.speculation.planners_longrun import LongRun
from simspec.speculation.planning import Happened, Planner, State, Waiting


@dataclass(frozen=True)
class _Around:
    """A planner around another, which remembers and learns as it does."""

    inner: Planner

    @property
    def sampling_safe(self) -> bool:
        return self.inner.sampling_safe

    def begin(self, streams: int, batch: int, depth: int) -> State:
        return self.inner.begin(streams, batch, depth)

    def observe(self, state: State, happened: Happened) -> State:
        return self.inner.observe(state, happened)


@dataclass(frozen=True)
class Believes(_Around):
    """Takes the target's forwards as padded, or as packed, whatever they are.

    Who believes in padding gives all rows one length; who believes that rows are packed cuts each by what
    its own tokens are worth. Packed forwards are taken as :class:`simspec.cost.ragged.MeanWidth` does.
    """

    layout: Literal["padded", "packed"]

    def decide(self, waiting: Waiting, state: State) -> Decision:
        rows = np.maximum(waiting.running.sum(axis=1), 1)[:, None]

        def padded(widest: Ints, submitted: Ints) -> Floats:
            return waiting.verify(widest, widest * rows)

        def packed(widest: Ints, submitted: Ints) -> Floats:
            low = submitted // rows
            below = waiting.verify(low, low * rows)
            above = waiting.verify(low + 1, (low + 1) * rows)
            return np.asarray(below + (submitted / rows - low) * (above - below))

        believed = padded if self.layout == "padded" else packed
        return self.inner.decide(replace(waiting, verify=believed), state)


@dataclass(frozen=True)
class DraftsBlocks(_Around):
    """Drafts ``longest`` tokens in every row that can; the planner inside only cuts what is submitted.

    It is told that drafting costs the same whatever it decides.
    """

    longest: Count

    def decide(self, waiting: Waiting, state: State) -> Decision:
        drafted = np.minimum(waiting.limit, self.longest)
        inside = np.arange(waiting.confidence.shape[2]) < drafted[..., None]
        spent = waiting.draft(drafted.max(axis=1)[:, None])

        def draft(n: Ints) -> Floats:
            return np.broadcast_to(spent, np.broadcast_shapes(spent.shape, n.shape))

        told = replace(
            waiting, confidence=np.where(inside, waiting.confidence, 0.0), limit=drafted, draft=draft
        )
        return Decision(drafted, self.inner.decide(told, state).submitted)


@dataclass(frozen=True)
class WholeBlocks(LongRun):
    """Ours inside :class:`DraftsBlocks`: all of a block is there to be submitted."""

    def _drafted(self, confidence: Floats, *rest: Any, **more: Any) -> Ints:
        return np.full(len(confidence), confidence.shape[2], dtype=np.int64)


@dataclass(frozen=True)
class BlocksAlone:
    """:class:`DraftsBlocks` for a rule of a single request, whose seconds have the whole block's drafting."""

    rule: LengthRule
    longest: Count

    @property
    def sampling_safe(self) -> bool:
        return self.rule.sampling_safe

    def begin(self, requests: int) -> Floats:
        return self.rule.begin(requests)

    def decide(self, view: View, state: Floats) -> Decision:
        found = self.rule.decide(view, state)
        return Decision(np.full(len(view.limit), self.longest, dtype=np.int64), found.submitted)

    def observe(self, state: Floats, decision: Decision, accepted: Ints) -> Floats:
        return self.rule.observe(state, decision, accepted)
