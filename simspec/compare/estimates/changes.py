"""Many changes together: how fast moving averages follow, and how far off they are for how long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.compare.estimates.tracking import Tracked, first_at, steps_to, track

Floats = NDArray[np.float64]

# Observations after a change that are kept for a figure.
SHOWN = 128

# Streams before and after a change, (streams, steps) each.
Change = tuple[Floats, Floats]


def followed(changes: Sequence[Change], weight: float) -> tuple[dict[str, Any], list[Tracked]]:
    """How an EMA follows changes, and each of them tracked.

    Returns:
        ``steps_to_half``, ``steps_to_90`` (observations until the least-squares share of the way, over all
        changes, is there; null if never) and ``expected_half``, ``expected_90`` of a clean step;
        ``bias``, ``shake`` (root mean squares over changes, once settled: the last quarter); ``come[]`` (that
        share after each of the first :data:`SHOWN` observations).
    """
    tracked = [track(before, after, weight) for before, after in changes]
    steps = min(len(t.mean) for t in tracked)
    apart = np.array([t.after - t.before for t in tracked])
    gone = np.stack([t.mean[:steps] - t.before for t in tracked])
    come = apart @ gone / (apart @ apart) if apart.any() else np.zeros(steps)
    told = {
        "steps_to_half": first_at(come, 0.5),
        "steps_to_90": first_at(come, 0.9),
        "expected_half": steps_to(0.5, weight),
        "expected_90": steps_to(0.9, weight),
        "bias": float(np.sqrt(np.mean([t.bias**2 for t in tracked]))),
        "shake": float(np.sqrt(np.mean([t.shake**2 for t in tracked]))),
        "come": come[:SHOWN].tolist(),
    }
    return told, tracked


def stretch_error(tracked: Sequence[Tracked], steps: int) -> float:
    """Root mean square distance from the new mean over the first ``steps`` observations after a change."""
    return float(np.sqrt(np.mean([t.square_error(steps) for t in tracked])))


def expected_error(weight: float, apart: float, noise: float, steps: int) -> float:
    """The same of a clean step of ``apart`` in independent observations of standard deviation ``noise``.

    bias^2 = apart^2 (1 - w)^(2 t) after t of them, variance = noise^2 w / (2 - w) throughout.
    """
    t = np.arange(1, steps + 1)
    bias = apart**2 * np.mean((1.0 - weight) ** (2 * t))
    return float(np.sqrt(bias + noise**2 * weight / (2.0 - weight)))
