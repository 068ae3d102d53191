"""Shares and means over rounds, with intervals over draws of prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.metrics import Estimate, estimate
from simspec.traces.index import Ints

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def mean_over(values: NDArray[Any], prompt: Ints, counts: Floats) -> Estimate:
    """Mean of a value a round, pooled over the rounds of the prompts of each draw; null without rounds.

    Args:
        values, prompt: of each round, (R,).
        counts: how often each draw has each prompt, row 0 all of them once, (draws + 1, P).
    """
    prompts = counts.shape[1]
    total = counts @ np.bincount(prompt, weights=values, minlength=prompts)
    rounds = counts @ np.bincount(prompt, minlength=prompts)
    mean = np.divide(total, rounds, out=np.full(len(total), np.nan), where=rounds > 0)
    return estimate(mean[0], mean[1:])


def told(name: str, found: Estimate) -> dict[str, Any]:
    """``name`` and ``name_interval``."""
    return {name: found.value, f"{name}_interval": [found.low, found.high]}


def over_draws(name: str, values: Floats) -> dict[str, Any]:
    """The same of a value on all prompts and on each draw of them, (draws + 1,)."""
    return told(name, estimate(values[0], values[1:]))


def quantiles(values: NDArray[Any], at: Sequence[float] = QUANTILES) -> list[float] | None:
    """Quantiles of rounds' values, None without rounds."""
    return np.quantile(values, at).tolist() if len(values) else None


def apart(one: Ints, other: Ints, prompt: Ints, counts: Floats) -> dict[str, Any]:
    """How often and by how much ``other``'s lengths differ from ``one``'s on the same rounds.

    Returns:
        ``differ`` (share of rounds) with ``differ_interval``, ``mean`` and ``mean_abs`` of other - one over
        all of them, its ``quantiles`` at :data:`QUANTILES`.
    """
    gap = other - one
    return {
        **told("differ", mean_over(gap != 0, prompt, counts)),
        "mean": mean_over(gap, prompt, counts).value,
        "mean_abs": mean_over(np.abs(gap), prompt, counts).value,
        "quantiles": quantiles(gap),
    }
