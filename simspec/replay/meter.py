"""What a cycle of routed batches costs, forward by forward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.cost.shape import StepShape
from simspec.replay.candidates import CandidateTable
from simspec.replay.lockstep import _phases
from simspec.replay.prices import forward_rows
from simspec.replay.trajectories import Trajectories, first_width
from simspec.speculation.chains import Chain
from simspec.speculation.routing import Clock
from simspec.traces.index import Ints

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
DraftsTogether = Literal["drafter", "candidate"]


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
        clock: what each model's forwards took, by batch, where it was asked for.
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
    clock: Clock | None = None


class Meter:
    """Charges forwards, and adds them up phase by phase as :func:`simspec.replay.lockstep.price` does.

    With ``watched`` it also says what each model's forwards took.
    """

    def __init__(
        self,
        table: CandidateTable,
        cost: CostModel,
        groups: int,
        split: bool,
        drafts_together: DraftsTogether,
        watched: bool = False,
    ) -> None:
        self.table, self.cost = table, cost
        self.watched = watched
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
        if self.watched:
            # Forwards, seconds and widths by model.
            self._ticks = np.zeros((3, len(live), len(pool.names)))
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
            self._tick(model, rows, seconds, wide)
            self._catch_up(model, live[rows], wide, missed[rows, :, model], context[rows], seconds)
        target = pool.names.index(pool.target)
        seconds = self._forward(target, width, context)
        self.target[live] += seconds
        self._tick(target, np.arange(len(live)), seconds, width)
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
            clock=Clock(*self._ticks) if self.watched else None,
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
            self._tick(model, rows[phase.batch], spent, phase.width, phase.times)
            if i == 0 and not lookup:
                wide = np.where(late > 0, first_width(late, self.table.pool.at_once[name]), 0)
                self._catch_up(model, live[rows], wide, missed[rows, :, model], held, seconds)
        return seconds

    def _tick(self, model: int, rows: Ints, seconds: Floats, width: Ints, times: Ints | None = None) -> None:
        """Note forwards of batches: their widest rows', or all their rows', ``width``; ``times`` of each."""
        if not self.watched:
            return
        widest = width if width.ndim == 1 else width.max(axis=1)
        ran = np.ones_like(rows) if times is None else times
        for kind, values in enumerate((ran, seconds, ran * widest)):
            np.add.at(self._ticks[kind, :, model], rows, values)

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
