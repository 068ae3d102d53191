"""Greedy decoding by chains: whose text comes out, and what an intermediate costs (S4, S4b, S4c, S30).

Every case is decoded by the cycle that the replay and the real decoder follow (simspec.speculation.cycle),
with next-token functions in the place of models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.chance import certain, decode, play
from simspec.claims.plain import shown
from simspec.speculation.chains import Chain, Semantics
from simspec.speculation.cycle import Cycle
from simspec.speculation.verify import Block, GreedyJudge, Judge, Settled, Tokens
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
        return _chain(self.semantics, len(self.models), self.collect)

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


def _chain(semantics: Semantics, levels: int, collect: tuple[int, ...]) -> Chain:
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


def _every(level: int) -> Iterator[Case]:
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
def _cases(draw: st.DrawFn, semantics: tuple[Semantics, ...] = LOSSLESS, least: int = 2) -> Case:
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

# S4


def _judged(judge: Judge) -> Callable[[Case], Outcome]:
    def rule(case: Case) -> Outcome:
        found = text_of(case, judge)
        if found == case.own:
            return None
        return against(
            *case.lines(), f"the chain's text is {shown(found)}, the target's own {shown(case.own)}"
        )

    return rule


class _NextPlace:
    """Compares each draft with the verifier's word for the place after it."""

    def settle(self, block: Block, words: Tokens) -> Settled:
        return GreedyJudge().settle(block, np.append(words[1:], words[-1:]))


class _Count:
    """Accepts as many leading drafts as there are agreements anywhere in the block."""

    def settle(self, block: Block, words: Tokens) -> Settled:
        agreements = int((block.tokens == words[: len(block)]).sum())
        kept = block.first(agreements)
        own = words[agreements : agreements + 1]
        return Settled(agreements, kept, int(own[0]), kept.then(Block(own)))


def _unchecked(case: Case) -> Outcome:
    if len(case.models) < 3:
        return None
    return _judged(GreedyJudge())(Case("early-emit", case.length, case.want, case.models))


S4_STATEMENT = Statement(
    words=(
        "Under greedy decoding the text of a funnel-truncate, funnel-replace or nested chain is the "
        "target's own, for any models"
    ),
    formula="text(M_1 > ... > M_N) = text(M_N)",
    rule=_judged(GreedyJudge()),
    over=OVER,
    domain=_cases(),
    every=_every,
)
S4 = Claim(
    id="S4",
    source="SpecRouter (2505.07680), chains of models; CS-Drafting (2312.11462) for nested ones",
    statement=S4_STATEMENT,
    expected="holds",
    because=(
        "Whatever block reaches the target, the target reads it and keeps the leading tokens that are its "
        "own choices, then adds its next choice. So by induction every emitted token is the target's "
        "choice after the text before it; the levels below decide only how many are emitted a cycle."
    ),
    broken=(
        S4_STATEMENT.but(
            "... and so is it where the target does not check what came through (early-emit)", _unchecked
        ),
        S4_STATEMENT.but(
            "... and so is it where a draft is compared with the verifier's word for the next place",
            _judged(_NextPlace()),
        ),
        S4_STATEMENT.but(
            "... and so is it where agreements are counted anywhere in the block, not from its beginning",
            _judged(_Count()),
        ),
    ),
)

# S4b


def _every_early_emit(level: int) -> Iterator[Case]:
    for case in _every(level):
        if case.semantics == "funnel-truncate":
            yield Case("early-emit", case.length, case.want, case.models)


def _none_wrong_together(case: Case) -> Outcome:
    """Look at each place of the target's text: does everybody below say the same wrong token?"""
    for place, token in enumerate(case.own):
        said = {model.after(case.own[:place]) for model in case.models[:-1]}
        if len(said) == 1 and said != {token}:
            return UNMET
    return _judged(GreedyJudge())(case)


S4B_STATEMENT = Statement(
    words="Under greedy decoding the text of an early-emit chain is the target's own, too",
    formula="text(M_1 > ... > M_N, early-emit) = text(M_N)",
    rule=_judged(GreedyJudge()),
    over=OVER,
    domain=_cases(("early-emit",), 3),
    every=_every_early_emit,
)
_ZERO, _ONE = Table(2, 0, (0,)), Table(2, 0, (1,))
S4B = Claim(
    id="S4b",
    source="the reading of SpecRouter (2505.07680) in which an intermediate's verdict is emitted",
    statement=S4B_STATEMENT,
    expected="refuted",
    because="A token on which drafter and intermediate agree goes out although the target would say another.",
    pinned=Case("early-emit", 1, 2, (_ZERO, _ZERO, _ONE)),
    repaired=S4B_STATEMENT.but(
        "It is, if at no place of the target's text the drafter and all intermediates agree on a token "
        "that is not the target's",
        _none_wrong_together,
        formula="for each place t: M_1(t) = ... = M_{N-1}(t) => M_1(t) = M_N(t)",
    ),
)

# S4c


def _run(block: Text, text: Text, models: tuple[NextTokens, ...]) -> int:
    """Leading tokens of a block that every one of ``models`` would say itself, read from the tables."""
    for i, token in enumerate(block):
        if any(model.after(text + block[:i]) != token for model in models):
            return i
    return len(block)


@dataclass(frozen=True)
class _Drafted:
    """A cycle's block: how many tokens came through the intermediates, and how many the target would take."""

    text: Text
    block: Text
    through: int
    liked: int
    accepted: int

    @property
    def lost(self) -> int:
        return max(0, self.liked - self.through)


