"""Figures of a run against slow ways of getting the same, and against the figures of the engine's room."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.scenario.build import Built, build
from simspec.scenario.figures import measure
from simspec.scenario.itl import _spread, ends_of
from simspec.scenario.reading import read_scenario
from simspec.scenario.run import run
from simspec.serving.figures import Spread, figures
from simspec.serving.simulate import Records, simulate
from simspec.serving.step import PARTS
from tests.unit.test_scenario_reading import written


def made(folder: Path, **changes: Any) -> Built:
    return build(read_scenario(written(folder, **changes)))


def simulated(built: Built, *, emissions: bool = False) -> Records:
    scenario = built.scenario
    return simulate(
        built.cluster,
        built.load.workload(0),
        0,
        until_seconds=scenario.until_seconds,
        emissions=emissions or scenario.emissions,
    )


def measured(built: Built, records: Records) -> dict[str, Any]:
    scenario = built.scenario
    return measure(records, built.cluster, scenario.objectives, scenario.warm_up, scenario.cool_down)


def test_without_warm_up_they_are_the_engines_own_figures(tmp_path):
    built = made(tmp_path)
    records = simulated(built)
    found, theirs = measured(built, records), figures(records.steps, records.requests)
    steps = records.steps.to_pylist()
    spent = {part: sum(step[f"{part}_ns"] for step in steps) for part in PARTS}
    span = steps[-1]["started_at_ns"] + sum(steps[-1][f"{part}_ns"] for part in PARTS)
    spent |= {"idle": span - sum(spent.values()), "down": 0, "lost": 0}
    assert found["utilisation"] == pytest.approx({part: ns / span for part, ns in spent.items()})
    assert found["throughput_tokens_per_second"] == pytest.approx(60 * 20 / span * 1e9)
    assert found["measured"]["span_seconds"] == pytest.approx(span * 1e-9)
    assert found["tpot_seconds"] == asdict(theirs.tpot_seconds)
    assert found["output_tokens"] == theirs.output_tokens == 60 * 20
    assert found["preemptions"] == theirs.preemptions


def test_utilisation_sums_to_one_and_counts_balance(tmp_path):
    built = made(
        tmp_path,
        engine={"slots": 2, "queue_limit": 4, "patience_seconds": 0.03},
        workload={"rate": 200.0},
        warm_up={"seconds": 0.05},
        until_seconds=0.25,
    )
    found = measured(built, simulated(built))
    counts = found["requests"]
    assert counts["arrived"] == sum(n for name, n in counts.items() if name != "arrived")
    assert counts["rejected"] > 0
    assert counts["timed_out"] > 0
    assert counts["unfinished"] > 0
    assert math.fsum(found["utilisation"].values()) == pytest.approx(1)
    assert min(found["utilisation"].values()) >= 0


@pytest.mark.parametrize("draft_tokens", [0, 3])
def test_itl_from_steps_is_itl_from_emissions(tmp_path, draft_tokens):
    """Two roads: a weighted sum over the table of steps; every request's own deliveries."""
    built = made(tmp_path, speculation={"policy": {"kind": "fixed", "draft_tokens": draft_tokens}})
    records = simulated(built, emissions=True)
    by_emissions = measured(built, records)["itl_seconds"]
    steps_only = measured(built, replace(records, emissions=None))
    by_steps = steps_only["itl_seconds"]
    for name in ("per_chunk", "per_token"):
        assert by_steps[name] == pytest.approx(by_emissions[name])
    if draft_tokens:
        assert by_steps["per_token"]["mean"] < by_steps["per_chunk"]["mean"]
    else:
        assert by_steps["per_token"] == by_steps["per_chunk"]


