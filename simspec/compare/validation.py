"""How far simulated time is from the clock: figures over configurations, free of torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from simspec.metrics import kendall_tau

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Compared:
    """One configuration, decoded for real and simulated.

    Attributes:
        chain, semantics, draft_length, batch: the configuration.
        prompts: how many texts.
        measured: seconds a token, of all that was decoded.
        spread: the slowest round over the fastest, minus 1; rounds decode other prompts.
        predicted: seconds a token by replay and the latency table.
        measured_forward, predicted_forward: the same, of forwards alone.
        measured_overhead, predicted_overhead: the same, of all else: choosing tokens,
            bookkeeping and packing.
        choosing, packing: measured seconds a token of those two parts of the overhead.
        measured_accepted, predicted_accepted: accepted drafts a target pass.
        counts_equal: whether every cycle's accepted count was the replayed one; None where the
            prompts that were replayed are others.
        unit_seconds, unit_tokens: of each batch that was decoded, in the order of the document's ``decoded``;
            every configuration of a batch size decoded the same ones, one after another.
        priced_by_tokens, priced_by_slots: seconds a token of the very forwards of networks that ran, by the
            latency table at the longest row's tokens, and at the cache's slots, wasted ones included.
        table_by_tokens: what was measured of those forwards over ``priced_by_tokens``, by model.
    """

    chain: list[str]
    semantics: str
    draft_length: int
    batch: int
    prompts: int
    measured: float
    spread: float
    predicted: float
    measured_forward: float
    predicted_forward: float
    measured_overhead: float
    predicted_overhead: float
    choosing: float
    packing: float
    measured_accepted: float
    predicted_accepted: float
    counts_equal: bool | None
    unit_seconds: list[float]
    unit_tokens: list[int]
    priced_by_tokens: float
    priced_by_slots: float
    table_by_tokens: dict[str, float]

    @property
    def error(self) -> float:
        """Predicted over measured, minus 1."""
        return self.predicted / self.measured - 1.0


def summarise(found: Sequence[Compared]) -> dict[str, Any]:
    """Absolute errors, the ranking, and which part they come from."""
    error = np.array([c.error for c in found])
    measured = np.array([c.measured for c in found])
    predicted = np.array([c.predicted for c in found])
    forward = np.array([c.predicted_forward - c.measured_forward for c in found]) / measured
    overhead = np.array([c.predicted_overhead - c.measured_overhead for c in found]) / measured
    taus = {}
    for batch in sorted({c.batch for c in found}):
        mine = np.array([c.batch == batch for c in found])
        taus[str(batch)] = kendall_tau(predicted[mine], measured[mine])
    known = [c.counts_equal for c in found if c.counts_equal is not None]
    return {
        "configurations": len(found),
        "median_abs_error": float(np.median(np.abs(error))),
        "p90_abs_error": float(np.quantile(np.abs(error), 0.9)),
        "worst_abs_error": float(np.abs(error).max()),
        "median_error": float(np.median(error)),
        "kendall_tau": kendall_tau(predicted, measured),
        "kendall_tau_by_batch": taus,
        "accepted_counts_equal": all(known) if known else None,
        "median_abs_error_of_forwards": float(np.median(np.abs(forward))),
        "median_abs_error_of_overhead": float(np.median(np.abs(overhead))),
        "median_share_of_overhead": float(np.median([c.measured_overhead / c.measured for c in found])),
        "median_share_of_choosing": float(np.median([c.choosing / c.measured for c in found])),
        "median_share_of_packing": float(np.median([c.packing / c.measured for c in found])),
        "median_spread_of_repetitions": float(np.median([c.spread for c in found])),
        "all": [{**asdict(c), "error": c.error} for c in found],
    }


@dataclass(frozen=True)
class Overhead:
    """Seconds outside forwards: ``forward`` for each, ``word`` for each padded place whose word was
    chosen, ``cycle`` for each, ``row`` for each request in each cycle."""

    forward: float
    word: float
    cycle: float
    row: float


def fit_overhead(features: Floats, seconds: Floats) -> Overhead:
    """Least squares without negative parts, relative to each run's time.

    Args:
        features: forwards, words, cycles and request-cycles of each run, shape (runs, 4).
        seconds: time outside forwards, shape (runs,).
    """
    weight = 1.0 / seconds
    found, _ = nnls(features * weight[:, None], seconds * weight)
    return Overhead(*(float(v) for v in found))
