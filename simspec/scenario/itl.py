"""Inter-token latency (ITL), two ways that must not be mixed.

Per chunk: the time between two deliveries to a request, whatever they hold; what a client of a streaming
engine sees. Per token: the tokens of one delivery come at once, so all but the first of them are 0 apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simspec.serving.figures import Spread
from simspec.serving.step import PARTS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

NONE = Spread(None, None, None, None)


@dataclass(frozen=True)
class Latencies:
    """Times between tokens, in seconds; all None where they are not known."""

    per_chunk: Spread
    per_token: Spread


def from_steps(steps: pa.Table, measured: Flags) -> Latencies:
    """From the table of steps alone, of those that are measured, (N,).

    Right only where every request that decodes is in every step of its engine from its first token on:
    reading mixed with decoding, and nobody preempted or moved. Then the last delivery to each row was the end
    of the step before.
    """
    ends, replica = ends_of(steps), column(steps, "replica")
    gaps = np.zeros_like(ends)
    for number in np.unique(replica):
        own = replica == number
        gaps[own] = np.diff(ends[own], prepend=0)
    rows, accepted = column(steps, "decoding_requests"), column(steps, "accepted_tokens")
    kept = (rows > 0) & measured
    return _latencies(gaps[kept], rows[kept], accepted[kept])


def from_emissions(steps: pa.Table, emissions: pa.Table, measured: Flags) -> Latencies:
    """From who emitted what in every step, of those that are measured, (N,): right under every option."""
    ends = ends_of(steps)
    step, request = _rows_of(steps, emissions), column(emissions, "request_id")
    order = np.lexsort((ends[step], request))
    step, request = step[order], request[order]
    emitted = column(emissions, "emitted_tokens")[order]
    if not len(step):
        return Latencies(NONE, NONE)
    again = np.flatnonzero(request[1:] == request[:-1]) + 1
    again = again[measured[step[again]]]
    gaps = ends[step[again]] - ends[step[again - 1]]
    return _latencies(gaps, np.ones_like(gaps), emitted[again] - 1)


def _rows_of(steps: pa.Table, emissions: pa.Table) -> Ints:
    """In which row of the table of steps each emission's step stands, where no step is left out."""
    replica, step = column(steps, "replica"), column(steps, "step")
    order = np.lexsort((step, replica))
    # The engine's first place in that order, and as many places on as its step says.
    first = np.searchsorted(replica[order], column(emissions, "replica"))
    found: Ints = order[first + column(emissions, "step")]
    return found


def ends_of(steps: pa.Table) -> Ints:
    """When each step ended, (N,) nanoseconds."""
    found = column(steps, "started_at_ns")
    for name in PARTS:
        found = found + column(steps, f"{name}_ns")
    return found


def column(table: pa.Table, name: str) -> Ints:
    """A column of whole numbers, (N,); -1 where it is null."""
    found: Ints = table[name].combine_chunks().fill_null(-1).to_numpy(zero_copy_only=False)
    return found


def _latencies(gaps: Ints, chunks: Ints, extra: Ints) -> Latencies:
    """``chunks`` deliveries after each of ``gaps``, with ``extra`` tokens beyond their first in all."""
    tokens = np.concatenate([gaps, [0]]), np.concatenate([chunks, [int(extra.sum())]])
    return Latencies(_spread(gaps, chunks), _spread(*tokens))


def _spread(nanoseconds: Ints, weights: Ints) -> Spread:
    """As :meth:`Spread.of` of every value repeated as often as its weight, without repeating it."""
    some = weights > 0
    values, counts = np.unique(nanoseconds[some], return_inverse=True)
    if not len(values):
        return NONE
    upto = np.cumsum(np.bincount(counts, weights=weights[some]).astype(np.int64))
    last = int(upto[-1]) - 1

    def quantile(share: float) -> float:
        place = share * last
        low = int(np.floor(place))
        first, second = (
            int(values[np.searchsorted(upto, n, side="right")]) for n in (low, min(low + 1, last))
        )
        return (first + (place - low) * (second - first)) * 1e-9

    mean = float(np.dot(nanoseconds[some].astype(np.float64), weights[some])) / (last + 1) * 1e-9
    return Spread(mean, quantile(0.5), quantile(0.9), quantile(0.99))
