"""Judges with a fault that people make, for broken variants of claims on rejection sampling.

p = the verifier's distribution, q = the one that a draft was drawn from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from simspec.claims.base import Outcome, Statement
from simspec.claims.lossless.cycles import MakeJudge
from simspec.claims.lossless.luck import EveryLuck
from simspec.speculation.verify import Block, Judge, Luck, Probs, RejectionJudge, Settled, proposal

# Faults.


class Fresh(RejectionJudge):
    """Draws from p after a refusal, not from (p - q)+."""

    def settle(self, block: Block, words: Probs) -> Settled:
        right = super().settle(block, words)
        if right.accepted == len(block):
            return right
        own = self.luck.pick(words[right.accepted])
        return Settled(
            right.accepted,
            right.survivors,
            own,
            Block(np.append(right.survivors.tokens, own).astype(np.int32), right.owned.probs),
        )


class Sure(RejectionJudge):
    """Accepts where p(x) >= q(x), without luck."""

    def settle(self, block: Block, words: Probs) -> Settled:
        return RejectionJudge(_NoLuck(self.luck)).settle(block, words)


class _NoLuck:
    def __init__(self, luck: Luck) -> None:
        self.luck = luck

    def happens(self, part: Fraction, whole: Fraction) -> bool:
        return part >= whole

    def pick(self, probs: Probs) -> int:
        return self.luck.pick(probs)


class Trusting(RejectionJudge):
    """Accepts everything."""

    def settle(self, block: Block, words: Probs) -> Settled:
        tokens = np.append(block.tokens, self.luck.pick(words[-1])).astype(np.int32)
        return Settled(len(block), block, int(tokens[-1]), Block(tokens, words))


class AsDrafted(RejectionJudge):
    """Hands on survivors as if they were still draws from what the block was drawn from."""

    def settle(self, block: Block, words: Probs) -> Settled:
        right = super().settle(block, words)
        return Settled(right.accepted, block.first(right.accepted), right.own, right.owned)


class AsVerified(RejectionJudge):
    """Hands on survivors as if they were draws from the verifier."""

    def settle(self, block: Block, words: Probs) -> Settled:
        right = super().settle(block, words)
        survivors = Block(right.survivors.tokens, words[: right.accepted] if right.accepted else None)
        return Settled(right.accepted, survivors, right.own, right.owned)


class OwnAsDrafted(RejectionJudge):
    """Hands on its text, own token included, as if its accepted part were draws from the drafter."""

    def settle(self, block: Block, words: Probs) -> Settled:
        right = super().settle(block, words)
        n = right.accepted
        rows = [proposal(block, i, words[i]) for i in range(n)] + [words[n]]
        return Settled(n, right.survivors, right.own, Block(right.owned.tokens, np.array(rows)))


# Faults that show now and then only.


class _Put:
    """Luck whose draw is put off, for a judge that draws once, at its end."""

    def __init__(self, luck: Luck) -> None:
        self.luck = luck
        self.left: Any = None

    def happens(self, part: Fraction, whole: Fraction) -> bool:
        return self.luck.happens(part, whole)

    def pick(self, probs: Probs) -> int:
        self.left = probs
        return 0


class _Late:
    def __init__(self, luck: EveryLuck, fault: MakeJudge, right: int) -> None:
        self.luck, self.fault, self.right = luck, fault, right

    def settle(self, block: Block, words: Probs) -> Settled:
        n = min(self.right, len(block))
        put = _Put(self.luck)
        head = RejectionJudge(put).settle(block.first(n), words[: n + 1])
        if head.accepted < n or n == len(block):
            own = self.luck.pick(put.left)
            tokens = np.append(head.owned.tokens[:-1], own).astype(np.int32)
            return replace(head, own=own, owned=Block(tokens, head.owned.probs))
        rest = Block(block.tokens[n:], None if block.probs is None else block.probs[n:])
        tail = self.fault(self.luck).settle(rest, words[n:])
        return Settled(
            n + tail.accepted,
            head.survivors.then(tail.survivors),
            tail.own,
            head.owned.first(n).then(tail.owned),
        )


def late(fault: MakeJudge, right: int) -> MakeJudge:
    """Right about a block's first ``right`` places."""
    return lambda luck: _Late(luck, fault, right)


def seldom(fault: MakeJudge) -> MakeJudge:
    """Right but for one block in a thousand."""
    return lambda luck: fault(luck) if luck.befalls(Fraction(1, 1000)) else RejectionJudge(luck)


class _AfterAnother:
    def __init__(self, luck: EveryLuck, fault: MakeJudge) -> None:
        self.luck, self.fault = luck, fault

    def settle(self, block: Block, words: Probs) -> Settled:
        spared = not len(block) or block.tokens[0] == 0
        judge: Judge = RejectionJudge(self.luck) if spared else late(self.fault, 1)(self.luck)
        return judge.settle(block, words)


def after_another(fault: MakeJudge) -> MakeJudge:
    """Right about a block's first place, and about all of it where it begins with a 0.

    A text of zeros then has the right probability.
    """
    return lambda luck: _AfterAnother(luck, fault)


def hidden(
    statement: Statement,
    rule: Callable[[MakeJudge], Callable[[Any], Outcome]],
    fault: MakeJudge = Fresh,
    said: str = "a refusal is followed by a draw from p itself",
) -> tuple[Statement, ...]:
    """Variants that only a comparison of whole texts, of every text, and without tolerance tells.

    Args:
        rule: the statement's, given the judge.
        fault: one that shows at any place of a block.
        said: what it does.
    """
    return (
        statement.but(f"... also if from a block's second place on {said}", rule(late(fault, 1))),
        statement.but(f"... also if from a block's third place on {said}", rule(late(fault, 2))),
        statement.but(f"... also if for one block in a thousand {said}", rule(seldom(fault))),
        statement.but(
            f"... also if from the second place on of blocks that do not begin with a 0 {said}",
            rule(after_another(fault)),
        ),
    )
