"""How long does a full ranking take? Run by ``make bench``.

Every chain of four models (to four levels) at draft lengths 1 to 16 and seven batch sizes, every variant of
Eq. 7 with every source of acceptance, 200 bootstrap draws. The aim is a minute on two cores.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from simspec.compare.costs import open_cost
from simspec.compare.rank import RankSettings, rank
from simspec.traces.index import load_trace

TRACE = Path(__file__).parents[1] / "traces" / "smollm2-cpu"

FULL = RankSettings(
    lengths=tuple(range(1, 17)), deepest=4, draws=200, models=("target", "skip-10", "skip-6", "skip-2")
)


@pytest.mark.parametrize("jobs", [1, 2])
def test_full_ranking(benchmark, jobs):
    """``processor_seconds`` says how much of it a busy machine added, in one process."""
    trace = load_trace(TRACE)
    cost = open_cost(trace, "float32")
    before = time.process_time()
    (found,) = benchmark.pedantic(rank, (trace, [cost], FULL), {"jobs": jobs}, rounds=1)
    if jobs == 1:
        benchmark.extra_info["processor_seconds"] = round(time.process_time() - before, 1)
    benchmark.extra_info["load"] = os.getloadavg()[0]
    assert len(found.candidates) == 337
