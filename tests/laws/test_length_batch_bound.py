"""The bound on lengths of a batch: under every schedule, whatever is drafted, and reached where it can be."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.compare.batches import request_starts
from simspec.cost.models import CostModel
from simspec.cost.shares import share
from simspec.oracle.length_batches import least_batch_seconds, seconds_to_end
from simspec.oracle.lengths import least, least_seconds
from simspec.replay.lockstep import price
from simspec.replay.planned import plan
from simspec.replay.trajectories import run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Decision, Prescribed
from simspec.traces.index import Trace
from tests.laws.test_batch_bound import costs
from tests.oracles.test_lockstep import AFFINE
from tests.profiles import examples
from tests.toy import LOOKUP, MIDDLE, SMALL, TARGET, Setting, Toy, settings_of

PAIRS = [Chain((drafter, TARGET)) for drafter in (LOOKUP, SMALL, MIDDLE)]
ROUNDING = 1.0 + 1e-9
# A forward takes as long whatever its width, so it does not matter what a drafter has not read.
FLAT = msgspec.structs.replace(AFFINE, token_seconds=0.0)


@dataclass(frozen=True)
class Random:
    """Lengths by chance, and often more drafted than submitted."""

    seed: int
    sampling_safe: ClassVar[bool] = True

    def begin(self, streams, batch, depth):
        return {"cycle": np.zeros(streams, dtype=np.int64)}

    def decide(self, waiting, state):
        generator = np.random.default_rng((self.seed, int(state["cycle"][0])))
        drafted = generator.integers(0, waiting.confidence.shape[2] + 1, waiting.limit.shape)
        return Decision(drafted, generator.integers(0, drafted + 1))

    def observe(self, state, happened):
        return {"cycle": state["cycle"] + 1}


@given(settings_of(output_tokens=(4, 16), block_length=(3, 6)), st.data())
@examples(0.5)
def test_no_lengths_beat_it(setting: Setting, data: st.DataObject) -> None:
    trace = Toy(setting).trace()
    size = data.draw(st.integers(1, 6))
    request = st.lists(st.integers(0, 2 * len(trace.prompts) - 1), min_size=size, max_size=size)
    batches = np.array(data.draw(st.lists(request, min_size=1, max_size=3)))
    starts = request_starts(trace)
    for chain, cost in product(PAIRS, costs(trace)):
        bound = least_batch_seconds(trace, chain, cost, starts, batches)
        planner = Random(data.draw(st.integers(0, 9)))
        found = plan(trace, chain, cost, planner, starts[batches][:, None]).seconds
        assert (bound <= found * ROUNDING).all(), (str(chain), cost.name)


@given(settings_of(output_tokens=(1, 14), block_length=(3, 6)))
@examples(0.4)
def test_for_one_request_it_is_the_program_where_reading_costs_nothing(setting: Setting) -> None:
    trace = Toy(setting).trace()
    starts = trace.offsets[:-1]
    for chain in PAIRS:
        exact = least_seconds(trace, chain, FLAT)
        np.testing.assert_allclose(seconds_to_end(trace, chain, FLAT)[starts], exact, rtol=1e-12)
        for cost in costs(trace):
            one = share(cost, 1)
            found = seconds_to_end(trace, chain, one)[starts]
            assert (found <= least_seconds(trace, chain, one) * ROUNDING).all(), cost.name


def lock_step(trace: Trace, chain: Chain, cost: CostModel, lengths: Prescribed, batch: np.ndarray) -> float:
    runs = run(trace, chain, lengths, trace.offsets[:-1])
    return float(price(runs, batch[None], [cost], lookup=chain.drafter == LOOKUP)[0].seconds[0])


@pytest.mark.parametrize("chain", PAIRS, ids=str)
@pytest.mark.parametrize("rows", [2, 3])
def test_copies_of_one_request_reach_it(chain, rows):
    trace = Toy(Setting(seed=2, prompts=4, output_tokens=16, block_length=6)).trace()
    lengths = Prescribed(least(trace, chain, share(FLAT, rows)).lengths)
    for p in range(4):
        batch = np.full(rows, p)
        bound = least_batch_seconds(trace, chain, FLAT, trace.offsets[:-1], batch[None])[0]
        assert bound == pytest.approx(lock_step(trace, chain, FLAT, lengths, batch))


def test_drafts_can_be_kept_short():
    """Without drafts there is one way to decode; with longer ones allowed it only falls."""
    trace = Toy(Setting(seed=5, prompts=4, output_tokens=16, block_length=6)).trace()
    starts, chain = trace.offsets[:-1], Chain((MIDDLE, TARGET))
    plain = [
        lock_step(trace, chain, FLAT, Prescribed(np.zeros(len(trace.tokens), dtype=np.int64)), np.array([p]))
        for p in range(4)
    ]
    bounds = [seconds_to_end(trace, chain, FLAT, n)[starts] for n in range(7)]
    np.testing.assert_allclose(bounds[0], plain)
    assert (np.diff(bounds, axis=0) <= 0).all()
    assert (bounds[-1] < bounds[0]).any()
    np.testing.assert_array_equal(bounds[-1], seconds_to_end(trace, chain, FLAT)[starts])
