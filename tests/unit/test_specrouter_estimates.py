"""Estimates held against the other half, averages before each request, and changes in mid-stream."""

from __future__ import annotations

import copy
import dataclasses
import json

import numpy as np
import pytest

from simspec.compare.asked import Asked
from simspec.compare.costs import open_cost
from simspec.compare.estimates.changes import expected_error, followed, stretch_error
from simspec.compare.estimates.errors import Cell, cells
from simspec.compare.estimates.maps import Constant
from simspec.compare.estimates.moving import before_each, held_against, orders
from simspec.compare.estimates.realised import tries
from simspec.compare.estimates.tracking import spliced
from simspec.compare.parts import halves
from simspec.compare.specrouter.estimates import study
from simspec.report.parts import Grid, Picture
from simspec.report.specrouter import estimates
from simspec.report.style import drawing
from simspec.streams import stream
from simspec.traces.index import Trace
from tests.toy import SMALL, TARGET, Setting, Toy

ASKED = Asked(batches=(1,), lengths=(1, 2, 3), draws=6)


@pytest.fixture(scope="module")
def trace() -> Trace:
    made = Toy(Setting(seed=7, prompts=8, output_tokens=16, block_length=5)).trace()
    return dataclasses.replace(made, prompts=made.prompts.assign(category=["a", "b"] * 4))


@pytest.fixture(scope="module")
def found(trace: Trace) -> dict:
    return study(trace, [open_cost(trace, "float32")], ASKED, lambda _: None)


def test_a_cells_gaps_by_hand() -> None:
    """Two pairs on two prompts; drawn once each, and prompt 1 twice."""
    cell = Cell("task", "a", np.array([[1.0, 3], [0, 2]]), np.array([[2.0, 4], [1, 2]]))
    counts = np.array([[1.0, 1], [0, 2]])
    found = cell.gaps(np.full((2, 2), 0.5), counts)
    # Pair 0: 4 of 6, then 6 of 8; pair 1: 2 of 3, then 4 of 4.
    np.testing.assert_allclose(found[0], [(3 - 4) + (1.5 - 2), (4 - 6) + (2 - 4)])
    np.testing.assert_allclose(found[1], [1 + 0.5, 2 + 2])
    np.testing.assert_allclose(found[2:], [[6, 10], [9, 12]])
    opposite = cell.gaps(np.array([[0.5, 1.0]] * 2), counts)
    np.testing.assert_allclose(opposite[:2, 0], [-1 + 1, 1 + 1])


def test_cells_of_one_kind_part_the_drafts(trace: Trace) -> None:
    every = list(cells(trace, 3))
    whole = {p: (t.accepted.sum(), t.tried.sum()) for p, t in tries(trace, 3).items()}
    for by in ("task", "position", "time"):
        good, tried = (sum(getattr(c, n).sum(axis=1) for c in every if c.by == by) for n in ("good", "tried"))
        assert list(zip(good, tried, strict=True)) == list(whole.values())


def test_an_average_before_each_request_by_hand() -> None:
    """Weight 1/2 from 0: 0, then after .8: .4, after nothing: .4, after .2: .3."""
    values = np.array([[0.2, np.nan, 0.8, 0.6]])
    found = before_each(values, np.array([[2, 1, 0, 3]]), np.array([0.0]), 0.5)
    assert found[0, :, 0] == pytest.approx([0.0, 0.4, 0.4, 0.3])
    still = before_each(values, np.array([[2, 1, 0, 3]]), np.array([0.25]), 0.0)
    assert (still == 0.25).all()


