"""Acceptance estimates held against realised acceptance, and how fast moving averages follow a change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.compare.asked import Asked, Progress
from simspec.compare.estimates import realised as blocks
from simspec.compare.estimates.errors import Cell, cells
from simspec.compare.estimates.moving import Order, Requests, before_each, held_against, orders
from simspec.compare.estimates.similarity import Pair, along_text, by_prompt
from simspec.compare.estimates.sources import SOURCES, alphas, fit
from simspec.compare.parts import Part, parts
from simspec.compare.specrouter.estimate_changes import WEIGHTS, load_changes, task_changes
from simspec.cost.models import CostModel
from simspec.metrics import estimate
from simspec.traces.index import Trace

Floats = NDArray[np.float64]

# Of the latest request: in the source simscore-ema, and of what moves in the calibration plot.
EMA_WEIGHT = 0.1
# Bins of the calibration plot, and orders that requests come in.
BINS, ORDERS = 10, 20
MOVING = ("simscore", "logistic", "realised")


def study(trace: Trace, costs: list[CostModel], asked: Asked, say: Progress) -> dict[str, Any]:
    """Estimates fitted on one half of the prompts and scored on the other, both ways and summed.

    Returns:
        ``prompts`` (of each task), ``longest`` (drafts of a block that count), ``ema_weight``;
        ``errors[]`` = {source, by (all, task, position in the block, time), cell, tried, accepted_share,
        bias, absolute (mean |estimate - share| over pairs, weighted by drafts), each with ``_interval``};
        ``by_pair[]`` = {source, drafter, verifier, half, estimated, realised, realised_interval};
        ``moving.<order>.<source>.<weight>`` = {bias, rms, gain (rms of weight 0 - rms), the last two with
        ``_interval``}: an average by request, before each request, against what that request realised;
        ``bins.<source>[]`` = {entries, estimated, realised, realised_interval} of the same in mixed order;
        ``task_changes`` = {streams, together (requests of the clock batch), pairs, changes, draws,
        ``measures.<simscore|realised>.<text|batch|request>``} and ``load_changes.<cost>`` = {streams,
        forwards, models, loads (rows), repetitions (fewest, most), ``measures.seconds.forward``}, where each
        measure and clock = {apart, noise (root mean squares), steps, ``weights.<weight>`` as
        :func:`~simspec.compare.estimates.changes.followed`, ``stretches.<steps>`` = {best (weight of least
        error), best_share (of draws that agree), expected (of least expected error), ``weights.<weight>`` =
        {error, expected}}}; steps, bias, shake and error with ``_interval``, over draws of prompts (null for
        loads). Seconds are relative to their mean after the change.
    """
    longest = max(asked.lengths)
    halves = parts(trace, asked.draws, asked.seed, split=True)
    rates = [alphas(trace, p.fit, longest, SOURCES, EMA_WEIGHT) for p in halves]
    pairs = list(rates[0][SOURCES[0]])
    stacked = [{s: np.stack([r[s][p] for p in pairs], axis=1) for s in SOURCES} for r in rates]
    document: dict[str, Any] = {
        "prompts": trace.prompts["category"].value_counts(sort=False).to_dict(),
        "longest": longest,
        "ema_weight": EMA_WEIGHT,
        "errors": _errors(trace, halves, stacked, longest),
        "by_pair": _by_pair(trace, halves, stacked, pairs, longest),
    }
    say("held estimates against the other half's drafts")
    document |= _moving(trace, halves, pairs, longest, asked.seed)
    say("moved estimates request by request")
    document["task_changes"] = task_changes(trace, asked)
    say("changed tasks in mid-stream")
    measured = {str(d) for d in trace.latency["dtype"].unique()}
    document["load_changes"] = {
        cost.name: load_changes(trace, cost.name, asked.seed) for cost in costs if cost.name in measured
    }
    return document


def _with_interval(name: str, values: Floats) -> dict[str, Any]:
    found = estimate(float(values[0]), values[1:])
    return {name: found.value, f"{name}_interval": [found.low, found.high]}


def _errors(
    trace: Trace, halves: list[Part], rates: list[dict[str, Floats]], longest: int
) -> list[dict[str, Any]]:
    counts = [p.score.counts() for p in halves]
    every = list(cells(trace, longest))
    # Tasks part the prompts, so their sums are those of everything.
    whole = [c for c in every if c.by == "task"]
    good, tried = (np.sum([getattr(c, n) for c in whole], axis=0) for n in ("good", "tried"))
    found = []
    for cell in [Cell("all", "all", good, tried), *every]:
        for source in SOURCES:
            gap, absolute, kept, sums = np.sum(
                [cell.gaps(r[source], c) for r, c in zip(rates, counts, strict=True)], axis=0
            )
            if sums[0]:
                with np.errstate(invalid="ignore"):
                    shares = {"accepted_share": kept / sums, "bias": gap / sums, "absolute": absolute / sums}
                told = {"source": source, "by": cell.by, "cell": cell.name, "tried": int(sums[0])}
                for name, values in shares.items():
                    told |= _with_interval(name, values)
                found.append(told)
    return found


def _by_pair(
    trace: Trace, halves: list[Part], rates: list[dict[str, Floats]], pairs: list[Pair], longest: int
) -> list[dict[str, Any]]:
    truth = [blocks.realised(trace, part.score.counts(), longest) for part in halves]
    return [
        {
            "source": source,
            "drafter": drafter,
            "verifier": verifier,
            "half": half + 1,
            "estimated": float(mine[source][0, k]),
            **_with_interval("realised", truth[half][drafter, verifier]),
        }
        for half, mine in enumerate(rates)
        for k, (drafter, verifier) in enumerate(pairs)
        for source in SOURCES
    ]


def _moving(trace: Trace, halves: list[Part], pairs: list[Pair], longest: int, seed: int) -> dict[str, Any]:
    """Only scored prompts are drawn again: starts and maps stay those of all prompts of the other half."""
    counted = blocks.by_prompt(trace, longest)
    good, tried = (np.stack([counted[p][i] for p in pairs]) for i in (0, 1))
    share = np.divide(good, tried, out=np.full_like(good, np.nan), where=tried > 0)
    size = trace.prompts["output_tokens"].to_numpy().astype(np.float64)
    overlap = along_text(trace, "overlap")
    score = np.stack([by_prompt(trace, overlap[p]) for p in pairs]) / size
    # Halves share no prompt, so their draws add up.
    counts = np.sum([p.score.counts() for p in halves], axis=0)

    def gathered(source: str, order: Order, weight: float) -> Requests:
        total = None
        for part in halves:
            taught = part.fit.counts()[0]
            rows = orders(trace, np.sort(part.score.prompts[0]), order, ORDERS, seed)
            if source == "realised":
                start = (good @ taught) / np.maximum(tried @ taught, 1.0)
                said = before_each(share, rows, start, weight)
            else:
                start = score @ (size * taught) / (size @ taught)
                said = before_each(score, rows, start, weight)
            mapped = fit(trace, source, part.fit.prompts[0], longest) if source == "logistic" else None
            mine = held_against(said, rows, good, tried, mapped)
            total = mine if total is None else total.plus(mine)
        assert total is not None
        return total

    found: dict[str, Any] = {"moving": {}, "bins": {}}
    kinds: tuple[Order, ...] = ("mixed", "task after task")
    for order in kinds:
        for source in MOVING:
            told: dict[str, Any] = {}
            fixed: Floats | None = None
            for weight in (0.0, *WEIGHTS):
                mine = gathered(source, order, weight)
                bias, rms = mine.errors(counts)
                fixed = rms if fixed is None else fixed
                told[f"{weight:g}"] = {
                    "bias": float(bias[0]),
                    **_with_interval("rms", rms),
                    **_with_interval("gain", fixed - rms),
                }
                if order == "mixed" and weight == EMA_WEIGHT:
                    found["bins"][source] = [
                        {"entries": many, "estimated": mean, **_with_interval("realised", shares)}
                        for many, mean, shares in mine.bins(counts, BINS)
                    ]
            found["moving"].setdefault(order, {})[source] = told
    return found
