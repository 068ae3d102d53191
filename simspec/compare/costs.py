"""The costs that a trace can be replayed under, by name."""

from __future__ import annotations

from pathlib import Path

from simspec.cost.models import AffineCost, CostModel, MeasuredCost, read_affine
from simspec.errors import unknown_name
from simspec.provenance import sha256_file
from simspec.traces.index import Trace


def open_cost(trace: Trace, name: str) -> CostModel:
    """A number format of the trace's latency table, or a TOML profile by its path.

    Raises:
        BadInput: when the name is neither, or the profile does not fit the trace.
    """
    if name.endswith(".toml"):
        return _fitting(read_affine(Path(name)), trace)
    measured = sorted(set(trace.latency["dtype"]) - {"none"})
    if name not in measured:
        raise unknown_name("cost", name, [*measured, "a profile's path ending in .toml"])
    machine = trace.manifest.machine
    label = (
        f"{trace.manifest.origin} on {trace.manifest.device} "
        f"({machine.get('processor', 'unknown processor')}, {machine.get('threads', '?')} threads), "
        f"{name}, median of repetitions, interpolated; padded rows; time between forwards not counted"
    )
    if name != trace.manifest.dtype:
        label += f"; a cost curve only: behaviour was recorded in {trace.manifest.dtype}"
    return MeasuredCost(trace.latency, name, name, label)


def cost_inputs(names: list[str]) -> dict[str, str]:
    """Hashes of the profiles among ``names``, for provenance."""
    return {Path(n).name: sha256_file(Path(n)) for n in names if n.endswith(".toml")}


def _fitting(cost: AffineCost, trace: Trace) -> AffineCost:
    """A profile may price only models of the trace."""
    for name in (cost.target, *cost.ratios):
        if name not in trace.manifest.models:
            raise unknown_name("model", name, trace.manifest.models, where=cost.name)
    return cost
