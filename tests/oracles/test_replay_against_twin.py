"""Replay in bulk = the toy models decoded token by token, cycle by cycle, count by count."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.errors import BadInput
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
from simspec.streams import stream
from simspec.traces.index import Trace
from tests.profiles import examples
from tests.reference import decode
from tests.toy import LOOKUP, MIDDLE, MODELS, SMALL, TARGET, Setting, Toy, settings_of

CHAINS = [
    *all_chains(list(MODELS), TARGET, {LOOKUP}),
    Chain((LOOKUP, SMALL, MIDDLE, TARGET)),
    Chain((MIDDLE, SMALL, TARGET), "funnel-truncate"),
]
RULES: list[LengthRule] = [
    Static(0),
    Static(1),
    Static(2),
    Static(4),
    Static(40),
    G4(first=3, longest=8),
    LibraSpec(alpha=2.2, block=2, longest=6),
    LibraSpec(alpha=1.8, block=16, longest=24),
    ExactMarginal(longest=6),
]


class OneMore:
    """Draft one token more than is submitted, and other lengths from cycle to cycle."""

    def begin(self, requests: int) -> np.ndarray:
        return np.zeros(requests)

    def decide(self, view: object, state: np.ndarray) -> Decision:
        submitted = state.astype(np.int64) % 4
        return Decision(submitted + 1 + state.astype(np.int64) % 2, submitted)

    def observe(self, state: np.ndarray, decision: Decision, accepted: np.ndarray) -> np.ndarray:
        return state + 1 + accepted


def assert_same(
    toy: Toy,
    trace: Trace,
    chain: Chain,
    rule: LengthRule | Prescribed | None,
    seconds: np.ndarray | None = None,
    starts: list[tuple[int, int]] | None = None,
) -> None:
    starts = starts or [(p, 0) for p in range(len(toy.prompts))]
    flat = np.array([trace.offsets[p] + t for p, t in starts])
    runs = run(trace, chain, rule, flat, seconds)
    for q, (p, t) in enumerate(starts):
        cycles, emitted = decode(toy, chain, rule, p, int(trace.offsets[p]), t, seconds)
        assert emitted == toy.texts[p][t:], "the schedule must not change the text"
        count = len(cycles)
        assert runs.active[q].sum() == count
        assert runs.active[q][:count].all()
        found = {
            "context": runs.context,
            "drafted": runs.drafted,
            "submitted": runs.submitted,
            "width": runs.width,
            "accepted": runs.accepted,
            "emitted": runs.emitted,
        }
        for name, array in found.items():
            wanted = [len(c.emitted) if name == "emitted" else getattr(c, name) for c in cycles]
            assert array[q, :count].tolist() == wanted, name
            assert not array[q, count:].any(), name
        # The target always runs, so it never reads more than its last token and the block.
        assert runs.width[q, :count].tolist() == [c.offered[-1] + 1 for c in cycles]
        for i in range(len(chain.intermediates)):
            assert runs.middle[i][q, :count].tolist() == [c.middle[i] for c in cycles], "middle"
        if chain.drafter != LOOKUP:
            assert runs.lag[q, :count].tolist() == [c.lag for c in cycles], "lag"
        expected = int(trace.offsets[p]) + t + np.cumsum([0, *(len(c.emitted) for c in cycles)])[:-1]
        assert runs.flat[q, :count].tolist() == expected.tolist()


@given(settings_of(), st.integers(0, 1000))
@examples(0.48)
def test_every_chain_and_rule_matches_the_twin(setting: Setting, luck: int) -> None:
    toy = Toy(setting)
    with tempfile.TemporaryDirectory() as folder:
        trace = toy.load(Path(folder) / "trace")
    generator = stream(luck, "rules")
    seconds = generator.uniform(0.5, 1.5, (len(trace.tokens), setting.block_length + 1))
    seconds += 0.2 * np.arange(setting.block_length + 1)
    prescribed = Prescribed(generator.integers(0, setting.block_length + 1, len(trace.tokens)))
    for chain in CHAINS:
        if chain.drafter is None:
            assert_same(toy, trace, chain, None)
            continue
        for rule in (RULES[int(generator.integers(len(RULES)))], prescribed, OneMore()):
            assert_same(toy, trace, chain, rule, seconds)


@given(settings_of(prompts=2, output_tokens=(4, 14), block_length=(3, 6)), st.sampled_from(RULES))
@examples(0.6)
def test_every_rule_matches_the_twin(setting: Setting, rule: LengthRule) -> None:
    toy = Toy(setting)
    trace = toy.trace()
    for chain in CHAINS[1:]:
        assert_same(toy, trace, chain, rule)


@given(settings_of(output_tokens=(6, 20)), st.data())
@examples(0.6)
def test_requests_that_begin_in_mid_text(setting: Setting, data: st.DataObject) -> None:
    toy = Toy(setting)
    trace = toy.trace()
    starts = [(p, data.draw(st.integers(0, len(text) - 1))) for p, text in enumerate(toy.texts)]
    for chain in CHAINS[1:]:
        assert_same(toy, trace, chain, Static(3), starts=starts)


@pytest.mark.parametrize("order", [1, 3])
@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_drafters_that_are_never_or_always_right(order: int, rate: float) -> None:
    setting = Setting(
        seed=5, output_tokens=17, block_length=4, order=order, middle_rate=rate, small_rate=rate
    )
    toy = Toy(setting)
    trace = toy.trace()
    for chain in CHAINS[1:]:
        for rule in RULES:
            assert_same(toy, trace, chain, rule)


def test_deep_funnel_replace_is_refused() -> None:
    trace = Toy(Setting()).trace()
    with pytest.raises(BadInput, match="funnel-replace"):
        run(trace, Chain((LOOKUP, SMALL, MIDDLE, TARGET), "funnel-replace"), Static(2), trace.offsets[:-1])


def test_a_chain_that_drafts_needs_a_rule() -> None:
    trace = Toy(Setting()).trace()
    with pytest.raises(BadInput, match="length rule"):
        run(trace, Chain((SMALL, TARGET)), None, trace.offsets[:-1])
