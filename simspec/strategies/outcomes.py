"""Everything that a cycle of a chain can do, with its probability; as fractions.

The rules of a cycle are run on every outcome of every place that they look at, for the pools of
:mod:`simspec.strategies.chains`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from simspec.speculation.chains import Chain
from simspec.speculation.cycle import AskDraft, AskWords, cycle
from simspec.speculation.verify import Block, GreedyJudge
from simspec.strategies.chains import Plan, Pool, Semantics, Words


@dataclass(frozen=True)
class Done:
    """What a cycle did: tokens drafted; each verifier's forwards as (level, width); tokens emitted."""

    drafted: int
    forwards: tuple[tuple[int, int], ...]
    emitted: int


@dataclass(frozen=True)
class Expected:
    """Exact expectations over all outcomes of a cycle.

    Attributes:
        seconds, tokens: of a cycle, tokens being those emitted.
        forwards: of each level in a cycle; the drafter's are of one token.
        passed: tokens that each level hands to the level above it in a cycle; the target's are ``tokens``.
    """

    seconds: Fraction
    tokens: Fraction
    forwards: tuple[Fraction, ...]
    passed: tuple[Fraction, ...]

    @property
    def seconds_per_token(self) -> Fraction:
        """In the long run: cycles follow one another independently (renewal reward)."""
        return self.seconds / self.tokens


def expected(pool: Pool, plan: Plan, semantics: Semantics) -> Expected:
    """What a cycle of a chain takes and gives, by running it on every outcome of every place."""
    law = pool.among(plan.models)
    said = tuple(words for words, _ in law)
    # How likely the words of the first few models are, for any number of them.
    begins: dict[Words, Fraction] = {}
    for words, p in law:
        for n in range(1, len(words) + 1):
            begins[words[:n]] = begins.get(words[:n], Fraction(0)) + p
    found = outcomes(said, semantics if len(plan.models) > 2 else "funnel-truncate", plan.drafts, plan.rounds)
    levels = [pool.levels[m] for m in plan.models]
    seconds = tokens = Fraction(0)
    read, runs = [Fraction(0)] * len(levels), [Fraction(0)] * len(levels)
    for done, ways in found.items():
        chance = Fraction(0)
        for places, times in ways.items():
            one = Fraction(times)
            for words in places:
                one *= begins[words]
            chance += one
        seconds += chance * (done.drafted * levels[0].forward(1))
        tokens += chance * done.emitted
        runs[0] += chance * done.drafted
        for level, width in done.forwards:
            seconds += chance * levels[level].forward(width)
            read[level] += chance * (width - 1)
            runs[level] += chance
    return Expected(seconds, tokens, tuple(runs), (*read[1:], tokens))


# What was done -> the ways to it, and how many there are of each: for every place that was looked at, the
# words of as many models as were asked for.
Ways = dict[Done, Counter[tuple[Words, ...]]]


@cache
def outcomes(said: tuple[Words, ...], semantics: Semantics, drafts: int, rounds: int) -> Ways:
    """All that a cycle can do where each place says one of ``said``, with the ways to it."""
    found: Ways = {}
    script: list[int] = []
    while True:
        places = _Places(said, script)
        if semantics == "rounds":
            done = _by_rounds(places, drafts, rounds)
        else:
            levels = tuple(map(str, range(len(said[0]))))
            inner = len(levels) > 2 and semantics == "nested"
            collect = (rounds * (drafts + 1),) * (len(levels) - 2) if inner else ()
            done = _by_cycle(Chain(levels, semantics, collect), places, drafts)
        found.setdefault(done, Counter())[tuple(sorted(places.heard.values()))] += 1
        script = places.script
        while script and script[-1] + 1 == places.open[len(script) - 1]:
            script.pop()
        if not script:
            return found
        script[-1] += 1


class _Places:
    """The words at each place, settled only when a cycle asks: by script, then the first possible one.

    A model's word needs those of the models below it, so what has been heard at a place is the
    beginning of a pattern.
    """

    def __init__(self, said: tuple[Words, ...], script: list[int]) -> None:
        self.said, self.script = said, script
        self.open: list[int] = []  # how many choices each decision had
        self.heard: dict[int, Words] = {}

    def word(self, place: int, model: int) -> int:
        heard = self.heard.get(place, (0,))
        while len(heard) <= model:
            able = sorted({w[len(heard)] for w in self.said if w[: len(heard)] == heard})
            if len(self.open) == len(self.script):
                self.script.append(0)
            heard += (able[self.script[len(self.open)]],)
            self.open.append(len(able))
        self.heard[place] = max(heard, self.heard.get(place, ()), key=len)
        return heard[model]


def _by_cycle(chain: Chain, places: _Places, drafts: int) -> Done:
    """One cycle by the rules that the simulator and the decoder share."""
    room = drafts + sum(chain.collect) + len(chain.levels) + 1
    steps = cycle(chain, GreedyJudge(), room, ())
    drafted, forwards = 0, []
    answer: Any = None
    try:
        while True:
            ask = steps.send(answer)
            answer = None
            if isinstance(ask, AskDraft):
                # The lowest model's word is 0 by the way patterns are numbered.
                answer = Block(np.zeros(min(drafts, ask.most), dtype=np.int32))
                drafted += len(answer)
            elif isinstance(ask, AskWords):
                forwards.append((ask.level, len(ask.block) + 1))
                answer = _words(places, ask)
    except StopIteration as stop:
        return Done(drafted, tuple(forwards), len(stop.value.emitted))


def _words(places: _Places, ask: AskWords) -> np.ndarray[Any, np.dtype[np.int32]]:
    """A verifier's words up to the first that is not the block's; else to one past its end."""
    found: list[int] = []
    for i in range(len(ask.block) + 1):
        found.append(places.word(len(ask.ahead) + i, ask.level))
        if i < len(ask.block) and found[i] != ask.block[i]:
            break
    return np.array(found, dtype=np.int32)


def _by_rounds(places: _Places, drafts: int, rounds: int) -> Done:
    """A cycle as CS-Drafting counts it: the target reads what ``rounds`` rounds of two models made."""
    made = 0
    for _ in range(rounds):
        kept = 0
        while kept < drafts and places.word(made + kept, 1) == 0:
            kept += 1
        made += kept + 1  # and the middle's own token
    accepted = 0
    while accepted < made and places.word(accepted, 2) == places.word(accepted, 1):
        accepted += 1
    forwards = ((1, drafts + 1),) * rounds + ((2, made + 1),)
    return Done(rounds * drafts, forwards, accepted + 1)
