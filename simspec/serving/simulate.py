"""Run a scenario: requests into an engine, tables out."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from simpy import Environment
from simpy.events import Event

from simspec.errors import BadInput
from simspec.serving.arrivals import ClosedLoop, OpenLoop
from simspec.serving.clock import Pause, Stage, nanoseconds
from simspec.serving.config import Serving
from simspec.serving.engine import Engine
from simspec.serving.recorder import Recorder
from simspec.serving.request import Outcome, Request


@dataclass(frozen=True)
class Records:
    """What a simulation leaves.

    Attributes:
        steps, requests, emissions: the tables, empty where they went to files; emissions where asked for.
        ended_at: nanoseconds at its end.
        arrived: requests that came.
        outcomes: how many of them ended how.
        request_ns: sum over time of the requests in the system, counted as they came and went.
    """

    steps: pa.Table
    requests: pa.Table
    emissions: pa.Table | None
    ended_at: int
    arrived: int
    outcomes: dict[Outcome, int]
    request_ns: int


def simulate(
    serving: Serving,
    workload: OpenLoop | ClosedLoop,
    seed: int,
    *,
    until_seconds: float | None = None,
    folder: Path | None = None,
    emissions: bool = False,
) -> Records:
    """Serve a workload with one engine.

    Args:
        seed: of the verdicts' luck; arrivals have been drawn already.
        until_seconds: stop then; who is still there is unfinished, who has not come never does. A step
            that would end then or later is not recorded. None: go on until all are served.
        folder: write the tables there, as they come, as Parquet.
        emissions: keep who emitted how much in every step.
    """
    env, recorder = Environment(), Recorder(folder, emissions=emissions)
    until = None if until_seconds is None else max(nanoseconds(until_seconds, "until_seconds"), 1)
    engine = Engine(env, serving, seed, recorder, until)
    if isinstance(workload, OpenLoop):
        env.process(_arrivals(env, engine, workload))
    else:
        requests = iter(workload.requests)
        think_ns = nanoseconds(workload.think_seconds)
        for _ in range(workload.clients):
            env.process(_client(env, engine, requests, think_ns))
    env.run(until)
    engine.stop()
    tables = recorder.close()
    return Records(
        tables["steps"],
        tables["requests"],
        tables.get("emissions"),
        int(env.now),
        recorder.arrived,
        recorder.outcomes,
        recorder.request_ns,
    )


def _arrivals(env: Environment, engine: Engine, workload: OpenLoop) -> Generator[Event, None, None]:
    for instant, request in workload.arrivals:
        if instant < env.now:
            raise BadInput(
                f"request {request.request_id} arrives before the one ahead of it", hint="sort them"
            )
        if instant > env.now:
            yield Pause(env, instant - int(env.now), Stage.ARRIVE)
        engine.submit(request)


def _client(
    env: Environment, engine: Engine, requests: Iterator[Request], think_ns: int
) -> Generator[Event, None, None]:
    for request in requests:
        answered = engine.submit(request, wait=True)
        assert answered is not None
        yield answered
        if think_ns:
            yield Pause(env, think_ns, Stage.ARRIVE)