def test_itl_per_request_and_token_by_a_loop(tmp_path):
    """Preempted, and prompts read between steps: only emissions know."""
    built = made(
        tmp_path,
        engine={"slots": 6, "mixed": False},
        memory={"block_tokens": 4, "target_blocks": 60},
        workload={"rate": 300.0},
        emissions=True,
    )
    records = simulated(built)
    found = measured(built, records)
    assert found["preemptions"] > 0
    ends = ends_of(records.steps).tolist()
    last: dict[int, int] = {}
    chunks, tokens = [], []
    for row in records.emissions.to_pylist():
        request, at = row["request_id"], ends[row["step"]]
        if request in last:
            chunks.append((at - last[request]) * 1e-9)
            tokens += [chunks[-1]] + [0.0] * (row["emitted_tokens"] - 1)
        last[request] = at
    assert found["itl_seconds"]["per_chunk"] == pytest.approx(asdict(Spread.of(np.array(chunks))))
    assert found["itl_seconds"]["per_token"] == pytest.approx(asdict(Spread.of(np.array(tokens))))
    # One token less than each request's output has a token before it.
    assert len(tokens) == 60 * 19


@pytest.mark.parametrize(
    "changes", [{"engine": {"mixed": False}}, {"memory": {"block_tokens": 4, "target_blocks": 45}}]
)
def test_itl_that_steps_cannot_tell_is_null_with_the_reason(tmp_path, changes):
    built = made(tmp_path, workload={"rate": 300.0}, **changes)
    found = measured(built, simulated(built))["itl_seconds"]
    assert found["per_chunk"]["mean"] is None
    assert "emissions" in found["unknown_because"]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), min_size=1, max_size=20))
def test_weighted_spread_is_that_of_repeated_values(pairs):
    values, weights = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    repeated = np.repeat(values, weights) * 1e-9
    found, wanted = asdict(_spread(values, weights)), asdict(Spread.of(repeated))
    if not len(repeated):
        assert found == wanted
    else:
        assert found == pytest.approx(wanted, abs=1e-15)


def test_warm_up_by_seconds_leaves_out_by_arrival_and_by_begin(tmp_path):
    built = made(tmp_path, warm_up={"seconds": 0.5})
    records = simulated(built)
    found = measured(built, records)
    arrived = np.array(records.requests["arrived_at_ns"].to_pylist())
    began = np.array(records.steps["started_at_ns"].to_pylist())
    assert found["measured"]["requests_left_out"] == (arrived < 5e8).sum() > 0
    assert found["measured"]["steps_left_out"] == (began < 5e8).sum() > 0
    kept = records.requests.filter(pa.array(arrived >= 5e8))
    assert found["ttft_seconds"] == asdict(figures(records.steps, kept).ttft_seconds)
    emitted = np.array(records.steps["emitted_tokens"].to_pylist())[began >= 5e8].sum()
    assert found["throughput_tokens_per_second"] * found["measured"]["span_seconds"] == pytest.approx(emitted)
    assert found["output_tokens"] == 60 * 20  # of the whole run
    # The measured time ends with the last step and begins at the instant, or where a step across it ends.
    ends = ends_of(records.steps)
    begin = max(5e8, float(ends[began < 5e8][-1]))
    assert found["measured"]["from_seconds"] == pytest.approx(begin * 1e-9)
    assert found["measured"]["span_seconds"] == pytest.approx((ends[-1] - begin) * 1e-9)
    idle = ends[-1] - begin - (ends - began)[began >= 5e8].sum()
    assert found["utilisation"]["idle"] == pytest.approx(idle / (ends[-1] - begin))


def test_a_busy_engine_has_no_idle_time_at_the_end_of_its_warm_up(tmp_path):
    built = made(tmp_path, workload={"rate": 1e6}, warm_up={"seconds": 0.1})
    found = measured(built, simulated(built))
    assert found["measured"]["steps"] > 0
    assert found["utilisation"]["idle"] == 0


