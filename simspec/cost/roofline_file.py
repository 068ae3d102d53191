"""A roofline cost model as a TOML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from simspec.cost import presets
from simspec.cost.architecture import Architecture, formats_of, read_config
from simspec.cost.roofline import Device, RooflineCost, Seconds, Share
from simspec.errors import BadInput


class RooflineFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file may say.

    Attributes:
        device: a preset's name, or a table of its own.
        dtype: number format that the arithmetic runs in, one that the device has a peak for.
        architectures: for each model a preset's name, the path of a ``config.json`` (from the
            file's folder), or a table of its own.
        lookup_seconds: for each look-up its seconds a row; 0 is free.
        packed: rows as an engine packs them; false pads them to the widest and longest.
        weight_bytes, kv_bytes: of one number, where it differs from ``dtype``'s, as with
            quantised weights.
        compute_efficiency ... forward_overhead_seconds: in the place of the device's own.
    """

    kind: Literal["roofline"]
    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    device: str | Device
    dtype: str
    architectures: Annotated[dict[str, str | Architecture], Meta(min_length=1)]
    lookup_seconds: dict[str, Seconds] = {}
    packed: bool = True
    step_overhead_seconds: Seconds = 0.0
    weight_bytes: Annotated[float, Meta(gt=0, le=8)] | None = None
    kv_bytes: Annotated[float, Meta(gt=0, le=8)] | None = None
    compute_efficiency: Share | None = None
    bandwidth_efficiency: Share | None = None
    layer_overhead_seconds: Seconds | None = None
    forward_overhead_seconds: Seconds | None = None


def roofline_cost(raw: dict[str, Any], path: Path) -> RooflineCost:
    """The cost model that a file's contents state.

    Raises:
        BadInput: naming the field or the name that does not fit.
    """
    try:
        stated = msgspec.convert(raw, RooflineFile)
    except msgspec.ValidationError as error:
        raise BadInput(str(error), where=path) from error
    both = sorted(set(stated.architectures) & set(stated.lookup_seconds))
    if both:
        raise BadInput(f"{both[0]!r} is in architectures and in lookup_seconds", where=path)
    device = stated.device
    called = device if isinstance(device, str) else "its own device"
    if isinstance(device, str):
        device = presets.device(device, where=path)
    own = {
        field: getattr(stated, field)
        for field in (
            "compute_efficiency",
            "bandwidth_efficiency",
            "layer_overhead_seconds",
            "forward_overhead_seconds",
        )
        if getattr(stated, field) is not None
    }
    device = msgspec.structs.replace(device, **own)
    rates, formats = device.rates(stated.dtype, where=path), formats_of(stated.dtype, where=path)
    sizes = {f: getattr(stated, f) for f in ("weight_bytes", "kv_bytes") if getattr(stated, f) is not None}
    return RooflineCost(
        name=stated.name,
        label=(
            f"roofline of {called} ({device.source}), {stated.dtype}, "
            f"{device.compute_efficiency:.0%} of its FLOP/s and {device.bandwidth_efficiency:.0%} of its "
            f"bandwidth assumed, {1e6 * device.layer_overhead_seconds:g} us a layer for launches; no "
            f"framework, sampling or scheduling in it; {'packed' if stated.packed else 'padded'} rows; "
            "calculated, not measured; acceptance from the trace"
        ),
        rates=rates,
        formats=msgspec.structs.replace(formats, **sizes),
        architectures={m: _architecture(a, path) for m, a in stated.architectures.items()},
        lookup_seconds=stated.lookup_seconds,
        packed=stated.packed,
        step_overhead_seconds=stated.step_overhead_seconds,
    )


def _architecture(given: str | Architecture, path: Path) -> Architecture:
    if isinstance(given, Architecture):
        return given
    if given.endswith(".json"):
        return read_config(path.parent / given)
    return presets.architecture(given, where=path)
