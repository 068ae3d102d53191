"""Seconds a token as every variant of Eq. 7 has it, from every source of acceptance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.compare.estimates.similarity import Pair
from simspec.compare.forward_prices import ForwardPrices
from simspec.compare.joint import Counted
from simspec.cost.models import CostModel
from simspec.replay.trajectories import first_width, forwards, later_width
from simspec.speculation.chains import Chain
from simspec.theory.exact_chains import expected_tokens, handed_up
from simspec.theory.variants import VARIANTS, Given
from simspec.traces.index import Trace

Floats = NDArray[np.float64]
Candidate = tuple[Chain, int]

# Readings of Eq. 7 and two of ours that follow the block exactly; "by-row" takes every row of a batch for
# itself, padded to the widest, where all else takes the batch as one row many times over.
BY_RATES = (*VARIANTS, "exact-by-row")
# Ours, on joint counts; sources are the cycles that are counted (:mod:`simspec.compare.joint`).
JOINT = ("joint", "joint-by-row", "joint-drained")
# How finely joint-drained tells apart when requests end.
_STRETCHES = 12
JOINT_SOURCES = ("visited", "anywhere")


@dataclass(frozen=True)
class Told:
    """What predictions are made from.

    Attributes:
        alphas: by source and (drafter, verifier), shape (draws,).
        counts: how often each draw has each prompt, shape (draws, P): weights of joint counts.
        counted: by joint source, one for each candidate.
    """

    alphas: dict[str, dict[Pair, Floats]]
    counts: Floats
    counted: dict[str, list[Counted]]


def prices_for(
    trace: Trace, cost: CostModel, candidates: Sequence[Candidate], batches: tuple[int, ...]
) -> ForwardPrices:
    """Prices of all the forwards that :func:`predict` may ask for."""
    models = {m for chain, _ in candidates for m in chain.levels}
    longest = max(length for _, length in candidates)
    at_once = max(trace.tokens_a_forward(m) for m in models)
    # An intermediate that was idle may have a whole text to read.
    widest = max(longest + at_once, 2 * at_once, trace.manifest.output_tokens) + 1
    return ForwardPrices(trace, cost, models, batches, widest)


def predict(
    trace: Trace,
    cost: CostModel,
    prices: ForwardPrices,
    candidates: Sequence[Candidate],
    variant: str,
    told: Told,
) -> dict[str, Floats]:
    """Seconds a token by "variant/source", shape (batches, draws, candidates), at the mean context."""
    joint = variant in JOINT
    sources = list(told.counted if joint else told.alphas)
    found = np.empty((len(sources), len(prices.batches), len(told.counts), len(candidates)))
    stacked = {
        pair: np.stack([told.alphas[s][pair] for s in sources])
        for pair in (told.alphas[sources[0]] if not joint else ())
    }
    for k, (chain, length) in enumerate(candidates):
        if chain.drafter is None and not joint:
            alone = prices.alike(chain.target, np.ones(1)) + cost.step_overhead_seconds
            found[..., k] = alone[:, :, 0]
        elif joint:
            for i, source in enumerate(sources):
                found[i, ..., k] = _joint(cost, prices, told.counted[source][k], told.counts, variant)
        elif variant in VARIANTS:
            given = _given(trace, cost, prices, chain, length, stacked)
            found[..., k] = np.moveaxis(VARIANTS[variant](given), 1, 0)
        else:
            found[..., k] = np.moveaxis(_by_row(trace, cost, prices, chain, length, stacked), 1, 0)
    # The formulas follow one request; its batch emits as much in every row at the same time.
    found /= np.array(prices.batches)[:, None, None]
    return {f"{variant}/{source}": found[i] for i, source in enumerate(sources)}


def _draft_seconds(trace: Trace, prices: ForwardPrices, drafter: str, length: int) -> Floats:
    """T_1, seconds a drafted token, shape (batches, 1, 1)."""

    def one(width: int) -> Floats:
        return prices.alike(drafter, np.array(float(width)))

    if trace.is_lookup(drafter):
        return one(length) / length
    # What a token costs when the drafter has read all of the text but its last token.
    at_once = trace.tokens_a_forward(drafter)
    more = int(forwards(np.array(length), at_once)) - 1
    return (one(int(first_width(np.array(1), at_once))) + more * one(later_width(at_once))) / length


def _given(
    trace: Trace,
    cost: CostModel,
    prices: ForwardPrices,
    chain: Chain,
    length: int,
    alphas: dict[Pair, Floats],
) -> Given[Floats]:
    assert chain.drafter is not None

    def verify(level: int, width: Floats) -> Floats:
        model = chain.levels[level - 1]
        return prices.alike(model, width) + (cost.step_overhead_seconds if model == chain.target else 0.0)

    return Given(
        alphas=[alphas[pair] for pair in zip(chain.levels[:-1], chain.levels[1:], strict=True)],
        gamma=length,
        draft_seconds=_draft_seconds(trace, prices, chain.drafter, length),
        verify=verify,
        end_to_end=alphas[chain.drafter, chain.target],
        replace=chain.semantics == "funnel-replace",
    )


def _by_row(
    trace: Trace,
    cost: CostModel,
    prices: ForwardPrices,
    chain: Chain,
    length: int,
    alphas: dict[Pair, Floats],
) -> Floats:
    """The Markov chain over block lengths, each row of a batch by itself; shape (batches, sources, draws)."""
    given = _given(trace, cost, prices, chain, length, alphas)
    laws = handed_up(given.alphas, length, replace=given.replace)
    total = length * given.draft_seconds + cost.step_overhead_seconds
    for model, law in zip(chain.levels[1:], laws, strict=True):
        lengths = [n for n in sorted(law) if n or model == chain.target]
        chances = np.stack([law[n] for n in lengths])
        total = total + prices.mean_by_row(model, np.array(lengths) + 1, chances)
    return np.asarray(total / expected_tokens(given.alphas[-1], laws[-1]))


def _joint(cost: CostModel, prices: ForwardPrices, counted: Counted, counts: Floats, variant: str) -> Floats:
    """Seconds a row's token from counted widths, shape (batches, draws)."""
    cycles = counts @ counted.cycles
    if variant == "joint-drained":
        return _drained(cost, prices, counted, counts)
    total = np.zeros((len(prices.batches), len(counts))) + cost.step_overhead_seconds
    mean = prices.mean_by_row if variant == "joint-by-row" else prices.mean_alike
    for level in counted.levels:
        if not len(level.widths):  # never ran
            continue
        # (widths, steps, draws): in which share of a row's cycles it has such a forward.
        chances = np.tensordot(level.counts, counts, axes=(0, 1)) / cycles
        total = total + mean(level.model, level.widths, chances).sum(axis=1)
    return total * cycles / (counts @ counted.tokens)


