"""Drafts that are certain, under every length rule (L16g)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement
from simspec.claims.lossless.chance import LOSSLESS, State, Step, compared, own_joint
from simspec.claims.lossless.cycles import MakeJudge, Model, arrays, play
from simspec.claims.lossless.faulty_judges import hidden
from simspec.claims.lossless.length_cases import PAIR
from simspec.claims.lossless.luck import EveryLuck
from simspec.claims.plain import shown
from simspec.speculation.verify import Block, Luck, Probs, RejectionJudge, Settled
from simspec.strategies.distributions import all_distributions
from simspec.strategies.models import Chances, Table, Text, Tokens, next_distributions, next_tokens

# L16g


@dataclass(frozen=True)
class Sure:
    """A greedy drafter and a length for each text: whatever a rule sees of the drafter, it comes to this.

    Attributes:
        drafter: its token after each text.
        lengths: how many it submits after each text.
    """

    want: int
    drafter: Tokens
    lengths: Tokens
    target: Chances

    def block(self, text: Text, most: int) -> Block:
        tokens: Text = ()
        for _ in range(min(self.lengths.after(text), most)):
            tokens += (self.drafter.after(text + tokens),)
        return Block(np.array(tokens, dtype=np.int32))

    def lines(self) -> tuple[str, ...]:
        return (
            f"a text of {self.want}; probabilities of token 0, 1, ...",
            *self.drafter.lines("the greedy drafter"),
            *self.lengths.lines("the length rule"),
            *self.target.lines("the target", shown),
        )


class _Compare:
    """Accept a draft where the target's own sample equals it; the first sample that does not is emitted."""

    def __init__(self, luck: Luck) -> None:
        self.luck = luck

    def settle(self, block: Block, words: Probs) -> Settled:
        accepted = 0
        own = self.luck.pick(words[0])
        while accepted < len(block) and own == block.tokens[accepted]:
            accepted += 1
            own = self.luck.pick(words[accepted])
        return _settled(block, accepted, own)


class _Again(_Compare):
    """The same, but where a sample differs another one is drawn and emitted.

    Args:
        right: places of a block about which it is right.
    """

    def __init__(self, luck: Luck, right: int = 0) -> None:
        super().__init__(luck)
        self.right = right

    def settle(self, block: Block, words: Probs) -> Settled:
        right = super().settle(block, words)
        if right.accepted == len(block) or right.accepted < self.right:
            return right
        return _settled(block, right.accepted, self.luck.pick(words[right.accepted]))


def _settled(block: Block, accepted: int, own: int) -> Settled:
    tokens = np.append(block.tokens[:accepted], own).astype(np.int32)
    return Settled(accepted, block.first(accepted), own, Block(tokens))


def _step(case: Sure, judged: MakeJudge) -> Step:
    models: list[Model] = [arrays(case.target)] * 2

    def step(luck: EveryLuck, text: Text, state: State, room: int) -> tuple[Text, State]:
        done = play(PAIR, judged(luck), models, case.block, text, room, luck)
        return tuple(done.emitted.tolist()), state

    return step


def _sure(matched: MakeJudge = _Compare, rejected: MakeJudge = RejectionJudge) -> Callable[[Sure], Outcome]:
    """Both ways to verify."""

    def rule(case: Sure) -> Outcome:
        own = own_joint(arrays(case.target), case.target.vocabulary, case.want)
        by_sample = compared(_step(case, matched), own, case.lines)
        return by_sample or compared(_step(case, rejected), own, case.lines)

    return rule


@st.composite
def _sure_cases(draw: st.DrawFn) -> Sure:
    vocabulary, sees = draw(st.integers(2, 3)), draw(st.integers(0, 2))
    target = draw(next_distributions(vocabulary, sees))
    lengths = draw(next_tokens(4, 0)).values[0]
    by_text = draw(next_tokens(vocabulary, sees))
    table = Table(vocabulary, sees, tuple(lengths + n for n in by_text.values))
    return Sure(draw(st.integers(2, 4)), draw(next_tokens(vocabulary, sees)), table, target)


def _every_sure(level: int) -> Iterator[Sure]:
    """Drafter and lengths that see the last token; targets without memory."""
    for q, token in product(all_distributions(2, 2), range(2)):
        yield Sure(4, Table(2, 0, (token,)), Table(2, 0, (3,)), Table(2, 0, (q,)))
    for target in all_distributions(2, max(2, 1 + level)):
        for drafts in product(range(2), repeat=3):
            for lengths in product(range(3), repeat=3) if level else [(1, 0, 2), (2, 1, 1)]:
                drafter, table = Table(2, 1, drafts), Table(2, 1, lengths)
                yield Sure(3, drafter, table, Table(2, 0, (target,)))


L16G_STATEMENT = Statement(
    words=(
        "Drafts that are certain, accepted where the target's own sample equals them, are lossless under "
        "every length rule; accepting x with probability p(x) and else drawing from p without x does the "
        "same"
    ),
    formula=LOSSLESS,
    rule=_sure(),
    over=(
        "all greedy drafters over 2 tokens that see the last one, every length 0 to 2 after each text (two "
        "choices at the smallest budget), targets in halves; drafters that always say the same token, length "
        "3; random ones over 2 and 3 tokens, lengths to 5"
    ),
    domain=_sure_cases(),
    every=_every_sure,
    examples=100,
)
L16G = Claim(
    id="L16g",
    source=("sample matching, as for look-ups and greedy drafts; arXiv 2211.17192 with q a point mass"),
    statement=L16G_STATEMENT,
    expected="holds",
    because=(
        "Every emitted token is the target's own sample; drafts only say how many samples a pass takes. "
        "With greedy drafts nothing is drawn before the length is settled, so whatever a rule looks at is "
        "a function of the text."
    ),
    broken=(
        L16G_STATEMENT.but("... also if a sample that differs is drawn again", _sure(_Again)),
        L16G_STATEMENT.but(
            "... also if that is so from a block's third place on", _sure(lambda luck: _Again(luck, 2))
        ),
        *hidden(L16G_STATEMENT, lambda judged: _sure(rejected=judged)),
    ),
)

CLAIMS = (L16G,)
