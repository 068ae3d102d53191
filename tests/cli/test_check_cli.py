"""``simspec check`` as a reviewer runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_commands import simspec

KEYS = {"id", "verdict", "examples", "exhaustive", "exact", "counterexample", "seconds"}


def test_json_has_the_documented_keys_and_is_the_same_again() -> None:
    first = simspec("check", "S8", "S8b", "--budget", "5s", "--seed", "3", "--json")
    assert first.returncode == 0, first.stderr
    found = json.loads(first.stdout)
    assert (found["budget"], found["seed"]) == ("5s", 3)
    assert "hypothesis" in found["versions"]
    assert found["mutants"]["caught"] == found["mutants"]["total"] > 0
    holds, refuted = found["claims"]
    assert set(holds) >= KEYS
    assert (holds["id"], holds["verdict"], holds["exhaustive"], holds["exact"]) == ("S8", "holds", True, True)
    assert holds["counterexample"] is None
    assert (refuted["id"], refuted["verdict"]) == ("S8b", "refuted")
    assert refuted["counterexample"] == [["1", "0"], ["0", "1"], ["1", "0"]]
    assert refuted["repaired"]["verdict"] == "holds"
    again = json.loads(
        simspec("check", "S8", "S8b", "--budget", "5s", "--seed", "3", "--json", "--jobs", "1").stdout
    )
    for one in (found, again):
        for claim in one["claims"]:
            for part in (claim, claim["repaired"] or {}, *claim["broken"]):
                part.pop("seconds", None)
    assert again == found


def test_the_table_works_the_counterexample_through() -> None:
    done = simspec("check", "S2", "--budget", "5s")
    assert done.returncode == 0
    assert "refuted" in done.stdout
    assert "greedy decoding accepts with 1" in done.stdout
    assert "check: S2: refuted" in done.stderr


def test_the_page_tells_statement_verdict_and_working(tmp_path: Path) -> None:
    out = tmp_path / "ledger"
    done = simspec("check", "S2", "S8", "--budget", "5s", "--out", str(out))
    assert done.returncode == 0, done.stderr
    page = (out / "index.html").read_text()
    assert {p.name for p in out.iterdir()} == {"index.html", "ledger.json", "figures"}
    assert (out / "figures" / "S2.png").stat().st_size > 1000
    for said in ("refuted", "1 - TV", "Repaired", "Broken on purpose", "SpecRouter (2505.07680)"):
        assert said in page
    assert json.loads((out / "ledger.json").read_text())["claims"][0]["id"] == "S2"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("S99",), "unknown claim 'S99'"),
        (("S1", "--budget", "soon"), "--budget 'soon'"),
        (("S1", "--seed", "-1"), "--seed -1"),
        (("S1", "--jobs", "-2"), "--jobs -2"),
    ],
)
def test_bad_input_is_refused(words: tuple[str, ...], said: str) -> None:
    done = simspec("check", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert not done.stdout


def test_a_folder_of_somebody_elses_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    done = simspec("check", "S1", "--budget", "5s", "--out", str(tmp_path))
    assert done.returncode == 2
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_claims_on_a_trace(tmp_path: Path) -> None:
    trace = "traces/smollm2-cpu"
    real = "reports/executor/validation.json"
    out = tmp_path / "data"
    words = ("check", "--trace", trace, "--decoded", real, "--draws", "200", "--out", str(out), "--json")
    done = simspec(*words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["origin"], found["prompts"]) == ("measured", 56)
    assert found["family"]["method"] == "Holm"
    verdicts = {claim["verdict"] for claim in found["claims"]}
    assert verdicts <= {"holds", "refuted", "rejected", "not rejected", "not decidable here"}
    for claim in found["claims"]:
        assert (claim["p_adjusted"] is not None) == claim["family"]
        if claim["verdict"] == "rejected":
            assert claim["p_value"] <= claim["p_adjusted"] <= found["family"]["level"]
    (batches,) = [claim for claim in found["claims"] if claim["id"] == "E7"]
    assert batches["verdict"] == "not rejected"
    page = (out / "index.html").read_text()
    assert "an effect smaller than" in page
    assert json.loads((out / "ledger.json").read_text()) == found
    again = found["provenance"]["command"]
    assert json.loads(simspec(*again[1:], "--json").stdout)["summary"] == found["summary"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--trace", "traces/none"), "traces/none"),
        (("S1", "--trace", "traces/smollm2-cpu"), "beside --trace"),
        (("--decoded", "reports/executor/validation.json"), "--decoded without --trace"),
        (("--trace", "traces/smollm2-cpu", "--decoded", "reports/executor/critic.json"), "critic.json"),
        (("--trace", "traces/smollm2-cpu", "--draws", "-1"), "--draws -1"),
    ],
)
def test_bad_input_beside_a_trace_is_refused(words: tuple[str, ...], said: str) -> None:
    done = simspec("check", *words)
    assert done.returncode == 2
    assert said in done.stderr
