"""Chains with rejection sampling: the cases of claims about their texts.

Lossless means: for every n, the joint distribution of the first n tokens of the emitted text is the
target's own, prod p(x_i | x_1 .. x_{i-1}). Every outcome of every draw and of every refusal is
enumerated with its weight, in fractions, through the cycle that the decoder of real models follows
(simspec.speculation.cycle and verify).

p = the target's distribution, q1 = the drafter's, q2 = an intermediate's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import Outcome, Plot, against
from simspec.claims.lossless.chance import (
    State,
    Texts,
    arrays,
    difference,
    drawn,
    first_tokens,
    joint,
    own_joint,
    play,
)
from simspec.claims.plain import shown
from simspec.speculation.chains import Chain, Semantics
from simspec.speculation.verify import Judge, Luck, RejectionJudge
from simspec.strategies.distributions import all_distributions, normalised
from simspec.strategies.models import Chances, Table, Text, all_next_distributions, distribution_levels

MakeJudge = Callable[[Luck], Judge]


@dataclass(frozen=True)
class Case:
    """A text of ``want`` tokens by a chain; the drafter draws ``length`` tokens a cycle.

    Attributes:
        models: distributions after each text, drafter first, target last.
        collect: for nested chains, tokens that each intermediate collects.
    """

    semantics: Semantics
    length: int
    want: int
    models: tuple[Chances, ...]
    collect: tuple[int, ...] = ()

    @property
    def chain(self) -> Chain:
        names = tuple(f"M{i}" for i in range(1, len(self.models) + 1))
        return Chain(names, self.semantics, self.collect)

    @property
    def own(self) -> Texts:
        """The target's own texts."""
        return own_joint(arrays(self.models[-1]), self.models[-1].vocabulary, self.want)

    def lines(self) -> tuple[str, ...]:
        names = [f"M{i}" for i in range(1, len(self.models) + 1)]
        names[0], names[-1] = f"{names[0]} (drafter)", f"{names[-1]} (target)"
        spoken = [model.lines(name, shown) for name, model in zip(names, self.models, strict=True)]
        tokens = "1 token" if self.length == 1 else f"{self.length} tokens"
        return (
            f"{self.semantics}, {tokens} drafted a cycle, a text of {self.want}; probabilities of token 0, "
            "1, ...",
            *(line for s in spoken for line in s),
        )


def texts_of(case: Case, judged: MakeJudge = RejectionJudge) -> Texts:
    """The exact distribution of what comes out."""
    models = [arrays(model) for model in case.models]
    chain = case.chain

    def step(luck: Luck, text: Text, state: State, room: int) -> tuple[Text, State]:
        done = play(chain, judged(luck), models, drawn(models[0], luck, case.length), text, room)
        return tuple(done.emitted.tolist()), state

    return joint(step, case.want)


def lossless(judged: MakeJudge = RejectionJudge) -> Callable[[Case], Outcome]:
    def rule(case: Case) -> Outcome:
        parted = difference(texts_of(case, judged), case.own)
        return against(*case.lines(), *parted) if parted else None

    return rule


# Domains.

ZERO, ONE, EVEN = (normalised(w) for w in ((1, 0), (0, 1), (1, 1)))


def _kind(semantics: Semantics, levels: int) -> tuple[Semantics, tuple[int, ...]]:
    """The semantics of a chain of so many levels, and what a nested one collects.

    A level that collects n asks the one below it for n - 1, and one that collects a single token for
    none: 2, 3, .. from below is the least for which the drafter drafts.
    """
    if levels == 2:
        return "none", ()
    return semantics, tuple(range(2, levels)) if semantics == "nested" else ()


def _least(semantics: Semantics, levels: int) -> int:
    """The shortest text for which the drafter drafts."""
    return levels if semantics == "nested" else 2


def all_cases(
    semantics: Semantics, levels: int, sees: int, parts: int, length: int, want: int
) -> Iterator[Case]:
    """Every choice of models over 2 tokens with probabilities in multiples of 1/n, n up to ``parts``."""
    kind, collect = _kind(semantics, levels)
    for models in product(all_next_distributions(2, sees, parts), repeat=levels):
        yield Case(kind, length, want, models, collect)


def remembering() -> Iterator[tuple[Chances, ...]]:
    """Drafter and intermediate begin evenly and then look at the last token; the target is always even.

    The smallest models in which survival at a place says something about the token before it.
    """
    tables = [Table(2, 1, (EVEN, *after)) for after in product(all_distributions(2, 2), repeat=2)]
    for below in product(tables, repeat=2):
        yield (*below, Table(2, 0, (EVEN,)))


def every_case(semantics: Semantics) -> Callable[[int], Iterator[Case]]:
    def cases(level: int) -> Iterator[Case]:
        shortest = _least(semantics, 3)
        yield from all_cases(semantics, 3, 0, 2, 1, shortest)
        yield from all_cases(semantics, 3, 0, 2, 2, 3)
        if level > 0:
            yield from all_cases(semantics, 3, 0, 3, 1, shortest)
            yield from all_cases(semantics, 2, 0, 4, 2, 3)
            yield from all_cases(semantics, 4, 0, 2, 1, _least(semantics, 4))
            kind, collect = _kind(semantics, 3)
            yield from (Case(kind, 2, 3, models, collect) for models in remembering())
        if level > 1:
            yield from all_cases(semantics, 2, 1, 2, 1, 2)
            yield from all_cases(semantics, 3, 0, 4, 2, 3)

    return cases


@st.composite
def cases_of(draw: st.DrawFn, semantics: Semantics, least: int = 3, most: int = 4) -> Case:
    levels = draw(st.integers(least, most))
    vocabulary = draw(st.integers(2, 3)) if levels < 4 else 2
    kind, collect = _kind(semantics, levels)
    # Wide vocabularies and deep chains have many outcomes: shorter texts there.
    shortest = _least(kind, levels)
    want = draw(st.integers(shortest, max(shortest, 3 if vocabulary == 2 else 2)))
    models = draw(distribution_levels(levels, vocabulary, draw(st.integers(0, 2))))
    return Case(kind, draw(st.integers(1, 2)), want, models, collect)


def over_models(semantics: str) -> str:
    return (
        f"{semantics}: all models over 2 tokens without memory, probabilities in halves (2 to 4 levels), "
        "thirds (3 levels) and quarters (2 levels), blocks of 1 and 2, texts of 2 to 4; 81 chains of 3 that "
        "look at the last token; random ones over 2 and 3 tokens that see up to 2; all luck enumerated for "
        "each"
    )


def first_text_tokens(judged: MakeJudge) -> Callable[[Case], Plot]:
    """The two distributions of the first token."""
    return lambda case: first_tokens(texts_of(case, judged), case.own, case.models[-1].vocabulary)


@st.composite
def early(draw: st.DrawFn) -> Case:
    size = draw(st.integers(2, 3))
    return Case("early-emit", 1, 2, draw(distribution_levels(3, size, draw(st.integers(0, 1)))))