def _drained(cost: CostModel, prices: ForwardPrices, counted: Counted, counts: Floats) -> Floats:
    """As by row, for batches that are not refilled: rows that finish leave, and the slowest goes on alone.

    A row runs in a step by the share of prompts that have so many cycles, each row for itself.
    """
    running, steps = _running(counted.cycles, counts)
    size = np.array(prices.batches)[:, None, None]
    total = cost.step_overhead_seconds * ((1.0 - (1.0 - running) ** size) @ steps)
    cycles = counts @ counted.cycles
    for level in counted.levels:
        if not len(level.widths):  # never ran
            continue
        chances = np.tensordot(level.counts, counts, axes=(0, 1)) / cycles
        total = total + prices.mean_drained(level.model, level.widths, chances, running, steps).sum(axis=1)
    return np.asarray(total * counts.sum(axis=1) / (counts @ counted.tokens))


def _running(cycles: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Chance that a row still runs, (draws, K), and in how many steps it is that, (K,).

    Steps between two prompts' ends are alike; of the ends at most :data:`_STRETCHES` are told apart.
    """
    ends = np.unique(np.quantile(cycles, np.linspace(0.0, 1.0, _STRETCHES), method="higher"))
    step = np.arange(1, int(cycles.max()) + 1)
    each = counts @ (cycles[:, None] >= step) / counts.sum(axis=1, keepdims=True)
    stretch = np.searchsorted(ends, step)
    many = np.bincount(stretch, minlength=len(ends)).astype(np.float64)
    summed = np.stack([each[:, stretch == k].sum(axis=1) for k in range(len(ends))], axis=1)
    return summed / many, many
