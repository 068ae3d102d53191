"""A latency profile: one latency table, and a manifest that says what was timed, how and where."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pandas as pd
import pyarrow as pa
from msgspec import Meta

from simspec.errors import BadInput, unknown_name
from simspec.tables import LATENCY
from simspec.traces.files import read_table, write_table
from simspec.traces.manifest import Hash, Natural, TableEntry

PROFILE_NAME = "profile.json"


class ProfiledModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model that was timed.

    Attributes:
        kind: as in a trace's manifest.
        weights: ``real``, ``random`` (the sizes of a real model: its times, not its words), or
            ``none`` for a look-up.
        architecture: its sizes, where they can be read from its config.
        about: source, hashes, parameters, whatever else is known.
    """

    kind: str
    weights: Literal["real", "random", "none"]
    architecture: dict[str, int | bool] | None = None
    about: dict[str, Any] = {}


class MissingCell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Forwards of the grid that could not be timed, and why."""

    model: str
    device: str
    dtype: str
    batch: Natural
    new_tokens: Natural
    context: Natural
    reason: str


class Spread(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Range of a cell's repetitions over its median, over the cells of one model."""

    model: str
    device: str
    dtype: str
    cells: Natural
    repetitions_least: Natural
    repetitions_most: Natural
    median: Annotated[float, Meta(ge=0)]
    p90: Annotated[float, Meta(ge=0)]
    worst: Annotated[float, Meta(ge=0)]


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a profile says of itself.

    Attributes:
        origin: ``measured`` on a device, or ``synthetic`` for made-up ones.
        device_name: what the device calls itself.
        clock: how the seconds were taken.
        order: in which order cells and models ran.
        missing: forwards of the grid that the table does not have.
        peaks: FLOP/s and bytes/s that the device was seen to reach beside the timing.
        fits: fitted cost models with their errors, as :mod:`simspec.cost.fit` states them.
    """

    format: Literal[1]
    kind: Literal["latency-profile"]
    name: str
    origin: Literal["measured", "synthetic"]
    created: str
    command: list[str]
    recipe: dict[str, Any]
    recipe_sha256: Hash
    models: dict[str, ProfiledModel]
    device: str
    device_name: str
    dtype: str
    threads: Natural
    clock: str
    order: str
    seed: Natural
    machine: dict[str, Any]
    versions: dict[str, str]
    units: dict[str, str]
    missing: list[MissingCell]
    spread: list[Spread]
    peaks: dict[str, float]
    fits: dict[str, Any]
    timing_seconds: float
    table: TableEntry
    notes: list[str] = []


def read_profile(folder: Path) -> tuple[Profile, pd.DataFrame]:
    """Read and check a profile; returns its manifest and its latency table.

    Raises:
        BadInput: naming the file, and the field or the row, that does not hold.
    """
    path = folder / PROFILE_NAME
    try:
        profile = msgspec.json.decode(path.read_bytes(), type=Profile)
    except OSError as error:
        raise BadInput(
            f"cannot be read: {error.strerror}", where=path, hint="make a profile with: simspec calibrate"
        ) from error
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise BadInput(str(error), where=path) from error
    data = read_table(folder / profile.table.file, LATENCY, profile.table)
    for name in data.column("model").unique().to_pylist():
        if name not in profile.models:
            raise unknown_name("model", name, profile.models, where=folder / profile.table.file)
    return profile, data.to_pandas()


def write_profile(folder: Path, profile: Profile, latency: pa.Table) -> Profile:
    """Write a whole profile; ``folder`` appears complete or not at all.

    The manifest's ``table`` is filled in here.

    Raises:
        BadInput: when ``folder`` exists.
    """
    if folder.exists():
        raise BadInput("exists", where=folder, hint="a profile is never overwritten: move it away")
    partial = folder.with_name(folder.name + ".writing")
    if partial.exists():
        shutil.rmtree(partial)
    partial.mkdir(parents=True)
    entry = write_table(partial / f"{LATENCY.name}.parquet", LATENCY, latency)
    complete = msgspec.structs.replace(profile, table=entry)
    text = msgspec.json.format(msgspec.json.encode(complete), indent=2)
    (partial / PROFILE_NAME).write_bytes(text + b"\n")
    partial.replace(folder)
    return complete
