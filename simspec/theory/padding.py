"""A forward over several requests that do not all do the same, under independence of rows."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

# Numbers of running rows that are less likely are left out, where floats are given.
_NEGLIGIBLE = 1e-12


def padded_seconds(chances: NDArray[Any], rows: int, seconds: NDArray[Any]) -> Any:
    """Expected seconds of a forward over ``rows`` rows that are padded to the widest one.

    Each row, independently and alike, has the w-th width with probability ``chances[w]`` and is idle with
    what is left to 1; a forward over k rows, the widest having the w-th width, takes ``seconds[k, w]``. With
    F(w) the probability that a row runs and is not wider than the w-th, k rows run and none is wider with
    probability C(rows, k) idle^(rows-k) F(w)^k. Arrays of floats, or of fractions (dtype object), which stay
    exact.

    Args:
        chances: shape (widths, ...), widths rising.
        seconds: shape (rows + 1, widths) or (rows + 1, widths, Z), which gives Z sums; no row takes nothing.

    Returns:
        shape (...,) or (..., Z).
    """
    up_to = np.cumsum(chances, axis=0)
    running = up_to[-1]
    exact = up_to.dtype == object
    if not exact:
        running = np.where(running > 1.0 - _NEGLIGIBLE, 1.0, running)
    within = up_to / np.where(running > 0, running, running + 1)
    total: Any = 0 * running[..., None] * seconds[0, 0] if seconds.ndim == 3 else 0 * running
    before, power = 0, 1 + 0 * within
    for k in range(1, rows + 1) if np.any(running != 1) else (rows,):
        many = _running(rows, k, running, exact)
        if not np.any(many > (0 if exact else _NEGLIGIBLE)):
            continue
        power = power * (within if k == before + 1 else within ** (k - before))
        before = k
        widest = power * many
        widest[1:] -= widest[:-1].copy()
        total = total + np.tensordot(np.moveaxis(widest, 0, -1), seconds[k], axes=1)
    return total


def _running(rows: int, k: int, chance: Any, exact: bool) -> Any:
    """The probability that k of ``rows`` run."""
    if exact:
        return comb(rows, k) * chance**k * (1 - chance) ** (rows - k)
    ways = gammaln(rows + 1) - gammaln(k + 1) - gammaln(rows - k + 1)
    return np.exp(ways + xlogy(k, chance) + xlog1py(rows - k, -chance))
