"""Chains of greedy models: the cases of claims about their texts.

Every case is decoded by the cycle that the replay and the real decoder follow (simspec.speculation.cycle),
with next-token functions in the place of models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import Outcome, against
from simspec.claims.lossless.cycles import certain, decode, play
from simspec.claims.plain import shown
from simspec.speculation.chains import Chain, Semantics
from simspec.speculation.cycle import Cycle
from simspec.speculation.verify import GreedyJudge, Judge
from simspec.strategies.models import Table, Text, all_next_tokens, token_levels
from simspec.strategies.models import Tokens as NextTokens

FUNNELS: tuple[Semantics, ...] = ("funnel-truncate", "funnel-replace")
LOSSLESS: tuple[Semantics, ...] = (*FUNNELS, "nested")


@dataclass(frozen=True)
class Case:
    """A text of ``want`` tokens by a chain; the drafter drafts ``length`` tokens, all models are greedy.

    Attributes:
        models: next-token functions, drafter first, target last.
        collect: for nested chains, tokens that each intermediate collects.
    """

    semantics: Semantics
    length: int
    want: int
    models: tuple[NextTokens, ...]
    collect: tuple[int, ...] = ()

    @property
    def chain(self) -> Chain:
        return chain_of(self.semantics, len(self.models), self.collect)

    @property
    def own(self) -> Text:
        """The target's text, decoded alone."""
        text: Text = ()
        while len(text) < self.want:
            text += (self.models[-1].after(text),)
        return text

    def lines(self) -> tuple[str, ...]:
        names = [f"M{i}" for i in range(1, len(self.models) + 1)]
        names[0], names[-1] = f"{names[0]} (drafter)", f"{names[-1]} (target)"
        spoken = [model.lines(name) for name, model in zip(names, self.models, strict=True)]
        tokens = "1 token" if self.length == 1 else f"{self.length} tokens"
        return (
            f"{self.semantics}, {tokens} drafted a cycle, a text of {self.want}",
            *(line for s in spoken for line in s),
        )


def chain_of(semantics: Semantics, levels: int, collect: tuple[int, ...]) -> Chain:
    return Chain(tuple(f"M{i}" for i in range(1, levels + 1)), semantics, collect)


def text_of(case: Case, judge: Judge | None = None) -> Text:
    """What comes out."""
    models = [model.after for model in case.models]
    return decode(case.chain, judge or GreedyJudge(), models, certain(models[0], case.length), case.want)


def cycles_of(case: Case) -> Iterator[tuple[Text, Cycle]]:
    """The cycles of the text, each with the text that it began after."""
    models, text = [model.after for model in case.models], ()
    draft = certain(models[0], case.length)
    while len(text) < case.want:
        done = play(case.chain, GreedyJudge(), models, draft, text, case.want - len(text))
        yield text, done
        text += tuple(done.emitted.tolist())


# The domain.


def _kinds(levels: int) -> Iterator[tuple[Semantics, tuple[int, ...]]]:
    """Lossless semantics that differ for so many levels, with what nested chains collect.

    A level that collects a single token asks for no draft: 2, 3, .. from below is the least that does.
    """
    if levels == 2:
        yield "none", ()
        return
    for semantics in LOSSLESS:
        yield semantics, tuple(range(2, levels)) if semantics == "nested" else ()


def _all(levels: int, vocabulary: int, sees: int, want: int, lengths: tuple[int, ...]) -> Iterator[Case]:
    """Every choice of models below a target that says 0 after every text.

    A cycle only asks whether tokens after one text are equal. So tokens may be renamed after each text
    by itself, and where ``sees`` = ``want`` - 1 every case is one of these under other names.
    """
    functions = tuple(all_next_tokens(vocabulary, sees))
    for below in product(functions, repeat=levels - 1):
        yield from _of((*below, functions[0]), want, lengths)


def _of(models: tuple[NextTokens, ...], want: int, lengths: tuple[int, ...]) -> Iterator[Case]:
    for length in lengths:
        for semantics, collect in _kinds(len(models)):
            yield Case(semantics, length, want, models, collect)


def every_case(level: int) -> Iterator[Case]:
    # Under all names once: a faulty rule may do well by a target that always says the same.
    for models in product(all_next_tokens(2, 1), repeat=2):
        yield from _of(models, 2, (1,))
    yield from _all(3, 2, 1, 2, (1,))
    yield from _all(3, 2, 1, 4, (2,))
    yield from _all(2, 2, 2, 3, (1, 2))
    if level > 0:
        yield from _all(4, 2, 1, 2, (1,))
        yield from _all(2, 3, 1, 2, (1,))
        yield from _all(3, 2, 1, 4, (1, 3))
        yield from _all(4, 2, 1, 4, (1,))
    if level > 1:
        yield from _all(3, 3, 1, 2, (1,))
        yield from _all(3, 2, 2, 3, (1, 2))


@st.composite
def cases_of(draw: st.DrawFn, semantics: tuple[Semantics, ...] = LOSSLESS, least: int = 2) -> Case:
    levels = draw(st.integers(least, 4))
    vocabulary, sees = draw(st.integers(2, 4)), draw(st.integers(0, 2))
    kind: Semantics = "none" if levels == 2 else draw(st.sampled_from(semantics))
    wanted = levels - 2 if kind == "nested" else 0
    collect = tuple(draw(st.lists(st.integers(1, 4), min_size=wanted, max_size=wanted)))
    models = draw(token_levels(levels, vocabulary, sees))
    return Case(kind, draw(st.integers(1, 5)), draw(st.integers(1, 10)), models, collect)


OVER = (
    "all models over 2 tokens for texts of 2 (2 to 4 levels) and 3 (2 levels), and over 3 tokens for texts "
    "of 2, up to renaming tokens; all over 2 tokens that see one token below a target that always says 0, "
    "for texts of 4 (3 levels); each with every semantics; random ones of 2 to 4 levels over 2 to 4 "
    "tokens, texts to 10"
)

# Whether a text is the target's.


def words(text: Text) -> str:
    """A text in a sentence."""
    return " ".join(map(str, text)) or "nothing"


def _told(text: Text, done: Cycle) -> str:
    drafted, emitted = tuple(done.block.tolist()), tuple(done.emitted.tolist())
    return (
        f"a cycle after {words(text)}: drafted {words(drafted)}, of which {done.survived} come through the "
        f"intermediates; emitted {words(emitted)}"
    )


MakeText = Callable[[Case], Text]


def owned(found: MakeText = text_of) -> Callable[[Case], Outcome]:
    """Whether what comes out is the target's own text."""

    def rule(case: Case) -> Outcome:
        ours = found(case)
        if ours == case.own:
            return None
        cycles = [] if found is not text_of else [_told(text, done) for text, done in cycles_of(case)]
        return against(
            *case.lines(),
            *cycles,
            f"the chain's text is {shown(ours)}, the target's own {shown(case.own)}",
        )

    return rule


def judged(judge: Judge) -> Callable[[Case], Outcome]:
    """The same of a chain with some other judge."""
    return owned(lambda case: text_of(case, judge))


def handed_out_early(case: Case) -> Text:
    """A fault that people make: a reader is given a cycle's first draft before anybody has checked it.

    The models go on from the right text. A cycle that drafts is never a text's last token alone, so the
    last token is right.
    """
    given: Text = ()
    for _, done in cycles_of(case):
        emitted = tuple(done.emitted.tolist())
        given += (int(done.block[0]), *emitted[1:]) if len(done.block) else emitted
    return given


ZERO, ONE = Table(2, 0, (0,)), Table(2, 0, (1,))
