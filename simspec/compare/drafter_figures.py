"""The few figures that a drafter is chosen by: acceptance, tokens a pass, calibration, cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.compare.calibration import calibrate, drafts
from simspec.traces.index import Trace

DEPTHS = (1, 2, 4, 8, 16)
LENGTHS = (4, 8, 16)

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class DrafterFigures:
    """Of one drafter before the target, on the texts of one category or (``all``) of all; by greedy decoding.

    Attributes:
        starts: positions of those texts.
        survival: of the starts with d tokens of text left, the share whose first d drafts are all accepted,
            by d; a block that is too short does not get there. None where no text goes on that far.
        emitted: tokens that a pass of the target gives where every cycle drafts that many, by length, the
            target's own token included: whole texts from their first token, at batch 1. None where blocks
            are recorded to fewer.
        ece: expected calibration error of the drafts at place d whose predecessors were accepted, by d; None
            where there is no such draft, and for a look-up.
    """

    drafter: str
    category: str
    starts: int
    survival: dict[int, float | None]
    emitted: dict[int, float | None]
    ece: dict[int, float | None]


@dataclass(frozen=True)
class CostRatio:
    """Median seconds of a drafter's forward over those of the target's forward of one token a request.

    Attributes:
        new_tokens: a request's, in the drafter's forward: 1, or of a block-parallel drafter a whole block
            (the measured width nearest to it).
    """

    drafter: str
    dtype: str
    batch: int
    context: int
    new_tokens: int
    ratio: float


def drafter_figures(trace: Trace) -> list[DrafterFigures]:
    """Every drafter on all texts and, where they are of several categories, on each category's."""
    category = trace.prompts["category"].to_numpy()[trace.prompt]
    names = sorted(set(category))
    groups = {"all": np.ones(len(category), dtype=bool)}
    if len(names) > 1:
        groups |= {name: category == name for name in names}
    return [
        _figures(trace, drafter, name, mine) for drafter in trace.drafters for name, mine in groups.items()
    ]


def _figures(trace: Trace, drafter: str, category: str, mine: Flags) -> DrafterFigures:
    index = trace.drafters[drafter]
    left, run, deepest = trace.remaining[mine], index.matched[mine], index.confidence.shape[1]
    survival, ece = {}, {}
    tried = None if trace.is_lookup(drafter) else drafts(trace, drafter, mine)
    for depth in DEPTHS:
        able = left >= depth
        known = bool(able.any()) and depth <= deepest
        survival[depth] = float((run[able] >= depth).mean()) if known else None
        here = None if tried is None else tried.place == depth - 1
        ece[depth] = (
            calibrate(tried.confidence[here], tried.accepted[here]).expected_error
            if tried is not None and here is not None and here.any()
            else None
        )
    emitted = {n: _emitted(trace, index.matched, mine, n) if n <= deepest else None for n in LENGTHS}
    return DrafterFigures(drafter, category, int(mine.sum()), survival, emitted, ece)


def _emitted(trace: Trace, matched: NDArray[np.int64], mine: Flags, length: int) -> float:
    """Tokens over cycles; a cycle that reaches a text's end gives what is left of it."""
    onwards = np.arange(len(matched)) + np.minimum(matched, length) + 1
    tokens = cycles = 0
    for first, last in zip(trace.offsets[:-1], trace.offsets[1:], strict=True):
        if not mine[first]:
            continue
        at = int(first)
        while at < last and trace.remaining[at]:
            at, cycles = int(onwards[at]), cycles + 1
        tokens += int((trace.remaining[first:last] > 0).sum())
    return tokens / cycles


def cost_ratios(trace: Trace) -> list[CostRatio]:
    """By number format, batch and context; a drafter or width that was not timed is left out."""
    medians = trace.latency.groupby(["model", "dtype", "batch", "context", "new_tokens"])["seconds"].median()
    cells = medians.reset_index()
    found = []
    for drafter in trace.drafters:
        if trace.is_lookup(drafter):
            continue
        width = trace.tokens_a_forward(drafter)
        own = cells[cells["model"] == drafter]
        key: Any
        for key, rows in own.groupby(["dtype", "batch", "context"]):
            dtype, batch, context = key
            step = cells[
                (cells["model"] == trace.target)
                & (cells["dtype"] == dtype)
                & (cells["batch"] == batch)
                & (cells["context"] == context)
                & (cells["new_tokens"] == 1)
            ]
            near = rows.iloc[(np.log(rows["new_tokens"] / width)).abs().argmin()]
            if len(step) and (width > 1 or near["new_tokens"] == 1):
                ratio = float(near["seconds"] / step["seconds"].iloc[0])
                found.append(
                    CostRatio(drafter, dtype, int(batch), int(context), int(near["new_tokens"]), ratio)
                )
    return found
