"""What forwards cost, in whole nanoseconds.

Each forward is priced on its own by the cost model and rounded. An affine cost is evaluated in plain
Python numbers, in the order in which :class:`~simspec.cost.models.AffineCost` adds, because numpy on
single numbers would be most of a step's work; any other cost model is asked once for each distinct
shape and remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import AffineCost, CostModel
from simspec.cost.shape import StepShape
from simspec.errors import unknown_name
from simspec.serving.candidates import Candidate
from simspec.serving.clock import nanoseconds
from simspec.serving.graphs import Graphs, Price, PriceMany

Ints = NDArray[np.int64]

REMEMBERED = 1 << 16


@dataclass(frozen=True)
class Costs:
    """What there is to pay.

    Attributes:
        cost: prices the target, and the drafter too unless ``drafter_cost`` does.
        target, drafter: their names there; no drafter, no speculation.
        drafter_cost: prices the drafter. Tensor parallelism is part of a cost model: the target's at its
            degree is ``cost``, the drafter's at its own, or on its own device, is this.
        lookup: whether the drafter is a look-up, asked once a step, without cache or forwards.
        overhead_seconds: fixed time of a step; None for the cost model's own.
        idle_seconds: what a step that decodes takes longer when speculation is on and nothing is drafted.
        graphs: sizes that forwards of either model are padded to; look-ups are no forwards. None for none.
    """

    cost: CostModel
    target: str
    drafter: str | None = None
    drafter_cost: CostModel | None = None
    lookup: bool = False
    overhead_seconds: float | None = None
    idle_seconds: float = 0.0
    graphs: Graphs | None = None

    def __post_init__(self) -> None:
        if self.target not in self.cost.models:
            raise unknown_name("model", self.target, self.cost.models, where=self.cost.name)
        drafting = self.drafter_cost or self.cost
        if self.drafter is not None and self.drafter not in drafting.models:
            raise unknown_name("model", self.drafter, drafting.models, where=drafting.name)
        for name in ("overhead_seconds", "idle_seconds"):
            nanoseconds(getattr(self, name) or 0.0, name)


class Drafter(NamedTuple):
    """What a drafter's forwards cost, and whether it is a look-up."""

    price_ns: Price
    lookup: bool


class Pricer:
    """Prices forwards of the target and of every drafter.

    Attributes:
        padded: whether anybody looks at the widest or the longest row. Of packed rows only sums matter.
        target_many_ns: as ``target_ns``, for a shape of arrays.
    """

    def __init__(self, costs: Costs, others: Sequence[Candidate] = ()):
        self.costs = costs
        own = costs.overhead_seconds
        self.overhead_ns = nanoseconds(costs.cost.step_overhead_seconds if own is None else own)
        self.idle_ns = nanoseconds(costs.idle_seconds)
        graphs = costs.graphs
        self.target_ns = _price(costs.cost, costs.target, graphs)
        many = _price_many(costs.cost, costs.target)
        self.target_many_ns: PriceMany = many if graphs is None else graphs.priced_many(many)
        named = [(c.drafter, c.cost, c.lookup) for c in others]
        if costs.drafter is not None:
            named.insert(0, (costs.drafter, costs.drafter_cost or costs.cost, costs.lookup))
        self.drafters = [
            Drafter(_price(cost, name, None if lookup else graphs), lookup) for name, cost, lookup in named
        ]
        packed = all(isinstance(cost, AffineCost) for cost in (costs.cost, *(cost for _, cost, _ in named)))
        self.padded = not packed or (graphs is not None and bool(graphs.rows))

    def middle(self, model: str) -> Price:
        """Prices forwards of an intermediate, as the target's."""
        return _price(self.costs.cost, model, self.costs.graphs)

    def decoding_ns(self, rows: int, context: Ints, context_tokens: Ints) -> Ints:
        """Target forwards one token wide: ``context`` and ``context_tokens`` have shape (m,)."""
        same = np.full(len(context), rows)
        return self.target_many_ns(StepShape(same, np.ones_like(same), same, context, context_tokens))


def _price(cost: CostModel, model: str, graphs: Graphs | None) -> Price:
    price = _alone(cost, model)
    return price if graphs is None else graphs.priced(price)


def _alone(cost: CostModel, model: str) -> Price:
    if isinstance(cost, AffineCost):
        ratio = 1.0 if model == cost.target else cost.ratios[model]
        base, token, cached = cost.base_seconds, cost.token_seconds, cost.context_token_seconds

        def affine(rows: int, width: int, tokens: int, context: int, context_tokens: int) -> int:
            # Half a nanosecond up: a price is never negative.
            return int(ratio * (base + token * tokens + cached * context_tokens) * 1e9 + 0.5)

        return affine
    many = _price_many(cost, model)
    known: dict[tuple[int, ...], int] = {}

    def remembered(*shape: int) -> int:
        found = known.get(shape)
        if found is None:
            if len(known) >= REMEMBERED:
                known.clear()
            found = known[shape] = int(many(StepShape(*(np.array([n]) for n in shape)))[0])
        return found

    return remembered


def _price_many(cost: CostModel, model: str) -> PriceMany:
    def priced(shape: StepShape) -> Ints:
        found: Ints = (cost.forward_seconds(model, shape) * 1e9 + 0.5).astype(np.int64)
        return found

    return priced
