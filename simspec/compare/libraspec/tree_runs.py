"""Trees of one drafter replayed at batch 1: of fixed size, LibraSpec's, and the cost-aware ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.replay.lockstep import price
from simspec.replay.trajectories import run
from simspec.replay.trees import Offered, Trees, offered, replay_trees, seconds_of, settle
from simspec.speculation.calibrating import KNOTS, between_knots, isotonic
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import LibraSpec
from simspec.speculation.tree_sizes import Foresight, Shape, cost_aware, fixed, libraspec
from simspec.speculation.trees import Order, best_first, by_place
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]

MOST_NODES = 26
WIDTHS = (2, 4)  # tokens a place, of trees of a fixed shape
PLACES = (1, 2, 3, 4, 5, 6, 8, 12, 16)
ROUNDS = 3  # of the fixed point of the cost-aware rule's rate


@dataclass(frozen=True)
class Fixed:
    """A family's member: places drafted at most (0: as many as the tree needs to be settled) and nodes."""

    family: str
    places: int
    nodes: int


@dataclass(frozen=True)
class Score:
    """What one way of choosing trees took, by prompt, (P,) each.

    Attributes:
        seconds: by the cost's name.
        cycles, nodes, places: cycles, and nodes and drafted places over them.
    """

    seconds: dict[str, Floats]
    cycles: Ints
    nodes: Ints
    places: Ints


