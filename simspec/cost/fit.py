"""Cost models fitted to a latency table, with how far off they are.

Every fit is to the medians of repetitions, and by relative error: a forward of a millisecond
counts as much as one of a second. Errors are ``abs(predicted / measured - 1)``, over the points
that were fitted and over points left out of the fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares, nnls

from simspec.cost.architecture import FORMATS, Architecture, Formats
from simspec.cost.roofline import Rates, roofline_seconds
from simspec.cost.shape import StepShape, uniform
from simspec.errors import BadInput

Floats = NDArray[np.float64]

# A rise from one width to the next that beats the affine fit's by this much is a step of a staircase.
STEP_EXCESS = 0.25
# An affine fit whose 90th percentile is worse than this is called poor.
POOR_P90 = 0.15
# A cache that is copied to be extended and then expanded over the heads is moved about nine times.
MOST_CACHE_PASSES = 16.0


class Errors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Median and 90th percentile of relative errors over ``points`` points."""

    median: float
    p90: float
    points: int


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rise from ``below`` to ``above`` new tokens: what was measured, and what the fit says."""

    batch: int
    context: int
    below: int
    above: int
    measured_rise: float
    fitted_rise: float


class AffineFit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model: seconds = base + per token of the forward + per token in the caches.

    Attributes:
        left_out: each point predicted by the fit to all others; None where there are too few.
        steps: neighbouring widths of one (batch, context) whose rise beats the fit's by a quarter.
        worst_step: the greatest of them.
        remark: whether the fit is to be trusted, in words.
    """

    model: str
    device: str
    dtype: str
    base_seconds: float
    token_seconds: float
    context_token_seconds: float
    in_sample: Errors
    left_out: Errors | None
    steps: int
    worst_step: Step | None
    remark: str


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


class Fits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All fits to one table: affine for each model, a roofline for each device and number format."""

    affine: list[AffineFit]
    roofline: list[RooflineFit]


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


def fit_affine(points: pd.DataFrame) -> AffineFit:
    """Fit one model's medians by non-negative least squares.

    Args:
        points: rows of :func:`medians` of one model, device and dtype.
    """
    tokens = (points["batch"] * points["new_tokens"]).to_numpy(dtype=np.float64)
    cached = (points["batch"] * points["context"]).to_numpy(dtype=np.float64)
    measured = points["seconds"].to_numpy(dtype=np.float64)
    columns = np.stack([np.ones(len(points)), tokens, cached], axis=1)
    if np.linalg.matrix_rank(columns / columns.max(axis=0, initial=1.0)) < 3:
        columns[:, 2] = 0.0  # one batch and one context do not tell the cache from the base
    found = _relative_nnls(columns, measured)
    predicted = columns @ found
    left_out = None
    if len(points) > columns.shape[1]:
        others = np.empty(len(points))
        for i in range(len(points)):
            kept = np.arange(len(points)) != i
            others[i] = columns[i] @ _relative_nnls(columns[kept], measured[kept])
        left_out = errors_of(others, measured)
    steps = _steps(points, predicted)
    worst = max(steps, key=_excess, default=None)
    in_sample = errors_of(predicted, measured)
    first = points.iloc[0]
    return AffineFit(
        model=str(first["model"]),
        device=str(first["device"]),
        dtype=str(first["dtype"]),
        base_seconds=float(found[0]),
        token_seconds=float(found[1]),
        context_token_seconds=float(found[2]),
        in_sample=in_sample,
        left_out=left_out,
        steps=len(steps),
        worst_step=worst,
        remark=_remark(in_sample, left_out, len(steps), worst),
    )


def fit_affines(latency: pd.DataFrame) -> list[AffineFit]:
    """A fit for each (model, device, dtype) of a latency table, in that order."""
    return [
        fit_affine(group.reset_index(drop=True))
        for _, group in medians(latency).groupby(["model", "device", "dtype"], sort=True)
    ]


def _relative_nnls(columns: Floats, measured: Floats) -> Floats:
    # Columns of like size: seconds a token and seconds a forward are far apart.
    scale = columns.max(axis=0)
    scale[scale == 0] = 1.0
    found, _ = nnls(columns / scale / measured[:, None], np.ones(len(measured)))
    return np.asarray(found / scale)


def _steps(points: pd.DataFrame, predicted: Floats) -> list[Step]:
    found = []
    for _, group in points.assign(predicted=predicted).groupby(["batch", "context"]):
        rows = group.sort_values("new_tokens")
        batch, context = rows["batch"].iloc[0], rows["context"].iloc[0]
        widths = rows["new_tokens"].to_numpy()
        measured = rows["seconds"].to_numpy()
        fitted = rows["predicted"].to_numpy()
        for i in range(len(rows) - 1):
            step = Step(
                batch=int(batch),
                context=int(context),
                below=int(widths[i]),
                above=int(widths[i + 1]),
                measured_rise=float(measured[i + 1] / measured[i] - 1),
                fitted_rise=float(fitted[i + 1] / fitted[i] - 1),
            )
            if _excess(step) > STEP_EXCESS:
                found.append(step)
    return found


def _excess(step: Step) -> float:
    return (1 + step.measured_rise) / (1 + step.fitted_rise) - 1


def _remark(in_sample: Errors, left_out: Errors | None, steps: int, worst: Step | None) -> str:
    if in_sample.p90 <= POOR_P90:
        if left_out is None:
            return "too few points to leave one out: says little"
        if left_out.p90 > POOR_P90:
            return f"fits its own points, but is {left_out.p90:.0%} off left-out ones (p90): too few points"
        return "good"
    if worst is None:
        return "poor: the cost is not affine, without a single step that explains it"
    return (
        f"poor: a staircase of {steps} step{'s' if steps > 1 else ''}; the greatest at batch {worst.batch}, "
        f"context {worst.context}, {worst.below} to {worst.above} new tokens: "
        f"{worst.measured_rise:+.0%} measured, {worst.fitted_rise:+.0%} fitted"
    )


def fit_all(latency: pd.DataFrame, architectures: Mapping[str, Architecture]) -> Fits:
    """Every fit that a latency table allows.

    Raises:
        BadInput: as :func:`medians`.
    """
    points = medians(latency)
    roofline = []
    for (_, dtype), rows in points.groupby(["device", "dtype"], sort=True):
        if dtype in FORMATS and rows["model"].isin(list(architectures)).any():
            roofline.append(fit_roofline(rows, architectures, FORMATS[dtype]))
    return Fits(fit_affines(latency), roofline)


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
