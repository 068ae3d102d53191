"""``simspec roofline`` and ``simspec calibrate`` as a user runs them, without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from simspec.cli import main

ROOT = Path(__file__).parents[2]
TRACE = "traces/smollm2-cpu"
COST = "calibrate/roofline-a100-llama-2-7b.toml"


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


def call(capsys, *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(words)
    printed = capsys.readouterr()
    return stop.value.code, printed.out, printed.err


def test_json_has_the_documented_keys_and_is_made_again_by_its_command(capsys):
    words = (
        "roofline",
        "--measured",
        TRACE,
        "--architecture",
        "SmolLM2-135M",
        "--device",
        "rtx-4090",
        "--json",
    )
    code, out, _ = call(capsys, *words)
    assert code == 0
    found = json.loads(out)
    assert set(found) == {
        "framework",
        "devices",
        "single_token_ms",
        "published",
        "published_errors",
        "not_compared",
        "measured",
        "provenance",
    }
    assert "no framework" in found["framework"]
    for each in found["published"]:
        assert each["ratio"] == pytest.approx(each["predicted_ms"] / each["case"]["published_ms"])
    assert set(found["published_errors"]) == {"time", "fit", "all"}
    assert set(found["measured"]) == {"name", "origin", "where", "affine", "roofline", "preset"}
    # Every number format and model that was timed has an affine fit; the roofline needs sizes.
    assert len(found["measured"]["affine"]) == 7
    assert [f["dtype"] for f in found["measured"]["roofline"]] == ["float32", "int8-dynamic"]
    assert set(found["measured"]["preset"]["errors"]) == {"float32"}
    assert call(capsys, *found["provenance"]["command"][1:])[1] == out


def test_tables_say_that_no_framework_is_in_it(capsys, tmp_path):
    reports = tmp_path / "reports.csv"
    reports.write_text(
        "id,url,hardware,target,draft,batch_or_concurrency,k,t_draft_ms,t_target1_ms,t_verify_ms\n"
        "X1,made-up,H100,Qwen3-8B,,1,,,9.5,\nX2,made-up,a toaster,Qwen3-8B,,1,,,9.5,\n"
    )
    code, out, _ = call(capsys, "roofline", str(reports))
    assert code == 0
    assert "no framework" in out
    assert "X1/t_target1_ms" in out
    assert "no preset for the device" in out


def test_rank_takes_a_roofline(capsys):
    words = (
        "rank",
        TRACE,
        "--cost",
        COST,
        "--batches",
        "1",
        "--lengths",
        "1-2",
        "--draws",
        "0",
        "--jobs",
        "1",
    )
    code, out, _ = call(capsys, *words, "--json")
    assert code == 0
    found = json.loads(out)
    assert "a100-roofline" in found["costs"]
    assert "roofline-a100-llama-2-7b.toml" in found["provenance"]["inputs"]
    assert "calculated, not measured" in found["costs"]["a100-roofline"]["cost"]["label"]
    named = {m for c in found["batches"]["1"]["chains"] for m in c["chain"]}
    assert named == {"target", "skip-2", "skip-10", "ngram"}, "skip-6 has no price"


ROOFLINE = (ROOT / COST).read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("roofline", "nowhere.csv"), "nowhere.csv"),
        (("roofline", "--measured", "nowhere"), "manifest.json"),
        (("roofline", "--device", "l4"), "with --measured"),
        (("roofline", "--measured", TRACE, "--device", "rtx4090"), "did you mean 'rtx-4090'"),
        (("roofline", "--measured", TRACE, "--architecture", "SmolLM-135M"), "did you mean 'SmolLM2-135M'"),
        (("roofline", "--measured", TRACE, "--architecture", "none.json"), "none.json"),
        (("rank", TRACE, "--cost", "traces"), "folder of a latency profile"),
        (("calibrate", "nowhere.toml", "out"), "nowhere.toml"),
        (("calibrate", COST, "out"), "unknown field"),
        (("calibrate",), "recipe"),
    ],
    ids=lambda x: " ".join(x)[-50:] if isinstance(x, tuple) else "",
)
def test_bad_input_is_refused_with_code_2(capsys, words, said):
    code, out, err = call(capsys, *words)
    assert code == 2, err
    assert said in err
    assert not out


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('skip-2 = "', 'skip-7 = "', "unknown model 'skip-7'"),
        ("ngram = 0", "skip-6 = 0", "belongs in architectures"),
        ('skip-2 = "', 'ngram = "', "lookup_seconds"),
    ],
)
def test_a_roofline_that_does_not_fit_the_trace_is_refused(capsys, tmp_path, old, new, said):
    assert old in ROOFLINE
    path = tmp_path / "other.toml"
    path.write_text(ROOFLINE.replace(old, new))
    code, _, err = call(capsys, "lengths", TRACE, "--cost", str(path), "--draws", "0")
    assert code == 2
    assert said in err


def test_the_roofline_never_imports_torch():
    code = (
        "import sys\n"
        "from simspec.cli import main\n"
        "try:\n    main(['roofline', '--json'])\nexcept SystemExit as end:\n    assert not end.code\n"
        "print(sorted({'torch', 'transformers', 'matplotlib'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"
