"""Seconds of a forward from what it computes and moves (the roofline of Williams et al., 2009).

A part of a forward takes as long as its arithmetic or its traffic, whichever is longer; the parts
follow each other; a fixed time a layer and a forward stands for launches. Nothing else is in it:
no framework, no sampling, no scheduling, no communication. For a framework that is bound by its
own work the figure is far too low, and a ratio to a published time says by how much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from simspec.cost.architecture import Architecture, Formats, forward_work
from simspec.cost.shape import StepShape
from simspec.errors import unknown_name

Floats = NDArray[np.float64]
Rate = Annotated[float, Meta(gt=0, le=1e18)]
Share = Annotated[float, Meta(gt=0, le=1)]
Seconds = Annotated[float, Meta(ge=0, le=1e4)]

# Assumptions, in round figures, of what good kernels attain of a data sheet: not measured here,
# and not fitted to any published time.
COMPUTE_EFFICIENCY = 0.6
BANDWIDTH_EFFICIENCY = 0.8


class Rates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a device attains in one number format: all that turns work into seconds.

    ``cache_passes``: how often a forward moves the whole cache; 1 reads it once. A cache that is
    copied to be extended is read, written and read again: 3.
    """

    flops_per_second: Rate
    bytes_per_second: Rate
    layer_overhead_seconds: Seconds = 0.0
    forward_overhead_seconds: Seconds = 0.0
    cache_passes: Annotated[float, Meta(ge=1, le=1000)] = 1.0


class Device(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A device's peaks, where they are stated, and the shares of them that are taken as attained.

    Attributes:
        flops_per_second: dense peak by number format.
        compute_efficiency, bandwidth_efficiency: model FLOP and model bandwidth utilisation (MFU, MBU).
    """

    source: str
    bytes_per_second: Rate
    flops_per_second: dict[str, Rate]
    compute_efficiency: Share = COMPUTE_EFFICIENCY
    bandwidth_efficiency: Share = BANDWIDTH_EFFICIENCY
    layer_overhead_seconds: Seconds = 0.0
    forward_overhead_seconds: Seconds = 0.0

    def rates(self, dtype: str, *, where: object = "") -> Rates:
        """What it attains in ``dtype``; raises :class:`~simspec.errors.BadInput` when no peak is stated."""
        if dtype not in self.flops_per_second:
            raise unknown_name("dtype of the device", dtype, self.flops_per_second, where=where)
        return Rates(
            flops_per_second=self.compute_efficiency * self.flops_per_second[dtype],
            bytes_per_second=self.bandwidth_efficiency * self.bytes_per_second,
            layer_overhead_seconds=self.layer_overhead_seconds,
            forward_overhead_seconds=self.forward_overhead_seconds,
        )


def roofline_seconds(
    rates: Rates, made: Architecture, formats: Formats, shape: StepShape, *, packed: bool
) -> Floats:
    """Seconds of forwards, one entry each.

    Never below the time of all arithmetic, nor of all traffic, at ``rates``.
    """
    work = forward_work(made, formats, shape, packed=packed)
    total = np.asarray(rates.forward_overhead_seconds + made.layers * rates.layer_overhead_seconds)
    extra = (rates.cache_passes - 1) * work.cache_bytes
    for part in work.parts:
        moved = part.moved_bytes + (extra if part is work.attention else 0.0)
        total = total + np.maximum(part.flops / rates.flops_per_second, moved / rates.bytes_per_second)
    return total


@dataclass(frozen=True)
class RooflineCost:
    """A cost model of architectures on a device; look-ups at stated seconds a row."""

    name: str
    label: str
    rates: Rates
    formats: Formats
    architectures: dict[str, Architecture]
    lookup_seconds: dict[str, float]
    packed: bool
    step_overhead_seconds: float

    @property
    def models(self) -> frozenset[str]:
        return frozenset(self.architectures) | frozenset(self.lookup_seconds)

    def forward_seconds(self, model: str, shape: StepShape) -> Floats:
        if model in self.lookup_seconds:
            return self.lookup_seconds[model] * np.asarray(shape.rows, dtype=np.float64)
        made = self.architectures[model]
        return roofline_seconds(self.rates, made, self.formats, shape, packed=self.packed)