def test_requests_are_held_against_what_was_said_before_them() -> None:
    """Prompt 0 had 1 of 2 accepted, prompt 1 all of 2; .5 was said of both, .75 through the map."""
    order = np.array([[1, 0]])
    good, tried = np.array([[1.0, 2.0]]), np.array([[2.0, 2.0]])
    mine = held_against(np.full((1, 2, 1), 0.5), order, good, tried)
    assert mine.prompt.tolist() == [1, 0]
    counts = np.array([[1.0, 1], [0, 1]])
    np.testing.assert_allclose(mine.errors(counts), [[-0.25, -0.5], [0.125**0.5, 0.5]])
    mapped = held_against(np.full((1, 2, 1), 0.5), order, good, tried, Constant(0.75))
    np.testing.assert_allclose(mapped.errors(counts)[0], [0.0, -0.25])
    both = mine.plus(held_against(np.full((1, 2, 1), 0.9), order, good, tried))
    low, high = both.bins(counts, 2)
    assert (low[0], low[1]) == (2, 0.5)
    assert (high[0], high[1]) == (2, pytest.approx(0.9))
    assert low[2].tolist() == [0.75, 1.0]


def test_orders_keep_tasks_together_or_mix_them(trace: Trace) -> None:
    prompts = np.array([0, 1, 2, 3, 6, 7])
    task = trace.prompts["category"].to_numpy()
    for order, turns in (("task after task", {1}), ("mixed", {1, 2, 3, 4, 5})):
        rows = orders(trace, prompts, order, 30, 0)
        assert (np.sort(rows, axis=1) == prompts).all()
        assert {int((task[r][1:] != task[r][:-1]).sum()) for r in rows} == turns
    first = orders(trace, prompts, "task after task", 30, 0)[:, 0]
    assert {task[p] for p in first} == {"a", "b"}


def test_changes_up_and_down_are_one_curve() -> None:
    """Clean steps of +.6 and -.2: the same share of the way; root mean squares of what is left."""
    steps, weight = 40, 0.1
    up = (np.full((1, 5), 0.2), np.full((1, steps), 0.8))
    down = (np.full((1, 5), 0.5), np.full((1, steps + 3), 0.3))
    told, tracked = followed([up, down], weight)
    left = (1 - weight) ** np.arange(1, steps + 1)
    np.testing.assert_allclose(told["come"], 1 - left)
    assert (told["steps_to_half"], told["steps_to_90"]) == (7, 22)
    assert (told["expected_half"], told["expected_90"]) == (7, 22)
    for n in (1, 8):
        wanted = ((0.36 + 0.04) / 2 * np.mean(left[:n] ** 2)) ** 0.5
        assert stretch_error(tracked, n) == pytest.approx(wanted)
        assert expected_error(weight, 0.2**0.5, 0.0, n) == pytest.approx(wanted)
    never, _ = followed([(up[0], up[1][:, :3])], 0.02)
    assert never["steps_to_half"] is None


@pytest.mark.parametrize("weight", [0.05, 0.5])
def test_the_expected_error_is_that_of_independent_noise(weight: float) -> None:
    generator = stream(1, "noise")
    before, after = (generator.normal(mean, 0.3, (2000, 120)) for mean in (0.2, 0.5))
    _, tracked = followed([(before, after)], weight)
    for n in (1, 10, 100):
        wanted = expected_error(weight, 0.3, 0.3, n)
        assert stretch_error(tracked, n) == pytest.approx(wanted, rel=0.03)


def test_splices_take_only_the_prompts_that_there_are(trace: Trace) -> None:
    values = trace.prompt.astype(float)
    before, after = spliced(
        trace, values, ("a", "b"), "request", 9, 0, among=np.array([0, 4, 4, 4, 1, 1, 3, 5])
    )
    assert set(before.ravel()) == {0.0, 4.0}
    assert set(after.ravel()) == {1.0, 3.0, 5.0}
    # Half of four prompts each.
    assert before.shape == after.shape == (9, 2)


