"""Cycles of decoding with tables in the place of models, and what drafts for them.

The cycle itself is the one that the replay and the decoder of real models follow
(:mod:`simspec.speculation.cycle`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simspec.claims.lossless.luck import EveryLuck
from simspec.claims.plain import shown
from simspec.speculation.chains import Chain
from simspec.speculation.cycle import AskDraft, AskWords, Cycle, cycle
from simspec.speculation.verify import Block, Judge, Probs
from simspec.strategies.distributions import Distribution
from simspec.strategies.models import Chances, Table, Text

# What a model says after a text: a distribution as an array of fractions, or a token.
Model = Callable[[Text], Any]
# Draft after a text at most so many tokens.
Draft = Callable[[Text, int], Block]
# The distribution of the next place, given the text and what has been drafted after it.
Place = Callable[[Text, Text], Distribution]
# The distribution of each place of a block.
Rows = Sequence[Distribution]
MakeJudge = Callable[[EveryLuck], Judge]


@dataclass(frozen=True)
class Rule:
    """How many tokens of a block are submitted, given the block and the distribution of each place.

    Attributes:
        length: the number.
        why: how it comes about, in words, for counterexamples.
    """

    length: Callable[[Text, Rows], int]
    why: Callable[[Text, Rows], str] = lambda tokens, rows: ""


@dataclass(frozen=True)
class OneByOne:
    """A drafter whose every token sees those before it."""

    model: Chances

    def place(self, text: Text, drafted: Text) -> Distribution:
        return self.model.after(text + drafted)

    def lines(self) -> tuple[str, ...]:
        return self.model.lines("the drafter", shown)


@dataclass(frozen=True)
class AtOnce:
    """A block drafter: all places are filled in one forward, none sees what is drawn at another."""

    models: tuple[Chances, ...]

    def place(self, text: Text, drafted: Text) -> Distribution:
        return self.models[len(drafted)].after(text)

    def lines(self) -> tuple[str, ...]:
        spoken = [model.lines(f"the drafter's place {i}", shown) for i, model in enumerate(self.models, 1)]
        return tuple(line for s in spoken for line in s)


def play(
    chain: Chain,
    judge: Judge,
    models: Sequence[Model],
    draft: Draft,
    text: Text,
    room: int,
    luck: EveryLuck | None = None,
) -> Cycle:
    """One cycle of a chain after ``text``.

    Args:
        models: drafter first; the drafter itself is asked through ``draft``.
        room: tokens that the text may still grow by.
        luck: is told whose turn it is.
    """
    steps = cycle(chain, judge, room, ())
    answer: object = None
    try:
        while True:
            ask = steps.send(answer)
            answer = None
            if isinstance(ask, AskDraft):
                if luck is not None:
                    luck.turn(chain, 0, ())
                answer = draft(text + tuple(ask.ahead.tolist()), ask.most)
            elif isinstance(ask, AskWords):
                seen = text + tuple(ask.ahead.tolist())
                block = tuple(ask.block.tolist())
                if luck is not None:
                    luck.turn(chain, ask.level, block)
                answer = np.array([models[ask.level](seen + block[:i]) for i in range(len(block) + 1)])
    except StopIteration as stop:
        done: Cycle = stop.value
        return done


def decode(chain: Chain, judge: Judge, models: Sequence[Model], draft: Draft, want: int) -> Text:
    """A text of ``want`` tokens, cycle by cycle."""
    text: Text = ()
    while len(text) < want:
        text += tuple(play(chain, judge, models, draft, text, want - len(text)).emitted.tolist())
    return text


def drawn(model: Model, luck: EveryLuck, length: int) -> Draft:
    """A drafter that draws at most ``length`` tokens from its distributions."""

    def draft(text: Text, most: int) -> Block:
        tokens: list[int] = []
        probs: list[Probs] = []
        for _ in range(min(length, most)):
            probs.append(model(text + tuple(tokens)))
            tokens.append(luck.pick(probs[-1]))
        return Block(np.array(tokens, dtype=np.int32), np.array(probs) if probs else None)

    return draft


def submitting(rule: Rule, place: Place, luck: EveryLuck, length: int) -> Draft:
    """Draw a block and keep what the rule submits."""

    def draft(text: Text, most: int) -> Block:
        tokens: Text = ()
        rows: list[Distribution] = []
        for _ in range(min(length, most)):
            rows.append(place(text, tokens))
            tokens += (luck.pick(np.array(rows[-1], dtype=object)),)
        kept = rule.length(tokens, rows)
        if tokens:
            luck.say(lambda: f"{kept} of {len(tokens)} submitted{rule.why(tokens, rows)}")
        return Block(np.array(tokens, dtype=np.int32), np.array(rows) if rows else None).first(kept)

    return draft


def certain(model: Model, length: int) -> Draft:
    """A drafter whose model says one token after each text: at most ``length`` of them."""

    def draft(text: Text, most: int) -> Block:
        tokens: Text = ()
        for _ in range(min(length, most)):
            tokens += (int(model(text + tokens)),)
        return Block(np.array(tokens, dtype=np.int32))

    return draft


def arrays(table: Table[Distribution]) -> Model:
    """A table of distributions as arrays of fractions, which is what the judges of a cycle take."""
    held = [np.array(value, dtype=object) for value in table.values]
    return lambda text: held[table.index(text)]
