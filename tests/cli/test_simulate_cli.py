"""``simspec simulate`` as a user runs it: the examples, the keys, the folder, the refusals."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from simspec.cli import main
from simspec.provenance import sha256_file
from simspec.serving.recorder import REQUESTS, STEPS
from simspec.serving.step import PARTS
from simspec.tables import check_table
from tests.cli.test_commands import simspec
from tests.unit.test_scenario_reading import written

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "reports" / "serving"

KEYS = {
    "requests": {"arrived", "finished", "rejected", "timed_out", "unfinished", "lost"},
    "ttft_seconds": {"mean", "p50", "p90", "p99"},
    "tpot_seconds": {"mean", "p50", "p90", "p99"},
    "e2e_seconds": {"mean", "p50", "p90", "p99"},
    "queueing_seconds": {"mean", "p50", "p90", "p99"},
    "itl_seconds": {"per_chunk", "per_token", "unknown_because"},
    "goodput": {"objectives", "requests", "share", "requests_per_second"},
    "emitted_per_pass": {"pooled", "mean_of_requests", "deviation_between_requests"},
    "draft": {
        "drafted_tokens",
        "submitted_tokens",
        "accepted_tokens",
        "waste",
        "length_shares",
        "shares_by_drafter",
    },
    "batch": {"mean_requests", "peak_requests", "peak_queued"},
    "kv_blocks": {"target", "drafter"},
    "utilisation": {*PARTS, "idle", "down", "lost"},
    "failures": {"outages", "restarts", "requests_restarted", "discarded_tokens"},
}
NUMBERS = {"output_tokens", "throughput_tokens_per_second", "preemptions"}
OF_THE_MACHINE = {"wall_seconds", "output_tokens_per_wall_second", "peak_rss_bytes"}
REST = {
    "format",
    "name",
    "seed",
    "until_seconds",
    "measured",
    "replicas",
    "dropped",
    "logs",
    "approximations",
    "scenario",
}


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The JSON of a command, run in this process."""
    with pytest.raises(SystemExit) as end:
        main(["simulate", *words, "--json"])
    out, err = capsys.readouterr()
    assert end.value.code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_the_documented_keys_and_no_others(tmp_path, capsys):
    found = answer(capsys, str(written(tmp_path)))
    assert set(found) == set(KEYS) | NUMBERS | OF_THE_MACHINE | REST | {"provenance"}
    for name, keys in KEYS.items():
        assert set(found[name]) == keys, name
    for name in NUMBERS | OF_THE_MACHINE:
        assert found[name] >= 0
    assert found["output_tokens_per_wall_second"] == pytest.approx(
        found["output_tokens"] / found["wall_seconds"]
    )
    # A process with numpy and pandas in it: between 50 MiB and 50 GiB, so bytes and nothing else.
    assert 50 << 20 < found["peak_rss_bytes"] < 50 << 30
    # Seconds: a step of this made-up device takes 2 to 3 ms, and emits 1 to 4 tokens a request.
    assert 2e-3 / 4 < found["tpot_seconds"]["p50"] < 3e-3
    assert found["requests"]["arrived"] == found["requests"]["finished"] == 60


def test_the_command_in_the_provenance_makes_it_again(tmp_path):
    first = simspec("simulate", str(written(tmp_path)), "--until", "1.5", "--seed", "3", "--json")
    assert first.returncode == 0, first.stderr
    document = json.loads(first.stdout)
    again = json.loads(simspec(*document["provenance"]["command"][1:], "--json").stdout)
    for name in OF_THE_MACHINE:
        del document[name], again[name]
    assert document == again
    assert document["seed"] == 3
    assert document["until_seconds"] == 1.5
    assert 0 < document["requests"]["arrived"] < 60
    inputs = document["provenance"]["inputs"]
    assert inputs["scenario.toml"] == sha256_file(tmp_path / "scenario.toml")
    assert inputs["cost.toml"] == sha256_file(tmp_path / "cost.toml")


def test_same_seed_same_bytes_and_another_seed_others(tmp_path, capsys):
    path = str(written(tmp_path))
    for name, seed in (("one", "1"), ("again", "1"), ("other", "2")):
        answer(capsys, path, "--seed", seed, "--out", str(tmp_path / name))
    files = ["figures.json", "requests.parquet", "steps.parquet"]
    assert sorted(p.name for p in (tmp_path / "one").iterdir()) == files
    for name in files:
        one, again, other = ((tmp_path / n / name).read_bytes() for n in ("one", "again", "other"))
        assert one == again, name
        assert one != other, name


