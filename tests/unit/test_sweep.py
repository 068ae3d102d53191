"""A sweep: the same luck for all, the same result for any number of processes, cells that are kept."""

from __future__ import annotations

import pytest

from simspec.errors import BadInput
from simspec.scenario.reading import read_scenario
from simspec.scenario.run import run
from simspec.sweep import running
from simspec.sweep.document import Asked, sweep
from simspec.sweep.kept import Kept
from simspec.sweep.policies import policies
from tests.unit.test_scenario_paired import REPLAY, acc_len_file, made, quiet
from tests.unit.test_scenario_reading import written

ZERO = '{kind = "fixed", draft_tokens = 0}'


def swept(
    folder, *, jobs=1, path=None, policies=(), loads=(20.0, 200.0), seeds=(0, 1), assumed=False, **changes
):
    reads = [read_scenario(written(folder, **changes))]
    asked = Asked(policies, loads, "clients" in str(changes.get("workload")), seeds, assumed=assumed)
    return sweep(reads, asked, Kept(path), jobs, quiet)[0]


def cell(found, policy, load, verdicts="own"):
    (one,) = (
        c for c in found["cells"] if (c["policy"], c["verdicts"], c["load"]) == (policy, verdicts, load)
    )
    return one


def test_drafting_nothing_does_not_differ_from_off_at_all(tmp_path):
    """Common random numbers; and nothing of the drafter is charged but its reading of prompts."""
    found = swept(tmp_path, policies=[ZERO], cost={"target": "cost.toml"}, speculation={"lookup": True})
    for load in (20.0, 200.0):
        for name, gap in cell(found, "fixed draft_tokens=0", load)["differences"].items():
            assert set(gap.values()) in ({0.0}, {None}), name
    for crossing in found["crossovers"]:
        if crossing["policy"] == "fixed draft_tokens=0":
            assert crossing["verdict"] == "undecided"


def test_a_cell_is_the_simulation_at_its_load(tmp_path):
    found = swept(tmp_path, seeds=(4,), loads=(33.0,))
    figures = cell(found, "fixed draft_tokens=3", 33.0)["figures"]
    alone = run(made(tmp_path, workload={"rate": 33.0}), 4).figures
    for name, wanted in {
        "throughput_tokens_per_second": alone["throughput_tokens_per_second"],
        "tpot_seconds_p99": alone["tpot_seconds"]["p99"],
        "ttft_seconds_p99": alone["ttft_seconds"]["p99"],
        "emitted_per_pass": alone["emitted_per_pass"]["pooled"],
        "utilisation_draft": alone["utilisation"]["draft"],
        "goodput_share": None,
    }.items():
        assert figures[name] == {"value": wanted, "low": None, "high": None}, name
    assert 1 <= figures["rows_per_step"]["value"] <= 8


def test_speculation_stops_paying_and_verifying_is_why(tmp_path):
    """Made up: tokens are dear here, a pass costs little, and drafts are nearly free."""
    text = (written(tmp_path).parent / "cost.toml").read_text()
    dear = text.replace("token_seconds = 1e-5", "token_seconds = 1e-3").replace("small = 0.1", "small = 0.0")
    (tmp_path / "dear.toml").write_text(dear)
    short = {"prompt_tokens": 1}
    found = swept(
        tmp_path, loads=(1.0, 30.0, 200.0), cost={"target": "dear.toml"}, lengths=short, seeds=(0, 1, 2)
    )
    tpot = next(c for c in found["crossovers"] if c["figure"] == "tpot_seconds_mean")
    assert tpot["verdict"] == "stops paying"
    assert 1 < tpot["low"] < tpot["load"] < tpot["high"] < 200
    why = tpot["because"]
    assert why["term"] == "verify"
    assert why["before"]["margin"]["value"] > 0 > why["after"]["margin"]["value"]
    change = why["after"]["margin"]["value"] - why["before"]["margin"]["value"]
    assert sum(why["changes"].values()) == pytest.approx(change)
    assert why["exceeding"] == ["verify"]


