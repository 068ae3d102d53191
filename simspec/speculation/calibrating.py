"""From a drafter's confidence to a chance of acceptance, learned while serving.

Prequential: a cycle is decided by what earlier cycles showed, then counted. A drafted token counts where all
before it in its block were accepted and it was submitted itself, so a rule that never submits doubtful
tokens learns nothing of them; there the confidence stands as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.speculation.lengths import Positive
from simspec.speculation.planning import Happened, State

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Confidences between which the map is a straight line.
KNOTS = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995, 1.0])
# First places (from 0) of the stretches of a block that have a map each.
STRETCHES = np.array([0, 1, 2, 4, 8, 16])


def between_knots(confidence: Floats) -> tuple[Ints, Floats]:
    """The knot below each confidence, and how far it lies towards the next, 0 to 1."""
    low = np.searchsorted(KNOTS[1:-1], confidence, side="right")
    return low, (confidence - KNOTS[low]) / (KNOTS[low + 1] - KNOTS[low])


def isotonic(good: Floats, tried: Floats) -> Floats:
    """The rising values along the last axis that are least squares to good / tried with weights tried.

    By the formula max over i <= k of min over j >= k of the mean of i..j, all rows at once.
    """
    *rows, knots = good.shape
    # Knots first: what is done for each of them is done for all rows, which lie side by side.
    upto_good, upto = np.zeros((2, knots + 1, good.size // knots))
    np.cumsum(good.reshape(-1, knots).T, axis=0, out=upto_good[1:])
    np.cumsum(tried.reshape(-1, knots).T, axis=0, out=upto[1:])
    mean = np.full((knots, knots, good.size // knots), np.inf)  # of i..j
    for i in range(knots):
        np.divide(upto_good[i + 1 :] - upto_good[i], upto[i + 1 :] - upto[i], out=mean[i, i:])
    for j in range(knots - 1, 0, -1):
        np.minimum(mean[:j, j - 1], mean[:j, j], out=mean[:j, j - 1])
    found = np.stack([mean[: k + 1, k].max(axis=0) for k in range(knots)], axis=1)
    return found.reshape(*rows, knots)


def reached(happened: Happened) -> tuple[Ints, Ints, Ints, NDArray[np.bool_]]:
    """Stream, row and place of the drafted tokens that were looked at, and which of them were accepted."""
    accepted = happened.accepted
    stream, row = np.nonzero(happened.decision.submitted)
    taken = accepted[stream, row]
    count = np.minimum(taken + 1, happened.decision.submitted[stream, row])
    place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return np.repeat(stream, count), np.repeat(row, count), place, place < np.repeat(taken, count)


def add(counts: Floats, cell: Ints, weight: Floats) -> None:
    """Adds to the counts, whose ``cell`` is numbered as if laid out flat."""
    counts += np.bincount(cell, weights=weight, minlength=counts.size).reshape(counts.shape)


@dataclass(frozen=True)
class Calibration:
    """Isotonic over :data:`KNOTS`, by stretch of the block.

    One made-up observation stands at every knot: for all stretches together the confidence itself, for one
    stretch the map of all together. ``refit_every`` cycles the maps are made again from the counts.
    """

    refit_every: Positive = 8

    def begin(self, streams: int) -> State:
        counts = np.zeros((streams, len(STRETCHES), len(KNOTS)))
        maps = np.broadcast_to(KNOTS, counts.shape).copy()
        return {
            "good": counts,
            "tried": counts.copy(),
            "maps": maps,
            "seen": np.zeros(streams, dtype=np.int64),
            "stale": np.ones(streams, dtype=bool),
        }

    def chances(self, state: State, stream: Ints, place: Ints, confidence: Floats) -> Floats:
        """Chance that a token is accepted once all before it are, 0 where confidence is 0.

        Arrays that can be broadcast to one shape: stream, place in the block (from 0), confidence.
        """
        low, share = between_knots(confidence)
        maps, stretch = state["maps"], np.searchsorted(STRETCHES, place, side="right") - 1
        below, above = maps[stream, stretch, low], maps[stream, stretch, low + 1]
        return np.asarray(np.where(confidence > 0, below + share * (above - below), 0.0))

    def observe(self, state: State, happened: Happened) -> State:
        stream, row, place, right = reached(happened)
        good, tried, maps = state["good"], state["tried"], state["maps"]
        seen, stale = state["seen"] + 1, state["stale"]
        if len(stream):
            low, share = between_knots(happened.waiting.confidence[stream, row, place])
            stretch = np.searchsorted(STRETCHES, place, side="right") - 1
            cell = np.ravel_multi_index((stream, stretch, low), tried.shape)
            for offset, weight in ((0, 1.0 - share), (1, share)):
                add(tried, cell + offset, weight)
                add(good, cell + offset, weight * right)
            stale = stale.copy()
            stale[stream] = True
        # A map whose counts are what they were would come out the same.
        due = stale & ((seen % self.refit_every == 0) | (seen < self.refit_every))
        if due.any():
            maps = maps.copy()
            maps[due] = self.fit(good[due], tried[due])
            stale = stale & ~due
        return {"good": good, "tried": tried, "maps": maps, "seen": seen, "stale": stale}

    def fit(self, good: Floats, tried: Floats) -> Floats:
        """Maps from counts, (G, stretches, knots)."""
        pooled = isotonic(good.sum(axis=1) + KNOTS, tried.sum(axis=1) + 1.0)
        return isotonic(good + pooled[:, None], tried + 1.0)
