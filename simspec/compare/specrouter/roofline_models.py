"""SpecRouter's three models (arXiv 2505.07680) on data-sheet devices: derived costs, not measured."""

from __future__ import annotations

import msgspec
import numpy as np

from simspec.cost import presets
from simspec.cost.architecture import FORMATS
from simspec.cost.published import compare, papers
from simspec.cost.roofline import RooflineCost
from simspec.cost.shape import uniform
from simspec.theory.padded_chains import BatchPrices

SMALL, MIDDLE, TARGET = "llama-68m", "TinyLlama-1.1B", "Llama-2-7b"
# Tokens cached: a short question and half of its answer.
CONTEXT = 256
_WIDEST = 64


def roofline(device: str, names: dict[str, str], **overheads: float) -> RooflineCost:
    """The three models on a device, rows padded, under the names given; the label says how far off it is."""
    made = msgspec.structs.replace(presets.device(device), **overheads)
    low, high = published_ratios(device)
    return RooflineCost(
        name=f"roofline-{device}",
        label=(
            f"roofline, derived: {TARGET}, {MIDDLE} and {SMALL} on {device}, bfloat16, padded rows, "
            f"{made.compute_efficiency:.0%} of FLOP/s and {made.bandwidth_efficiency:.0%} of bandwidth "
            f"assumed, no framework; of forwards of other models on this device it says {low:.2f} to "
            f"{high:.2f} of the published times"
        ),
        rates=made.rates("bfloat16"),
        formats=FORMATS["bfloat16"],
        architectures={name: presets.architecture(called) for name, called in names.items()},
        lookup_seconds={},
        packed=False,
        step_overhead_seconds=0.0,
    )


def published_ratios(device: str) -> tuple[float, float]:
    """The least and the greatest ratio of what the roofline says to what papers published."""
    ratios = [c.ratio for c in compare(papers().cases) if c.case.device == device]
    return min(ratios), max(ratios)


def prices_of(device: str, batch: int, factor: float = 1.0, **overheads: float) -> BatchPrices:
    """Seconds of the three models' forwards at :data:`CONTEXT`; the drafter's times ``factor``."""
    cost = roofline(device, {m: m for m in (SMALL, MIDDLE, TARGET)}, **overheads)
    width = np.arange(_WIDEST + 1)
    shape = uniform(np.full_like(width, batch), np.maximum(width, 1), np.full_like(width, CONTEXT))
    found = {m: cost.forward_seconds(m, shape) for m in cost.models}
    return BatchPrices(batch, factor * float(found[SMALL][1]), found[MIDDLE], found[TARGET])
