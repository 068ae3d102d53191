"""What is in a trace."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from simspec.compare.estimates import similarity
from simspec.cost.models import leave_one_out
from simspec.metrics import Estimate, wilson
from simspec.traces.drafters import DrafterIndex
from simspec.traces.index import Trace

POSITIONS = (*range(1, 9), 12, 16, 24)
RATIO_WIDTHS = (2, 4, 8, 16)
CELL = ["model", "device", "dtype", "batch", "new_tokens", "context"]


@dataclass(frozen=True)
class PositionAcceptance:
    """Acceptance by the target of the draft at one position of the block, counted from 1.

    Only starts count whose block has such a position and whose text goes on that far.

    Attributes:
        drafts: how many such starts there are.
        survival: share of them where this draft and all before it are accepted.
        chances: how many of them had all earlier drafts accepted.
        conditional: share of the chances where this draft is accepted too.
    """

    position: int
    drafts: int
    survival: Estimate
    chances: int
    conditional: Estimate


@dataclass(frozen=True)
class Acceptance:
    """How the target takes one drafter's blocks, over every start of every text.

    Intervals are 95% Wilson intervals, which take starts for independent; neighbouring starts
    share much of their blocks, so the true uncertainty is larger.

    Attributes:
        empty_share: share of starts where the block is empty.
        mean_accepted_run: accepted drafts a start, in tokens, an empty block counting 0.
        uncut_share: share of all starts where the target cuts nothing before block or text ends:
            there the run might have gone on.
        confidence_auroc: chance that an accepted draft had more confidence than a refused one
            (ties count half), over drafts whose predecessors were accepted; null for a look-up
            and where all or none were accepted.
    """

    drafter: str
    starts: int
    empty_share: float
    mean_accepted_run: float
    uncut_share: float
    confidence_auroc: float | None
    positions: tuple[PositionAcceptance, ...]


@dataclass(frozen=True)
class PairSimilarity:
    """SimScore = 1 - mean TV (Eq. 5 of arXiv 2505.07680) and argmax agreement along the texts.

    Where a look-up has no block nothing overlaps or agrees: ``recorded`` of ``positions``
    places have a distribution of both models.
    """

    model_a: str
    model_b: str
    simscore: float
    argmax_agreement: float
    recorded: int
    positions: int


@dataclass(frozen=True)
class WidthCurve:
    """Median seconds at batch 1: a forward of one token, and wider ones relative to it.

    ``ratios`` has the measured widths nearest to 2, 4, 8 and 16; null where the single-token
    forward was not measured at batch 1.
    """

    model: str
    device: str
    dtype: str
    context: int
    step_seconds: float | None
    ratios: dict[int, float | None]


@dataclass(frozen=True)
class TableError:
    """Relative leave-one-out error of a model's latency table; null without interior points."""

    model: str
    dtype: str
    median: float | None
    p90: float | None


def acceptance(
    drafter: str, index: DrafterIndex, remaining: NDArray[np.int64], lookup: bool = False
) -> Acceptance:
    """Acceptance of one drafter's blocks by the target.

    Args:
        index: the drafter's blocks from N starts.
        remaining: tokens of text from each start to its end, shape (N,).
        lookup: whether its confidence is certain by form, so that it orders nothing.
    """
    offered = np.minimum(index.length, remaining)
    run = np.minimum(index.matched, offered)
    depth = index.confidence.shape[1]
    positions = []
    for j in (p for p in POSITIONS if p <= depth):
        has = offered >= j
        drafts, chances = int(has.sum()), int((has & (run >= j - 1)).sum())
        good = int((has & (run >= j)).sum())
        positions.append(PositionAcceptance(j, drafts, wilson(good, drafts), chances, wilson(good, chances)))
    place = np.arange(depth)[None]
    tried = (place < offered[:, None]) & (place <= run[:, None])
    good_draft = place < run[:, None]
    return Acceptance(
        drafter=drafter,
        starts=len(run),
        empty_share=float((index.length == 0).mean()),
        mean_accepted_run=float(run.mean()),
        uncut_share=float(((run == offered) & (index.length > 0)).mean()),
        confidence_auroc=None
        if lookup
        else auroc(
            index.confidence[tried].astype(np.float64),
            np.broadcast_to(good_draft, tried.shape)[tried],
        ),
        positions=tuple(positions),
    )


def auroc(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> float | None:
    """Area under the ROC curve by ranks, ties counting half; None when a label is missing."""
    good = int(labels.sum())
    bad = len(labels) - good
    if not good or not bad:
        return None
    ranks = stats.rankdata(scores)
    return float((ranks[labels].sum() - good * (good + 1) / 2) / (good * bad))


def pair_similarities(trace: Trace) -> list[PairSimilarity]:
    """Every pair of models that the trace has, in its own order."""
    scores = similarity(trace, np.ones((1, len(trace.prompts))))
    positions = len(trace.tokens)
    found = []
    pair: Any
    for pair, rows in trace.pairs.groupby(["model_a", "model_b"], sort=False):
        agrees = float(rows["argmax_agree"].sum() / positions)
        model_a, model_b = pair
        score = float(scores[model_a, model_b][0])
        found.append(PairSimilarity(model_a, model_b, score, agrees, len(rows), positions))
    return found


def width_curves(latency: pd.DataFrame) -> list[WidthCurve]:
    """What wider forwards cost at batch 1, for each model, device, dtype and context measured."""
    curves = []
    single = latency[latency["batch"] == 1]
    key: Any
    for key, rows in single.groupby(["model", "device", "dtype", "context"], sort=False):
        model, device, dtype, context = key
        medians = rows.groupby("new_tokens")["seconds"].median()
        step = float(medians[1]) if 1 in medians.index else None
        measured = [int(n) for n in medians.index if n > 1]
        near = {_nearest(measured, width) for width in RATIO_WIDTHS} if measured else set()
        ratios = {n: float(medians[n]) / step if step else None for n in sorted(near)}
        curves.append(WidthCurve(model, device, dtype, int(context), step, ratios))
    return curves


def _nearest(measured: list[int], width: int) -> int:
    return min(measured, key=lambda n: (abs(math.log(n / width)), n))


def latency_grid(latency: pd.DataFrame) -> dict[str, Any]:
    """Batches, new tokens and contexts measured, and the repetitions a cell has."""
    cells = latency.groupby(CELL).size()
    return {
        "rows": len(latency),
        "cells": len(cells),
        **{
            name: sorted({int(v) for v in latency[column]})
            for name, column in (("batches", "batch"), ("new_tokens", "new_tokens"), ("contexts", "context"))
        },
        "repetitions_least": int(cells.min()) if len(cells) else None,
        "repetitions_most": int(cells.max()) if len(cells) else None,
    }


def table_errors(latency: pd.DataFrame) -> list[TableError]:
    """Leave-one-out error by number format and model, look-ups left out.

    Raises:
        BadInput: when a model's grid has holes.
    """
    errors = []
    for dtype in sorted(set(latency["dtype"]) - {"none"}):
        found = leave_one_out(latency, dtype)
        for model in sorted(set(latency[latency["dtype"] == dtype]["model"])):
            error = found.get(model)
            errors.append(
                TableError(model, dtype, error.median, error.p90)
                if error
                else TableError(model, dtype, None, None)
            )
    return errors