def test_each_half_is_estimated_from_the_other(trace: Trace, found: dict) -> None:
    """Counted once more: realised acceptance of one half is the estimate for the other."""
    index, longest = trace.drafters[SMALL], max(ASKED.lengths)
    offered = np.minimum(index.length, np.minimum(longest, trace.remaining))
    kept = np.minimum(index.matched, offered)
    tried = kept + ((kept < offered) | (index.length == 0))
    by_half = [
        float(kept[m].sum() / tried[m].sum()) for m in (np.isin(trace.prompt, h) for h in halves(trace))
    ]
    mine = [
        p
        for p in found["by_pair"]
        if (p["source"], p["drafter"], p["verifier"]) == ("realised", SMALL, TARGET)
    ]
    assert [p["half"] for p in mine] == [1, 2]
    # Half 1 is fitted on and half 2 scored in the first entry.
    assert [p["estimated"] for p in mine] == pytest.approx(by_half)
    assert [p["realised"] for p in mine] == pytest.approx(by_half[::-1])


def test_the_document_is_plain_and_does_not_hang_on_processes(trace: Trace, found: dict) -> None:
    again = study(trace, [open_cost(trace, "float32")], dataclasses.replace(ASKED, jobs=2), lambda _: None)
    assert json.dumps(again, allow_nan=False) == json.dumps(found, allow_nan=False)
    assert found["load_changes"]["float32"]["loads"] == [1, 4]
    fixed = found["moving"]["mixed"]["realised"]["0"]
    assert fixed["gain"] == 0.0
    # What never moves does not hang on the order.
    assert fixed["rms"] == pytest.approx(found["moving"]["task after task"]["realised"]["0"]["rms"])
    whole = {e["source"]: e for e in found["errors"] if e["by"] == "all"}
    for source, cell in whole.items():
        tasks = [e for e in found["errors"] if (e["by"], e["source"]) == ("task", source)]
        assert cell["tried"] == sum(t["tried"] for t in tasks)
        assert cell["bias"] == pytest.approx(sum(t["bias"] * t["tried"] for t in tasks) / cell["tried"])
    # Requests in any order, held against rates that never move, are the half as a whole.
    for source in found["bins"]:
        assert found["moving"]["mixed"][source]["0"]["bias"] == pytest.approx(whole[source]["bias"])


def test_one_task_without_repetitions_is_shown_too(trace: Trace, tmp_path) -> None:
    alone = dataclasses.replace(trace, prompts=trace.prompts.assign(category="a"))
    found = study(alone, [], dataclasses.replace(ASKED, draws=0), lambda _: None)
    assert found["task_changes"]["measures"] == found["load_changes"] == {}
    with drawing():
        shown = list(estimates.parts(found, tmp_path, "SYNTHETIC behaviour"))
    assert [p.file for p in shown if isinstance(p, Picture)] == [
        "estimates-calibration.png",
        "estimates-errors.png",
    ]
    assert len(estimates.findings(found)) == 3


def test_it_is_shown_from_its_document(found: dict, tmp_path) -> None:
    with drawing():
        shown = list(estimates.parts(found, tmp_path, "SYNTHETIC behaviour"))
    assert {p.file for p in shown if isinstance(p, Picture)} == {f.name for f in tmp_path.iterdir()}
    assert all("SYNTHETIC behaviour" in p.caption for p in shown)
    for grid in (p for p in shown if isinstance(p, Grid)):
        assert grid.rows
        assert {len(row) for row in grid.rows} == {len(grid.header)}
    said = estimates.findings(found)
    assert len(said) == 6
    changed = copy.deepcopy(found)
    next(e for e in changed["errors"] if (e["by"], e["source"]) == ("all", "simscore"))["absolute"] = 0.777
    changed["task_changes"]["measures"]["simscore"]["text"]["weights"]["0.02"]["steps_to_half"] = 77
    changed["load_changes"]["float32"]["measures"]["seconds"]["forward"]["noise"] = 0.123
    again = estimates.findings(changed)
    assert "0.777" in again[0]
    assert "77 and" in again[3]
    assert "12.3%" in again[5]
    assert [a == b for a, b in zip(said, again, strict=True)] == [False, True, True, False, True, False]
