"""What the oracles promise: nothing on the same record is faster than the dynamic programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simspec.cost.models import MeasuredCost
from simspec.oracle import chains as chain_oracle
from simspec.oracle import lengths as length_oracle
from simspec.replay import lockstep
from simspec.replay.pricing import two_level_seconds
from simspec.replay.trajectories import run
from simspec.speculation.chains import Chain, all_chains
from simspec.speculation.lengths import (
    G4,
    Decision,
    ExactMarginal,
    LengthRule,
    LibraSpec,
    Prescribed,
    Static,
)
from simspec.traces.index import Trace
from tests.oracles.test_lockstep import AFFINE
from tests.profiles import examples
from tests.reference import Request, affine_price, least_by_search, measured_price
from tests.toy import LOOKUP, MIDDLE, MODELS, SMALL, TARGET, Setting, Toy, settings_of

PAIRS = [Chain((drafter, TARGET)) for drafter in (LOOKUP, SMALL, MIDDLE)]
RULES: list[LengthRule] = [
    *(Static(n) for n in range(8)),
    G4(first=2),
    LibraSpec(2.2, 2, 6),
    LibraSpec(1.8, 4, 10),
    ExactMarginal(),
    ExactMarginal(longest=3),
]
LEAST = 1.0 - 1e-9  # nothing may take less than this much of the bound


def cost_of(trace: Trace) -> MeasuredCost:
    return MeasuredCost(trace.latency, "float32", "toy", "synthetic")


def seconds_alone(
    trace: Trace, chain: Chain, rule: LengthRule | Prescribed | None, cost: MeasuredCost
) -> np.ndarray:
    priced = two_level_seconds(trace, chain, cost, 1) if len(chain.levels) == 2 else None
    runs = run(trace, chain, rule, trace.offsets[:-1], priced)
    alone = np.arange(len(trace.prompts))[:, None]
    return lockstep.price(runs, alone, [cost], lookup=chain.drafter == LOOKUP)[0].seconds


@given(settings_of(output_tokens=(4, 16), block_length=(3, 7)))
@examples(0.6)
def test_no_rule_beats_the_least_time(setting: Setting) -> None:
    trace = Toy(setting).trace()
    cost = cost_of(trace)
    for chain in PAIRS:
        bound = length_oracle.least_seconds(trace, chain, cost)
        for rule in RULES:
            assert (seconds_alone(trace, chain, rule, cost) >= LEAST * bound).all(), (str(chain), rule)
        # Hindsight is the best of each cycle alone. It may lose to a static length; never win here.
        for oracle in (length_oracle.myopic_hindsight, length_oracle.myopic_expected):
            prescribed = oracle(trace, chain, cost, 1)
            assert (seconds_alone(trace, chain, prescribed, cost) >= LEAST * bound).all()


@given(settings_of(output_tokens=(4, 14), block_length=(3, 6)), st.data())
@examples(0.4)
def test_no_prescription_beats_the_least_time(setting: Setting, data: st.DataObject) -> None:
    trace = Toy(setting).trace()
    cost = cost_of(trace)
    size = len(trace.tokens)
    some = st.lists(st.integers(0, setting.block_length), min_size=size, max_size=size)
    lengths = np.array(data.draw(some))
    for chain in PAIRS:
        bound = length_oracle.least_seconds(trace, chain, cost)
        assert (seconds_alone(trace, chain, Prescribed(lengths), cost) >= LEAST * bound).all()


@given(settings_of(prompts=2, output_tokens=(1, 5), block_length=(2, 4)), st.sampled_from([SMALL, MIDDLE]))
@example(Setting(seed=1, output_tokens=5, block_length=3, middle_rate=1.0), MIDDLE)
def test_the_least_time_is_exact_for_models(setting: Setting, drafter: str) -> None:
    """Against every sequence of lengths, with the caches' real lags."""
    toy = Toy(setting)
    trace = toy.trace()
    chain = Chain((drafter, TARGET))
    price = measured_price(trace.latency.to_dict("records"), "float32")
    bound = length_oracle.least_seconds(trace, chain, cost_of(trace))
    affine = length_oracle.least_seconds(trace, chain, AFFINE)
    for p in range(len(toy.prompts)):
        request = Request.begin(toy, chain, p)
        assert bound[p] == pytest.approx(least_by_search(request, price), rel=1e-9)
        slow = least_by_search(request, affine_price(AFFINE), AFFINE.step_overhead_seconds)
        assert affine[p] == pytest.approx(slow, rel=1e-9)


