"""Cost models beside the latencies that a trace or a profile holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pandas as pd

from simspec.cost import presets
from simspec.cost.architecture import FORMATS, Architecture, read_config
from simspec.cost.fit import fit_all
from simspec.cost.fit_errors import Errors, medians
from simspec.cost.roofline_fit import roofline_errors
from simspec.errors import BadInput
from simspec.provenance import sha256_file
from simspec.tables import LATENCY
from simspec.traces.files import read_table
from simspec.traces.manifest import MANIFEST_NAME, Manifest, read_manifest
from simspec.traces.profile import PROFILE_NAME, read_profile


@dataclass(frozen=True)
class Measured:
    """Latencies that were measured, and the architectures of the models that are known.

    Attributes:
        where: device and processor, in words.
        inputs: what the latencies come from, for provenance.
    """

    name: str
    origin: str
    where: str
    latency: pd.DataFrame
    architectures: dict[str, Architecture]
    inputs: dict[str, str]


def read_measured(folder: Path, architecture: str | None) -> Measured:
    """Read the latencies of a trace or a profile.

    Args:
        architecture: of the target, a preset's name or the path of a config.json. A trace does not
            say it; its layer-skipping drafters follow from the target's.

    Raises:
        BadInput: when the folder is neither, or a name is not known.
    """
    given = None
    if architecture is not None:
        is_file = architecture.endswith(".json")
        given = read_config(Path(architecture)) if is_file else presets.architecture(architecture)
    if (folder / PROFILE_NAME).exists():
        profile, latency = read_profile(folder)
        if given is not None:
            raise BadInput("--architecture", where=folder, hint="a profile says its models' sizes itself")
        made = {
            name: msgspec.convert(model.architecture, Architecture)
            for name, model in profile.models.items()
            if model.architecture is not None
        }
        where = f"{profile.device} ({profile.device_name}, {profile.threads} threads)"
        inputs = {f"{profile.name}/{PROFILE_NAME}": sha256_file(folder / PROFILE_NAME)}
        return Measured(profile.name, profile.origin, where, latency, made, inputs)
    manifest = read_manifest(folder)
    entry = manifest.tables.get(LATENCY.name)
    if entry is None:
        raise BadInput("names no table 'latency'", where=folder / MANIFEST_NAME)
    latency = read_table(folder / entry.file, LATENCY, entry).to_pandas()
    if latency.empty:
        raise BadInput("has no rows", where=folder / entry.file, hint="its recipe had no part [latency]")
    machine = manifest.machine
    where = (
        f"{manifest.device} ({machine.get('processor', 'unknown')}, {machine.get('threads', '?')} threads)"
    )
    inputs = {f"{manifest.name}/{LATENCY.name}": entry.sha256}
    made = {} if given is None else _family(manifest, given)
    return Measured(manifest.name, manifest.origin, where, latency, made, inputs)


def _family(manifest: Manifest, target: Architecture) -> dict[str, Architecture]:
    """The target's architecture, and those of drafters that are the target without some layers."""
    stated = manifest.models[manifest.target].about.get("layers")
    if stated is not None and stated != target.layers:
        raise BadInput(
            f"--architecture has {target.layers} layers",
            where=manifest.name,
            allowed=f"{stated}, the target's",
        )
    made = {manifest.target: target}
    for name, model in manifest.models.items():
        if model.about.get("form") == "layer-skip" and model.about.get("parent") == manifest.target:
            made[name] = msgspec.structs.replace(target, layers=model.about["layers"])
    return made


def measured_study(measured: Measured, device: str | None) -> dict[str, object]:
    """Fits to measured latencies, and what a device preset would have said without them.

    Returns:
        ``name``, ``origin``, ``where``, ``affine`` and ``roofline`` as
        :class:`simspec.cost.fit.Fits`, and ``preset``: ``device``, ``source`` and ``errors`` by
        number format and model; null without a device.
    """
    fits = fit_all(measured.latency, measured.architectures)
    return {
        "name": measured.name,
        "origin": measured.origin,
        "where": measured.where,
        **msgspec.to_builtins(fits),
        "preset": None if device is None else _preset_errors(measured, device),
    }


def _preset_errors(measured: Measured, name: str) -> dict[str, object]:
    device = presets.device(name)
    points = medians(measured.latency)
    errors: dict[str, Mapping[str, Errors]] = {}
    for dtype in sorted(set(points["dtype"]) & set(FORMATS) & set(device.flops_per_second)):
        inside = points[points["dtype"] == dtype]
        errors[dtype] = roofline_errors(inside, measured.architectures, FORMATS[dtype], device.rates(dtype))
    return {"device": name, "source": device.source, "errors": msgspec.to_builtins(errors)}
