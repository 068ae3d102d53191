"""Streams of texts that one router serves one after another, its memory lasting, while its pool may grow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.replay.candidates import CandidateTable
from simspec.replay.evidence import Similarity
from simspec.replay.routed import route
from simspec.speculation.routing import Evidence, Pool, Router, Seen, State, View
from simspec.streams import stream
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Columns of what is watched: the decider's kind, then counts of cycles, of those that used the model, tokens
# of these, how many of the latest cycles in a row, and the most in a row so far.
KIND, CYCLES, USED, USED_TOKENS, RUN, LONGEST = range(6)


@dataclass(frozen=True)
class Watched:
    """A router, and how often its deciders take candidates of some model.

    Attributes:
        uses: which candidates count, by kind of decider, (kinds, K).
        kind: of each decider, (D,).
    """

    router: Router
    uses: Bools
    kind: Ints

    @property
    def evidence(self) -> Evidence:
        return self.router.evidence

    def begin(self, pool: Pool, deciders: int) -> State:
        watched = np.zeros((deciders, 6), dtype=np.int64)
        watched[:, KIND] = self.kind
        return {**self.router.begin(pool, deciders), "watched": watched}

    def choose(self, pool: Pool, state: State, view: View) -> Ints:
        return self.router.choose(pool, state, view)

    def observe(self, pool: Pool, state: State, seen: Seen) -> State:
        watched = state["watched"].copy()
        using = self.uses[watched[:, KIND], seen.chosen]
        watched[:, CYCLES] += 1
        watched[:, USED] += using
        watched[:, USED_TOKENS] += np.where(using, seen.tokens, 0)
        watched[:, RUN] = np.where(using, watched[:, RUN] + 1, 0)
        watched[:, LONGEST] = np.maximum(watched[:, LONGEST], watched[:, RUN])
        return {**self.router.observe(pool, state, seen), "watched": watched}


@dataclass(frozen=True)
class Held:
    """Each decider has its own candidate for ever, (D,)."""

    candidates: Ints
    evidence: Evidence = "realised"

    def begin(self, pool: Pool, deciders: int) -> State:
        return {"candidate": self.candidates}

    def choose(self, pool: Pool, state: State, view: View) -> Ints:
        return np.asarray(state["candidate"], dtype=np.int64)

    def observe(self, pool: Pool, state: State, seen: Seen) -> State:
        return state


@dataclass(frozen=True)
class Served:
    """By text number and decider, shape (T, D) each; ``longest`` (D,) is over all of them."""

    seconds: Floats
    tokens: Ints
    cycles: Ints
    used: Ints
    used_tokens: Ints
    longest: Ints


def serve(
    table: CandidateTable,
    cost: CostModel,
    router: Watched | Held,
    starts: Ints,
    similarity: Similarity,
    offered: Callable[[int], Bools] | None = None,
    before: Callable[[int, State], None] | None = None,
) -> Served:
    """Batches of texts one after another: the next begins when all of the last have ended.

    Args:
        starts: flat position of every text, shape (T, D, B).
        offered: which candidates each decider may take at a text number, (D, K).
        before: called with each text's number and what is remembered, which it may change.
    """
    state = router.begin(table.pool, starts.shape[1])
    seconds, tokens, watched = [], [], [np.zeros((starts.shape[1], 6), dtype=np.int64)]
    for t, begin in enumerate(starts):
        if before is not None:
            before(t, state)
        allowed = None if offered is None else offered(t)
        done = route(table, cost, router, begin, similarity=similarity, memory=state, offered=allowed)
        state = done.memory
        seconds.append(done.seconds)
        tokens.append(done.tokens)
        watched.append(state["watched"] if "watched" in state else watched[0])
    counts = np.stack(watched)
    more = counts[1:] - counts[:-1]
    return Served(
        np.stack(seconds),
        np.stack(tokens),
        more[..., CYCLES],
        more[..., USED],
        more[..., USED_TOKENS],
        watched[-1][:, LONGEST],
    )


def orders(trace: Trace, part: Ints, seed: int, streams: int, texts: int, batch: int) -> Ints:
    """Starts of random orders of the prompts ``part``, one after another, (T, streams, B)."""
    found = np.empty((texts, streams, batch), dtype=np.int64)
    for s in range(streams):
        generator = stream(seed, "stream", s, batch, int(part[0]))
        rounds = -(-texts * batch // len(part))
        drawn = np.concatenate([generator.permutation(part) for _ in range(rounds)])
        found[:, s] = drawn[: texts * batch].reshape(texts, batch)
    return np.asarray(trace.offsets[found], dtype=np.int64)
