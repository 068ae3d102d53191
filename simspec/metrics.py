"""Figures of merit with their intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]

INTERVAL = (0.025, 0.975)


@dataclass(frozen=True)
class Estimate:
    """A figure on all prompts and its 95% interval over bootstrap draws of prompts."""

    value: float | None
    low: float | None
    high: float | None

    def as_json(self) -> dict[str, float | None]:
        return {"value": self.value, "low": self.low, "high": self.high}


def estimate(value: float, draws: Floats) -> Estimate:
    """From the figure on all prompts and the figures of the draws; NaN draws are left out."""
    kept = draws[np.isfinite(draws)]
    if not np.isfinite(value):
        return Estimate(None, None, None)
    if not len(kept):
        return Estimate(float(value), None, None)
    low, high = np.quantile(kept, INTERVAL)
    return Estimate(float(value), float(low), float(high))


def wilson(successes: int, trials: int) -> Estimate:
    """A proportion with its 95% Wilson interval; null without trials."""
    if not trials:
        return Estimate(None, None, None)
    interval = stats.binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    return Estimate(successes / trials, float(interval.low), float(interval.high))


def kendall_tau(predicted: Floats, truth: Floats) -> float:
    """Kendall's tau-b of two orders; NaN when one of them is all ties or there is nothing to order."""
    if len(predicted) < 2:
        return float("nan")
    return float(stats.kendalltau(predicted, truth, variant="b").statistic)


def percent_over(value: Floats | float, reference: Floats | float) -> Floats | float:
    """How many percent ``value`` is above ``reference``."""
    return 100.0 * (value / reference - 1.0)
