"""Draft lengths chosen with knowledge that no rule has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from simspec.cost.models import CostModel
from simspec.replay.pricing import draft_seconds, forward, two_level_seconds
from simspec.replay.trajectories import draft_limit, drafts_read, forwards, run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Prescribed, expected_tokens
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]

# Few are needed: each raises the rate, were the visited positions the same.
DINKELBACH_STEPS = 20


def myopic_hindsight(trace: Trace, chain: Chain, cost: CostModel, rows: int) -> Prescribed:
    """argmax_n of (min(A, n) + 1) / seconds(n), A the run that will be accepted.

    Best for each cycle alone; another schedule can be faster overall (claims S10, L17).
    """
    return _best(*hindsight_rates(trace, chain, cost, rows))


def hindsight_rates(trace: Trace, chain: Chain, cost: CostModel, rows: int) -> tuple[Floats, Ints]:
    """That quotient at each length, (N, D + 1), and the greatest length, (N,)."""
    tokens, limit = known_tokens(trace, chain)
    return tokens / two_level_seconds(trace, chain, cost, rows), limit


def myopic_expected(trace: Trace, chain: Chain, cost: CostModel, rows: int) -> Prescribed:
    """argmax_n of (1 + sum_{j<=n} prod_{k<=j} p_k) / seconds(n), p the calibrated confidence.

    Under greedy decoding the truth is 0 or 1; this oracle is given what a rule is given
    (the confidences) and a calibration of it, isotonic and fitted on the other half of the
    prompts. It sees the confidences of the whole block before it chooses.
    """
    drafter = _drafter(chain)
    limit = draft_limit(trace, drafter, np.arange(len(trace.tokens)))
    probs = calibrated(trace, drafter)
    probs[np.arange(probs.shape[1])[None] >= limit[:, None]] = 0.0
    return _best(expected_tokens(probs) / two_level_seconds(trace, chain, cost, rows), limit)


def long_run_hindsight(trace: Trace, chain: Chain, cost: CostModel, rows: int) -> Prescribed:
    """argmax_n of min(A, n) + 1 - lambda seconds(n), A known, lambda the rate of just this (claim L17).

    lambda is found by Dinkelbach's iteration over all prompts: replay, tokens over seconds, choose again.
    """
    tokens, limit = known_tokens(trace, chain)
    seconds = two_level_seconds(trace, chain, cost, rows)
    lengths = np.zeros(len(limit), dtype=np.int64)
    for _ in range(DINKELBACH_STEPS):
        rate, _ = _went(trace, chain, lengths, trace.offsets[:-1], seconds)
        before, lengths = lengths, _best(tokens - rate * seconds, limit).lengths
        if np.array_equal(before, lengths):
            break
    return Prescribed(lengths)


def long_run_expected(trace: Trace, chain: Chain, cost: CostModel, rows: int) -> Prescribed:
    """argmax_n of 1 + sum_{j<=n} prod_{k<=j} p_k - lambda seconds(n).

    Of the other half of the prompts it knows the whole record, of its own the confidences. Both lambda and
    p are those of the positions at which its cycles begin on the other half, found in turn. (After a refused
    block the next is worse than elsewhere, so acceptance counted anywhere in a text says too much.)
    """
    drafter = _drafter(chain)
    limit = draft_limit(trace, drafter, np.arange(len(trace.tokens)))
    beyond = np.arange(trace.drafters[drafter].confidence.shape[1])[None] >= limit[:, None]
    seconds = two_level_seconds(trace, chain, cost, rows)
    starts, number = trace.offsets[:-1], np.arange(len(trace.prompts))
    out = np.zeros(len(limit), dtype=np.int64)
    for half in (0, 1):
        others = starts[number % 2 != half]
        lengths = np.zeros(len(limit), dtype=np.int64)
        for _ in range(DINKELBACH_STEPS):
            # A single prompt has no other half.
            rate, visited = _went(trace, chain, lengths, others if len(others) else starts, seconds)
            probs = _fitted(trace, drafter, visited)
            probs[beyond] = 0.0
            before, lengths = lengths, _best(expected_tokens(probs) - rate * seconds, limit).lengths
            if np.array_equal(before, lengths):
                break
        out = np.where(trace.prompt % 2 == half, lengths, out)
    return Prescribed(out)


def _went(
    trace: Trace, chain: Chain, lengths: Ints, starts: Ints, seconds: Floats
) -> tuple[float, NDArray[np.bool_]]:
    """Tokens a second of requests from ``starts`` under these lengths, and where cycles began, (N,)."""
    runs = run(trace, chain, Prescribed(lengths), starts)
    at = runs.flat[runs.active]
    visited = np.zeros(len(lengths), dtype=bool)
    visited[at] = True
    return float(runs.emitted.sum() / seconds[at, runs.submitted[runs.active]].sum()), visited


def known_tokens(trace: Trace, chain: Chain) -> tuple[Floats, Ints]:
    """Tokens that each length will emit, (N, D + 1), and the greatest length, (N,)."""
    drafter = _drafter(chain)
    lengths = np.arange(trace.manifest.block_length + 1)[None]
    tokens = np.minimum(trace.drafters[drafter].matched[:, None], lengths) + 1.0
    limit = draft_limit(trace, drafter, np.arange(len(trace.tokens)))
    return np.minimum(tokens, trace.remaining[:, None]), limit


def calibrated(trace: Trace, drafter: str) -> Floats:
    """Confidence turned into acceptance, shape (N, D): isotonic, cross-fitted over two halves.

    Each half of the prompts (even and odd numbers) is calibrated by the other, at all its positions.
    """
    out = np.zeros(trace.drafters[drafter].confidence.shape)
    for half in (0, 1):
        teach, mine = (trace.prompt % 2) != half, (trace.prompt % 2) == half
        # A single prompt has no other half.
        out[mine] = _fitted(trace, drafter, teach if teach.any() else mine)[mine]
    return out


def _fitted(trace: Trace, drafter: str, teach: NDArray[np.bool_]) -> Floats:
    """The isotonic map of confidence to acceptance of blocks at the positions ``teach``, (N, D).

    A drafted token counts where everything before it was accepted.
    """
    index = trace.drafters[drafter]
    place = np.arange(index.confidence.shape[1])[None]
    reached = (place <= index.matched[:, None]) & (place < index.length[:, None])
    reached &= (place < trace.remaining[:, None]) & teach[:, None]
    accepted = (place < index.matched[:, None])[reached].astype(np.float64)
    if not len(accepted):
        return np.zeros(index.confidence.shape)
    knots, where = np.unique(index.confidence[reached].astype(np.float64), return_inverse=True)
    weight = np.bincount(where).astype(np.float64)
    fitted = isotonic_regression(np.bincount(where, weights=accepted) / weight, weights=weight).x
    return np.asarray(np.interp(index.confidence, knots, fitted))


@dataclass(frozen=True)
class Least:
    """The dynamic program's answer.

    Attributes:
        seconds: least time of each prompt's text, (P,).
        lengths: what it submits from each flat position where the drafter has one token to read, (N,); of
            equals the shortest.
    """

    seconds: Floats
    lengths: Ints


def least_seconds(trace: Trace, chain: Chain, cost: CostModel) -> Floats:
    """The seconds of :func:`least`."""
    return least(trace, chain, cost).seconds


def least(trace: Trace, chain: Chain, cost: CostModel) -> Least:
    """The least time in which each prompt's text can be decoded at batch 1.

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
    lengths = np.zeros(len(trace.tokens), dtype=np.int64)
    for t in range(longest - 1, -1, -1):
        here = prompts[t < size]
        at = trace.offsets[here] + t
        limit = draft_limit(trace, drafter, at)
        context = trace.context[at]
        lowest = np.full((len(here), len(lags)), np.inf)
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
                    lag = (emitted - np.minimum(kept, drafts_read(trace, drafter, np.array(drafted))))[
                        :, None
                    ] + 0 * lags[None]
                else:
                    lag = emitted[:, None] + lags[None]
                lag = np.clip(lag, 1, len(lags))
                then = best[here[:, None], (t + emitted)[:, None], lag]
                total = draft + verify[:, None] + cost.step_overhead_seconds + then
                total = np.where((drafted <= limit)[:, None], total, np.inf)
                lengths[at] = np.where(total[:, 0] < lowest[:, 0], submitted, lengths[at])
                lowest = np.minimum(lowest, total)
        best[here[:, None], t, lags[None]] = lowest
    return Least(best[:, 0, 1], lengths)


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
