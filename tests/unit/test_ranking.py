"""Ranked by halves: what is fitted on is never scored on; taus and scores by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from simspec.compare.parts import halves, parts
from simspec.compare.rank import VARIANTS, RankSettings, rank
from simspec.compare.rankings import BatchRanking, score, summary
from simspec.compare.taus import kendall_taus
from simspec.cost.models import MeasuredCost
from simspec.errors import BadInput
from simspec.metrics import kendall_tau
from simspec.speculation.chains import all_chains
from simspec.traces.index import Trace
from tests.toy import LOOKUP, MODELS, TARGET, Setting, Toy

SETTINGS = RankSettings(batches=(1, 2), lengths=(1, 3), draws=3, split=True)


@pytest.fixture(scope="module")
def trace() -> Trace:
    return Toy(Setting(seed=3, prompts=8, output_tokens=12, block_length=4)).trace()


@pytest.fixture(scope="module")
def cost(trace: Trace) -> MeasuredCost:
    return MeasuredCost(trace.latency, "float32", "noise", "synthetic")


def test_no_prompt_is_on_both_sides(trace: Trace) -> None:
    first, second = halves(trace)
    assert not set(first) & set(second)
    assert sorted([*first, *second]) == list(range(8))
    for part in parts(trace, 20, 0, split=True):
        assert not set(part.fit.prompts.ravel()) & set(part.score.prompts.ravel())
        assert (part.fit.counts() * part.score.counts()).sum() == 0


def test_prompts_alike_are_on_one_side(trace: Trace) -> None:
    """Prompts 0 to 5 are one prompt recorded under two tasks; a half may then be small."""
    prompts = trace.prompts.assign(prompt_hash=["same"] * 6 + ["b", "c"], category=["x", "y"] * 4)
    first, second = halves(dataclasses.replace(trace, prompts=prompts))
    hashes = prompts["prompt_hash"].to_numpy()
    assert not set(hashes[first]) & set(hashes[second])


def test_a_task_of_one_prompt_cannot_be_split(trace: Trace) -> None:
    alone = dataclasses.replace(trace, prompts=trace.prompts.assign(category=["a"] * 7 + ["b"]))
    with pytest.raises(BadInput, match="'b' has too few"):
        parts(alone, 2, 0, split=True, by_task=True)


def test_by_task_and_half_every_part_is_scored(trace: Trace, cost: MeasuredCost) -> None:
    tasked = dataclasses.replace(trace, prompts=trace.prompts.assign(category=["a", "b"] * 4))
    settings = dataclasses.replace(SETTINGS, by_task=True, draws=1, variants=("reach", "joint"))
    found = rank(tasked, [cost], settings)
    assert [r.part.name for r in found] == [
        f"{task}, half {fold}" for task in ("all", "a", "b") for fold in (1, 2)
    ]
    for r in found:
        category = tasked.prompts["category"].to_numpy()[r.part.score.prompts[0]]
        assert r.part.task in ("all", *set(category))


def test_predictions_do_not_move_with_what_they_are_scored_on(trace: Trace, cost: MeasuredCost) -> None:
    """Acceptance of one half is spoilt: what is predicted for it stays, what is replayed does not."""
    _, second = halves(trace)
    spoilt = np.isin(trace.prompt, second)
    drafters = {
        name: dataclasses.replace(i, matched=np.where(spoilt, 0, i.matched))
        for name, i in trace.drafters.items()
    }
    pairs = trace.pairs.copy()
    pairs.loc[pairs["prompt_id"].isin(second), ["tv", "argmax_agree"]] = [0.5, False]
    changed = dataclasses.replace(trace, drafters=drafters, pairs=pairs)
    before, after = (rank(t, [cost], SETTINGS) for t in (trace, changed))
    for here, there in zip(before[0].batches, after[0].batches, strict=True):  # fitted on the first half
        assert set(here.predicted) == set(there.predicted)
        for name in here.predicted:
            np.testing.assert_array_equal(here.predicted[name], there.predicted[name])
        assert not np.array_equal(here.replayed, there.replayed)
    moved = before[1].batches[0].predicted, after[1].batches[0].predicted
    for variant in VARIANTS:
        source = "visited" if variant.startswith("joint") else "realised"
        assert not np.array_equal(moved[0][f"{variant}/{source}"], moved[1][f"{variant}/{source}"])


def test_unknown_names_are_refused_with_the_nearest(trace: Trace, cost: MeasuredCost) -> None:
    for change, said in (
        ({"variants": ("reech",)}, "reach"),
        ({"sources": ("simscor",)}, "simscore"),
        ({"models": ("targett",)}, "target"),
    ):
        with pytest.raises(BadInput, match=f"did you mean '{said}'"):
            rank(trace, [cost], dataclasses.replace(SETTINGS, **change))


def test_four_levels_are_ranked_under_truncate_only(trace: Trace, cost: MeasuredCost) -> None:
    chains = all_chains(list(MODELS), TARGET, {LOOKUP}, 4)
    deep = [c for c in chains if len(c.levels) == 4]
    assert {c.semantics for c in deep} == {"funnel-truncate"}
    assert len(deep) == 2  # the look-up, then the other two either way round
    assert chains[: -len(deep)] == all_chains(list(MODELS), TARGET, {LOOKUP}, 3)
    settings = RankSettings(batches=(1,), lengths=(2,), deepest=4, draws=0, variants=("exact", "joint"))
    (found,) = rank(trace, [cost], settings)
    assert np.isfinite(found.batches[0].replayed).all()


@given(
    st.integers(2, 45).flatmap(
        lambda k: st.tuples(*[arrays(np.float64, (3, k), elements=st.integers(0, 9).map(float))] * 2)
    )
)
def test_taus_are_scipys_with_ties_and_without(both: tuple[np.ndarray, np.ndarray]) -> None:
    predicted, truth = both
    wanted = [kendall_tau(p, t) for p, t in zip(predicted, truth, strict=True)]
    np.testing.assert_allclose(kendall_taus(predicted, truth), wanted, atol=1e-12)


def test_a_score_by_hand() -> None:
    """Picks the second of 1, 1.2, 3 seconds: 20% more than the fastest. One of three pairs is swapped."""
    found = score(np.array([[2.0, 1.0, 4.0]]), np.array([[1.0, 1.2, 3.0]]))
    assert found.regret[0] == pytest.approx(20.0)
    assert (found.pick[0], found.right[0]) == (1, False)
    assert found.tau[0] == pytest.approx(1 / 3)
    assert found.error[0] == pytest.approx(1 / 3)


def test_a_summary_by_hand(trace: Trace, cost: MeasuredCost) -> None:
    """Over two batch sizes and two halves: the median of four regrets."""
    found = rank(trace, [cost], dataclasses.replace(SETTINGS, draws=10, variants=("reach", "joint-by-row")))
    total = summary(found)
    for name, line in total.items():
        regrets = [b.scores[name].regret for r in found for b in r.batches]
        assert line["median_regret"] == pytest.approx(np.median([r[0] for r in regrets]))
        assert line["worst_regret"] == max(r[0] for r in regrets)
        assert line["of"] == 4
        assert line["clear_top1"] <= min(line["clear"], line["top1"])


def test_a_lead_is_clear_if_its_interval_is_above_0() -> None:
    near, far = (
        np.array([[1.0, 1.1], [1.2, 1.1], [1.0, 1.1]]),
        np.array([[1.0, 1.1], [1.0, 1.2], [1.0, 1.05]]),
    )
    assert not BatchRanking(1, near, {}, {}).clear()
    assert BatchRanking(1, far, {}, {}).clear()
    np.testing.assert_allclose(BatchRanking(1, far, {}, {}).lead(), [10.0, 20.0, 5.0])
    assert not BatchRanking(1, far[:1], {}, {}).clear()
