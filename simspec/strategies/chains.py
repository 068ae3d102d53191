"""Pools of models to make chains from: what their forwards cost and how often they agree; as fractions.

At each place of a text some of the models say the same token and some do not. Which ones is all that
greedy decoding sees of them, and it is written as a tuple of words: (0, 0, 1) is a place where the first
two models agree and the third does not. A law gives each pattern its probability; places are independent
and alike. From it follows every pairwise acceptance rate, and with
:func:`simspec.strategies.outcomes.expected` everything that a cycle of any chain of the pool can do, by
running the rules of a cycle on every outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from math import ceil
from typing import Literal

from hypothesis import strategies as st

from simspec.strategies.survivals import chances

# Which models say the same at a place; numbered in the order of their first appearance.
Words = tuple[int, ...]
Law = tuple[tuple[Words, Fraction], ...]

# What an intermediate passes upward. ``rounds`` is CS-Drafting's: the target reads what a fixed number of
# rounds below it made; ``nested`` is the decoder's: rounds until a fixed number of tokens is there.
Semantics = Literal["funnel-truncate", "funnel-replace", "nested", "rounds"]

# As a share of a model's time, below what any clock tells apart.
NEAR = Fraction(1, 10**7)


def patterns(models: int) -> tuple[Words, ...]:
    """Every way in which so many models can agree at a place: the partitions of a set."""
    found: list[Words] = [(0,)]
    for _ in range(models - 1):
        found = [(*words, w) for words in found for w in range(max(words) + 2)]
    return tuple(found)


def renumbered(words: Words) -> Words:
    """The same agreement, numbered in the order of first appearance."""
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(w, len(seen)) for w in words)


def independent(rates: tuple[Fraction, ...], outer: Fraction = Fraction(0)) -> Law:
    """Whether each model says what the one below it says: independent from pair to pair.

    Args:
        rates: of adjacent pairs, drafter first.
        outer: where both pairs of three models part, the share of places at which the outer two agree
            against the middle one; independence leaves it open. 0 for other numbers of models.
    """
    law: Counter[Words] = Counter()
    for same in product((True, False), repeat=len(rates)):
        chance, words = Fraction(1), [0]
        for a, rate in zip(same, rates, strict=True):
            chance *= rate if a else 1 - rate
            words.append(words[-1] if a else max(words) + 1)
        law[tuple(words)] += chance  # type: ignore[assignment]
    if len(rates) == 2:
        apart = Fraction(law.pop((0, 1, 2)))
        law[(0, 1, 0)], law[(0, 1, 2)] = apart * outer, apart * (1 - outer)  # type: ignore[assignment]
    elif outer:
        raise ValueError("outer agreement is for three models")
    return tuple(sorted((words, Fraction(p)) for words, p in law.items() if p))


@dataclass(frozen=True)
class Level:
    """A model's forward over n tokens: ``seconds`` + ``slope`` for each further ``tread`` tokens begun."""

    seconds: Fraction
    slope: Fraction = Fraction(0)
    tread: int = 1

    def __post_init__(self) -> None:
        if self.seconds <= 0 or self.slope < 0 or self.tread < 1:
            raise ValueError(f"a forward takes time, and more for more tokens, not {self}")

    def forward(self, width: Fraction | int) -> Fraction:
        """Without treads a width may be a mean, and need not be whole."""
        more = Fraction(width) - 1
        return self.seconds + self.slope * (more if self.tread == 1 else ceil(more / self.tread))


@dataclass(frozen=True)
class Pool:
    """Models, the target last, and the law of their words at a place."""

    levels: tuple[Level, ...]
    law: Law

    def __post_init__(self) -> None:
        if any(len(w) != len(self.levels) or renumbered(w) != w or p <= 0 for w, p in self.law):
            raise ValueError(f"a law gives patterns of {len(self.levels)} words a probability: {self.law}")
        if sum(p for _, p in self.law) != 1 or len({w for w, _ in self.law}) != len(self.law):
            raise ValueError(f"the probabilities of different patterns sum to 1: {self.law}")

    def rate(self, one: int, other: int) -> Fraction:
        """How often two models say the same: alpha."""
        return sum((p for w, p in self.law if w[one] == w[other]), Fraction(0))

    def among(self, models: tuple[int, ...]) -> Law:
        """The law of these models alone."""
        found: dict[Words, Fraction] = {}
        for words, p in self.law:
            seen = renumbered(tuple(words[m] for m in models))
            found[seen] = found.get(seen, Fraction(0)) + p
        return tuple(sorted(found.items()))


