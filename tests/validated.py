"""Documents as ``simspec validate`` writes them, of made-up times: nothing in them was measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from simspec.compare.cut import cut_texts
from simspec.compare.replayed import Candidate
from simspec.compare.validated import CostWithOverhead, timed_models
from simspec.compare.validation import Overhead
from simspec.cost.models import MeasuredCost
from simspec.replay.lockstep import price
from simspec.replay.trajectories import run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Static
from simspec.tables import LATENCY
from simspec.traces.index import Trace
from tests.toy import LOOKUP, MIDDLE, SMALL, TARGET

BASE = {LOOKUP: 1e-6, SMALL: 0.01, MIDDLE: 0.04, TARGET: 0.1}
OVERHEAD = Overhead(0.001, 0.0002, 0.003, 0.0004)
CANDIDATES: tuple[Candidate, ...] = (
    (Chain((TARGET,)), 0),
    *((Chain((d, TARGET)), n) for d in (LOOKUP, SMALL, MIDDLE) for n in (1, 3)),
    (Chain((SMALL, MIDDLE, TARGET), "funnel-replace"), 2),
    (Chain((LOOKUP, MIDDLE, TARGET), "funnel-truncate"), 2),
)


def latency() -> pd.DataFrame:
    rows = [
        (m, "cpu", "none" if m == LOOKUP else "float32", b, w, c, 0, base * (1 + 0.1 * b * w + 0.001 * c))
        for m, base in BASE.items()
        for b, w, c in product((1, 2, 3), (1, 2, 4), (4, 64))
    ]
    return pd.DataFrame(rows, columns=LATENCY.schema.names)


def document(
    trace: Trace, tokens: int, units: dict[int, list[list[int]]], noise: Callable[[float], float] = float
) -> dict[str, Any]:
    """What a run would have kept whose times are the simulated ones, put through ``noise``."""
    short = cut_texts(trace, tokens)
    cost = CostWithOverhead(MeasuredCost(latency(), "float32", "made up", ""), OVERHEAD, TARGET, {LOOKUP})
    found = []
    for (batch, groups), (chain, length) in product(units.items(), CANDIDATES):
        runs = run(short, chain, Static(length) if length else None, short.offsets[:-1])
        lookup = chain.drafter == LOOKUP
        forward, whole = price(runs, np.array(groups), [cost.cost, cost], lookup=lookup)
        seconds = [noise(s) for s in whole.seconds.tolist()]
        total = float(whole.tokens.sum())
        found.append(
            {
                "chain": list(chain.levels),
                "semantics": chain.semantics if chain.intermediates else "",
                "draft_length": length,
                "batch": batch,
                "measured": sum(seconds) / total,
                "spread": 0.0,
                "predicted": float(whole.seconds.sum()) / total,
                "measured_forward": float(forward.seconds.sum()) / total,
                "predicted_forward": float(forward.seconds.sum()) / total,
                "unit_seconds": seconds,
                "unit_tokens": whole.tokens.tolist(),
                "priced_by_tokens": float(forward.seconds.sum()) / total,
                "priced_by_slots": 1.1 * float(forward.seconds.sum()) / total,
            }
        )
    decoded = {row for groups in units.values() for group in groups for row in group}
    return {
        "format": "simspec validation 1",
        "trace": "toy",
        "behaviour_sha256": trace.manifest.behaviour_sha256,
        "device": "cpu",
        "dtype": "float32",
        "machine": {"processor": "made up", "cores": 0},
        "rounds": 1,
        "output_tokens": tokens,
        "forwards": timed_models(latency()),
        "overhead_seconds": asdict(OVERHEAD),
        "decoded": {str(b): groups for b, groups in units.items()},
        "fitted": [p for p in range(len(trace.prompts)) if p not in decoded],
        "same_prompts": {"all": found},
    }
