"""Tests and intervals whose unit is the prompt.

Positions of one text depend on each other, so nothing here draws, shuffles across prompts or counts them as
independent, but where the null itself says that they are (:mod:`~simspec.claims.empirical.prompts`,
:mod:`~simspec.claims.empirical.blocks`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simspec.metrics import Estimate, estimate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Sums that should be zero come out as rounding errors of this relative size.
ROUNDING = 1e-9


@dataclass(frozen=True)
class PValue:
    """A p value, and the least one that the number of resamples and of prompts allows."""

    p: float
    least: float


def sums_by(prompt: Ints, values: Floats | NDArray[np.bool_], prompts: int) -> Floats:
    """Sum of ``values``, shape (n,), over each prompt's entries, shape (prompts,)."""
    # Without entries numpy counts in whole numbers.
    return np.bincount(prompt, weights=values.astype(np.float64), minlength=prompts).astype(np.float64)


def bootstrap_counts(prompts: int, draws: int, generator: np.random.Generator) -> Floats:
    """How often each bootstrap draw has each prompt, shape (draws, prompts)."""
    return generator.multinomial(prompts, np.full(prompts, 1 / prompts), size=draws).astype(np.float64)


def ratio(numerator: Floats, denominator: Floats, counts: Floats) -> tuple[Estimate, Floats]:
    """A ratio of sums over prompts: its estimate and its bootstrap draws (NaN where nothing is below)."""
    below = counts @ denominator
    draws = np.where(below > 0, (counts @ numerator) / np.where(below > 0, below, 1.0), np.nan)
    total = float(denominator.sum())
    value = float(numerator.sum()) / total if total > 0 else np.nan
    return estimate(value, draws), draws


def flips(
    scores: Floats,
    resamples: int,
    generator: np.random.Generator,
    statistic: Literal["quadratic", "absolute"] = "quadratic",
) -> PValue | None:
    """Test that every prompt's score has mean zero, by flipping the sign of whole prompts.

    The wild cluster bootstrap of scores, with the null imposed (Kline and Santos, 2012, J. Econometric
    Methods 1). Exact where scores are symmetric about zero, else for many prompts. Whatever the dependence
    inside a prompt, a prompt's whole vector is flipped at once.

    Args:
        scores: shape (P,) or (P, K). Where rates were estimated, scores must be those in which the
            estimates' own errors cancel.
        statistic: ``quadratic``: the sum's quadratic form in the inverse of its covariance; ``absolute``:
            the sum over K of the absolute sums.

    Returns:
        None where no score differs from zero: there is nothing to test.
    """
    u = scores if scores.ndim == 2 else scores[:, None]
    size = np.sqrt((u**2).sum(axis=0))
    if not len(u) or not size.any():
        return None
    if statistic == "quadratic":
        u = np.divide(u, size, out=np.zeros_like(u), where=size > ROUNDING * size.max())
    moved = np.abs(u).max(axis=1) > ROUNDING * np.abs(u).max()
    u = u[moved]
    signs = 2.0 * generator.integers(0, 2, (resamples, len(u))) - 1.0
    sums = np.concatenate([u.sum(axis=0, keepdims=True), signs @ u])
    if statistic == "quadratic":
        inverse = np.linalg.pinv(u.T @ u, rcond=1e-8, hermitian=True)
        found = ((sums @ inverse) * sums).sum(axis=1)
    else:
        found = np.abs(sums).sum(axis=1)
    # One sign is the same as its opposite.
    return upper(float(found[0]), found[1:], least=2.0 ** (1 - len(u)))


def upper(observed: float, resampled: Floats, least: float = 0.0) -> PValue:
    """p value of a statistic that is large against the null (Phipson and Smyth, 2010: never zero).

    Args:
        least: the chance of the rarest arrangement, where that is known.
    """
    as_large = int((resampled >= observed - ROUNDING * max(abs(observed), 1e-300)).sum())
    of = len(resampled) + 1
    return PValue((1 + as_large) / of, max(1 / of, least))


def both_sides(observed: float, resampled: Floats, least: float = 0.0) -> PValue:
    """p value of a statistic that is far to either side of the middle of all, the observed one included."""
    middle = (observed + float(resampled.sum())) / (len(resampled) + 1)
    return upper(abs(observed - middle), np.abs(resampled - middle), least)


def holm(p_values: Floats) -> Floats:
    """Holm's adjusted p values (1979, Scand. J. Statistics 6), in the order given.

    Rejecting those at most a level keeps the chance of any false rejection at most that level, however the
    tests depend on each other.
    """
    order = np.argsort(p_values, kind="stable")
    left = len(p_values) - np.arange(len(p_values))
    stepped = np.maximum.accumulate(np.minimum(p_values[order] * left, 1.0))
    adjusted = np.empty(len(p_values))
    adjusted[order] = stepped
    return adjusted


def even_scores(values: Floats, tried: Floats) -> Floats:
    """Scores for "one rate at all places", shape (P, J), in which the error of the pooled rate cancels.

    Args:
        values: sum of what is averaged, by prompt and place, shape (P, J).
        tried: how many there were, same shape.
    """
    total = tried.sum()
    off = values - values.sum() / total * tried
    scores: Floats = off - tried.sum(axis=0) / total * off.sum(axis=1, keepdims=True)
    return scores
