"""Which of a batch's drafted tokens to verify together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class BySurvival:
    """All tokens of each batch in the order of survival; arrays by budget n = 0.. have shape (G, n).

    Budgets end where the batch with most tokens has no more.

    Attributes:
        budgets: n.
        gain: expected accepted tokens of the first n.
        widest: tokens of the row with most of them.
        most: tokens that there are, (G,); beyond, nothing is gained.
    """

    order: Ints
    shape: tuple[int, ...]
    budgets: Ints
    gain: Floats
    widest: Ints
    most: Ints

    def of_rows(self, budget: Ints) -> Ints:
        """Tokens of each row among the first ``budget`` (G,), shape (G, B)."""
        streams, batch, depth = self.shape
        taken = self.budgets[:, 1:] <= budget[:, None]
        row = self.order // depth + np.arange(streams)[:, None] * batch
        return np.bincount(row[taken], minlength=streams * batch).reshape(streams, batch)


def by_survival(survival: Floats) -> BySurvival:
    """Order the tokens of (G, B, D), where survival falls along each row."""
    streams, depth = len(survival), survival.shape[2]
    flat = survival.reshape(streams, -1)
    # Stable, so that of equal survivals those of earlier rows and places come first: blocks have no holes.
    most = (flat > 0).sum(axis=1)
    order = np.argsort(-flat, axis=1, kind="stable")[:, : most.max(initial=0)]
    budgets = np.broadcast_to(np.arange(order.shape[1] + 1), (streams, order.shape[1] + 1))
    gain, widest = np.zeros(budgets.shape), np.zeros(budgets.shape, dtype=np.int64)
    np.cumsum(np.take_along_axis(flat, order, axis=1), axis=1, out=gain[:, 1:])
    np.maximum.accumulate(order % depth + 1, axis=1, out=widest[:, 1:])
    return BySurvival(order, survival.shape, budgets, gain, widest, most)


def allocate(
    survival: Floats,
    verify: Callable[[Ints, Ints], Floats],
    rows: Ints,
    rate: Floats | None,
    paid: Floats,
) -> Ints:
    """Tokens that each row submits, (G, B).

    For a forward that computes all its tokens and no more (packed), tokens in the order of survival are best
    for every budget, and the budgets are scanned (DSpark, arXiv 2607.05147); for one that pads, one width
    for all is, and the widths are scanned (claim L15). Both are tried and the better is taken, so costs
    between the two get a good answer, not the best for sure.

    Args:
        survival: chance that each token and all before it are accepted, (G, B, D), 0 where there is none;
            falling along the block.
        verify: seconds given tokens of the widest row and of all rows, as
            :class:`~simspec.speculation.planning.Waiting` has it.
        rows: rows that run, (G,): each emits one token more.
        rate: tokens that a second is worth, (G,): maximises tokens - rate * seconds. None maximises tokens
            over seconds.
        paid: seconds of the cycle that are not verification, (G,).
    """
    streams, batch, depth = survival.shape

    def worth(tokens: Floats, seconds: Floats) -> Floats:
        if rate is None:
            return np.asarray((tokens + rows[:, None]) / (seconds + paid[:, None]))
        return np.asarray(tokens - rate[:, None] * seconds)

    there = survival > 0
    width = np.arange(depth + 1)
    gain = np.concatenate([np.zeros((streams, 1)), np.cumsum(survival.sum(axis=1), axis=1)], axis=1)
    count = np.concatenate(
        [np.zeros((streams, 1), dtype=np.int64), np.cumsum(there.sum(axis=1), axis=1)], axis=1
    )
    # A width that no row has is none.
    widest = np.minimum(width, there.any(axis=1).sum(axis=1)[:, None])
    seconds = verify(widest, count)
    same_width = worth(gain, seconds)
    best = same_width.argmax(axis=1)
    submitted = np.minimum(there.sum(axis=2), best[:, None])
    if batch == 1:
        return np.asarray(submitted)  # the order of survival is that of the widths
    if np.array_equal(seconds[:, -1:], verify(widest[:, -1:], np.minimum(count[:, -1:], 1))):
        return np.asarray(submitted)  # the forward is as wide as its widest row, whatever the others do
    order = by_survival(survival)
    scanned = worth(order.gain, verify(order.widest, order.budgets))
    scanned = np.where(order.budgets <= order.most[:, None], scanned, -np.inf)
    better = scanned.max(axis=1) > same_width.max(axis=1)
    return np.asarray(np.where(better[:, None], order.of_rows(scanned.argmax(axis=1)), submitted))
