"""How fast moving averages follow a change of task or of load in mid-stream, and which weight errs least."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import joblib
import numpy as np

from simspec.compare.asked import Asked
from simspec.compare.batches import draw_prompts
from simspec.compare.estimates import realised as blocks
from simspec.compare.estimates.changes import Change, expected_error, followed, stretch_error
from simspec.compare.estimates.similarity import along_text
from simspec.compare.estimates.tracking import Clock, loaded, repetitions, spliced
from simspec.metrics import INTERVAL
from simspec.traces.index import Ints, Trace

WEIGHTS = (0.02, 0.05, 0.1, 0.2, 0.5)
# Streams across a change, and requests in lock-step for the clock "batch".
STREAMS, TOGETHER = 40, 4
CLOCKS: tuple[Clock, ...] = ("text", "batch", "request")
# Observations after a change over which errors are summed, by clock.
STRETCHES: dict[Clock, tuple[int, ...]] = {
    "text": (8, 16, 32, 64, 128, 256, 512),
    "batch": (8, 16, 32, 64, 128),
    "request": (1, 2, 4, 6),
}
# Draws of prompts at most: each makes all streams anew.
DRAWS = 40
# Forwards before and after a change of load; it goes from the fewest rows to the most up to these.
FORWARDS, MOST_ROWS = 256, 16


def task_changes(trace: Trace, asked: Asked) -> dict[str, Any]:
    """From each task to each other, for each drafter with the target; no pair and no change is left out.

    Keys: see :func:`simspec.compare.specrouter.estimates.study`.
    """
    category = trace.prompts["category"].to_numpy()
    tasks = list(dict.fromkeys(category))
    # Drawn within each task, so that every draw has all changes.
    drawn = np.concatenate(
        [
            draw_prompts(trace, min(asked.draws, DRAWS), asked.seed, np.flatnonzero(category == t)).prompts
            for t in tasks
        ],
        axis=1,
    )
    found: dict[str, Any] = {
        "streams": STREAMS,
        "together": TOGETHER,
        "pairs": len(trace.drafters),
        "changes": len(tasks) * (len(tasks) - 1),
        "draws": len(drawn) - 1,
        "measures": {},
    }
    if len(tasks) < 2:
        return found
    work = (joblib.delayed(_spliced)(trace, tuple(tasks), row, asked.seed) for row in drawn)
    every = joblib.Parallel(n_jobs=asked.jobs)(work)
    for name, clock in every[0]:
        found["measures"].setdefault(name, {})[clock] = _with_intervals([e[name, clock] for e in every])
    return found


def _spliced(
    trace: Trace, tasks: tuple[str, ...], prompts: Ints, seed: int
) -> dict[tuple[str, Clock], dict[str, Any]]:
    overlap, first = along_text(trace, "overlap"), blocks.tries(trace, 1)
    measures = {
        "simscore": [overlap[d, trace.target] for d in trace.drafters],
        # Whether the first token drafted at a place is accepted: what each place adds to realised acceptance.
        "realised": [first[d, trace.target].accepted.astype(np.float64) for d in trace.drafters],
    }
    return {
        (name, clock): _followed(
            [
                spliced(trace, values, change, clock, STREAMS, seed, TOGETHER, prompts)
                for values in columns
                for change in permutations(tasks, 2)
            ],
            STRETCHES[clock],
        )
        for name, columns in measures.items()
        for clock in CLOCKS
    }


def load_changes(trace: Trace, dtype: str, seed: int) -> dict[str, Any]:
    """Few rows to many and back, at width 1, from the repetitions of each model's measured forwards.

    Keys: see :func:`simspec.compare.specrouter.estimates.study`.
    """
    by_model = {m: repetitions(trace, m, dtype, 1) for m in trace.manifest.models}
    by_model = {m: seconds for m, seconds in by_model.items() if seconds}
    every = [set(seconds) for seconds in by_model.values()]
    rows = sorted(b for b in set.intersection(*every) if b <= MOST_ROWS) if every else []
    changes = []
    for seconds in by_model.values():
        for load in ((rows[0], rows[-1]), (rows[-1], rows[0])) if len(rows) > 1 else ():
            before, after = loaded(seconds, load, FORWARDS, STREAMS, seed)
            changes.append((before / after.mean(), after / after.mean()))
    counts = [len(seconds[b]) for seconds in by_model.values() for b in (*rows[:1], *rows[-1:])]
    return {
        "streams": STREAMS,
        "forwards": FORWARDS,
        "models": list(by_model),
        "loads": [*rows[:1], *rows[-1:]],
        "repetitions": [min(counts), max(counts)] if counts else [],
        "measures": {"seconds": {"forward": _with_intervals([_followed(changes, STRETCHES["text"])])}}
        if changes
        else {},
    }


def _followed(changes: Sequence[Change], stretches: Sequence[int]) -> dict[str, Any]:
    steps = min(after.shape[1] for _, after in changes)
    apart = float(np.sqrt(np.mean([(after.mean() - before.mean()) ** 2 for before, after in changes])))
    noise = float(np.sqrt(np.mean([after.var() for _, after in changes])))
    weights: dict[str, Any] = {}
    errors: dict[str, dict[str, Any]] = {f"{n}": {} for n in stretches if n <= steps}
    for weight in WEIGHTS:
        weights[f"{weight:g}"], tracked = followed(changes, weight)
        for n, row in errors.items():
            row[f"{weight:g}"] = {
                "error": stretch_error(tracked, int(n)),
                "expected": expected_error(weight, apart, noise, int(n)),
            }
    return {
        "apart": apart,
        "noise": noise,
        "steps": steps,
        "weights": weights,
        "stretches": {n: {"weights": row} for n, row in errors.items()},
    }


def _with_intervals(draws: list[dict[str, Any]]) -> dict[str, Any]:
    """The first of the same figures, with 95% intervals over the others."""
    found, others = draws[0], draws[1:]
    for weight, told in found["weights"].items():
        for name in ("steps_to_half", "steps_to_90", "bias", "shake"):
            told[f"{name}_interval"] = _span([d["weights"][weight][name] for d in others])
    for n, stretch in found["stretches"].items():
        rows = [d["stretches"][n]["weights"] for d in others if n in d["stretches"]]
        for weight, told in stretch["weights"].items():
            told["error_interval"] = _span([row[weight]["error"] for row in rows])
        best = _least(stretch["weights"], "error")
        stretch["best"], stretch["expected"] = best, _least(stretch["weights"], "expected")
        agree = [_least(row, "error") == best for row in rows]
        stretch["best_share"] = float(np.mean(agree)) if agree else None
    return found


def _least(row: dict[str, Any], name: str) -> str:
    return min(row, key=lambda weight: float(row[weight][name]))


def _span(values: Sequence[float | None]) -> list[float | None]:
    """The middle 95%; None counts as more than anything, and stands for an end that is never reached."""
    if not values:
        return [None, None]
    ends = np.quantile([np.inf if v is None else v for v in values], INTERVAL, method="inverted_cdf")
    return [float(e) if np.isfinite(e) else None for e in ends]
