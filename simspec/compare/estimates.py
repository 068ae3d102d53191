"""Acceptance between models, as Eq. 7 is given it: from similarity, or realised."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simspec.traces.index import Trace

Floats = NDArray[np.float64]
Pair = tuple[str, str]

ALPHA_SOURCES = ("simscore", "realised")


def similarity(trace: Trace, counts: Floats) -> dict[Pair, Floats]:
    """SimScore = 1 - E[TV] along the text (Eq. 2 and 5 of arXiv 2505.07680), by draw.

    A look-up is a point mass on its first token; where it has none, nothing overlaps.

    Args:
        counts: how often each draw has each prompt, shape (draws, P).

    Returns:
        for each ordered pair of models, shape (draws,).
    """
    size = len(trace.prompts)
    positions = trace.prompts["output_tokens"].to_numpy().astype(np.float64)
    found: dict[Pair, Floats] = {}
    for key, rows in trace.pairs.groupby(["model_a", "model_b"]):
        a, b = (str(name) for name in key)
        overlap = 1.0 - rows["tv"].to_numpy().astype(np.float64)
        sums = np.bincount(rows["prompt_id"], weights=overlap, minlength=size)
        found[a, b] = found[b, a] = (counts @ sums) / (counts @ positions)
    return found


def realised(trace: Trace, counts: Floats, longest: int) -> dict[Pair, Floats]:
    """Share of drafted tokens that the next level accepts, given all before were, by draw.

    Counted over the first ``longest`` tokens of the block from every start; a block cut by its
    first refused token has one refusal, an empty block counts as one, and a block that is
    accepted to its end has none. Arguments and result as for :func:`similarity`.
    """
    size = len(trace.prompts)
    found = {}
    for drafter, index in trace.drafters.items():
        offered = np.minimum(index.length, np.minimum(longest, trace.remaining))
        verdicts = {trace.target: index.matched, **index.agreed}
        for verifier, run in verdicts.items():
            accepted = np.minimum(run, offered)
            refused = (accepted < offered) | (index.length == 0)
            good = np.bincount(trace.prompt, weights=accepted, minlength=size)
            tried = good + np.bincount(trace.prompt, weights=refused, minlength=size)
            found[drafter, verifier] = (counts @ good) / np.maximum(counts @ tried, 1.0)
    return found
