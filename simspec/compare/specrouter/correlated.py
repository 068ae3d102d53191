"""What correlation between levels does: a made-up easy or hard state of each cycle, and levels decoupled.

Estimators by rates take levels for independent. Here truth is known exactly while they are told mean rates
only; and a recorded trace is held against itself with its levels shuffled apart.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from simspec.compare.estimates.similarity import Pair
from simspec.compare.forward_prices import ForwardPrices
from simspec.compare.predicted import _draft_seconds
from simspec.cost.models import CostModel
from simspec.speculation.chains import Chain
from simspec.streams import stream
from simspec.theory.exact_chains import expected_tokens, handed_up
from simspec.traces.index import Trace

Floats = NDArray[np.float64]


def in_state(rate: Floats, rho: float, *, easy: bool) -> Floats:
    """Acceptance in an easy or a hard cycle, one as likely as the other; ``rate`` is their mean.

    ``rho`` is the share of the greatest spread that the mean allows.
    """
    spread = rho * np.minimum(rate, 1.0 - rate)
    return np.asarray(rate + spread if easy else rate - spread)


def mixed_seconds(
    trace: Trace,
    cost: CostModel,
    prices: ForwardPrices,
    chain: Chain,
    length: int,
    rates: dict[Pair, Floats],
    rho: float,
) -> Floats:
    """Seconds a row's token, exactly, where each cycle is easy or hard for all levels; (batches, draws or 1).

    Within a cycle acceptance is independent; rows of a batch do the same. Expected seconds of a cycle over
    expected tokens, each a mean over states.
    """
    one, rows = np.ones(1), np.array(prices.batches)[:, None]
    if chain.drafter is None:
        return np.asarray((prices.alike(chain.target, one)[:, 0] + cost.step_overhead_seconds) / rows)
    pairs = list(zip(chain.levels[:-1], chain.levels[1:], strict=True))
    drafting = (
        length * _draft_seconds(trace, prices, chain.drafter, length)[:, 0] + cost.step_overhead_seconds
    )
    seconds = tokens = np.zeros_like(drafting)
    for easy in (True, False):
        here = [in_state(rates[p], rho, easy=easy) for p in pairs]
        laws = handed_up(here, length, replace=chain.semantics == "funnel-replace")
        seconds = seconds + drafting
        for model, law in zip(chain.levels[1:], laws, strict=True):
            for n, chance in law.items():
                if n or model == chain.target:
                    seconds = seconds + chance * prices.alike(model, one * (n + 1.0))[:, 0]
        tokens = tokens + expected_tokens(here[-1], laws[-1])
    return np.asarray(seconds / tokens / rows)


def decoupled(trace: Trace, seed: int) -> Trace:
    """The trace with what intermediates say of a block shuffled over the places of a text.

    What each drafter's block has in common with the text stays, and so do pairs; how far an intermediate
    follows a block, and whether its own token is right, are another place's. So each has its own law,
    but for blocks that end early, and nothing to do with the target's verdict.
    """
    drafters = {}
    for name, index in trace.drafters.items():
        agreed = {}
        for middle, run in index.agreed.items():
            where = _within_texts(trace, seed, "agreed", name, middle)
            agreed[middle] = np.minimum(run[where], index.length)
        drafters[name] = replace(index, agreed=agreed)
    owns = {
        m: own if m == trace.target else own[_within_texts(trace, seed, "owns", m)]
        for m, own in trace.owns.items()
    }
    return replace(trace, drafters=drafters, owns=owns)


def _within_texts(trace: Trace, seed: int, *name: str) -> NDArray[np.int64]:
    """A shuffle of the flat positions of each text."""
    generator = stream(seed, "decoupled", *name)
    return np.lexsort((generator.random(len(trace.tokens)), trace.prompt)).astype(np.int64)
