"""Chains lose nothing: greedily for any models, and by rejection sampling exactly, all luck enumerated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simspec.speculation.chains import DECODED_SEMANTICS, Chain
from simspec.speculation.cycle import AskDraft, AskWords, Tell, cycle
from simspec.speculation.verify import Block, GreedyJudge, Judge, RejectionJudge

# A model of the laws: the distribution after a text, as fractions.
Model = Callable[[tuple[int, ...]], np.ndarray]


class EveryLuck:
    """Luck by a script of choices; what it runs past is noted, so that all scripts can be tried."""

    def __init__(self, script: list[int]) -> None:
        self.script, self.at = script, 0
        self.weight = Fraction(1)
        self.open: list[int] = []  # choices that were possible at each decision beyond the script

    def choose(self, chances: list[tuple[int, Fraction]]) -> int:
        """One of (value, probability); those of probability 0 are none."""
        able = [(value, chance) for value, chance in chances if chance]
        if self.at == len(self.script):
            self.script.append(0)
        if self.at >= len(self.open):
            self.open.append(len(able))
        value, chance = able[self.script[self.at]]
        self.at += 1
        self.weight *= chance
        return value

    def happens(self, part, whole) -> bool:
        chance = min(Fraction(1), Fraction(part) / Fraction(whole))
        return bool(self.choose([(1, chance), (0, 1 - chance)]))

    def pick(self, probs) -> int:
        return self.choose([(token, Fraction(p)) for token, p in enumerate(probs)])


def every(run: Callable[[EveryLuck], tuple[int, ...]]) -> dict[tuple[int, ...], Fraction]:
    """The distribution of what ``run`` returns, over all luck."""
    found: dict[tuple[int, ...], Fraction] = {}
    script: list[int] = []
    while True:
        luck = EveryLuck(script)
        out = run(luck)
        found[out] = found.get(out, Fraction(0)) + luck.weight
        script = luck.script[: luck.at]
        while script and script[-1] + 1 >= luck.open[len(script) - 1]:
            script.pop()
        if not script:
            return found
        script[-1] += 1


def decode(chain: Chain, models: list[Model], judge: Judge, luck, length: int, want: int) -> tuple[int, ...]:
    """Text of ``want`` tokens by cycles of the chain; drafts of ``length`` tokens drawn with ``luck``."""
    text: tuple[int, ...] = ()
    while len(text) < want:
        steps = cycle(chain, judge, want - len(text), ())
        answer: object = None
        try:
            while True:
                match steps.send(answer):
                    case AskDraft(ahead, most):
                        tokens: list[int] = []
                        probs = []
                        for _ in range(min(length, most)):
                            p = models[0](text + tuple(int(t) for t in ahead) + tuple(tokens))
                            tokens.append(luck.pick(p))
                            probs.append(p)
                        drawn = np.stack(probs) if probs else None
                        answer = Block(np.array(tokens, dtype=np.int32), drawn)
                    case AskWords(level, ahead, block):
                        seen = text + tuple(int(t) for t in ahead)
                        answer = np.stack(
                            [
                                models[level](seen + tuple(int(t) for t in block[:i]))
                                for i in range(len(block) + 1)
                            ]
                        )
                    case Tell():
                        answer = None
        except StopIteration as stop:
            text += tuple(int(t) for t in stop.value.emitted)
    return text


def target_distribution(model: Model, vocabulary: int, want: int) -> dict[tuple[int, ...], Fraction]:
    found = {}
    for text in product(range(vocabulary), repeat=want):
        chance = Fraction(1)
        for i, token in enumerate(text):
            chance *= model(text[:i])[token]
        if chance:
            found[text] = chance
    return found


def chains(levels: int) -> Iterator[Chain]:
    names = tuple("abcd"[:levels])
    if levels < 3:
        yield Chain(names, "none")
        return
    for semantics in DECODED_SEMANTICS:
        yield Chain(names, semantics, (2,) * (levels - 2) if semantics == "nested" else ())


@st.composite
def tables(draw, vocabulary: int, levels: int, depth: int) -> list[Model]:
    """Models whose distribution depends on the text's last token and its length, on a grid of quarters."""

    def distribution() -> np.ndarray:
        cuts = sorted(draw(st.lists(st.integers(0, 4), min_size=vocabulary - 1, max_size=vocabulary - 1)))
        ends = [0, *cuts, 4]
        return np.array([Fraction(b - a, 4) for a, b in pairwise(ends)], dtype=object)

    made = []
    for _ in range(levels):
        held = {(n, t): distribution() for n in range(depth) for t in range(vocabulary)}
        made.append(lambda text, held=held: held[len(text), text[-1] if text else 0])
    return made


@pytest.mark.parametrize("levels", [2, 3, 4])
@given(data=st.data())
def test_rejection_sampling_keeps_the_targets_distribution_exactly(levels, data):
    """Claims S5, S5c: every semantics but early-emit, every chance enumerated, in fractions."""
    vocabulary = data.draw(st.integers(2, 3)) if levels == 2 else 2
    want = 3 if levels == 2 else 2
    models = data.draw(tables(vocabulary, levels, want + 4))
    truth = target_distribution(models[-1], vocabulary, want)
    for chain in chains(levels):
        if chain.lossless:
            found = every(lambda luck, c=chain: decode(c, models, RejectionJudge(luck), luck, 2, want))
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

    wrong = every(lambda luck: decode(chain, models, Uncorrected(luck), luck, 1, 2)[:1])
    right = every(lambda luck: decode(chain, models, RejectionJudge(luck), luck, 1, 2)[:1])
    assert wrong == {(0,): Fraction(3, 4), (1,): Fraction(1, 4)}
    assert right == {(0,): Fraction(1, 2), (1,): Fraction(1, 2)}


def test_early_emit_changes_the_distribution():
    sure0, sure1 = (np.array([Fraction(1 - t), Fraction(t)], dtype=object) for t in (0, 1))
    models: list[Model] = [lambda text: sure0, lambda text: sure0, lambda text: sure1]
    chain = Chain(("a", "b", "c"), "early-emit")
    found = every(lambda luck: decode(chain, models, RejectionJudge(luck), luck, 1, 2))
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

    class Sure:
        """Greedy drafting: a model's one token."""

        def pick(self, token) -> int:
            return int(token)

    for chain in chains(levels):
        if chain.lossless:
            assert decode_greedy(chain, models, Sure(), length, want) == truth, chain.semantics


def decode_greedy(chain: Chain, models: list[Model], sure, length: int, want: int) -> tuple[int, ...]:
    class NoProbs(GreedyJudge):
        def settle(self, block, words):
            return super().settle(Block(block.tokens), words.astype(np.int32))

    return decode(chain, models, NoProbs(), sure, length, want)


def test_early_emit_changes_greedy_text():
    """Claim S4b: the smallest case, one token that the intermediate lets through and the target would not."""
    models: list[Model] = [lambda text: np.int32(0), lambda text: np.int32(0), lambda text: np.int32(1)]

    class Sure:
        def pick(self, token) -> int:
            return int(token)

    chain = Chain(("a", "b", "c"), "early-emit")
    assert decode_greedy(chain, models, Sure(), 1, 2) == (0, 1)
