"""What was decoded for real beside the same on the record: counts, and seconds a token by part."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from simspec.compare.validated import CostWithOverhead
from simspec.compare.validation import Compared
from simspec.cost.models import MeasuredCost
from simspec.cost.shape import uniform
from simspec.record.decoded import Decoded
from simspec.replay.lockstep import price
from simspec.replay.trajectories import Trajectories
from simspec.speculation.schedulers import Schedule
from simspec.traces.index import Trace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Unit(msgspec.Struct, frozen=True):
    """One batch, decoded by one configuration.

    Attributes:
        seconds: of everything after the prompts, of forwards alone, choosing and packing.
        counts_equal: whether every cycle is the replayed one.
        features: what :class:`~simspec.compare.validation.Overhead` is a sum over.
        forwards: by model, of each forward (rows, width, context, slots, seconds).
    """

    seconds: dict[str, float]
    tokens: int
    cycles: int
    accepted: int
    counts_equal: bool
    features: list[float]
    forwards: dict[str, list[tuple[int, int, int, int, float]]]


def unit_of(done: Decoded, runs: Trajectories, requests: Ints) -> Unit:
    """What is kept of a batch; ``requests`` are its rows of ``runs``, in its order."""
    equal = all(
        len(cycles) == int(runs.active[r].sum())
        and all(
            (c.drafted, c.accepted, c.emitted)
            == (int(runs.drafted[r, i]), int(runs.accepted[r, i]), int(runs.emitted[r, i]))
            for i, c in enumerate(cycles)
        )
        for r, cycles in zip(requests, done.cycles, strict=True)
    )
    ran = [f for f in done.forwards if f.cycle >= 0]
    return Unit(
        seconds={k: done.seconds[k] for k in ("total", "forward", "choosing", "packing")},
        tokens=sum(len(t) for t in done.texts),
        cycles=sum(len(c) for c in done.cycles),
        accepted=sum(c.accepted for cs in done.cycles for c in cs),
        counts_equal=equal,
        features=features_of(done),
        forwards={
            model: [
                (f.rows, f.width, f.context, f.slots, round(f.seconds, 7)) for f in ran if f.model == model
            ]
            for model in sorted({f.model for f in ran})
        },
    )


def features_of(done: Decoded) -> list[float]:
    """What :class:`~simspec.compare.validation.Overhead` is a sum over: forwards, padded places, cycles,
    requests in cycles."""
    forwards = [f for f in done.forwards if f.cycle >= 0]
    return [
        float(len(forwards)),
        float(sum(f.rows * f.width for f in forwards)),
        float(1 + max(f.cycle for f in forwards)),
        float(sum(len(c) for c in done.cycles)),
    ]


def compare(
    trace: Trace,
    schedule: Schedule,
    units: Sequence[Unit],
    rounds: Ints,
    runs: Trajectories,
    groups: Ints,
    cost: CostWithOverhead,
    *,
    same: bool,
) -> Compared:
    """One configuration at one batch size.

    Args:
        rounds: which round each unit belongs to, shape (units,).
        groups: requests of ``runs`` to simulate, shape (batches, B): those of the units, in their order, if
            ``same``.
    """
    chain = schedule.chain
    lookup = chain.drafter is not None and trace.is_lookup(chain.drafter)
    forward, whole = price(runs, groups, [cost.cost, cost], lookup=lookup)
    expected = float(forward.tokens.sum())
    seconds = {k: np.array([u.seconds[k] for u in units]) for k in units[0].seconds}
    tokens = np.array([u.tokens for u in units], dtype=np.float64)
    per_round = np.bincount(rounds, weights=seconds["total"]) / np.bincount(rounds, weights=tokens)
    measured = {k: float(v.sum() / tokens.sum()) for k, v in seconds.items()}
    ran, by_tokens, by_slots = _priced(units, cost.cost)
    predicted, predicted_forward = (float(t.seconds.sum()) / expected for t in (whole, forward))
    used = np.unique(groups)
    return Compared(
        chain=list(chain.levels),
        semantics=chain.semantics if chain.intermediates else "",
        draft_length=getattr(schedule.rule, "length", 0),
        batch=groups.shape[1],
        prompts=len(used),
        measured=measured["total"],
        spread=float(per_round.max() / per_round.min() - 1.0),
        predicted=predicted,
        measured_forward=measured["forward"],
        predicted_forward=predicted_forward,
        measured_overhead=measured["total"] - measured["forward"],
        predicted_overhead=predicted - predicted_forward,
        choosing=measured["choosing"],
        packing=measured["packing"],
        measured_accepted=sum(u.accepted for u in units) / sum(u.cycles for u in units),
        predicted_accepted=float(runs.accepted[used].sum() / runs.active[used].sum()),
        counts_equal=all(u.counts_equal for u in units) if same else None,
        unit_seconds=seconds["total"].tolist(),
        unit_tokens=tokens.astype(int).tolist(),
        priced_by_tokens=sum(by_tokens.values()) / float(tokens.sum()),
        priced_by_slots=sum(by_slots.values()) / float(tokens.sum()),
        table_by_tokens={m: ran[m] / by_tokens[m] for m in ran},
    )


def _priced(
    units: Sequence[Unit], cost: MeasuredCost
) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Seconds of the forwards that ran, by model: measured, priced at their tokens, and at their slots."""
    measured: dict[str, float] = {}
    by_tokens: dict[str, float] = {}
    by_slots: dict[str, float] = {}
    for model in sorted({m for u in units for m in u.forwards}):
        ran = np.array([f for u in units for f in u.forwards.get(model, [])])
        rows, width, context, slots = (ran[:, i].astype(np.int64) for i in range(4))
        measured[model] = float(ran[:, 4].sum())
        for into, held in ((by_tokens, context), (by_slots, slots)):
            into[model] = float(cost.forward_seconds(model, uniform(rows, width, held)).sum())
    return measured, by_tokens, by_slots
