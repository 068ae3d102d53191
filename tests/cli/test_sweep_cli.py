"""``simspec sweep`` as a user runs it: page, keys, folder, going on after a stop, refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from simspec.cli import main
from simspec.report.folder import MARK
from tests.cli.test_commands import simspec
from tests.unit.test_report import Page
from tests.unit.test_report_folder import files
from tests.unit.test_scenario_paired import REPLAY, acc_len_file
from tests.unit.test_scenario_reading import written

KEYS = {"format", "name", "load", "seeds", "until_seconds", "policies", "cells", "passes", "crossovers"}
KEYS |= {
    "assumptions",
    "synthetic",
    "published",
    "dropped",
    "logs",
    "approximations",
    "scenario",
    "provenance",
}
GOODPUT = '{kind = "goodput", longest = 3}'
FEW = ("--replications", "2", "--jobs", "1")


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The JSON of a command, run in this process."""
    with pytest.raises(SystemExit) as end:
        main(["sweep", *words, "--json"])
    out, err = capsys.readouterr()
    assert end.value.code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_the_documented_keys_and_no_others(tmp_path, capsys):
    found = answer(capsys, str(written(tmp_path)), "--rates", "200,20", "--policy", GOODPUT, *FEW)
    assert set(found) == KEYS
    assert found["load"]["values"] == [20.0, 200.0]
    assert list(found["policies"]) == ["off", "fixed draft_tokens=3", "goodput longest=3"]
    assert len(found["cells"]) == 6
    for cell in found["cells"]:
        more = set() if cell["policy"] == "off" else {"differences", "terms"}
        assert set(cell) == {"policy", "verdicts", "load", "figures"} | more
    for crossing in found["crossovers"]:
        keys = {"policy", "verdicts", "figure", "verdict", "load", "low", "high", "before", "after"}
        assert set(crossing) == keys | {"told", "because"}
    assert "cells.jsonl" not in "".join(p.name for p in tmp_path.iterdir())


def test_the_command_in_the_provenance_makes_the_page_again(tmp_path):
    acc_len_file(tmp_path)
    path = str(written(tmp_path, speculation=REPLAY))
    words = ("--rates", "20,200", "--policy", GOODPUT, "--assumptions", "--until", "2", *FEW)
    first = simspec("sweep", path, *words, "--out", str(tmp_path / "one"))
    assert first.returncode == 0, first.stderr
    assert "where speculation stops paying" in first.stdout
    made_by = json.loads((tmp_path / "one" / "sweep.json").read_text())["provenance"]["command"]
    again = simspec(*made_by[1:], "--jobs", "2", "--out", str(tmp_path / "two"))
    assert again.returncode == 0, again.stderr
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert sorted(p.name for p in tmp_path.iterdir() if "cells" in p.name) == []


def test_the_page(tmp_path, capsys):
    acc_len_file(tmp_path)
    out = tmp_path / "page"
    path = str(written(tmp_path, speculation=REPLAY))
    found = answer(capsys, path, "--rates", "20,200", "--assumptions", *FEW, "--out", str(out))
    assert json.loads((out / "sweep.json").read_text()) == found
    text = (out / "index.html").read_text()
    page = Page(text)
    assert page.open == []
    assert set(page.links) == set(files(out)) - {"index.html"}
    assert set(page.links) == {
        "sweep.json",
        *(f"figures/{n}.png" for n in ("load", "gains", "requests", "engine")),
    }
    assert MARK in text
    for words in ("published profile, by supposition", "made up for tests", "rates", "iid", "Provenance"):
        assert words in text
    assert "SYNTHETIC" not in text
    assert "nan" not in text.lower().split()


