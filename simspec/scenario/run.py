"""Run a built scenario under a seed, and measure it; its tables go to a folder where one is given."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from simspec.scenario.build import Built
from simspec.scenario.figures import measure
from simspec.serving.config import Serving
from simspec.serving.simulate import simulate

TABLES = ("steps", "requests", "emissions")


@dataclass(frozen=True)
class Ran:
    """One run.

    Attributes:
        figures: as :func:`simspec.scenario.figures.measure` makes them.
        wall_seconds: real time of the simulation itself, without reading files and without figures.
    """

    figures: dict[str, Any]
    wall_seconds: float


def run(
    built: Built,
    seed: int,
    *,
    until_seconds: float | None = None,
    folder: Path | None = None,
    serving: Serving | None = None,
) -> Ran:
    """Simulate, then measure.

    Args:
        until_seconds: stop then, whatever the scenario says.
        folder: write the tables there, as Parquet.
        serving: another engine under the same requests.
    """
    scenario = built.scenario
    engine = serving or built.serving
    until = until_seconds if until_seconds is not None else scenario.until_seconds
    load = built.load.workload(seed)
    begin = time.perf_counter()
    records = simulate(engine, load, seed, until_seconds=until, folder=folder, emissions=scenario.emissions)
    wall = time.perf_counter() - begin
    steps, requests, emissions = records.steps, records.requests, records.emissions
    if folder is not None:
        steps, requests, *more = (
            _read(folder, name) for name in TABLES if scenario.emissions or name != "emissions"
        )
        emissions = more[0] if more else None
    found = measure(steps, requests, emissions, engine, scenario.objectives, scenario.warm_up)
    return Ran(found, wall)


def machine_figures(ran: Ran) -> dict[str, Any]:
    """What hangs on the machine and the moment, and is therefore written to no file."""
    tokens = ran.figures["output_tokens"]
    # Kilobytes on Linux, bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "wall_seconds": ran.wall_seconds,
        "output_tokens_per_wall_second": tokens / ran.wall_seconds if ran.wall_seconds else None,
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
    }


def describe(built: Built) -> dict[str, Any]:
    """What was run: what was left out of its logs, what is approximate in it, the scenario itself."""
    return {
        "name": built.scenario.name,
        "scenario": msgspec.to_builtins(built.scenario),
        "dropped": {str(log["use"]): log["dropped"] for log in built.load.logs},
        "logs": built.load.logs,
        "approximations": built.approximations,
    }


def _read(folder: Path, name: str) -> pa.Table:
    return pq.read_table(folder / f"{name}.parquet")
