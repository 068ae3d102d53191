"""The bound on any schedule of chains, with what every model has not read in its state.

At batch 1. Unlike :func:`simspec.oracle.chains.least_seconds`, the program knows how far each model
lags, so switching costs what catching up costs, and the least time is one that a schedule reaches.

Labels (seconds so far, lag of every model) are carried from place to place; one that is no earlier
and lags no less in any model is dropped, and so is one that cannot beat a schedule already known,
even if no model lagged from here on. Dropping by lag is right where a wider forward of a model that
can lag never costs less. Where a table says otherwise, such forwards are charged at the cheapest
width that is at least as wide (a forward can be padded), so the result is then still a lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.errors import BadInput
from simspec.oracle.chains import cycles
from simspec.replay.candidates import CandidateTable
from simspec.replay.pricing import forward
from simspec.replay.trajectories import first_width, later_width
from simspec.speculation.routing import Evidence, Pool, Seen, State, View
from simspec.traces.index import Ints

Floats = NDArray[np.float64]

# Schedules this much slower than the best known are still followed: rounding must drop none.
_ROUNDING = 1e-9
# Combinations of lags at one place at most; bounds memory.
_CELLS = 20_000_000


@dataclass(frozen=True)
class Least:
    """The fastest schedule of one text: its seconds, and each cycle's place in the text and candidate."""

    seconds: float
    positions: tuple[int, ...]
    candidates: tuple[int, ...]


@dataclass(frozen=True)
class Follow:
    """A schedule laid down beforehand: the candidate of each flat position, (N,); batches of one request."""

    candidates: Ints
    evidence: Evidence = "realised"

    def foresee(self, at: Ints, active: NDArray[np.bool_], lag: Ints) -> Ints:
        return self.candidates[at[:, 0]]

    def begin(self, pool: Pool, deciders: int) -> State:
        return {}

    def choose(self, pool: Pool, state: State, view: View) -> Ints:
        raise NotImplementedError("what is laid down is asked through foresee")

    def observe(self, pool: Pool, state: State, seen: Seen) -> State:
        return state


@dataclass(frozen=True)
class _Labels:
    """Ways to have come to a place: seconds, lags (n, lagging models), the label before, what was taken."""

    seconds: Floats
    lag: Ints
    parent: Ints
    taken: Ints

    def some(self, which: Ints | NDArray[np.bool_]) -> _Labels:
        return _Labels(self.seconds[which], self.lag[which], self.parent[which], self.taken[which])


def _undominated(found: Sequence[_Labels]) -> _Labels:
    """The labels that no other is at least as good as in everything; one of equals."""
    every = _Labels(
        np.concatenate([f.seconds for f in found]),
        np.concatenate([f.lag for f in found]),
        np.concatenate([f.parent for f in found]),
        np.concatenate([f.taken for f in found]),
    )
    # A grid over the lags that occur, which holds the least seconds of any label at or below each of them.
    shape, cell = [], np.zeros(len(every.seconds), dtype=np.int64)
    for column in every.lag.T:
        occurs = np.zeros(int(column.max()) + 1, dtype=np.int64)
        occurs[column] = 1
        rank = np.cumsum(occurs) - 1
        shape.append(int(rank[-1]) + 1)
        cell = cell * shape[-1] + rank[column]
    if np.prod(shape, dtype=float) > _CELLS:
        raise BadInput(f"{len(shape)} models that lag in {shape} ways", allowed=f"{_CELLS} combinations")
    least = np.full(int(np.prod(shape, dtype=np.int64)), np.inf)
    np.minimum.at(least, cell, every.seconds)
    first = np.flatnonzero(every.seconds == least[cell])
    one = np.full(len(least), -1)
    one[cell[first]] = first
    cell = np.flatnonzero(one >= 0)
    every = every.some(one[cell])
    below = least.reshape(shape) if shape else least.reshape(1)
    for axis in range(len(shape)):
        below = np.minimum.accumulate(below, axis=axis)
    # Neighbours one step below along each axis: a label there or beneath is no later and lags less.
    beaten = np.zeros(len(cell), dtype=bool)
    places = np.unravel_index(cell, shape) if shape else ()
    for axis, place in enumerate(places):
        lower = tuple(np.maximum(p - 1, 0) if i == axis else p for i, p in enumerate(places))
        beaten |= (place > 0) & (below[lower] <= every.seconds)
    return every.some(~beaten)


