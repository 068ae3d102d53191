"""What forwards cost, in whole nanoseconds.

Each forward is priced on its own by the cost model and rounded. An affine cost is evaluated in plain
Python numbers, in the order in which :class:`~simspec.cost.models.AffineCost` adds, because numpy on
single numbers would be most of a step's work; any other cost model is asked once for each distinct
shape and remembered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import AffineCost, CostModel
from simspec.cost.shape import StepShape
from simspec.errors import BadInput, unknown_name
from simspec.serving.clock import nanoseconds

Ints = NDArray[np.int64]

REMEMBERED = 1 << 16


# Nanoseconds of one forward, from what a StepShape holds: rows, width, tokens, context, context tokens.
Price = Callable[[int, int, int, int, int], int]


@dataclass(frozen=True)
class Costs:
    """What there is to pay.

    Attributes:
        cost: prices the target, and the drafter too unless ``drafter_cost`` does.
        target, drafter: their names there; no drafter, no speculation.
        drafter_cost: prices the drafter: its own device, or its own degree of tensor parallelism.
        lookup: whether the drafter is a look-up, asked once a step, without cache or forwards.
        overhead_seconds: fixed time of a step; None for the cost model's own.
        idle_seconds: what a step that decodes takes longer when speculation is on and nothing is drafted.
    """

    cost: CostModel
    target: str
    drafter: str | None = None
    drafter_cost: CostModel | None = None
    lookup: bool = False
    overhead_seconds: float | None = None
    idle_seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.target not in self.cost.models:
            raise unknown_name("model", self.target, self.cost.models, where=self.cost.name)
        drafting = self.drafter_cost or self.cost
        if self.drafter is not None and self.drafter not in drafting.models:
            raise unknown_name("model", self.drafter, drafting.models, where=drafting.name)
        for name in ("overhead_seconds", "idle_seconds"):
            nanoseconds(getattr(self, name) or 0.0, name)


class Pricer:
    """Prices forwards of the target and the drafter."""

    def __init__(self, costs: Costs):
        self.costs = costs
        own = costs.overhead_seconds
        self.overhead_ns = nanoseconds(costs.cost.step_overhead_seconds if own is None else own)
        self.idle_ns = nanoseconds(costs.idle_seconds)
        self.target_ns: Price = _price(costs.cost, costs.target)
        self.drafter_ns: Price = _none
        if costs.drafter is not None:
            self.drafter_ns = _price(costs.drafter_cost or costs.cost, costs.drafter)
        drafting = costs.drafter_cost or costs.cost
        # Rows that lie packed: only sums matter, and nobody need look for the widest or the longest.
        self.padded = not (isinstance(costs.cost, AffineCost) and isinstance(drafting, AffineCost))
        self._target_many = _price_many(costs.cost, costs.target)

    def decoding_ns(self, rows: int, context: Ints, context_tokens: Ints) -> Ints:
        """Target forwards one token wide: ``context`` and ``context_tokens`` have shape (m,)."""
        same = np.full(len(context), rows)
        return self._target_many(StepShape(same, np.ones_like(same), same, context, context_tokens))


def _none(rows: int, width: int, tokens: int, context: int, context_tokens: int) -> int:
    raise BadInput("there is no drafter to price")


def _price(cost: CostModel, model: str) -> Price:
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


def _price_many(cost: CostModel, model: str) -> Callable[[StepShape], Ints]:
    def priced(shape: StepShape) -> Ints:
        found: Ints = (cost.forward_seconds(model, shape) * 1e9 + 0.5).astype(np.int64)
        return found

    return priced
