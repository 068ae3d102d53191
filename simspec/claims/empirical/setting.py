"""What every question is asked with: the trace, its bootstrap draws, how many resamples, the seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.claims.empirical.finding import FALSE_ALARMS
from simspec.claims.empirical.resample import Floats, Ints, sums_by
from simspec.compare.batches import draw_prompts
from simspec.streams import stream
from simspec.traces.index import Trace

# Chances that a place of the block must have, a prompt on average and in all, for its rate to be compared.
# With 30 in all and no more, sign flips over 56 prompts of a rate of .3 at p <= .0025 were wrong in .019 of
# 1,500 simulated cases; with 5 a prompt in .003.
ENOUGH_CHANCES, ENOUGH_CHANCES_A_PROMPT = 30, 5
# Places along a block that are compared.
PLACES = 8
LEAST_RESAMPLES = 999


@dataclass(frozen=True)
class Setting:
    """A trace and the luck that it is tested with.

    Attributes:
        counts: how often each bootstrap draw has each prompt, shape (draws, P).
        resamples: sign flips or permutations of each test.
    """

    trace: Trace
    counts: Floats
    resamples: int
    seed: int

    def luck(self, *name: str | int) -> np.random.Generator:
        """Random numbers for one purpose, the same whatever else is asked."""
        return stream(self.seed, "empirical", *name)

    @property
    def prompts(self) -> int:
        return len(self.trace.prompts)


def setting(trace: Trace, seed: int, draws: int) -> Setting:
    """The bootstrap draws, made once, so that all intervals are of the same draws."""
    counts = draw_prompts(trace, draws, seed).counts()[1:]
    return Setting(trace, counts, resamples(trace, draws), seed)


def resamples(trace: Trace, draws: int) -> int:
    """At least ``draws``, and enough that a p value can be half the strictest threshold of the family."""
    return max(LEAST_RESAMPLES, draws, round(2 * members(trace) / FALSE_ALARMS) - 1)


def members(trace: Trace) -> int:
    """An upper bound of the number of tests: known before any of them is made."""
    pairs = len(trace.pairs[["model_a", "model_b"]].drop_duplicates())
    return 10 * len(trace.drafters) + 2 * len(chains(trace)) + pairs


def chains(trace: Trace) -> list[tuple[str, str]]:
    """(drafter, intermediate) of every chain of three that the trace can say something about."""
    return [(d, v) for d, index in trace.drafters.items() for v in index.agreed]


@dataclass(frozen=True)
class Firsts:
    """The first draft from every start that has one.

    Attributes:
        flat: its place in the trace's flat order, shape (n,).
        prompt, position: its text and place there.
        accepted: whether it is the text's own token.
        confidence: the drafter's probability of it.
    """

    flat: Ints
    prompt: Ints
    position: Ints
    accepted: NDArray[np.bool_]
    confidence: Floats


def firsts(trace: Trace, drafter: str) -> Firsts:
    """First drafts; an empty block has none. For an autoregressive drafter they are all its drafts that
    follow accepted ones, each once (:func:`simspec.compare.calibration.first_drafts`)."""
    index = trace.drafters[drafter]
    flat = np.flatnonzero(index.length > 0)
    return Firsts(
        flat=flat,
        prompt=trace.prompt[flat],
        position=trace.position[flat],
        accepted=index.matched[flat] > 0,
        confidence=index.confidence[flat, 0].astype(np.float64),
    )


@dataclass(frozen=True)
class Places:
    """Drafts by prompt and by place in the block, counted where all drafts before them were accepted.

    Attributes:
        tried: shape (P, J). accepted: how many of those were accepted. confidence: their summed confidence.
    """

    tried: Floats
    accepted: Floats
    confidence: Floats


def places(trace: Trace, drafter: str) -> Places:
    """Over every start, the first places of the block that have enough chances, at most PLACES."""
    index, size = trace.drafters[drafter], len(trace.prompts)
    enough = max(ENOUGH_CHANCES, ENOUGH_CHANCES_A_PROMPT * size)
    offered = np.minimum(index.length, trace.remaining)
    run = np.minimum(index.matched, offered)
    columns: list[Floats] = []
    for j in range(1, min(PLACES, index.confidence.shape[1]) + 1):
        tried = (offered >= j) & (run >= j - 1)
        if tried.sum() < enough:
            break
        sums = (tried[tried], run[tried] >= j, index.confidence[tried, j - 1])
        columns.append(np.stack([sums_by(trace.prompt[tried], each, size) for each in sums]))
    stacked = np.array(columns).reshape(len(columns), 3, size)
    return Places(stacked[:, 0].T, stacked[:, 1].T, stacked[:, 2].T)
