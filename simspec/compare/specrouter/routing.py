"""Schedulers that pick the chain of every cycle, beside static chains and oracles."""

from __future__ import annotations

from typing import Any

from simspec.compare.asked import Asked, Progress
from simspec.compare.route_schedulers import ORACLES, SCHEDULERS
from simspec.compare.routing import RouteSettings, study_routes
from simspec.cost.models import CostModel
from simspec.traces.index import Trace

# Batch sizes that are routed: routing the others as well would take most of an hour and tell no more.
SHOWN = (1, 4, 16, 64)
# Schedulers whose requests also choose one by one, each its own chain.
ONE_BY_ONE = ("reach", "funnel", "funnel-switch", "exact-switch", "dytc", "ucb-prior")


def study(trace: Trace, costs: list[CostModel], asked: Asked, say: Progress) -> dict[str, Any]:
    """Every scheduler, one chain for a whole batch, and those of :data:`ONE_BY_ONE` with a chain a request.

    Returns:
        ``oracles`` (names), ``costs.<name>`` = {``label``, ``batches.<B>.<scheduler>`` as ``simspec route
        --json`` has them, ``split.<B>.<scheduler>`` likewise where requests choose one by one}.
    """
    batches = tuple(b for b in asked.batches if b in SHOWN) or asked.batches
    found = {}
    for cost in costs:

        def told(line: str, name: str = cost.name) -> None:
            say(f"{name}: {line}")

        together = RouteSettings(batches=batches, lengths=asked.lengths, draws=asked.draws, seed=asked.seed)
        ran = study_routes(trace, cost, together, jobs=asked.jobs, progress=told).as_json()
        more = tuple(b for b in batches if b > 1)
        apart: dict[str, Any] = {"batches": {}}
        if more:
            each = RouteSettings(
                batches=more,
                lengths=asked.lengths,
                draws=asked.draws,
                seed=asked.seed,
                split=True,
                bound=False,
            )
            some = {name: SCHEDULERS[name] for name in ("target-only", "static-pair", *ONE_BY_ONE)}
            apart = study_routes(trace, cost, each, schedulers=some, jobs=asked.jobs, progress=told).as_json()
        found[cost.name] = {"label": cost.label, "batches": ran["batches"], "split": apart["batches"]}
    return {"oracles": list(ORACLES), "costs": found}
