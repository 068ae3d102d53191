"""What a forward over several rows costs at least for each of them: costs that add up over rows.

A share of at most k rows is a cost s(w, c) of one row of w new tokens at c cached ones, such that for every
forward F and every k of its rows or fewer, chosen beforehand,

    T(F) >= sum of s(w_i, c_i) over those of the chosen rows that are in F.            (1)

Plain division, s = T(k alike rows) / k, has (1) where three things hold: a padded forward costs no less with
more rows, with a wider row or a longer cache; and no more a row with more rows. (With j of the chosen rows in
F, W the widest and C the longest row: T(F) = T(|F|, W, C) >= T(j, W, C) >= j T(k, W, C) / k >= the sum.) A
published affine cost, which counts tokens, has it as well: its fixed part is at least j / k of itself.
A measured table has none of the three for sure, and a packed roofline is the greater of two sums, so:

- measured: the *envelope* min T(b, W, C) / min(b, k) over every b, W >= w, C >= c has (1) by construction:
  the forward itself is one of those it is the least of. Between the contexts that were measured it is
  interpolated, which is no more than the least of the interpolated ones.
- packed roofline: each part takes the longer of arithmetic and traffic, so either alone is no more than that,
  and adds up over rows: taken is the one that is longer for k rows ``TANGENT`` wide. Attention, whose
  arithmetic does not add up over unlike rows, is taken by its traffic.

Overheads of a cycle are divided by k: a cycle runs some of the chosen rows, k at most, or none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from simspec.cost.architecture import forward_work
from simspec.cost.models import AffineCost, CostModel, MeasuredCost
from simspec.cost.roofline import RooflineCost
from simspec.cost.shape import Numbers, StepShape, uniform

Floats = NDArray[np.float64]

# Any width is right; this one is about what good chains hand their target.
TANGENT = 3
# A measured cost grows in proportion beyond twice its widest forward, so none beyond is the cheapest.
_BEYOND = 2


@dataclass(frozen=True)
class Divided:
    """T(k alike rows) / k."""

    cost: CostModel
    rows: int

    @property
    def name(self) -> str:
        return f"{self.cost.name}, a row of {self.rows}"

    @property
    def label(self) -> str:
        return f"a lower bound on each row's share in a batch of at most {self.rows}: {self.cost.label}"

    @property
    def models(self) -> frozenset[str]:
        return self.cost.models

    @property
    def step_overhead_seconds(self) -> float:
        return self.cost.step_overhead_seconds / self.rows

    def forward_seconds(self, model: str, shape: StepShape) -> Floats:
        """Seconds of one row's share; the shape's rows must be 1 each."""
        every = np.full_like(shape.rows, self.rows)
        return np.asarray(
            self.cost.forward_seconds(model, uniform(every, shape.width, shape.context)) / self.rows
        )


@dataclass(frozen=True)
class Enveloped(Divided):
    """The envelope of a measured table."""

    cost: MeasuredCost

    @cached_property
    def _tables(self) -> dict[str, tuple[Floats, Floats]]:
        """By model: contexts, and the least share at least w wide there, (contexts, widest + 1)."""
        found = {}
        for model in self.cost.models:
            batches, widths, contexts = self.cost.measured_at(model)
            rows = np.arange(1, max(int(batches[-1]), self.rows) + 1)[:, None, None]
            wide = np.arange(_BEYOND * int(widths[-1]) + 1)[None, None, :]
            every = np.broadcast_arrays(rows, np.maximum(wide, 1), contexts[:, None])
            seconds = self.cost.forward_seconds(model, uniform(*every)) / np.minimum(rows, self.rows)
            least = np.minimum.accumulate(seconds.min(axis=0)[::-1, ::-1], axis=1)
            found[model] = contexts, np.minimum.accumulate(least, axis=0)[::-1, ::-1]
        return found

    def forward_seconds(self, model: str, shape: StepShape) -> Floats:
        contexts, table = self._tables[model]
        top = table.shape[1] - 1
        width = np.minimum(shape.width, top)
        place = np.interp(shape.context, contexts, np.arange(len(contexts)))
        low = np.minimum(place.astype(np.int64), max(len(contexts) - 2, 0))
        high = np.minimum(low + 1, len(contexts) - 1)
        below, above = table[low, width], table[high, width]
        beyond = np.maximum(shape.width / top, 1.0)
        return np.asarray((below + (place - low) * (above - below)) * beyond)


@dataclass(frozen=True)
class Summed(Divided):
    """A packed roofline whose every part is arithmetic alone or traffic alone."""

    cost: RooflineCost

    def forward_seconds(self, model: str, shape: StepShape) -> Floats:
        cost = self.cost
        if model in cost.lookup_seconds:
            return super().forward_seconds(model, shape)
        made, rates = cost.architectures[model], cost.rates

        def parts(width: Numbers, context: Numbers) -> tuple[list[Floats], list[Floats]]:
            alike = uniform(np.full_like(width, self.rows), width, context)
            work = forward_work(made, cost.formats, alike, packed=True)
            kept = (rates.cache_passes - 1) * work.cache_bytes
            moved = [work.linear.moved_bytes, work.head.moved_bytes, work.attention.moved_bytes + kept]
            done = [work.linear.flops, work.head.flops, 0.0 * kept]
            return [f / rates.flops_per_second for f in done], [b / rates.bytes_per_second for b in moved]

        longer = [a > t for a, t in zip(*parts(np.array(TANGENT), np.array(0)), strict=True)]
        total = np.asarray(rates.forward_overhead_seconds + made.layers * rates.layer_overhead_seconds)
        for arithmetic, traffic, take in zip(*parts(shape.width, shape.context), longer, strict=True):
            total = total + (arithmetic if take else traffic)
        return np.asarray(total / self.rows)


def share(cost: CostModel, rows: int) -> CostModel:
    """A share of at most ``rows`` rows; :class:`TypeError` where it is not known how a cost hangs on rows."""
    if isinstance(cost, MeasuredCost):
        return Enveloped(cost, rows)
    if isinstance(cost, RooflineCost) and cost.packed:
        return Summed(cost, rows)
    if isinstance(cost, AffineCost | RooflineCost):
        return Divided(cost, rows)
    raise TypeError(f"no share is known for {type(cost).__name__}")
