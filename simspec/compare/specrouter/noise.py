"""Noise on what estimators are told: acceptance rates, and seconds of forwards. One column a draw."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simspec.compare.estimates.similarity import Pair
from simspec.compare.forward_prices import ForwardPrices
from simspec.cost.models import CostModel
from simspec.streams import stream
from simspec.theory.padding import padded_seconds
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]

# Standard deviations of the relative noise.
LEVELS = (0.0, 0.05, 0.1, 0.2, 0.3)


def columns(draws: int) -> Floats:
    """The level of each column: the first without noise, then ``draws`` of each level above, (C,)."""
    return np.array([0.0, *np.repeat(LEVELS[1:], draws)])


def drawn(seed: int, draws: int, *name: str | int) -> Floats:
    """Standard normal numbers called ``name``, the same at every level; 0 in the first column, (C,)."""
    once = stream(seed, "noise", *name).standard_normal(draws)
    return np.concatenate([[0.0], np.tile(once, len(LEVELS) - 1)])


def noisy_rates(rates: dict[Pair, float], seed: int, draws: int, *, refused: bool) -> dict[Pair, Floats]:
    """Rates times 1 + level z, or 1 minus the refused share times that; within 0 and 1, (C,) each."""
    found = {}
    for pair, rate in rates.items():
        factor = 1.0 + columns(draws) * drawn(seed, draws, "rate", *pair)
        found[pair] = np.clip(1.0 - (1.0 - rate) * factor if refused else rate * factor, 0.0, 1.0)
    return found


class NoisyPrices(ForwardPrices):
    """Prices times exp(level z), z drawn for each model, or for each model and width.

    What is constant over columns goes in, and one price a column comes out; all else as in the class above.
    """

    def __init__(
        self,
        trace: Trace,
        cost: CostModel,
        models: set[str],
        batches: tuple[int, ...],
        widest: int,
        seed: int,
        draws: int,
        *,
        by_width: bool,
    ):
        super().__init__(trace, cost, models, batches, widest)
        level = columns(draws)
        # By width from 0 on, (widest + 1, C).
        self._factor = {
            m: np.stack(
                [np.exp(level * drawn(seed, draws, m, w if by_width else 0)) for w in range(widest + 1)]
            )
            for m in sorted(models)
        }

    def alike(self, model: str, width: Floats) -> Floats:
        """Shape (batches, *width's but its last, C)."""
        wanted = np.atleast_2d(width)
        low = np.clip(np.floor(wanted).astype(np.int64), 0, self.widest - 1)
        factor, curve = self._factor[model], self._alike[model]
        column = np.arange(factor.shape[1])

        def at(place: Ints) -> Floats:
            return np.asarray(curve[:, place] * factor[place, column])

        below = at(low)
        return np.asarray(below + (wanted - low) * (at(low + 1) - below))

    def mean_alike(self, model: str, widths: Ints, chances: Floats) -> Floats:
        at = np.minimum(widths, self.widest)
        weighed = self._factor[model][at][:, None] * chances
        return np.asarray(np.tensordot(self._alike[model][:, at], weighed, axes=1))

    def mean_by_row(self, model: str, widths: Ints, chances: Floats) -> Floats:
        """Chances must be the same in every column."""
        once = chances[..., 0]
        at = np.minimum(widths, self.widest)
        factor = self._factor[model][at]
        running = once.sum(axis=0)
        more = np.tensordot(widths - 1.0, once, axes=1) / np.where(running > 0, running, 1.0)
        found = []
        for batch, table in zip(self.batches, self._rows[model], strict=True):
            # (rows, widths, both, C), and both prices of every column are sums of one kind.
            prices = table[:, at - 1, :, None] * factor[None, :, None, :]
            both = padded_seconds(once, batch, prices.reshape(*prices.shape[:2], -1))
            both = both.reshape(*once.shape[1:], 2, -1)
            found.append(both[..., 0, :] + more[..., None] * both[..., 1, :])
        return np.stack(found)

    def mean_drained(
        self, model: str, widths: Ints, chances: Floats, running: Floats, steps: Floats
    ) -> Floats:
        """Chances must be the same in every column."""
        parts = self._drained_by_width(model, widths, chances[..., :1], running[:1], steps)[..., 0]
        factor = self._factor[model][np.minimum(widths, self.widest)]
        return np.asarray(np.einsum("bws,wc->bsc", parts, factor))
