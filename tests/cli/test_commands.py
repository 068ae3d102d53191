"""The README's commands, run as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRACE = "traces/smollm2-cpu"
PROFILE = "calibrate/h100-llama-3.1-8b.toml"


def simspec(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "simspec", *words], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "words",
    [
        ("rank", TRACE, "--cost", PROFILE, "--batches", "1,4", "--lengths", "1-3", "--draws", "5", "--json"),
        ("lengths", TRACE, "--cost", "int8-dynamic", "--draws", "5", "--batches", "16,64", "--json"),
        ("lengths", TRACE, "--drafter", "skip-6", "--rules", "g4", "--batch", "1", "--draws", "5", "--json"),
    ],
    ids=lambda words: " ".join(words[:4]),
)
def test_a_result_is_made_again_by_the_command_it_carries(words):
    first = simspec(*words)
    assert first.returncode == 0, first.stderr
    document = json.loads(first.stdout)
    command = document["provenance"]["command"]
    assert command[0] == "simspec"
    assert simspec(*command[1:]).stdout == first.stdout


def test_rank_has_the_documented_keys():
    done = simspec("rank", TRACE, "--batches", "1,2", "--lengths", "1,4", "--draws", "5", "--json")
    document = json.loads(done.stdout)
    assert document["origin"] == "measured"
    assert set(document["costs"]) == {"float32"}
    for entry in document["batches"].values():
        assert set(entry) == {"best", "lead", "lead_interval", "chains", "predicted", "scores"}
        assert set(entry["predicted"]) == set(entry["scores"]) == set(document["costs"]["float32"]["summary"])
        assert {len(times) for times in entry["predicted"].values()} == {len(entry["chains"])}
        best = min(c["replay_seconds_per_token"] for c in entry["chains"])
        assert entry["chains"][entry["best"]]["replay_seconds_per_token"] == best
        for chain in entry["chains"]:
            low, high = chain["replay_interval"]
            assert 0 < low <= high
        for score in entry["scores"].values():
            assert -1 <= score["kendall_tau"] <= 1
            assert score["median_abs_error"] is None or score["median_abs_error"] >= 0
            assert score["regret"] >= 0
            assert score["top1"] == (score["pick"] == entry["best"])


def test_rank_by_halves_and_tasks_has_a_part_for_each():
    words = ("rank", TRACE, "--split", "--by", "task", "--batches", "1", "--lengths", "2", "--draws", "2")
    done = simspec(*words, "--variants", "reach,joint-by-row", "--alphas", "isotonic", "--json")
    document = json.loads(done.stdout)
    found = document["costs"]["float32"]
    tasks = ["all", "chat", "code", "maths", "summarisation"]
    assert set(found["summary"]) == set(tasks)
    assert (
        set(found["parts"])
        == {f"{t}, half {k}" for t in tasks for k in (1, 2)}
        == set(document["acceptance"])
    )
    for part in found["parts"].values():
        fitted, scored = part["prompts"]["fitted_on"], part["prompts"]["scored_on"]
        assert fitted
        assert scored
        assert not set(fitted) & set(scored)
    for summary in found["summary"].values():
        assert set(summary) == {"reach/isotonic", "joint-by-row/visited", "joint-by-row/anywhere"}
        assert {line["of"] for line in summary.values()} == {2}


def test_no_rule_beats_the_lower_bound_on_the_committed_trace():
    for drafter in ("ngram", "skip-10", "skip-6", "skip-2"):
        # Those that learn are held against it in tests/laws/test_length_study.py.
        words = ("--drafter", drafter, "--cost", PROFILE, "--batches", "1", "--draws", "0", "--json")
        done = simspec("lengths", TRACE, "--rules", "g4,libraspec,exact-marginal,svip", *words)
        document = json.loads(done.stdout)["batches"]["1"]
        for kind in ("rules", "oracles"):
            for name, result in document[kind].items():
                assert result["regret_lower_bound"] >= -1e-9, (drafter, name)
                assert result["gap_closed"] <= 1 + 1e-9


def test_lengths_has_the_documented_keys_and_a_users_rule(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('rule = "weak-token"\nleast = 0.7\n', encoding="utf-8")
    words = ("--drafter", "skip-6", "--batches", "1,32", "--rules", "g4", "--rule", str(mine), "--draws", "3")
    document = json.loads(simspec("lengths", TRACE, *words, "--json").stdout)
    assert set(document) == {"trace", "origin", "provenance", "batches"}
    assert f"rule {mine.name}" in document["provenance"]["inputs"]
    for batch, found in document["batches"].items():
        rules = found["rules"]
        assert {n for n in rules if not n.startswith("static-")} == {"g4", "mine", "tuned-static"}
        fastest = min(
            (n for n in rules if n.startswith("static-")), key=lambda n: rules[n]["seconds_per_token"]
        )
        assert found["best_static"] == fastest
        assert rules[fastest]["regret_best_static"] == 0
        of_all = [*rules.values(), *found["oracles"].values()]
        asked = {f"regret_{n}" for n in ("best_static", "tuned_static", "expected", "hindsight", "long_run")}
        mads = {f"mad_{n}" for n in ("expected", "hindsight", "long_run_expected", "long_run_hindsight")}
        for result in of_all:
            assert all(result[key] is not None for key in asked | mads)
            assert result["regret_ours"] is None  # it was not asked for
            assert (result["gap_closed"] is None) == (result["regret_lower_bound"] is None) == (batch != "1")
            assert ("mad_lower_bound" in result) == (batch == "1")
        assert found["oracles"]["myopic-hindsight"]["mad_hindsight"] == 0
        assert found["oracles"]["long-run-expected"]["mad_long_run_expected"] == 0
    shown = simspec("lengths", TRACE, *words)
    assert "tuned-static" in shown.stdout
    assert "bound (dynamic program)" in shown.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rank", "nowhere"), "manifest.json"),
        (("rank", TRACE, "--cost", "float23"), "did you mean 'float32'"),
        (("rank", TRACE, "--batches", "0"), "--batches"),
        (("rank", TRACE, "--lengths", "1-99999999999"), "--lengths"),
        (("rank", TRACE, "--draws", "-1"), "--draws"),
        (("rank", TRACE, "--variants", "reech"), "did you mean 'reach'"),
        (("rank", TRACE, "--alphas", "real"), "real"),
        (("rank", TRACE, "--models", "skip-10,skip-7"), "did you mean"),
        (("rank", TRACE, "--ema-weight", "0"), "--ema-weight"),
        (("rank", TRACE, "--deepest", "9"), "--deepest"),
        (("lengths", TRACE, "--drafter", "skip-7"), "did you mean"),
        (("lengths", TRACE, "--drafter", "target"), "is the target"),
        (("lengths", TRACE, "--drafter", "skip-6", "--cost", "int8-dynamic"), "no price for skip-6"),
        (("lengths", TRACE, "--batch", "0"), "--batch"),
        (("lengths", TRACE, "--rules", "libraspek"), "did you mean 'libraspec'"),
        (("lengths", TRACE, "--rule", "nowhere.toml"), "nowhere.toml"),
        (("lengths", TRACE, "--rule", "simspec/speculation/rules/g4.toml"), "rename the file"),
        (("lengths", TRACE, "--cost", "nowhere.toml"), "nowhere.toml"),
        (("record", "nowhere.toml", "out"), "nowhere.toml"),
        (("bogus",), "bogus"),
        (("rank", TRACE, "--bogus", "1"), "bogus"),
    ],
    ids=lambda x: " ".join(x)[:50] if isinstance(x, tuple) else "",
)
def test_bad_input_is_refused_with_code_2(words, said):
    done = simspec(*words)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert not done.stdout
    assert "Traceback" not in done.stderr


def test_help_imports_neither_pandas_nor_matplotlib_nor_torch():
    code = (
        "import sys\n"
        "from simspec.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as end:\n    assert not end.code\n"
        "print(sorted({'pandas', 'matplotlib', 'torch', 'transformers'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_replaying_never_imports_torch():
    code = (
        "import sys\n"
        "from simspec.cli import main\n"
        f"try:\n    main(['rank', {TRACE!r}, '--batches', '1', '--lengths', '1', '--draws', '0'])\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "print(sorted({'torch', 'transformers', 'matplotlib'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"
