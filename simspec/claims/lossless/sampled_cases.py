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

from simspec.claims.base import Outcome, Plot
from simspec.claims.lossless.chance import State, Step, Texts, compared, first_tokens, joint, own_joint
from simspec.claims.lossless.cycles import MakeJudge, arrays, drawn, play
from simspec.claims.lossless.luck import EveryLuck
from simspec.claims.plain import shown
from simspec.speculation.chains import Chain, Semantics
from simspec.speculation.verify import RejectionJudge
from simspec.strategies.distributions import all_distributions, normalised
from simspec.strategies.models import Chances, Table, Text, all_next_distributions, distribution_levels


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
        return Chain(self.names, self.semantics, self.collect)

    @property
    def names(self) -> tuple[str, ...]:
        return (*(f"M{i}" for i in range(1, len(self.models))), "the target")

    @property
    def own(self) -> Texts:
        """The target's own texts."""
        return own_joint(arrays(self.models[-1]), self.models[-1].vocabulary, self.want)

    def lines(self) -> tuple[str, ...]:
        said = [f"{self.names[0]}, the drafter,", *self.names[1:]]
        spoken = [model.lines(name, shown) for name, model in zip(said, self.models, strict=True)]
        drafted = "1 token" if self.length == 1 else f"at most {self.length} tokens"
        collected = [
            f"{name} collects {n} before the next level reads them"
            for name, n in zip(self.names[1:], self.collect, strict=False)
        ]
        return (
            f"{self.semantics}, {drafted} drafted at a time, a text of {self.want}; probabilities of token "
            "0, 1, ...",
            *(line for s in spoken for line in s),
            *collected,
        )


def step_of(case: Case, judged: MakeJudge = RejectionJudge) -> Step:
    """A cycle of the case's chain."""
    models = [arrays(model) for model in case.models]
    chain = case.chain

    def step(luck: EveryLuck, text: Text, state: State, room: int) -> tuple[Text, State]:
        draft = drawn(models[0], luck, case.length)
        return tuple(play(chain, judged(luck), models, draft, text, room, luck).emitted.tolist()), state

    return step


def texts_of(case: Case, judged: MakeJudge = RejectionJudge) -> Texts:
    """The exact distribution of what comes out."""
    return joint(step_of(case, judged), case.want)


def lossless(judged: MakeJudge = RejectionJudge) -> Callable[[Case], Outcome]:
    return lambda case: compared(step_of(case, judged), case.own, case.lines)


# Domains.

ZERO, ONE, EVEN = (normalised(w) for w in ((1, 0), (0, 1), (1, 1)))


def memoryless(*weights: tuple[int, ...]) -> tuple[Chances, ...]:
    """Models that say the same after every text, by whole weights."""
    return tuple(Table(len(w), 0, (normalised(w),)) for w in weights)


def _kind(semantics: Semantics, levels: int, length: int) -> tuple[Semantics, tuple[int, ...]]:
    """The semantics of a chain of so many levels, and what a nested one collects.

    A level that collects n asks the one below it for n - 1, the lowest one for a draft of that many.
    """
    if levels == 2:
        return "none", ()
    return semantics, tuple(range(length + 1, length + levels - 1)) if semantics == "nested" else ()


def least_text(semantics: Semantics, levels: int, length: int) -> int:
    """The shortest text for which so many tokens are drafted at a time.

    Under nested chains each intermediate adds a token of its own to them, under others the target alone.
    """
    return length + (levels - 1 if semantics == "nested" else 1)


def all_cases(
    semantics: Semantics, levels: int, sees: int, parts: int, length: int, vocabulary: int = 2
) -> Iterator[Case]:
    """Every choice of models with probabilities in multiples of 1/n, n up to ``parts``."""
    for models in product(all_next_distributions(vocabulary, sees, parts), repeat=levels):
        yield drafting(semantics, length, models)


def drafting(semantics: Semantics, length: int, models: tuple[Chances, ...]) -> Case:
    """The smallest case of a chain that drafts ``length`` tokens at a time."""
    kind, collect = _kind(semantics, len(models), length)
    return Case(kind, length, least_text(kind, len(models), length), models, collect)


def below(semantics: Semantics, length: int, target: Chances, parts: int, levels: int = 3) -> Iterator[Case]:
    """Every choice of models without memory below one target."""
    functions = tuple(all_next_distributions(target.vocabulary, 0, parts))
    for models in product(functions, repeat=levels - 1):
        yield drafting(semantics, length, (*models, target))