def test_a_synthetic_trace_is_labelled(tmp_path, capsys):
    from tests.toy import Setting, Toy

    toy = Toy(Setting(seed=5, prompts=3, output_tokens=12, order=1))
    toy.write(tmp_path / "toy")
    manifest = json.loads((tmp_path / "toy" / "manifest.json").read_text())
    drafter = next(name for name in manifest["models"] if name != manifest["target"])
    speculation = {
        "drafter": drafter,
        "policy": {"kind": "fixed", "draft_tokens": 1},
        "verdicts": {"kind": "trace", "path": "toy"},
    }
    path = str(written(tmp_path, speculation=speculation, cost={"target": "float32"}))
    out = tmp_path / "page"
    found = answer(capsys, path, "--rates", "0.5,5", *FEW, "--out", str(out))
    assert found["synthetic"]
    assert not found["published"]
    text = (out / "index.html").read_text()
    assert "SYNTHETIC" in text
    assert "by supposition" not in text


def test_stopped_and_gone_on(tmp_path, capsys, monkeypatch):
    """Stopped after three cells: nothing but the kept cells is there, and the same command goes on."""
    from simspec.sweep import running

    path, out = str(written(tmp_path)), tmp_path / "page"
    words = (path, "--rates", "20,200", *FEW, "--out", str(out))
    real, ran = running.carry_out, []

    def stops(*cell: Any) -> Any:
        if len(ran) == 3:
            raise KeyboardInterrupt
        ran.append(cell)
        return real(*cell)

    monkeypatch.setattr(running, "carry_out", stops)
    with pytest.raises(SystemExit) as end:
        main(["sweep", *words])
    assert end.value.code == 130
    kept = tmp_path / "page.cells.jsonl"
    assert len(kept.read_text().splitlines()) == 3
    assert not out.exists()
    capsys.readouterr()
    monkeypatch.setattr(running, "carry_out", real)
    with pytest.raises(SystemExit) as end:
        main(["sweep", *words])
    assert not end.value.code
    assert "3 of 8 cells are there already" in capsys.readouterr().err
    assert sorted(p.name for p in out.iterdir()) == ["figures", "index.html", "sweep.json"]
    assert not kept.exists()
    answer(capsys, *words[:-1], str(tmp_path / "whole"))
    assert files(out) == files(tmp_path / "whole")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("FILE",), "--rates and --clients"),
        (("FILE", "--rates", "1", "--clients", "1"), "--rates and --clients"),
        (("FILE", "--rates", "1,x"), "holds 'x'"),
        (("FILE", "--rates", "1,0"), "holds '0'"),
        (("FILE", "--rates", "nan"), "holds 'nan'"),
        (("FILE", "--clients", "2"), "--clients and a workload of kind poisson"),
        (("FILE", "--rates", "1", "--policy", "g5"), "--policy 'g5'"),
        (("FILE", "--rates", "1", "--replications", "0"), "--replications 0"),
        (("FILE", "--rates", "1", "--seed", "-1"), "--seed -1"),
        (("FILE", "--rates", "1", "--until", "inf"), "--until inf"),
        (("FILE", "--rates", "1", "--jobs", "-1"), "--jobs -1"),
        (("FILE", "--rates", "1", "--out", "."), "holds 'cost.toml', which simspec sweep"),
        (("nowhere.toml", "--rates", "1"), "nowhere.toml: cannot be read"),
    ],
    ids=lambda x: " ".join(x)[:50] if isinstance(x, tuple) else "",
)
def test_refusals_exit_with_2(tmp_path, capsys, monkeypatch, words, said):
    path = str(written(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["sweep", *(path if word == "FILE" else word for word in words)])
    out, err = capsys.readouterr()
    assert end.value.code == 2
    assert said in err
    assert not out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cost.toml", "scenario.toml"]


def test_its_own_page_is_replaced_and_a_folder_in_use_left_alone(tmp_path, capsys):
    out = tmp_path / "mine"
    words = (str(written(tmp_path)), "--rates", "20", *FEW, "--out", str(out))
    answer(capsys, *words)
    first = files(out)
    (out / "sweep.json").write_text("spoilt")
    answer(capsys, *words)
    assert files(out) == first
    (out / "notes.txt").write_text("mine")
    with pytest.raises(SystemExit) as end:
        main(["sweep", *words])
    assert end.value.code == 2
    assert "holds 'notes.txt', which simspec sweep does not write" in capsys.readouterr().err
    assert files(out) == {**first, "notes.txt": b"mine"}
