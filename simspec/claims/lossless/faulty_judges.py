"""Judges with a fault that people make, for broken variants of claims on rejection sampling.

p = the verifier's distribution, q = the one that a draft was drawn from.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from simspec.speculation.verify import Block, Luck, Probs, RejectionJudge, Settled, proposal

# Judges with a fault that people make.


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
