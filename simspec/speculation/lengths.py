"""How many tokens to draft and how many of them to submit.

A rule is its frozen parameters. It sees a :class:`View`: the drafter's confidences, how
many tokens may be drafted at most, and what a cycle costs at each length; never a
verdict. Confidences of tokens that it does not draft must not move its decision, which
a test checks for every rule. Rules work on many requests at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Protocol

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# What parameters may be, where they are read from a file (simspec.speculation.rule_files).
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Chance = Annotated[float, Meta(ge=0, le=1)]
Factor = Annotated[float, Meta(ge=0)]


@dataclass(frozen=True)
class View:
    """What a rule may see, for Q requests and blocks of at most D tokens.

    Attributes:
        confidence: the drafter's probability of each token it would draft, shape (Q, D);
            0 from ``limit`` on.
        limit: tokens that can be drafted at most, shape (Q,).
        seconds: what a cycle costs when n tokens are drafted and submitted, (Q, D + 1).
        entropy: of the distribution that each of those tokens would be drawn from, nats, (Q, D), 0 from
            ``limit`` on; None where nobody recorded it.
    """

    confidence: Floats
    limit: Ints
    seconds: Floats
    entropy: Floats | None = None


@dataclass(frozen=True)
class Decision:
    """Tokens to draft and, of those, tokens to submit; each of shape (Q,)."""

    drafted: Ints
    submitted: Ints


class LengthRule(Protocol):
    """A rule with state: one number a request, which it moves after each cycle.

    Attributes:
        sampling_safe: whether rejection sampling stays lossless under it, given each place's top-1
            probability for a confidence: whether a token is submitted must be settled by the
            tokens before it (claim L16).
    """

    sampling_safe: ClassVar[bool]

    def begin(self, requests: int) -> Floats:
        """State before the first cycle, shape (requests,)."""

    def decide(self, view: View, state: Floats) -> Decision:
        """Lengths for this cycle. May exceed ``view.limit``: the caller cuts."""

    def observe(self, state: Floats, decision: Decision, accepted: Ints) -> Floats:
        """State after a cycle whose decision, as carried out, had so many accepted drafts."""


class Stateless:
    sampling_safe: ClassVar[bool] = True

    def begin(self, requests: int) -> Floats:
        return np.zeros(requests)

    def observe(self, state: Floats, decision: Decision, accepted: Ints) -> Floats:
        return state


@dataclass(frozen=True)
class Static(Stateless):
    """Always the same length."""

    length: Count

    def decide(self, view: View, state: Floats) -> Decision:
        same = np.full(len(view.limit), self.length, dtype=np.int64)
        return Decision(same, same)


@dataclass(frozen=True)
class G4:
    """Two more after a block that was accepted whole, one less after any rejection.

    The baseline that LibraSpec (arXiv 2608.08721) names G4-style.
    """

    first: Positive = 5
    up: Count = 2
    down: Count = 1
    longest: Positive = 20

    sampling_safe: ClassVar[bool] = True

    def begin(self, requests: int) -> Floats:
        return np.full(requests, float(self.first))

    def decide(self, view: View, state: Floats) -> Decision:
        length = state.astype(np.int64)
        return Decision(length, length)

    def observe(self, state: Floats, decision: Decision, accepted: Ints) -> Floats:
        whole = accepted >= decision.submitted
        moved = state + np.where(whole, self.up, -self.down)
        # A cycle that had nothing to submit says nothing about the drafter.
        moved = np.where(decision.submitted > 0, moved, state)
        return np.clip(moved, 1, self.longest)


@dataclass(frozen=True)
class LibraSpec(Stateless):
    """LibraSpec's Algorithm 1 as printed (arXiv 2608.08721), overshoot and all.

    Start at one block of ``block`` tokens. While d < ``longest``: let e be the least, over
    i = 1..d, of floor(alpha * sum_{j=i..d} prod_{k=i..j} q_k + i). If e <= d, submit e;
    otherwise go on from d = e, drafting whole blocks as the budget runs out. The result
    can exceed ``longest`` by floor(alpha) - 1.
    """

    alpha: Factor = 2.2
    block: Positive = 16
    longest: Count = 24

    # It can roll back past tokens whose draws made the later confidences what they are.
    sampling_safe: ClassVar[bool] = False

    def decide(self, view: View, state: Floats) -> Decision:
        q = view.confidence
        rows = len(q)
        d = np.full(rows, self.block, dtype=np.int64)
        drafted = d.copy()
        going = d < self.longest
        while going.any():
            e = self._least(q[going], d[going])
            before = d[going]
            d[going] = e
            short = np.maximum(e - drafted[going], 0)
            drafted[going] += -(-short // self.block) * self.block
            further = e > before
            going[going] = further & (e < self.longest)
        return Decision(drafted, d)

    def _least(self, q: Floats, d: Ints) -> Ints:
        """min over i of floor(alpha * gain of positions i..d + i), from the far end backwards."""
        depth = q.shape[1]
        gain = np.zeros(len(d))
        least = np.full(len(d), np.inf)
        for i in range(int(d.max()), 0, -1):
            inside = i <= d
            # A token past the end of the record's blocks is as good as certain to be refused.
            here = q[:, i - 1] if i <= depth else 0.0
            gain = np.where(inside, here * (1.0 + gain), 0.0)
            least = np.where(inside, np.minimum(least, np.floor(self.alpha * gain + i)), least)
        return least.astype(np.int64)


@dataclass(frozen=True)
class ExactMarginal(Stateless):
    """Stop at the first token that does not raise expected tokens per second.

    theta(n) = (1 + sum_{j<=n} prod_{k<=j} q_k) / seconds(n), the bonus token and the
    drafting included (the rule of CaDDTree, arXiv 2606.01813). The drafter runs one
    token at a time, so the token that ends the search has been drafted too.
    """

    longest: Count = 24

    def decide(self, view: View, state: Floats) -> Decision:
        return self.choose(self.weigh(view.confidence, view.limit), view.limit, view.seconds)

    def weigh(self, confidence: Floats, limit: Ints) -> Floats:
        """What it makes of blocks, whatever cycles cost: expected tokens at each length, (Q, D + 1).

        Below 0 at lengths that are beyond it.
        """
        tokens = expected_tokens(confidence)
        reach = np.minimum(limit, self.longest)
        tokens[np.arange(tokens.shape[1]) > reach[:, None]] = -1.0
        return tokens

    def choose(self, tokens: Floats, limit: Ints, seconds: Floats) -> Decision:
        """Lengths from that; ``seconds`` of shape (Q, D + 1) or (D + 1,)."""
        theta = tokens / seconds
        stops = np.ones(theta.shape, dtype=np.bool_)
        np.less_equal(theta[:, 1:], theta[:, :-1], out=stops[:, :-1])
        submitted = stops.argmax(axis=1)  # theta(submitted + 1) <= theta(submitted)
        reach = np.minimum(limit, min(self.longest, theta.shape[1] - 1))
        return Decision(np.minimum(submitted + 1, reach), submitted)


def expected_tokens(confidence: Floats) -> Floats:
    """Expected emitted tokens at each length 0..D, bonus included; (Q, D) to (Q, D + 1)."""
    survival = np.cumprod(confidence, axis=1)
    return np.concatenate([np.ones((len(survival), 1)), 1.0 + np.cumsum(survival, axis=1)], axis=1)


@dataclass(frozen=True)
class Prescribed:
    """Lengths fixed beforehand at every flat position: what an oracle hands to replay.

    Not a rule: it is given the position, which a rule is not, because an oracle has
    looked at verdicts. ``lengths`` has shape (N,).
    """

    lengths: Ints
