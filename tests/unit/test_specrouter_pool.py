"""Growing pools: what is offered, what is counted, and who is said to hold the criterion."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest

from simspec.compare.asked import Asked
from simspec.compare.specrouter import pool
from simspec.compare.specrouter.pool_arms import arms_of
from simspec.compare.specrouter.pool_figures import CRITERION, figures, verdicts
from simspec.compare.specrouter.serving_streams import Served, orders
from simspec.replay.candidates import tabulate
from simspec.report.parts import Grid, Picture
from simspec.report.specrouter.pool import findings, parts
from simspec.report.style import drawing
from simspec.speculation.chains import all_chains
from tests.oracles.test_lockstep import AFFINE
from tests.toy import LOOKUP, MIDDLE, MODELS, SMALL, TARGET, Setting, Toy

TEXTS, BEFORE = 8, 2


def study(jobs: int) -> dict:
    trace = Toy(Setting(seed=8, prompts=6, output_tokens=12, block_length=4)).trace()
    asked = Asked(batches=(1, 2), lengths=(1, 2), draws=20, jobs=jobs)
    routers = ("reach", "funnel-switch", "exact-switch", "ucb", "ucb-prior")
    return pool.study(trace, [AFFINE], asked, lambda _: None, streams=4, routers=routers)


@pytest.fixture(scope="module")
def studied() -> dict:
    return study(jobs=1)


def served(seconds: np.ndarray, used: np.ndarray) -> Served:
    """Streams of ten cycles and twenty tokens a text; (T, D)."""
    tens = np.full(seconds.shape, 10)
    return Served(seconds, 2 * tens, tens, used, 2 * used, used.max(axis=0))


def one_newcomer(useful: dict, *, with_it: float, static: float, used: int) -> dict:
    """Both halves with one stream each; the newcomer joins in the first arm, the other is without it."""
    # Deciders: half, arm, stream.
    before = np.ones((BEFORE, 4))
    static_small = np.concatenate([before, np.full((TEXTS, 4), 1.0)])
    static_grown = np.concatenate([before, np.tile([static, 1.0], (TEXTS, 2))])
    seconds = np.concatenate([before, np.tile([with_it, 1.0], (TEXTS, 2))])
    uses = np.concatenate([np.zeros((BEFORE, 4)), np.tile([used, 0], (TEXTS, 2))]).astype(int)
    none = np.zeros_like(uses)
    found = figures(
        {"": [served(static_small, none), served(static_grown, none)], "a": [served(seconds, uses)]},
        2,
        [("new", True), ("", False)],
        useful,
        BEFORE,
        Asked(draws=10),
    )
    return found | {"one": found["routers"]["a"]["new"]}


def test_a_model_of_no_use_must_be_left_alone_and_cost_nothing() -> None:
    idle = one_newcomer({"new": False}, with_it=1.0, static=1.0, used=0)
    assert idle["one"]["held"] is True
    assert idle["one"]["untried"] == 2
    slow = one_newcomer({"new": False}, with_it=1.03, static=1.0, used=0)
    assert slow["one"]["lost"][0] == pytest.approx(3.0)
    assert slow["one"]["late_lost"] == pytest.approx([3.0] * 3)
    assert slow["one"]["held"] is False
    busy = one_newcomer({"new": False}, with_it=1.0, static=1.0, used=1)
    assert busy["one"]["late_share"] == [0.1, 0.1, 0.1]
    assert busy["one"]["held"] is False
    # A recorded model may be used, if that costs nothing.
    assert one_newcomer({}, with_it=1.0, static=1.0, used=1)["one"]["held"] is True


def test_a_good_model_must_be_taken_up() -> None:
    found = one_newcomer({"new": None}, with_it=0.85, static=0.8, used=9)
    assert found["gain"]["new"][0] == pytest.approx(20.0)
    one = found["one"]
    assert one["kind"] == "good"
    assert one["taken_up"][0] == pytest.approx(0.75)
    assert one["held"] is False
    assert one["regret"] == pytest.approx([6.25] * TEXTS)
    assert one["share"] == [0.9] * TEXTS
    assert one_newcomer({"new": None}, with_it=0.83, static=0.8, used=9)["one"]["held"] is True
    assert one_newcomer({}, with_it=0.99, static=0.99, used=9)["one"]["held"] is None


def test_verdicts_count_by_kind_and_name_failures() -> None:
    good = one_newcomer({}, with_it=0.9, static=0.8, used=9)
    idle = one_newcomer({"new": False}, with_it=1.0, static=1.0, used=0)
    found = verdicts({"c": {"batches": {"1": good, "4": idle}}})["a"]
    assert found["good"] == {"held": 0, "of": 1, "failed": [["c", "1", "new"]]}
    assert found["useless"] == {"held": 1, "of": 1, "failed": []}
    assert found["holds"] is False


def test_what_is_offered() -> None:
    trace = Toy(Setting(seed=1, prompts=2, output_tokens=12, block_length=4)).trace()
    table = tabulate(trace, [(c, 1 if c.drafter else 0) for c in all_chains(list(MODELS), TARGET, {LOOKUP})])
    arms = arms_of(table, [LOOKUP, SMALL], [MIDDLE])
    chains = [set(c.levels) for c, _ in table.pool.candidates]
    assert [a.newcomer for a in arms] == [LOOKUP, LOOKUP, SMALL, SMALL, MIDDLE, ""]
    for i, a in enumerate(arms):
        for models, before, after in zip(chains, a.before, a.after, strict=True):
            assert before == (MIDDLE not in models and a.newcomer not in models)
            joins = i in (0, 2, 4)
            assert after == (before if not joins else MIDDLE not in models or a.newcomer == MIDDLE)


def test_orders_are_of_the_half_and_each_prompt_comes_before_any_twice() -> None:
    trace = Toy(Setting(seed=1, prompts=6, output_tokens=12, block_length=4)).trace()
    found = orders(trace, np.array([1, 3, 5]), 0, 5, 4, 2)
    assert found.shape == (4, 5, 2)
    for s in range(5):
        assert sorted(found[:, s].ravel()[:3]) == sorted(trace.offsets[[1, 3, 5]])
    assert len({tuple(found[:, s].ravel()) for s in range(5)}) > 1


def test_a_model_that_never_runs_is_never_learned_of(studied: dict) -> None:
    here = studied["costs"][AFFINE.name]["batches"]["1"]["routers"]
    for router in ("reach", "exact-switch"):
        assert here[f"{router}, prior pessimistic"]["shifted"]["untried"] == studied["streams"]
    assert here["ucb"]["shifted"]["untried"] == 0
    # Nothing of it is ever accepted, so verdicts soon say so; its distribution goes on saying the opposite.
    assert here["exact-switch, prior 0.5"]["flattering"]["late_share"][0] < 0.05
    assert CRITERION["settled"] < studied["after"]


def test_the_same_comes_from_two_processes(studied: dict) -> None:
    assert study(jobs=2) == studied
    assert json.loads(json.dumps(studied, allow_nan=False)) == studied


def test_the_page_says_what_the_document_says(studied: dict, tmp_path: Path) -> None:
    with drawing():
        shown = list(parts(studied, tmp_path, "SYNTHETIC behaviour"))
    pictures = [p for p in shown if isinstance(p, Picture)]
    assert {p.name for p in tmp_path.iterdir()} == {p.file for p in pictures}
    assert all(len(r) == len(g.header) for g in shown if isinstance(g, Grid) for r in g.rows)
    said = findings(studied)
    assert any("never" in s for s in said)
    other = copy.deepcopy(studied)
    for verdict in other["verdicts"].values():
        verdict["holds"] = False
    other["verdicts"]["ucb"]["holds"] = True
    assert "Both hold everywhere for ucb" in findings(other)[0]
