"""Regret of estimators on a trace whose levels are shuffled apart, and where wide forwards cost more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.compare.asked import Asked
from simspec.compare.bands import with_interval
from simspec.compare.rank import RankSettings, rank
from simspec.compare.specrouter.correlated import decoupled
from simspec.cost.models import CostModel
from simspec.cost.shape import StepShape, uniform
from simspec.traces.index import Trace

Floats = NDArray[np.float64]

SLOPES = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Slope:
    """SYNTHETIC: a forward n wide takes T1 (1 - s + s n), whatever the rows; look-ups take T1.

    Attributes:
        single: T1 by model.
        flat: models whose width costs nothing.
    """

    name: str
    label: str
    single: dict[str, float]
    flat: frozenset[str]
    slope: float
    step_overhead_seconds: float = 0.0

    @property
    def models(self) -> frozenset[str]:
        return frozenset(self.single)

    def forward_seconds(self, model: str, shape: StepShape) -> Floats:
        slope = 0.0 if model in self.flat else self.slope
        return np.asarray(self.single[model] * (1.0 - slope + slope * shape.width))


def decoupled_regrets(
    trace: Trace, costs: list[CostModel], settings: RankSettings, asked: Asked
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, one in (("trace", trace), ("decoupled", decoupled(trace, asked.seed))):
        for cost, b, estimator, value in _regrets(one, costs, settings, asked):
            found.setdefault(cost, {}).setdefault(b, {}).setdefault(estimator, {})[name] = value
    return found


def sloped_regrets(
    trace: Trace, costs: list[CostModel], settings: RankSettings, asked: Asked
) -> dict[str, Any]:
    one, context = np.ones(1, dtype=np.int64), np.array([round(float(trace.context.mean()))])
    lookups = frozenset(m for m in trace.drafters if trace.is_lookup(m))
    sloped: list[CostModel] = []
    for cost in costs:
        single = {
            m: float(cost.forward_seconds(m, uniform(one, one, context))[0]) for m in sorted(cost.models)
        }
        sloped += [
            Slope(f"{cost.name} {s:g}", "SYNTHETIC", single, lookups, s, cost.step_overhead_seconds)
            for s in SLOPES
        ]
    found: dict[str, Any] = {}
    for name, b, estimator, value in _regrets(trace, sloped, settings, asked):
        cost_name = name.rsplit(" ", 1)[0]
        found.setdefault(cost_name, {}).setdefault(b, {}).setdefault(estimator, []).append(value)
    return found


def _regrets(
    trace: Trace, costs: list[CostModel], settings: RankSettings, asked: Asked
) -> list[tuple[str, str, str, list[float | None]]]:
    """Cost, batch size, estimator and [regret, low, high], the mean of both halves; draws paired."""
    by_cost: dict[str, list[Any]] = {}
    for ranking in rank(trace, costs, settings, jobs=asked.jobs):
        by_cost.setdefault(ranking.cost.name, []).append(ranking)
    found: list[tuple[str, str, str, list[float | None]]] = []
    for cost, rankings in by_cost.items():
        for i, b in enumerate(settings.batches):
            for name in rankings[0].batches[i].scores:
                if name.endswith("/anywhere") or (name.endswith("/simscore") and name != "reach/simscore"):
                    continue
                regret = np.mean([r.batches[i].scores[name].regret for r in rankings], axis=0)
                found.append((cost, str(b), name, with_interval(regret)))
    return found