@dataclass(frozen=True, order=True)
class Plan:
    """A chain of a pool's models, by number, and how long it drafts.

    Attributes:
        drafts: tokens that the lowest model drafts, 0 for the target alone.
        rounds: rounds below the target for ``rounds``; for ``nested`` the middle collects as many tokens as
            so many rounds make when everything is accepted, rounds (drafts + 1).
    """

    models: tuple[int, ...]
    drafts: int
    rounds: int = 1

    def __str__(self) -> str:
        chain = " > ".join(f"M{m + 1}" for m in self.models)
        return f"{chain}, {self.drafts} drafted" if self.drafts else f"{chain} alone"


def all_plans(models: int, longest: int, rounds: int = 1, deepest: int = 4) -> list[Plan]:
    """The target alone and every ascending chain below it, 1 to ``longest`` drafted; short ones first."""
    target = models - 1
    found = [Plan((target,), 0)]
    for below in range(1, min(models, deepest)):
        for chosen in combinations(range(target), below):
            for drafts in range(1, longest + 1):
                counts = range(1, (rounds if below == 2 else 1) + 1)
                found += [Plan((*chosen, target), drafts, n) for n in counts]
    return found


# Strategies


@st.composite
def laws(draw: st.DrawFn, models: int = 3, *, correlated: bool = True) -> Law:
    """Laws of agreement: independent pairs, with rates of 0 and 1 and equal ones; or any law at all."""
    kind = draw(
        st.sampled_from(["independent", "alike", "correlated"] if correlated else ["independent", "alike"])
    )
    if kind == "correlated":
        every = patterns(models)
        # Of four models' 15 patterns at most 6, to keep what a cycle can do within bounds.
        some = draw(st.lists(st.sampled_from(every), min_size=1, max_size=6, unique=True))
        weights = draw(st.lists(st.integers(1, 6), min_size=len(some), max_size=len(some)))
        return tuple(sorted((w, Fraction(n, sum(weights))) for w, n in zip(some, weights, strict=True)))
    count = models - 1
    if kind == "alike":
        rates = (draw(chances(6)),) * count
    else:
        rates = tuple(draw(st.lists(chances(6), min_size=count, max_size=count)))
    outer = draw(st.sampled_from([Fraction(0), Fraction(1), Fraction(1, 2)])) if count == 2 else Fraction(0)
    return independent(rates, outer)


@st.composite
def pools(
    draw: st.DrawFn, models: int = 3, *, correlated: bool = True, widths: bool = True, steps: bool = True
) -> Pool:
    """Pools of models.

    Times from tiny to longer than the target's, and ones that are equal but for a hair; agreement as from
    :func:`laws`, so that perfect and worthless models are among them.

    Args:
        correlated: laws in which agreement is not independent from pair to pair.
        widths: forwards that take longer for more tokens; ``steps``: also in steps, not only by the token.
    """
    levels = [Level(draw(_amounts(1))) for _ in range(models)]
    if draw(st.booleans()):
        which = draw(st.integers(0, models - 2))
        levels[which] = Level(levels[-1].seconds * (1 + draw(st.sampled_from([0, -1, 1])) * NEAR))
    if widths:
        treads = st.sampled_from([1, 1, 2] if steps else [1])
        levels = [replace(v, slope=draw(_amounts(0)), tread=draw(treads)) for v in levels]
    return Pool(tuple(levels), draw(laws(models, correlated=correlated)))


def _amounts(least: int) -> st.SearchStrategy[Fraction]:
    return st.builds(Fraction, st.integers(least, 12), st.sampled_from([1, 1, 2, 8]))


def plans(models: int, longest: int = 3, rounds: int = 1) -> st.SearchStrategy[Plan]:
    """One of :func:`all_plans`."""
    return st.sampled_from(all_plans(models, longest, rounds))


def all_pools(models: int, most: int, rates: tuple[Fraction, ...]) -> Iterator[Pool]:
    """Pools whose forwards take 1 .. ``most`` whatever their width, with independent agreement.

    Those whose times sum to least come first. Where two of three models' rates leave it open, the
    outer two agree as seldom and as often as can be.
    """
    times = sorted(product(range(1, most + 1), repeat=models), key=lambda t: (sum(t), t))
    for seconds in times:
        levels = tuple(Level(Fraction(s)) for s in seconds)
        for chosen in product(rates, repeat=models - 1):
            yield Pool(levels, independent(chosen))
            if len(chosen) == 2 and max(chosen) < 1:
                yield Pool(levels, independent(chosen, Fraction(1)))
