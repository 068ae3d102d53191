"""Whose text comes out of a chain under greedy decoding (S4, S4b)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from simspec.claims.base import UNMET, Claim, Outcome, Statement
from simspec.claims.lossless.greedy_cases import (
    ONE,
    OVER,
    ZERO,
    Case,
    MakeText,
    cases_of,
    every_case,
    handed_out_early,
    judged,
    owned,
    text_of,
)
from simspec.speculation.verify import Block, GreedyJudge, Settled, Tokens
from simspec.strategies.models import Text


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


class _Begun:
    """Accepts the whole block where its first draft is right."""

    def settle(self, block: Block, words: Tokens) -> Settled:
        right = GreedyJudge().settle(block, words)
        if not right.accepted:
            return right
        own = words[len(block) :]
        return Settled(len(block), block, int(own[0]), block.then(Block(own)))


def _unchecked(case: Case) -> Text:
    """The same models as an early-emit chain."""
    if len(case.models) < 3:
        return text_of(case)
    return text_of(Case("early-emit", case.length, case.want, case.models))


S4_STATEMENT = Statement(
    words=(
        "Under greedy decoding the text of a funnel-truncate, funnel-replace or nested chain is the "
        "target's own, for any models"
    ),
    formula="text(M_1 > ... > M_N) = text(M_N)",
    rule=owned(),
    over=OVER,
    domain=cases_of(),
    every=every_case,
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
            "... and so is it where the target does not check what came through (early-emit)",
            owned(_unchecked),
        ),
        S4_STATEMENT.but(
            "... and so is it where a draft is compared with the verifier's word for the next place",
            judged(_NextPlace()),
        ),
        S4_STATEMENT.but(
            "... and so is it where agreements are counted anywhere in the block, not from its beginning",
            judged(_Count()),
        ),
        S4_STATEMENT.but(
            "... and so is it where a block is accepted whole once its first draft is right", judged(_Begun())
        ),
        S4_STATEMENT.but(
            "... and so is what a reader sees who is given each cycle's first draft before it is checked",
            owned(handed_out_early),
        ),
    ),
)

# S4b


def _every_early_emit(level: int) -> Iterator[Case]:
    for case in every_case(level):
        if case.semantics == "funnel-truncate":
            yield Case("early-emit", case.length, case.want, case.models)


def _none_wrong_together(
    found: MakeText = text_of, places: Callable[[int], range] = range
) -> Callable[[Case], Outcome]:
    """Look at each place of the target's text: does everybody below say the same wrong token?

    Args:
        places: where to look, given the text's length.
    """

    def rule(case: Case) -> Outcome:
        for place in places(case.want):
            said = {model.after(case.own[:place]) for model in case.models[:-1]}
            if len(said) == 1 and said != {case.own[place]}:
                return UNMET
        return owned(found)(case)

    return rule


S4B_STATEMENT = Statement(
    words="Under greedy decoding the text of an early-emit chain is the target's own, too",
    formula="text(M_1 > ... > M_N, early-emit) = text(M_N)",
    rule=owned(),
    over=OVER,
    domain=cases_of(("early-emit",), 3),
    every=_every_early_emit,
)
_REPAIRED = S4B_STATEMENT.but(
    "It is, if at no place of the target's text the drafter and all intermediates agree on a token "
    "that is not the target's",
    _none_wrong_together(),
    formula="for each place t: M_1(t) = ... = M_{N-1}(t) => M_1(t) = M_N(t)",
)

S4B = Claim(
    id="S4b",
    source="the reading of SpecRouter (2505.07680) in which an intermediate's verdict is emitted",
    statement=S4B_STATEMENT,
    expected="refuted",
    because=(
        "A token on which drafter and intermediate agree goes out although the target would say another. "
        "The repaired statement, by induction along the text: as long as it is the target's own, a draft "
        "that comes through is what drafter and all intermediates say there, so by the premise the "
        "target's token; and every other token is the target's by its making."
    ),
    pinned=Case("early-emit", 1, 2, (ZERO, ZERO, ONE)),
    repaired=_REPAIRED,
    broken=(
        _REPAIRED.but(
            "... if they do not so at the first place", _none_wrong_together(places=lambda want: range(1))
        ),
        _REPAIRED.but(
            "... if they do not so after the first place",
            _none_wrong_together(places=lambda want: range(1, want)),
        ),
        _REPAIRED.but(
            "... also where a draft is compared with the verifier's word for the next place",
            _none_wrong_together(lambda case: text_of(case, _NextPlace())),
        ),
        _REPAIRED.but(
            "... and so is what a reader sees who is given each cycle's first draft before it is checked",
            _none_wrong_together(handed_out_early),
        ),
    ),
)

CLAIMS = (S4, S4B)