def test_the_number_of_processes_changes_nothing(tmp_path):
    assert swept(tmp_path, jobs=1) == swept(tmp_path, jobs=2)


def test_kept_cells_are_not_run_again(tmp_path, monkeypatch):
    path = tmp_path / "cells.jsonl"
    first = swept(tmp_path, path=path)
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 8
    # Stopped in the middle of the sixth line, and one line of something else.
    path.write_bytes(b"".join(lines[:5]) + b"{}\n" + lines[5][:40])
    ran = []
    monkeypatch.setattr(running, "carry_out", lambda *a, real=running.carry_out: ran.append(a) or real(*a))
    assert swept(tmp_path, path=path) == first
    assert len(ran) == 3
    assert swept(tmp_path, path=path) == first
    assert len(ran) == 3
    # More loads: only theirs. Another seed, or a change of the scenario: all of its own.
    swept(tmp_path, path=path, loads=(20.0, 50.0, 200.0))
    assert len(ran) == 7
    swept(tmp_path, path=path, seeds=(0, 2))
    assert len(ran) == 11
    swept(tmp_path, path=path, engine={"slots": 7})
    assert len(ran) == 19


def test_other_code_keeps_other_cells(tmp_path, monkeypatch):
    path = tmp_path / "cells.jsonl"
    first = swept(tmp_path, path=path)
    monkeypatch.setattr(running, "code_hash", lambda: "other")
    assert swept(tmp_path, path=path) == first
    assert len(path.read_bytes().splitlines()) == 16


def test_a_file_that_cannot_be_kept_is_refused(tmp_path):
    (tmp_path / "cells.jsonl").mkdir()
    with pytest.raises(BadInput, match="cannot be used"):
        Kept(tmp_path / "cells.jsonl")


def test_assumptions_are_run_where_they_can_be(tmp_path):
    acc_len_file(tmp_path)
    g4 = '{kind = "g4", first = 2, longest = 3}'
    found = swept(tmp_path, speculation=REPLAY, assumed=True, policies=[g4], loads=(20.0,))
    assert found["assumptions"]["verdicts"] == ["own", "rates", "iid", "mean"]
    assert set(found["assumptions"]["fitted"]) == {"fixed draft_tokens=3", "g4 first=2 longest=3"}
    assert found["assumptions"]["refused"] == {}
    own = cell(found, "fixed draft_tokens=3", 20.0)
    for verdicts in ("rates", "iid", "mean"):
        narrow = cell(found, "fixed draft_tokens=3", 20.0, verdicts)
        gap = narrow["figures"]["tpot_seconds_p99"]["value"] - own["figures"]["tpot_seconds_p99"]["value"]
        assert narrow["less_own"]["tpot_seconds_p99"]["value"] == pytest.approx(gap)
        assert gap < 0  # the tail is what they lose
    drawn = swept(tmp_path, assumed=True, loads=(20.0,))
    assert "replays nothing" in drawn["assumptions"]["refused"]["fixed draft_tokens=3"]


def test_labels_of_what_is_not_measured(tmp_path):
    found = swept(tmp_path, loads=(20.0,))
    assert found["published"]
    assert not found["synthetic"]
    assert any("made up for tests" in words for words in found["approximations"])


def test_clients_of_a_closed_loop(tmp_path):
    workload = {"kind": "closed", "clients": 2, "requests": 40}
    found = swept(tmp_path, workload=workload, loads=(1.0, 4.0))
    assert found["load"] == {"kind": "clients", "unit": "clients", "values": [1.0, 4.0]}
    for load in (1.0, 4.0):
        assert cell(found, "off", load)["figures"]["rows_per_step"]["value"] <= load
    assert list(policies([read_scenario(tmp_path / "scenario.toml")])) == ["off", "fixed draft_tokens=3"]
