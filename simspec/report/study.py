"""Everything that a report shows, computed once before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from simspec.compare.along import LengthsAlongText, lengths_along_text
from simspec.compare.calibration import Calibration, Survival, calibrate, first_drafts, survival
from simspec.compare.length_runs import LengthSettings, best_drafters
from simspec.compare.lengths import (
    LengthStudy,
    best_drafter,
    rules_under_test,
    study_batches,
)
from simspec.compare.rank import RankSettings, rank
from simspec.compare.rankings import Ranking
from simspec.cost.models import CostModel, LeaveOneOut, MeasuredCost, leave_one_out
from simspec.metrics import estimate, percent_over
from simspec.traces.index import Trace

Progress = Callable[[str], None]

SURVIVAL_LENGTH = 16
TEXTS = 4
# Beside static lengths; ``simspec lengths`` has all of them.
SHOWN_RULES = ("g4", "libraspec", "libraspec-n1", "exact-marginal", "long-run")
RULES_ALONG_TEXT = ("libraspec", "exact-marginal")
PICKED_BY = "reach/simscore"


@dataclass(frozen=True)
class CostStudy:
    """What was found under one cost.

    Attributes:
        found: the ranking's JSON, batch sizes as keys.
        lengths: a study of length rules for each batch size that the rules were replayed at.
        along: for each shown prompt, each rule along its text at batch 1, with ``along_drafter``:
            the best drafter, a look-up only where nothing else is priced, since a look-up is
            always sure of itself and rules that read confidence have nothing to read.
        left_out: errors of the latency table by model; None where the cost is no table.
    """

    cost: CostModel
    ranking: Ranking
    found: dict[str, Any]
    lengths: dict[int, LengthStudy]
    along: list[dict[str, LengthsAlongText]]
    along_drafter: str
    left_out: dict[str, LeaveOneOut] | None

    @property
    def batches(self) -> list[int]:
        return [int(b) for b in self.found["batches"]]

    @property
    def bound_speedup(self) -> float:
        """Plain decoding's time at batch 1 over the dynamic program's."""
        plain = next(c for c in self.found["batches"]["1"]["chains"] if len(c["chain"]) == 1)
        return float(plain["replay_seconds_per_token"] / self.found["lower_bound_seconds_per_token"])

    def best(self, batch: int, levels: int | None = None) -> dict[str, Any] | None:
        """The fastest chain by replay, of ``levels`` models if given."""
        chains: list[dict[str, Any]] = self.found["batches"][str(batch)]["chains"]
        able = [c for c in chains if levels is None or len(c["chain"]) == levels]
        return min(able, key=lambda c: float(c["replay_seconds_per_token"])) if able else None

    def score(self, batch: int, name: str = PICKED_BY) -> dict[str, Any]:
        """What one prediction scores."""
        found: dict[str, Any] = self.found["batches"][str(batch)]["scores"][name]
        return found

    def pick(self, batch: int, name: str = PICKED_BY) -> dict[str, Any]:
        """The chain that one prediction takes."""
        chain: dict[str, Any] = self.found["batches"][str(batch)]["chains"][self.score(batch, name)["pick"]]
        return chain


@dataclass(frozen=True)
class Study:
    """A trace under several costs."""

    trace: Trace
    settings: RankSettings
    costs: list[CostStudy]
    survival: dict[str, Survival]
    calibration: dict[str, Calibration]

    @property
    def behaviour(self) -> str:
        """Said beside every result."""
        origin = self.trace.manifest.origin
        return "SYNTHETIC behaviour" if origin == "synthetic" else f"{origin} behaviour"

    def prompt_name(self, prompt: int) -> str:
        """Which prompt, for a caption."""
        row = self.trace.prompts.iloc[prompt]
        return f"{row['category']}: {row['source']}, {row['source_id']}"


def two_of(batches: tuple[int, ...]) -> tuple[int, ...]:
    """The batch sizes that are shown in detail: 1, and 16 or else the greatest."""
    return tuple(sorted({1, 16 if 16 in batches else max(batches)}))


def carry_out(
    trace: Trace, costs: list[CostModel], settings: RankSettings, say: Progress, jobs: int = 1
) -> Study:
    """Rank chains, study lengths, measure calibration.

    Args:
        settings: batch size 1 has to be among its batches, since the bounds hold there.
        say: told of each part as it begins.
        jobs: processes; the result does not depend on it.

    Raises:
        BadInput: when a cost cannot price the target and at least one drafter.
    """
    say(f"ranking chains under {', '.join(c.name for c in costs)}")
    rankings = rank(trace, costs, settings, jobs=jobs, progress=say)
    prompts = _first_of_categories(trace)
    rules = {n: r for n, r in rules_under_test(trace).items() if n.startswith("static-") or n in SHOWN_RULES}
    studies = []
    for ranking in rankings:
        cost = ranking.cost
        shown = two_of(settings.batches)
        say(f"length rules under {cost.name} at batch {', '.join(map(str, shown))}")
        drafters = best_drafters(trace, cost, shown, settings.seed)
        asked = LengthSettings(draws=settings.draws, seed=settings.seed)
        lengths = study_batches(trace, drafters, cost, asked, rules, jobs)
        drafter = _best_with_confidence(trace, lengths[1])
        along = [
            {r: lengths_along_text(trace, drafter, cost, p, r) for r in RULES_ALONG_TEXT} for p in prompts
        ]
        measured = isinstance(cost, MeasuredCost)
        left_out = leave_one_out(trace.latency, cost.name) if measured else None
        studies.append(CostStudy(cost, ranking, ranking.as_json(), lengths, along, drafter, left_out))
    say("acceptance and calibration")
    drafted = {d: first_drafts(trace, d) for d in trace.drafters if not trace.is_lookup(d)}
    return Study(
        trace=trace,
        settings=settings,
        costs=studies,
        survival={
            d: survival(trace, d, min(SURVIVAL_LENGTH, trace.manifest.block_length)) for d in trace.drafters
        },
        calibration={d: calibrate(*both) for d, both in drafted.items() if len(both[0])},
    )


def _best_with_confidence(trace: Trace, found: LengthStudy) -> str:
    """``found``'s drafter, or instead of a look-up the network whose best static length is fastest."""
    able = [d for d in trace.drafters if d in found.cost.models and not trace.is_lookup(d)]
    if not able or not trace.is_lookup(found.drafter):
        return found.drafter
    asked = LengthSettings(batch=1, draws=0, seed=found.settings.seed)
    return best_drafter(trace, found.cost, asked, able)


