"""What cycles cost, learned from their own times instead of a profile."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from simspec.speculation.planning import Happened, State, Waiting

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Lengths of a stream's first cycles: without them there is nothing to learn from.
_FIRST = (0, 1, 2, 4, 8)


@dataclass(frozen=True)
class LearnedTimes:
    """Least squares along the stream, all observations alike.

    A verifying forward takes a + b (rows x widest row) + c (tokens); drafting n tokens takes, where n is
    above 0, a + b n. ``ridge`` keeps the first solutions finite: it is that share of one observation.
    """

    ridge: Annotated[float, Meta(gt=0)] = 1e-6

    def begin(self, streams: int) -> State:
        return {
            "cycles": np.zeros(streams, dtype=np.int64),
            "verify_a": np.tile(self.ridge * np.eye(3), (streams, 1, 1)),
            "verify_b": np.zeros((streams, 3)),
            "draft_a": np.tile(self.ridge * np.eye(2), (streams, 1, 1)),
            "draft_b": np.zeros((streams, 2)),
        }

    def priced(self, state: State, waiting: Waiting) -> Waiting:
        """The same view with learned prices."""
        rows = waiting.running.sum(axis=1)[:, None]
        v = np.linalg.solve(state["verify_a"], state["verify_b"][..., None])[..., 0]
        d = np.linalg.solve(state["draft_a"], state["draft_b"][..., None])[..., 0]

        def draft(n: Ints) -> Floats:
            return np.asarray(np.where(n > 0, np.maximum(d[:, :1] + d[:, 1:] * n, 0.0), 0.0))

        def verify(widest: Ints, submitted: Ints) -> Floats:
            padded, packed = rows * (widest + 1), submitted + rows
            return np.asarray(np.maximum(v[:, :1] + v[:, 1:2] * padded + v[:, 2:] * packed, 1e-9))

        return replace(waiting, draft=draft, verify=verify, behind=0.0)

    def explored(self, state: State, drafted: Ints) -> Ints:
        """What is drafted: fixed lengths in the first cycles."""
        cycle = state["cycles"]
        first = np.array(_FIRST)[np.minimum(cycle, len(_FIRST) - 1)]
        return np.asarray(np.where(cycle < len(_FIRST), first, drafted))

    def handed(self, state: State, submitted: Ints, drafted: Ints, limit: Ints) -> Ints:
        """What is submitted: in the first cycles all that was drafted."""
        early = (state["cycles"] < len(_FIRST))[:, None]
        return np.asarray(np.where(early, np.minimum(drafted[:, None], limit), submitted))

    def observe(self, state: State, happened: Happened) -> State:
        rows = happened.waiting.running.sum(axis=1)
        submitted, drafted = happened.decision.submitted, happened.decision.drafted.max(axis=1)
        ones = np.ones(len(rows))
        x = np.stack([ones, rows * (submitted.max(axis=1) + 1), submitted.sum(axis=1) + rows], axis=1)
        # A look-up that is asked for nothing takes its time all the same, which no choice changes.
        y = np.stack([ones, drafted], axis=1) * (drafted > 0)[:, None]
        return {
            "cycles": state["cycles"] + 1,
            "verify_a": state["verify_a"] + x[:, :, None] * x[:, None, :],
            "verify_b": state["verify_b"] + x * happened.verifying[:, None],
            "draft_a": state["draft_a"] + y[:, :, None] * y[:, None, :],
            "draft_b": state["draft_b"] + y * happened.drafting[:, None],
        }
