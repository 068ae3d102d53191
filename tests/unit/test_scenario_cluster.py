"""Scenarios of several engines: what is read, what is drawn, and figures against sums over the tables."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import simspec.serving.door
from simspec.errors import BadInput
from simspec.scenario.figures import measure
from simspec.scenario.run import run
from simspec.serving.cluster import Cluster
from simspec.serving.step import PARTS
from simspec.sweep.passes import IDLE
from tests.unit.test_scenario_figures import made, measured, simulated
from tests.unit.test_scenario_reading import COST
from tests.unit.test_sweep_passes import ran, told

FAILING = {
    "replicas": 3,
    "routing": "least-loaded",
    "outages": [{"replica": 1, "at_seconds": 0.1, "for_seconds": 0.15}],
}
APART = {
    "replicas": 2,
    "prefill": {"replicas": 1, "slots": 2, "transfer_seconds": 0.001, "drafter": False},
    "drafter_device": {"link_seconds": 0.0001},
}


def test_one_engine_is_a_cluster_of_one(tmp_path):
    plain, one = made(tmp_path), made(tmp_path, cluster={"replicas": 1, "routing": "least-loaded"})
    assert plain.cluster == Cluster((plain.serving,))
    assert simulated(plain).steps.equals(simulated(one).steps)


def test_what_is_left_out_of_engines_that_read_is_as_for_the_others(tmp_path):
    cluster = made(tmp_path, cluster=APART).cluster
    (reader,) = cluster.prefill
    assert (reader.slots, reader.speculation) == (2, None)
    assert reader.memory == cluster.replicas[0].memory
    assert cluster.replicas[0].speculation is not None
    assert cluster.transfer_seconds == 0.001


@pytest.mark.parametrize("cluster", [{"replicas": 2}, FAILING, APART], ids=["two", "failing", "apart"])
def test_figures_are_sums_over_engines(tmp_path, cluster):
    built = made(tmp_path, cluster=cluster, workload={"rate": 200.0}, warm_up={"seconds": 0.05})
    records = simulated(built)
    found = measured(built, records)
    assert math.fsum(found["utilisation"].values()) == pytest.approx(1)
    engines = len(built.cluster.engines)
    each = found["replicas"]
    assert [one["replica"] for one in each] == list(range(engines))
    # Each engine's time counts from the end of the step across the end of the warm-up.
    steps = records.steps.to_pylist()
    end = max(s["started_at_ns"] + sum(s[f"{p}_ns"] for p in PARTS) for s in steps)
    times = []
    for one in each:
        assert math.fsum(one["utilisation"].values()) == pytest.approx(1)
        own = [s for s in steps if s["replica"] == one["replica"]]
        begun = [s for s in own if s["started_at_ns"] < 5e7]
        begin = max([5e7, *(s["started_at_ns"] + sum(s[f"{p}_ns"] for p in PARTS) for s in begun)])
        times.append(end - begin)
        late = [s for s in own if s["started_at_ns"] >= 5e7]
        assert one["steps"] == len(late)
        assert one["emitted_tokens"] == sum(s["emitted_tokens"] for s in late)
        verify = sum(s["verify_ns"] for s in late)
        assert one["utilisation"]["verify"] == pytest.approx(verify / times[-1])
    emitted = sum(one["emitted_tokens"] for one in each)
    assert found["throughput_tokens_per_second"] == pytest.approx(emitted / np.mean(times) * 1e9)
    idle = sum(one["utilisation"]["idle"] * time for one, time in zip(each, times, strict=True))
    assert found["utilisation"]["idle"] == pytest.approx(idle / sum(times))


def test_down_and_lost_time_is_told(tmp_path):
    built = made(tmp_path, cluster=FAILING, workload={"rate": 300.0})
    records = simulated(built)
    (outage,) = records.outages.to_pylist()
    found = measured(built, records)
    spent = found["measured"]["span_seconds"]
    failed = found["replicas"][1]["utilisation"]
    # It is back only after all is served.
    assert 0.1 < spent < 0.25
    assert failed["down"] == pytest.approx((spent - 0.1) / spent)
    lost = (outage["failed_at_ns"] - outage["step_began_at_ns"]) * 1e-9
    assert failed["lost"] == pytest.approx(lost / spent)
    assert found["failures"]["requests_restarted"] == outage["batch_requests"] + outage["queued_requests"] > 0
    assert found["requests"]["finished"] == 60
    assert found["itl_seconds"]["unknown_because"] is not None


def test_tables_in_a_folder_are_the_same(tmp_path):
    built = made(tmp_path, cluster=FAILING, workload={"rate": 300.0}, emissions=True)
    folder = tmp_path / "tables"
    folder.mkdir()
    assert run(built, 0, folder=folder).figures == run(built, 0).figures
    assert (folder / "outages.parquet").exists()


def test_times_between_tokens_of_two_engines_are_those_of_their_requests(tmp_path):
    built = made(tmp_path, cluster={"replicas": 2}, workload={"rate": 200.0})
    records = simulated(built, emissions=True)
    steps_only = measure(
        replace(records, emissions=None), built.cluster, built.scenario.objectives, built.scenario.warm_up
    )["itl_seconds"]
    both = measured(built, records)["itl_seconds"]
    assert steps_only["unknown_because"] is None
    for name in ("per_chunk", "per_token"):
        assert steps_only[name] == pytest.approx(both[name])


def test_the_time_of_a_token_of_two_engines_is_the_throughput(tmp_path):
    steps, requests, figures = ran(tmp_path, cluster={"replicas": 2}, workload={"rate": 200.0})
    found = told(steps, requests, engines=2)
    engine = sum(found[f"engine.{part}"] for part in (*PARTS, IDLE)) / found["engine.tokens"]
    # A token takes as many engines as there are.
    assert engine == pytest.approx(2 / figures["throughput_tokens_per_second"], rel=1e-12)
    rows = requests.to_pylist()
    spent = sum(row["ended_at_ns"] - row["first_token_at_ns"] for row in rows)
    tokens = sum(row["produced_tokens"] - 1 for row in rows)
    of_requests = sum(found[f"requests.{part}"] for part in PARTS) / found["requests.tokens"]
    assert of_requests == pytest.approx(spent / tokens * 1e-9, rel=1e-12)


def sessions(built):
    return [request.session for _, request in built.load.workload(0).arrivals]


def test_sessions_are_drawn_apart_from_everything_else(tmp_path):
    assert set(sessions(made(tmp_path))) == {-1}
    built = made(tmp_path, sessions={"count": 5})
    assert set(sessions(built)) == set(range(5))
    skewed = sessions(made(tmp_path, sessions={"count": 5, "skew": 3.0}))
    assert skewed.count(0) > 40
    plain = list(made(tmp_path).load.workload(0).arrivals)
    with_sessions = list(built.load.workload(0).arrivals)
    assert [(at, r[:3]) for at, r in plain] == [(at, r[:3]) for at, r in with_sessions]


def test_a_log_may_have_sessions(tmp_path):
    rows = [f"{at}.0,{who},1,GPT-4,6,20,26,Conversation log" for at, who in enumerate("abbab")]
    header = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type"
    (tmp_path / "burst.csv").write_text("\n".join([header, *rows]) + "\n")
    log = {"kind": "log", "format": "burstgpt", "path": "burst.csv"}
    assert sessions(made(tmp_path, workload=log, lengths=None)) == [0, 1, 1, 0, 1]


@pytest.mark.parametrize(
    ("what", "cluster"),
    [
        (
            "outage of replica 4",
            {"replicas": 2, "outages": [{"replica": 4, "at_seconds": 1, "for_seconds": 1}]},
        ),
        ("cluster.routing", {"routing": "random"}),
        (
            "failures by chance too",
            {
                "outages": [{"replica": 0, "at_seconds": 1, "for_seconds": 1}],
                "failures": {"mean_up_seconds": 1, "mean_down_seconds": 1},
            },
        ),
        ("replicas", {"replicas": 0}),
        ("for_seconds", {"outages": [{"replica": 0, "at_seconds": 1, "for_seconds": 1e-12}]}),
        ("cluster.replicas", {"replicas": 10**9}),
        ("cluster.prefill.replicas", {"prefill": {"replicas": 10**9}}),
        ("cluster.drafter_device.devices", {"drafter_device": {"devices": 10**9}}),
        ("cluster.retries", {"retries": 10**9}),
        ("4,100,000 slots", {"replicas": 40, "prefill": {"replicas": 1, "slots": 100_000}}),
    ],
)
def test_a_refusal_names_the_file_and_the_section(tmp_path, what, cluster):
    with pytest.raises(BadInput, match=what) as refused:
        made(tmp_path, cluster=cluster, engine={"slots": 100_000})
    assert "toml" in str(refused.value)
    assert "cluster" in str(refused.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"cluster": {"prefill": {"replicas": 1, "transfer_seconds": 1e9, "transfer_token_seconds": 1e9}}},
        {"cluster": {"drafter_device": {"link_seconds": 1e9}}},
        {"workload": {"rate": 1e-9}},
        # Each engine's time fits 64 bits, and their sum does not.
        {"cluster": {"replicas": 9000}, "workload": {"rate": 1e-6, "requests": 3}},
    ],
    ids=["transfer", "link", "arrivals", "sum"],
)
def test_time_that_fits_no_table_is_refused_by_file_and_leaves_nothing(tmp_path, changes):
    built = made(tmp_path, **changes)
    with pytest.raises(BadInput, match=r"scenario\.toml.*too long"):
        run(built, 0)


def test_failures_without_end_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(simspec.serving.door, "MOST_OUTAGES", 50)
    failures = {"mean_up_seconds": 1e-6, "mean_down_seconds": 1e-6}
    built = made(tmp_path, cluster={"replicas": 2, "failures": failures})
    with pytest.raises(BadInput, match=r"scenario\.toml: cluster: more than 50 outages"):
        run(built, 0)


def test_clients_that_never_get_a_request_cost_nothing(tmp_path):
    closed = {"kind": "closed", "requests": 5}
    few, many = (made(tmp_path, workload={**closed, "clients": n}) for n in (5, 10**6))
    assert many.load.workload(0).clients == 5
    assert simulated(many).steps.equals(simulated(few).steps)


def test_a_device_is_never_busier_than_the_clock(tmp_path):
    # More drafts are asked of one device than it can make, and the end comes upon a full queue.
    cluster = {"replicas": 10, "drafter_device": {}}
    built = made(tmp_path, cluster=cluster, workload={"rate": 1e6}, until_seconds=0.02)
    found = run(built, 0).figures["drafter_device"]
    assert found["share"] == pytest.approx(1, abs=0.1)
    assert found["share"] <= 1
    assert found["busy_seconds"] <= 0.02


def test_tokens_thrown_away_are_told_of(tmp_path):
    for cluster, said in (({}, False), (FAILING, True), ({**FAILING, "on_failure": "resume"}, False)):
        words = made(tmp_path, cluster=cluster).approximations
        assert any("threw away" in word for word in words) == said


@pytest.mark.parametrize("replace", [True, False])
def test_waste_is_unknown_where_intermediates_add_tokens(tmp_path, replace):
    (tmp_path / "two.toml").write_text(COST + "middle = 0.5\n")
    verdicts = {"kind": "levels", "rates": [0.9, 0.99], "longest": 3}
    chain = {"intermediates": ["middle"], "semantics": "funnel-replace" if replace else None}
    one = {"kind": "fixed", "draft_tokens": 1}
    speculation = {"verdicts": verdicts, "policy": one, **chain}
    built = made(tmp_path, cost={"target": "two.toml"}, speculation=speculation)
    draft = measured(built, simulated(built))["draft"]
    if replace:  # a share of the drafter's tokens would be less than none
        assert draft["waste"] is None
        assert draft["accepted_tokens"] > draft["drafted_tokens"]
    else:
        assert 0 < draft["waste"] < 1
