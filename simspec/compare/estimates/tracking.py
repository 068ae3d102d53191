"""Exponential moving averages: how fast they follow a change, and how much they shake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from simspec.streams import stream
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]
Clock = Literal["text", "request", "batch"]


def ema(values: Floats, weight: float, start: Floats | float | None = None) -> Floats:
    """m_t = (1 - weight) m_{t-1} + weight x_t along the last axis, shape as ``values``.

    ``start`` is m_{-1}; without it the first value is taken as it is.
    """
    if not 0.0 < weight <= 1.0:
        raise ValueError(f"weight must be above 0 and at most 1, not {weight}")
    before = values[..., 0] if start is None else np.broadcast_to(start, values.shape[:-1])
    state = (1.0 - weight) * np.asarray(before, dtype=np.float64)[..., None]
    return np.asarray(lfilter([weight], [1.0, weight - 1.0], values, axis=-1, zi=state)[0])


def observed(trace: Trace, values: Floats, prompts: Sequence[int], clock: Clock, batch: int = 1) -> Floats:
    """What an average is fed, in order, from one measure along the texts of ``prompts``.

    Args:
        values: one for each flat position, shape (N,).
        clock: "text": position by position, one text after another; "request": each text's mean; "batch":
            ``batch`` texts in lock-step, at each position the mean over those that go on that far.
    """
    texts = [values[trace.offsets[p] : trace.offsets[p + 1]] for p in prompts]
    if clock == "text":
        return np.concatenate(texts)
    if clock == "request":
        return np.array([text.mean() for text in texts])
    steps = []
    for k in range(0, len(texts), batch):
        group = texts[k : k + batch]
        together = np.full((len(group), max(map(len, group))), np.nan)
        for row, text in zip(together, group, strict=True):
            row[: len(text)] = text
        steps.append(np.nanmean(together, axis=0))
    return np.concatenate(steps)


def steps_to(share: float, weight: float) -> int:
    """Observations after a change until an EMA has come ``share`` of the way, on average.

    After n of them it has come 1 - (1 - weight)^n, so n = ceil(ln(1 - share) / ln(1 - weight)).
    """
    return 1 if weight == 1.0 else int(np.ceil(np.log1p(-share) / np.log1p(-weight) - 1e-12))


def first_at(come: Floats, share: float) -> int | None:
    """Observations until the share of the way that an average has come is ``share``; None if it never is."""
    there = np.flatnonzero(come >= share - 1e-9)
    return int(there[0]) + 1 if len(there) else None


@dataclass(frozen=True)
class Tracked:
    """An EMA over streams whose mean changes from ``before`` to ``after`` at one step.

    Attributes:
        mean, deviation: over the streams, at each observation after the change, shape (steps,).
        to_half, to_most: observations until the mean of all has come half and 90% of the way; None if never.
        bias: mean - after over the last quarter of the steps.
        shake: standard deviation there.
    """

    before: float
    after: float
    mean: Floats
    deviation: Floats
    to_half: int | None
    to_most: int | None
    bias: float
    shake: float

    def square_error(self, steps: int) -> float:
        """Mean of (average - after)^2 over streams and the first ``steps`` of them: bias^2 + variance."""
        return float(((self.mean - self.after) ** 2 + self.deviation**2)[:steps].mean())

    def as_json(self) -> dict[str, Any]:
        """Keys: before, after, steps_to_half, steps_to_90, bias, shake, mean[], deviation[]."""
        return {
            "before": self.before,
            "after": self.after,
            "steps_to_half": self.to_half,
            "steps_to_90": self.to_most,
            "bias": self.bias,
            "shake": self.shake,
            "mean": self.mean.tolist(),
            "deviation": self.deviation.tolist(),
        }


def track(before: Floats, after: Floats, weight: float) -> Tracked:
    """Run an EMA through ``before`` and on through ``after``: observations, (streams, steps) each."""
    path = ema(np.concatenate([before, after], axis=1), weight)[:, before.shape[1] :]
    mean = path.mean(axis=0)
    old, new = float(before.mean()), float(after.mean())
    come = (mean - old) / (new - old) if new != old else np.zeros_like(mean)
    last = slice(-max(1, len(mean) // 4), None)
    return Tracked(
        before=old,
        after=new,
        mean=mean,
        deviation=path.std(axis=0),
        to_half=first_at(come, 0.5),
        to_most=first_at(come, 0.9),
        bias=float(mean[last].mean() - new),
        shake=float(np.sqrt((path[:, last] ** 2).mean() - path[:, last].mean() ** 2)),
    )


def spliced(
    trace: Trace,
    values: Floats,
    tasks: tuple[str, str],
    clock: Clock,
    streams: int,
    seed: int,
    batch: int = 1,
    among: Ints | None = None,
) -> tuple[Floats, Floats]:
    """Streams of texts of one task, then of another: a change of task in mid-stream.

    Each stream takes half of either task's prompts, in an order of its own, and all are cut to the length of
    the shortest.

    Args:
        among: the prompts that there are, some perhaps several times; by default all once.

    Returns:
        observations before and after the change, shape (streams, steps) each.
    """
    generator = stream(seed, "splices", *tasks)
    category = trace.prompts["category"].to_numpy()
    sides = []
    every = np.arange(len(category)) if among is None else among
    for task in tasks:
        prompts = every[category[every] == task]
        half = max(1, len(prompts) // 2)
        drawn = [generator.permutation(prompts)[:half].tolist() for _ in range(streams)]
        rows = [observed(trace, values, d, clock, batch) for d in drawn]
        steps = min(map(len, rows))
        sides.append(np.stack([row[:steps] for row in rows]))
    return sides[0], sides[1]


def loaded(
    seconds: dict[int, Floats], batches: tuple[int, int], steps: int, streams: int, seed: int
) -> tuple[Floats, Floats]:
    """Streams of one forward's seconds at one batch size, then at another: a change of load in mid-stream.

    Args:
        seconds: measured repetitions by batch size; drawn from at random, which has no drift.

    Returns:
        observations before and after the change, shape (streams, steps) each.
    """
    generator = stream(seed, "load", *batches)
    before, after = (generator.choice(seconds[b], size=(streams, steps)) for b in batches)
    return before, after


def repetitions(trace: Trace, model: str, dtype: str, new_tokens: int) -> dict[int, Floats]:
    """Measured seconds of a model's forward of one width at its least context, by batch size."""
    rows = trace.latency
    rows = rows[(rows["model"] == model) & (rows["dtype"] == dtype) & (rows["new_tokens"] == new_tokens)]
    rows = rows[rows["context"] == rows["context"].min()]
    return {int(b): r["seconds"].to_numpy().astype(np.float64) for b, r in rows.groupby("batch")}
