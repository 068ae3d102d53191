"""Halves of the prompts, their batches and draws, and every static candidate timed on them."""

from __future__ import annotations

from collections.abc import Sequence

import joblib
import numpy as np
from numpy.typing import NDArray

from simspec.compare.batches import Draws, batch_requests, draw_prompts, request_starts
from simspec.cost.models import CostModel
from simspec.replay.candidates import CandidateTable
from simspec.replay.lockstep import price
from simspec.replay.trajectories import run
from simspec.speculation.lengths import Static
from simspec.speculation.routing import Candidate
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]
Halves = Sequence[tuple[Ints, Ints]]


def halves(trace: Trace) -> list[tuple[Ints, Ints]]:
    """Prompts to score and prompts to tune on, twice; a single prompt is its own other half."""
    even, odd = np.arange(0, len(trace.prompts), 2), np.arange(1, len(trace.prompts), 2)
    return [(even, odd), (odd, even)] if len(odd) else [(even, even)]


def plan(trace: Trace, part: Ints, seed: int, batch: int, draws: int) -> tuple[Draws, Ints, Ints]:
    """Draws of a half, and its batches with the draw of each; alone, every prompt once and no draw."""
    drawn = draw_prompts(trace, draws, seed, among=part)
    if batch == 1:  # alone, a prompt takes the same time in every draw
        return drawn, part[:, None], np.zeros(0, dtype=np.int64)
    requests, owner = batch_requests(drawn, batch)
    return drawn, requests, owner


def by_draw(drawn: Draws, requests: Ints, owner: Ints, values: Floats) -> Floats:
    if len(owner):
        return np.asarray(np.bincount(owner, weights=values))
    every = np.zeros(drawn.total)
    every[requests[:, 0]] = values
    return np.asarray(drawn.counts() @ every)


def static_seconds(
    table: CandidateTable,
    cost: CostModel,
    batches: Sequence[int],
    seed: int,
    parts: Halves,
    jobs: int,
) -> dict[int, list[Floats]]:
    """Seconds a token of each candidate for ever, on each half's prompts once: by batch, (K,) a half."""
    count = len(table.pool.candidates)
    pieces = [range(i, count, 8) for i in range(min(8, count))]
    done = joblib.Parallel(n_jobs=jobs)(
        joblib.delayed(_static_piece)(
            table.trace, cost, batches, seed, parts, [table.pool.candidates[k] for k in p]
        )
        for p in pieces
    )
    out = {b: [np.empty(count) for _ in parts] for b in batches}
    for piece, found in zip(pieces, done, strict=True):
        for (b, h), values in found.items():
            out[b][h][list(piece)] = values
    return out


def _static_piece(
    trace: Trace,
    cost: CostModel,
    batches: Sequence[int],
    seed: int,
    parts: Halves,
    candidates: Sequence[Candidate],
) -> dict[tuple[int, int], Floats]:
    start = request_starts(trace)
    plans = {(b, h): plan(trace, part, seed, b, 0)[1] for b in batches for h, (part, _) in enumerate(parts)}
    found = {key: np.empty(len(candidates)) for key in plans}
    for i, (chain, length) in enumerate(candidates):
        runs = run(trace, chain, Static(length) if length else None, start)
        lookup = chain.drafter is not None and trace.is_lookup(chain.drafter)
        for key, requests in plans.items():
            times = price(runs, requests, [cost], lookup=lookup)[0]
            found[key][i] = times.seconds.sum() / times.tokens.sum()
    return found