def _first_of_categories(trace: Trace) -> list[int]:
    """The first prompt of each category: taken by order, not by how it looks."""
    first = trace.prompts.drop_duplicates("category").index.to_numpy()
    return [int(p) for p in first[:TEXTS]]


def rank_document(study: Study, provenance: dict[str, object]) -> dict[str, Any]:
    """The contents of rank.json; keys as :mod:`simspec.cli.rank` says, and ``leave_one_out``."""
    costs = {}
    for c in study.costs:
        errors = None
        if c.left_out is not None:
            errors = {
                m: {"median_relative_error": e.median, "p90_relative_error": e.p90}
                for m, e in c.left_out.items()
            }
        costs[c.cost.name] = {**c.found, "leave_one_out": errors}
    return {**_head(study, provenance), "costs": costs}


def lengths_document(study: Study, provenance: dict[str, object]) -> dict[str, Any]:
    """The contents of lengths.json.

    Keys: ``drafters.<name>`` = {survival[] (length, accepted, starts, share, interval),
    calibration}; ``costs.<name>`` = {``batches.<B>`` as :mod:`simspec.cli.lengths` says,
    ``along_text[]``}.
    """
    drafters: dict[str, Any] = {}
    for name, found in study.survival.items():
        rows = [
            {
                "length": j + 1,
                "accepted": int(found.accepted[j]),
                "starts": int(found.starts[j]),
                "share": share.value,
                "interval": [share.low, share.high],
            }
            for j, share in enumerate(found.estimates())
        ]
        calibration = study.calibration.get(name)
        drafters[name] = {"survival": rows, "calibration": calibration.as_json() if calibration else None}
    costs = {}
    for c in study.costs:
        along = [
            {
                "prompt": a.prompt,
                "drafter": c.along_drafter,
                "rule": rule,
                "position": a.position.tolist(),
                "chosen": a.chosen.tolist(),
                "hindsight": a.hindsight.tolist(),
                "accepted": a.accepted.tolist(),
            }
            for text in c.along
            for rule, a in text.items()
        ]
        costs[c.cost.name] = {
            "batches": {str(b): s.as_json() for b, s in c.lengths.items()},
            "along_text": along,
        }
    return {**_head(study, provenance), "drafters": drafters, "costs": costs}


def _head(study: Study, provenance: dict[str, object]) -> dict[str, Any]:
    manifest = study.trace.manifest
    return {"trace": manifest.name, "origin": manifest.origin, "provenance": provenance}


def bound_over_static(study: LengthStudy) -> tuple[float, float | None, float | None] | None:
    """The dynamic program's time over the best static length's, in %, with its 95% interval."""
    if study.bound is None:
        return None
    over = np.asarray(percent_over(study.bound, study.rules[study.best_static].seconds_per_token))
    found = estimate(over[0], over[1:])
    assert found.value is not None
    return found.value, found.low, found.high
