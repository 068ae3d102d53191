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

from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.cost.shape import StepShape, uniform
from simspec.replay.candidates import CandidateTable, unread
from simspec.replay.evidence import Similarity, seen_of
from simspec.replay.lockstep import _phases
from simspec.replay.prices import forward_rows
from simspec.replay.trajectories import Trajectories, first_width
from simspec.speculation.chains import Chain
from simspec.speculation.routing import Pool, Router, View
from simspec.traces.index import Ints

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
DraftsTogether = Literal["drafter", "candidate"]


@runtime_checkable
class Foreseeing(Protocol):
    """What an oracle has and a router has not: it is shown where every request is, so it can look ahead."""

    def foresee(self, at: Ints, active: Bools, lag: Ints) -> Ints:
        """The candidate of each batch, (G,); arguments as for :func:`simspec.replay.prices.every_price`."""


@dataclass(frozen=True)
class RoutedCycle:
    """One cycle of all batches that still run, requests in shape (G, B); 0 where a request has ended.

    Attributes:
        batch: numbers of the batches, (G,).
        active: whether the request ran.
        flat, candidate, lag, drafted, middle, width, accepted, emitted: as in
            :class:`~simspec.replay.trajectories.Trajectories`; ``lag`` is the width of the drafter's
            first forward without masked places.
        seconds, catching_up: of each batch, (G,).
    """

    batch: Ints
    active: Bools
    flat: Ints
    candidate: Ints
    drafted: Ints
    lag: Ints
    middle: Ints
    width: Ints
    accepted: Ints
    emitted: Ints
    seconds: Floats
    catching_up: Floats


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
        log: the cycles, where they were asked for.
    """

    seconds: Floats
    tokens: Ints
    cycles: Ints
    decisions: Ints
    switches: Ints
    catching_up: Floats
    chosen: Ints
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
    keep: bool = False,
) -> Routed:
    """Decode batches to their texts' ends.

    Args:
        starts: flat position that each request of each batch begins at, shape (G, B).
        split: whether each request takes its own candidate.
        similarity: for routers that learn from it; made afresh where it is not given.
        keep: whether to keep the log.
    """
    pool, trace = table.pool, table.trace
    groups, size = starts.shape
    if router.evidence != "realised" and similarity is None:
        similarity = Similarity.of(trace)
    each = 1 if split else size  # requests of a decider
    meter = _Meter(table, cost, groups, split, drafts_together)
    chain_of = _chain_numbers(pool)
    state = router.begin(pool, groups * size // each)
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
    done = 0
    while len(live):
        active = left > 0
        if isinstance(router, Foreseeing):
            chosen = router.foresee(at, active, lag)
        else:
            chosen = router.choose(
                pool, state, _view(table, cost, at, active, lag, last, numbers, each, done)
            )
        chosen = np.asarray(chosen, dtype=np.int64)
        which = np.repeat(chosen, each).reshape(at.shape)
        deciding = active.reshape(-1, each).any(axis=1).reshape(last.shape)
        chosen = chosen.reshape(last.shape)
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
            live, at, left, lag, missed = live[on], at[on], left[on], lag[on], missed[on]
            last, numbers = last[on], numbers[on]
            state = {name: values[np.repeat(on, size // each)] for name, values in state.items()}
    return Routed(
        seconds=meter.seconds(cycles),
        tokens=tokens,
        cycles=cycles,
        decisions=decisions,
        switches=switches,
        catching_up=meter.catching_up,
        chosen=chosen_count,
        log=log,
    )


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


class _Meter:
    """Charges forwards, and adds them up phase by phase as :func:`simspec.replay.lockstep.price` does."""

    def __init__(
        self,
        table: CandidateTable,
        cost: CostModel,
        groups: int,
        split: bool,
        drafts_together: DraftsTogether,
    ) -> None:
        self.table, self.cost = table, cost
        pool = table.pool
        models = len(pool.names)
        # By the drafter and the place of its forwards among those of a cycle.
        self.drafting: dict[tuple[int, int], Floats] = {}
        self.middle, self.target = np.zeros((models, groups)), np.zeros(groups)
        self.catching_up = np.zeros(groups)
        k = np.arange(len(pool.candidates))
        # Which rows draft together, by candidate; -1 where nothing is drafted.
        self.by_candidate = split and drafts_together == "candidate"
        self.together = np.where(pool.drafter >= 0, k, -1) if self.by_candidate else pool.drafter
        # Which models a candidate's chain uses.
        self.used = np.zeros((len(k), models), dtype=bool)
        for role in (pool.drafter, pool.middle):
            self.used[k[role >= 0], role[role >= 0]] = True
        self.used[:, pool.names.index(pool.target)] = True

    def left_over(self, which: Ints, at: Ints, missed: Ints) -> Ints:
        """What models of the chain that ran have still missed: all of it where they had nothing to read."""
        pool, table = self.table.pool, self.table
        still = np.zeros_like(missed)
        grid: Ints = np.indices(which.shape)
        g, b = grid[0], grid[1]
        for role, ran in ((pool.drafter, table.ran[which, at] > 0), (pool.middle, table.reads[which, at])):
            model: Ints = role[which]
            idle = (model >= 0) & ~ran
            still[g[idle], b[idle], model[idle]] = missed[g[idle], b[idle], model[idle]]
        return still

    def charge(
        self, live: Ints, which: Ints, at: Ints, active: Bools, lag: Ints, missed: Ints
    ) -> RoutedCycle:
        """Charge one cycle of the batches ``live``; all else has shape (G, B) or (G, B, models)."""
        table, pool = self.table, self.table.pool
        context = np.where(active, table.trace.context[at], 0)
        drafted = np.where(active, table.drafted[which, at], 0).astype(np.int64)
        ran = np.where(active, table.ran[which, at], 0).astype(np.int64)
        drafter, middle = np.where(active, pool.drafter[which], -1), np.where(active, pool.middle[which], -1)
        grid: Ints = np.indices(which.shape)
        g, b = grid[0], grid[1]
        drafter_lag = np.where(ran > 0, lag[g, b, drafter], 0)
        reads = active & table.reads[which, at]
        middle_width = np.where(reads, lag[g, b, middle] + table.given[which, at], 0)
        width = np.where(active, table.offered[which, at].astype(np.int64) + 1, 0)
        before = self.catching_up[live]
        spent = np.zeros(len(live))
        together = np.where(active, self.together[which], -1)
        for kind in np.unique(together[together >= 0]).tolist():
            mine = together == kind
            rows = np.flatnonzero(mine.any(axis=1))
            mine = mine[rows]
            model = int(pool.drafter[kind]) if self.by_candidate else kind
            spent[rows] += self._draft(model, live, rows, mine, drafted, ran, drafter_lag, context, missed)
        for model in np.unique(middle[reads]).tolist():
            mine = reads & (middle == model)
            rows = np.flatnonzero(mine.any(axis=1))
            wide = np.where(mine[rows], middle_width[rows], 0)
            seconds = self._forward(model, wide, context[rows])
            self.middle[model, live[rows]] += seconds
            spent[rows] += seconds
            self._catch_up(model, live[rows], wide, missed[rows, :, model], context[rows], seconds)
        seconds = self._forward(pool.names.index(pool.target), width, context)
        self.target[live] += seconds
        return RoutedCycle(
            batch=live,
            active=active,
            flat=at,
            candidate=which,
            drafted=drafted,
            lag=drafter_lag,
            middle=middle_width,
            width=width,
            accepted=np.where(active, table.accepted[which, at], 0),
            emitted=np.where(active, table.emitted[which, at], 0),
            seconds=spent + seconds + self.cost.step_overhead_seconds,
            catching_up=self.catching_up[live] - before,
        )

    def _draft(
        self,
        model: int,
        live: Ints,
        rows: Ints,
        mine: Bools,
        drafted: Ints,
        ran: Ints,
        lag: Ints,
        context: Ints,
        missed: Ints,
    ) -> Floats:
        """Seconds of the batches ``rows`` of drafting by one model, (rows,)."""
        name, held = self.table.pool.names[model], context[rows]
        lookup = name in self.table.pool.lookups
        column = np.where(mine, held, 0).reshape(-1, 1).astype(np.int16)
        nothing = np.zeros_like(column)
        late = np.where(mine & (ran[rows] > 0), lag[rows], 0)
        # One cycle of a pair, as lock-step replay takes it apart; the target's forward comes last there.
        one = Trajectories(
            chain=Chain((name, self.table.pool.target)),
            start=np.zeros(0, dtype=np.int64),
            flat=np.where(mine, 0, -1).reshape(-1, 1).astype(np.int32),
            context=column,
            drafted=np.where(mine, drafted[rows], 0).reshape(-1, 1).astype(np.int16),
            lag=late.reshape(-1, 1).astype(np.int16),
            submitted=nothing,
            middle=(),
            width=nothing,
            accepted=nothing,
            emitted=nothing,
            tokens_a_forward=self.table.pool.at_once[name],
        )
        seconds = np.zeros(len(rows))
        for i, phase in enumerate(_phases(one, np.arange(mine.size).reshape(mine.shape), lookup)[:-1]):
            shape = StepShape(phase.rows, phase.width, phase.tokens, phase.context, phase.context_tokens)
            spent = self.cost.forward_seconds(name, shape)
            if phase.times is not None:
                spent = spent * phase.times
            total = self.drafting.setdefault((model, i), np.zeros(len(self.target)))
            # One by one, as lock-step replay adds them.
            np.add.at(total, live[rows][phase.batch], spent)
            np.add.at(seconds, phase.batch, spent)
            if i == 0 and not lookup:
                wide = np.where(late > 0, first_width(late, self.table.pool.at_once[name]), 0)
                self._catch_up(model, live[rows], wide, missed[rows, :, model], held, seconds)
        return seconds

    def _catch_up(
        self, model: int, batches: Ints, width: Ints, missed: Ints, context: Ints, seconds: Floats
    ) -> None:
        """Charge a forward again as if nothing had been missed, and keep the difference."""
        late = np.where(width > 0, missed, 0)
        some = np.flatnonzero(late.any(axis=1))
        if len(some):
            punctual = self._forward(model, width[some] - late[some], context[some])
            self.catching_up[batches[some]] += seconds[some] - punctual

    def _forward(self, model: int, width: Ints, context: Ints) -> Floats:
        return forward_rows(self.cost, self.table.pool.names[model], width, context)

    def seconds(self, cycles: Ints) -> Floats:
        """Seconds of each batch, summed in the order in which lock-step replay sums them."""
        total = self.cost.step_overhead_seconds * cycles
        for _, phase in sorted(self.drafting.items()):
            total = total + phase
        for phase in self.middle:
            total = total + phase
        return np.asarray(total + self.target)
