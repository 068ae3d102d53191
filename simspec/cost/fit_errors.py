"""Medians of repetitions, and how far a prediction is from them."""

from __future__ import annotations

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simspec.errors import BadInput

Floats = NDArray[np.float64]


class Errors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Median and 90th percentile of relative errors over ``points`` points."""

    median: float
    p90: float
    points: int


def errors_of(predicted: Floats, measured: Floats) -> Errors:
    """Relative errors, summed up; raises ValueError where there are no points."""
    off = np.abs(predicted / measured - 1)
    if not off.size:
        raise ValueError("no points to compare")
    return Errors(float(np.median(off)), float(np.quantile(off, 0.9)), int(off.size))


def medians(latency: pd.DataFrame) -> pd.DataFrame:
    """One row a (model, device, dtype, batch, new_tokens, context): median seconds.

    Raises:
        BadInput: when a median is not above zero, which no relative error can be taken of.
    """
    key = ["model", "device", "dtype", "batch", "new_tokens", "context"]
    found = latency.groupby(key, sort=True)["seconds"].median().reset_index()
    if (found["seconds"] <= 0).any():
        bad = found[found["seconds"] <= 0].iloc[0]
        raise BadInput(
            f"median seconds {bad['seconds']} of {bad['model']!r} at batch {bad['batch']}, "
            f"{bad['new_tokens']} new tokens, context {bad['context']}",
            where="latency",
            allowed="above 0",
        )
    return found
