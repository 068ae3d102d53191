"""Figures of merit of a scenario's run, from its tables, after the fact and after its warm-up.

What a single request says (TTFT, TPOT, ...) is taken from :mod:`simspec.serving.figures`; here stand what
needs the clock of the whole run, the memory or the objectives. Undefined is None, never NaN.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simspec.scenario.config import ObjectivesPart, WarmUpPart
from simspec.scenario.itl import NONE, Latencies, column, ends_of, from_emissions, from_steps
from simspec.serving.config import Serving
from simspec.serving.figures import figures
from simspec.serving.request import Outcome

Ints = NDArray[np.int64]
NS = 1_000_000_000


def warm_until(warm_up: WarmUpPart, requests: pa.Table) -> int:
    """The instant, in nanoseconds, from which on a run is measured."""
    if warm_up.seconds is not None:
        return math.ceil(warm_up.seconds * NS)
    if not warm_up.requests:
        return 0
    arrived = np.sort(column(requests, "arrived_at_ns"))
    # If no more came, nothing is left to measure.
    return int(arrived[warm_up.requests]) if warm_up.requests < len(arrived) else 1 << 62


def measure(
    steps: pa.Table,
    requests: pa.Table,
    emissions: pa.Table | None,
    serving: Serving,
    objectives: ObjectivesPart,
    warm_up: WarmUpPart,
) -> dict[str, Any]:
    """All figures, ready for JSON. Seconds are simulated ones.

    ``requests`` and ``output_tokens`` count the whole run; everything else leaves the warm-up out.
    """
    since = warm_until(warm_up, requests)
    late = column(steps, "started_at_ns") >= since
    measured_steps = steps.filter(pa.array(late))
    measured = requests.filter(pa.array(column(requests, "arrived_at_ns") >= since))
    of_requests = figures(measured_steps, measured)
    # A step that runs into the measured time is left out whole, and so is the time until its end.
    left_out = ends_of(steps)[~late]
    begin = max(since, int(left_out[-1])) if len(left_out) else since
    span = int(ends_of(measured_steps)[-1]) - begin if measured_steps.num_rows else 0
    emitted = int(column(measured_steps, "emitted_tokens").sum())
    latencies, why = _itl(steps, requests, emissions, serving, since)
    return {
        "requests": _counts(requests),
        "output_tokens": int(column(requests, "produced_tokens").sum()),
        "ttft_seconds": asdict(of_requests.ttft_seconds),
        "tpot_seconds": asdict(of_requests.tpot_seconds),
        "itl_seconds": {
            "per_chunk": asdict(latencies.per_chunk),
            "per_token": asdict(latencies.per_token),
            "unknown_because": why,
        },
        "e2e_seconds": asdict(of_requests.e2e_seconds),
        "queueing_seconds": asdict(of_requests.queueing_seconds),
        "throughput_tokens_per_second": emitted * NS / span if span else None,
        "goodput": _goodput(measured, objectives, span),
        "emitted_per_pass": {
            "pooled": of_requests.emitted_per_pass_pooled,
            "mean_of_requests": of_requests.emitted_per_pass_mean,
            "deviation_between_requests": _deviation(measured),
        },
        "draft": {
            "drafted_tokens": int(column(measured_steps, "drafted_tokens").sum()),
            "accepted_tokens": int(column(measured_steps, "accepted_tokens").sum()),
            "waste": of_requests.draft_waste,
            "length_shares": _lengths(measured_steps),
        },
        "batch": _batch(measured_steps, span),
        "kv_blocks": {
            "target": _kv(measured_steps, "target_blocks", serving.memory.target_blocks, span),
            "drafter": _kv(measured_steps, "drafter_blocks", serving.memory.drafter_blocks, span),
        },
        "preemptions": int(column(measured_steps, "preempted_requests").sum()),
        "utilisation": _utilisation(measured_steps, span),
        "measured": {
            "rule": _rule(warm_up),
            "from_seconds": begin / NS if measured_steps.num_rows else None,
            "span_seconds": span / NS,
            "requests_left_out": requests.num_rows - measured.num_rows,
            "steps_left_out": steps.num_rows - measured_steps.num_rows,
            "requests": measured.num_rows,
            "steps": measured_steps.num_rows,
        },
    }


def _rule(warm_up: WarmUpPart) -> str:
    if warm_up.seconds is not None:
        begin = f"{warm_up.seconds:g} s"
    elif warm_up.requests:
        begin = f"the arrival of the request after the first {warm_up.requests}"
    else:
        return "nothing is left out"
    return f"requests that arrive before {begin} are left out, and steps that begin before"


def _counts(requests: pa.Table) -> dict[str, int]:
    outcomes = np.asarray(requests["outcome"].to_pylist(), dtype=object)
    found = {o.name.lower(): int((outcomes == o.name.lower()).sum()) for o in Outcome}
    return {"arrived": requests.num_rows, **found}


def _itl(
    steps: pa.Table, requests: pa.Table, emissions: pa.Table | None, serving: Serving, since: int
) -> tuple[Latencies, str | None]:
    if emissions is not None:
        return from_emissions(steps, emissions, since), None
    unknown = Latencies(NONE, NONE)
    if not serving.mixed:
        return unknown, "prompts are read between steps that decode; set emissions = true"
    if column(requests, "preemptions").any():
        return unknown, "requests were preempted; set emissions = true"
    return from_steps(steps, since), None


def _goodput(measured: pa.Table, objectives: ObjectivesPart, span: int) -> dict[str, Any]:
    """Requests that finished and met every objective that is set; all None where none is.

    A request of one token has no time between tokens, and meets any objective on it.
    """
    wanted = {
        name: value
        for name in ("ttft_seconds", "tpot_seconds")
        if (value := getattr(objectives, name)) is not None
    }
    found: dict[str, Any] = {
        "objectives": wanted,
        "requests": None,
        "share": None,
        "requests_per_second": None,
    }
    if not wanted:
        return found
    good = np.asarray(measured["outcome"].to_pylist(), dtype=object) == "finished"
    first, ended = column(measured, "first_token_at_ns"), column(measured, "ended_at_ns")
    if objectives.ttft_seconds is not None:
        good &= (first - column(measured, "arrived_at_ns")) * 1e-9 <= objectives.ttft_seconds
    if objectives.tpot_seconds is not None:
        after_first = column(measured, "produced_tokens") - 1
        good &= (ended - first) * 1e-9 <= objectives.tpot_seconds * after_first
    found["requests"] = int(good.sum())
    found["share"] = float(good.mean()) if len(good) else None
    found["requests_per_second"] = found["requests"] * NS / span if span else None
    return found


def _deviation(measured: pa.Table) -> float | None:
    passes, accepted = column(measured, "passes"), column(measured, "accepted_tokens")
    decoded = passes > 0
    return float((accepted[decoded] / passes[decoded]).std()) if decoded.any() else None


def _lengths(steps: pa.Table) -> dict[str, float]:
    """Draft length -> share of the steps that decoded."""
    asked = column(steps, "draft_length_tokens")[column(steps, "decoding_requests") > 0]
    values, counts = np.unique(asked, return_counts=True)
    return {str(v): float(c / len(asked)) for v, c in zip(values.tolist(), counts, strict=True)}


def _batch(steps: pa.Table, span: int) -> dict[str, float | int | None]:
    """Requests in steps and in the queue: means over time, idle time included."""
    seconds = _durations(steps)
    rows = column(steps, "decoding_requests") + column(steps, "prefilling_requests")
    queued = column(steps, "queued_requests")
    return {
        "mean_requests": float(np.dot(rows, seconds)) / span if span else None,
        "peak_requests": int(rows.max()) if len(rows) else None,
        "peak_queued": int(queued.max()) if len(queued) else None,
    }


def _kv(steps: pa.Table, name: str, total: int | None, span: int) -> dict[str, float | int | None]:
    """Blocks in use: mean over time (nothing is held while the engine is idle), and peak.

    A drafter's cache without limit is not counted at all by the engine: all None.
    """
    if name == "drafter_blocks" and total is None:
        return dict.fromkeys(("total", "mean", "peak", "mean_share", "peak_share"))
    used = column(steps, name)
    mean = float(np.dot(used, _durations(steps))) / span if span else None
    peak = int(used.max()) if len(used) else None
    return {
        "total": total,
        "mean": mean,
        "peak": peak,
        "mean_share": mean / total if total and mean is not None else None,
        "peak_share": peak / total if total and peak is not None else None,
    }


def _utilisation(steps: pa.Table, span: int) -> dict[str, float] | None:
    """Shares of the measured time; they sum to 1. None without a step."""
    if not span:
        return None
    names = ("draft", "verify", "prefill", "swap", "overhead")
    found = {name: int(column(steps, f"{name}_ns").sum()) for name in names}
    found["idle"] = span - sum(found.values())
    return {name: ns / span for name, ns in found.items()}


def _durations(steps: pa.Table) -> NDArray[np.float64]:
    found: NDArray[np.float64] = (ends_of(steps) - column(steps, "started_at_ns")).astype(np.float64)
    return found
