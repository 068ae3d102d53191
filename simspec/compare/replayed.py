"""Every candidate replayed at every batch size, on every draw of prompts, in several processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import joblib
import numpy as np
from numpy.typing import NDArray

from simspec.compare.batches import Draws, batch_requests, request_starts
from simspec.compare.joint import Counted, anywhere, visited
from simspec.cost.models import CostModel
from simspec.replay.lockstep import price
from simspec.replay.trajectories import Trajectories, run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Static
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]
Candidate = tuple[Chain, int]
Progress = Callable[[str], None]

# Candidates are replayed in so many pieces: progress is shown after each, and processes share them.
PIECES = 16


@dataclass(frozen=True)
class Replayed:
    """One candidate.

    Attributes:
        seconds: seconds a token by (cost, draws, batch size), indices of what was asked for, shape (draws,).
        counted: its cycles by source of :mod:`simspec.compare.joint`.
    """

    seconds: dict[tuple[int, int, int], Floats]
    counted: dict[str, Counted]


def replay_all(
    trace: Trace,
    costs: list[CostModel],
    candidates: Sequence[Candidate],
    draws: list[Draws],
    batches: tuple[int, ...],
    jobs: int,
    progress: Progress | None,
) -> list[Replayed]:
    """One for each candidate, priced under the costs that know its models."""
    # Long and short drafts mixed, so that pieces take about as long as each other.
    pieces = [candidates[i::PIECES] for i in range(min(PIECES, len(candidates)))]
    work = (joblib.delayed(_piece)(trace, costs, piece, draws, batches) for piece in pieces)
    found: list[Replayed | None] = [None] * len(candidates)
    done = joblib.Parallel(n_jobs=jobs, return_as="generator")(work)
    for i, results in enumerate(done):
        found[i::PIECES] = results
        if progress:
            progress(
                f"replayed {min((i + 1) * len(candidates) // len(pieces), len(candidates))} of "
                f"{len(candidates)} chains x lengths"
            )
    return [f for f in found if f is not None]


def _piece(
    trace: Trace,
    costs: list[CostModel],
    candidates: Sequence[Candidate],
    draws: list[Draws],
    batches: tuple[int, ...],
) -> list[Replayed]:
    start = request_starts(trace)
    plans = {(d, b): _plan(drawn, b) for d, drawn in enumerate(draws) for b in batches if b > 1}
    counts = [drawn.counts() for drawn in draws]
    alone = np.arange(len(trace.prompts))[:, None]
    found = []
    for chain, length in candidates:
        which = [i for i, cost in enumerate(costs) if set(chain.levels) <= cost.models]
        priced = [costs[i] for i in which]
        seconds: dict[tuple[int, int, int], Floats] = {}
        runs = run(trace, chain, Static(length) if chain.drafter else None, start)
        lookup = chain.drafter is not None and trace.is_lookup(chain.drafter)
        for b in batches:
            if b == 1:  # alone, a prompt takes the same time in every draw
                for i, times in zip(which, price(runs, alone, priced, lookup=lookup), strict=True):
                    for d, c in enumerate(counts):
                        seconds[i, d, b] = (c @ times.seconds) / (c @ times.tokens)
                continue
            for d in range(len(draws)):
                seconds |= {
                    (i, d, b): s
                    for i, s in zip(which, _batched(runs, plans[d, b], priced, lookup), strict=True)
                }
        sources = {"visited": visited(trace, runs), "anywhere": anywhere(trace, chain, length)}
        found.append(Replayed(seconds, sources))
    return found


def _plan(draws: Draws, batch: int) -> tuple[Ints, Ints, Ints]:
    """Batches that differ, which of them each batch of each draw is, and whose draw that is.

    The order of requests in a batch does not matter to what it takes, and small batches come again.
    """
    requests, owner = batch_requests(draws, batch)
    different, which = np.unique(np.sort(requests, axis=1), axis=0, return_inverse=True)
    return different, which.reshape(-1), owner


def _batched(
    runs: Trajectories, plan: tuple[Ints, Ints, Ints], costs: list[CostModel], lookup: bool
) -> list[Floats]:
    different, which, owner = plan
    return [
        np.bincount(owner, weights=times.seconds[which]) / np.bincount(owner, weights=times.tokens[which])
        for times in price(runs, different, costs, lookup=lookup)
    ]
