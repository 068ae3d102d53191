"""``simspec libraspec``, run as a user runs it."""

from __future__ import annotations

import json

import pytest

from tests.cli.test_commands import PROFILE, TRACE, simspec
from tests.cli.test_specrouter_cli import files

SAMPLED, TREES = "traces/smollm2-sampled-cpu", "traces/smollm2-trees-cpu"
QUICK = ("--cost", PROFILE, "--batches", "1", "--draws", "5")


def test_a_page_is_written_and_made_again_from_what_it_keeps(tmp_path):
    out = tmp_path / "page"
    words = ("libraspec", TRACE, "--out", str(out), *QUICK, "--only", "trees")
    done = simspec(*words, "--tree-trace", TREES)
    assert done.returncode == 0, done.stderr
    first = files(out)
    assert {"index.html", "trees.json"} <= set(first)
    assert not (tmp_path / "page.studies").exists()
    assert b"smollm2-trees-cpu" in first["index.html"]
    again = simspec(*words, "--tree-trace", TREES)
    assert "trees: carried out before" in again.stderr
    assert files(out) == first
    # Without that trace it is another study.
    other = simspec(*words)
    assert "trees: begins" in other.stderr
    assert json.loads(files(out)["trees.json"])["found"] != json.loads(first["trees.json"])["found"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--only", "tree"), "study 'tree'"),
        (("--batches", "0"), "--batches"),
        (("--tree-trace", SAMPLED), "sampling"),
        (("--sampled", "traces/none"), "traces/none"),
        (("--sampled", TREES), "texts are greedy"),
    ],
)
def test_bad_input_is_refused_before_any_work(tmp_path, words, says):
    done = simspec("libraspec", TRACE, "--out", str(tmp_path / "page"), *QUICK, *words)
    assert done.returncode == 2
    assert says in done.stderr
    assert not list(tmp_path.iterdir())
