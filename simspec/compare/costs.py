"""The costs that a trace can be replayed under, by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from simspec.cost.files import read_cost
from simspec.cost.models import AffineCost, CostModel, MeasuredCost
from simspec.cost.roofline import RooflineCost
from simspec.errors import BadInput, unknown_name
from simspec.provenance import sha256_file
from simspec.traces.index import Trace, outline
from simspec.traces.manifest import MANIFEST_NAME
from simspec.traces.profile import PROFILE_NAME, Profile, read_profile
from simspec.traces.reader import read_tables


def open_cost(trace: Trace, name: str) -> CostModel:
    """A number format of the trace's latency table, a TOML profile, or the folder of a profile or a trace.

    Raises:
        BadInput: when the name is none of them, or the profile or the other trace does not fit the trace.
    """
    if name.endswith(".toml"):
        return _fitting(read_cost(Path(name)), trace)
    measured = sorted(set(trace.latency["dtype"]) - {"none"})
    if name not in measured and (Path(name) / PROFILE_NAME).exists():
        return _of_profile(Path(name), trace)
    if name not in measured and (Path(name) / MANIFEST_NAME).exists():
        return _of_trace(Path(name), trace)
    if name not in measured:
        known = [
            *measured,
            "a profile's path ending in .toml",
            "the folder of a latency profile or of a trace",
        ]
        raise unknown_name("cost", name, known)
    return MeasuredCost(trace.latency, name, name, _measured_label(trace, name))


def _measured_label(trace: Trace, dtype: str) -> str:
    machine = trace.manifest.machine
    label = (
        f"{trace.manifest.origin} on {trace.manifest.device} "
        f"({machine.get('processor', 'unknown processor')}, {machine.get('threads', '?')} threads), "
        f"{dtype}, median of repetitions, interpolated; padded rows; time between forwards not counted"
    )
    if dtype != trace.manifest.dtype:
        label += f"; a cost curve only: behaviour was recorded in {trace.manifest.dtype}"
    return label


def cost_inputs(names: list[str]) -> dict[str, str]:
    """Hashes of the profiles among ``names``, for provenance."""
    found = {Path(n).name: sha256_file(Path(n)) for n in names if n.endswith(".toml")}
    for name in (n for n in names if not n.endswith(".toml")):
        for file in (PROFILE_NAME, MANIFEST_NAME):
            if (manifest := Path(name) / file).exists():
                found[f"{Path(name).name}/{file}"] = sha256_file(manifest)
    return found


def whole_grid(latency: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """A latency table without the lines of its grid that have holes.

    Where memory ran out a grid has holes, and a table with holes cannot be interpolated. For each
    model the batch, width or context with the greatest share of holes goes first, until none is left.

    Returns:
        the rows that are left, and what was left out, in words.
    """
    kept, gone = [], []
    for (model, dtype), rows in latency.groupby(["model", "dtype"], sort=True):
        dropped: list[str] = []
        while line := _worst_line(rows):
            axis, value = line
            rows = rows[rows[axis] != value]
            dropped.append(f"{_AXES[axis]} {value}")
        if dropped:
            gone.append(f"{model} ({dtype}) without {', '.join(dropped)}")
        kept.append(rows)
    return pd.concat(kept, ignore_index=True), gone


_AXES = {"batch": "batch", "new_tokens": "new tokens", "context": "context"}


def _worst_line(rows: pd.DataFrame) -> tuple[str, int] | None:
    """The line of a model's grid with the greatest share of holes, the last of equals; None without any."""
    cells = rows[list(_AXES)].drop_duplicates()
    size = {axis: cells[axis].nunique() for axis in _AXES}
    full = size["batch"] * size["new_tokens"] * size["context"]
    if len(cells) == full:
        return None
    shares = []
    for axis in _AXES:
        values, counts = np.unique(cells[axis].to_numpy(), return_counts=True)
        holes = 1 - counts * size[axis] / full
        shares += [(float(h), int(v), axis) for h, v in zip(holes, values, strict=True)]
    _, value, axis = max(shares)
    return axis, value


def _of_trace(folder: Path, trace: Trace) -> MeasuredCost:
    """The latency table of another trace, of the models that both have, which must be the same."""
    other = outline(read_tables(folder))
    shared = [m for m in trace.manifest.models if m in other.manifest.models]
    for name in shared:
        if difference := trace.manifest.models[name].unlike(other.manifest.models[name]):
            raise BadInput(f"model {name!r} is another one: {difference}", where=folder)
    latency = other.latency[other.latency["model"].isin(shared)]
    dtype = other.manifest.dtype
    label = f"trace {other.manifest.name}: {_measured_label(other, dtype)}; acceptance from the trace"
    return MeasuredCost(latency, dtype, other.manifest.name, label)


def _of_profile(folder: Path, trace: Trace) -> MeasuredCost:
    profile, latency = read_profile(folder)
    for model in sorted(profile.models):
        if model not in trace.manifest.models:
            raise unknown_name("model", model, trace.manifest.models, where=folder / PROFILE_NAME)
    whole, gone = whole_grid(latency)
    return MeasuredCost(whole, profile.dtype, profile.name, _profile_label(profile, gone))


def _profile_label(profile: Profile, gone: list[str]) -> str:
    random = sorted(name for name, model in profile.models.items() if model.weights == "random")
    label = (
        f"latency profile {profile.name}: {profile.origin} on {profile.device} ({profile.device_name}, "
        f"{profile.threads} threads), {profile.dtype}, median of repetitions, interpolated; padded rows; "
        "time between forwards not counted; acceptance from the trace"
    )
    if random:
        label += f"; random weights: {', '.join(random)}"
    if gone:
        label += f"; memory ran out: {', '.join(gone)}"
    return label


def _fitting(cost: AffineCost | RooflineCost, trace: Trace) -> AffineCost | RooflineCost:
    """A profile may price only models of the trace, and look-ups only as such."""
    for name in sorted(cost.models):
        if name not in trace.manifest.models:
            raise unknown_name("model", name, trace.manifest.models, where=cost.name)
        if isinstance(cost, RooflineCost) and trace.is_lookup(name) != (name in cost.lookup_seconds):
            where = "lookup_seconds" if trace.is_lookup(name) else "architectures"
            raise BadInput(f"model {name!r} belongs in {where}", where=cost.name)
    return cost
