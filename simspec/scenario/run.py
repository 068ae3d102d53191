"""Run a built scenario under a seed, and measure it; its tables go to a folder where one is given."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from simspec.errors import BadInput
from simspec.scenario.build import Built
from simspec.scenario.figures import measure
from simspec.serving.cluster import DrafterDevice
from simspec.serving.simulate import Records, simulate

# Tables and their sums over engines have 64 bits for nanoseconds.
LONGEST_NS = 1 << 62
TABLES = ("steps", "requests", "emissions", "outages")


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
) -> Ran:
    """Simulate, then measure.

    Args:
        until_seconds: stop then, whatever the scenario says.
        folder: write the tables there, as Parquet.

    Raises:
        BadInput: when simulated time does not fit the tables, or failures have no end.
    """
    scenario = built.scenario
    until = until_seconds if until_seconds is not None else scenario.until_seconds
    try:
        load = built.load.workload(seed)
        begin = time.perf_counter()
        records = simulate(
            built.cluster, load, seed, until_seconds=until, folder=folder, emissions=scenario.emissions
        )
    except OverflowError as error:
        raise _too_long(built) from error
    except BadInput as error:
        if error.where:
            raise
        raise BadInput(
            error.problem, where=built.read.path, allowed=error.allowed, hint=error.hint
        ) from error
    wall = time.perf_counter() - begin
    if records.ended_at * len(built.cluster.engines) > LONGEST_NS:
        raise _too_long(built)
    if folder is not None:
        records = _written(records, folder)
    found = measure(records, built.cluster, scenario.objectives, scenario.warm_up, scenario.cool_down)
    if built.cluster.drafter_device is not None:
        found["drafter_device"] = _of_device(records, built.cluster.drafter_device)
    return Ran(found, wall)


def _too_long(built: Built) -> BadInput:
    engines = len(built.cluster.engines)
    return BadInput(
        "simulated time goes on for too long",
        where=built.read.path,
        allowed=f"{LONGEST_NS * 1e-9 / engines:.2g} seconds, of engines: {engines}",
        hint="are all seconds and rates right? until_seconds ends it earlier",
    )


def _of_device(records: Records, told: DrafterDevice) -> dict[str, float | None]:
    """Of the whole run: work that the drafter's devices have done, and its share of their time."""
    time = records.ended_at * told.devices
    return {"busy_seconds": records.drafters_ns * 1e-9, "share": records.drafters_ns / time if time else None}


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


def _written(records: Records, folder: Path) -> Records:
    """With the tables that went to files."""
    tables = {
        name: pq.read_table(folder / f"{name}.parquet")
        for name in TABLES
        if getattr(records, name) is not None
    }
    return replace(records, **tables)