class Bench:
    """One drafter of a trace under some costs, with the shapes that its trees can have."""

    def __init__(self, trace: Trace, drafter: str, costs: Sequence[CostModel]):
        self.trace, self.drafter = trace, drafter
        self.costs = [c for c in costs if {drafter, trace.target} <= c.models]
        self.offer = offered(trace, drafter)
        self.depth = self.offer.chance.shape[1]
        self.products = self.offer.at_once > 1

    def score(self, trees: Trees, prompts: Ints | None = None) -> Score:
        """Replay trees on some prompts, all by default; zeros elsewhere."""
        many = len(self.trace.prompts)
        chosen = np.arange(many) if prompts is None else prompts
        runs = replay_trees(self.trace, self.offer, trees, self.trace.offsets[:-1][chosen])
        alone = np.arange(len(chosen))[:, None]
        times = price(runs, alone, self.costs, lookup=False)

        def placed(values: NDArray[np.float64] | Ints) -> Floats:
            out = np.zeros(many)
            out[chosen] = values
            return out

        counts = (runs.active.sum(1), runs.submitted.sum(1, dtype=int), runs.drafted.sum(1, dtype=int))
        cycles, nodes, places = (placed(v).astype(np.int64) for v in counts)
        seconds = {c.name: placed(t.seconds) for c, t in zip(self.costs, times, strict=True)}
        return Score(seconds, cycles, nodes, places)

    def plain(self) -> dict[str, Floats]:
        """Seconds of every prompt without a drafter, by cost."""
        runs = run(self.trace, Chain((self.trace.target,)), None, self.trace.offsets[:-1])
        alone = np.arange(len(self.trace.prompts))[:, None]
        times = price(runs, alone, self.costs, lookup=False)
        return {c.name: t.seconds for c, t in zip(self.costs, times, strict=True)}

    def shapes(self) -> dict[str, Shape]:
        """Ways to order nodes, by name: the block alone, and the family that this drafter allows."""

        def chain(chance: Floats) -> Order:
            return best_first(chance[..., :1], MOST_NODES, spine=True)

        def tree(chance: Floats) -> Order:
            return best_first(chance, MOST_NODES, spine=not self.products)

        return {"chain": chain, "tree": tree}

    def within(self, shape: str) -> Offered:
        """The places that a shape may use: of products, those of one forward."""
        return self.offer.shallow(self.offer.at_once) if shape == "tree" and self.products else self.offer

    def fixed_sizes(self) -> dict[Fixed, Score]:
        """Every family at every number of nodes, 0 among them: that is plain decoding."""
        found: dict[Fixed, Score] = {}

        def all_sizes(family: str, offer: Offered, order: Order, places: int = 0) -> None:
            reached = order.accepted(offer.text_rank)
            rows = np.arange(len(reached))
            before = -1
            for n in range(MOST_NODES + 1):
                picked = fixed(order, n)
                size = int(picked.nodes.sum())
                if size == before:  # no tree has so many nodes
                    break
                before = size
                needed = np.minimum(offer.limit, places) * (n > 0) if places else picked.places
                trees = Trees(picked.nodes, needed, reached[rows, picked.nodes])
                found[Fixed(family, places, n)] = self.score(trees)

        chance = self.offer.chance
        all_sizes("chain", self.offer, best_first(chance[..., :1], MOST_NODES, spine=True))
        all_sizes("best-first", self.offer, best_first(chance, MOST_NODES, spine=True))
        if self.products:
            all_sizes("ddtree", self.within("tree"), self.shapes()["tree"](self.within("tree").chance))
        for width in WIDTHS:
            if width <= chance.shape[2]:
                all_sizes(f"top-{width}", self.offer, by_place(chance, MOST_NODES, width))
        for places in PLACES if not self.products else ():
            if places <= self.depth:
                offer = self.offer.shallow(places)
                all_sizes("drafted-first", offer, self.shapes()["tree"](offer.chance), places)
        return found

    def libraspec(self, shape: str) -> Score:
        """LibraSpec's algorithm with the paper's constants; its block is what one forward drafts."""
        offer = self.within(shape)
        rule = LibraSpec(block=offer.at_once, longest=min(LibraSpec.longest, self.depth))
        return self.score(settle(offer, libraspec(self.shapes()[shape](offer.chance), rule)))

    def foresight(self, prompts: Ints) -> Foresight:
        """What the positions of some prompts show; no rate yet."""
        mine = np.isin(self.trace.prompt, prompts) & (self.offer.limit > 0)
        confidence, right = self.offer.chance[..., 0], self.offer.text_rank == 0
        chance = isotonic(*_at_knots(confidence[mine, 0], right[mine, 0]))
        again = mine & right[:, 0] & (self.offer.limit > 1)
        good, tried = _at_knots(confidence[again, 0], right[again, min(1, self.depth - 1)])
        return Foresight(0.0, float(right[mine, 0].mean()), good / tried, chance)

    def cost_aware(
        self, shape: str, cost: CostModel, prompts: Ints, others: Ints, rate: float
    ) -> tuple[Score, float]:
        """The cost-aware rule on ``prompts``, knowing the ``others`` and the tokens a second reached there.

        ``rate`` is where the fixed point of those is looked for from; the one used is returned too.
        """
        known = self.foresight(others)
        tokens = self.trace.prompts["output_tokens"].to_numpy()
        for _ in range(ROUNDS):
            known = Foresight(rate, known.first, known.follow, known.chance)
            spent = self._aware(shape, cost, others, known).seconds[cost.name].sum()
            rate = float(tokens[others].sum() / spent)
        known = Foresight(rate, known.first, known.follow, known.chance)
        return self._aware(shape, cost, prompts, known), rate

    def _aware(self, shape: str, cost: CostModel, prompts: Ints, known: Foresight) -> Score:
        offer = self.within(shape)
        rows = np.flatnonzero(np.isin(self.trace.prompt, prompts))
        draft, verify = seconds_of(self.trace, cost, offer, MOST_NODES)
        picked = cost_aware(
            offer.chance[rows],
            self.shapes()[shape],
            offer.at_once,
            offer.limit[rows],
            draft[rows],
            verify[rows],
            known,
        )
        return self.score(settle(offer, picked, rows), prompts)


def _at_knots(confidence: Floats, right: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Accepted and tried tokens at each knot, with a made-up one that bears its confidence out."""
    low, share = between_knots(confidence)
    good, tried = KNOTS.copy(), np.ones(len(KNOTS))
    for offset, weight in ((0, 1.0 - share), (1, share)):
        tried += np.bincount(low + offset, weights=weight, minlength=len(KNOTS))
        good += np.bincount(low + offset, weights=weight * right, minlength=len(KNOTS))
    return good, tried
