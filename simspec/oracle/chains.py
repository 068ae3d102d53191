"""The bound on any schedule of chains: dynamic programming over a candidate set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.replay.pricing import forward
from simspec.replay.trajectories import draft_limit, first_width, forwards, later_width, outcome
from simspec.speculation.chains import Chain
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]

# Widths over which a level's first forward is searched for its cheapest.
_WIDTHS = 64


def least_seconds(trace: Trace, candidates: Sequence[tuple[Chain, int]], cost: CostModel) -> Floats:
    """No schedule over ``candidates`` decodes a prompt at batch 1 in less, shape (P,).

    Each cycle may use any (chain, draft length), and the program knows what will be
    accepted. Tokens that an idle or lagging level has to catch up on are charged at the
    cheapest width it could need, so this is a lower bound and need not be reached; it is
    attained when no level ever lags.
    """
    seconds, emitted = cycles(trace, candidates, cost)
    size = trace.prompts["output_tokens"].to_numpy().astype(np.int64)
    best = np.zeros((len(size), int(size.max()) + 1))
    prompts = np.arange(len(size))
    for t in range(int(size.max()) - 1, -1, -1):
        here = prompts[t < size]
        at = trace.offsets[here] + t
        then = best[here[None], t + emitted[:, at]]
        best[here, t] = (seconds[:, at] + then).min(axis=0)
    return best[:, 0]


def cycles(trace: Trace, candidates: Sequence[tuple[Chain, int]], cost: CostModel) -> tuple[Floats, Ints]:
    """Least seconds and emitted tokens of a cycle of each candidate from each flat position.

    Both of shape (candidates, N). Static draft lengths, cut where the text or the block ends.
    """
    at = np.arange(len(trace.tokens))
    context = trace.context
    cheapest = {
        m: _cheapest(trace, cost, m)
        for m in {m for chain, _ in candidates for m in chain.levels}
        if not trace.is_lookup(m)
    }
    seconds, emitted = [], []
    for chain, length in candidates:
        drafted = np.zeros_like(at)
        total = np.full(len(at), cost.step_overhead_seconds)
        if chain.drafter is not None:
            drafted = np.minimum(length, draft_limit(trace, chain.drafter, at))
            if trace.is_lookup(chain.drafter):
                total += forward(cost, chain.drafter, 1, np.maximum(drafted, 1), context)
            else:
                at_once = trace.tokens_a_forward(chain.drafter)
                first = cheapest[chain.drafter][at, min(int(first_width(np.array(1), at_once)), _WIDTHS) - 1]
                wide = np.full_like(at, later_width(at_once))
                later = forward(cost, chain.drafter, 1, wide, context)
                more = np.maximum(forwards(drafted, at_once) - 1, 0)
                total += np.where(drafted > 0, first + more * later, 0.0)
        result = outcome(trace, chain, at, drafted)
        for middle, given in zip(chain.intermediates, result.offered[:-1], strict=True):
            idle = (given == 0) & (chain.semantics == "funnel-truncate")
            total += np.where(idle, 0.0, cheapest[middle][at, np.minimum(given, _WIDTHS - 1)])
        # The target always runs, so it never lags.
        total += forward(cost, chain.target, 1, result.offered[-1] + 1, context)
        seconds.append(total)
        emitted.append(result.emitted)
    return np.stack(seconds), np.stack(emitted)


def _cheapest(trace: Trace, cost: CostModel, model: str) -> Floats:
    """For each flat position, the least seconds of a forward at least w + 1 wide, (N, _WIDTHS)."""
    widths = np.arange(1, _WIDTHS + 1)[None]
    every = forward(cost, model, 1, widths, trace.context[:, None])
    return np.minimum.accumulate(every[:, ::-1], axis=1)[:, ::-1]
