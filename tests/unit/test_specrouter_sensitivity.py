"""The sensitivity study as a whole: what it gives, and the page it makes."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from simspec.compare.asked import Asked
from simspec.compare.specrouter import sensitivity
from simspec.compare.specrouter.noise import LEVELS
from simspec.report.parts import Grid, Picture
from simspec.report.specrouter.sensitivity import findings, parts
from simspec.report.style import drawing
from tests.oracles.test_lockstep import AFFINE
from tests.toy import Setting, Toy


def study(jobs: int, draws: int = 4) -> dict:
    trace = Toy(Setting(seed=8, prompts=6, output_tokens=20, block_length=4)).trace()
    asked = Asked(batches=(1, 2), lengths=(1, 3), draws=draws, jobs=jobs)
    return sensitivity.study(trace, [AFFINE], asked, lambda _: None)


@pytest.fixture(scope="module")
def studied() -> dict:
    return study(jobs=1)


def test_the_same_comes_from_two_processes_and_is_plain(studied: dict) -> None:
    assert json.loads(json.dumps(studied, allow_nan=False)) == studied
    assert study(jobs=2) == studied


def test_noise_does_nothing_at_level_0_and_counts_have_no_rates(studied: dict) -> None:
    for cases in studied["noise"][AFFINE.name].values():
        clean = {case: {n: v and v["median"][0] for n, v in names.items()} for case, names in cases.items()}
        assert clean["model"] == clean["width"]
        for case in ("refused", "rate"):
            told = {n: v for n, v in clean[case].items() if v is not None}
            assert told == {n: v for n, v in clean["model"].items() if not n.startswith("joint")}
            assert cases[case]["joint/visited"] is None
        for names in cases.values():
            for v in names.values():
                assert v is None or {len(v[k]) for k in ("median", "low", "high")} == {len(LEVELS)}
    # Without noise picks are those of the ranking, which the levels as recorded are scored by.
    for b, names in studied["decoupled"][AFFINE.name].items():
        for name, both in names.items():
            clean_here = studied["noise"][AFFINE.name][b]["model"][name]["median"][0]
            assert both["trace"][0] == pytest.approx(clean_here, rel=1e-3)


def test_the_exact_reading_picks_the_fastest_of_independent_levels_and_no_other_need(studied: dict) -> None:
    for variants in studied["correlation"][AFFINE.name].values():
        assert variants["exact"]["high"][0] == 0.0
        assert variants["exact"]["high"][-1] > 0.0
        assert variants["product"]["high"][0] > 0.0


def test_the_page_says_what_the_document_says(studied: dict, tmp_path: Path) -> None:
    with drawing():
        shown = list(parts(studied, tmp_path, "SYNTHETIC behaviour"))
    pictures = [p for p in shown if isinstance(p, Picture)]
    assert {p.name for p in tmp_path.iterdir()} == {p.file for p in pictures}
    assert all(len(r) == len(g.header) for g in shown if isinstance(g, Grid) for r in g.rows)
    other = copy.deepcopy(studied)
    for by_batch in other["slope"][AFFINE.name].values():
        by_batch["reach/realised"][-1] = [98.7, 98.0, 99.0]
    assert "98.7%" in findings(other)[-1]
    assert "98.7" not in findings(studied)[-1]


def test_without_draws_there_is_no_noise_and_still_a_page(tmp_path: Path) -> None:
    found = study(jobs=1, draws=0)
    for cases in found["noise"][AFFINE.name].values():
        assert len(cases["model"]["exact/realised"]["median"]) == 1
    with drawing():
        assert list(parts(found, tmp_path, "SYNTHETIC behaviour"))
    assert findings(found)
