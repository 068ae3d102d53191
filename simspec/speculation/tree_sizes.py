"""How many nodes of a tree to verify, and how many places to draft for them.

A rule sees what the drafter says and what forwards cost, never a verdict. Costs are seconds of drafting
n = 0..D places, (Q, D + 1), and of verifying n = 0..M nodes, (Q, M + 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simspec.speculation.calibrating import between_knots
from simspec.speculation.lengths import LibraSpec, View
from simspec.speculation.trees import Order

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# A tree's order from what the drafter says of its places, (Q, D, K).
Shape = Callable[[Floats], Order]


@dataclass(frozen=True)
class Picked:
    """Nodes to verify, and places to draft, of Q trees that grow in ``order``; (Q,) each."""

    order: Order
    nodes: Ints
    places: Ints


def fixed(order: Order, nodes: int) -> Picked:
    """The first ``nodes`` of every tree, or all that there are."""
    size = np.minimum(order.most(), nodes)
    return Picked(order, size, np.take_along_axis(order.places, size[:, None], axis=1)[:, 0])


def libraspec(order: Order, rule: LibraSpec) -> Picked:
    """LibraSpec's Algorithm 1 (arXiv 2608.08721) on a tree: ours, since the paper prints none.

    Its d becomes a number of nodes in the tree's order. What it takes for the confidence of place i is the
    i-th node's value over that of the node before it, so that its products are the nodes' values: on a chain
    it is Algorithm 1 itself, and elsewhere its sums are, as there, expected accepted tokens.
    """
    before = np.concatenate([np.ones((len(order.value), 1)), order.value[:, :-1]], axis=1)
    ratio = np.divide(order.value, before, out=np.zeros_like(before), where=before > 0.0)
    most = order.most()
    found = rule.decide(View(ratio, most, np.ones((1, 1))), np.zeros(len(most)))
    looked, nodes = np.minimum(found.drafted, most), np.minimum(found.submitted, most)
    return Picked(order, nodes, np.take_along_axis(order.places, looked[:, None], axis=1)[:, 0])


@dataclass(frozen=True)
class Foresight:
    """What cycles on other prompts showed; all that the cost-aware rule knows of them.

    Attributes:
        rate: tokens a second that the rule itself reached there: what a second is worth (claim L17).
        first: share of cycles whose first drafted token was accepted.
        follow: the same of a token that came after an accepted one, by the confidence of that one at each
            knot of :data:`~simspec.speculation.calibrating.KNOTS`.
        chance: the acceptance of a token of the block by its own confidence, likewise.
    """

    rate: float
    first: float
    follow: Floats = field(repr=False)
    chance: Floats = field(repr=False)


def between(told: Floats, confidence: Floats) -> Floats:
    """A figure that is told at the knots, at other confidences."""
    low, share = between_knots(confidence)
    return np.asarray(told[low] + share * (told[low + 1] - told[low]))


def calibrated(chance: Floats, told: Floats) -> Floats:
    """The block's tokens at the acceptance that such confidences showed, the others in proportion.

    What is left for the others grows or shrinks as one less the block's; none becomes likelier than it.
    """
    block = chance[..., 0]
    found = np.where(block > 0.0, between(told, block), 0.0)
    left = np.divide(1.0 - found, 1.0 - block, out=np.ones_like(found), where=block < 1.0)
    out = chance * left[..., None]
    out[..., 1:] = np.minimum(out[..., 1:], found[..., None])
    out[..., 0] = found
    return out


def cost_aware(
    chance: Floats,
    shape: Shape,
    at_once: int,
    limit: Ints,
    draft: Floats,
    verify: Floats,
    known: Foresight,
) -> Picked:
    """Draft on while it may pay, then take nodes while they pay: ours.

    A second is worth ``known.rate`` tokens. Having drafted some places, further ones may pay if, were the
    block to go on being accepted as after tokens of its last one's confidence, some number of them would be
    worth their drafting and verification. Of what is drafted, that number of nodes is taken that is worth
    most, all being weighed, since costs rise in stairs.

    Args:
        chance: as told by the drafter, (Q, D, K).
        at_once: places that one forward drafts.
        limit: places that can be drafted, (Q,).
    """
    many, depth, _ = chance.shape
    most = np.minimum(limit, depth)
    weighed = calibrated(chance, known.chance)
    survival = np.concatenate([np.ones((many, 1)), np.cumprod(weighed[..., 0], axis=1)], axis=1)
    follow = np.concatenate([np.full((many, 1), known.first), between(known.follow, chance[..., 0])], axis=1)
    drafted, nodes = np.zeros(many, dtype=np.int64), np.zeros(many, dtype=np.int64)

    def grown(rows: Ints) -> Order:
        inside = np.arange(depth) < drafted[rows, None]
        return shape(np.where(inside[..., None], weighed[rows], 0.0))

    going = np.arange(many)
    while len(going):
        so_far = drafted[going]
        going = going[
            _may_pay(
                so_far,
                most[going],
                nodes[going],
                survival[going, so_far],
                follow[going, so_far],
                at_once,
                draft[going],
                verify[going],
                known.rate,
            )
        ]
        drafted[going] = np.minimum(drafted[going] + at_once, most[going])
        order = grown(going)
        worth = order.gains() - known.rate * verify[going]
        worth[np.arange(worth.shape[1]) > order.most()[:, None]] = -np.inf
        nodes[going] = worth.argmax(axis=1)
    return Picked(grown(np.arange(many)), nodes, drafted)


def _may_pay(
    drafted: Ints,
    limit: Ints,
    nodes: Ints,
    survival: Floats,
    follow: Floats,
    at_once: int,
    draft: Floats,
    verify: Floats,
    rate: float,
) -> NDArray[np.bool_]:
    """Whether some number of further forwards of the drafter may pay, (Q,)."""
    rows, most = np.arange(len(drafted)), verify.shape[1] - 1
    pays = np.zeros(len(drafted), dtype=bool)
    best, gained, power = np.zeros(len(drafted)), np.zeros(len(drafted)), survival
    for k in range(1, draft.shape[1]):
        power = power * follow
        gained = gained + power
        more = verify[rows, np.minimum(nodes + k, most)] - verify[rows, nodes]
        # Not all that a forward drafts need be verified.
        best = np.maximum(best, np.where(nodes + k <= most, gained - rate * more, -np.inf))
        spent = draft[rows, np.minimum(drafted + k, limit)] - draft[rows, drafted]
        whole = (k % at_once == 0) | (drafted + k == limit)
        pays |= whole & (drafted + k <= limit) & (best > rate * spent)
    return pays
