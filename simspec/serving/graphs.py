"""Forwards that run as graphs captured for a few sizes: padded to the next, without one beyond the last."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from simspec.cost.shape import StepShape
from simspec.errors import BadInput
from simspec.serving.clock import nanoseconds

Ints = NDArray[np.int64]
# Nanoseconds of one forward, from what a StepShape holds: rows, width, tokens, context, context tokens.
Price = Callable[[int, int, int, int, int], int]
PriceMany = Callable[[StepShape], Ints]


@dataclass(frozen=True)
class Graphs:
    """Sizes that graphs were captured for; ascending, one list of the two may be empty.

    Attributes:
        rows: requests of a forward; those that are added are as wide as the widest. They say nothing of
            its width.
        tokens: new tokens of a forward, padded after the rows.
        beyond_factor, beyond_seconds: a forward that no graph holds is not padded, takes so many times its
            price, and this longer.
    """

    rows: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    beyond_factor: float = 1.0
    beyond_seconds: float = 0.0

    def __post_init__(self) -> None:
        if not self.rows and not self.tokens:
            raise BadInput("graphs without sizes", hint="list rows, or tokens, or both")
        for name in ("rows", "tokens"):
            sizes = getattr(self, name)
            if any(b <= a for a, b in zip((0, *sizes), sizes, strict=False)):
                raise BadInput(f"{name} {list(sizes)}", allowed="sizes above 0 that rise")
        if not (isfinite(self.beyond_factor) and self.beyond_factor >= 1):
            raise BadInput(f"beyond_factor is {self.beyond_factor}", allowed="a finite number, at least 1")
        nanoseconds(self.beyond_seconds, "beyond_seconds")

    def priced(self, price: Price) -> Price:
        """What a forward costs as a graph, from what it costs at a size."""
        factor, more_ns = self.beyond_factor, nanoseconds(self.beyond_seconds)

        def padded(rows: int, width: int, tokens: int, context: int, context_tokens: int) -> int:
            wide, new = _next(self.rows, rows), None
            if wide is not None:
                new = _next(self.tokens, tokens + (wide - rows) * width)
            if wide is None or new is None:
                whole = price(rows, width, tokens, context, context_tokens)
                return int(whole * factor + 0.5) + more_ns
            return price(wide, width, new, context, context_tokens)

        return padded

    def priced_many(self, price: PriceMany) -> PriceMany:
        """The same for arrays of forwards."""
        factor, more_ns = self.beyond_factor, nanoseconds(self.beyond_seconds)

        def padded(shape: StepShape) -> Ints:
            rows, width = np.asarray(shape.rows, np.int64), np.asarray(shape.width, np.int64)
            tokens = np.asarray(shape.tokens, np.int64)
            wide, inside = _next_many(self.rows, rows)
            new, held = _next_many(self.tokens, tokens + (wide - rows) * width)
            inside = inside & held
            fitted = StepShape(
                np.where(inside, wide, rows),
                shape.width,
                np.where(inside, new, tokens),
                shape.context,
                shape.context_tokens,
            )
            found = price(fitted)
            return np.where(inside, found, (found * factor + 0.5).astype(np.int64) + more_ns)

        return padded


def _next(sizes: tuple[int, ...], count: int) -> int | None:
    """The least size that holds so many; None where there is none."""
    if not sizes:
        return count
    at = bisect_left(sizes, count)
    return sizes[at] if at < len(sizes) else None


def _next_many(sizes: tuple[int, ...], counts: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    if not sizes:
        return counts, np.ones(np.shape(counts), np.bool_)
    at = np.searchsorted(sizes, counts)
    return np.asarray(sizes)[np.minimum(at, len(sizes) - 1)], at < len(sizes)
