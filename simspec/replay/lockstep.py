"""Batches of requests in lock-step, priced.

All requests of a batch start together; each cycle is one draft phase, one forward of
each intermediate and one of the target, over the requests that are still running; a
finished request leaves. The batch takes as long as its longest request.

Every forward of a cycle is priced at the context that the cycle began with.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.cost.shape import StepShape
from simspec.replay.trajectories import Trajectories, first_width, forwards, later_width

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Gathered cells held at once; bounds memory however many batches are priced.
CELLS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class BatchTimes:
    """What G batches took, shape (G,) each; ``tokens`` are emitted tokens."""

    seconds: Floats
    tokens: Ints


@dataclass(frozen=True)
class _Phase:
    """Forwards of one level at one step of a cycle: counts over each batch, shape (G, C)."""

    model: str
    rows: Ints
    width: Ints
    tokens: Ints
    context: Ints
    context_tokens: Ints

    def seconds(self, cost: CostModel) -> Floats:
        """Seconds a batch, shape (G,)."""
        ran = self.rows > 0
        shape = StepShape(
            self.rows[ran],
            self.width[ran],
            self.tokens[ran],
            self.context[ran],
            self.context_tokens[ran],
        )
        # One by one in the order of the cycles: a pairwise sum would hang, in its last bit, on how many
        # cycles the longest of the other batches has.
        batch = np.nonzero(ran)[0]
        seconds = cost.forward_seconds(self.model, shape)
        return np.asarray(np.bincount(batch, weights=seconds, minlength=len(self.rows)), dtype=np.float64)


def price(runs: Trajectories, batches: Ints, costs: list[CostModel], *, lookup: bool) -> list[BatchTimes]:
    """Time batches of requests under each cost.

    Args:
        runs: the requests' cycles.
        batches: requests of each batch, shape (G, B); entries index ``runs``' rows.
        costs: cost models that know every model of the chain.
        lookup: whether the chain's drafter is a look-up, which is asked once every cycle.
    """
    cycles = runs.flat.shape[1]
    size = batches.shape[1]
    chunk = max(1, CELLS_AT_ONCE // max(size * cycles, 1))
    seconds: list[list[Floats]] = [[] for _ in costs]
    for begin in range(0, len(batches), chunk):
        group = batches[begin : begin + chunk]
        phases = list(_phases(runs, group, lookup))
        steps = (runs.active[group].any(axis=1)).sum(axis=1)
        for i, cost in enumerate(costs):
            total = cost.step_overhead_seconds * steps
            for phase in phases:
                total = total + phase.seconds(cost)
            seconds[i].append(total)
    tokens = runs.emitted.sum(axis=1, dtype=np.int64)[batches].sum(axis=1)
    return [BatchTimes(np.concatenate(parts), tokens) for parts in seconds]


def _phases(runs: Trajectories, group: Ints, lookup: bool) -> list[_Phase]:
    # Requests of a batch lie along the first axis, (B, G, C): summing whole planes is fastest.
    across = group.T
    context = runs.context.astype(np.int32)[across]
    phases = []
    if runs.chain.drafter is not None:
        drafted = runs.drafted[across]
        if lookup:
            asked = np.maximum(drafted, runs.active[across].astype(np.int16))
            phases.append(_reduce(runs.chain.drafter, asked, context))
        else:
            at_once, lag = runs.tokens_a_forward, runs.lag[across]
            ran = forwards(drafted, at_once)
            first = np.where(lag > 0, first_width(lag, at_once), 0).astype(np.int16)
            phases.append(_reduce(runs.chain.drafter, first, context))
            phases += [
                _reduce(runs.chain.drafter, (ran >= step) * np.int16(later_width(at_once)), context)
                for step in range(2, int(ran.max()) + 1)
            ]
    phases += [
        _reduce(model, width[across], context)
        for model, width in zip(runs.chain.intermediates, runs.middle, strict=True)
    ]
    phases.append(_reduce(runs.chain.target, runs.width[across], context))
    return phases


def _reduce(model: str, width: NDArray[np.int16], context: NDArray[np.int32]) -> _Phase:
    """Over the requests of each batch, those of width 0 left out; (B, G, C) to (G, C)."""
    in_it = width > 0
    held = context * in_it
    return _Phase(
        model=model,
        rows=in_it.view(np.int8).sum(axis=0, dtype=np.int32).astype(np.int64),
        width=width.max(axis=0).astype(np.int64),
        tokens=width.sum(axis=0, dtype=np.int32).astype(np.int64),
        context=held.max(axis=0).astype(np.int64),
        context_tokens=held.sum(axis=0, dtype=np.int32).astype(np.int64),
    )
