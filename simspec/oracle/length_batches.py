"""The bound on any draft lengths of a batch in lock-step, one drafter.

It is the theorem of :mod:`simspec.oracle.batched`, whose L(i), the least time of request i alone at shares of
forwards, is replaced by something no greater: the drafter is taken as having one token of text to read in
every cycle. No share falls with width, so a drafter that has more to read, or that drafts more than is
submitted, takes no less. That leaves the place in the text as the program's whole state.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.cost.shares import share
from simspec.oracle.batched import bound_seconds, sizes
from simspec.oracle.lengths import known_tokens
from simspec.replay.pricing import two_level_seconds
from simspec.speculation.chains import Chain
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]


def seconds_to_end(trace: Trace, chain: Chain, cost: CostModel, longest: int | None = None) -> Floats:
    """Least seconds of one request from every flat position to its text's end, (N,).

    Args:
        longest: of drafts; the record's block length by default.
    """
    tokens, limit = known_tokens(trace, chain)
    emitted = tokens.astype(np.int64)
    seconds = two_level_seconds(trace, chain, cost, 1)
    limit = limit if longest is None else np.minimum(limit, longest)
    seconds[np.arange(seconds.shape[1]) > limit[:, None]] = np.inf
    # One more for what comes after the last text.
    out = np.zeros(len(emitted) + 1)
    for left in range(1, int(trace.remaining.max()) + 1):
        at = np.flatnonzero(trace.remaining == left)
        then = np.where(emitted[at] < left, out[at[:, None] + emitted[at]], 0.0)
        out[at] = (seconds[at] + then).min(axis=1)
    return out[:-1]


def least_batch_seconds(
    trace: Trace, chain: Chain, cost: CostModel, starts: Ints, requests: Ints, longest: int | None = None
) -> Floats:
    """The bound on each batch, (G,).

    Args:
        starts: flat position that each request begins at.
        requests: those of each batch, as indices of ``starts``, (G, B).
        longest: as in :func:`seconds_to_end`.
    """
    least = {
        k: seconds_to_end(trace, chain, share(cost, k), longest)[starts] for k in sizes(requests.shape[1])
    }
    return bound_seconds(least, requests)
