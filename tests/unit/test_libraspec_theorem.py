"""Algorithm 1 against its theorems: counts over rounds, and the study on a synthetic trace."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simspec.compare.asked import Asked
from simspec.compare.libraspec import theorem
from simspec.compare.libraspec.rounds import Rounds, affine, passes, statements
from simspec.compare.libraspec.shares import apart, mean_over
from simspec.report.libraspec.theorem import findings, parts
from simspec.report.libraspec.theorem_figures import STATEMENTS
from simspec.report.parts import Grid, Picture
from simspec.report.style import drawing
from tests.oracles.test_lockstep import AFFINE
from tests.toy import LOOKUP, Setting, Toy


def study(jobs: int = 1) -> dict:
    trace = Toy(Setting(seed=8, prompts=6, output_tokens=12, block_length=5)).trace()
    return theorem.study(trace, [AFFINE], Asked(draws=20, jobs=jobs), lambda _: None)


@pytest.fixture(scope="module")
def found() -> dict:
    return study()


# Counting.


def test_a_mean_pools_rounds_and_draws_weigh_prompts():
    values, prompt = np.array([1.0, 0.0, 0.0, 1.0]), np.array([0, 0, 0, 1])
    counts = np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 2.0]])
    mean = mean_over(values, prompt, counts)
    assert mean.value == 0.5
    assert (mean.low, mean.high) == pytest.approx((1 / 3 + 0.025 * 2 / 3, 1 / 3 + 0.975 * 2 / 3))
    assert mean_over(values[:0], prompt[:0], counts).value is None


def test_what_lies_between_two_rules():
    told = apart(np.array([3, 3, 5]), np.array([3, 1, 9]), np.array([0, 0, 1]), np.ones((2, 2)))
    assert told["differ"] == pytest.approx(2 / 3)
    assert told["mean"] == pytest.approx(2 / 3)
    assert told["mean_abs"] == pytest.approx(2.0)
    assert told["quantiles"][2] == 0.0


# Statements on rounds made for them.


def one(p: list[float], seconds: list[float], **more: int) -> dict:
    rounds = Rounds(np.array([p]), np.array([seconds]), np.array([len(p)]))
    _, slope = affine(rounds)
    given = {"alpha": 2.2, "block": 2, "longest": len(p)} | more
    verdicts = statements(rounds, slope, **given)
    return {name: bool(v.fails[0]) for name, v in verdicts.items() if v.applies[0]}


def test_a_staircase_has_two_peaks_and_stops_a_climber():
    """eta from 0 on: .2 .35 .30 .38 .45; the second draft is dear, those behind it all but free."""
    p, seconds = [0.9] * 4, [5.0, 5.5, 9.0, 9.01, 9.02]
    from_below, from_above = one(p, seconds, block=1), one(p, seconds, block=4)
    for fails in (from_below, from_above):
        assert fails["3.5-one-peak"]
        assert fails["first-stop"]
    assert from_below["3.6-steps"]
    assert not from_above["3.6-steps"]


def test_an_affine_cost_leaves_one_peak_and_every_step_right():
    rng = np.random.default_rng(3)
    for _ in range(50):
        p, slope = rng.uniform(0.1, 1.0, 6), rng.uniform(0.1, 2.0)
        fails = one(p.tolist(), (3.0 + slope * np.arange(7)).tolist())
        assert not any(fails[name] for name in ("3.5-one-peak", "3.5-marginal", "3.6-steps", "first-stop"))


def test_the_claims_ledgers_case_of_a_lengthening_that_loses():
    """claims.md L4: p = .95 .8 .8 .8 .75 .65 .45 .35 .25 .2 .2 .15, T0 = 12, c = 1: from 2 to 12."""
    p = [0.95, 0.8, 0.8, 0.8, 0.75, 0.65, 0.45, 0.35, 0.25, 0.2, 0.2, 0.15]
    seconds = (12.0 + np.arange(13)).tolist()
    rounds = Rounds(np.array([p]), np.array([seconds]), np.array([12]))
    assert rounds.own_limits[0, 1] == 12
    assert rounds.rates[0, 12] < rounds.rates[0, 2]
    assert one(p, seconds)["3.4-extend"]


def test_passes_follow_the_table_to_the_first_that_does_not_lengthen():
    limits = np.array([[3, 9, 4, 2], [1, 9, 9, 9]])
    path = passes(limits, np.array([1, 1]), np.array([4, 4]))
    assert path.tolist() == [[1, 3, 4], [1, 1, 1]]


# The study.


def test_it_is_plain_data_of_every_drafter_but_look_ups(found):
    json.dumps(found, allow_nan=False)
    cost = found["costs"]["affine"]
    assert LOOKUP not in cost["drafters"]
    assert len(cost["drafters"]) == 2
    for each in cost["drafters"].values():
        assert set(each["statements"]) == set(STATEMENTS)
        for statement in each["statements"].values():
            for cell in (c for of in statement.values() for c in of.values()):
                assert 0 <= cell["fails"] <= cell["rounds"] <= each["starts"]


def test_what_it_says_is_true_of_any_record(found):
    for each in found["costs"]["affine"]["drafters"].values():
        starts = each["apart"]["starts"]
        for a, of in starts.items():
            for b, cell in of.items():
                assert cell["differ"] == starts[b][a]["differ"]
                assert cell["mean"] == pytest.approx(-starts[b][a]["mean"])
        for of in each["loss"].values():
            assert of["argmax-p"]["mean"] == pytest.approx(0.0, abs=1e-9)
            assert all(rule["mean"] >= -1e-9 for rule in of.values())
        peak = each["statements"]["3.5-one-peak"]
        assert peak["q"]["affine"]["fails"] == peak["p"]["affine"]["fails"] == 0
        assert each["replay"]["alone"]["marginal"]["over"] == 0.0


def test_processes_change_nothing(found):
    assert study(jobs=2) == found


def test_p_hat_comes_from_the_other_half():
    """What one half's drafts came to moves the other half's p-hat alone."""
    trace = Toy(Setting(seed=8, prompts=6, output_tokens=12, block_length=5)).trace()
    drafter = next(d for d in trace.drafters if not trace.is_lookup(d))
    index = trace.drafters[drafter]
    even = trace.prompt % 2 == 0
    worse = replace(index, matched=np.where(even, 0, index.matched))
    before, after = (
        theorem.recalibrated(t, drafter).drafters[drafter].confidence
        for t in (trace, replace(trace, drafters={**trace.drafters, drafter: worse}))
    )
    np.testing.assert_array_equal(before[even], after[even])
    assert (before[~even] != after[~even]).any()


def test_it_is_shown(found, tmp_path: Path):
    said = findings(found)
    assert len(said) == 5
    assert "beyond d_max" in said[0]
    with drawing():
        shown = list(parts(found, tmp_path, "SYNTHETIC"))
    pictures = [p for p in shown if isinstance(p, Picture)]
    assert [p.file for p in pictures] == ["theorem-apart-0.png", "theorem-cost.png", "theorem-statements.png"]
    assert all((tmp_path / p.file).stat().st_size > 1000 for p in pictures)
    assert all("SYNTHETIC" in p.caption for p in shown)
    for grid in (g for g in shown if isinstance(g, Grid)):
        assert all(len(row) == len(grid.header) for row in grid.rows)


def test_findings_follow_the_document(found):
    changed = json.loads(json.dumps(found))
    for each in changed["costs"]["affine"]["drafters"].values():
        each["apart"]["starts"][f"printed-{found['block']}"][f"theorem-{found['block']}"]["differ"] = 0.4321
    assert "43%" in findings(changed)[0]
