"""Scores of confidence against acceptance with draws of prompts, which keep tokens of one text together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from simspec.compare.calibration import BINS, Drafts, binned
from simspec.traces.index import Ints

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Scores:
    """On all prompts and on draws of them, (draws + 1,) each; NaN where a draw has no such token.

    Attributes:
        tokens: on all prompts.
        bias: mean confidence less accepted share.
        ece: mean over bins, by count, of |mean confidence - accepted share|; the bins are those of all
            prompts, of about equal counts.
        ece_by_chance: about what a calibrated drafter of these confidences would show on all prompts, were
            its tokens independent (each bin's error normal, with the variance of its coins).
        brier: mean of (confidence - accepted)^2.
        auroc: chance that an accepted token has more confidence than a refused one, ties counting half.
        bins: tokens, mean confidence and accepted share of each bin: (K,), (K,), (draws + 1, K).
    """

    tokens: int
    bias: Floats
    ece: Floats
    ece_by_chance: float
    brier: Floats
    auroc: Floats
    bins: tuple[Ints, Floats, Floats]


def scores(confidence: Floats, accepted: Flags, prompt: Ints, counts: Floats, bins: int = BINS) -> Scores:
    """Score tokens.

    Args:
        confidence, accepted, prompt: shape (n,), n at least 1.
        counts: how often each draw has each prompt, (draws + 1, P), the first row all ones.
        bins: how many to aim at.
    """
    size, which = counts.shape[1], binned(confidence, bins)
    width = int(which.max()) + 1
    cell = prompt * width + which

    def summed(values: Floats | Flags) -> Floats:
        """(draws + 1, K)."""
        sums = np.bincount(cell, weights=values.astype(np.float64), minlength=size * width)
        return np.asarray(counts @ sums.reshape(size, width))

    many, sure, good = (summed(v) for v in (np.ones(len(cell)), confidence, accepted))
    # A bin between interpolated edges can be empty.
    some = many[0] > 0
    coins = summed(confidence * (1.0 - confidence))[0]
    squares = summed((confidence - accepted) ** 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = np.where(many.sum(axis=1) > 0, many.sum(axis=1), np.nan)
        return Scores(
            tokens=len(cell),
            bias=(sure - good).sum(axis=1) / total,
            ece=np.abs(sure - good).sum(axis=1) / total,
            ece_by_chance=float(np.sqrt(2.0 / np.pi * coins).sum() / total[0]),
            brier=squares.sum(axis=1) / total,
            auroc=aurocs(confidence, accepted, prompt, counts),
            bins=(
                many[0, some].astype(np.int64),
                sure[0, some] / many[0, some],
                good[:, some] / many[:, some],
            ),
        )


def aurocs(score: Floats, positive: Flags, prompt: Ints, counts: Floats) -> Floats:
    """Area under the ROC curve of each draw, (draws + 1,), from pairs won between any two prompts."""
    level = np.unique(score, return_inverse=True)[1]
    shape = counts.shape[1], int(level.max()) + 1
    cell = prompt * shape[1] + level
    up, down = (
        np.bincount(cell[k], minlength=shape[0] * shape[1]).reshape(shape) for k in (positive, ~positive)
    )
    # Refused tokens of each prompt below a level, ties by half; then by the prompts of winner and loser.
    below = np.cumsum(down, axis=1) - down / 2.0
    won = up.astype(np.float64) @ below.T
    pairs = (counts @ up.sum(axis=1)) * (counts @ down.sum(axis=1))
    return _over(((counts @ won) * counts).sum(axis=1), pairs, pairs > 0)


def brier_parts(confidence: Floats, accepted: Flags) -> tuple[float, float, float]:
    """Miscalibration, discrimination, uncertainty: the Brier score is first less second plus third.

    Against the isotonic map fitted on the same tokens: what it would spare, what it is worth over the mean
    alone, and the variance of acceptance. Nothing is binned. Fitted in sample, the first errs upward.
    """
    _, level, many = np.unique(confidence, return_inverse=True, return_counts=True)
    weight = many.astype(np.float64)
    share = np.bincount(level, weights=accepted.astype(np.float64)) / weight
    fitted = isotonic_regression(share, weights=weight).x[level]
    mean = float(accepted.mean())
    said, best, none = (
        float(((f - accepted) ** 2).mean()) for f in (confidence, fitted, np.full(len(level), mean))
    )
    return said - best, none - best, none


def drift(drafts: Drafts, counts: Floats) -> Floats:
    """Slope of (confidence - accepted) over the place in the block, a place, by least squares, (draws + 1,).

    Every token weighs the same, so the slope is that among tokens whose predecessors were all accepted; NaN
    where one place alone was reached.
    """
    x, y = drafts.place + 1.0, drafts.confidence - drafts.accepted
    n, sx, sy, sxx, sxy = (
        counts @ np.bincount(drafts.prompt, weights=v, minlength=counts.shape[1])
        for v in (np.ones(len(x)), x, y, x * x, x * y)
    )
    spread = n * sxx - sx * sx
    return _over(n * sxy - sx * sy, spread, spread > 1e-9 * n * n)


def _over(top: Floats, bottom: Floats, able: Flags) -> Floats:
    """A ratio, NaN where it has no value."""
    return np.asarray(np.divide(top, bottom, out=np.full(len(top), np.nan), where=able))
