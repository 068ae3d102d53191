"""Batches of requests in lock-step, priced.

All requests of a batch start together; each cycle is one draft phase, one forward of
each intermediate and one of the target, over the requests that are still running; a
finished request leaves. The batch takes as long as its longest request.

Every forward of a cycle is priced at the context that the cycle began with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.cost.shape import StepShape
from simspec.replay.trajectories import Trajectories, first_width, forwards, later_width

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Gathered cells held at once: few enough to stay in a processor's cache.
CELLS_AT_ONCE = 100_000


@dataclass(frozen=True)
class BatchTimes:
    """What G batches took, shape (G,) each; ``tokens`` are emitted tokens."""

    seconds: Floats
    tokens: Ints


@dataclass(frozen=True)
class _Phase:
    """Forwards of one level in K steps of batches: counts over the requests of each, shape (K,).

    ``batch`` says whose each is; ``times`` how many such forwards come one after another.
    """

    model: str
    batch: Ints
    rows: Ints
    width: Ints
    tokens: Ints
    context: Ints
    context_tokens: Ints
    times: Ints | None = None

    def seconds(self, cost: CostModel, batches: int) -> Floats:
        """Seconds a batch, shape (batches,)."""
        shape = StepShape(self.rows, self.width, self.tokens, self.context, self.context_tokens)
        seconds = cost.forward_seconds(self.model, shape)
        if self.times is not None:
            seconds = seconds * self.times
        # One by one in the order of the cycles: a pairwise sum would hang, in its last bit, on how many
        # cycles the longest of the other batches has.
        return np.asarray(np.bincount(self.batch, weights=seconds, minlength=batches), dtype=np.float64)


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
        # A batch goes on as long as its longest request; a request's cycles come without a gap.
        steps = runs.active.sum(axis=1)[group].max(axis=1)
        for i, cost in enumerate(costs):
            total = cost.step_overhead_seconds * steps
            for phase in phases:
                total = total + phase.seconds(cost, len(group))
            seconds[i].append(total)
    tokens = runs.emitted.sum(axis=1, dtype=np.int64)[batches].sum(axis=1)
    return [BatchTimes(np.concatenate(parts), tokens) for parts in seconds]


def pair_seconds(
    runs: Trajectories, batches: Ints, cost: CostModel, *, lookup: bool
) -> tuple[Floats, Floats]:
    """Seconds that batches of a pair's requests spent on drafting and on verifying, shape (G,) each."""
    *drafting, verifying = (phase.seconds(cost, len(batches)) for phase in _phases(runs, batches, lookup))
    return np.asarray(sum(drafting)), verifying


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
            first = np.where(lag > 0, first_width(lag, at_once), 0).astype(np.int16)
            phases.append(_reduce(runs.chain.drafter, first, context))
            ran = forwards(drafted, at_once)
            phases += _later(phases[0], ran, later_width(at_once), context)
    phases += [
        _reduce(model, width[across], context)
        for model, width in zip(runs.chain.intermediates, runs.middle, strict=True)
    ]
    phases.append(_reduce(runs.chain.target, runs.width[across], context))
    return phases


def _later(
    first: _Phase, ran: NDArray[np.int16], width: int, context: NDArray[np.int32]
) -> tuple[_Phase, _Phase]:
    """A drafter's forwards after its ``first`` of each cycle; ``ran`` counts all of them, (B, G, C).

    Where all requests that draft go on for as many, so does their first forward. Elsewhere, with the requests
    of a step in the order of their forwards, those from the j-th on go on together for as many as the j-th
    has more than the one before it.
    """
    most = ran.max(axis=0)
    alike = np.where(ran > 0, ran, most).min(axis=0) == most
    on = (alike & (most > 1))[most > 0]
    rows = first.rows[on]
    together = _Phase(
        model=first.model,
        batch=first.batch[on],
        rows=rows,
        width=np.full(len(rows), width),
        tokens=rows * width,
        context=first.context[on],
        context_tokens=first.context_tokens[on],
        times=(most[most > 0][on] - 1).astype(np.int64),
    )
    cells = np.flatnonzero(~alike & (most > 1))
    batch = cells // ran.shape[2]
    both = ran.reshape(len(ran), -1).take(cells, axis=1).astype(np.int32) << 16
    both |= context.reshape(len(ran), -1).take(cells, axis=1)
    both = both.T.copy()
    both.sort(axis=1)
    ran, context = (both >> 16).astype(np.int16), both & 0xFFFF
    before = np.ones_like(ran)
    np.maximum(ran[:, :-1], 1, out=before[:, 1:])
    step, place = np.nonzero(ran > before)
    rows = ran.shape[1] - place
    greatest = np.maximum.accumulate(context[:, ::-1], axis=1)[:, ::-1]
    summed = np.cumsum(context[:, ::-1], axis=1, dtype=np.int32)[:, ::-1]
    return together, _Phase(
        model=first.model,
        batch=batch[step],
        rows=rows,
        width=np.full(len(rows), width),
        tokens=rows * width,
        context=greatest[step, place].astype(np.int64),
        context_tokens=summed[step, place].astype(np.int64),
        times=(ran - before)[step, place].astype(np.int64),
    )


def _reduce(model: str, width: NDArray[np.int16], context: NDArray[np.int32]) -> _Phase:
    """Over the requests of each batch, those of width 0 left out; (B, G, C)."""
    in_it = width > 0
    rows = in_it.view(np.int8).sum(axis=0, dtype=np.int16)
    ran = rows > 0
    held = context * in_it

    def kept(counts: NDArray[Any]) -> Ints:
        return np.asarray(counts[ran], dtype=np.int64)

    return _Phase(
        model=model,
        batch=np.nonzero(ran)[0],
        rows=kept(rows),
        width=kept(width.max(axis=0)),
        tokens=kept(width.sum(axis=0, dtype=np.int32)),
        context=kept(held.max(axis=0)),
        context_tokens=kept(held.sum(axis=0, dtype=np.int32)),
    )