def _drafted(case: Case) -> Iterator[_Drafted]:
    for text, done in cycles_of(case):
        block = tuple(done.block.tolist())
        through = _run(block, text, case.models[1:-1])
        yield _Drafted(text, block, through, _run(block, text, case.models[-1:]), done.kept)


def _changes(case: Case) -> Outcome:
    cycles = list(_drafted(case))
    if not any(one.lost for one in cycles):
        return UNMET
    found = text_of(case)
    if found != case.own:
        return None
    return against(
        *case.lines(),
        *(
            f"after {shown(one.text)}: drafted {shown(one.block)}, the intermediates let {one.through} "
            f"through, the target would have accepted {one.liked} and accepts {one.accepted}"
            for one in cycles
            if one.block
        ),
        f"the text is {shown(found)}, the target's own is {shown(case.own)}: the same",
        f"accepted tokens that it cost: {sum(one.lost for one in cycles)}",
    )


def _costs(case: Case) -> Outcome:
    """The count that is lost, against the same block given to the target alone."""
    models = [model.after for model in case.models]
    pair, draft = _chain("none", 2, ()), certain(models[0], case.length)
    if text_of(case) != case.own:
        return against(*case.lines(), f"the text is {shown(text_of(case))}, not {shown(case.own)}")
    for one in _drafted(case):
        room = case.want - len(one.text)
        alone = play(pair, GreedyJudge(), [models[0], models[-1]], draft, one.text, room).accepted
        if alone - one.accepted != one.lost:
            return against(
                *case.lines(),
                f"after {shown(one.text)} the target accepts {alone} alone, {one.accepted} in the chain, and "
                f"{one.through} of {len(one.block)} came through",
            )
    return None


def _every_funnel(level: int) -> Iterator[Case]:
    return (case for case in _every(level) if case.semantics in FUNNELS)


S4C = Claim(
    id="S4c",
    source="a reviewer's objection to SpecRouter (2505.07680)",
    statement=Statement(
        words="An intermediate's rejection of a token that the target would have accepted changes the output",
        formula="refused by some M_i, i < N, and liked by M_N  =>  text(M_1 > ... > M_N) != text(M_N)",
        rule=_changes,
        over="of the cases of S4 those of both funnels, 3 and 4 levels",
        domain=_cases(FUNNELS, 3),
        every=_every_funnel,
    ),
    expected="refuted",
    because=(
        "The target still reads what survived and adds its own token at the cut, which is the very token "
        "that was thrown away. The objection would be right of early-emit with a token that was let "
        "through."
    ),
    pinned=Case("funnel-truncate", 1, 2, (_ZERO, _ONE, _ZERO)),
    repaired=Statement(
        words=(
            "It costs accepted tokens and nothing else: with u drafts coming through the intermediates and "
            "v of the whole block to the target's liking, a cycle keeps max(0, v - u) drafts fewer than "
            "the pair of drafter and target would with the same block, and the text stays the target's"
        ),
        formula="kept(chain) = kept(pair) - max(0, v - u)",
        rule=_costs,
        over="of the cases of S4 those of both funnels, 3 and 4 levels",
        domain=_cases(FUNNELS, 3),
        every=_every_funnel,
    ),
)

# S30


def _passes(case: Case) -> int:
    return sum(1 for _ in cycles_of(case))


def _never_fewer(case: Case) -> Outcome:
    alone = _passes(Case("none", case.length, case.want, (case.models[0], case.models[-1])))
    found = _passes(case)
    if found >= alone:
        return None
    return against(*case.lines(), f"passes of the target: {found}; without the intermediates: {alone}")


def _always_more(case: Case) -> Outcome:
    if not any(one.lost for one in _drafted(case)):
        return UNMET
    alone = _passes(Case("none", case.length, case.want, (case.models[0], case.models[-1])))
    found = _passes(case)
    return (
        None if found > alone else against(*case.lines(), f"passes of the target, with and without: {found}")
    )


def _every_truncating(level: int) -> Iterator[Case]:
    return (case for case in _every(level) if case.semantics == "funnel-truncate")


S30_STATEMENT = Statement(
    words=(
        "Under greedy decoding a funnel-truncate chain never needs fewer passes of the target for a text "
        "than its drafter and target alone, at the same draft length"
    ),
    formula="passes(M_1 > ... > M_N) >= passes(M_1 > M_N)",
    rule=_never_fewer,
    over="of the cases of S4 those of funnel-truncate, 3 and 4 levels",
    domain=_cases(("funnel-truncate",), 3),
    every=_every_truncating,
)
S30 = Claim(
    id="S30",
    source="new here; for SpecRouter's (2505.07680) third level, over a whole text and not one block (S6)",
    statement=S30_STATEMENT,
    expected="holds",
    because=(
        "Let f(t) be where the pair's cycle that begins at place t of the text ends, g(t) the chain's. g "
        "<= f, since truncating only shortens (S4c). f never falls: take t < t' <= f(t) - 1. The drafts "
        "from t at places t' .. f(t) - 2 are the text's own, so from t' the drafter, a function of the "
        "text, drafts them again and they are accepted again: f(t') >= f(t). For t' >= f(t), f(t') > t'. "
        "So after k cycles the chain is never ahead of the pair: g(s) <= f(s) <= f(t) whenever s <= t."
    ),
    broken=(
        S30_STATEMENT.but(
            "... nor does a funnel-replace chain",
            _never_fewer,
            domain=_cases(("funnel-replace",), 3),
            every=lambda level: (case for case in _every(level) if case.semantics == "funnel-replace"),
        ),
        S30_STATEMENT.but(
            "... and it needs more wherever a token was refused that the target would have accepted",
            _always_more,
        ),
    ),
)

CLAIMS = (S4, S4B, S4C, S30)
