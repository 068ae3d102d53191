"""A cluster and plain loops without SimPy live through the same scenarios, row by row."""

from __future__ import annotations

from hypothesis import given

from simspec.strategies.clusters import ClusterScenario, cluster_scenarios, serve_cluster
from tests.reference_cluster import ClusterTwin


def twin(scenario: ClusterScenario) -> ClusterTwin:
    """The twin, run."""
    load, asked = scenario.load, list(scenario.asked)
    return ClusterTwin(
        scenario.fleet.cluster(),
        load.seed,
        arrivals=[] if load.clients else list(zip(load.instants, asked, strict=True)),
        clients=load.clients,
        asked=asked,
        think=load.think_ns,
        until=load.until,
    ).run()


@given(cluster_scenarios())
def test_every_step_every_request_and_every_outage(scenario):
    plain = twin(scenario)
    records = serve_cluster(scenario)
    assert records.steps.to_pylist() == plain.steps
    assert records.requests.to_pylist() == plain.requests
    assert records.outages.to_pylist() == plain.outages
