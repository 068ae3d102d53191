"""Acceptance as the record has it: what the next level does with drafted blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.traces.index import Trace

Floats = NDArray[np.float64]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Tries:
    """A pair's drafts from every start: leading ones accepted, and whether one was then refused, (N,) each.

    Counted over the first ``longest`` tokens of the block; a block cut by its first refused token has one
    refusal, an empty block counts as one, and a block that is accepted to its end has none.
    """

    accepted: NDArray[np.int64]
    refused: NDArray[np.bool_]

    @property
    def tried(self) -> NDArray[np.int64]:
        """Drafts whose predecessors were all accepted, (N,)."""
        return self.accepted + self.refused


def tries(trace: Trace, longest: int) -> dict[Pair, Tries]:
    """For each (drafter, verifier)."""
    found = {}
    for drafter, index in trace.drafters.items():
        offered = np.minimum(index.length, np.minimum(longest, trace.remaining))
        for verifier, run in {trace.target: index.matched, **index.agreed}.items():
            accepted = np.minimum(run, offered)
            found[drafter, verifier] = Tries(accepted, (accepted < offered) | (index.length == 0))
    return found


def by_prompt(trace: Trace, longest: int) -> dict[Pair, tuple[Floats, Floats]]:
    """Drafts accepted and tried of each (drafter, verifier) on each prompt, shape (P,) each."""
    return {
        pair: (
            _sums(trace, t.accepted),
            _sums(trace, t.tried),
        )
        for pair, t in tries(trace, longest).items()
    }


def _sums(trace: Trace, counts: NDArray[np.int64]) -> Floats:
    found = np.bincount(trace.prompt, weights=counts, minlength=len(trace.prompts))
    return np.asarray(found, dtype=np.float64)


def realised(trace: Trace, counts: Floats, longest: int) -> dict[Pair, Floats]:
    """Share of drafted tokens that the next level accepts, given that all before were, by draw.

    Args:
        counts: how often each draw has each prompt, shape (draws, P).
        longest: drafts of a block that are counted.

    Returns:
        for each (drafter, verifier), shape (draws,).
    """
    return {
        pair: (counts @ good) / np.maximum(counts @ tried, 1.0)
        for pair, (good, tried) in by_prompt(trace, longest).items()
    }