def test_warm_up_by_requests(tmp_path):
    built = made(tmp_path, warm_up={"requests": 10})
    records = simulated(built)
    found = measured(built, records)
    assert found["measured"]["requests_left_out"] == 10
    assert found["measured"]["requests"] == 50
    everything = made(tmp_path, warm_up={"requests": 60})
    empty = measured(everything, records)
    assert empty["measured"]["requests"] == 0
    assert empty["utilisation"] is None
    assert empty["throughput_tokens_per_second"] is None
    assert empty["ttft_seconds"]["p99"] is None


def test_goodput_counts_requests_that_meet_every_objective(tmp_path):
    records = simulated(made(tmp_path))
    rows = records.requests.to_pylist()
    ttft = [(r["first_token_at_ns"] - r["arrived_at_ns"]) * 1e-9 for r in rows]
    tpot = [(r["ended_at_ns"] - r["first_token_at_ns"]) * 1e-9 / (r["produced_tokens"] - 1) for r in rows]
    limits = {"ttft_seconds": float(np.median(ttft)), "tpot_seconds": float(np.quantile(tpot, 0.7))}
    built = made(tmp_path, objectives=limits)
    found = measured(built, records)["goodput"]
    wanted = sum(
        a <= limits["ttft_seconds"] and b <= limits["tpot_seconds"] for a, b in zip(ttft, tpot, strict=True)
    )
    assert 0 < found["requests"] < 60
    assert abs(found["requests"] - wanted) <= 1  # a request on the limit itself
    assert found["share"] == found["requests"] / 60
    nothing = measured(made(tmp_path), records)["goodput"]
    assert nothing["requests"] is nothing["share"] is nothing["requests_per_second"] is None


def test_kv_use_is_a_mean_over_time(tmp_path):
    built = made(tmp_path, memory={"target_blocks": 100, "drafter_blocks": 90})
    records = simulated(built)
    found = measured(built, records)["kv_blocks"]
    steps = records.steps.to_pylist()
    spent = [sum(s[f"{n}_ns"] for n in PARTS) for s in steps]
    span = steps[-1]["started_at_ns"] + spent[-1]
    for model, total in (("target", 100), ("drafter", 90)):
        used = [s[f"{model}_blocks"] for s in steps]
        mean = sum(n * ns for n, ns in zip(used, spent, strict=True)) / span
        assert found[model]["mean"] == pytest.approx(mean)
        assert found[model]["peak_share"] == max(used) / total
    # A drafter whose cache has no limit is not counted, which is not the same as none in use.
    unlimited = measured(made(tmp_path), records)["kv_blocks"]
    assert set(unlimited["drafter"].values()) == {None}


def test_tables_on_disk_give_the_same_figures(tmp_path):
    built = made(tmp_path, emissions=True)
    folder = tmp_path / "tables"
    folder.mkdir()
    assert run(built, 3, folder=folder).figures == run(built, 3).figures
    assert {p.name for p in folder.iterdir()} == {"steps.parquet", "requests.parquet", "emissions.parquet"}
    assert pq.read_table(folder / "requests.parquet").num_rows == 60


def test_plain_decoding_has_nulls_and_no_nan(tmp_path):
    built = made(tmp_path, speculation=None, until_seconds=1e-6)
    found = run(built, 0).figures
    assert found["draft"]["waste"] is None
    assert found["emitted_per_pass"]["pooled"] is None
    assert found["utilisation"] is None
    plain = run(made(tmp_path, speculation=None), 0).figures
    assert plain["emitted_per_pass"] == {
        "pooled": 1.0,
        "mean_of_requests": 1.0,
        "deviation_between_requests": 0.0,
    }


def test_peak_throughput_is_not_below_the_mean(tmp_path):
    built = made(tmp_path)
    records = simulated(built)
    emitted = np.array(records.steps["emitted_tokens"].to_pylist())
    rates = emitted / ((ends_of(records.steps) - np.array(records.steps["started_at_ns"].to_pylist())) * 1e-9)
    assert rates.max() >= measured(built, records)["throughput_tokens_per_second"]
