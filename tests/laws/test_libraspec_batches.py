"""Unequal rows, padded and packed; drafting that is stopped and that is only cut: what must be the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as changed

from simspec.compare.batches import batch_requests, draw_prompts, request_starts
from simspec.compare.length_runs import LengthSettings
from simspec.compare.libraspec.batch_arms import in_blocks, play, play_exact
from simspec.cost.ragged import MeanWidth, Padded, laid_out, prices
from simspec.cost.shape import StepShape, uniform
from simspec.replay.planned import plan
from simspec.speculation.chains import Chain
from simspec.speculation.joint import allocate
from simspec.speculation.lengths import ExactMarginal
from simspec.speculation.planners_longrun import LongRun
from simspec.speculation.planners_told import Believes, DraftsBlocks
from simspec.speculation.planning import EachAlone, Waiting
from tests.oracles.test_lockstep import AFFINE, measured
from tests.toy import LOOKUP, SMALL, TARGET, Setting, Toy

TRACE = Toy(Setting(seed=3, prompts=7, output_tokens=24, block_length=6, small_rate=0.8)).trace()
TABLE = measured(TRACE)[0]
FREE = changed(AFFINE, ratios={**AFFINE.ratios, LOOKUP: 0.0, SMALL: 0.0})
STEEP = changed(AFFINE, token_seconds=AFFINE.base_seconds / 10)
COSTS = [TABLE, AFFINE, STEEP]


def test_a_table_prices_padded_rows_and_an_affine_profile_packed_ones():
    assert prices(TABLE, TARGET) == "padded"
    assert prices(AFFINE, TARGET) == "packed"
    assert laid_out(TABLE, TARGET, "padded") is TABLE
    assert laid_out(AFFINE, TARGET, "packed") is AFFINE
    assert prices(laid_out(TABLE, TARGET, "packed"), TARGET) == "packed"
    assert prices(laid_out(AFFINE, TARGET, "padded"), TARGET) == "padded"


@given(st.integers(1, 5), st.integers(1, 9), st.integers(1, 90), st.sampled_from(COSTS))
def test_rows_that_are_alike_cost_the_same_padded_and_packed(rows, width, context, cost):
    shape = uniform(*(np.array([n]) for n in (rows, width, context)))
    want = cost.forward_seconds(TARGET, shape)
    for laid in (Padded(cost, TARGET), MeanWidth(cost, TARGET)):
        np.testing.assert_allclose(laid.forward_seconds(TARGET, shape), want, rtol=1e-12)
        assert laid.forward_seconds(SMALL, shape) == cost.forward_seconds(SMALL, shape)


@given(st.lists(st.integers(1, 8), min_size=1, max_size=6), st.integers(1, 90))
def test_the_mean_width_is_exact_where_cost_is_affine_and_never_above_padding(widths, context):
    rows = len(widths)
    numbers = (rows, max(widths), sum(widths), context, rows * context)
    shape = StepShape(*(np.array([n]) for n in numbers))
    packed, padded = AFFINE.forward_seconds(TARGET, shape), Padded(AFFINE, TARGET)
    mean = MeanWidth(padded, TARGET).forward_seconds(TARGET, shape)
    np.testing.assert_allclose(mean, packed, rtol=1e-12)
    gap = padded.forward_seconds(TARGET, shape) - packed
    np.testing.assert_allclose(gap, AFFINE.token_seconds * (rows * max(widths) - sum(widths)), atol=1e-12)


@st.composite
def survivals(draw):
    rows, depth = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    chance = [[draw(st.floats(0.01, 0.99)) for _ in range(depth)] for _ in range(rows)]
    return np.cumprod(np.array(chance), axis=1)[None]


@given(survivals(), st.floats(0.01, 0.9))
def test_at_a_common_price_packed_rows_need_not_agree(survival, token_price):
    """E[tokens] - lambda T is a sum over rows where T is affine in the tokens: each row cuts by itself."""
    rows = np.array([survival.shape[1]])
    cut = allocate(
        survival, lambda widest, tokens: 1.0 + token_price * tokens, rows, np.array([1.0]), np.ones(1)
    )
    alone = (survival > token_price).sum(axis=2)
    worth = [
        sum(survival[0, i, :n].sum() - token_price * n for i, n in enumerate(c)) for c in (cut[0], alone[0])
    ]
    assert worth[0] == pytest.approx(worth[1], abs=1e-9)


def submitted(planner, cost, batch, drafter=SMALL):
    requests, _ = batch_requests(draw_prompts(TRACE, 1, 0), batch)
    queues = request_starts(TRACE)[requests].reshape(2, -1, batch)
    found = plan(TRACE, Chain((drafter, TARGET)), cost, planner, queues, keep=2)
    assert sum(c.submitted.sum() for c in found.log) > 0
    return [(c.drafted.tolist(), c.submitted.tolist()) for c in found.log]


@pytest.mark.parametrize("cost", [TABLE, STEEP], ids=["table", "affine"])
@pytest.mark.parametrize("planner", [LongRun(), in_blocks(6, 4)], ids=["stops", "blocks"])
def test_ours_takes_rows_as_they_are_and_other_beliefs_matter(planner, cost):
    for layout, other in (("padded", "packed"), ("packed", "padded")):
        laid = laid_out(cost, TARGET, layout)
        seen = submitted(planner, laid, 3)
        assert submitted(Believes(planner, layout), laid, 3) == seen
        assert submitted(Believes(planner, other), laid, 3) != seen or not isinstance(planner, DraftsBlocks)


def test_under_padding_no_row_is_cut_shorter_than_the_widest():
    for cost in COSTS:
        for drafted, sent in submitted(in_blocks(6, 4), laid_out(cost, TARGET, "padded"), 3):
            for one, two in zip(drafted, sent, strict=True):
                assert two == np.minimum(one, max(two)).tolist()


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("drafter", [SMALL, LOOKUP])
def test_where_drafting_is_free_stopping_it_saves_nothing(batch, drafter):
    """The control: with no price on drafting the rule that stops and the one that only cuts are one."""
    settings, whole = LengthSettings(batch=batch, draws=2), TRACE.manifest.block_length
    for cost, free in ((FREE, True), (changed(FREE, ratios=AFFINE.ratios), False)):
        stop, cut = (play_exact(TRACE, drafter, cost, settings, n) for n in (None, whole))
        assert stop.submitted == cut.submitted or not free
        same = np.array_equal(stop.seconds_per_token, cut.seconds_per_token)
        assert same == (free or AFFINE.ratios[drafter] == 0.0)


@pytest.mark.parametrize("block", [2, 6])
@pytest.mark.parametrize("cost", COSTS, ids=["table", "affine", "steep"])
def test_requests_replayed_once_take_the_time_of_the_stream(block, cost):
    settings = LengthSettings(batch=1, draws=3)
    planner = DraftsBlocks(EachAlone(ExactMarginal(block)), block)
    streamed = play(TRACE, SMALL, cost, settings, planner, prices(cost, TARGET))
    alone = play_exact(TRACE, SMALL, cost, settings, block)
    np.testing.assert_allclose(alone.seconds_per_token, streamed.seconds_per_token, rtol=1e-12)
    assert (alone.drafted, alone.submitted) == pytest.approx((streamed.drafted, streamed.submitted))


@pytest.mark.parametrize("block", [2, 4])
def test_whole_blocks_are_drafted_whatever_comes_of_them(block):
    from simspec.replay.trajectories import draft_limit

    requests, _ = batch_requests(draw_prompts(TRACE, 0, 0), 3)
    queues = request_starts(TRACE)[requests].reshape(1, -1, 3)
    found = plan(TRACE, Chain((SMALL, TARGET)), STEEP, in_blocks(6, block), queues, keep=1)
    deeper = 0
    for cycle in found.log:
        runs = cycle.flat[0] >= 0
        limit = draft_limit(TRACE, SMALL, cycle.flat[0][runs])
        assert cycle.drafted[0][runs].tolist() == np.minimum(limit, block).tolist()
        deeper = max(deeper, int(cycle.submitted.max()))
    assert deeper == block  # what it has drafted it may submit to the end


def test_what_is_drafted_anyhow_is_looked_at_to_the_end():
    """A second is worth a token. After one of .5 none pays .4 s by what is to be expected; those seen do."""
    seen = Waiting(
        running=np.ones((1, 1), dtype=bool),
        fresh=np.ones((1, 1), dtype=bool),
        confidence=np.array([[[0.5, 1.0, 1.0, 1.0]]]),
        limit=np.array([[4]]),
        draft=lambda n: np.zeros((1, np.shape(n)[-1])),
        verify=lambda widest, tokens: 1.0 + 0.4 * (widest + np.zeros((1, 1))),
        overhead=0.0,
    )
    for planner, want in ((LongRun(), 1), (DraftsBlocks(LongRun(), 4), 1), (in_blocks(4, 4), 4)):
        found = planner.decide(seen, planner.begin(1, 1, 4))
        assert found.submitted.tolist() == [[want]]
