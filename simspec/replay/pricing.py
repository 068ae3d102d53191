"""What one cycle costs when every request of a batch does the same.

The price that rules and oracles weigh; at batch 1 it is exactly what
:mod:`simspec.replay.lockstep` charges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.cost.shape import uniform
from simspec.replay.trajectories import first_width, forwards, later_width
from simspec.speculation.chains import Chain
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]


def forward(cost: CostModel, model: str, rows: int, width: Ints, context: Ints) -> Floats:
    """Seconds of forwards of ``rows`` alike rows; 0 where the width is 0."""
    rows_each = np.full(np.broadcast(width, context).shape, rows, dtype=np.int64)
    width, context = np.broadcast_to(width, rows_each.shape), np.broadcast_to(context, rows_each.shape)
    found = cost.forward_seconds(model, uniform(rows_each, np.maximum(width, 1), context))
    return np.where(width > 0, found, 0.0)


def draft_seconds(
    trace: Trace, cost: CostModel, drafter: str, rows: int, drafted: Ints, lag: Ints, context: Ints
) -> Floats:
    """Seconds of drafting; arrays broadcast together."""
    if trace.is_lookup(drafter):
        return forward(cost, drafter, rows, np.maximum(drafted, 1), context)
    at_once = trace.tokens_a_forward(drafter)
    first = forward(cost, drafter, rows, first_width(lag, at_once), context)
    later = forward(cost, drafter, rows, np.full_like(lag, later_width(at_once)), context)
    more = np.maximum(forwards(drafted, at_once) - 1, 0)
    return np.where(drafted > 0, first + more * later, 0.0)


def two_level_seconds(trace: Trace, chain: Chain, cost: CostModel, rows: int) -> Floats:
    """Seconds of a cycle that drafts and submits n tokens, shape (N, D + 1), n = 0..D.

    The drafter's first forward is taken as having one token of text to read; intermediates are not allowed.
    """
    if chain.drafter is None or chain.intermediates:
        raise ValueError(f"need a pair, not {chain}")
    depth = trace.manifest.block_length
    context = trace.context[:, None]
    drafted = np.arange(depth + 1)[None]
    lag = np.ones_like(context)
    draft = draft_seconds(trace, cost, chain.drafter, rows, drafted, lag, context)
    verify = forward(cost, chain.target, rows, drafted + 1, context)
    return draft + verify + cost.step_overhead_seconds
