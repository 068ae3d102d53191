"""Figures of merit from the tables of a simulation, after the fact.

Time to first token (TTFT) runs from arrival; time per output token (TPOT) is the time from the first
token to the last over the tokens after the first, one figure a request; so it is not a time between
chunks. Emitted tokens per target pass are given twice, over all passes and as the mean of requests,
because the two differ and both are called acceptance length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Spread:
    """A quantity over requests, in its own unit; all None where no request has it."""

    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None

    @classmethod
    def of(cls, values: Floats) -> Spread:
        if not len(values):
            return cls(None, None, None, None)
        p50, p90, p99 = (float(q) for q in np.quantile(values, (0.5, 0.9, 0.99)))
        return cls(float(values.mean()), p50, p90, p99)


@dataclass(frozen=True)
class Figures:
    """What a simulation amounts to.

    Attributes:
        requests: how many requests ended how.
        output_tokens: emitted by requests that finished or were going on.
        ttft_seconds: of requests that have a first token.
        queueing_seconds: from arrival to the first admission, of requests admitted.
        tpot_seconds: of finished requests of at least two tokens.
        e2e_seconds: from arrival to the end, of finished requests.
        emitted_per_pass_pooled: over all decoding passes of the target; None without any.
        emitted_per_pass_mean: mean over requests that had one.
        draft_waste: share of drafted tokens that were not accepted; None where none was drafted.
        preemptions: how often a request lost its place.
    """

    requests: dict[str, int]
    output_tokens: int
    ttft_seconds: Spread
    queueing_seconds: Spread
    tpot_seconds: Spread
    e2e_seconds: Spread
    emitted_per_pass_pooled: float | None
    emitted_per_pass_mean: float | None
    draft_waste: float | None
    preemptions: int


def figures(steps: pa.Table, requests: pa.Table) -> Figures:
    """From the tables ``steps`` and ``requests`` of :mod:`simspec.serving.recorder`, whole or in part."""
    outcome = np.asarray(requests["outcome"].to_pylist(), dtype=object)
    arrived, ended = _numbers(requests, "arrived_at_ns"), _numbers(requests, "ended_at_ns")
    first, admitted = _numbers(requests, "first_token_at_ns"), _numbers(requests, "admitted_at_ns")
    produced, passes = _numbers(requests, "produced_tokens"), _numbers(requests, "passes")
    accepted, finished = _numbers(requests, "accepted_tokens"), outcome == "finished"
    several = finished & (produced > 1)
    decoded = passes > 0

    rows, drafted = (int(_numbers(steps, n).sum()) for n in ("decoding_requests", "drafted_tokens"))
    taken = int(_numbers(steps, "accepted_tokens").sum())
    return Figures(
        requests={str(name): int((outcome == name).sum()) for name in sorted(set(outcome))},
        output_tokens=int(produced.sum()),
        ttft_seconds=_seconds(first - arrived, first >= 0),
        queueing_seconds=_seconds(admitted - arrived, admitted >= 0),
        tpot_seconds=Spread.of((ended - first)[several] * 1e-9 / (produced[several] - 1)),
        e2e_seconds=_seconds(ended - arrived, finished),
        emitted_per_pass_pooled=(rows + taken) / rows if rows else None,
        emitted_per_pass_mean=(
            float((1 + accepted[decoded] / passes[decoded]).mean()) if decoded.any() else None
        ),
        draft_waste=1 - taken / drafted if drafted else None,
        preemptions=int(_numbers(requests, "preemptions").sum()),
    )


def _numbers(table: pa.Table, name: str) -> Ints:
    """A column, -1 where it is null."""
    found: Ints = table[name].combine_chunks().fill_null(-1).to_numpy(zero_copy_only=False)
    return found


def _seconds(nanoseconds: Ints, which: NDArray[np.bool_]) -> Spread:
    return Spread.of(np.asarray(nanoseconds[which] * 1e-9, np.float64))
