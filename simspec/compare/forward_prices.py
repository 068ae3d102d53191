"""What forwards of a batch cost at the trace's mean context: every row alike, or each row for itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

from simspec.cost.models import CostModel
from simspec.cost.shape import StepShape
from simspec.theory.padding import padded_seconds
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]


class ForwardPrices:
    """One cost, priced in advance for models and widths.

    Widths beyond ``widest`` are priced as the widest.
    """

    def __init__(
        self, trace: Trace, cost: CostModel, models: set[str], batches: tuple[int, ...], widest: int
    ):
        context = round(float(trace.context.mean()))
        self.batches = batches
        self.widest = widest
        self._rows: dict[str, list[Floats]] = {}
        self._alike: dict[str, Floats] = {}
        width = np.arange(1, widest + 1)[None]
        for model in models:
            tables = []
            for batch in batches:
                rows = np.arange(1, batch + 1)[:, None]

                def price(tokens: Ints, model: str = model, rows: Ints = rows) -> Floats:
                    shape = np.broadcast_arrays(rows, width, tokens, context, rows * context)
                    return cost.forward_seconds(model, StepShape(*(s.astype(np.int64) for s in shape)))

                # A row is padded to the widest; so much more for each further token that a mean row has.
                padded, two = price(rows * 1), np.maximum(width, 2)
                more = (price(rows * two) - padded) / (two - 1)
                both = np.stack([padded, more], axis=2)
                tables.append(np.concatenate([np.zeros((1, widest, 2)), both]))
            self._rows[model] = tables
            # Widths from 0, which costs nothing.
            full = [t[-1, :, 0] + t[-1, :, 1] * np.arange(widest) for t in tables]
            self._alike[model] = np.stack([np.concatenate([[0.0], f]) for f in full])

    def alike(self, model: str, width: Floats) -> Floats:
        """Every row ``width`` tokens wide, which need not be whole; shape (batches, *width's, at least 2)."""
        wanted = np.atleast_2d(width)
        low = np.clip(np.floor(wanted).astype(np.int64), 0, self.widest - 1)
        curve = self._alike[model]
        found: Floats = curve[:, low] + (wanted - low) * (curve[:, low + 1] - curve[:, low])
        return found

    def mean_alike(self, model: str, widths: Ints, chances: Floats) -> Floats:
        """Every row as wide as every other, by chance, at each batch size.

        Args:
            widths: shape (W,).
            chances: shape (W, ...); what they lack of 1 costs nothing.

        Returns:
            shape (batches, ...).
        """
        prices = self._alike[model][:, np.minimum(widths, self.widest)]
        return np.asarray(np.tensordot(prices, chances, axes=1))

    def mean_by_row(self, model: str, widths: Ints, chances: Floats) -> Floats:
        """Each row for itself, padded to the widest row that runs; arguments and shape as above.

        A row that runs is taken to be as wide as it is on average, where tokens and not padding are paid for.
        """
        at = np.minimum(widths, self.widest) - 1
        running = chances.sum(axis=0)
        more = np.tensordot(widths - 1.0, chances, axes=1) / np.where(running > 0, running, 1.0)
        found = []
        for batch, table in zip(self.batches, self._rows[model], strict=True):
            both = padded_seconds(chances, batch, table[:, at])
            found.append(both[..., 0] + more * both[..., 1])
        return np.stack(found)

    def mean_drained(
        self, model: str, widths: Ints, chances: Floats, running: Floats, steps: Floats
    ) -> Floats:
        """As :meth:`mean_by_row`, where fewer and fewer rows are left and no other takes their place.

        Args:
            widths, chances: as above; of the cycles of a row that still runs, so in which share of them it
                has such a forward. Shape (W, S, draws).
            running: chance that a row still runs, shape (draws, K).
            steps: how many cycles each of these is for, shape (K,).

        Returns:
            seconds over all cycles, shape (batches, S, draws).
        """
        return np.asarray(self._drained_by_width(model, widths, chances, running, steps).sum(axis=1))

    def _drained_by_width(
        self, model: str, widths: Ints, chances: Floats, running: Floats, steps: Floats
    ) -> Floats:
        """The same where each of ``widths`` is the widest, shape (batches, W, S, draws)."""
        at = np.minimum(widths, self.widest) - 1
        has = chances.sum(axis=0)
        some = np.where(has > 0, has, 1.0)
        more = np.tensordot(widths - 1.0, chances, axes=1) / some
        within = np.minimum(np.cumsum(chances, axis=0) / some, 1.0)
        # Rows with such a forward are so many with the chances of as many independent rows.
        chance = np.minimum(has[..., None] * running, 1.0)[..., None]
        found = []
        for batch, table in zip(self.batches, self._rows[model], strict=True):
            rows = np.arange(1, batch + 1)
            ways = gammaln(batch + 1) - gammaln(rows + 1) - gammaln(batch - rows + 1)
            many = np.exp(ways + xlogy(rows, chance) + xlog1py(batch - rows, -chance))
            often = np.tensordot(many, steps, axes=(2, 0))  # (S, draws, rows)
            law = within[..., None] ** rows
            law[1:] -= law[:-1].copy()
            both = np.einsum("wsdb,bwz->wsdz", law * often, table[1:, at])
            found.append(both[..., 0] + more * both[..., 1])
        return np.stack(found)
