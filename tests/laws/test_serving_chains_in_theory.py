"""Levels that are independent and alike: the engine emits as much, and takes as long, as theory says."""

from __future__ import annotations

import numpy as np
import pytest

from simspec.cost.models import AffineCost
from simspec.serving.arrivals import OpenLoop
from simspec.serving.chain_verdicts import LevelRates
from simspec.serving.config import Serving, Speculation
from simspec.serving.policies import Fixed
from simspec.serving.pricing import Costs
from simspec.serving.request import Request
from simspec.serving.simulate import simulate
from simspec.theory.exact_chains import exact

# Forwards take the same time at any width, so that nobody's lag counts: theory has none.
SECONDS = {"small": 0.1, "middle": 0.4, "upper": 0.7, "target": 1.0}
COST = AffineCost(
    name="made-up",
    label="made up",
    target="target",
    base_seconds=1.0,
    token_seconds=0.0,
    context_token_seconds=0.0,
    step_overhead_seconds=0.0,
    ratios={name: ratio for name, ratio in SECONDS.items() if name != "target"},
)
CASES = [
    (("middle",), (0.8, 0.6), False),
    (("middle",), (0.8, 0.6), True),
    (("middle",), (0.3, 0.9), True),
    (("middle", "upper"), (0.7, 0.8, 0.5), False),
    (("middle", "upper"), (0.2, 0.3, 0.9), False),  # the upper one is often handed nothing
]


@pytest.mark.parametrize(("above", "rates", "replace"), CASES, ids=str)
def test_seconds_a_token(above, rates, replace):
    """Within four standard errors of texts of 400 tokens; the last few, which are drafted less, left out."""
    drafts, texts, tokens = 3, 60, 400
    speculation = Speculation(Fixed(drafts), LevelRates(rates, drafts, replace), intermediates=above)
    serving = Serving(Costs(COST, "target", "small"), 1, speculation)
    load = [(0, Request(i, 1, tokens)) for i in range(texts)]
    steps = simulate(serving, OpenLoop(load), 3).steps.to_pandas()
    whole = steps[steps["drafted_tokens"] == drafts]
    spent = whole[["draft_ns", "middle_ns", "verify_ns"]].sum(axis=1).to_numpy() * 1e-9
    emitted = whole["emitted_tokens"].to_numpy()
    names = ("small", *above, "target")
    wanted = float(
        exact(
            [np.asarray(rate) for rate in rates],
            drafts,
            np.asarray(SECONDS["small"]),
            lambda level, _: np.asarray(SECONDS[names[level - 1]]),
            replace=replace,
        )
    )
    # The error of a ratio of means, to first order.
    error = np.std(spent - wanted * emitted) / emitted.mean() / len(whole) ** 0.5
    assert abs(spent.mean() / emitted.mean() - wanted) < 4 * error
    assert error < 0.01 * wanted
