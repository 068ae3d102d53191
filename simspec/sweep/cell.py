"""One cell of a sweep: a simulation and its figures as flat numbers."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from simspec.scenario.itl import column
from simspec.scenario.period import period
from simspec.scenario.run import run
from simspec.serving.step import PARTS
from simspec.sweep.grid import Cell
from simspec.sweep.passes import passes

Figures = dict[str, float | None]

# Name of a figure -> where it stands in the figures of a run.
FIGURES: dict[str, tuple[str, ...]] = {
    "throughput_tokens_per_second": ("throughput_tokens_per_second",),
    "tpot_seconds_mean": ("tpot_seconds", "mean"),
    "tpot_seconds_p50": ("tpot_seconds", "p50"),
    "tpot_seconds_p99": ("tpot_seconds", "p99"),
    "ttft_seconds_p99": ("ttft_seconds", "p99"),
    "goodput_requests_per_second": ("goodput", "requests_per_second"),
    "goodput_share": ("goodput", "share"),
    "emitted_per_pass": ("emitted_per_pass", "pooled"),
    **{f"utilisation_{part}": ("utilisation", part) for part in (*PARTS, "idle")},
    "preemptions": ("preemptions",),
    "finished": ("requests", "finished"),
}

# Those whose differences between policies are told.
COMPARED = (*(name for name in FIGURES if not name.startswith("utilisation")), "rows_per_step")


def carry_out(cell: Cell, until_seconds: float | None) -> Figures:
    """Simulate a cell: :data:`FIGURES`, ``rows_per_step``, and what :func:`simspec.sweep.passes.passes` says.

    The tables pass through a temporary folder, since a run leaves nothing else but its figures.
    """
    with tempfile.TemporaryDirectory(prefix="simspec-sweep-") as name:
        folder = Path(name)
        ran = run(cell.built, cell.seed, until_seconds=until_seconds, folder=folder)
        steps, requests = (pq.read_table(folder / f"{table}.parquet") for table in ("steps", "requests"))
    found: Figures = {}
    for figure, path in FIGURES.items():
        value: Any = ran.figures
        for key in path:
            value = None if value is None else value[key]
        found[figure] = None if value is None else float(value)
    scenario, engines = cell.built.scenario, len(cell.built.cluster.engines)
    when = period(scenario.warm_up, scenario.cool_down, steps, requests, engines)
    rows = column(steps, "decoding_requests")[when.steps(steps)]
    found["rows_per_step"] = float(rows[rows > 0].mean()) if rows.any() else None
    return found | passes(steps, requests, when)


def key_of(cell: Cell, until_seconds: float | None, code: str) -> str:
    """What a cell's figures depend on, as a hash: the scenario, its files, the seed, the code."""
    told = [
        msgspec.to_builtins(cell.built.scenario),
        dict(sorted(cell.built.inputs.items())),
        cell.verdicts,
        cell.seed,
        until_seconds,
        code,
    ]
    return hashlib.sha256(msgspec.json.encode(told)).hexdigest()
