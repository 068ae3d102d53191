"""What a device attains, fitted to the forwards of all models at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares

from simspec.cost.architecture import Architecture, Formats
from simspec.cost.fit_errors import Errors, errors_of
from simspec.cost.roofline import Rates, roofline_seconds
from simspec.cost.shape import StepShape, uniform
from simspec.errors import BadInput

Floats = NDArray[np.float64]

# A cache that is copied to be extended and then expanded over the heads is moved about nine times.
MOST_CACHE_PASSES = 16.0


class RooflineFit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a device attains, fitted to every model with a known architecture at once.

    Attributes:
        remark: whether the rates can be what they are called.
        left_out: each (batch, context) predicted by the fit to all others.
        by_model: in-sample errors of each model.
    """

    device: str
    dtype: str
    rates: Rates
    in_sample: Errors
    left_out: Errors | None
    by_model: dict[str, Errors]
    remark: str


@dataclass(frozen=True)
class _Block:
    """One model's points: its architecture, their shapes, and seconds."""

    model: str
    made: Architecture
    shape: StepShape
    measured: Floats


def fit_roofline(
    points: pd.DataFrame,
    architectures: Mapping[str, Architecture],
    formats: Formats,
) -> RooflineFit:
    """Fit what a device attains to all models together.

    Five numbers: FLOPs and bytes a second, overhead a layer and a forward, and, where there is
    more than one context, passes over the cache.
    Rows of the measured forwards are padded. The fit is by the logarithm of the ratio.

    Args:
        points: rows of :func:`medians` of one device and dtype; models without an architecture
            are left out.

    Raises:
        BadInput: when no model has an architecture.
    """
    points = points[points["model"].isin(list(architectures))]
    if points.empty:
        raise BadInput("no model with a known architecture has latencies", where="latency")
    every = _blocks(points, architectures)
    rates = _fit_rates(every, formats)
    predicted = [_predict(rates, b, formats) for b in every]
    cells = sorted(set(zip(points["batch"], points["context"], strict=True)))
    left_out = None
    if len(cells) > 2:
        guesses, truths = [], []
        for batch, context in cells:
            inside = (points["batch"] == batch) & (points["context"] == context)
            other = _fit_rates(_blocks(points[~inside], architectures), formats)
            for block in _blocks(points[inside], architectures):
                guesses.append(_predict(other, block, formats))
                truths.append(block.measured)
        left_out = errors_of(np.concatenate(guesses), np.concatenate(truths))
    return RooflineFit(
        device=str(points["device"].iloc[0]),
        dtype=str(points["dtype"].iloc[0]),
        rates=rates,
        in_sample=errors_of(np.concatenate(predicted), np.concatenate([b.measured for b in every])),
        left_out=left_out,
        by_model={b.model: errors_of(p, b.measured) for b, p in zip(every, predicted, strict=True)},
        remark=_rates_remark(rates, len(points)),
    )


def _rates_remark(rates: Rates, points: int) -> str:
    if points <= 5:
        return "no more points than numbers fitted: says nothing"
    if rates.cache_passes > 0.99 * MOST_CACHE_PASSES:
        return (
            f"cached tokens cost more than {MOST_CACHE_PASSES:g} passes over the cache, the most that is "
            "allowed: something that a roofline does not have takes that time"
        )
    return "the rates are effective ones: what is not in a roofline is spread over them"


def roofline_errors(
    points: pd.DataFrame, architectures: Mapping[str, Architecture], formats: Formats, rates: Rates
) -> dict[str, Errors]:
    """Errors of given rates, by model: a prediction that has seen none of the points."""
    blocks = _blocks(points[points["model"].isin(list(architectures))], architectures)
    return {b.model: errors_of(_predict(rates, b, formats), b.measured) for b in blocks}


def _blocks(points: pd.DataFrame, architectures: Mapping[str, Architecture]) -> list[_Block]:
    blocks = []
    for model, group in points.groupby("model", sort=True):
        shape = uniform(*(group[c].to_numpy(dtype=np.int64) for c in ("batch", "new_tokens", "context")))
        measured = group["seconds"].to_numpy(dtype=np.float64)
        blocks.append(_Block(str(model), architectures[str(model)], shape, measured))
    return blocks


def _predict(rates: Rates, block: _Block, formats: Formats) -> Floats:
    return roofline_seconds(rates, block.made, formats, block.shape, packed=False)


def _fit_rates(blocks: list[_Block], formats: Formats) -> Rates:
    least = min(float(b.measured.min()) for b in blocks)
    layers = max(b.made.layers for b in blocks)
    # Logarithms of: FLOP/s, bytes/s, seconds a layer, seconds a forward, cache passes.
    low = np.log([1e6, 1e6, 1e-12, 1e-12, 1.0])
    contexts = np.unique(np.concatenate([b.shape.context for b in blocks]))
    # One context does not tell passes over the cache from everything else that grows with the rows.
    passes = MOST_CACHE_PASSES if len(contexts) > 1 else 1.0001
    high = np.log([1e17, 1e15, least / layers, least, passes])

    def rates_at(x: Floats) -> Rates:
        return Rates(*(float(v) for v in np.exp(np.clip(x, low, high))))

    def residuals(x: Floats) -> Floats:
        rates = rates_at(x)
        return np.concatenate([np.log(_predict(rates, b, formats) / b.measured) for b in blocks])

    starts = []
    for share in (0.01, 0.3):  # of the quickest forward that is overhead: the fit has more than one valley
        begin = np.log([1e11, 1e10, share * least / layers, share * least, 3.0])
        inside = np.clip(begin, low + 1e-6, high - 1e-6)
        starts.append(least_squares(residuals, inside, bounds=(low, high)))
    return rates_at(min(starts, key=lambda found: float(found.cost)).x)
