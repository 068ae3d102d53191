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
    low = np.clip(np.searchsorted(KNOTS, confidence, side="right") - 1, 0, len(KNOTS) - 2)
    return low, (confidence - KNOTS[low]) / (KNOTS[low + 1] - KNOTS[low])


def isotonic(good: Floats, tried: Floats) -> Floats:
    """The rising values along the last axis that are least squares to good / tried with weights tried.

    By the formula max over i <= k of min over j >= k of the mean of i..j, all rows at once.
    """
    *rows, knots = good.shape
    # Knots first: what is done for each of them is done for all rows, which lie side by side.
    upto_good, upto = np.zeros((knots + 1, *rows)), np.zeros((knots + 1, *rows))
    np.cumsum(np.moveaxis(good, -1, 0), axis=0, out=upto_good[1:])
    np.cumsum(np.moveaxis(tried, -1, 0), axis=0, out=upto[1:])
    found = np.full((knots, *rows), -np.inf)
    for i in range(knots):
        mean = (upto_good[i + 1 :] - upto_good[i]) / (upto[i + 1 :] - upto[i])
        least = np.minimum.accumulate(mean[::-1], axis=0)[::-1]
        np.maximum(found[i:], least, out=found[i:])
    return np.moveaxis(found, 0, -1)


def reached(happened: Happened) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which drafted tokens were looked at, and which of them were accepted, (G, B, D) each."""
    place = np.arange(happened.waiting.confidence.shape[2])
    accepted = place < happened.accepted[..., None]
    return (place <= happened.accepted[..., None]) & (
        place < happened.decision.submitted[..., None]
    ), accepted


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
        }

    def chances(self, state: State, confidence: Floats) -> Floats:
        """Chance that each token is accepted once all before it are, (G, B, D); 0 where confidence is 0."""
        low, share = between_knots(confidence)
        maps = state["maps"]
        stream = np.arange(len(confidence))[:, None, None]
        stretch = np.searchsorted(STRETCHES, np.arange(confidence.shape[2]), side="right") - 1
        below, above = maps[stream, stretch, low], maps[stream, stretch, low + 1]
        return np.asarray(np.where(confidence > 0, below + share * (above - below), 0.0))

    def observe(self, state: State, happened: Happened) -> State:
        looked, accepted = reached(happened)
        stream, row, place = np.nonzero(looked)
        low, share = between_knots(happened.waiting.confidence[stream, row, place])
        stretch = np.searchsorted(STRETCHES, place, side="right") - 1
        good, tried = state["good"], state["tried"]
        cell = np.ravel_multi_index((stream, stretch, low), tried.shape)
        right = accepted[stream, row, place]
        for offset, weight in ((0, 1.0 - share), (1, share)):
            tried += np.bincount(cell + offset, weights=weight, minlength=tried.size).reshape(tried.shape)
            good += np.bincount(cell + offset, weights=weight * right, minlength=tried.size).reshape(
                tried.shape
            )
        seen = state["seen"] + 1
        due = (seen % self.refit_every == 0) | (seen < self.refit_every)
        maps = state["maps"]
        if due.any():
            maps = maps.copy()
            maps[due] = self.fit(good[due], tried[due])
        return {"good": good, "tried": tried, "maps": maps, "seen": seen}

    def fit(self, good: Floats, tried: Floats) -> Floats:
        """Maps from counts, (G, stretches, knots)."""
        pooled = isotonic(good.sum(axis=1) + KNOTS, tried.sum(axis=1) + 1.0)
        return isotonic(good + pooled[:, None], tried + 1.0)