class LaggedProgram:
    """The dynamic program over one table of candidates and one cost."""

    def __init__(self, table: CandidateTable, cost: CostModel) -> None:
        self.table, self.trace = table, table.trace
        pool, trace = table.pool, table.trace
        used = {m for chain, _ in pool.candidates for m in chain.levels}
        self.lagging = [m for m in pool.names if m in used - pool.lookups - {pool.target}]
        column = {pool.names.index(m): i for i, m in enumerate(self.lagging)}
        columns = np.array([column.get(i, -1) for i in range(len(pool.names))] + [-1])
        self.drafter, self.middle = columns[pool.drafter], columns[pool.middle]
        masked = {m: int(first_width(np.array(0), pool.at_once[m])) for m in self.lagging}
        self.masked = np.array([*(masked[m] for m in self.lagging), 0])
        widest = int(trace.remaining.max()) + trace.manifest.block_length + 2 + int(self.masked.max())
        self.cheapest = [self._cheapest(cost, m, widest) for m in self.lagging]
        self.rest = self._rest(cost)
        self.least_cycle, _ = cycles(trace, pool.candidates, cost)
        self.worth = self._worth_trying()

    def _cheapest(self, cost: CostModel, model: str, widest: int) -> Floats:
        """Least seconds of a forward at least w wide, w = 0.., at each flat position, (N, widest + 1)."""
        width = np.arange(widest + 1)[None]
        every = forward(cost, model, 1, width, self.trace.context[:, None])
        every[:, 0] = np.inf
        return np.minimum.accumulate(every[:, ::-1], axis=1)[:, ::-1]

    def _rest(self, cost: CostModel) -> Floats:
        """Seconds of a cycle but for the forwards whose width hangs on a lag, (K, N)."""
        table, pool, context = self.table, self.table.pool, self.trace.context
        out = np.full(table.emitted.shape, cost.step_overhead_seconds)
        for k, (chain, _) in enumerate(pool.candidates):
            if chain.drafter in pool.lookups:
                asked = np.maximum(table.drafted[k].astype(np.int64), 1)
                out[k] += forward(cost, chain.drafter, 1, asked, context)
            elif chain.drafter is not None:
                wide = np.full_like(context, later_width(pool.at_once[chain.drafter]))
                out[k] += np.maximum(table.ran[k] - 1, 0) * forward(cost, chain.drafter, 1, wide, context)
            out[k] += forward(cost, pool.target, 1, table.offered[k].astype(np.int64) + 1, context)
        return out

    def _worth_trying(self) -> NDArray[np.bool_]:
        """Where no other length of the same chain does the same for no more, (K, N)."""
        table = self.table
        out = np.ones(table.emitted.shape, dtype=bool)
        by_chain: dict[object, list[int]] = {}
        for k, (chain, _) in enumerate(table.pool.candidates):
            by_chain.setdefault(chain, []).append(k)
        for mine in by_chain.values():
            for k in mine:
                for other in mine:
                    if other == k:
                        continue
                    same = (table.ran[k] > 0) == (table.ran[other] > 0)
                    for name in ("emitted", "read", "kept", "reads"):
                        column = getattr(table, name)
                        same &= column[k] == column[other]
                    same &= (self.rest[other] <= self.rest[k]) & (table.given[other] <= table.given[k])
                    out[k] &= ~(same & out[other])
        return out

    def _cycle(self, flat: int, which: Ints, lag: Ints) -> tuple[Floats, Ints]:
        """Seconds of each candidate for each lag, (n, C), and the lags after it, (n, C, models)."""
        table = self.table
        seconds = np.broadcast_to(self.rest[which, flat], (len(lag), len(which))).copy()
        emitted = table.emitted[which, flat].astype(np.int64)
        after = lag[:, None, :] + emitted[:, None]
        for role, runs, more, held in (
            (self.drafter[which], table.ran[which, flat] > 0, self.masked[self.drafter[which]], table.read),
            (self.middle[which], table.reads[which, flat], table.given[which, flat], table.kept),
        ):
            for model, cheapest in enumerate(self.cheapest):
                c = np.flatnonzero(runs & (role == model))
                if len(c):
                    seconds[:, c] += cheapest[flat][lag[:, [model]] + more[c]]
                    after[:, c, model] = emitted[c] - held[which[c], flat]
        return seconds, after

    @cached_property
    def to_go(self) -> Floats:
        """Seconds from each flat position to the text's end if nothing lagged: a lower bound, (N + 1,)."""
        trace = self.trace
        out = np.zeros(len(trace.tokens) + 1)
        emitted = self.table.emitted
        for t in range(int(trace.remaining.max()) - 1, -1, -1):
            # t counts from the end here: the places with t + 1 tokens to go come after those with fewer.
            at = np.flatnonzero(trace.remaining == int(trace.remaining.max()) - t)
            then = np.where(emitted[:, at] >= trace.remaining[at], 0.0, out[at + emitted[:, at]])
            out[at] = (self.least_cycle[:, at] + then).min(axis=0)
        return out

    def _some_schedule(self, flat: int, lag: Ints) -> float:
        """Seconds of the schedule that would be fastest if nothing lagged."""
        total, left = 0.0, int(self.trace.remaining[flat])
        every = np.arange(len(self.table.pool.candidates))
        while left:
            seconds, after = self._cycle(flat, every, lag[None])
            emitted = self.table.emitted[:, flat].astype(np.int64)
            k = int((seconds[0] + np.where(emitted >= left, 0.0, self.to_go[flat + emitted])).argmin())
            total, lag = total + float(seconds[0, k]), after[0, k]
            left, flat = left - int(emitted[k]), flat + int(emitted[k])
        return total

    def after(self, start: int, lag: Ints, candidate: int) -> float:
        """Seconds of a cycle of one candidate and the fastest schedule after it, as :meth:`least` has it."""
        seconds, lags = self._cycle(start, np.array([candidate]), np.asarray(lag, dtype=np.int64)[None])
        emitted = int(self.table.emitted[candidate, start])
        rest = 0.0
        if emitted < self.trace.remaining[start]:
            rest = self.least(start + emitted, lags[0, 0]).seconds
        return float(seconds[0, 0]) + rest

    def least(self, start: int, lag: Ints | None = None) -> Least:
        """The fastest schedule from a flat position to its text's end.

        Args:
            lag: tokens that each model of ``lagging`` has not read; one each by default.
        """
        begin = np.ones(len(self.lagging), dtype=np.int64) if lag is None else np.asarray(lag, dtype=np.int64)
        known = self._some_schedule(start, begin) * (1.0 + _ROUNDING)
        trace, size = self.trace, int(self.trace.remaining[start])
        minus = np.array([-1])
        waiting: dict[int, list[_Labels]] = {0: [_Labels(np.zeros(1), begin[None], minus, minus)]}
        history: list[tuple[int, int, int]] = []  # parent, candidate, position
        for t in range(size):
            if t not in waiting:
                continue
            labels = _undominated(waiting.pop(t))
            numbers = len(history) + np.arange(len(labels.seconds))
            history += [(p, k, t) for p, k in zip(labels.parent.tolist(), labels.taken.tolist(), strict=True)]
            flat = start + t
            which = np.flatnonzero(self.worth[:, flat])
            seconds, after = self._cycle(flat, which, labels.lag)
            emitted = self.table.emitted[which, flat].astype(np.int64)
            total = labels.seconds[:, None] + seconds
            then = np.where(emitted >= size - t, 0.0, self.to_go[flat + emitted])
            good = total + then <= known
            for more in np.unique(emitted[good.any(axis=0)]):
                row, c = np.nonzero(good & (emitted == more))
                found = _Labels(total[row, c], after[row, c], numbers[row], which[c])
                waiting.setdefault(min(t + int(more), size), []).append(found)
        ends = waiting[size]
        best = min(ends, key=lambda f: float(f.seconds.min()))
        i = int(best.seconds.argmin())
        parent, taken = int(best.parent[i]), int(best.taken[i])
        steps = []
        while parent >= 0:
            before, k, position = history[parent]
            steps.append((int(trace.position[start]) + position, taken))
            parent, taken = before, k
        steps.reverse()
        return Least(float(best.seconds[i]), tuple(p for p, _ in steps), tuple(k for _, k in steps))
