"""How much of a drafted block a verifier lets through, greedily and by rejection sampling.

p = the verifier's distribution, q = the distribution that a token was drawn from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int32]
# Probabilities over the vocabulary, shape (places, vocabulary): floats, or fractions in an object array.
Probs = NDArray[Any]


@dataclass(frozen=True)
class Block:
    """Tokens proposed after a text, and what they were drawn from.

    Attributes:
        tokens: shape (n,).
        probs: the distribution that each token was drawn from given those before it,
            shape (n, vocabulary); None where each token was certain, as under greedy
            drafting or for a look-up.
    """

    tokens: Tokens
    probs: Probs | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    def first(self, n: int) -> Block:
        """The block's first ``n`` tokens."""
        return Block(self.tokens[:n], None if self.probs is None else self.probs[:n])

    def then(self, other: Block) -> Block:
        """This block and then another one, drawn likewise."""
        if not len(self):
            return other
        if not len(other):
            return self
        probs = None
        if self.probs is not None and other.probs is not None:
            probs = np.concatenate([self.probs, other.probs])
        elif self.probs is not None or other.probs is not None:
            raise ValueError("one of two blocks was drawn at random and the other was not")
        return Block(np.concatenate([self.tokens, other.tokens]), probs)


NOTHING = Block(np.empty(0, dtype=np.int32))


@dataclass(frozen=True)
class Settled:
    """A verifier's word on a block.

    Attributes:
        accepted: leading tokens that it lets through, 0..n.
        survivors: those tokens, with the distribution that they now are draws from.
        own: one token of the verifier itself for the place after them, drawn from its own
            distribution, so that survivors and own together are draws of the verifier.
        owned: the verifier's text, ``accepted`` tokens and its own one, drawn from it.
    """

    accepted: int
    survivors: Block
    own: int
    owned: Block


class Judge(Protocol):
    """Settles a block; what ``words`` are depends on the judge."""

    def settle(self, block: Block, words: Any) -> Settled: ...


@dataclass(frozen=True)
class GreedyJudge:
    """Accept what equals the verifier's most probable token.

    ``words`` are those tokens at each place of the block and one past its end, (n + 1,).
    """

    def settle(self, block: Block, words: Tokens) -> Settled:
        accepted = accepted_prefix(block.tokens, words)
        survivors = block.first(accepted)
        own = int(words[accepted])
        return Settled(accepted, survivors, own, survivors.then(Block(words[accepted : accepted + 1])))


class Luck(Protocol):
    """Where chance comes from: a generator, or every outcome in turn (exact claims)."""

    def happens(self, part: Any, whole: Any) -> bool:
        """Something of probability min(1, part / whole)."""

    def pick(self, probs: Probs) -> int:
        """A token drawn from a distribution, shape (vocabulary,)."""


class RandomLuck:
    """Chance from a generator."""

    def __init__(self, generator: np.random.Generator):
        self.generator = generator

    def happens(self, part: Any, whole: Any) -> bool:
        return bool(self.generator.random() * whole < part)

    def pick(self, probs: Probs) -> int:
        return draw(probs, self.generator.random())


class RejectionJudge:
    """Accept x with probability min(1, p(x) / q(x)); at the first refusal draw from (p - q)+.

    arXiv 2211.17192, algorithm 1. ``words`` are the verifier's distributions
    at each place of the block and one past its end, shape (n + 1, vocabulary).

    What survives a verifier whose own token is not passed on is no longer a draw from q but
    from min(p, q) / sum min(p, q): the next verifier must weigh it against that (claims S5b, S5c).
    """

    def __init__(self, luck: Luck):
        self.luck = luck

    def settle(self, block: Block, words: Probs) -> Settled:
        n = len(block)
        accepted = 0
        own_probs = words[n]
        for place in range(n):
            token = int(block.tokens[place])
            drawn = 1 if block.probs is None else block.probs[place, token]
            if not self.luck.happens(words[place, token], drawn):
                own_probs = residual(words[place], proposal(block, place, words[place]))
                break
            accepted += 1
        own = self.luck.pick(own_probs)
        survivors = block.first(accepted)
        if block.probs is not None and accepted:
            kept = [surviving(words[i], block.probs[i]) for i in range(accepted)]
            survivors = Block(survivors.tokens, np.stack(kept))
        tokens = np.append(survivors.tokens, own).astype(np.int32)
        return Settled(accepted, survivors, own, Block(tokens, words[: accepted + 1]))


def accepted_prefix(drafted: Tokens, greedy: Tokens) -> int:
    """Accepted drafts of one block under greedy verification.

    Args:
        drafted: token ids of the block, shape (n,).
        greedy: the verifier's most probable token at each place of the block and
            perhaps past its end, shape (at least n,); a shorter array is allowed when
            it ends at the first disagreement.

    Returns:
        how many leading tokens agree, 0..n.
    """
    n = min(len(drafted), len(greedy))
    differ = np.flatnonzero(drafted[:n] != greedy[:n])
    return int(differ[0]) if len(differ) else n


def proposal(block: Block, place: int, like: Probs) -> Probs:
    """What the token at ``place`` was drawn from, shape and number type as of ``like``, (vocabulary,)."""
    if block.probs is not None:
        return np.asarray(block.probs[place])
    certain = np.zeros_like(like)
    certain[int(block.tokens[place])] = 1
    return certain


def residual(p: Probs, q: Probs) -> Probs:
    """(p - q)+ made to sum to 1: what to draw from after a refusal.

    Where q covers p nothing is left; a refusal is then a rounding accident, and p is returned.
    """
    left = np.maximum(p - q, 0)
    total = left.sum()
    return np.asarray(left / total if total > 0 else p)


def surviving(p: Probs, q: Probs) -> Probs:
    """min(p, q) made to sum to 1: what an accepted draw from q is a draw from."""
    both = np.minimum(p, q)
    return np.asarray(both / both.sum())


def draw(probs: Probs, uniform: float) -> int:
    """The token at ``uniform`` (0 to 1) of the cumulative distribution; never one of probability 0."""
    steps = np.cumsum(probs, dtype=np.float64)
    at = int(np.searchsorted(steps, uniform * steps[-1], side="right"))
    return min(at, int(np.flatnonzero(probs)[-1]))
