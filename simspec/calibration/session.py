"""A whole calibration: a recipe's models timed over its grid, resumable, written as one profile."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import torch

from simspec.calibration.forwards import MISSING, cells, clock_of, time_what_fits, timed_networks
from simspec.calibration.peaks import measure_peaks
from simspec.cost.architecture import Architecture, architecture_of, formats_of
from simspec.cost.fit import fit_all
from simspec.cost.fit_errors import medians
from simspec.cost.roofline import Rates
from simspec.cost.roofline_fit import roofline_errors
from simspec.errors import BadInput
from simspec.provenance import machine, versions
from simspec.record.models import LoadedModels, load_models
from simspec.record.recipe import LatencyRecipe, ModelRecipe, Recipe, read_recipe
from simspec.record.shards import Progress, Shards
from simspec.streams import stream
from simspec.tables import LATENCY
from simspec.traces.manifest import TableEntry
from simspec.traces.profile import MissingCell, Profile, ProfiledModel, Spread, write_profile

UNITS = {"time": "seconds", "length": "tokens", "rate": "1/seconds", "memory": "bytes"}
ORDER = (
    "cells (context, batch) in an order drawn from the seed; in a cell, models and widths in an order "
    "drawn anew for every repetition, after one that warms up"
)


def calibrate(
    recipe_path: Path, folder: Path, command: list[str], progress: Progress | None = None
) -> Profile:
    """Time the models of a recipe over its part ``[latency]`` and write a profile to ``folder``.

    Nothing else of the recipe is used: no prompt is read. Shards go to ``folder`` + ``.partial``; a
    run that was killed goes on from there, on the same machine, with the same versions.
    ``progress`` is called with lines to show.

    Raises:
        BadInput: when the recipe or a model cannot be used, when ``folder`` exists, when the
            shards found belong to something else, or when nothing at all fitted the memory.
    """
    recipe, recipe_hash = read_recipe(recipe_path)
    if recipe.latency is None:
        raise BadInput(
            "has no part [latency]", where=recipe_path, hint="it says which batches, new tokens and contexts"
        )
    if folder.exists():
        raise BadInput("exists", where=folder, hint="a profile is never overwritten: move it away")
    models = load_models(recipe, recipe_path.parent)
    device_name = _device_name(recipe.device)
    about_versions = versions(("torch", "transformers", "numpy", "pyarrow", "scipy"))
    parts = [recipe_hash, "calibrate", device_name, str(torch.get_num_threads()), repr(about_versions)]
    identity = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    shards = Shards(folder.with_name(folder.name + ".partial"), identity, (LATENCY, MISSING), progress)
    timed = timed_networks(models, recipe)
    order = list(cells(recipe.latency))
    turns = stream(recipe.seed, "calibration", "order").permutation(len(order))
    for done, turn in enumerate(turns):
        context, batch = order[turn]
        shards.make(
            f"latency-{context:05d}-{batch:04d}",
            lambda c=context, b=batch, grid=recipe.latency: _shard(timed, models, recipe, grid, c, b),  # type: ignore[misc]
            f"cell {done + 1} of {len(order)}: context {context}, batch {batch}",
        )
    tables = shards.tables()
    latency = tables["latency"].to_pandas()
    if latency.empty:
        raise BadInput("no forward fitted the memory", where=recipe_path, hint="make the grid smaller")
    described = {name: _model(name, models, recipe) for name in models.described}
    # There is no plain product in 8-bit integers: float32 stands for them, and is not compared with.
    plain = recipe.dtype if not recipe.dtype.startswith("int8") else "float32"
    peaks = measure_peaks(recipe.device, plain)
    missing = [msgspec.convert(row, MissingCell) for row in tables["missing"].to_pylist()]
    profile = Profile(
        format=1,
        kind="latency-profile",
        name=recipe.name,
        origin="measured",
        created=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        command=command,
        recipe=msgspec.to_builtins(recipe),
        recipe_sha256=recipe_hash,
        models=described,
        device=recipe.device,
        device_name=device_name,
        dtype=recipe.dtype,
        threads=torch.get_num_threads(),
        clock=clock_of(recipe.device),
        order=ORDER,
        seed=recipe.seed,
        machine=machine(),
        versions=about_versions,
        units=UNITS,
        missing=missing,
        spread=spread_of(latency),
        peaks=peaks,
        fits=_fits(latency, recipe.dtype, _architectures(described), peaks),
        timing_seconds=float(np.round(sum(shards.seconds().values()), 1)),
        table=TableEntry(file="latency.parquet", rows=0, sha256="0" * 64),
        notes=_notes(recipe, described, missing),
    )
    written = write_profile(folder, profile, tables["latency"])
    shards.remove()
    return written


def spread_of(latency: pd.DataFrame) -> list[Spread]:
    """How far the repetitions of a cell lie apart, for each (model, device, dtype)."""
    cell = latency.groupby(["model", "device", "dtype", "batch", "new_tokens", "context"])["seconds"]
    found = cell.agg(["min", "median", "max", "count"]).reset_index()
    found["range"] = (found["max"] - found["min"]) / found["median"]
    return [
        Spread(
            model=str(model),
            device=str(device),
            dtype=str(dtype),
            cells=len(rows),
            repetitions_least=int(rows["count"].min()),
            repetitions_most=int(rows["count"].max()),
            median=float(rows["range"].median()),
            p90=float(rows["range"].quantile(0.9)),
            worst=float(rows["range"].max()),
        )
        for (model, device, dtype), rows in found.groupby(["model", "device", "dtype"], sort=True)
    ]


def _shard(
    timed: list[Any], models: LoadedModels, recipe: Recipe, grid: LatencyRecipe, context: int, batch: int
) -> dict[str, Any]:
    cell = time_what_fits(
        timed,
        models.lookups,
        grid,
        context,
        batch,
        device=recipe.device,
        vocabulary=models.vocabulary,
        seed=recipe.seed,
    )
    return {"latency": cell.latency, "missing": cell.missing}


def _model(name: str, models: LoadedModels, recipe: Recipe) -> ProfiledModel:
    about = dict(models.described[name])
    kind = str(about.pop("kind"))
    if name not in models.networks:
        return ProfiledModel(kind=kind, weights="none", about=about)
    sources = {recipe.target.name: recipe.target.source}
    sources |= {d.name: d.source for d in recipe.drafters if isinstance(d, ModelRecipe)}
    # A drafter without a source of its own is made of the target's weights.
    random = sources.get(name, recipe.target.source).startswith("random:")
    network: Any = models.networks[name]
    try:
        sizes = msgspec.to_builtins(architecture_of(network.config.to_dict(), where=name))
    except BadInput:
        sizes = None  # a kind that the roofline does not count; it has its times all the same
    return ProfiledModel(kind=kind, weights="random" if random else "real", architecture=sizes, about=about)


def _architectures(described: Mapping[str, ProfiledModel]) -> dict[str, Architecture]:
    return {
        name: msgspec.convert(model.architecture, Architecture)
        for name, model in described.items()
        if model.architecture is not None
    }


def _fits(
    latency: pd.DataFrame,
    dtype: str,
    architectures: Mapping[str, Architecture],
    peaks: Mapping[str, float],
) -> dict[str, Any]:
    """All fits, and the errors of the peaks taken as they are: all attained, nothing else taking time."""
    points = medians(latency)
    own = points[points["dtype"] == dtype]
    bare = {}
    if not dtype.startswith("int8"):
        bare = roofline_errors(own, architectures, formats_of(dtype), Rates(**peaks))
    return {
        **msgspec.to_builtins(fit_all(latency, architectures)),
        "roofline_of_peaks": msgspec.to_builtins(bare),
    }


def _device_name(device: str) -> str:
    if device.startswith("cuda"):
        return str(torch.cuda.get_device_name(device))
    return str(machine()["processor"])


def _notes(recipe: Recipe, described: Mapping[str, ProfiledModel], missing: list[MissingCell]) -> list[str]:
    notes = []
    for name, model in described.items():
        if model.weights == "none" and model.kind != "prompt-lookup":
            notes.append(f"{name} is not timed: a {model.kind} drafter")
    if any(model.weights == "random" for model in described.values()):
        notes.append("some weights are random: times of the real sizes, words of none")
    if recipe.latency and recipe.latency.int8:
        notes.append("int8-dynamic is a cost curve only: its own tokens would differ")
    if missing:
        notes.append(f"{len(missing)} forwards of the grid are missing: memory ran out; see 'missing'")
    return notes
