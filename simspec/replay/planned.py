"""Replay of streams of batches under a planner whose memory lasts.

Conventions and prices are those of :mod:`simspec.replay.trajectories` and :mod:`simspec.replay.lockstep`,
cycle by cycle, since what a planner does next may hang on what the whole batch took.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.cost.shape import StepShape, uniform
from simspec.errors import BadInput
from simspec.replay.lockstep import pair_seconds
from simspec.replay.sampled import refuse_unsafe
from simspec.replay.trajectories import (
    Trajectories,
    draft_limit,
    drafts_read,
    first_width,
    forwards,
    later_width,
    outcome,
    seen,
)
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Decision
from simspec.speculation.planning import Bools, Happened, Planner, Waiting
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PlannedCycle:
    """One cycle of the streams ``stream``; arrays of requests have shape (G, B), 0 where nothing ran."""

    stream: Ints
    flat: Ints
    drafted: Ints
    submitted: Ints
    accepted: Ints
    emitted: Ints
    seconds: Floats

    def of_first(self, streams: int) -> PlannedCycle:
        """The same of the first streams alone, holding on to nothing else."""
        return PlannedCycle(**{f.name: getattr(self, f.name)[:streams].copy() for f in fields(self)})


@dataclass(frozen=True)
class Planned:
    """What S streams took, shape (S,) each.

    Attributes:
        seconds, tokens: of all their batches.
        cycles: cycles of batches.
        decisions, drafted, submitted: requests' cycles, and tokens over them.
        log: the cycles of the streams that it was asked for.
    """

    seconds: Floats
    tokens: Ints
    cycles: Ints
    decisions: Ints
    drafted: Ints
    submitted: Ints
    log: list[PlannedCycle] = field(default_factory=list)


def plan(
    trace: Trace, chain: Chain, cost: CostModel, planner: Planner, queues: Ints, *, keep: int = 0
) -> Planned:
    """Decode every stream's batches one after another.

    Args:
        chain: a pair.
        queues: flat position that each request begins at, shape (S, batches, B): batch by batch.
        keep: how many streams' cycles to log, the first ones.

    Raises:
        BadInput: when the chain is no pair; on sampled texts, for a planner that would change them.
    """
    refuse_unsafe(trace, chain, {str(planner): planner})
    if chain.drafter is None or chain.intermediates:
        raise BadInput(f"draft lengths are planned for a pair, not {chain}")
    drafter = chain.drafter
    index, lookup = trace.drafters[drafter], trace.is_lookup(drafter)
    at_once = trace.tokens_a_forward(drafter)
    streams, many, size = queues.shape
    depth = index.confidence.shape[1]
    state = planner.begin(streams, size, depth)
    live, turn = np.arange(streams), np.zeros(streams, dtype=np.int64)
    at = queues[:, 0].astype(np.int64)
    left = trace.remaining[at].copy()
    lag = np.ones((streams, size), dtype=np.int64)
    fresh = np.ones((streams, size), dtype=bool)
    totals = np.zeros((6, streams))
    log: list[PlannedCycle] = []
    while len(live):
        running = left > 0
        waiting = _waiting(trace, chain, cost, at, running, fresh, lag)
        wanted = planner.decide(waiting, state)
        drafted = np.where(running, np.minimum(wanted.drafted, waiting.limit), 0).astype(np.int64)
        submitted = np.minimum(wanted.submitted, drafted).astype(np.int64)
        found = outcome(trace, chain, at.ravel(), submitted.ravel())
        emitted = np.where(running, found.emitted.reshape(at.shape), 0)
        kept = np.where(running, found.kept.reshape(at.shape), 0)
        width = np.where(running, submitted + 1, 0)
        if lookup:  # asked by every row in each cycle, so both forwards are those of the running rows
            asked = np.where(running, np.maximum(drafted, 1), 0)
            held = np.where(running, trace.context[at], 0)
            drafting, verifying = (
                cost.forward_seconds(model, _shape(running, tokens, held))
                for model, tokens in ((drafter, asked), (chain.target, width))
            )
        else:
            reads = np.where(drafted > 0, lag, 0)
            one = _cycle(trace, chain, at, running, drafted, reads, width, at_once)
            drafting, verifying = pair_seconds(one, np.arange(at.size).reshape(at.shape), cost, lookup=False)
        seconds = cost.step_overhead_seconds + drafting + verifying
        happened = Happened(
            waiting,
            Decision(drafted, submitted),
            kept,
            emitted,
            drafting,
            verifying,
        )
        state = planner.observe(state, happened)
        logged = int((live < keep).sum())  # streams stay in their order
        if logged:
            flat = np.where(running, at, -1)
            cycle = PlannedCycle(live, flat, drafted, submitted, kept, emitted, seconds)
            log.append(cycle.of_first(logged))
        ones = np.ones(len(live))
        sums = (seconds, emitted.sum(1), ones, running.sum(1), drafted.sum(1), submitted.sum(1))
        for total, more in zip(totals, sums, strict=True):
            total[live] += more
        read = np.minimum(kept, drafts_read(trace, drafter, drafted))
        lag = np.where(drafted > 0, 0, lag) + emitted - read
        left = left - emitted
        at = np.where(left > 0, at + emitted, at)
        fresh = np.zeros_like(fresh)
        ended = ~(left > 0).any(axis=1)
        if ended.any():
            turn[live[ended]] += 1
            again = ended & (turn[live] < many)
            at[again] = queues[live[again], turn[live[again]]]
            left[again], lag[again], fresh[again] = trace.remaining[at[again]], 1, True
            on = ~ended | again
            live, at, left, lag, fresh = live[on], at[on], left[on], lag[on], fresh[on]
            state = {name: values[on] for name, values in state.items()}
    tokens, cycles, decisions, drafts, handed = totals[1:].round().astype(np.int64)
    return Planned(totals[0], tokens, cycles, decisions, drafts, handed, log)


def _waiting(
    trace: Trace, chain: Chain, cost: CostModel, at: Ints, running: Bools, fresh: Bools, lag: Ints
) -> Waiting:
    drafter = chain.drafter
    assert drafter is not None
    limit = np.where(running, np.maximum(draft_limit(trace, drafter, at), 0), 0)
    index = trace.drafters[drafter]
    beyond = np.arange(index.confidence.shape[1]) >= limit[..., None]
    confidence, entropy = seen(index.confidence, at, beyond), seen(index.entropy, at, beyond)
    assert confidence is not None
    rows = running.sum(axis=1)[:, None]
    held = np.where(running, trace.context[at], 0)
    # Drafting is priced for rows that are alike, as rules of a single request are told it.
    longest, every = held.max(axis=1)[:, None], held.sum(axis=1)[:, None]
    at_once, lookup = trace.tokens_a_forward(drafter), trace.is_lookup(drafter)

    def one(width: Ints) -> Floats:
        found = cost.forward_seconds(drafter, uniform(rows, width, longest))
        return np.broadcast_to(found, np.broadcast_shapes(width.shape, rows.shape))

    def draft(n: Ints) -> Floats:
        if lookup:
            return one(np.maximum(n, 1))
        more = np.maximum(forwards(n, at_once) - 1, 0)
        first, later = one(first_width(np.array([1]), at_once)), one(np.array([later_width(at_once)]))
        return np.where(n > 0, first + more * later, 0.0)

    def verify(widest: Ints, submitted: Ints) -> Floats:
        shape = StepShape(rows, widest + 1, submitted + rows, longest, every)
        found = cost.forward_seconds(chain.target, shape)
        return np.broadcast_to(found, np.broadcast_shapes(widest.shape, submitted.shape, rows.shape))

    overhead = cost.step_overhead_seconds
    behind = np.zeros(len(rows))
    if not lookup:
        read = first_width(np.where(running, lag, 1).max(axis=1)[:, None], at_once)
        behind = (one(read) - one(first_width(np.array([1]), at_once)))[:, 0]
    return Waiting(running, fresh, confidence, limit, draft, verify, overhead, entropy, behind)


def _shape(running: Bools, width: Ints, held: Ints) -> StepShape:
    """One forward of the running rows of each stream, (G,); widths and contexts are (G, B), 0 elsewhere."""
    return StepShape(running.sum(1), width.max(1), width.sum(1), held.max(1), held.sum(1))


def _cycle(
    trace: Trace,
    chain: Chain,
    at: Ints,
    running: Bools,
    drafted: Ints,
    reads: Ints,
    width: Ints,
    at_once: int,
) -> Trajectories:
    """One cycle of each stream: requests of a single cycle, for lock-step to price."""

    def column(values: Ints) -> NDArray[np.int16]:
        return np.where(running, values, 0).reshape(-1, 1).astype(np.int16)

    nothing = np.zeros_like(at)
    return Trajectories(
        chain=chain,
        start=at.ravel(),
        flat=np.where(running, at, -1).reshape(-1, 1).astype(np.int32),
        context=column(trace.context[at]),
        drafted=column(drafted),
        lag=column(reads),
        submitted=column(width - 1),
        middle=(),
        width=column(width),
        accepted=column(nothing),
        emitted=column(nothing),
        tokens_a_forward=at_once,
    )
