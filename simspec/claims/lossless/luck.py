"""Every outcome of random choices, with its exact weight."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from simspec.speculation.chains import Chain
from simspec.speculation.verify import Probs
from simspec.strategies.models import Text

Outcome = TypeVar("Outcome", bound=Hashable)

ONE = Fraction(1)


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

    def befalls(self, chance: Fraction) -> bool:
        """A fault of that probability: part of a broken judge, not of the decoding."""
        return bool(self.choose([(1, chance), (0, 1 - chance)]))

    # For whoever tells the story; luck itself need not know who asks it.

    def turn(self, chain: Chain, level: int, block: Text) -> None:
        """What is asked from here on is asked by the model at ``level``, about ``block``."""

    def say(self, what: Callable[[], str]) -> None:
        """Something that is settled without luck."""


MakeLuck = Callable[[list[int]], EveryLuck]


def every(run: Callable[[EveryLuck], Outcome], made: MakeLuck = EveryLuck) -> dict[Outcome, Fraction]:
    """The distribution of what ``run`` returns, over all luck."""
    found: dict[Outcome, Fraction] = {}
    script: list[int] = []
    while True:
        luck = made(script)
        out = run(luck)
        found[out] = found.get(out, Fraction(0)) + luck.weight
        script = luck.script[: luck.at]
        while script and script[-1] + 1 >= luck.open[len(script) - 1]:
            script.pop()
        if not script:
            return found
        script[-1] += 1
