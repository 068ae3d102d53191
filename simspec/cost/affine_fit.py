"""One model's cost as an affine function of tokens, and where it is not one."""

from __future__ import annotations

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import nnls

from simspec.cost.fit_errors import Errors, errors_of, medians

Floats = NDArray[np.float64]

# A rise from one width to the next that beats the affine fit's by this much is a step of a staircase.
STEP_EXCESS = 0.25
# An affine fit whose 90th percentile is worse than this is called poor.
POOR_P90 = 0.15


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
