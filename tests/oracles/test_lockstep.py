"""Batches priced in bulk = a plain loop over cycles, levels and requests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.cost.models import AffineCost, MeasuredCost
from simspec.replay import lockstep
from simspec.replay.pricing import draft_seconds, forward, two_level_seconds
from simspec.replay.trajectories import run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import G4, LengthRule, LibraSpec, Static
from simspec.traces.index import Trace
from tests.oracles.test_replay_against_twin import CHAINS
from tests.profiles import examples
from tests.reference import Price, affine_price, cycle_seconds, decode, lockstep_seconds, measured_price
from tests.toy import LOOKUP, MIDDLE, SMALL, TARGET, Setting, Toy, settings_of

AFFINE = AffineCost(
    name="affine",
    label="made up",
    target=TARGET,
    base_seconds=0.02,
    token_seconds=1e-3,
    context_token_seconds=1e-4,
    step_overhead_seconds=0.003,
    ratios={LOOKUP: 0.0, SMALL: 0.1, MIDDLE: 0.4},
)
RULES: list[LengthRule] = [Static(0), Static(1), Static(3), G4(first=2), LibraSpec(2.2, 2, 6)]


def measured(trace: Trace) -> tuple[MeasuredCost, Price]:
    rows = trace.latency.to_dict("records")
    return MeasuredCost(trace.latency, "float32", "toy", "synthetic"), measured_price(rows, "float32")


@given(settings_of(output_tokens=(4, 14), block_length=(3, 6)), st.sampled_from(RULES), st.data())
@examples(0.48)
def test_batches_cost_what_the_loop_says(setting: Setting, rule: LengthRule, data: st.DataObject) -> None:
    toy = Toy(setting)
    trace = toy.trace()
    cost, price = measured(trace)
    size = data.draw(st.integers(1, 4), label="batch")
    request = st.integers(0, len(toy.prompts) - 1)
    batches = data.draw(st.lists(st.lists(request, min_size=size, max_size=size), min_size=1, max_size=4))
    for chain in CHAINS:
        runs = run(trace, chain, rule if chain.drafter else None, trace.offsets[:-1])
        lookup = chain.drafter == LOOKUP
        found, affine = lockstep.price(runs, np.array(batches), [cost, AFFINE], lookup=lookup)
        wanted = [lockstep_seconds(runs, b, price, 0.0, lookup=lookup) for b in batches]
        np.testing.assert_allclose(found.seconds, wanted, rtol=1e-9)
        overhead = AFFINE.step_overhead_seconds
        wanted = [lockstep_seconds(runs, b, affine_price(AFFINE), overhead, lookup=lookup) for b in batches]
        np.testing.assert_allclose(affine.seconds, wanted, rtol=1e-9)
        assert found.tokens.tolist() == [sum(len(toy.texts[p]) for p in b) for b in batches]


@given(settings_of(output_tokens=(4, 14), block_length=(3, 6)), st.sampled_from(RULES))
@examples(0.4)
def test_a_batch_of_one_costs_its_request_decoded_token_by_token(setting: Setting, rule: LengthRule) -> None:
    """No array of replay is used on the other side: the toy models and their caches are."""
    toy = Toy(setting)
    trace = toy.trace()
    cost, price = measured(trace)
    for chain in CHAINS:
        chosen = rule if chain.drafter else None
        runs = run(trace, chain, chosen, trace.offsets[:-1])
        alone = np.arange(len(toy.prompts))[:, None]
        found = lockstep.price(runs, alone, [cost], lookup=chain.drafter == LOOKUP)[0]
        for p in range(len(toy.prompts)):
            cycles, _ = decode(toy, chain, chosen, p, int(trace.offsets[p]))
            wanted = sum(cycle_seconds(c, chain, price) for c in cycles)
            assert found.seconds[p] == pytest.approx(wanted, rel=1e-9)


@given(settings_of(output_tokens=(4, 20), block_length=(3, 6)), st.sampled_from([1, 2, 5]))
@examples(0.4)
def test_a_batch_of_one_costs_what_rules_are_told(setting: Setting, length: int) -> None:
    """With each cycle's real lag always; by ``two_level_seconds`` when no lag exceeds one."""
    toy = Toy(setting)
    trace = toy.trace()
    cost, _ = measured(trace)
    for drafter in (LOOKUP, SMALL):
        chain = Chain((drafter, TARGET))
        runs = run(trace, chain, Static(length), trace.offsets[:-1])
        told = two_level_seconds(trace, chain, cost, rows=1)
        alone = np.arange(len(toy.prompts))[:, None]
        found = lockstep.price(runs, alone, [cost], lookup=drafter == LOOKUP)[0].seconds
        for q in range(len(toy.prompts)):
            on = runs.flat[q] >= 0
            flat, drafted = runs.flat[q][on], runs.drafted[q][on].astype(np.int64)
            lag = np.maximum(runs.lag[q][on].astype(np.int64), 1)
            context = trace.context[flat]
            exact = draft_seconds(trace, cost, drafter, 1, drafted, lag, context) + forward(
                cost, TARGET, 1, drafted + 1, context
            )
            assert found[q] == pytest.approx(exact.sum(), rel=1e-9)
            if drafter == LOOKUP or lag.max() == 1:
                assert found[q] == pytest.approx(told[flat, drafted].sum(), rel=1e-9)


def test_a_drafter_that_is_never_right_never_lags() -> None:
    """Without this the last branch of the test above might never run for a model."""
    toy = Toy(Setting(seed=3, output_tokens=16, small_rate=0.0, small_follows=TARGET))
    trace = toy.trace()
    runs = run(trace, Chain((SMALL, TARGET)), Static(3), trace.offsets[:-1])
    wrong = ~trace.owns[SMALL].any()
    assert runs.lag.max() == 1 or not wrong


def test_chunks_do_not_change_the_price(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = Toy(Setting(seed=11, prompts=4, output_tokens=18)).trace()
    cost, _ = measured(trace)
    runs = run(trace, Chain((SMALL, MIDDLE, TARGET)), Static(3), trace.offsets[:-1])
    batches = np.array([[0, 1], [2, 3], [1, 1], [3, 0], [2, 2]])
    whole = lockstep.price(runs, batches, [cost], lookup=False)[0]
    monkeypatch.setattr(lockstep, "CELLS_AT_ONCE", 1)
    pieces = lockstep.price(runs, batches, [cost], lookup=False)[0]
    assert pieces.seconds.tolist() == whole.seconds.tolist()
    assert pieces.tokens.tolist() == whole.tokens.tolist()
