"""Rows of unequal width under any cost: padded to the widest, or packed.

A latency table is measured on rows that are alike and prices unequal ones as padded, by the widest row; an
affine profile prices the tokens there are, packed; a roofline says which. These reprice one model's forwards
the other way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.cost.shape import StepShape

Floats = NDArray[np.float64]
Layout = Literal["padded", "packed"]


def prices(cost: CostModel, model: str) -> Layout:
    """How ``cost`` takes rows of unequal width: padded where only the widest counts."""
    rows, width, context = np.array([2, 2]), np.array([9, 9]), np.array([64, 64])
    shape = StepShape(rows, width, np.array([10, 18]), context, rows * context)
    few, many = cost.forward_seconds(model, shape) + np.zeros(2)
    return "padded" if few == many else "packed"


@dataclass(frozen=True)
class _OneModel:
    """All but the forwards of ``model`` is as ``cost`` has it."""

    cost: CostModel
    model: str

    @property
    def name(self) -> str:
        return self.cost.name

    @property
    def models(self) -> frozenset[str]:
        return self.cost.models

    @property
    def step_overhead_seconds(self) -> float:
        return self.cost.step_overhead_seconds


@dataclass(frozen=True)
class Padded(_OneModel):
    """Every row computes as many new tokens as the widest. Caches are as long as they are."""

    @property
    def label(self) -> str:
        return f"{self.cost.label}; {self.model}: rows padded"

    def forward_seconds(self, model: str, shape: StepShape) -> Floats:
        if model == self.model:
            shape = StepShape(
                shape.rows, shape.width, shape.rows * shape.width, shape.context, shape.context_tokens
            )
        return self.cost.forward_seconds(model, shape)


@dataclass(frozen=True)
class MeanWidth(_OneModel):
    """Packed, from shapes that are alike: as many rows of the mean width, linear between whole widths.

    An approximation: it knows the tokens but not how they are spread, and attention over a long row and a
    short one need not cost what two middling ones do. Exact where cost is affine in the tokens, and for
    rows that are alike.
    """

    @property
    def label(self) -> str:
        return f"{self.cost.label}; {self.model}: rows packed, priced as rows of the mean width"

    def forward_seconds(self, model: str, shape: StepShape) -> Floats:
        if model != self.model:
            return self.cost.forward_seconds(model, shape)
        low = np.asarray(shape.tokens // shape.rows).astype(np.int64)
        share = shape.tokens / shape.rows - low

        def alike(width: NDArray[np.int64]) -> Floats:
            rows = shape.rows
            return self.cost.forward_seconds(
                model, StepShape(rows, width, rows * width, shape.context, shape.context_tokens)
            )

        below = alike(low)
        return np.asarray(below + share * (alike(low + 1) - below))


def laid_out(cost: CostModel, model: str, layout: Layout) -> CostModel:
    """``cost`` with ``model``'s forwards padded or packed: itself where it prices them so."""
    if prices(cost, model) == layout:
        return cost
    return Padded(cost, model) if layout == "padded" else MeanWidth(cost, model)