def test_the_folder_holds_checked_tables_and_figures_without_the_machine(tmp_path, capsys):
    folder = tmp_path / "new" / "run"
    printed = answer(capsys, str(written(tmp_path)), "--out", str(folder))
    kept = json.loads((folder / "figures.json").read_text())
    assert not OF_THE_MACHINE & set(kept)
    assert kept == {name: value for name, value in printed.items() if name not in OF_THE_MACHINE}
    for table in (STEPS, REQUESTS):
        check_table(table, pq.read_table(folder / f"{table.name}.parquet"), folder)
    assert [p.name for p in folder.parent.iterdir()] == ["run"]


def test_a_timeline_of_one_run(tmp_path, capsys):
    """As many step events as the table has steps in the window."""
    out, line = tmp_path / "out", tmp_path / "line.json"
    answer(capsys, str(written(tmp_path)), "--out", str(out), "--timeline", str(line), "--window", "0:1e6")
    events = json.loads(line.read_text())["traceEvents"]
    steps = [e for e in events if e["ph"] == "X" and e["name"].startswith("step")]
    assert len(steps) == pq.read_table(out / "steps.parquet").num_rows > 0


def test_a_run_that_fails_leaves_nothing(tmp_path, capsys, monkeypatch):
    from simspec.scenario import documents

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(documents, "describe", fails)
    with pytest.raises(SystemExit) as end:
        main(["simulate", str(written(tmp_path)), "--out", str(tmp_path / "run")])
    assert end.value.code == 2
    assert "run: cannot be written: No space left" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cost.toml", "scenario.toml"]


def test_its_own_run_is_replaced_and_a_folder_in_use_left_alone(tmp_path, capsys):
    path, out = str(written(tmp_path, emissions=True)), tmp_path / "run"
    answer(capsys, path, "--out", str(out))
    assert (out / "emissions.parquet").exists()
    again = answer(capsys, str(written(tmp_path)), "--seed", "5", "--out", str(out))
    assert json.loads((out / "figures.json").read_text())["seed"] == again["seed"] == 5
    assert not (out / "emissions.parquet").exists()  # nothing of the old one is left
    (out / "mine.txt").write_text("mine")
    done = simspec("simulate", path, "--out", str(out))
    assert done.returncode == 2
    assert "holds 'mine.txt', which simspec simulate does not write" in done.stderr
    assert (out / "mine.txt").read_text() == "mine"


def test_two_scenarios_and_replications(tmp_path, capsys):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    one = written(tmp_path / "a", name="on")
    other = written(tmp_path / "b", name="off", speculation={"policy": {"kind": "off"}})
    out = tmp_path / "compared"
    found = answer(capsys, str(one), str(other), "--replications", "3", "--out", str(out))
    assert found["seeds"] == [0, 1, 2]
    assert [s["name"] for s in found["scenarios"]] == ["on", "off"]
    gap = found["differences"]["tpot_seconds_mean"]
    # Three drafts at a tenth of the price, 1.6 of them accepted: without them it takes longer.
    assert 0 < gap["low"] < gap["value"] < gap["high"]
    assert set(found["provenance"]["inputs"]) == {
        f"{n}/{f}.toml" for n in (1, 2) for f in ("scenario", "cost")
    }
    assert json.loads((out / "figures.json").read_text()) == found
    assert [p.name for p in out.iterdir()] == ["figures.json"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), ["TTFT", "TPOT", "ITL, per chunk", "time: idle", "nothing is left out", "made up for tests"]),
        (("--replications", "2"), ["2 replications (arrivals, verdicts drawn)", "tpot_seconds_p99"]),
    ],
)
def test_for_people(tmp_path, capsys, more, said):
    with pytest.raises(SystemExit) as end:
        main(["simulate", str(written(tmp_path)), *more])
    out = capsys.readouterr().out
    assert not end.value.code
    for words in said:
        assert words in out
    assert "nan" not in out.lower().split()


