"""The study of batches as a whole: what it gives, what its figures say, and the page it makes."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simspec.compare.asked import Asked
from simspec.compare.libraspec.batch_arms import Rows, rows_of
from simspec.compare.libraspec.batches import study
from simspec.replay.planned import PlannedCycle
from simspec.report.libraspec.batches import findings, parts
from simspec.report.parts import Grid, Picture
from simspec.report.style import drawing
from tests.oracles.test_lockstep import AFFINE, measured
from tests.toy import LOOKUP, Setting, Toy


def studied_with(jobs: int) -> dict[str, Any]:
    trace = Toy(Setting(seed=8, prompts=5, output_tokens=16, block_length=4, small_rate=0.8)).trace()
    asked = Asked(batches=(1, 4), draws=3, jobs=jobs)
    return study(trace, [measured(trace)[0], AFFINE], asked, lambda _: None)


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return studied_with(1)


def test_it_is_plain_and_the_same_from_two_processes(found: dict[str, Any]) -> None:
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert studied_with(2) == found


def test_each_cost_says_how_it_takes_unequal_rows(found: dict[str, Any]) -> None:
    assert [cost["prices"] for cost in found["costs"].values()] == ["padded", "packed"]
    for cost in found["costs"].values():
        assert {one["batch"] for one in cost["joint"]} == {4}
        assert {one["batch"] for one in cost["stopping"]} == {1, 4}


def test_ours_is_its_own_reference_and_differences_are_those_of_the_arms(found: dict[str, Any]) -> None:
    ours, one_length, by_row = (found["names"][k] for k in ("ours", "one_length", "by_row"))
    for cost in found["costs"].values():
        for one in cost["joint"]:
            for layout, of in one["layouts"].items():
                arms = {name: arm["seconds_per_token"] for name, arm in of["arms"].items()}
                reference = arms[f"{ours}, {found['fits'][layout]}"]
                for name, seconds in arms.items():
                    over = of["arms"][name]["over_ours"]
                    assert over == pytest.approx(100 * (seconds / reference - 1), abs=1e-9)
                want = 100 * (arms[f"{ours}, {one_length}"] / arms[f"{ours}, {by_row}"] - 1)
                assert of["one_length"] == pytest.approx(want, abs=1e-9)
            packed, padded = (
                one["layouts"][layout]["arms"][f"{ours}, {found['fits'][layout]}"]["seconds_per_token"]
                for layout in ("packed", "padded")
            )
            assert one["packing"] == pytest.approx(100 * (padded / packed - 1), abs=1e-9)


def test_a_free_look_up_is_the_control(found: dict[str, Any]) -> None:
    """The affine profile's look-up costs nothing, and blocks of all four tokens leave none out."""
    controls = [one for one in found["costs"][AFFINE.name]["stopping"] if one["drafter"] == LOOKUP]
    assert controls
    for one in controls:
        blocks = one["rules"][found["names"]["exact"]]["blocks"]
        assert set(blocks) == {"2", "4"}
        assert blocks["4"]["over_stop"] == 0.0
        assert blocks["4"]["over_stop_interval"] == [0.0, 0.0]


def test_rows_count_those_cut_short_and_the_places_nobody_filled() -> None:
    def cycle(flat: list[int], drafted: list[int], submitted: list[int]) -> PlannedCycle:
        f, d, s = (np.array([v]) for v in (flat, drafted, submitted))
        return PlannedCycle(np.array([0]), f, d, s, s, s, np.array([1.0]))

    # Cut short; equal but for what could not be drafted; a row alone, which does not count.
    log = [cycle([5, 9], [3, 3], [3, 1]), cycle([6, 9], [3, 0], [3, 0]), cycle([7, -1], [3, 0], [1, 0])]
    assert rows_of(log) == Rows(0.5, 1 - (4 + 2 + 4 + 1) / 16)
    assert rows_of(log[2:]) == Rows(None, None)


def test_the_page_says_what_the_document_says(found: dict[str, Any], tmp_path: Path) -> None:
    said = findings(found)
    assert any("toy: padded" in line and "affine: packed" in line for line in said)
    assert all("nan" not in line and "None" not in line for line in said)
    with drawing():
        shown = list(parts(found, tmp_path, "SYNTHETIC"))
    pictures = [p for p in shown if isinstance(p, Picture)]
    assert {p.file for p in pictures} == {f.name for f in tmp_path.iterdir()}
    assert all(p.file.startswith("batches-") and "SYNTHETIC" in p.caption for p in pictures)
    for grid in (p for p in shown if isinstance(p, Grid)):
        assert grid.rows
        assert all(len(row) == len(grid.header) for row in grid.rows)


def test_findings_follow_the_numbers(found: dict[str, Any]) -> None:
    turned = copy.deepcopy(found)
    for cost in turned["costs"].values():
        for one in cost["joint"]:
            one["layouts"]["packed"] |= {"one_length": 77.7, "one_length_interval": [70.0, 80.0]}
    many = sum(len(cost["joint"]) for cost in turned["costs"].values())
    line = next(line for line in findings(turned) if line.startswith("Rows packed"))
    assert "77.7% (95% 70.0 to 80.0)" in line
    assert f"in {many} and clearly less in 0 of {many}" in line


def test_a_target_whose_wider_forward_looks_quicker_still_has_a_figure(
    found: dict[str, Any], tmp_path: Path
) -> None:
    # As a table of two repetitions on a busy machine had it.
    noisy = copy.deepcopy(found)
    for cost in noisy["costs"].values():
        cost["joint"][0]["slope"] = -2.0
    with drawing():
        drawn = list(parts(noisy, tmp_path, "said"))
    assert (tmp_path / "batches-joint.png").stat().st_size > 0
    assert drawn
