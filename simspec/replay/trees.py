"""Replay of drafted trees, exact where :mod:`simspec.speculation.trees` says that it can be.

Conventions are those of :mod:`simspec.replay.trajectories`, and further:

- A tree of n nodes is priced as a forward of n + 1 new tokens. What a tree's mask costs in attention, and
  what moving the accepted path's cache entries together costs, is not priced.
- A tree ends where the drafter's own block does: at the room left less one, and at an end of text that is
  the most probable token of its place.
- The drafter keeps what it has read of the accepted path: accepted tokens of its own block, as for a chain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.errors import BadInput
from simspec.replay.pricing import draft_seconds, forward
from simspec.replay.trajectories import Trajectories, draft_limit, drafts_read
from simspec.speculation.chains import Chain
from simspec.speculation.tree_sizes import Picked
from simspec.traces.drafters import Choices
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Offered:
    """What trees can be made of from every flat position.

    Attributes:
        chance: probabilities of the most probable tokens of each place, (N, D, K), 0 from ``limit`` on.
        text_rank: as in :class:`~simspec.traces.drafters.Choices`, (N, D).
        limit: places that can be drafted, (N,).
        at_once: places that one forward of the drafter gives.
    """

    drafter: str
    chance: Floats
    text_rank: NDArray[np.int32]
    limit: Ints
    at_once: int

    def shallow(self, places: int) -> Offered:
        """The same with only so many places to draft."""
        limit = np.minimum(self.limit, places)
        inside = np.arange(self.chance.shape[1]) < limit[:, None]
        return Offered(
            self.drafter, np.where(inside[..., None], self.chance, 0.0), self.text_rank, limit, self.at_once
        )


def choices_of(trace: Trace, drafter: str) -> Choices:
    """A drafter's choices.

    Raises:
        BadInput: when the trace does not tell them.
    """
    trace.require(drafter)
    index = trace.drafters.get(drafter)
    if index is None or index.choices is None:
        able = [name for name, d in trace.drafters.items() if d.choices is not None]
        raise BadInput(
            f"the trace does not tell what {drafter!r} chose among",
            where=trace.folder,
            allowed=", ".join(able) or "no drafter of it",
            hint="record with alternatives = 8 in the recipe",
        )
    return index.choices


def offered(trace: Trace, drafter: str) -> Offered:
    """What trees of a drafter can be made of; raises :class:`BadInput` when the trace does not tell."""
    choices = choices_of(trace, drafter)
    limit = np.maximum(draft_limit(trace, drafter, np.arange(len(trace.tokens))), 0)
    beyond = np.arange(choices.confidence.shape[1]) >= limit[:, None]
    chance = choices.confidence.astype(np.float64)
    chance[beyond] = 0.0
    return Offered(drafter, chance, choices.text_rank, limit, choices.at_once)


def seconds_of(trace: Trace, cost: CostModel, offer: Offered, nodes: int) -> tuple[Floats, Floats]:
    """Seconds of drafting 0..D places, (N, D + 1), and of verifying 0..``nodes`` nodes, (N, nodes + 1).

    Of a batch of one, the drafter having one token of text to read; a cycle's fixed seconds are in the
    latter.
    """
    context = trace.context[:, None]
    places = np.arange(offer.chance.shape[1] + 1)[None]
    lag = np.ones_like(context)
    draft = draft_seconds(trace, cost, offer.drafter, 1, places, lag, context)
    verify = forward(cost, trace.target, 1, np.arange(nodes + 1)[None] + 1, context)
    return draft, verify + cost.step_overhead_seconds


@dataclass(frozen=True)
class Trees:
    """A tree for every flat position, and how far down it the text goes; (N,) each."""

    nodes: Ints
    places: Ints
    accepted: Ints


def settle(offer: Offered, picked: Picked, rows: Ints | None = None) -> Trees:
    """What comes of trees picked at the flat positions ``rows``, all by default; no trees elsewhere."""
    many = len(offer.limit)
    at = np.arange(many) if rows is None else rows
    depth = picked.order.accepted(offer.text_rank[at])[np.arange(len(at)), picked.nodes]
    nodes, places, accepted = (np.zeros(many, dtype=np.int64) for _ in range(3))
    nodes[at], places[at], accepted[at] = picked.nodes, picked.places, depth
    return Trees(nodes, places, accepted)


def replay_trees(trace: Trace, offer: Offered, trees: Trees, start: Ints) -> Trajectories:
    """Decode every request to its text's end, each cycle with the tree of its flat position.

    Args:
        start: flat position that each request begins at, shape (Q,).

    Returns:
        the requests' cycles: ``submitted`` are nodes, ``accepted`` tokens of the accepted path.
    """
    whole = -(-trees.places // offer.at_once) * offer.at_once
    nodes = trees.nodes
    drafted = np.where(trees.places > 0, np.minimum(whole, offer.limit), 0)
    accepted = np.minimum(trees.accepted, trace.remaining)
    off_block = offer.text_rank != 0
    matched = np.where(off_block.any(axis=1), off_block.argmax(axis=1), off_block.shape[1])
    kept = np.minimum(np.minimum(accepted, matched), drafts_read(trace, offer.drafter, drafted))
    emitted = np.minimum(accepted + 1, trace.remaining)

    at, left = np.asarray(start, dtype=np.int64).copy(), trace.remaining[start].copy()
    alive, lag = np.arange(len(at)), np.ones(len(at), dtype=np.int64)
    flat: list[Ints] = []
    lags: list[Ints] = []
    while len(alive):
        column = np.full(len(start), -1, dtype=np.int64)
        column[alive] = at
        flat.append(column)
        read = np.zeros(len(start), dtype=np.int64)
        read[alive] = np.where(drafted[at] > 0, lag, 0)
        lags.append(read)
        lag = np.where(drafted[at] > 0, 0, lag) + emitted[at] - kept[at]
        left = left - emitted[at]
        on = left > 0
        at, left, alive, lag = at[on] + emitted[at[on]], left[on], alive[on], lag[on]
    where = np.stack(flat, axis=1)
    active = where >= 0

    def cycles(values: Ints) -> NDArray[np.int16]:
        return np.where(active, values[np.maximum(where, 0)], 0).astype(np.int16)

    return Trajectories(
        chain=Chain((offer.drafter, trace.target)),
        start=np.asarray(start, dtype=np.int64),
        flat=where.astype(np.int32),
        context=cycles(trace.context),
        drafted=cycles(drafted),
        lag=np.stack(lags, axis=1).astype(np.int16),
        submitted=cycles(nodes),
        middle=(),
        width=cycles(nodes + 1),
        accepted=cycles(accepted),
        emitted=cycles(emitted),
        tokens_a_forward=offer.at_once,
    )
