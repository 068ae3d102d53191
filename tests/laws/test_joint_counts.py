"""What is exact on the trace is what a token-by-token decoding does on the same prompts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.compare.batches import draw_prompts, request_starts
from simspec.compare.joint import anywhere, visited
from simspec.compare.predicted import Told, predict, prices_for
from simspec.cost.models import AffineCost
from simspec.replay.lockstep import price
from simspec.replay.trajectories import run
from simspec.speculation.lengths import Static
from tests.oracles.test_replay_against_twin import CHAINS
from tests.profiles import examples
from tests.reference import decode
from tests.toy import LOOKUP, MIDDLE, SMALL, TARGET, Setting, Toy, settings_of

# Costs nothing for context, so that a mean context is as good as each cycle's own.
COST = AffineCost(
    name="affine",
    label="made up",
    target=TARGET,
    base_seconds=0.02,
    token_seconds=1e-3,
    context_token_seconds=0.0,
    step_overhead_seconds=0.003,
    ratios={LOOKUP: 0.01, SMALL: 0.1, MIDDLE: 0.4},
)


@given(settings_of(output_tokens=(4, 14), block_length=(3, 6)), st.integers(1, 4))
@examples(0.4)
def test_tokens_a_pass_and_widths_are_those_of_decoding_token_by_token(setting: Setting, length: int) -> None:
    toy = Toy(setting)
    trace = toy.trace()
    for chain in CHAINS:
        rule = Static(length) if chain.drafter else None
        found = visited(trace, run(trace, chain, rule, request_starts(trace)))
        widths = {level.model: np.zeros(99) for level in found.levels[-1 - len(chain.intermediates) :]}
        for p in range(len(toy.prompts)):
            cycles, _ = decode(toy, chain, rule, p, int(trace.offsets[p]))
            assert found.cycles[p] == len(cycles)
            assert found.tokens[p] == sum(len(c.emitted) for c in cycles)
            for cycle in cycles:
                widths[chain.target][cycle.width] += 1
                for model, width in zip(chain.intermediates, cycle.middle, strict=True):
                    widths[model][width] += width > 0
        for level in found.levels[-len(widths) :]:
            wanted = widths[level.model]
            np.testing.assert_array_equal(level.widths, np.flatnonzero(wanted))
            np.testing.assert_array_equal(level.counts.sum(axis=(0, 2)), wanted[wanted > 0])


@given(settings_of(output_tokens=(4, 14), block_length=(3, 6)), st.integers(1, 4))
@examples(0.4)
def test_at_batch_1_joint_is_replay(setting: Setting, length: int) -> None:
    """Where context costs nothing: catch-up, text ends and empty blocks included, on every draw."""
    trace = Toy(setting).trace()
    draws = draw_prompts(trace, 3, 0)
    for chain in CHAINS:
        candidate = (chain, length if chain.drafter else 0)
        runs = run(trace, chain, Static(length) if chain.drafter else None, request_starts(trace))
        alone = np.arange(len(trace.prompts))[:, None]
        (times,) = price(runs, alone, [COST], lookup=chain.drafter == LOOKUP)
        counts = draws.counts()
        wanted = (counts @ times.seconds) / (counts @ times.tokens)
        told = Told({}, counts, {"visited": [visited(trace, runs)]})
        prices = prices_for(trace, COST, [candidate], (1,))
        for variant in ("joint", "joint-by-row", "joint-drained"):
            found = predict(trace, COST, prices, [candidate], variant, told)
            np.testing.assert_allclose(found[f"{variant}/visited"][0, :, 0], wanted, rtol=1e-9)


@given(settings_of(prompts=2, output_tokens=(4, 10), block_length=(3, 6)), st.integers(1, 4))
@examples(0.2)
def test_anywhere_takes_the_first_cycle_from_every_place(setting: Setting, length: int) -> None:
    toy = Toy(setting)
    trace = toy.trace()
    for chain in CHAINS:
        rule = Static(length) if chain.drafter else None
        found = anywhere(trace, chain, length)
        for p, text in enumerate(toy.texts):
            firsts = [
                decode(toy, chain, rule, p, int(trace.offsets[p]), start)[0][0] for start in range(len(text))
            ]
            assert found.cycles[p] == len(text)
            assert found.tokens[p] == sum(len(c.emitted) for c in firsts)
            target = found.levels[-1]
            assert float(target.counts[p, :, 0] @ target.widths) == sum(c.width for c in firsts)


@given(settings_of(prompts=6, output_tokens=(1, 14), block_length=(3, 6)), st.integers(1, 3))
@examples(0.4)
def test_drained_plain_decoding_is_every_batch_that_could_be_drawn(setting: Setting, batch: int) -> None:
    """One width for ever: what is left is who still runs, and each row's prompt is drawn for itself."""
    trace = Toy(setting).trace()
    chain = next(c for c in CHAINS if c.drafter is None)
    runs = run(trace, chain, None, request_starts(trace))
    batches = np.array(list(product(range(len(trace.prompts)), repeat=batch)))
    (times,) = price(runs, batches, [COST], lookup=False)
    told = Told({}, draw_prompts(trace, 0, 0).counts(), {"visited": [visited(trace, runs)]})
    prices = prices_for(trace, COST, [(chain, 0)], (batch,))
    found = predict(trace, COST, prices, [(chain, 0)], "joint-drained", told)["joint-drained/visited"]
    assert found[0, 0, 0] == pytest.approx(times.seconds.sum() / times.tokens.sum(), rel=1e-9)


def test_rows_that_do_the_same_cost_as_much_either_way() -> None:
    """A perfect drafter: every cycle of the target is as wide, so no row is padded."""
    trace = Toy(Setting(seed=1, prompts=3, output_tokens=12, block_length=4, small_rate=1.0)).trace()
    chain = next(c for c in CHAINS if c.levels == (SMALL, TARGET))
    told = Told({}, draw_prompts(trace, 0, 0).counts(), {"anywhere": [anywhere(trace, chain, 1)]})
    prices = prices_for(trace, COST, [(chain, 1)], (1, 4))
    both = [
        predict(trace, COST, prices, [(chain, 1)], variant, told)[f"{variant}/anywhere"]
        for variant in ("joint", "joint-by-row")
    ]
    # One token is left at the end of a text, where nothing is drafted: rows differ there, and only there.
    assert both[0] == pytest.approx(both[1], rel=0.02)
    assert both[0][0, 0, 0] == pytest.approx(both[1][0, 0, 0])
