"""The bound that schedulers are held against, at every batch size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from simspec.compare.batches import request_starts
from simspec.compare.route_batches import by_draw, plan
from simspec.compare.route_scores import Score
from simspec.cost.models import CostModel
from simspec.oracle.batched import bound_seconds, least_at_shares, sizes
from simspec.oracle.lagged import Follow, LaggedProgram
from simspec.replay.candidates import CandidateTable
from simspec.replay.routed import route
from simspec.traces.index import Ints

Floats = NDArray[np.float64]


def bound_scores(
    table: CandidateTable,
    cost: CostModel,
    batches: Sequence[int],
    parts: Sequence[Ints],
    draws: int,
    seed: int,
    jobs: int,
) -> dict[int, list[Score]]:
    """The bound by batch size, one score for each of ``parts`` of the prompts, within which batches stay.

    At batch 1 the program's schedule is replayed, so its score has choices in it; above there is no schedule.
    """
    trace = table.trace
    more = [b for b in batches if b > 1]
    plans = {(b, h): plan(trace, part, seed, b, draws) for b in more for h, part in enumerate(parts)}
    # Which requests a program is solved for, by size of the sets of requests whose shares are summed.
    asked: dict[tuple[int, int], list[Ints]] = {}
    for (batch, half), (_, requests, _) in plans.items():
        for rows in sizes(batch):
            asked.setdefault((rows, half), []).append(requests.ravel())
    # The largest take longest and go first.
    pieces = [(key, np.unique(np.concatenate(a))) for key, a in sorted(asked.items(), reverse=True)]
    work: list[Any] = [
        joblib.delayed(least_at_shares)(table, cost, rows, request_starts(trace)[some])
        for (rows, _), some in pieces
    ]
    if 1 in batches:
        work += [joblib.delayed(_reached)(table, cost, part, draws, seed) for part in parts]
    done = joblib.Parallel(n_jobs=jobs)(work)
    found: dict[int, list[Score]] = {1: done[len(pieces) :]} if 1 in batches else {}
    least = {key: np.full(2 * len(trace.prompts), np.nan) for key in asked}
    for (key, some), seconds in zip(pieces, done, strict=False):
        least[key][some] = seconds
    tokens = trace.remaining[request_starts(trace)].astype(np.float64)
    nothing = np.zeros(len(table.pool.candidates), dtype=np.int64)
    for (batch, half), (drawn, requests, owner) in plans.items():
        seconds = bound_seconds({rows: least[rows, half] for rows in sizes(batch)}, requests)
        found.setdefault(batch, []).append(
            Score(
                by_draw(drawn, requests, owner, seconds),
                by_draw(drawn, requests, owner, tokens[requests].sum(axis=1)),
                taken=nothing,
            )
        )
    return found


def _reached(table: CandidateTable, cost: CostModel, part: Ints, draws: int, seed: int) -> Score:
    """The program's seconds, and what its schedule does when it is replayed."""
    trace = table.trace
    program = LaggedProgram(table, cost)
    found = [program.least(int(trace.offsets[p])) for p in part]
    drawn, requests, owner = plan(trace, part, seed, 1, draws)
    laid_down = np.zeros(len(trace.tokens), dtype=np.int64)
    for p, least in zip(part, found, strict=True):
        laid_down[trace.offsets[p] + np.array(least.positions)] = least.candidates
    done = route(table, cost, Follow(laid_down), request_starts(trace)[requests])
    return Score(
        by_draw(drawn, requests, owner, np.array([f.seconds for f in found])),
        by_draw(drawn, requests, owner, done.tokens.astype(np.float64)),
        int(done.decisions.sum()),
        int(done.switches.sum()),
        float(done.catching_up.sum() / done.seconds.sum()),
        done.chosen,
    )
