"""What of a run is measured: from when on each engine's time counts, and until when."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simspec.scenario.config import CoolDownPart, WarmUpPart
from simspec.scenario.itl import column, ends_of
from simspec.scenario.mser import Choice, mser, waiting

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
NS = 1_000_000_000
NEVER = 1 << 62


@dataclass(frozen=True)
class Period:
    """Instants in nanoseconds.

    Attributes:
        since: requests that arrive earlier are left out, and steps that begin earlier.
        until: steps that begin then or later are left out; ``closes``: requests that arrive then or later.
        begins: from when on each engine's time counts, shape (E,): a step that runs into the measured time
            is left out whole, and so is the time until its end.
        ends: until when, shape (E,): a step that runs out of the measured time counts whole, and so does
            the time until its end. Where nothing is left out, the end of the last step of all engines.
        chosen: what an automatic rule found.
    """

    since: int
    until: int
    closes: int
    begins: Ints
    ends: Ints
    chosen: Choice | None = None

    @property
    def engine_ns(self) -> int:
        """The time of all engines together."""
        return int(np.maximum(self.ends - self.begins, 0).sum())

    @property
    def span_ns(self) -> float:
        """Of one engine, on average."""
        return self.engine_ns / len(self.begins)

    def of_engine(self, number: int) -> Period:
        """The same for one engine alone."""
        own = slice(number, number + 1)
        return replace(self, begins=self.begins[own], ends=self.ends[own])

    def steps(self, steps: pa.Table) -> Flags:
        """Which steps are measured, (N,)."""
        return _within(column(steps, "started_at_ns"), self.since, self.until)

    def requests(self, requests: pa.Table) -> Flags:
        """Which requests are, (N,)."""
        return _within(column(requests, "arrived_at_ns"), self.since, self.closes)


def period(
    warm_up: WarmUpPart, cool_down: CoolDownPart, steps: pa.Table, requests: pa.Table, engines: int
) -> Period:
    """What is measured of a run of so many engines."""
    arrived = np.sort(column(requests, "arrived_at_ns"))
    until, closes = _end(cool_down, arrived)
    since, chosen = _begin(warm_up, requests, arrived, closes)
    began, ends, replica = column(steps, "started_at_ns"), ends_of(steps), column(steps, "replica")
    early, measured = began < since, _within(began, since, until)
    begins = np.full(engines, since)
    np.maximum.at(begins, replica[early], ends[early])
    if until < NEVER:
        stops = np.full(engines, until)
        np.maximum.at(stops, replica[measured], ends[measured])
    else:
        stops = np.full(engines, int(ends[measured].max()) if measured.any() else since)
    return Period(since, until, closes, begins, stops, chosen)


def told(warm_up: WarmUpPart, cool_down: CoolDownPart, when: Period) -> dict[str, Any]:
    """What is left out, in words; and what an automatic rule has chosen."""
    found: dict[str, Any] = {"rule": _in_words(warm_up, cool_down, when)}
    if when.chosen is not None:
        found["mser"] = {"of": warm_up.of or "ttft", "seconds": when.since / NS, **asdict(when.chosen)}
    return found


def _within(instants: Ints, since: int, until: int) -> Flags:
    found: Flags = (instants >= since) & (instants < until)
    return found


def _end(cool_down: CoolDownPart, arrived: Ints) -> tuple[int, int]:
    """Until when steps may begin, and requests arrive, (N,) sorted."""
    if not len(arrived):
        return NEVER, NEVER
    if cool_down.drain == "leave-out":
        return int(arrived[-1]), NEVER
    if cool_down.seconds is not None:
        end = int(arrived[-1]) - math.floor(cool_down.seconds * NS)
    elif cool_down.requests:
        end = int(arrived[-cool_down.requests]) if cool_down.requests <= len(arrived) else 0
    else:
        return NEVER, NEVER
    return end, end


def _begin(warm_up: WarmUpPart, requests: pa.Table, arrived: Ints, closes: int) -> tuple[int, Choice | None]:
    if warm_up.seconds is not None:
        return math.ceil(warm_up.seconds * NS), None
    if warm_up.rule is not None:
        return _by_mser(requests, closes, queue=warm_up.of == "queue")
    if not warm_up.requests:
        return 0, None
    # If no more came, nothing is left to measure.
    return (int(arrived[warm_up.requests]) if warm_up.requests < len(arrived) else NEVER), None


def _by_mser(requests: pa.Table, closes: int, *, queue: bool) -> tuple[int, Choice]:
    """When the warm-up ends, by the requests that are not left out at the end."""
    arrived, first, ended = (
        column(requests, f"{name}_at_ns") for name in ("arrived", "first_token", "ended")
    )
    if queue:
        admitted = column(requests, "admitted_at_ns")
        over = min(int(arrived.max(initial=0)), closes)
        values, width = waiting(arrived, np.where(admitted < 0, ended, admitted), over)
        chosen = mser(values)
        return chosen.left_out * width, chosen
    known = (first >= 0) & (arrived < closes)
    arrived, first = arrived[known], first[known]
    order = np.argsort(arrived, kind="stable")
    chosen = mser((first - arrived)[order].tolist())
    return (int(arrived[order[chosen.left_out]]) if chosen.left_out else 0), chosen


def _in_words(warm_up: WarmUpPart, cool_down: CoolDownPart, when: Period) -> str:
    said = []
    begin = ""
    if warm_up.seconds is not None:
        begin = f"{warm_up.seconds:g} s"
    elif when.chosen is not None and when.since:
        begin = f"{when.since / NS:g} s, chosen by MSER-5"
    elif warm_up.requests:
        begin = f"the arrival of the request after the first {warm_up.requests}"
    elif when.chosen is not None:
        said.append("MSER-5 leaves nothing out at the beginning")
    if begin:
        said.append(f"requests that arrive before {begin} are left out, and steps that begin before")
    if cool_down.drain == "leave-out":
        said.append("steps from the last arrival on are left out")
    elif cool_down.seconds is not None:
        end = f"{cool_down.seconds:g} s before the last arrival"
        said.append(f"requests that arrive {end} or later are left out, and steps from then on")
    elif cool_down.requests:
        last = f"the last {cool_down.requests} requests"
        said.append(f"{last} are left out, and steps from the first one's arrival on")
    return "; ".join(said) or "nothing is left out"
