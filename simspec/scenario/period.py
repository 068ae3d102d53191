"""What of a run is measured: from when on each engine's time counts, and until when."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simspec.scenario.config import WarmUpPart
from simspec.scenario.itl import column, ends_of

Ints = NDArray[np.int64]
NS = 1_000_000_000


@dataclass(frozen=True)
class Period:
    """Instants in nanoseconds.

    Attributes:
        since: requests that arrive earlier are left out, and steps that begin earlier.
        begins: from when on each engine's time counts, shape (E,): a step that runs into the measured time
            is left out whole, and so is the time until its end.
        ends: the end of the last step of all that are measured; ``since`` without one.
    """

    since: int
    begins: Ints
    ends: int

    @property
    def engine_ns(self) -> int:
        """The time of all engines together."""
        return int(np.maximum(self.ends - self.begins, 0).sum())

    @property
    def span_ns(self) -> float:
        """Of one engine, on average."""
        return self.engine_ns / len(self.begins)


def warm_until(warm_up: WarmUpPart, requests: pa.Table) -> int:
    """The instant, in nanoseconds, from which on a run is measured."""
    if warm_up.seconds is not None:
        return math.ceil(warm_up.seconds * NS)
    if not warm_up.requests:
        return 0
    arrived = np.sort(column(requests, "arrived_at_ns"))
    # If no more came, nothing is left to measure.
    return int(arrived[warm_up.requests]) if warm_up.requests < len(arrived) else 1 << 62


def period(warm_up: WarmUpPart, steps: pa.Table, requests: pa.Table, engines: int) -> Period:
    """What is measured of a run of so many engines."""
    since = warm_until(warm_up, requests)
    late = column(steps, "started_at_ns") >= since
    ends, replica = ends_of(steps), column(steps, "replica")
    begins = np.full(engines, since)
    np.maximum.at(begins, replica[~late], ends[~late])
    return Period(since, begins, int(ends[late].max()) if late.any() else since)


def rule(warm_up: WarmUpPart) -> str:
    """In words."""
    if warm_up.seconds is not None:
        begin = f"{warm_up.seconds:g} s"
    elif warm_up.requests:
        begin = f"the arrival of the request after the first {warm_up.requests}"
    else:
        return "nothing is left out"
    return f"requests that arrive before {begin} are left out, and steps that begin before"
