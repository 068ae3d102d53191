"""The maps f of alpha ~= f(SimScore) (Eq. 6 of arXiv 2505.07680, which leaves f open), fitted to counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

Floats = NDArray[np.float64]

_STEPS = 100
# What a squared coefficient is charged: keeps data that a step would fit from running off to infinity.
_RIDGE = 1e-3


class Map(Protocol):
    def of(self, similarity: ArrayLike) -> Floats:
        """Acceptance for similarities of any shape."""


@dataclass(frozen=True)
class Constant:
    """The same acceptance for every pair."""

    rate: float

    def of(self, similarity: ArrayLike) -> Floats:
        return np.full(np.shape(similarity), self.rate)


@dataclass(frozen=True)
class Logistic:
    """1 / (1 + exp(-(intercept + slope s))): the "calibrated sigmoid"."""

    intercept: float
    slope: float

    def of(self, similarity: ArrayLike) -> Floats:
        return np.asarray(expit(self.intercept + self.slope * np.asarray(similarity)))


@dataclass(frozen=True)
class Isotonic:
    """Never falling: ``rates`` at ``knots``, linear between them, constant outside."""

    knots: tuple[float, ...]
    rates: tuple[float, ...]

    def of(self, similarity: ArrayLike) -> Floats:
        return np.asarray(np.interp(np.asarray(similarity), self.knots, self.rates))


def fit_constant(similarity: Floats, good: Floats, tried: Floats) -> Constant:
    """The pooled rate; 0 where nothing was tried. Arguments as for :func:`fit_logistic`."""
    total = float(tried.sum())
    return Constant(float(good.sum()) / total if total else 0.0)


def fit_logistic(similarity: Floats, good: Floats, tried: Floats) -> Logistic:
    """Greatest binomial likelihood, by Newton's method, with a slight pull to 0.

    Args:
        similarity, good, tried: SimScore, drafts accepted and drafts tried of each point, shape (n,).
    """
    design = np.stack([np.ones_like(similarity), similarity], axis=1)
    found = np.zeros(2)
    for _ in range(_STEPS):
        rate = expit(design @ found)
        slope = design.T @ (good - tried * rate) - _RIDGE * found
        bend = (design * (tried * rate * (1 - rate))[:, None]).T @ design + _RIDGE * np.eye(2)
        step = np.linalg.solve(bend, slope)
        # A step that overshoots would never come back.
        step *= min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-300))
        found = found + step
        if np.abs(step).max() < 1e-10:
            break
    return Logistic(float(found[0]), float(found[1]))


def fit_isotonic(similarity: Floats, good: Floats, tried: Floats) -> Isotonic:
    """Least weighted squares among maps that never fall; points where nothing was tried say nothing.

    Arguments as for :func:`fit_logistic`.
    """
    some = tried > 0
    if not some.any():
        return Isotonic((0.0,), (0.0,))
    knots, which = np.unique(similarity[some], return_inverse=True)
    weight = np.bincount(which, weights=tried[some])
    rates = pool_adjacent(np.bincount(which, weights=good[some]) / weight, weight.astype(np.float64))
    return Isotonic(tuple(knots.tolist()), tuple(rates.tolist()))


def pool_adjacent(values: Floats, weights: Floats) -> Floats:
    """The never falling sequence of least weighted squared distance (pool adjacent violators), shape (n,)."""
    means: list[float] = []
    sums: list[float] = []
    sizes: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, total, size = value, weight, 1
        while means and means[-1] >= mean:
            before = sums.pop()
            mean = (means.pop() * before + mean * total) / (before + total)
            total += before
            size += sizes.pop()
        means.append(mean)
        sums.append(total)
        sizes.append(size)
    return np.repeat(means, sizes)


MAPS: dict[str, Callable[[Floats, Floats, Floats], Map]] = {
    "constant": fit_constant,
    "logistic": fit_logistic,
    "isotonic": fit_isotonic,
}
