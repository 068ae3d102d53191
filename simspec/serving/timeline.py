"""A window of a simulation as a Chrome trace, which Perfetto opens (https://ui.perfetto.dev).

The Trace Event Format in its JSON form: complete events (``X``), which nest where one lies within another on
one track, counters (``C``), and names of tracks (``M``). Its unit is the microsecond; instants are whole
nanoseconds and are written as decimals with three places, so nothing is rounded.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from simspec.errors import BadInput
from simspec.serving.clock import nanoseconds
from simspec.serving.step import PARTS as OF_A_STEP

# How a step's parts are laid end to end. The simulation knows how long each is, not which comes first.
_ORDER = ("swap", "wait", "draft")
PARTS = (*_ORDER, *(part for part in OF_A_STEP if part not in _ORDER))
# Numbers of processes: engines, of several each its own, and requests.
ENGINE, REQUESTS = 1, 2
# Counter -> its lines -> the column of the table of steps.
COUNTERS = {
    "rows": {"decoding": "decoding_requests", "prefilling": "prefilling_requests"},
    "queue": {"requests": "queued_requests"},
    "KV blocks": {"target": "target_blocks", "drafter": "drafter_blocks"},
    "draft length": {"tokens": "draft_length_tokens"},
}

Event = dict[str, Any]


def window_of(text: str) -> tuple[int, int]:
    """``A:B`` in seconds as nanoseconds [begin, end); raises :class:`BadInput` unless 0 <= A < B."""
    first, colon, last = text.partition(":")
    try:
        begin, end = (nanoseconds(float(part), "window") for part in (first, last))
    except ValueError:
        begin = end = 0
    if not colon or begin >= end:
        raise BadInput(f"window {text!r}", allowed="A:B in seconds, A below B, such as 10:10.5")
    return begin, end


def write_timeline(folder: Path, window: str, path: Path) -> None:
    """From the tables that a simulation wrote into ``folder``.

    Raises:
        BadInput: for a window that is none, or where nothing happens in it, or a file that cannot be written.
    """
    begin, end = window_of(window)
    steps, requests = (pq.read_table(folder / f"{name}.parquet") for name in ("steps", "requests"))
    failed = folder / "outages.parquet"
    document = timeline(steps, requests, begin, end, pq.read_table(failed) if failed.exists() else None)
    if not any(event["ph"] == "X" for event in document["traceEvents"]):
        raise BadInput(
            f"window {window!r}: no step and no request in it", allowed="seconds of the simulation"
        )
    partial = path.with_name(path.name + ".writing")
    try:
        partial.write_bytes(msgspec.json.Encoder(decimal_format="number").encode(document) + b"\n")
        partial.replace(path)
    except OSError as error:
        raise BadInput(f"cannot be written: {error.strerror}", where=path) from error


def timeline(
    steps: pa.Table, requests: pa.Table, begin_ns: int, end_ns: int, outages: pa.Table | None = None
) -> dict[str, Any]:
    """Every step, request and outage of the tables that is there in [begin, end), each whole.

    Times are :class:`decimal.Decimal` microseconds.
    """
    numbers = sorted({0, *steps["replica"].to_pylist()})
    events = [*_names(numbers)]
    for number in numbers:
        own = steps.filter(pc.equal(steps["replica"], number))
        events += _steps(own, begin_ns, end_ns, _process(number))
    if outages is not None:
        events += _outages(outages, begin_ns, end_ns)
    events += _requests(requests, begin_ns, end_ns)
    said = {
        "window_ns": [begin_ns, end_ns],
        "parts_of_a_step": "laid end to end; their order is a convention",
    }
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": said}


def _process(replica: int) -> int:
    return ENGINE if not replica else REQUESTS + replica


def _names(replicas: list[int]) -> Iterator[Event]:
    names = {_process(n): f"engine {n}" if len(replicas) > 1 else "engine" for n in replicas}
    for process, name in {**names, REQUESTS: "requests"}.items():
        yield {"ph": "M", "pid": process, "tid": 0, "name": "process_name", "args": {"name": name}}
    for process in names:
        yield {"ph": "M", "pid": process, "tid": 0, "name": "thread_name", "args": {"name": "steps"}}


def _steps(steps: pa.Table, begin_ns: int, end_ns: int, process: int) -> Iterator[Event]:
    ends = steps["started_at_ns"]
    for part in PARTS:
        ends = pc.add(ends, steps[f"{part}_ns"])
    there = pc.and_(pc.less(steps["started_at_ns"], end_ns), pc.greater(ends, begin_ns))
    last = None
    for row in steps.filter(there).to_pylist():
        began = row["started_at_ns"]
        spent = {part: row[f"{part}_ns"] for part in PARTS}
        if last is not None and last < began:
            yield from _counters(last, None, process)
        yield _span("step", process, 0, began, sum(spent.values()), _numbers(row))
        yield from _counters(began, row, process)
        last = began
        for part, taken in spent.items():
            if taken:
                yield _span(part, process, 0, last, taken, {"ns": taken})
            last += taken
    if last is not None:
        yield from _counters(last, None, process)


def _outages(outages: pa.Table, begin_ns: int, end_ns: int) -> Iterator[Event]:
    """An engine that is down, and before that the step that was lost."""
    for row in outages.to_pylist():
        failed, back, began = (row[f"{name}_ns"] for name in ("failed_at", "back_at", "step_began_at"))
        if failed < end_ns and back > begin_ns:
            process = _process(row["replica"])
            if began is not None and began < failed:
                yield _span("lost", process, 0, began, failed - began, {"ns": failed - began})
            yield _span("down", process, 0, failed, back - failed, _numbers(row))


def _counters(at: int, row: dict[str, int] | None, process: int) -> Iterator[Event]:
    """What is counted from an instant on; all zero where the engine is idle, or the window is over."""
    for name, lines in COUNTERS.items():
        values = {line: row[column] if row is not None else 0 for line, column in lines.items()}
        yield {"ph": "C", "pid": process, "name": name, "ts": _us(at), "args": values}


def _requests(requests: pa.Table, begin_ns: int, end_ns: int) -> Iterator[Event]:
    """Each request on a lane of its own while it is there; a lane that is free again is used again."""
    there = pc.and_(
        pc.less(requests["arrived_at_ns"], end_ns), pc.greater_equal(requests["ended_at_ns"], begin_ns)
    )
    rows = sorted(
        requests.filter(there).to_pylist(), key=lambda row: (row["arrived_at_ns"], row["request_id"])
    )
    taken: list[tuple[int, int]] = []
    lanes = 0
    for row in rows:
        came, ended = row["arrived_at_ns"], row["ended_at_ns"]
        if taken and taken[0][0] <= came:
            lane = heapq.heappop(taken)[1]
        else:
            lanes += 1
            lane = lanes
            args = {"name": f"lane {lane}"}
            yield {"ph": "M", "pid": REQUESTS, "tid": lane, "name": "thread_name", "args": args}
        heapq.heappush(taken, (ended, lane))
        name = f"request {row['request_id']}"
        yield _span(name, REQUESTS, lane, came, ended - came, _numbers(row) | {"outcome": row["outcome"]})
        marks = [came, row["admitted_at_ns"], row["first_token_at_ns"]]
        for phase, at, then in zip(
            ("queued", "prefill", "decoding"), marks, [*marks[1:], ended], strict=True
        ):
            if at is not None:
                until = ended if then is None else then
                yield _span(phase, REQUESTS, lane, at, until - at, {"ns": until - at})


def _numbers(row: dict[str, Any]) -> dict[str, Any]:
    """What is no instant and no duration."""
    return {name: value for name, value in row.items() if not name.endswith("_ns") and name != "outcome"}


def _span(name: str, process: int, lane: int, at: int, taken: int, args: dict[str, Any]) -> Event:
    return {
        "ph": "X",
        "pid": process,
        "tid": lane,
        "name": name,
        "ts": _us(at),
        "dur": _us(taken),
        "args": args,
    }


def _us(nanoseconds: int) -> Decimal:
    return Decimal(nanoseconds).scaleb(-3)
