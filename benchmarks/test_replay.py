"""How fast is replay? Run by ``make bench``; each benchmark says what it counts.

Tokens a second = emitted tokens of the replayed requests over the time of one round; print it with
``--benchmark-json`` or read ``extra_info``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simspec.compare.batches import batch_requests, draw_prompts, request_starts
from simspec.compare.costs import open_cost
from simspec.replay.lockstep import price
from simspec.replay.pricing import two_level_seconds
from simspec.replay.trajectories import run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import ExactMarginal, LibraSpec, Static
from simspec.traces.index import load_trace

TRACE = Path(__file__).parents[1] / "traces" / "smollm2-cpu"

CASES = {
    "pair, static 4": (Chain(("skip-6", "target")), Static(4)),
    "triple, static 4": (Chain(("skip-10", "skip-2", "target"), "funnel-replace"), Static(4)),
    "pair, LibraSpec": (Chain(("skip-6", "target")), LibraSpec()),
    "pair, exact marginal": (Chain(("skip-6", "target")), ExactMarginal()),
}


@pytest.fixture(scope="module")
def trace():
    return load_trace(TRACE)


@pytest.mark.parametrize("name", CASES)
def test_behaviour(benchmark, trace, name):
    """Cycles of 64 copies of every prompt's request, worked out side by side."""
    chain, rule = CASES[name]
    start = np.repeat(trace.offsets[:-1], 64)
    seconds = None
    if len(chain.levels) == 2:
        seconds = two_level_seconds(trace, chain, open_cost(trace, "float32"), 1)
    runs = benchmark(run, trace, chain, rule, start, seconds)
    tokens = int(runs.emitted.sum())
    benchmark.extra_info["tokens_per_second"] = round(tokens / benchmark.stats["median"])
    assert tokens == 64 * len(trace.tokens)


@pytest.mark.parametrize("batch", [1, 8, 64])
def test_behaviour_and_price(benchmark, trace, batch):
    """The same pair, static 4: cycles once, then 100 bootstrap draws of prompts batched and priced."""
    cost = open_cost(trace, "float32")
    requests, _ = batch_requests(draw_prompts(trace, 100, 0), batch)
    chain, start = Chain(("skip-6", "target")), request_starts(trace)

    def whole():
        return price(run(trace, chain, Static(4), start), requests, [cost], lookup=False)[0]

    times = benchmark(whole)
    benchmark.extra_info["tokens_per_second"] = round(int(times.tokens.sum()) / benchmark.stats["median"])


def test_loading(benchmark):
    """Reading, checking and indexing the committed trace."""
    benchmark(load_trace, TRACE)
