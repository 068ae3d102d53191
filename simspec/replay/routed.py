"""Replay in which a router picks the chain and the draft length of every cycle.

Conventions are those of :mod:`simspec.replay.trajectories` and :mod:`simspec.replay.lockstep`. A
model that a cycle's chain does not use reads nothing; all that it missed is in its next forward,
whose width is charged. With one candidate for ever, times equal theirs to the last bit.

Either all requests of a batch take one candidate, or (``split``) each takes its own. Then the
batch's forwards of a model over drafts of an intermediate, and of the target, hold every row that
needs them; drafting forwards are shared by the rows of one drafter, or, as the decoder of real
models does, by those of one candidate.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np

from simspec.cost.models import CostModel
from simspec.cost.shape import uniform
from simspec.replay.candidates import CandidateTable, unread
from simspec.replay.evidence import Similarity, seen_of
from simspec.replay.meter import Bools, DraftsTogether, Floats, Meter, RoutedCycle
from simspec.speculation.routing import Pool, Router, State, View, watches_clock
from simspec.traces.index import Ints


@runtime_checkable
class Foreseeing(Protocol):
    """What an oracle has and a router has not: it is shown where every request is, so it can look ahead."""

    def foresee(self, at: Ints, active: Bools, lag: Ints) -> Ints:
        """The candidate of each batch, (G,); arguments as for :func:`simspec.replay.prices.every_price`."""


@dataclass(frozen=True)
class Routed:
    """What G batches took, shape (G,) each.

    Attributes:
        seconds, tokens: as in :class:`~simspec.replay.lockstep.BatchTimes`.
        cycles: cycles of the batch.
        decisions: cycles of its deciders; the batch itself, or each of its requests.
        switches: decisions that changed the chain.
        catching_up: seconds that forwards took for what their model had missed while it was not used.
        chosen: how often each candidate was taken, over all batches, (K,).
        memory: what each decider remembers at the end, as the router keeps it.
        log: the cycles, where they were asked for.
    """

    seconds: Floats
    tokens: Ints
    cycles: Ints
    decisions: Ints
    switches: Ints
    catching_up: Floats
    chosen: Ints
    memory: State
    log: list[RoutedCycle] = field(default_factory=list)


def route(
    table: CandidateTable,
    cost: CostModel,
    router: Router,
    starts: Ints,
    *,
    split: bool = False,
    drafts_together: DraftsTogether = "drafter",
    similarity: Similarity | None = None,
    memory: State | None = None,
    offered: Bools | None = None,
    keep: bool = False,
) -> Routed:
    """Decode batches to their texts' ends.

    One router serves texts one after another where each call is given what the last one left in ``memory``.

    Args:
        starts: flat position that each request of each batch begins at, shape (G, B).
        split: whether each request takes its own candidate.
        similarity: for routers that learn from it; made afresh where it is not given.
        memory: what each decider remembers, instead of nothing.
        offered: which candidates each decider may take, (D, K), batch by batch; all where not given.
        keep: whether to keep the log.

    Raises:
        ValueError: when a router takes what it is not offered.
    """
    pool, trace = table.pool, table.trace
    groups, size = starts.shape
    if router.evidence != "realised" and similarity is None:
        similarity = Similarity.of(trace)
    each = 1 if split else size  # requests of a decider
    meter = Meter(table, cost, groups, split, drafts_together, watches_clock(router))
    chain_of = _chain_numbers(pool)
    state = router.begin(pool, groups * size // each) if memory is None else dict(memory)
    live = np.arange(groups)
    at = starts.astype(np.int64).copy()
    left = trace.remaining[at].copy()
    lag = np.ones((groups, size, len(pool.names)), dtype=np.int64)
    missed = np.zeros_like(lag)
    last = np.full((groups, size // each), -1, dtype=np.int64)
    numbers = np.arange(groups * size // each).reshape(groups, -1)
    cycles, decisions = np.zeros(groups, dtype=np.int64), np.zeros(groups, dtype=np.int64)
    switches, tokens = np.zeros(groups, dtype=np.int64), np.zeros(groups, dtype=np.int64)
    chosen_count = np.zeros(len(pool.candidates), dtype=np.int64)
    log: list[RoutedCycle] = []
    ended: list[tuple[Ints, State]] = []
    done = 0
    while len(live):
        active = left > 0
        if isinstance(router, Foreseeing):
            chosen = router.foresee(at, active, lag)
        else:
            view = _view(table, cost, at, active, lag, last, numbers, each, done)
            if offered is not None:
                view = replace(view, offered=offered[view.request])
            chosen = router.choose(pool, state, view)
        chosen = np.asarray(chosen, dtype=np.int64)
        which = np.repeat(chosen, each).reshape(at.shape)
        deciding = active.reshape(-1, each).any(axis=1).reshape(last.shape)
        chosen = chosen.reshape(last.shape)
        if offered is not None and not offered[numbers, chosen][deciding].all():
            raise ValueError(f"{router} took a candidate that it was not offered")
        moved = deciding & (last >= 0) & (chain_of[chosen] != chain_of[last])
        cycle = meter.charge(live, which, at, active, lag, missed)
        emitted = np.where(active, table.emitted[which, at], 0).astype(np.int64)
        seen = seen_of(
            table,
            router.evidence,
            similarity,
            which,
            at,
            active,
            each,
            np.repeat(cycle.seconds, size // each),
            None if cycle.clock is None else cycle.clock.repeat(size // each),
        )
        state = router.observe(pool, state, seen)
        if keep:
            log.append(cycle)
        cycles[live] += 1
        decisions[live] += deciding.sum(axis=1)
        switches[live] += moved.sum(axis=1)
        tokens[live] += emitted.sum(axis=1)
        chosen_count += np.bincount(chosen[deciding], minlength=len(chosen_count))
        flat_which, flat_at = which.ravel(), at.ravel()
        lag = unread(table, flat_which, flat_at, lag.reshape(len(flat_at), -1)).reshape(lag.shape)
        missed = np.where(meter.used[which], meter.left_over(which, at, missed), missed + emitted[..., None])
        left = left - emitted
        at = np.where(left > 0, at + emitted, at)
        last = np.where(deciding, chosen, last)
        done += 1
        on = (left > 0).any(axis=1)
        if not on.all():
            gone = np.repeat(~on, size // each)
            ended.append((numbers[~on].ravel(), {name: values[gone] for name, values in state.items()}))
            live, at, left, lag, missed = live[on], at[on], left[on], lag[on], missed[on]
            last, numbers = last[on], numbers[on]
            state = {name: values[~gone] for name, values in state.items()}
    return Routed(
        seconds=meter.seconds(cycles),
        tokens=tokens,
        cycles=cycles,
        decisions=decisions,
        switches=switches,
        catching_up=meter.catching_up,
        chosen=chosen_count,
        memory=_in_order(ended),
        log=log,
    )


def _in_order(ended: list[tuple[Ints, State]]) -> State:
    """What deciders remembered when they ended, by their numbers again."""
    order = np.argsort(np.concatenate([numbers for numbers, _ in ended]))
    return {name: np.concatenate([state[name] for _, state in ended])[order] for name in ended[0][1]}


def _view(
    table: CandidateTable,
    cost: CostModel,
    at: Ints,
    active: Bools,
    lag: Ints,
    last: Ints,
    numbers: Ints,
    each: int,
    cycle: int,
) -> View:
    on = active.reshape(-1, each)
    context = np.where(on, table.trace.context[at].reshape(-1, each), 0)
    live = np.maximum(on.sum(axis=1), 1)
    rows = np.repeat(np.maximum(active.sum(axis=1), 1), at.size // len(at) // each)
    mean = context.sum(axis=1) / live
    held = np.rint(mean).astype(np.int64)
    names = table.pool.names

    def seconds(model: int, width: Ints) -> Floats:
        wide = np.broadcast_to(width, (len(rows),) if np.ndim(width) < 2 else (len(rows), np.shape(width)[1]))
        shape = (slice(None),) if wide.ndim == 1 else (slice(None), None)
        return cost.forward_seconds(
            names[model],
            uniform(np.broadcast_to(rows[shape], wide.shape), wide, np.broadcast_to(held[shape], wide.shape)),
        )

    return View(
        cycle=cycle,
        request=numbers.ravel(),
        rows=rows,
        context=mean,
        lag=np.where(on[..., None], lag.reshape(*on.shape, -1), 0).max(axis=1),
        last=last.ravel(),
        seconds=seconds,
        overhead=cost.step_overhead_seconds,
    )


def _chain_numbers(pool: Pool) -> Ints:
    known: dict[object, int] = {}
    return np.array([known.setdefault(c, len(known)) for c, _ in pool.candidates] + [-1], dtype=np.int64)
