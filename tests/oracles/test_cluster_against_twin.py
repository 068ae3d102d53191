"""A cluster and plain loops without SimPy live through the same scenarios, row by row."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from simspec.serving.arrivals import ClosedLoop, OpenLoop
from simspec.serving.cluster import Cluster
from simspec.serving.config import Serving
from simspec.serving.request import Request
from simspec.serving.simulate import Records, simulate
from simspec.strategies.clusters import (
    ClusterScenario,
    Fleet,
    cluster_scenarios,
    drafters_apart,
    fleets,
    serve_cluster,
)
from simspec.strategies.serving import draftings, long_answers, scenarios
from simspec.strategies.small_engines import NANO, Scenario, Setup, made_up_cost
from tests.reference_cluster import ClusterTwin
from tests.varied_engines import varied


def twin(scenario: ClusterScenario, cluster: Cluster | None = None) -> ClusterTwin:
    """The twin, run."""
    load, asked = scenario.load, list(scenario.asked)
    return ClusterTwin(
        cluster or scenario.fleet.cluster(),
        load.seed,
        arrivals=[] if load.clients else list(zip(load.instants, asked, strict=True)),
        clients=load.clients,
        asked=asked,  # type: ignore[arg-type]
        think=load.think_ns,
        until=load.until,
    ).run()


def by_step(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Several steps of one engine may be recorded at once: by engine, and there in order."""
    return sorted(rows, key=lambda row: (row["replica"], row["step"]))


def told(records: Records) -> tuple[object, ...]:
    """All that must be equal but emissions, which are not always kept."""
    outages = [] if records.outages is None else records.outages.to_pylist()
    return by_step(records.steps.to_pylist()), records.requests.to_pylist(), outages, records.arrived


def agree(scenario: ClusterScenario, emissions: bool, cluster: Cluster | None = None) -> None:
    plain = twin(scenario, cluster)
    records = serve_cluster(scenario, emissions=emissions, cluster=cluster)
    steps, requests, outages, arrived = told(records)
    assert steps == by_step(plain.steps)
    assert requests == plain.requests
    assert outages == plain.outages
    assert arrived == plain.arrived
    if emissions:
        assert by_step(records.emissions.to_pylist()) == by_step(plain.emissions)


def some(fleet: Fleet, *instants: int, output: int = 1) -> ClusterScenario:
    """Requests with a prompt of one token at these instants."""
    return ClusterScenario(fleet, Scenario(fleet.replicas[0], 0, ((1, output),) * len(instants), instants))


def clients(fleet: Fleet, count: int, requests: int) -> ClusterScenario:
    """Requests of clients that do not think."""
    sizes = ((1, 6), (1, 2), (1, 1)) * (requests // 3)
    return ClusterScenario(fleet, Scenario(fleet.replicas[0], 0, sizes, (), clients=count))


ONE, TWO = (Setup(),), (Setup(), Setup())


# A replica that came back once began its step before those who came at that instant were there ...
@example(some(Fleet(ONE, outages=((0, 26, 90),), retries=0), 0, 0, 0, 0, 0, 56, 56, 56, 116), False)
# ... and before it failed again at that instant.
@example(some(Fleet(ONE, outages=((0, 0, 9), (0, 9, 9))), 0), False)
# An outage at the very start comes before the requests of that instant.
@example(some(Fleet(TWO, outages=((0, 0, 9),)), 0, 0), False)
# Steps of two replicas end at one instant, one of them the last of several at once: whose client is next?
@example(clients(Fleet(TWO, "session-affine"), 3, 9), False)
@example(clients(Fleet(TWO, "least-loaded"), 2, 9), False)
# Who waited in a replica that fails: loses patience where it is held, or finds a queue that is full.
@example(some(Fleet((Setup(patience_ns=30),), outages=((0, 5, 10),)), 0, 0, output=20), True)
@example(some(Fleet((Setup(queue_limit=1),) * 2, outages=((0, 5, 10),)), 0, 0, 3, 3, output=20), True)
@given(cluster_scenarios(), st.booleans())
def test_every_step_every_request_and_every_outage(scenario, emissions):
    agree(scenario, emissions)


@given(cluster_scenarios(long_answers()))
def test_several_steps_at_once(scenario):
    agree(scenario, emissions=False)


@given(cluster_scenarios(scenarios(draftings(), memory=False), drafters_apart), st.booleans())
def test_drafters_on_devices_of_their_own(scenario, emissions):
    agree(scenario, emissions)


@given(st.lists(varied(), min_size=1, max_size=3), st.data())
def test_rows_that_choose_and_drafters_to_choose_among(several, data):
    """Each engine its own: what a prefill replica's drafter has read counts where there is one drafter."""
    first = several[0]
    patience = first.serving.patience_seconds
    engines = tuple(replace(one.serving, patience_seconds=patience) for one in several)
    count = data.draw(st.integers(1, len(engines)))
    slow = any(one.serving.costs.cost is made_up_cost("device") for one in several)
    fleet = data.draw(fleets(Setup(prices="device" if slow else "ticks")))
    outages = tuple(one for one in fleet.outages if one[0] < len(engines))
    same = replace(fleet, replicas=(Setup(),) * len(engines), prefill=(), outages=outages).cluster()
    cluster = replace(same, replicas=engines[:count], prefill=engines[count:])
    agree(ClusterScenario(fleet, first), True, cluster)


# -- one replica and nothing else --------------------------------------------------------------------------


def files(load: Scenario, serving: Serving | Cluster) -> dict[str, bytes]:
    """The bytes of the tables."""
    requests = [Request(i, p, o) for i, (p, o) in enumerate(load.sizes)]
    sent: OpenLoop | ClosedLoop = OpenLoop(zip(load.instants, requests, strict=True))
    if load.clients:
        sent = ClosedLoop(load.clients, requests, load.think_ns * NANO)
    until = None if load.until is None else load.until * NANO
    with tempfile.TemporaryDirectory() as folder:
        simulate(serving, sent, load.seed, until_seconds=until, folder=Path(folder), emissions=True)
        return {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir())}


@given(st.one_of(scenarios(), long_answers(), varied()), fleets(Setup()))
def test_one_replica_is_an_engine_alone_byte_for_byte(load, fleet):
    """Whatever is said of what does not happen there."""
    same = replace(fleet, replicas=(Setup(),), prefill=(), outages=(), failures=None, devices=0).cluster()
    alone, together = (files(load, one) for one in (load.serving, replace(same, replicas=(load.serving,))))
    assert alone == {name: together[name] for name in alone}
    assert set(together) - set(alone) <= {"outages.parquet"}


@given(cluster_scenarios(long_answers()))
def test_several_steps_at_once_give_the_same_tables_as_step_by_step(scenario):
    stepwise = replace_engines(scenario, lambda one: replace(one, stride=False))
    assert told(serve_cluster(scenario)) == told(serve_cluster(stepwise))


def replace_engines(scenario: ClusterScenario, change: Callable[[Setup], Setup]) -> ClusterScenario:
    fleet = scenario.fleet
    replicas, prefill = (tuple(map(change, part)) for part in (fleet.replicas, fleet.prefill))
    return scenario.on(replace(fleet, replicas=replicas, prefill=prefill))
