"""A sweep's document: all that its page and its reader are told, the same for the same files and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from simspec.cost.models import AffineCost
from simspec.scenario.build import Built
from simspec.scenario.fitting import Fitted
from simspec.scenario.paired import luck
from simspec.scenario.reading import Read
from simspec.scenario.run import describe
from simspec.scenario.speculation import TraceVerdicts
from simspec.sweep.cell import Figures
from simspec.sweep.grid import OWN, Cell, Series, cells, check_loads, series
from simspec.sweep.kept import Kept
from simspec.sweep.passes import VIEWS
from simspec.sweep.policies import OFF, policies
from simspec.sweep.running import Progress, run_all
from simspec.sweep.table import GAINS, Key, Table
from simspec.traces.manifest import read_manifest

SWEEP = "simspec sweep 1"

PASSES = (
    "a pass is one row that decodes in one step; a policy pays while the tokens that its passes gain exceed "
    "what its parts cost more, both as shares of a plain pass's time"
)
# Beside what the scenarios say themselves.
APPROXIMATIONS = (
    "crossovers are interpolated linearly between the loads that were run",
    "plain decoding keeps the target's KV blocks of the scenario: none are added for a drafter that is gone",
)


@dataclass(frozen=True)
class Asked:
    """What a sweep is asked for.

    Attributes:
        policies: beside those of the scenarios, see :func:`simspec.sweep.policies.policies`.
        loads: rising; requests a second, or with ``clients`` whole numbers of clients.
        until_seconds: stop each simulation then; None for the scenario's own end.
        assumed: run every assumption about verdicts too.
    """

    policies: Sequence[str]
    loads: Sequence[float]
    clients: bool
    seeds: Sequence[int]
    until_seconds: float | None = None
    assumed: bool = False


def sweep(
    reads: Sequence[Read], asked: Asked, kept: Kept, jobs: int, say: Progress
) -> tuple[dict[str, Any], dict[str, str]]:
    """Run every load x policy.

    Args:
        reads: scenarios that differ in nothing but their names and their speculation.
        kept: cells that are there already, and where new ones are kept.

    Returns:
        the document, and what was read, name -> hash.

    Raises:
        BadInput: as the scenarios' readers do, and where loads or policies do not suit the scenarios.
    """
    check_loads(reads[0], asked.loads, asked.clients)
    built = policies(reads, asked.policies)
    every, fitted, refused = series(built, asked.assumed)
    grid = list(cells(every, asked.loads, asked.seeds))
    figures = run_all(grid, asked.until_seconds, kept, jobs, say)
    table = Table(tuple(asked.loads), _grouped(grid, figures))
    inputs: dict[str, str] = {}
    for one in built.values():
        inputs |= one.inputs
    first = built[OFF]
    found = {
        "format": SWEEP,
        "name": first.scenario.name,
        "load": {
            "kind": "clients" if asked.clients else "rate",
            "unit": "clients" if asked.clients else "requests a second",
            "values": list(asked.loads),
        },
        "seeds": list(asked.seeds),
        "until_seconds": first.scenario.until_seconds if asked.until_seconds is None else asked.until_seconds,
        "policies": {label: _policy(one) for label, one in built.items()},
        "cells": [_cell(table, key) for key in table.runs],
        "passes": PASSES,
        "crossovers": [
            _crossing(table, policy, verdicts, figure)
            for policy, verdicts in table.series
            if policy != OFF
            for figure in GAINS
        ],
        "assumptions": _assumptions(every, fitted, refused) if asked.assumed else None,
        **_common(built),
    }
    return found, inputs


def _grouped(grid: Sequence[Cell], figures: Sequence[Figures]) -> dict[Key, list[Figures]]:
    found: dict[Key, list[Figures]] = {}
    for cell, numbers in zip(grid, figures, strict=True):
        found.setdefault((cell.policy, cell.verdicts, cell.load), []).append(numbers)
    return found


def _cell(table: Table, key: Key) -> dict[str, Any]:
    policy, verdicts, load = key
    found: dict[str, Any] = {"policy": policy, "verdicts": verdicts, "load": load, "figures": table.over(key)}
    if policy != OFF:
        found["differences"] = table.over(key, (OFF, OWN, load))
        found["terms"] = {view: table.terms(key, view) for view in VIEWS}
    if verdicts != OWN:
        found["less_own"] = table.over(key, (policy, OWN, load))
    return found


def _crossing(table: Table, policy: str, verdicts: str, figure: str) -> dict[str, Any]:
    found = table.cross(policy, verdicts, figure)
    return {
        "policy": policy,
        "verdicts": verdicts,
        "figure": figure,
        **found.as_json(),
        "because": table.why(policy, verdicts, figure, found),
    }


def _policy(built: Built) -> dict[str, Any]:
    told = built.scenario.speculation
    return {
        "scenario": built.scenario.name,
        "drawn": luck(built),
        "speculation": None if told is None else msgspec.to_builtins(told),
    }


def _assumptions(
    every: Sequence[Series], fitted: dict[str, Fitted], refused: dict[str, str]
) -> dict[str, Any]:
    return {
        "verdicts": list(dict.fromkeys(one.verdicts for one in every if one.policy != OFF)),
        "fitted": {
            policy: {
                "draft_tokens": one.length,
                "survival": list(one.survival),
                "rate": one.rate,
                "emitted_per_pass": one.emitted_per_pass,
                "drafted_share": one.drafted_share,
            }
            for policy, one in fitted.items()
        },
        "refused": refused,
    }


def _common(built: dict[str, Built]) -> dict[str, Any]:
    """What is said once of all policies; ``published`` and ``synthetic`` want a label on every page."""
    words: dict[str, None] = {}
    synthetic = published = False
    for one in built.values():
        words |= dict.fromkeys(one.approximations)
        costs = one.serving.costs
        published |= isinstance(costs.cost, AffineCost) or isinstance(costs.drafter_cost, AffineCost)
        synthetic |= _origin(one) == "synthetic"
    described = describe(built[OFF])
    return {
        "synthetic": synthetic,
        "published": published,
        "dropped": described["dropped"],
        "logs": described["logs"],
        "approximations": [*words, *APPROXIMATIONS],
        "scenario": described["scenario"],
    }


def _origin(built: Built) -> str | None:
    told = built.scenario.speculation
    if told is None or not isinstance(told.verdicts, TraceVerdicts):
        return None
    return read_manifest(built.read.beside(told.verdicts.path)).origin
