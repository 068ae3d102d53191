"""What one cycle of every candidate would cost now, for batches whose requests all take the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.cost.shape import StepShape
from simspec.replay.candidates import CandidateTable
from simspec.replay.trajectories import first_width, later_width
from simspec.traces.index import Ints

Floats = NDArray[np.float64]


def forward_rows(cost: CostModel, model: str, width: Ints, context: Ints) -> Floats:
    """Seconds of forwards over the requests along the last axis, those of width 0 left out."""
    in_it = width > 0
    held = np.where(in_it, context, 0)
    rows = in_it.sum(axis=-1)
    ran = rows > 0
    shape = StepShape(
        rows[ran],
        width.max(axis=-1)[ran],
        width.sum(axis=-1)[ran],
        held.max(axis=-1)[ran],
        held.sum(axis=-1)[ran],
    )
    seconds = np.zeros(rows.shape)
    seconds[ran] = cost.forward_seconds(model, shape)
    return seconds


def every_price(
    table: CandidateTable, cost: CostModel, at: Ints, active: NDArray[np.bool_], lag: Ints
) -> Floats:
    """Seconds of a cycle of each candidate, shape (G, K).

    Args:
        at: flat position of each request, (G, B).
        active: whether it still runs, (G, B).
        lag: tokens that each model has not read of it, (G, B, models).
    """
    pool = table.pool
    context = np.where(active, table.trace.context[at], 0)
    out = np.full((len(pool.candidates), len(at)), cost.step_overhead_seconds)
    for model in np.unique(pool.drafter[pool.drafter >= 0]):
        mine = np.flatnonzero(pool.drafter == model)
        lengths = np.array([pool.candidates[k][1] for k in mine])
        name = pool.names[model]
        if name in pool.lookups:
            for length in np.unique(lengths):
                k = mine[lengths == length]
                asked = np.where(active, np.maximum(table.drafted[k[0], at], 1), 0).astype(np.int64)
                out[k] += forward_rows(cost, name, asked, context)
            continue
        at_once = pool.at_once[name]
        # A shorter draft takes the first forwards of the longest one.
        longest = mine[lengths.argmax()]
        ran = np.where(active, table.ran[longest, at], 0).astype(np.int64)
        spent = forward_rows(cost, name, np.where(ran > 0, first_width(lag[..., model], at_once), 0), context)
        steps = [np.zeros(len(at)), spent]
        for step in range(2, int(ran.max(initial=0)) + 1):
            spent = spent + forward_rows(cost, name, (ran >= step) * later_width(at_once), context)
            steps.append(spent)
        for k, length in zip(mine, lengths, strict=True):
            out[k] += steps[min(-(-int(length) // at_once), len(steps) - 1)]
    for model in np.unique(pool.middle[pool.middle >= 0]):
        k = np.flatnonzero(pool.middle == model)
        reads = active & table.reads[k][:, at]
        width = np.where(reads, lag[..., model] + table.given[k][:, at], 0)
        out[k] += forward_rows(cost, pool.names[model], width, np.broadcast_to(context, width.shape))
    width = np.where(active, table.offered[:, at].astype(np.int64) + 1, 0)
    out += forward_rows(cost, pool.target, width, np.broadcast_to(context, width.shape))
    return out.T
