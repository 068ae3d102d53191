"""Where the time of each engine went, and what its failures cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simspec.scenario.itl import column, ends_of
from simspec.scenario.period import Period
from simspec.serving.cluster import Cluster
from simspec.serving.step import PARTS

Ints = NDArray[np.int64]


def utilisation(steps: pa.Table, outages: pa.Table | None, when: Period) -> dict[str, float] | None:
    """Shares of the measured time of all engines; they sum to 1. None without a step.

    ``down`` from a failure to the return; ``lost`` is what a failed step had taken by then.
    """
    total = when.engine_ns
    if not steps.num_rows or not total:
        return None
    spent = {part: int(column(steps, f"{part}_ns").sum()) for part in PARTS}
    spent["down"], spent["lost"] = _failed(outages, when)
    spent["idle"] = total - sum(spent.values())
    return {name: ns / total for name, ns in spent.items()}


def of_each(
    steps: pa.Table, requests: pa.Table, outages: pa.Table | None, when: Period, cluster: Cluster
) -> list[dict[str, Any]]:
    """Each engine's share of what was measured, in the order of their numbers."""
    found = []
    for number, serving in enumerate(cluster.engines):
        own, ended, failed = (
            None if table is None else table.filter(pa.array(column(table, "replica") == number))
            for table in (steps, requests, outages)
        )
        assert own is not None
        assert ended is not None
        alone = when.of_engine(number)
        reads_only = number >= len(cluster.replicas)
        found.append(
            {
                "replica": number,
                "role": "prefill" if reads_only else ("decode" if cluster.prefill else "whole"),
                "steps": own.num_rows,
                "emitted_tokens": int(column(own, "emitted_tokens").sum()),
                "prefill_tokens": int(column(own, "prefill_tokens").sum()),
                "requests_ended": ended.num_rows,
                "batch": batch(own, alone),
                "kv_blocks": blocks(own, "target_blocks", serving.memory.target_blocks, alone),
                "preemptions": int(column(own, "preempted_requests").sum()),
                "outages": 0 if failed is None else failed.num_rows,
                "utilisation": utilisation(own, failed, alone),
            }
        )
    return found


def failures(requests: pa.Table, outages: pa.Table | None) -> dict[str, int]:
    """What failures did to requests, over the whole run."""
    restarts = column(requests, "restarts")
    return {
        "outages": 0 if outages is None else outages.num_rows,
        "restarts": int(restarts.sum()),
        "requests_restarted": int(np.count_nonzero(restarts)),
        "discarded_tokens": int(column(requests, "discarded_tokens").sum()),
    }


def batch(steps: pa.Table, when: Period) -> dict[str, float | int | None]:
    """Requests in the steps and in the queue of an engine: means over time, idle time included."""
    seconds = durations(steps)
    rows = column(steps, "decoding_requests") + column(steps, "prefilling_requests")
    queued, total = column(steps, "queued_requests"), when.engine_ns
    return {
        "mean_requests": float(np.dot(rows, seconds)) / total if total else None,
        "peak_requests": int(rows.max()) if len(rows) else None,
        "peak_queued": int(queued.max()) if len(queued) else None,
    }


def blocks(steps: pa.Table, name: str, total: int | None, when: Period) -> dict[str, float | int | None]:
    """Blocks in use in an engine: mean over time (nothing is held while it is idle), and peak.

    A drafter's cache without limit is not counted at all by engines: all None.
    """
    if name == "drafter_blocks" and total is None:
        return dict.fromkeys(("total", "mean", "peak", "mean_share", "peak_share"))
    used, time = column(steps, name), when.engine_ns
    mean = float(np.dot(used, durations(steps))) / time if time else None
    peak = int(used.max()) if len(used) else None
    return {
        "total": total,
        "mean": mean,
        "peak": peak,
        "mean_share": mean / total if total and mean is not None else None,
        "peak_share": peak / total if total and peak is not None else None,
    }


def durations(steps: pa.Table) -> NDArray[np.float64]:
    """Nanoseconds of each step, (N,)."""
    found: NDArray[np.float64] = (ends_of(steps) - column(steps, "started_at_ns")).astype(np.float64)
    return found


def _failed(outages: pa.Table | None, when: Period) -> tuple[int, int]:
    if outages is None or not outages.num_rows:
        return 0, 0
    replica = column(outages, "replica")
    # One engine alone is asked for with its own outages only.
    place = replica if len(when.begins) > 1 else np.zeros_like(replica)
    begins, ends = when.begins[place], when.ends[place]
    failed, back = column(outages, "failed_at_ns"), column(outages, "back_at_ns")
    began = column(outages, "step_began_at_ns")
    began = np.where(began < 0, failed, began)

    def within(first: Ints, last: Ints) -> int:
        first, last = np.clip(first, begins, ends), np.clip(last, begins, ends)
        return int((last - first).sum())

    return within(failed, back), within(began, failed)