def remembering() -> Iterator[tuple[Chances, ...]]:
    """Drafter and intermediate begin evenly and then look at the last token; the target is always even.

    The smallest models in which survival at a place says something about the token before it.
    """
    tables = [Table(2, 1, (EVEN, *after)) for after in product(all_distributions(2, 2), repeat=2)]
    for lower in product(tables, repeat=2):
        yield (*lower, Table(2, 0, (EVEN,)))


(EVENLY,) = memoryless((1, 1))
# An even target over two of three tokens: any such is this one under other names.
(TWO_OF_THREE,) = memoryless((1, 1, 0))


def every_case(semantics: Semantics, pairs: bool = False) -> Callable[[int], Iterator[Case]]:
    """Chains of 3 and more levels; ``pairs``: those of 2, too."""

    def cases(level: int) -> Iterator[Case]:
        yield from all_cases(semantics, 3, 0, 2, 1)
        yield from below(semantics, 3, EVENLY, 2)
        if pairs:
            yield from all_cases(semantics, 2, 0, 2 + min(level, 1), 3)
            yield from below(semantics, 2, TWO_OF_THREE, 2, 2)
        if level > 0:
            yield from all_cases(semantics, 3, 0, 2, 2)
            yield from below(semantics, 1, TWO_OF_THREE, 2)
            yield from all_cases(semantics, 3, 0, 3, 1)
            yield from all_cases(semantics, 4, 0, 2, 1)
            yield from (drafting(semantics, 2, models) for models in remembering())
        if level > 0 and pairs:
            yield from all_cases(semantics, 2, 0, 4, 2)
        if level > 1:
            yield from all_cases(semantics, 3, 0, 3, 3)
            yield from all_cases(semantics, 3, 0, 4, 2)
            yield from below(semantics, 2, TWO_OF_THREE, 3)
        if level > 1 and pairs:
            yield from all_cases(semantics, 2, 1, 2, 1)
            yield from all_cases(semantics, 2, 0, 3, 2, 3)
            yield from all_cases(semantics, 2, 0, 4, 4)

    return cases


@st.composite
def cases_of(draw: st.DrawFn, semantics: Semantics, least: int = 3, most: int = 4) -> Case:
    levels = draw(st.integers(least, most))
    vocabulary = draw(st.integers(2, 3)) if levels < 4 else 2
    # Wide vocabularies, long blocks and deep chains have many outcomes: not all at once.
    longest = {2: 4, 3: 3, 4: 1}[levels] - (vocabulary == 3)
    length = draw(st.integers(1, longest))
    models = draw(distribution_levels(levels, vocabulary, draw(st.integers(0, 2 if vocabulary == 2 else 1))))
    if levels == 2 or semantics != "nested":
        kind: Semantics = "none" if levels == 2 else semantics
        return Case(kind, length, length + draw(st.integers(1, 2 if length == 1 else 1)), models)
    collect = tuple(draw(st.integers(1, length + 1)) for _ in range(levels - 2))
    # The text is long enough for the intermediate below the target to collect all it wants.
    return Case(
        semantics, length, collect[-1] + draw(st.integers(1, 2 if collect[-1] < 3 else 1)), models, collect
    )


def over_models(semantics: str, *, pairs: bool = False) -> str:
    """The domain of ``every_case`` and ``cases_of`` in words."""
    two, random = "", "blocks to 3 (3 levels) and of 1 (4 levels)"
    if pairs:
        two = "pairs: blocks of 3 in thirds, of 2 in quarters, of 2 over 3 tokens in halves; "
        random = "blocks to 4 (pairs), 3 (3 levels) and 1 (4 levels)"
    return (
        f"all models over 2 tokens without memory whose probabilities are halves, thirds or quarters: {two}"
        f"{semantics} chains of 3 levels: blocks of 1 in thirds, of 2 in halves, of 3 in halves below an "
        "even target, of 1 over 3 tokens in halves below (1/2, 1/2, 0); of 4 levels: blocks of 1 in halves; "
        "81 chains of 3 that look at the last token, blocks of 2; random models over 2 and 3 tokens that see "
        f"up to 2, {random}, one less over 3 tokens; all luck enumerated for each; fewer at the smallest "
        "budget, more at the largest"
    )


def first_text_tokens(judged: MakeJudge) -> Callable[[Case], Plot]:
    """The two distributions of the first token."""
    return lambda case: first_tokens(texts_of(case, judged), case.own, case.models[-1].vocabulary)
