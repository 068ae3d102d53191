"""What was decoded for real beside the same on the record: counts, and seconds a token by part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.compare.validation import Compared, Overhead
from simspec.cost.models import MeasuredCost
from simspec.cost.shape import StepShape
from simspec.record.decoded import Decoded
from simspec.replay.lockstep import price
from simspec.replay.trajectories import Trajectories
from simspec.speculation.schedulers import Schedule
from simspec.traces.index import Trace

Floats = NDArray[np.float64]


@dataclass
class Measured:
    """Repetitions of one configuration."""

    totals: list[float]
    forwards: list[float]
    choosing: list[float]
    packing: list[float]
    decoded: Decoded | None = None

    def add(self, done: Decoded) -> None:
        self.totals.append(done.seconds["total"])
        self.forwards.append(done.seconds["forward"])
        self.choosing.append(done.seconds["choosing"])
        self.packing.append(done.seconds["packing"])
        self.decoded = done


def features_of(done: Decoded) -> list[float]:
    """What :class:`Overhead` is a sum over: forwards, padded places, cycles, requests in cycles."""
    forwards = [f for f in done.forwards if f.cycle >= 0]
    return [
        float(len(forwards)),
        float(sum(f.rows * f.width for f in forwards)),
        float(1 + max(f.cycle for f in forwards)),
        float(sum(len(c) for c in done.cycles)),
    ]


class _Counting:
    """A cost that counts: ``one`` a forward of a network, or its padded places."""

    step_overhead_seconds = 0.0
    name = label = "counts"

    def __init__(self, lookups: set[str], *, places: bool) -> None:
        self.lookups, self.places = lookups, places
        self.models: frozenset[str] = frozenset()

    def forward_seconds(self, model: str, shape: StepShape) -> Floats:
        found = shape.rows * shape.width if self.places else np.ones(np.shape(shape.rows))
        return np.asarray(found * (model not in self.lookups), dtype=np.float64)


def compare(
    trace: Trace,
    schedule: Schedule,
    batch: int,
    measured: Measured,
    runs: Trajectories,
    groups: NDArray[np.int64],
    cost: MeasuredCost,
    overhead: Overhead,
    *,
    equal: bool,
) -> Compared:
    """One configuration; ``equal`` where the decoded prompts are those of ``runs``, in their order."""
    done = measured.decoded
    assert done is not None
    chain = schedule.chain
    lookup = chain.drafter is not None and trace.is_lookup(chain.drafter)
    lookups = {d for d in trace.drafters if trace.is_lookup(d)}
    forward, forwards, places = price(
        runs,
        groups,
        [cost, _Counting(lookups, places=False), _Counting(lookups, places=True)],
        lookup=lookup,
    )
    steps = runs.active[groups].any(axis=1).sum()
    rows = runs.active[groups].sum()
    beside = (
        overhead.forward * forwards.seconds.sum()
        + overhead.word * places.seconds.sum()
        + overhead.cycle * steps
        + overhead.row * rows
    )
    expected = float(forward.tokens.sum())
    tokens = float(sum(len(t) for t in done.texts))
    cycles = sum(len(c) for c in done.cycles)
    counts_equal = None
    if equal:
        counts_equal = all(
            len(cycles_of) == int(runs.active[r].sum())
            and all(
                (c.drafted, c.accepted, c.emitted)
                == (int(runs.drafted[r, i]), int(runs.accepted[r, i]), int(runs.emitted[r, i]))
                for i, c in enumerate(cycles_of)
            )
            for r, cycles_of in enumerate(done.cycles)
        )
    used = np.unique(groups)
    total = float(np.median(measured.totals))
    forward_total = float(np.median(measured.forwards))
    return Compared(
        chain=list(chain.levels),
        semantics=chain.semantics if chain.intermediates else "",
        draft_length=getattr(schedule.rule, "length", 0),
        batch=batch,
        prompts=len(done.texts),
        measured=total / tokens,
        spread=max(measured.totals) / min(measured.totals) - 1.0,
        predicted=float(forward.seconds.sum() + beside) / expected,
        measured_forward=forward_total / tokens,
        predicted_forward=float(forward.seconds.sum()) / expected,
        measured_overhead=(total - forward_total) / tokens,
        predicted_overhead=float(beside) / expected,
        choosing=float(np.median(measured.choosing)) / tokens,
        packing=float(np.median(measured.packing)) / tokens,
        measured_accepted=sum(c.accepted for cs in done.cycles for c in cs) / cycles,
        predicted_accepted=float(runs.accepted[used].sum() / runs.active[used].sum()),
        counts_equal=counts_equal,
    )
