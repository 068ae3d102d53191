"""Numbers for documents: four digits, medians with a band, figures with an interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simspec.metrics import estimate

Floats = NDArray[np.float64]

# The middle 80% of draws or streams.
BAND = (0.1, 0.9)


def short(value: float | None) -> float | None:
    """Four digits; None for what is not finite."""
    return None if value is None or not np.isfinite(value) else float(f"{value:.4g}")


def shorts(values: Floats) -> list[float | None]:
    return [short(float(v)) for v in values]


def banded(groups: Sequence[Floats]) -> dict[str, list[float | None]]:
    """Median and :data:`BAND` of each group: ``median``, ``low``, ``high``."""
    return {
        name: [short(float(np.quantile(g, q))) for g in groups]
        for name, q in (("median", 0.5), ("low", BAND[0]), ("high", BAND[1]))
    }


def with_interval(values: Floats) -> list[float | None]:
    """[value, low, high], the first being the figure and the others its draws."""
    found = estimate(float(values[0]), values[1:])
    return [short(found.value), short(found.low), short(found.high)]
