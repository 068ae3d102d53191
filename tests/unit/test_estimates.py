"""Acceptance estimated: maps against brute force, averages against closed forms, sources on worked cases."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from simspec.compare.batches import draw_prompts
from simspec.compare.estimates import realised as blocks
from simspec.compare.estimates.errors import errors
from simspec.compare.estimates.maps import (
    fit_constant,
    fit_isotonic,
    fit_logistic,
    pool_adjacent,
)
from simspec.compare.estimates.similarity import agreement, similarity
from simspec.compare.estimates.sources import SOURCES, alphas, fit
from simspec.compare.estimates.tracking import (
    ema,
    loaded,
    observed,
    repetitions,
    spliced,
    steps_to,
    track,
)
from simspec.traces.index import Trace
from tests.profiles import examples
from tests.toy import MIDDLE, SMALL, TARGET, Setting, Toy


@pytest.fixture(scope="module")
def trace() -> Trace:
    return Toy(Setting(seed=7, prompts=4, output_tokens=16, block_length=5)).trace()


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4)), min_size=1, max_size=6),
)
@examples(2)
def test_pool_adjacent_beats_every_monotone_sequence(points: list[tuple[int, int]]) -> None:
    """The optimum takes means of runs as its values: all ways to cut the points into runs are tried."""
    values, weights = (np.array(c, dtype=float) for c in zip(*points, strict=True))
    found = pool_adjacent(values, weights)
    assert (np.diff(found) >= 0).all()

    def loss(fitted: np.ndarray) -> float:
        return float((weights * (values - fitted) ** 2).sum())

    best = np.inf
    for cuts in product((False, True), repeat=len(values) - 1):
        run = np.concatenate([[0], np.cumsum(np.array(cuts, dtype=int))])
        means = np.bincount(run, weights * values) / np.bincount(run, weights)
        if (np.diff(means) >= 0).all():
            best = min(best, loss(means[run]))
    assert loss(found) == pytest.approx(best, abs=1e-9)


def test_isotonic_by_hand() -> None:
    """Rates 1/4, 3/4, 1/2 at .1, .5, .9, as many tries: the last two are pooled to 5/8; .9 comes twice."""
    f = fit_isotonic(np.array([0.9, 0.1, 0.5, 0.9]), np.array([2.0, 2, 6, 2]), np.array([4.0, 8, 8, 4]))
    np.testing.assert_allclose(
        f.of([0.1, 0.3, 0.5, 0.9, 0.0, 1.0]), [1 / 4, 7 / 16, 5 / 8, 5 / 8, 1 / 4, 5 / 8]
    )


def test_logistic_finds_the_sigmoid_that_made_the_counts() -> None:
    score = np.linspace(0, 1, 30)
    tried = np.full(30, 1e6)
    f = fit_logistic(score, tried * expit(-2 + 5 * score), tried)
    assert (f.intercept, f.slope) == (pytest.approx(-2, abs=1e-3), pytest.approx(5, abs=1e-3))
    np.testing.assert_allclose(f.of(score), expit(-2 + 5 * score), atol=1e-4)


def test_logistic_of_points_that_a_step_would_fit_stays_finite() -> None:
    f = fit_logistic(np.array([0.2, 0.8]), np.array([0.0, 9.0]), np.array([9.0, 9.0]))
    assert np.isfinite([f.intercept, f.slope]).all()
    assert f.of(0.2) < 0.05 < 0.95 < f.of(0.8)


def test_constant_is_the_pooled_rate() -> None:
    f = fit_constant(np.array([0.1, 0.9]), np.array([1.0, 5.0]), np.array([4.0, 6.0]))
    np.testing.assert_allclose(f.of([0.0, 1.0]), 0.6)


def test_sources_are_read_off_the_record(trace: Trace) -> None:
    """Counted once more with loops over the tables, on prompt 0 twice and prompt 2 once."""
    counts = np.array([[2.0, 0, 1, 0]])
    rows = [r for _, r in trace.pairs.iterrows() if {r.model_a, r.model_b} == {SMALL, TARGET}]
    times = {0: 2, 2: 1}
    size = sum(times.get(p, 0) * n for p, n in enumerate(trace.prompts["output_tokens"]))
    overlap = sum(times.get(r.prompt_id, 0) * (1 - r.tv) for r in rows) / size
    agree = sum(times.get(r.prompt_id, 0) * r.argmax_agree for r in rows) / size
    assert similarity(trace, counts)[SMALL, TARGET][0] == pytest.approx(overlap)
    assert agreement(trace, counts)[TARGET, SMALL][0] == pytest.approx(agree)
    good = tried = 0
    index = trace.drafters[SMALL]
    for at, prompt in enumerate(trace.prompt):
        offered = min(index.length[at], 3, trace.remaining[at])
        kept = min(index.matched[at], offered)
        good += times.get(int(prompt), 0) * kept
        tried += times.get(int(prompt), 0) * (kept + (kept < offered or not index.length[at]))
    assert blocks.realised(trace, counts, 3)[SMALL, TARGET][0] == pytest.approx(good / tried)


def test_no_source_reads_a_prompt_that_it_is_not_fitted_on(trace: Trace) -> None:
    """Everything about prompts 1 and 3 is spoilt, and no estimate moves."""
    other = trace.prompt % 2 == 1
    pairs = trace.pairs.copy()
    spoilt = pairs["prompt_id"] % 2 == 1
    pairs.loc[spoilt, "tv"] = 0.5
    pairs.loc[spoilt, "argmax_agree"] = ~pairs.loc[spoilt, "argmax_agree"]
    drafters = {
        name: dataclasses.replace(
            index,
            matched=np.where(other, 0, index.matched),
            agreed={v: np.where(other, 0, a) for v, a in index.agreed.items()},
        )
        for name, index in trace.drafters.items()
    }
    changed = dataclasses.replace(trace, pairs=pairs, drafters=drafters)
    for among, same in (([0, 2], True), ([1, 3], False)):
        draws = draw_prompts(trace, 3, 0, np.array(among))
        before, after = (alphas(t, draws, 4, SOURCES, 0.3) for t in (trace, changed))
        for source in SOURCES:
            equal = all(np.array_equal(before[source][p], after[source][p]) for p in before[source])
            assert equal == same, source


def test_the_ema_source_ends_where_the_loop_ends(trace: Trace) -> None:
    draws = draw_prompts(trace, 2, 0)
    found = alphas(trace, draws, 4, ["simscore-ema"], 0.3)["simscore-ema"]
    by_prompt = [similarity(trace, row[None]) for row in np.eye(4)]
    for d, order in enumerate(draws.prompts):
        running = by_prompt[order[0]][MIDDLE, TARGET][0]
        for p in order[1:]:
            running = 0.7 * running + 0.3 * by_prompt[p][MIDDLE, TARGET][0]
        assert found[MIDDLE, TARGET][d] == pytest.approx(running)


def test_a_map_is_fitted_on_the_prompts_it_is_given(trace: Trace) -> None:
    twice = fit(trace, "constant", np.array([1, 1]), 4)
    once = fit(trace, "constant", np.array([1]), 4)
    assert twice == once
    counted = blocks.by_prompt(trace, 4)
    pooled = sum(g[1] for g, _ in counted.values()) / sum(t[1] for _, t in counted.values())
    assert float(once.of(0.5)) == pytest.approx(pooled)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=12), st.floats(0.01, 1), st.floats(-5, 5))
def test_ema_is_its_sum(values: list[float], weight: float, start: float) -> None:
    """m_t = (1-w)^(t+1) start + w sum_k (1-w)^(t-k) x_k."""
    x = np.array(values)
    t = len(x) - 1
    past = (1 - weight) ** np.arange(t, -1, -1)
    wanted = (1 - weight) ** (t + 1) * start + weight * float(past @ x)
    assert ema(x, weight, start)[-1] == pytest.approx(wanted, abs=1e-9)
    assert ema(x, weight)[0] == pytest.approx(x[0])


@pytest.mark.parametrize("weight", [0.05, 0.1, 0.3, 0.5, 1.0])
def test_an_ema_follows_a_step_as_the_closed_form_says(weight: float) -> None:
    steps = 200
    found = track(np.full((1, 5), 0.2), np.full((1, steps), 0.8), weight)
    come = 1 - (1 - weight) ** np.arange(1, steps + 1)
    np.testing.assert_allclose(found.mean, 0.2 + 0.6 * come, atol=1e-9)
    assert found.to_half == steps_to(0.5, weight)
    assert found.to_most == steps_to(0.9, weight)
    assert found.bias == pytest.approx(0.0, abs=2e-4)


def test_how_much_an_ema_shakes() -> None:
    """Of independent values of variance s^2 it has variance s^2 w / (2 - w)."""
    noise = np.random.default_rng(0).normal(0.5, 0.2, (400, 400))
    for weight in (0.05, 0.3):
        found = track(noise[:, :200], noise[:, 200:], weight)
        assert found.shake == pytest.approx(0.2 * (weight / (2 - weight)) ** 0.5, rel=0.03)


def test_what_an_average_is_fed(trace: Trace) -> None:
    values = np.arange(len(trace.tokens), dtype=float)
    a, b = (values[trace.offsets[p] : trace.offsets[p + 1]] for p in (2, 0))
    np.testing.assert_array_equal(observed(trace, values, [2, 0], "text"), np.concatenate([a, b]))
    np.testing.assert_array_equal(observed(trace, values, [2, 0], "request"), [a.mean(), b.mean()])
    both = observed(trace, values, [2, 0], "batch", 2)
    assert len(both) == max(len(a), len(b))
    assert both[0] == (a[0] + b[0]) / 2
    np.testing.assert_array_equal(observed(trace, values, [2, 0], "batch", 1), np.concatenate([a, b]))


def test_splices_go_from_one_task_to_the_other(trace: Trace) -> None:
    prompts = trace.prompts.assign(category=["a", "b", "a", "b"])
    mixed = dataclasses.replace(trace, prompts=prompts)
    values = (trace.prompt % 2).astype(float)  # 0 all along in task a, 1 in task b
    before, after = spliced(mixed, values, ("a", "b"), "text", 5, 0)
    assert (before == 0).all()
    assert (after == 1).all()
    assert len(before) == len(after) == 5


def test_a_change_of_load_is_drawn_from_measured_repetitions(trace: Trace) -> None:
    seconds = repetitions(trace, TARGET, "float32", 1)
    before, after = loaded(seconds, (1, 4), 6, 3, 0)
    assert before.shape == after.shape == (3, 6)
    assert set(before.ravel()) <= set(seconds[1])
    assert set(after.ravel()) <= set(seconds[4])


def test_errors_against_counts_by_hand(trace: Trace) -> None:
    """One pair: an estimate of 1/2 everywhere, held against the cells' own counts."""
    index = trace.drafters[SMALL]
    alone = dataclasses.replace(
        trace, drafters={SMALL: dataclasses.replace(index, agreed={})}, pairs=trace.pairs
    )
    found = errors(alone, {"half": {(SMALL, TARGET): 0.5}}, [0, 1], 3)
    mine = np.flatnonzero(trace.prompt < 2)
    kept = np.minimum(index.matched, np.minimum(index.length, np.minimum(3, trace.remaining)))
    first = next(e for e in found if (e.by, e.cell) == ("position", "1"))
    offered = np.minimum(index.length, np.minimum(3, trace.remaining))
    tried = (offered[mine] > 0) | (index.length[mine] == 0)
    assert first.tried == tried.sum()
    share = (kept[mine] >= 1).sum() / tried.sum()
    assert first.accepted_share == pytest.approx(share)
    assert first.bias == pytest.approx(0.5 - share)
    assert first.absolute == pytest.approx(abs(0.5 - share))
    for by in ("task", "time"):
        cells = [e for e in found if e.by == by]
        assert sum(e.tried for e in cells) == sum(e.tried for e in found if e.by == "position")
