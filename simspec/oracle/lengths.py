"""Draft lengths chosen with knowledge that no rule has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from simspec.cost.models import CostModel
from simspec.replay.pricing import draft_seconds, forward, two_level_seconds
from simspec.replay.trajectories import draft_limit, drafts_read, forwards
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Prescribed, expected_tokens
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]


def myopic_hindsight(trace: Trace, chain: Chain, cost: CostModel, rows: int) -> Prescribed:
    """argmax_n of (min(A, n) + 1) / seconds(n), A the run that will be accepted.

    Best for each cycle alone; another schedule can be faster overall (claims S10, L17).
    """
    drafter = _drafter(chain)
    every = np.arange(len(trace.tokens))
    lengths = np.arange(trace.manifest.block_length + 1)[None]
    tokens = np.minimum(trace.drafters[drafter].matched[:, None], lengths) + 1.0
    tokens = np.minimum(tokens, trace.remaining[:, None])
    return _best(tokens / two_level_seconds(trace, chain, cost, rows), draft_limit(trace, drafter, every))


def myopic_expected(trace: Trace, chain: Chain, cost: CostModel, rows: int) -> Prescribed:
    """argmax_n of (1 + sum_{j<=n} prod_{k<=j} p_k) / seconds(n), p the calibrated confidence.

    Under greedy decoding the truth is 0 or 1; this oracle is given what a rule is given
    (the confidences) and a calibration of it, isotonic and fitted on the other half of the
    prompts. It sees the confidences of the whole block before it chooses.
    """
    drafter = _drafter(chain)
    every = np.arange(len(trace.tokens))
    limit = draft_limit(trace, drafter, every)
    probs = calibrated(trace, drafter)
    probs[np.arange(probs.shape[1])[None] >= limit[:, None]] = 0.0
    return _best(expected_tokens(probs) / two_level_seconds(trace, chain, cost, rows), limit)


def calibrated(trace: Trace, drafter: str) -> Floats:
    """Confidence turned into acceptance, shape (N, D): isotonic, cross-fitted over two halves.

    Each half of the prompts (even and odd numbers) is calibrated by the other. A drafted
    token counts where everything before it was accepted.
    """
    index = trace.drafters[drafter]
    depth = index.confidence.shape[1]
    place = np.arange(depth)[None]
    reached = (place <= index.matched[:, None]) & (place < index.length[:, None])
    reached &= place < trace.remaining[:, None]
    accepted = place < index.matched[:, None]
    out = np.zeros(index.confidence.shape)
    for half in (0, 1):
        teach = reached & ((trace.prompt % 2) != half)[:, None]
        mine = (trace.prompt % 2) == half
        if not teach.any():  # a single prompt has no other half
            teach = reached
        x, y = index.confidence[teach].astype(np.float64), accepted[teach].astype(np.float64)
        if not len(x):
            continue
        knots, where = np.unique(x, return_inverse=True)
        weight = np.bincount(where).astype(np.float64)
        mean = np.bincount(where, weights=y) / weight
        fitted = isotonic_regression(mean, weights=weight).x
        out[mine] = np.interp(index.confidence[mine], knots, fitted)
    return out


def least_seconds(trace: Trace, chain: Chain, cost: CostModel) -> Floats:
    """The least time in which each prompt's text can be decoded at batch 1, shape (P,).

    Dynamic programming over (start position, tokens that the drafter lags by), over every
    length 0..D and over one drafting forward more than is needed for what is submitted (which
    can spare the drafter a wider one in the next cycle). No length rule can beat it on this pair
    of models, given what was recorded; drafting still more only adds forwards. A look-up may be
    asked for more than is submitted: the cheapest way of asking is taken.
    """
    drafter = _drafter(chain)
    index = trace.drafters[drafter]
    at_once = trace.tokens_a_forward(drafter)
    size = trace.prompts["output_tokens"].to_numpy().astype(np.int64)
    prompts = np.arange(len(size))
    longest = int(size.max())
    depth = trace.manifest.block_length
    lags = np.arange(1, longest + 2)
    # best[p, t, lag]: least seconds from position t on; 0 at and past the end of the text.
    best = np.zeros((len(size), longest + depth + 2, longest + 2))
    for t in range(longest - 1, -1, -1):
        here = prompts[t < size]
        at = trace.offsets[here] + t
        limit = draft_limit(trace, drafter, at)
        context = trace.context[at]
        least = np.full((len(here), len(lags)), np.inf)
        asked = _cheapest_lookup(trace, cost, drafter, limit, context)
        for submitted in range(int(limit.max()) + 1 if len(limit) else 1):
            kept = np.minimum(index.matched[at], submitted)
            emitted = np.minimum(kept + 1, trace.remaining[at])
            verify = forward(cost, chain.target, 1, np.full(len(at), submitted + 1), context)
            one_more = int(forwards(np.array(submitted), at_once)) * at_once + 1
            for drafted in (submitted, one_more):
                draft = (
                    asked[:, [submitted]]
                    if trace.is_lookup(drafter)
                    else draft_seconds(
                        trace, cost, drafter, 1, np.array(drafted), lags[None], context[:, None]
                    )
                )
                if drafted:
                    lag = (emitted - np.minimum(kept, drafts_read(np.array(drafted), at_once)))[
                        :, None
                    ] + 0 * lags[None]
                else:
                    lag = emitted[:, None] + lags[None]
                lag = np.clip(lag, 1, len(lags))
                then = best[here[:, None], (t + emitted)[:, None], lag]
                total = draft + verify[:, None] + cost.step_overhead_seconds + then
                least = np.where((drafted <= limit)[:, None], np.minimum(least, total), least)
        best[here[:, None], t, lags[None]] = least
    return best[:, 0, 1]


def _cheapest_lookup(trace: Trace, cost: CostModel, drafter: str, limit: Ints, context: Ints) -> Floats:
    """Least seconds of a look-up of at least n tokens, n = 0..D, shape (rows, D + 1)."""
    if not trace.is_lookup(drafter):
        return np.empty((len(limit), 0))
    width = np.arange(trace.manifest.block_length + 1)[None]
    seconds = forward(cost, drafter, 1, np.maximum(width, 1), context[:, None])
    seconds = np.where(width <= limit[:, None], seconds, np.inf)
    return np.minimum.accumulate(seconds[:, ::-1], axis=1)[:, ::-1]


def _best(rate: Floats, limit: Ints) -> Prescribed:
    allowed = np.arange(rate.shape[1])[None] <= limit[:, None]
    return Prescribed(np.where(allowed, rate, -np.inf).argmax(axis=1))


def _drafter(chain: Chain) -> str:
    if chain.drafter is None or chain.intermediates:
        raise ValueError(f"length oracles work on a pair, not {chain}")
    return chain.drafter