# Fails when written: least_seconds tries submitted and submitted + 1 drafts only, but a look-up that
# is asked for still more can be faster where the latency table is not monotone.
@given(settings_of(prompts=2, output_tokens=(1, 5), block_length=(2, 4)))
@example(Setting(prompts=1, output_tokens=3, block_length=2, order=1, middle_rate=0.0, small_rate=0.0))
@examples(0.8)
def test_the_least_time_is_exact_for_look_ups(setting: Setting) -> None:
    toy = Toy(setting)
    trace = toy.trace()
    chain = Chain((LOOKUP, TARGET))
    price = measured_price(trace.latency.to_dict("records"), "float32")
    bound = length_oracle.least_seconds(trace, chain, cost_of(trace))
    for p in range(len(toy.prompts)):
        exact = least_by_search(Request.begin(toy, chain, p), price)
        assert bound[p] == pytest.approx(exact, rel=1e-9)


class LongLookup:
    """Ask a look-up for a long block and submit a short one: allowed to any rule."""

    def begin(self, requests: int) -> np.ndarray:
        return np.zeros(requests)

    def decide(self, view: object, state: np.ndarray) -> Decision:
        one = np.ones(len(state), dtype=np.int64)
        return Decision(4 * one, one)

    def observe(self, state: np.ndarray, decision: Decision, accepted: np.ndarray) -> np.ndarray:
        return state


# Fails when written, for the same reason as the test of exactness for look-ups above.
@pytest.mark.parametrize("seed", range(6))
def test_a_look_up_asked_for_more_than_is_submitted_does_not_win(seed: int) -> None:
    """With a latency table where a block of four is looked up faster than a block of one or two."""
    trace = Toy(Setting(seed=seed, prompts=4, output_tokens=20, block_length=6, order=1)).trace()
    dear = (trace.latency["model"] == LOOKUP) & (trace.latency["new_tokens"] < 4)
    trace.latency.loc[dear, "seconds"] += 1.0
    cost = cost_of(trace)
    chain = Chain((LOOKUP, TARGET))
    bound = length_oracle.least_seconds(trace, chain, cost)
    assert (seconds_alone(trace, chain, LongLookup(), cost) >= LEAST * bound).all()


@given(settings_of(output_tokens=(4, 16), block_length=(3, 7)))
@examples(0.4)
def test_no_static_chain_beats_the_bound_over_chains(setting: Setting) -> None:
    trace = Toy(setting).trace()
    cost = cost_of(trace)
    candidates = [
        (chain, length)
        for chain in all_chains(list(MODELS), TARGET, {LOOKUP})
        for length in ((1, 2, 4) if chain.drafter else (0,))
    ]
    bound = chain_oracle.least_seconds(trace, candidates, cost)
    for chain, length in candidates:
        rule = Static(length) if chain.drafter else None
        found = seconds_alone(trace, chain, rule, cost)
        assert (found >= LEAST * bound).all(), (str(chain), chain.semantics, length)


@given(settings_of(output_tokens=(4, 16)), st.sampled_from([1, 3]))
@examples(0.4)
def test_the_bound_over_chains_is_met_where_nothing_lags(setting: Setting, length: int) -> None:
    """Plain decoding and a look-up keep no cache of their own, so alone they are their own bound."""
    trace = Toy(setting).trace()
    cost = cost_of(trace)
    for chain, n in ((Chain((TARGET,)), 0), (Chain((LOOKUP, TARGET)), length)):
        bound = chain_oracle.least_seconds(trace, [(chain, n)], cost)
        rule = Static(n) if chain.drafter else None
        np.testing.assert_allclose(seconds_alone(trace, chain, rule, cost), bound, rtol=1e-9)


@given(settings_of(output_tokens=(4, 16)))
@examples(0.4)
def test_more_candidates_never_raise_the_bound(setting: Setting) -> None:
    trace = Toy(setting).trace()
    cost = cost_of(trace)
    few = [(Chain((TARGET,)), 0), (Chain((SMALL, TARGET)), 2)]
    more = [*few, (Chain((SMALL, MIDDLE, TARGET)), 3), (Chain((LOOKUP, TARGET)), 2)]
    fewer, best = (chain_oracle.least_seconds(trace, c, cost) for c in (few, more))
    assert (best <= fewer * (1 + 1e-12)).all()
