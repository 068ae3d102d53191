"""A Chrome trace of a simulation: events nest, sums are those of the tables, nothing is rounded."""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal

import pyarrow as pa
import pytest

from simspec.errors import BadInput
from simspec.scenario.run import run
from simspec.serving.recorder import REQUESTS, STEPS
from simspec.serving.timeline import COUNTERS, PARTS, timeline, window_of, write_timeline
from tests.unit.test_scenario_paired import made
from tests.unit.test_sweep_passes import ran

TIGHT = {
    "memory": {"block_tokens": 4, "target_blocks": 60, "preemption": "swap", "block_swap_seconds": 1e-4},
    "workload": {"rate": 200.0},
    "engine": {"queue_limit": 3, "patience_seconds": 0.02},
}


def written_trace(folder, window, **changes):
    steps, requests, _ = ran(folder, **changes)
    write_timeline(folder / "tables", window, folder / "trace.json")
    document = json.loads((folder / "trace.json").read_text(), parse_float=Decimal, parse_int=Decimal)
    return steps, requests, document


def ns(event, name):
    value = event[name] * 1000
    assert value == int(value)
    return int(value)


@pytest.mark.parametrize(
    "changes", [{}, TIGHT, {"engine": {"mixed": False}}], ids=["plain", "tight", "apart"]
)
def test_sums_are_those_of_the_tables(tmp_path, changes):
    steps, requests, document = written_trace(tmp_path, "0:1000", **changes)
    spans = [e for e in document["traceEvents"] if e["ph"] == "X"]
    for part in PARTS:
        total = sum(ns(e, "dur") for e in spans if e["name"] == part and e["pid"] == 1)
        assert total == sum(steps[f"{part}_ns"].to_pylist()), part
    of_steps = [e for e in spans if e["name"] == "step"]
    assert len(of_steps) == steps.num_rows
    for name in ("emitted_tokens", "accepted_tokens", "preempted_requests"):
        assert sum(e["args"][name] for e in of_steps) == sum(steps[name].to_pylist())
    of_requests = [e for e in spans if e["name"].startswith("request ")]
    wanted = {
        f"request {r['request_id']}": (r["arrived_at_ns"], r["ended_at_ns"], r["outcome"])
        for r in requests.to_pylist()
    }
    found = {e["name"]: (ns(e, "ts"), ns(e, "ts") + ns(e, "dur"), e["args"]["outcome"]) for e in of_requests}
    assert found == wanted
    phases = [e for e in spans if e["pid"] == 2 and e not in of_requests]
    assert sum(ns(e, "dur") for e in phases) == sum(ns(e, "dur") for e in of_requests)
    if changes is TIGHT:
        outcomes = {outcome for _, _, outcome in wanted.values()}
        assert {"rejected", "timed_out", "finished"} <= outcomes
        assert sum(steps["swap_ns"].to_pylist()) > 0


@pytest.mark.parametrize("window", ["0:1000", "0.1:0.2"])
def test_events_nest_on_every_track(tmp_path, window):
    _, _, document = written_trace(tmp_path, window, **TIGHT)
    tracks = defaultdict(list)
    for event in document["traceEvents"]:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((ns(event, "ts"), ns(event, "dur")))
    assert len(tracks) > 3
    for spans in tracks.values():
        open_until = []
        for begin, taken in spans:  # in the order written: what encloses comes first
            while open_until and open_until[-1] <= begin and not (taken == 0 and open_until[-1] == begin):
                open_until.pop()
            assert not open_until or begin + taken <= open_until[-1]
            open_until.append(begin + taken)


def test_a_window_holds_what_is_there_in_it_whole(tmp_path):
    steps, requests, document = written_trace(tmp_path, "0.5:0.6")
    spans = [e for e in document["traceEvents"] if e["ph"] == "X"]
    begun = dict(zip(steps["started_at_ns"].to_pylist(), steps.to_pylist(), strict=True))
    ends = {at: at + sum(row[f"{part}_ns"] for part in PARTS) for at, row in begun.items()}
    wanted = {at for at in begun if at < 600_000_000 and ends[at] > 500_000_000}
    assert 0 < len(wanted) < steps.num_rows
    assert {ns(e, "ts") for e in spans if e["name"] == "step"} == wanted
    inside = {
        f"request {r['request_id']}"
        for r in requests.to_pylist()
        if r["arrived_at_ns"] < 600_000_000 and r["ended_at_ns"] >= 500_000_000
    }
    assert {e["name"] for e in spans if e["name"].startswith("request ")} == inside


def test_counters_follow_the_steps_and_fall_to_zero_when_idle(tmp_path):
    steps, _, document = written_trace(tmp_path, "0:1000", workload={"rate": 5.0})
    counted = [e for e in document["traceEvents"] if e["ph"] == "C"]
    rows = {row["started_at_ns"]: row for row in steps.to_pylist()}
    for event in counted:
        row = rows.get(ns(event, "ts"))
        for line, column in COUNTERS[event["name"]].items():
            assert event["args"][line] == (row[column] if row else 0)
    idle = [e for e in counted if ns(e, "ts") not in rows]
    assert len(idle) > len(COUNTERS)
    assert {e["name"] for e in counted} == set(COUNTERS)


def test_nanoseconds_are_not_rounded():
    """A float64 of microseconds would lose the last digit here."""
    began = 9_007_199_254_740_993
    row = dict.fromkeys((c.name for c in STEPS.columns), 0) | {"started_at_ns": began, "verify_ns": 1}
    steps = pa.Table.from_pylist([row], schema=STEPS.schema)
    found = timeline(steps, REQUESTS.schema.empty_table(), 0, began + 1)["traceEvents"]
    assert next(e["ts"] for e in found if e["name"] == "step") == Decimal("9007199254740.993")


@pytest.mark.parametrize("text", ["", "1", "2:1", "1:1", "a:b", "-1:1", "nan:1", "0:inf"])
def test_windows_that_are_none(text):
    with pytest.raises(BadInput, match="window"):
        window_of(text)


def test_refusals_and_nothing_left_behind(tmp_path):
    (tmp_path / "tables").mkdir()
    run(made(tmp_path), 0, folder=tmp_path / "tables")
    with pytest.raises(BadInput, match="no step and no request"):
        write_timeline(tmp_path / "tables", "900:901", tmp_path / "trace.json")
    with pytest.raises(BadInput, match="cannot be written"):
        write_timeline(tmp_path / "tables", "0:1", tmp_path / "nowhere" / "trace.json")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cost.toml", "scenario.toml", "tables"]
