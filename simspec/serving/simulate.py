"""Run a scenario: requests into an engine, or a cluster of them, and tables out."""

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
from simspec.serving.cluster import Cluster
from simspec.serving.config import Serving
from simspec.serving.devices import Devices
from simspec.serving.door import Door
from simspec.serving.engine import Engine
from simspec.serving.recorder import Recorder
from simspec.serving.request import NEVER, Outcome, Request


@dataclass(frozen=True)
class Records:
    """What a simulation leaves.

    Attributes:
        steps, requests, emissions, outages: the tables, empty where they went to files; emissions where asked
            for, outages where there can be any.
        ended_at: nanoseconds at which the last request came or ended.
        arrived: requests that came.
        outcomes: how many of them ended how.
        request_ns: sum over time of the requests in the system, counted as they came and went.
        drafters_ns: work that drafters' own devices have done.
    """

    steps: pa.Table
    requests: pa.Table
    emissions: pa.Table | None
    outages: pa.Table | None
    ended_at: int
    arrived: int
    outcomes: dict[Outcome, int]
    request_ns: int
    drafters_ns: int = 0


def simulate(
    serving: Serving | Cluster,
    workload: OpenLoop | ClosedLoop,
    seed: int,
    *,
    until_seconds: float | None = None,
    folder: Path | None = None,
    emissions: bool = False,
) -> Records:
    """Serve a workload with one engine, or with a cluster.

    Args:
        seed: of the verdicts' luck and of failures by chance; arrivals have been drawn already.
        until_seconds: stop then; who is still there is unfinished, who has not come never does. A step
            that would end then or later is not recorded. None: go on until all are served.
        folder: write the tables there, as they come, as Parquet.
        emissions: keep who emitted how much in every step.
    """
    cluster = serving if isinstance(serving, Cluster) else Cluster((serving,))
    fragile = bool(cluster.outages) or cluster.failures is not None
    env, recorder = Environment(), Recorder(folder, emissions=emissions, outages=fragile)
    until = None if until_seconds is None else max(nanoseconds(until_seconds, "until_seconds"), 1)
    devices = None if cluster.drafter_device is None else Devices(cluster.drafter_device)
    alone, decoding = len(cluster.engines) == 1, len(cluster.replicas)
    engines = [
        Engine(
            env,
            one,
            seed,
            recorder,
            until,
            number=number,
            alone=alone,
            reads_only=number >= decoding,
            devices=devices,
        )
        for number, one in enumerate(cluster.engines)
    ]
    door = Door(env, cluster, engines, recorder)
    if fragile:
        for engine in engines:
            env.process(door.watch(engine, cluster.outages_of(engine.number, seed)))
    if isinstance(workload, OpenLoop):
        env.process(_arrivals(env, door, workload))
        door.sources = 1
    else:
        requests = iter(workload.requests)
        think_ns = nanoseconds(workload.think_seconds)
        for client in range(workload.clients):
            env.process(_client(env, door, client, requests, think_ns))
        door.sources = workload.clients
    env.run(until)
    door.stop()
    tables = recorder.close()
    return Records(
        tables["steps"],
        tables["requests"],
        tables.get("emissions"),
        tables.get("outages"),
        # The clock goes on to timers that nobody waits for any more.
        recorder.changed_at,
        recorder.arrived,
        recorder.outcomes,
        recorder.request_ns,
        0 if devices is None else devices.busy_until(recorder.changed_at),
    )


def _arrivals(env: Environment, door: Door, workload: OpenLoop) -> Generator[Event, None, None]:
    yield Pause(env, 0, Stage.ARRIVE)  # processes begin ahead of all stages
    for instant, request in workload.arrivals:
        if instant < env.now:
            raise BadInput(
                f"request {request.request_id} arrives before the one ahead of it", hint="sort them"
            )
        if instant > env.now:
            yield Pause(env, instant - int(env.now), Stage.ARRIVE)
        door.submit(request)
    door.sources -= 1


def _client(
    env: Environment, door: Door, client: int, requests: Iterator[Request], think_ns: int
) -> Generator[Event, None, None]:
    yield Pause(env, 0, Stage.ARRIVE)
    for request in requests:
        whose = client if request.session == NEVER else request.session
        answered = door.submit(request._replace(session=whose), wait=True)
        assert answered is not None
        yield answered
        if think_ns:
            yield Pause(env, think_ns, Stage.ARRIVE)
    door.sources -= 1
