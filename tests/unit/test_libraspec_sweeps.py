"""Constants swept: what is tuned is tuned on the other half, mixed as told, and priced alike."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from simspec.compare.asked import Asked
from simspec.compare.batches import batch_requests, draw_prompts, request_starts
from simspec.compare.libraspec import sweeps, theorem
from simspec.compare.libraspec.alphas import readings
from simspec.compare.libraspec.tuning import Priced, best_on, held_out, learning_parts, mixed
from simspec.replay.lockstep import price
from simspec.replay.trajectories import run
from simspec.report.libraspec import theorem as theorem_shown
from simspec.report.libraspec.sweeps import findings, parts
from simspec.report.parts import Grid, Picture
from simspec.report.style import drawing
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Static
from tests.oracles.test_lockstep import AFFINE
from tests.toy import MIDDLE, Setting, Toy

TRACE = Toy(Setting(seed=8, prompts=6, output_tokens=12, block_length=5)).trace()
CHAIN = Chain((MIDDLE, TRACE.target))
RUNS = [run(TRACE, CHAIN, Static(n), request_starts(TRACE)) for n in (0, 1, 4)]


def study(jobs: int = 1) -> dict:
    return sweeps.study(TRACE, [AFFINE], Asked(batches=(1, 4), draws=10, jobs=jobs), lambda _: None)


@pytest.fixture(scope="module")
def found() -> dict:
    return study()


def priced(batch: int) -> Priced:
    return Priced(TRACE, MIDDLE, AFFINE, batch, 0)


def test_mixed_takes_each_request_from_the_run_it_is_told():
    requests = len(RUNS[0].start)
    choice = np.arange(requests) % 3
    whole = mixed(RUNS, choice)
    for r in range(requests):
        one = RUNS[choice[r]]
        active = one.active[r]
        for name in ("flat", "submitted", "emitted", "width", "lag"):
            got = getattr(whole, name)[r]
            np.testing.assert_array_equal(got[: len(active)][active], getattr(one, name)[r][active])
            assert (whole.flat[r][active.sum() :] == -1).all()


def test_no_prompt_is_scored_with_what_it_was_tuned_on():
    parts_of = learning_parts(TRACE)
    for (half, task), prompts in parts_of.items():
        assert (prompts % 2 != half).all()
        if task is not None:
            assert set(TRACE.prompts["category"].to_numpy()[prompts]) == {task}
    best = {(0, None): 1, (1, None): 2} | {(h, t): 0 for h, t in parts_of if t is not None}
    overall = held_out(TRACE, RUNS, best, by_task=False)
    size = len(TRACE.prompts)
    lengths = [overall.submitted[r].max() for r in range(2 * size)]
    assert all(n <= 1 for n in lengths[::2])
    assert max(lengths[1::2]) > 1
    assert held_out(TRACE, RUNS, best, by_task=True).submitted.max() == 0


def test_the_best_is_the_least_time_on_its_part():
    at = priced(1)
    parts_of = learning_parts(TRACE)
    best = best_on(at, RUNS, parts_of)
    for part, prompts in parts_of.items():
        alone = [price(r, prompts[:, None], [AFFINE], lookup=False)[0] for r in RUNS]
        rates = [t.seconds.sum() / t.tokens.sum() for t in alone]
        assert best[part] == int(np.argmin(rates))


@pytest.mark.parametrize("batch", [1, 2, 4])
def test_halves_run_in_batches_of_their_own(batch):
    """A change of one half's cycles changes the whole time by that half's own share."""
    even, odd = (np.arange(len(TRACE.prompts))[k::2] for k in (0, 1))
    at = priced(batch)
    one, other = RUNS[1], RUNS[2]
    size = len(TRACE.prompts)
    both = mixed([one, other], np.arange(2 * size) % 2)
    tokens = np.diff(TRACE.offsets)

    def filled(half: np.ndarray) -> float:
        """Tokens of its batches, those that fill the last one up included."""
        drawn = draw_prompts(TRACE, 0, int(half[0] % 2), half)
        requests, _ = batch_requests(drawn, batch)
        return float(RUNS[0].emitted.sum(axis=1)[requests].sum())

    a, b = filled(even), filled(odd)
    mine = [Priced(TRACE, MIDDLE, AFFINE, batch, k) for k in (0, 1)]
    wanted = (mine[0].seconds_per_token(one, even) * a + mine[1].seconds_per_token(other, odd) * b) / (a + b)
    assert at.by_halves(both, 3)[0] == pytest.approx(wanted, rel=1e-12)
    if batch == 1:
        assert a + b == tokens.sum()


def test_readings_are_their_formulas():
    """By hand, under a cost that is affine in tokens and in context."""
    at, runs = priced(1), RUNS[2]
    prompts = len(TRACE.prompts)
    active = runs.active[:prompts]
    d, tau = runs.submitted[:prompts][active].mean(), runs.emitted[:prompts][active].mean()
    context = TRACE.context[np.unique(runs.flat[:prompts][active])].mean()
    base, token, held = AFFINE.base_seconds, AFFINE.token_seconds, AFFINE.context_token_seconds
    ratio = AFFINE.ratios[MIDDLE]
    fixed = base + token + held * context + AFFINE.step_overhead_seconds
    drafting = ratio * (base + token + held * context)
    got = readings(at, runs)
    assert got["average"] == pytest.approx(d / tau)
    assert got["verifying"] == pytest.approx((fixed + token * d) / (tau * token))
    assert got["folded"] == pytest.approx((fixed + (token + drafting) * d) / (tau * (token + drafting)))


def test_it_is_plain_data_and_processes_change_nothing(found):
    json.dumps(found, allow_nan=False)
    assert study(jobs=2) == found


def test_what_it_says_is_true_of_any_record(found):
    for batches in found["costs"]["affine"]["drafters"].values():
        for cell in batches.values():
            assert cell["policies"]["static"]["over_static"] == 0.0
            for n, curve in cell["curves"].items():
                k = found["alphas"].index(curve["best"])
                assert curve["speedup"][k] == max(curve["speedup"])
                assert curve["like"][0] <= curve["best"] <= curve["like"][1]
                assert cell["policies"][f"alpha-2.2/{n}"]["over_paper"] == 0.0
                alike = curve["speedup"][found["alphas"].index(2.2)]
                assert cell["policies"][f"alpha-2.2/{n}"]["speedup"] == alike


def test_where_n_is_beyond_d_max_the_loop_never_runs(found):
    """At d_max 4 or below n tokens are submitted, so alpha cannot matter."""
    for batches in found["costs"]["affine"]["drafters"].values():
        one, other = (batches["1"]["grid"][a] for a in ("2.0", "2.2"))
        assert one["longest"] == [4]
        for n, a, b in zip(one["blocks"], one["speedup"], other["speedup"], strict=True):
            assert a == b or n < 4


def test_it_is_shown(found, tmp_path: Path):
    said = findings(found)
    assert len(said) == 2 * len(found["blocks"]) + 1
    with drawing():
        shown = list(parts(found, tmp_path, "SYNTHETIC"))
    pictures = [p for p in shown if isinstance(p, Picture)]
    assert len(pictures) == 5
    assert all((tmp_path / p.file).stat().st_size > 1000 for p in pictures)
    assert all("SYNTHETIC" in p.caption for p in shown)
    published = [p for p in pictures if "published" in p.caption]
    assert published
    assert all("OTHER models" in p.caption for p in published)
    for grid in (g for g in shown if isinstance(g, Grid)):
        assert all(len(row) == len(grid.header) for row in grid.rows)


def test_a_record_of_one_prompt_with_short_blocks_is_studied_too(tmp_path: Path):
    trace = Toy(Setting(seed=8, prompts=1, output_tokens=6, block_length=1)).trace()
    asked = Asked(batches=(2,), draws=0)
    for module, shown in (
        (sweeps, (findings, parts)),
        (theorem, (theorem_shown.findings, theorem_shown.parts)),
    ):
        document = module.study(trace, [AFFINE], asked, lambda _: None)
        json.dumps(document, allow_nan=False)
        assert shown[0](document)
        with drawing():
            assert list(shown[1](document, tmp_path, "SYNTHETIC"))
