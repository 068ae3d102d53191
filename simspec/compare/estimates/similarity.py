"""How alike models are along the text: SimScore and argmax agreement."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simspec.traces.index import Trace

Floats = NDArray[np.float64]
Pair = tuple[str, str]


def along_text(trace: Trace, column: str) -> dict[Pair, Floats]:
    """A measure of each ordered pair of models at every flat position, shape (N,).

    ``column`` is "overlap" (1 - TV, Eq. 5 of arXiv 2505.07680) or "argmax_agree". A look-up is a point
    mass on its first token; where it has none, nothing overlaps or agrees.
    """
    found: dict[Pair, Floats] = {}
    for key, rows in trace.pairs.groupby(["model_a", "model_b"]):
        a, b = (str(name) for name in key)
        at = trace.offsets[rows["prompt_id"].to_numpy()] + rows["position"].to_numpy()
        values = np.zeros(len(trace.tokens))
        values[at] = 1.0 - rows["tv"].to_numpy() if column == "overlap" else rows[column].to_numpy()
        found[a, b] = found[b, a] = values
    return found


def by_prompt(trace: Trace, values: Floats) -> Floats:
    """Sums over each prompt's text, shape (P,)."""
    return np.asarray(np.bincount(trace.prompt, weights=values, minlength=len(trace.prompts)))


def mean_along_text(trace: Trace, column: str, counts: Floats) -> dict[Pair, Floats]:
    """Means over the texts of each draw, positions alike.

    Args:
        counts: how often each draw has each prompt, shape (draws, P).

    Returns:
        for each ordered pair of models, shape (draws,).
    """
    positions = trace.prompts["output_tokens"].to_numpy().astype(np.float64)
    return {
        pair: (counts @ by_prompt(trace, values)) / (counts @ positions)
        for pair, values in along_text(trace, column).items()
    }


def similarity(trace: Trace, counts: Floats) -> dict[Pair, Floats]:
    """SimScore = 1 - E[TV] along the text (Eq. 2 and 5 of arXiv 2505.07680), by draw."""
    return mean_along_text(trace, "overlap", counts)


def agreement(trace: Trace, counts: Floats) -> dict[Pair, Floats]:
    """Share of places where both have the same most probable token, by draw: what greedy decoding accepts
    of a first draft, and what SimScore stands in for."""
    return mean_along_text(trace, "argmax_agree", counts)