def test_assumptions_and_comparisons_for_people(tmp_path, capsys):
    from tests.unit.test_scenario_paired import REPLAY, acc_len_file

    acc_len_file(tmp_path)
    path = str(written(tmp_path, speculation=REPLAY))
    with pytest.raises(SystemExit):
        main(["simulate", path, "--assumptions", "--replications", "2"])
    out = capsys.readouterr().out
    for words in ("fitted at 3 drafts", "tpot_seconds_p99", "replay", "rates", "iid", "mean", "less replay"):
        assert words in out
    with pytest.raises(SystemExit):
        main(["simulate", path, path, "--replications", "2"])
    assert "small less small" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere.toml",), "nowhere.toml: cannot be read"),
        (("FILE", "--seed", "-1"), "--seed -1"),
        (("FILE", "--until", "nan"), "--until nan"),
        (("FILE", "--until", "0"), "--until 0"),
        (("FILE", "--replications", "0"), "--replications 0"),
        (("FILE", "FILE", "--assumptions"), "--assumptions takes one scenario"),
        (("FILE", "--assumptions"), "replays nothing"),
        (("FILE", "--timeline", "line.json"), "--timeline without"),
        (("FILE", "--timeline", "FILE", "--window", "0:1", "--out", "OUT"), "not the scenario"),
        (("FILE", "--timeline", "no/folder.json", "--window", "0:1", "--out", "OUT"), "--timeline no/folder"),
        (("FILE", "--bogus", "1"), "bogus"),
        ((), "scenario"),
    ],
    ids=lambda x: " ".join(x)[:40] if isinstance(x, tuple) else "",
)
def test_refusals_exit_with_2(tmp_path, capsys, words, said):
    given = {"FILE": str(written(tmp_path)), "OUT": str(tmp_path / "out")}
    with pytest.raises(SystemExit) as end:
        main(["simulate", *(given.get(word, word) for word in words)])
    out, err = capsys.readouterr()
    assert end.value.code == 2
    assert not (tmp_path / "out").exists()
    assert said in err.lower() or said in err
    assert not out


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "seed = " + "9" * 5000], ids=["brackets", "digits"])
def test_toml_that_breaks_its_reader_is_refused(tmp_path, capsys, text):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(SystemExit) as end:
        main(["simulate", str(path)])
    assert end.value.code == 2
    assert f"{path}: is no TOML that can be read" in capsys.readouterr().err


def test_a_byte_order_mark_is_no_mistake(tmp_path, capsys):
    path = written(tmp_path)
    plain = answer(capsys, str(path))["requests"]
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert answer(capsys, str(path))["requests"] == plain


def test_simulating_never_imports_torch():
    code = (
        "import sys\n"
        "from simspec.cli import main\n"
        "try:\n    main(['simulate', {!r}, '--until', '1'])\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "print(sorted({{'torch', 'transformers', 'matplotlib', 'hypothesis'}} & set(sys.modules)))\n"
    )
    path = str(EXAMPLES / "poisson-h100.toml")
    done = subprocess.run(
        [sys.executable, "-c", code.format(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


# -- the examples, shortened -------------------------------------------------------------------------------


def test_example_poisson(capsys):
    found = answer(capsys, str(EXAMPLES / "poisson-h100.toml"), "--until", "25")
    assert found["requests"]["finished"] > 400
    assert found["measured"]["requests_left_out"] > 300
    assert 1 < found["emitted_per_pass"]["pooled"] < 6
    assert found["goodput"]["share"] is not None
    assert any("smollm2-cpu" in words for words in found["approximations"])
    assert any("published" in words for words in found["approximations"])


def test_example_closed_loop(capsys):
    found = answer(capsys, str(EXAMPLES / "closed-loop-cpu.toml"), "--until", "100")
    assert found["requests"]["finished"] > 20
    assert found["batch"]["peak_requests"] <= 4
    # Eight clients: never more in the engine, whatever its speed.
    assert found["batch"]["peak_queued"] <= 8


@pytest.mark.shared
def test_example_azure(shared_folder, capsys):
    """Two minutes of the hour."""
    assert (shared_folder / "data").is_dir()
    found = answer(capsys, str(EXAMPLES / "azure-conversation.toml"), "--until", "120")
    log = found["logs"][0]
    assert log["requests"] == 19366
    assert found["dropped"] == {"workload": {}}
    assert found["requests"]["finished"] > 100


def test_an_example_runs_from_anywhere(tmp_path, monkeypatch, capsys):
    """Its paths are relative to its own folder: moved alone, it does not find its files any more."""
    shutil.copy(EXAMPLES / "closed-loop-cpu.toml", tmp_path / "moved.toml")
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as end:
        main(["simulate", str(tmp_path / "moved.toml"), "--until", "1"])
    assert end.value.code == 2
    assert "smollm2-cpu" in capsys.readouterr().err
