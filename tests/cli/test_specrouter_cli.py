"""``simspec specrouter``, run as a user runs it."""

from __future__ import annotations

import json

import pytest

from tests.cli.test_commands import PROFILE, TRACE, simspec

QUICK = ("--cost", PROFILE, "--lengths", "1,4", "--batches", "1,4", "--draws", "5", "--only", "ranking")


def files(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_page_is_written_and_made_again_from_what_it_keeps(tmp_path):
    out = tmp_path / "page"
    done = simspec("specrouter", TRACE, "--out", str(out), *QUICK)
    assert done.returncode == 0, done.stderr
    assert "ranking: begins" in done.stderr
    first = files(out)
    assert set(first) == {"index.html", "ranking.json", "figures/regret.png"}
    assert not (tmp_path / "page.studies").exists()
    found = json.loads(first["ranking.json"])["found"]["costs"]["h100-published"]
    assert set(found["tasks"]) == {"all", "maths", "code", "chat", "summarisation"}
    for task in found["tasks"].values():
        for halves in task["batches"].values():
            for half in halves:
                assert min(half["regret"].values()) >= 0.0
                assert half["lead"] >= 0.0
    again = simspec("specrouter", TRACE, "--out", str(out), *QUICK)
    assert "ranking: carried out before" in again.stderr
    assert files(out) == first
    # Another seed is another study.
    other = simspec("specrouter", TRACE, "--out", str(out), *QUICK, "--seed", "1")
    assert "ranking: begins" in other.stderr
    assert files(out)["ranking.json"] != first["ranking.json"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--only", "rankings"), "study 'rankings'"),
        (("--cost", "float32", "--cost", "float32"), "two costs of one name"),
        (("--draws", "-1"), "--draws -1"),
        (("--validation", "pyproject.toml"), "is not JSON"),
        (("--critic", "reports/executor/validation.json"), "is another kind of file"),
    ],
)
def test_bad_input_is_refused_before_any_work(tmp_path, words, says):
    done = simspec("specrouter", TRACE, "--out", str(tmp_path / "page"), *words)
    assert done.returncode == 2
    assert says in done.stderr
    assert not list(tmp_path.iterdir())
