"""How a text comes about, way by way: the sums behind a probability, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import groupby, takewhile
from typing import Any

from simspec.claims.lossless.luck import ONE, EveryLuck, every
from simspec.claims.plain import shown
from simspec.speculation.chains import Chain
from simspec.speculation.verify import Probs
from simspec.strategies.models import Text

# More ways than this are added up and not told.
MOST = 16


@dataclass(frozen=True)
class Event:
    """Something that happens on the way.

    Attributes:
        who: a model, or nobody.
        said: what, with ``{}`` for ``values``; events that say the same with other values may be told as one.
        sum: how its chance comes about; nothing where it is settled without luck.
    """

    who: str
    said: str
    values: tuple[int, ...] = ()
    sum: str = ""
    chance: Fraction = ONE

    def __str__(self) -> str:
        said = self.said.format(" or ".join(map(str, self.values)))
        return f"{said} ({self.sum})" if self.sum else said


# What happens, in order.
Way = tuple[Event, ...]


class Telling(EveryLuck):
    """Luck that remembers what it was asked."""

    def __init__(self, script: list[int]) -> None:
        super().__init__(script)
        self.told: list[Event] = []
        self.who, self.drafting, self.heard = "", False, True
        self.block: Text = ()
        self.place = 0

    def turn(self, chain: Chain, level: int, block: Text) -> None:
        top = len(chain.levels) - 1
        self.who = chain.levels[level]
        self.drafting, self.block, self.place = level == 0, block, 0
        # Nobody sees the own token of an intermediate that passes on its survivors alone.
        self.heard = level in (0, top) or chain.semantics not in ("funnel-truncate", "early-emit")

    def say(self, what: Callable[[], str]) -> None:
        self.told.append(Event("", what().replace("{", "{{").replace("}", "}}")))

    def happens(self, part: Any, whole: Any) -> bool:
        did = super().happens(part, whole)
        chance = min(ONE, Fraction(part) / Fraction(whole))
        sum_ = f"min(1, {part} / {_bracketed(whole)}) = {chance}"
        if not did:
            chance, sum_ = 1 - chance, f"1 - {sum_.split(' = ')[0]} = {1 - chance}"
        token = self.block[self.place]
        self.place += 1
        said = f"lets {token} through" if did else f"refuses {token}"
        self.told.append(Event(self.who, said, (), sum_, chance))
        return did

    def pick(self, probs: Probs) -> int:
        token = super().pick(probs)
        if self.heard:
            chance = Fraction(probs[token])
            said = "drafts {}" if self.drafting else f"draws {{}} from {shown(probs)}"
            self.told.append(Event(self.who, said, (token,), str(chance), chance))
        return token

    def befalls(self, chance: Fraction) -> bool:
        did = super().befalls(chance)
        held = chance if did else 1 - chance
        said = "the fault shows" if did else "the fault does not show"
        self.told.append(Event("", said, (), str(held), held))
        return did


def _bracketed(number: Any) -> str:
    return f"({number})" if "/" in str(number) else str(number)


def ways_to(run: Callable[[EveryLuck], Text], end: Text) -> tuple[str, ...]:
    """The ways on which ``run`` comes to ``end``, a line each with its probability, and their sum."""

    latest: list[Telling] = []

    def made(script: list[int]) -> Telling:
        latest[:] = [Telling(script)]
        return latest[0]

    def path(luck: EveryLuck) -> tuple[Way, bool]:
        reached = run(luck) == end
        return tuple(latest[0].told), reached

    found = every(path, made)
    ways = sorted(_ways([(way, hit, weight) for (way, hit), weight in found.items()]), key=_chance)[::-1]
    if not ways:
        return ("- in none: 0",)
    lines = [f"- {_told(way)}: {_product(way)}" for way in ways[:MOST]]
    if len(ways) > MOST:
        rest = sum(map(_chance, ways[MOST:]), Fraction(0))
        lines.append(f"- in {len(ways) - MOST} other ways, together: {rest}")
    if len(ways) > 1:
        shares = [*map(_chance, ways[:MOST])] + ([rest] if len(ways) > MOST else [])
        lines.append(f"together {' + '.join(map(str, shares))} = {sum(shares, Fraction(0))}")
    return tuple(lines)


def _chance(way: Way) -> Fraction:
    return reduce(lambda product, event: product * event.chance, way, ONE)


def _told(way: Way) -> str:
    """What happens, whoever does it named once for what follows at a stretch."""
    parts: list[str] = []
    for who, stretch in groupby(way, key=lambda event: event.who):
        did = ", ".join(map(str, stretch))
        parts.append(f"{who} {did}" if who else did)
    return "; ".join(parts)


def _product(way: Way) -> str:
    chances = [event.chance for event in way if event.chance != 1]
    if len(chances) < 2:
        return str(_chance(way))
    return f"{' x '.join(map(str, chances))} = {_chance(way)}"


def _ways(paths: Sequence[tuple[Way, bool, Fraction]]) -> tuple[Way, ...]:
    """The ways that reach their end; what no longer matters on a way is left out, what is alike is one."""
    reached = [path for path in paths if path[1]]
    if not reached:
        return ()
    if len(reached) == len(paths):
        # What they share shows how they came here; what tells them apart no longer matters.
        columns = zip(*(way for way, _, _ in paths), strict=False)
        return (tuple(column[0] for column in takewhile(lambda c: len({*c}) == 1, columns)),)
    later: dict[Event, list[tuple[Way, bool, Fraction]]] = {}
    for way, hit, weight in paths:
        if not way:
            raise ValueError("luck that nobody told of decides what comes out")
        later.setdefault(way[0], []).append((way[1:], hit, weight))
    merged: dict[tuple[str, str, tuple[Way, ...]], Event] = {}
    for event, rest in later.items():
        ways = _ways(rest)
        key = event.who, event.said, ways
        one = merged.get(key)
        if one is not None and event.values:
            chance = one.chance + event.chance
            before = one.sum.split(" = ")[0]
            event = replace(
                one,
                values=one.values + event.values,
                chance=chance,
                sum=f"{before} + {event.sum} = {chance}",
            )
        merged[key] = event
    return tuple((event, *way) for (_, _, ways), event in merged.items() for way in ways)
