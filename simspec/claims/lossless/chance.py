"""Every outcome of random choices, with its exact weight.

A cycle of speculative sampling asks for luck a few times. Run with every possible luck in turn, it gives
the exact distribution of what it emits; cycles follow one another given the text alone, so the
distribution of a whole text follows cycle by cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, TypeVar

import numpy as np

from simspec.claims.base import Plot
from simspec.claims.plain import shown
from simspec.speculation.chains import Chain
from simspec.speculation.cycle import AskDraft, AskWords, Cycle, cycle
from simspec.speculation.verify import Block, Judge, Luck, Probs
from simspec.strategies.distributions import Distribution
from simspec.strategies.models import Chances, Table, Text

# The distribution of a text.
Texts = dict[Text, Fraction]
Outcome = TypeVar("Outcome", bound=Hashable)
# What a model says after a text: a distribution as an array of fractions, or a token.
Model = Callable[[Text], Any]
# Draft after a text at most so many tokens.
Draft = Callable[[Text, int], Block]
# How many tokens of a block are submitted, given the block and the distribution of each of its places.
Rule = Callable[[Text, Sequence[Distribution]], int]
# The distribution of the next place, given the text and what has been drafted after it.
Place = Callable[[Text, Text], Distribution]
# What is known between cycles apart from the text, such as a length rule's state.
State = Hashable
# One cycle with some luck, given text, state and room: the tokens it emits and the state after it.
Step = Callable[[Luck, Text, State, int], tuple[Text, State]]

ONE = Fraction(1)

# The exact notion of "lossless" under sampling.
LOSSLESS = "P(first n tokens = x_1 .. x_n) = prod p(x_i | x_1 .. x_{i-1}) for every n"


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


class EveryLuck:
    """Luck by a script of choices; what runs past the script is noted, so that all scripts can be tried."""

    def __init__(self, script: list[int]) -> None:
        self.script, self.at = script, 0
        self.weight = ONE
        self.open: list[int] = []  # how many choices each decision had

    def choose(self, chances: Sequence[tuple[int, Fraction]]) -> int:
        """One of (value, probability); those of probability 0 are none."""
        able = [(value, chance) for value, chance in chances if chance]
        if self.at == len(self.script):
            self.script.append(0)
        if self.at >= len(self.open):
            self.open.append(len(able))
        value, chance = able[self.script[self.at]]
        self.at += 1
        if len(able) > 1:
            self.weight *= chance
        return value

    def happens(self, part: Any, whole: Any) -> bool:
        """Something of probability min(1, part / whole)."""
        if part >= whole:
            return bool(self.choose([(1, ONE)]))
        chance = Fraction(part) / Fraction(whole)
        return bool(self.choose([(1, chance), (0, 1 - chance)]))

    def pick(self, probs: Probs) -> int:
        """A token drawn from a distribution."""
        return self.choose([(token, Fraction(p)) for token, p in enumerate(probs)])


def every(run: Callable[[EveryLuck], Outcome]) -> dict[Outcome, Fraction]:
    """The distribution of what ``run`` returns, over all luck."""
    found: dict[Outcome, Fraction] = {}
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


def play(chain: Chain, judge: Judge, models: Sequence[Model], draft: Draft, text: Text, room: int) -> Cycle:
    """One cycle of a chain after ``text``.

    Args:
        models: drafter first; the drafter itself is asked through ``draft``.
        room: tokens that the text may still grow by.
    """
    steps = cycle(chain, judge, room, ())
    answer: object = None
    try:
        while True:
            ask = steps.send(answer)
            answer = None
            if isinstance(ask, AskDraft):
                answer = draft(text + tuple(ask.ahead.tolist()), ask.most)
            elif isinstance(ask, AskWords):
                seen = text + tuple(ask.ahead.tolist())
                block = tuple(ask.block.tolist())
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


def drawn(model: Model, luck: Luck, length: int) -> Draft:
    """A drafter that draws at most ``length`` tokens from its distributions."""

    def draft(text: Text, most: int) -> Block:
        tokens: list[int] = []
        probs: list[Probs] = []
        for _ in range(min(length, most)):
            probs.append(model(text + tuple(tokens)))
            tokens.append(luck.pick(probs[-1]))
        return Block(np.array(tokens, dtype=np.int32), np.array(probs) if probs else None)

    return draft


def submitting(rule: Rule, place: Place, luck: Luck, length: int) -> Draft:
    """Draw a block and keep what the rule submits."""

    def draft(text: Text, most: int) -> Block:
        tokens: Text = ()
        rows: list[Distribution] = []
        for _ in range(min(length, most)):
            rows.append(place(text, tokens))
            tokens += (luck.pick(np.array(rows[-1], dtype=object)),)
        kept = rule(tokens, rows)
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


def _step(step: Step, text: Text, state: State, room: int, luck: Luck) -> tuple[Text, State]:
    return step(luck, text, state, room)


def joint(step: Step, want: int, state: State = None) -> Texts:
    """The distribution of texts of ``want`` tokens made by cycles that begin with ``state``.

    A cycle's luck is its own, so what it does depends on the past through text and state alone.
    """
    at: list[dict[tuple[Text, State], Fraction]] = [{} for _ in range(want + 1)]
    at[0][(), state] = ONE
    for here in at[:want]:
        for (text, before), weight in here.items():
            room = want - len(text)
            for (emitted, after), chance in every(partial(_step, step, text, before, room)).items():
                longer = text + emitted
                there = at[len(longer)]
                there[longer, after] = there.get((longer, after), Fraction(0)) + weight * chance
    found: Texts = {}
    for (text, _), weight in at[want].items():
        found[text] = found.get(text, Fraction(0)) + weight
    return found


def own_joint(model: Model, vocabulary: int, want: int) -> Texts:
    """The distribution of a model's own texts: the product of its words along the text; no zeros."""
    found: Texts = {}
    for text in product(range(vocabulary), repeat=want):
        chance = ONE
        for i, token in enumerate(text):
            chance *= Fraction(model(text[:i])[token])
        if chance:
            found[text] = chance
    return found


def beginnings(texts: Texts, length: int) -> Texts:
    """The distribution of the first ``length`` tokens."""
    found: Texts = {}
    for text, weight in texts.items():
        found[text[:length]] = found.get(text[:length], Fraction(0)) + weight
    return found


def difference(found: Texts, truth: Texts) -> tuple[str, ...]:
    """Where two distributions over texts first part, in words; nothing where they are the same.

    Shortest beginnings first, so that a reader sees the simplest of the probabilities that differ.
    """
    want = max(map(len, (*found, *truth)))
    for length in range(1, want + 1):
        here, there = beginnings(found, length), beginnings(truth, length)
        for text in sorted({*here, *there}):
            ours, theirs = here.get(text, Fraction(0)), there.get(text, Fraction(0))
            if ours != theirs:
                said = " ".join(map(str, text))
                return (
                    f"the text begins with {said} with probability {ours}; the target's own with {theirs}",
                )
    return ()


def first_tokens(found: Texts, own: Texts, vocabulary: int) -> Plot:
    """The distributions of the first token: of what comes out and of the target."""
    ours, theirs = beginnings(found, 1), beginnings(own, 1)
    tokens = range(vocabulary)
    return Plot(
        "First token of the text",
        "bars",
        "token",
        "probability",
        tuple(map(str, tokens)),
        {
            "the target's own": tuple(float(theirs.get((t,), 0)) for t in tokens),
            "what comes out": tuple(float(ours.get((t,), 0)) for t in tokens),
        },
    )
