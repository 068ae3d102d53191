"""Confidence turned into a chance of acceptance by maps fitted on the other half of the prompts.

Halves are the prompts of even and of odd number. A map is fitted on drafted tokens whose predecessors in the
block were all accepted, at every position of the other half or at the starts that are given; of that half
it knows the record, of its own nothing. A single prompt has no other half and is fitted on itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression, minimize_scalar

from simspec.compare.calibration import Drafts, drafts
from simspec.speculation.calibrating import KNOTS, STRETCHES, Calibration, between_knots
from simspec.traces.index import Trace

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# What was learned from some drafts says what confidences (N, D) are worth.
Map = Callable[[Floats], Floats]

# A stretch of the block with fewer tokens goes by the temperature of all stretches.
ENOUGH = 50
# Half a step of half-precision numbers below 1, which is what is recorded: its logit is not infinite.
EDGE = 2.0**-12


def chances(trace: Trace, drafter: str, fit: Callable[[Drafts], Map], starts: Flags | None = None) -> Floats:
    """Each token's chance of acceptance once all before it are, (N, D); 0 past the end of a block."""
    confidence = trace.drafters[drafter].confidence.astype(np.float64)
    out, half = np.zeros(confidence.shape), trace.prompt % 2
    for mine in (0, 1):
        others = half != mine if (half != mine).any() else half == mine
        taught = drafts(trace, drafter, others if starts is None else others & starts)
        out[half == mine] = fit(taught)(confidence[half == mine])
    return np.where(confidence > 0, out, 0.0)


def isotonic(taught: Drafts) -> Map:
    """One map for all places."""
    if not len(taught.place):
        return lambda confidence: confidence
    knots, level, many = np.unique(taught.confidence, return_inverse=True, return_counts=True)
    share = np.bincount(level, weights=taught.accepted.astype(np.float64)) / many
    values = isotonic_regression(share, weights=many.astype(np.float64)).x
    return lambda confidence: np.asarray(np.interp(confidence, knots, values))


def isotonic_by_place(taught: Drafts) -> Map:
    """The map of :class:`~simspec.speculation.calibrating.Calibration`, a stretch of the block each."""
    shape = (1, len(STRETCHES), len(KNOTS))
    low, share = between_knots(taught.confidence)
    cell = np.ravel_multi_index((_stretch(taught.place), low), shape[1:])
    good, tried = np.zeros(shape), np.zeros(shape)
    for offset, weight in ((0, 1.0 - share), (1, share)):
        for into, values in ((tried, weight), (good, weight * taught.accepted)):
            into += np.bincount(cell + offset, weights=values, minlength=into.size).reshape(shape)
    online = Calibration()
    maps = online.fit(good, tried)
    return lambda confidence: online.chances(
        {"maps": maps}, np.zeros(1, dtype=np.int64), np.arange(confidence.shape[1]), confidence
    )


def temperature_by_place(taught: Drafts) -> Map:
    """1 / (1 + exp(-logit(confidence) / T)), T of greatest likelihood in each stretch of the block."""
    stretch = _stretch(taught.place)
    whole = _temperature(taught.confidence, taught.accepted)
    found = np.array(
        [
            _temperature(taught.confidence[mine], taught.accepted[mine]) if mine.sum() >= ENOUGH else whole
            for mine in (stretch == k for k in range(len(STRETCHES)))
        ]
    )

    def at(confidence: Floats) -> Floats:
        return _tempered(confidence, found[_stretch(np.arange(confidence.shape[1]))])

    return at


METHODS: Mapping[str, Callable[[Drafts], Map]] = {
    "isotonic": isotonic,
    "isotonic by place": isotonic_by_place,
    "temperature by place": temperature_by_place,
}


def with_confidence(trace: Trace, drafter: str, confidence: Floats) -> Trace:
    """The trace as if the drafter had said so of its tokens; what came of them stays."""
    index = replace(trace.drafters[drafter], confidence=confidence.astype(np.float32))
    return replace(trace, drafters={**trace.drafters, drafter: index})


def _stretch(place: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.searchsorted(STRETCHES, place, side="right") - 1


def _tempered(confidence: Floats, temperature: Floats | float) -> Floats:
    inside = np.clip(confidence, EDGE, 1.0 - EDGE)
    return np.asarray(1.0 / (1.0 + ((1.0 - inside) / inside) ** (1.0 / temperature)))


def _temperature(confidence: Floats, accepted: Flags) -> float:
    if not len(confidence):
        return 1.0

    def surprise(log: float) -> float:
        said = np.clip(_tempered(confidence, np.exp(log)), 1e-12, 1.0 - 1e-12)
        return -float(np.log(np.where(accepted, said, 1.0 - said)).mean())

    # From a twentieth to twenty: beyond that a map is a step, or says one half of everything.
    return float(np.exp(minimize_scalar(surprise, bounds=(-3.0, 3.0), method="bounded").x))
