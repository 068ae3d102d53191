"""Ranking gives the same bytes in one process and in two (M5)."""

from __future__ import annotations

import json

from simspec.compare.rank import RankSettings, rank
from simspec.cost.models import MeasuredCost
from simspec.strategies.made_up_models import Setting
from simspec.strategies.scenarios import recorded


def test_the_number_of_workers_changes_no_byte() -> None:
    """Costs are a latency table's, whose sums round, so that another order of summation would show."""
    trace = recorded(Setting(seed=5, prompts=6, output_tokens=16, block_length=4))
    cost = MeasuredCost(trace.latency, "float32", "noise", "synthetic")
    settings = RankSettings(batches=(1, 3), lengths=(1, 3), draws=4)
    (one,), (two,) = (rank(trace, [cost], settings, jobs=jobs) for jobs in (1, 2))
    assert json.dumps(one.as_json()) == json.dumps(two.as_json())
    for here, there in zip(one.batches, two.batches, strict=True):
        assert here.replayed.tobytes() == there.replayed.tobytes()
