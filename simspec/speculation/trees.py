"""Trees of drafted tokens, verified in one forward: which tokens, in which order under a growing budget.

A node is a place (1 for the first drafted token) and the rank of a token among what the drafter finds most
probable there; with the nodes that it hangs on it spells a continuation of the text. Under greedy decoding
the target goes down the tree as long as a child is its own token, and adds a token of its own.

A node's value is the drafter's probability that the target comes to it. No node is worth more than the one
it hangs on, so the best nodes are a tree, and a tree's expected accepted tokens are the sum of its values.

Two families can be chosen, and replayed, exactly from a record of one block per start:

- a *spine*: the drafter's own block with alternatives of each place as leaves. What an autoregressive drafter
  would say after an alternative is never needed;
- *products*: any path, where what is said of a place does not hang on the tokens before it: the places of one
  forward of a block-parallel drafter (DDTree, arXiv 2604.12989).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Order:
    """The order in which Q trees grow to at most M nodes, parents before children.

    Attributes:
        value: of each node, (Q, M); 0 where there are no more nodes.
        place, rank: which token it is, (Q, M); places count from 1, ranks from 0.
        parent: the node that it hangs on, (Q, M); -1 for the root, which is the text.
        places: places that must have been drafted before the first n = 0..M nodes are settled, (Q, M + 1).
    """

    value: Floats
    place: Ints
    rank: Ints
    parent: Ints
    places: Ints

    @property
    def there(self) -> Bools:
        return self.value > 0.0

    def most(self) -> Ints:
        """Nodes that there are, (Q,)."""
        return np.asarray(self.there.sum(axis=1), dtype=np.int64)

    def gains(self) -> Floats:
        """Expected accepted tokens of the first n = 0..M nodes, (Q, M + 1)."""
        return _from_nothing(np.cumsum(self.value, axis=1))

    def accepted(self, text_rank: NDArray[np.int32]) -> Ints:
        """Accepted tokens of the first n = 0..M nodes, (Q, M + 1).

        Args:
            text_rank: rank of the text's token at each place, (Q, D), as
                :class:`simspec.traces.drafters.Choices` has it.
        """
        on = path(self.place, self.rank, self.parent, text_rank) & self.there
        return _from_nothing(np.maximum.accumulate(np.where(on, self.place, 0), axis=1))


def path(place: Ints, rank: Ints, parent: Ints, text_rank: NDArray[Any]) -> Bools:
    """Which nodes lie on the path of the tokens of these ranks, (Q, D); shape (Q, M), absent ones aside."""
    rows = np.arange(len(place))
    on = np.zeros(place.shape, dtype=bool)
    for i in range(place.shape[1]):
        above = parent[:, i]
        reached = (above < 0) | on[rows, np.maximum(above, 0)]
        on[:, i] = reached & (text_rank[rows, np.maximum(place[:, i] - 1, 0)] == rank[:, i])
    return on


def _from_nothing(values: NDArray[Any]) -> NDArray[Any]:
    """With a column of zeros in front: of no nodes."""
    return np.concatenate([np.zeros((len(values), 1), dtype=values.dtype), values], axis=1)


def best_first(chance: Floats, nodes: int, *, spine: bool) -> Order:
    """Nodes by falling value: the best tree of every size up to ``nodes``.

    Args:
        chance: of each place's tokens, most probable first, (Q, D, K); 0 where there is none.
        spine: whether only the most probable tokens may have children; else chances of different places are
            taken as independent.

    A node's next sibling and its first child enter the list of candidates when it is taken, which is never
    longer than the tree. Of equals the one that entered first is taken.
    """
    many, depth, width = chance.shape
    rows = np.arange(many)
    value = np.zeros((many, nodes))
    place, rank, parent = (np.zeros((many, nodes), dtype=np.int64) for _ in range(3))
    # Candidates: worth, what their parent is worth, place - 1, rank, parent, whether all above are of rank 0.
    worth, before = np.full((many, nodes + 1), -1.0), np.ones((many, nodes + 1))
    at, which, above = (np.zeros((many, nodes + 1), dtype=np.int64) for _ in range(3))
    block = np.ones((many, nodes + 1), dtype=bool)
    above[:, 0] = -1
    worth[:, 0] = chance[:, 0, 0] if depth else 0.0
    for i in range(nodes):
        best = worth.argmax(axis=1)
        cell = rows, best
        taken, p, r, base, under = worth[cell], at[cell], which[cell], before[cell], block[cell]
        there = taken > 0.0
        value[:, i], place[:, i] = np.where(there, taken, 0.0), np.where(there, p + 1, 0)
        rank[:, i], parent[:, i] = r, above[cell]
        # Its sibling takes its cell.
        more = there & (r + 1 < width)
        worth[cell] = np.where(more, base * chance[rows, p, np.minimum(r + 1, width - 1)], -1.0)
        which[cell] = r + 1
        deeper = there & (p + 1 < depth) & ((under & (r == 0)) | (not spine))
        worth[:, i + 1] = np.where(deeper, taken * chance[rows, np.minimum(p + 1, depth - 1), 0], -1.0)
        before[:, i + 1], at[:, i + 1], above[:, i + 1] = taken, p + 1, i
        block[:, i + 1] = under & (r == 0)
    # Under a token of the block hangs the next one, which may be worth as much: until its place is drafted
    # nothing else can be taken. One that is taken last need not be followed.
    spine_node = path(place, rank, parent, np.zeros((many, depth), dtype=np.int64)) & (value > 0.0)
    known = np.where(value > 0.0, 1 + np.cumsum(spine_node, axis=1) - spine_node, 0)
    known = np.minimum(known, (chance[..., 0] > 0.0).sum(axis=1)[:, None])
    return Order(value, place, rank, parent, _from_nothing(np.maximum.accumulate(known, axis=1)))


def by_place(chance: Floats, nodes: int, width: int) -> Order:
    """The ``width`` most probable tokens of the first place, then of the second: no look at values.

    A spine of a fixed shape; the block goes on under each place's most probable token.
    """
    many, depth, most = chance.shape
    width = min(width, most)
    i = np.arange(nodes)
    place, rank = i // width, i % width
    inside = place < depth
    before = np.cumprod(np.concatenate([np.ones((many, 1)), chance[:, :-1, 0]], axis=1), axis=1)
    at = np.minimum(place, depth - 1)
    value = np.where(inside, before[:, at] * chance[:, at, rank], 0.0)
    parent = np.where(place > 0, (place - 1) * width, -1)
    shape = value.shape
    # A token of no probability ends the tree, so that nodes lie without a gap.
    value = np.where(np.minimum.accumulate(value > 0.0, axis=1), value, 0.0)
    found = np.where(value > 0.0, place + 1, 0)
    deepest = _from_nothing(np.maximum.accumulate(found, axis=1))
    return Order(value, found, np.broadcast_to(rank, shape), np.broadcast_to(parent, shape), deepest)
