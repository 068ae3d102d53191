"""Chains lose nothing: greedily for any models, and by rejection sampling exactly, all luck enumerated."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simspec.claims.lossless.chance import own_joint
from simspec.claims.lossless.cycles import Model, arrays, certain, decode, drawn
from simspec.claims.lossless.luck import EveryLuck, every
from simspec.speculation.chains import DECODED_SEMANTICS, Chain
from simspec.speculation.verify import GreedyJudge, Judge, RejectionJudge
from simspec.strategies.models import Text, distribution_levels


def chains(levels: int, drafts: int = 1) -> Iterator[Chain]:
    names = tuple("abcd"[:levels])
    if levels < 3:
        yield Chain(names, "none")
        return
    for semantics in DECODED_SEMANTICS:
        # A level that collects n tokens asks for n - 1 drafts.
        collect = tuple(range(drafts + 1, drafts + levels - 1)) if semantics == "nested" else ()
        yield Chain(names, semantics, collect)


def sampled(chain: Chain, models: list[Model], judge: Judge, luck: EveryLuck, length: int, want: int) -> Text:
    return decode(chain, judge, models, drawn(models[0], luck, length), want)


@pytest.mark.parametrize("levels", [2, 3, 4])
@given(data=st.data())
def test_rejection_sampling_keeps_the_targets_distribution_exactly(levels, data):
    """Claims S5, S5c: every semantics but early-emit, every chance enumerated, in fractions."""
    vocabulary = data.draw(st.integers(2, 3)) if levels == 2 else 2
    drafts = data.draw(st.integers(1, {2: 5 - vocabulary, 3: 2, 4: 1}[levels]))
    models = [arrays(table) for table in data.draw(distribution_levels(levels, vocabulary, 1))]
    for chain in chains(levels, drafts):
        # Under nested chains shorter texts are not drafted for.
        want = drafts + (levels - 1 if chain.semantics == "nested" else 1)
        truth = own_joint(models[-1], vocabulary, want)
        if chain.lossless:
            found = every(
                lambda luck, c=chain, n=want: sampled(c, models, RejectionJudge(luck), luck, drafts, n)
            )
            assert found == truth, chain.semantics


def test_weighing_survivors_against_the_first_drafter_is_caught():
    """Claim S5b: q1 = (1/2, 1/2), q2 = (1, 0), p = (1/2, 1/2) emits token 0 with 3/4 if the target weighs
    what survived against q1. The corrected proposal gives 1/2."""
    half, sure = (
        np.array([Fraction(1, 2)] * 2, dtype=object),
        np.array([Fraction(1), Fraction(0)], dtype=object),
    )
    models: list[Model] = [lambda text: half, lambda text: sure, lambda text: half]
    chain = Chain(("a", "b", "c"), "funnel-truncate")

    class Uncorrected(RejectionJudge):
        def settle(self, block, words):
            settled = super().settle(block, words)
            return type(settled)(settled.accepted, block.first(settled.accepted), settled.own, settled.owned)

    wrong = every(lambda luck: sampled(chain, models, Uncorrected(luck), luck, 1, 2)[:1])
    right = every(lambda luck: sampled(chain, models, RejectionJudge(luck), luck, 1, 2)[:1])
    assert wrong == {(0,): Fraction(3, 4), (1,): Fraction(1, 4)}
    assert right == {(0,): Fraction(1, 2), (1,): Fraction(1, 2)}


def test_early_emit_changes_the_distribution():
    sure0, sure1 = (np.array([Fraction(1 - t), Fraction(t)], dtype=object) for t in (0, 1))
    models: list[Model] = [lambda text: sure0, lambda text: sure0, lambda text: sure1]
    chain = Chain(("a", "b", "c"), "early-emit")
    found = every(lambda luck: sampled(chain, models, RejectionJudge(luck), luck, 1, 2))
    assert found == {(0, 1): Fraction(1)}


def greedy_models(seed: int, levels: int, vocabulary: int) -> list[Model]:
    """Deterministic next tokens that agree often: a level differs where a hash of the text says so."""

    def word(level: int, text: tuple[int, ...]) -> int:
        own = hash((seed, text[-3:])) % vocabulary
        differs = hash((seed, level, text[-2:])) % 3 == 0
        return (own + (differs and level < levels - 1)) % vocabulary

    return [lambda text, level=level: np.int32(word(level, text)) for level in range(levels)]


@pytest.mark.parametrize("levels", [2, 3, 4])
@given(seed=st.integers(0, 10**6), length=st.integers(1, 5), want=st.integers(1, 12))
@example(seed=0, length=1, want=1)
def test_greedy_text_is_the_targets_own(levels, seed, length, want):
    """Claim S4: every semantics but early-emit, for any next-token functions."""
    models = greedy_models(seed, levels, 4)
    truth: tuple[int, ...] = ()
    while len(truth) < want:
        truth += (int(models[-1](truth)),)

    for chain in chains(levels):
        if chain.lossless:
            found = decode(chain, GreedyJudge(), models, certain(models[0], length), want)
            assert found == truth, chain.semantics


def test_early_emit_changes_greedy_text():
    """Claim S4b: the smallest case, one token that the intermediate lets through and the target would not."""
    models: list[Model] = [lambda text: np.int32(0), lambda text: np.int32(0), lambda text: np.int32(1)]
    chain = Chain(("a", "b", "c"), "early-emit")
    assert decode(chain, GreedyJudge(), models, certain(models[0], 1), 2) == (0, 1)
