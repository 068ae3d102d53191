"""What LibraSpec's alpha = T_i / (tau_i c) would be by what was measured (claim L12).

Three readings, all at the lengths that were really submitted, d and tau being means a request's cycle:

- ``folded``: T and c of the whole cycle, what drafting one more token costs being part of c;
- ``verifying``: of the target's forward alone, as the paper drops the drafter from Eq. 2 on;
- ``average``: c the average cost of a position, T / d, which leaves d / tau: a cost through the origin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simspec.compare.libraspec.tuning import Priced
from simspec.replay.pricing import draft_seconds, forward
from simspec.replay.trajectories import Trajectories
from simspec.traces.index import Ints


def readings(priced: Priced, runs: Trajectories) -> dict[str, Any]:
    """The three, with d (``length``) and tau (``tokens``); None where one more place costs nothing."""
    prompts = len(priced.trace.prompts)
    active = runs.active[:prompts]
    at = runs.flat[:prompts][active].astype(np.int64)
    length, tokens = runs.submitted[:prompts][active].mean(), runs.emitted[:prompts][active].mean()
    found: dict[str, Any] = {"length": float(length), "tokens": float(tokens)}
    for name, (fixed, each) in _lines(priced, at).items():
        found[name] = float((fixed + each * length) / (tokens * each)) if each > 0 else None
    found["average"] = float(length / tokens)
    return found


def along_lengths(priced: Priced, static: Mapping[int, Trajectories]) -> dict[str, dict[str, Any]]:
    """The readings by static length, from 1 on: alpha is no constant."""
    return {str(n): readings(priced, runs) for n, runs in static.items() if n >= 1}


def _lines(priced: Priced, at: Ints) -> dict[str, tuple[float, float]]:
    """T0 and c of T0 + c d by least squares over d = 1 .. D, in mean seconds of cycles begun at ``at``."""
    trace, rows = priced.trace, priced.batch
    at = np.unique(at)
    d = np.arange(1, trace.manifest.block_length + 1)
    context = trace.context[at][:, None]
    verifying = forward(priced.cost, trace.target, rows, d + 1, context).mean(axis=0)
    lag = np.ones_like(context)
    drafting = draft_seconds(trace, priced.cost, priced.drafter, rows, d[None], lag, context).mean(axis=0)
    out = {}
    for name, seconds in (("folded", drafting + verifying), ("verifying", verifying)):
        each, fixed = np.polyfit(d, seconds, 1) if len(d) > 1 else (0.0, 0.0)
        out[name] = (float(fixed + priced.cost.step_overhead_seconds), float(each))
    return out
