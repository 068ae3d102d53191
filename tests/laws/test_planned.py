"""Streams under a planner: equal to requests replayed one by one where nothing is remembered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simspec.compare.batches import batch_requests, draw_prompts, request_starts
from simspec.compare.costs import open_cost
from simspec.replay.lockstep import price
from simspec.replay.planned import plan
from simspec.replay.pricing import two_level_seconds
from simspec.replay.trajectories import run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import G4, ExactMarginal, LibraSpec, Static
from simspec.speculation.planning import EachAlone
from simspec.traces.index import load_trace

TRACE = load_trace(Path("traces/smollm2-cpu"))
COSTS = ("float32", "calibrate/h100-llama-3.1-8b.toml")


@pytest.mark.parametrize("rule", [Static(0), Static(5), G4(), LibraSpec(), ExactMarginal()], ids=str)
@pytest.mark.parametrize("drafter", ["ngram", "skip-6"])
@pytest.mark.parametrize("batch", [1, 5])
def test_rules_that_weigh_no_batch_take_the_time_of_lock_step(rule, drafter, batch):
    chain = Chain((drafter, TRACE.target))
    draws = draw_prompts(TRACE, 2, 3)
    requests, owner = batch_requests(draws, batch)
    starts = request_starts(TRACE)
    for name in COSTS:
        cost = open_cost(TRACE, name)
        # A rule that weighs costs is told those of the running rows, which lock-step's rule is not.
        if batch > 1 and isinstance(rule, ExactMarginal):
            continue
        seconds = two_level_seconds(TRACE, chain, cost, batch)
        times = price(
            run(TRACE, chain, rule, starts, seconds), requests, [cost], lookup=TRACE.is_lookup(drafter)
        )[0]
        queues = starts[requests].reshape(len(draws.prompts), -1, batch)
        found = plan(TRACE, chain, cost, EachAlone(rule), queues)
        np.testing.assert_allclose(found.seconds, np.bincount(owner, weights=times.seconds), rtol=1e-12)
        assert found.tokens.tolist() == np.bincount(owner, weights=times.tokens).tolist()
