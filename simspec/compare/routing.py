"""What routing gains: schedulers that pick the chain of every cycle, beside static ones and oracles.

Prompts are scored in two halves (even and odd numbers), each with what was tuned on the other.
Batches and bootstrap draws stay within a half.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from simspec.compare.batches import draw_prompts, request_starts
from simspec.compare.route_batches import by_draw, halves, plan, static_seconds
from simspec.compare.route_bounds import bound_scores
from simspec.compare.route_schedulers import SCHEDULERS, Factory, Tuned, priors
from simspec.compare.route_scores import Score
from simspec.cost.models import CostModel
from simspec.errors import BadInput
from simspec.metrics import estimate, percent_over
from simspec.replay.candidates import CandidateTable, tabulate
from simspec.replay.evidence import Similarity
from simspec.replay.routed import Foreseeing, route
from simspec.speculation.chains import all_chains
from simspec.speculation.routing import Always, Candidate
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]
Progress = Callable[[str], None]

PLAIN, PAIR, BOUND = "target-only", "static-pair", "dynamic-program"


@dataclass(frozen=True)
class RouteSettings:
    """What is routed: batch sizes, draft lengths, depth of chains, bootstrap draws of prompts.

    ``split`` lets every request of a batch take its own chain (of the routers; not the static ones
    and oracles). ``bound`` asks for the bound, which takes about as long as all else.
    """

    batches: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    lengths: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    deepest: int = 3
    draws: int = 100
    seed: int = 0
    split: bool = False
    bound: bool = True


@dataclass(frozen=True)
class RouteStudy:
    """Scores by batch size and scheduler under one cost."""

    cost: CostModel
    candidates: list[Candidate]
    scores: dict[int, dict[str, Score]]
    settings: RouteSettings

    def as_json(self) -> dict[str, Any]:
        """See :mod:`simspec.cli.route` for the keys."""
        return {
            "cost": {"name": self.cost.name, "label": self.cost.label},
            "candidates": len(self.candidates),
            "split": self.settings.split,
            "batches": {
                str(batch): {name: self._json(batch, name) for name in scores}
                for batch, scores in self.scores.items()
            },
        }

    def _json(self, batch: int, name: str) -> dict[str, Any]:
        scores = self.scores[batch]
        score = scores[name]
        rate = 1.0 / score.per_token
        out: dict[str, Any] = {}
        figures = {
            "tokens_per_second": rate,
            "speedup": _ratio(scores.get(PLAIN), score),
            "over_static_pair": _ratio(scores.get(PAIR), score),
            "regret": None
            if BOUND not in scores
            else np.asarray(percent_over(score.per_token, scores[BOUND].per_token)),
        }
        for key, values in figures.items():
            found = None if values is None else estimate(float(values[0]), values[1:])
            out[key] = None if found is None else found.value
            out[f"{key}_interval"] = [None, None] if found is None else [found.low, found.high]
        out["switches_per_cycle"] = score.switches / score.decisions if score.decisions else 0.0
        out["catching_up_share"] = score.catching_up
        most = np.argsort(-score.taken, kind="stable")[:3]
        out["taken"] = [
            {
                "chain": list(self.candidates[k][0].levels),
                "semantics": self.candidates[k][0].semantics if self.candidates[k][0].intermediates else None,
                "draft_length": self.candidates[k][1],
                "share": float(score.taken[k] / score.taken.sum()),
            }
            for k in most
            if score.taken[k]
        ]
        return out


def _ratio(slower: Score | None, score: Score) -> Floats | None:
    return None if slower is None else np.asarray(slower.per_token / score.per_token)


def candidates_of(trace: Trace, cost: CostModel, settings: RouteSettings) -> list[Candidate]:
    """Every chain and length that the cost can price.

    Raises:
        BadInput: when that leaves no drafter.
    """
    models = list(trace.manifest.models)
    chains = all_chains(models, trace.target, set(models) - set(trace.verifiers), settings.deepest)
    able = [c for c in chains if set(c.levels) <= cost.models]
    if trace.target not in cost.models or len(able) < 2:
        raise BadInput(
            f"cost {cost.name!r} prices {sorted(cost.models)}",
            allowed=f"{trace.target} and one of {sorted(trace.drafters)}",
        )
    return [(c, n) for c in able for n in (settings.lengths if c.drafter else (0,))]


def study_routes(
    trace: Trace,
    cost: CostModel,
    settings: RouteSettings,
    *,
    schedulers: Mapping[str, Factory] | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> RouteStudy:
    """Replay every scheduler at every batch size, with the bound on all of them; as :func:`route_halves`."""
    candidates, scores = route_halves(
        trace, cost, settings, schedulers=schedulers, jobs=jobs, progress=progress
    )
    summed = {
        batch: {name: reduce(Score.plus, (s[name] for s in halves if name in s)) for name in halves[0]}
        for batch, halves in scores.items()
    }
    return RouteStudy(cost, candidates, summed, settings)


def route_halves(
    trace: Trace,
    cost: CostModel,
    settings: RouteSettings,
    *,
    schedulers: Mapping[str, Factory] | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> tuple[list[Candidate], dict[int, list[dict[str, Score]]]]:
    """Replay every scheduler at every batch size, and work out the bound.

    At batch 1 the bound is what the dynamic program takes; above, one that need not be reached
    (:mod:`simspec.oracle.batched`).

    Args:
        schedulers: which, by name; all of :data:`~simspec.compare.route_schedulers.SCHEDULERS` by default.
        jobs: processes; the result does not depend on it.
        progress: called with a line to show now and then.

    Returns:
        the candidates, and by batch size and half of the prompts the score of each scheduler.
    """
    factories = dict(SCHEDULERS if schedulers is None else schedulers)
    table = tabulate(trace, candidates_of(trace, cost, settings))
    parts = halves(trace)
    static = static_seconds(table, cost, settings.batches, settings.seed, parts, jobs)
    if progress:
        progress(
            f"tuned {len(table.pool.candidates)} static candidates at {len(settings.batches)} batch sizes"
        )
    similarity = Similarity.of(trace)
    pieces = [(b, h) for b in settings.batches for h in range(len(parts))]
    work: list[Any] = [
        joblib.delayed(_piece)(
            table, cost, settings, factories, parts[h], static[b][h], static[b][-1 - h], b, similarity
        )
        for b, h in pieces
    ]
    scores: dict[int, list[dict[str, Score]]] = {}
    done = joblib.Parallel(n_jobs=jobs, return_as="generator")(work)
    for (batch, _), found in zip(pieces, done, strict=True):
        scores.setdefault(batch, []).append(found)
        if progress:
            progress(f"routed batch size {batch}")
    if not settings.bound:
        return list(table.pool.candidates), scores
    scored = [part for part, _ in parts]
    found = bound_scores(table, cost, settings.batches, scored, settings.draws, settings.seed, jobs)
    for batch, bounds in found.items():
        for mine, bound in zip(scores[batch], bounds, strict=True):
            mine[BOUND] = bound
    if progress:
        progress("solved the dynamic programs")
    return list(table.pool.candidates), scores


def _piece(
    table: CandidateTable,
    cost: CostModel,
    settings: RouteSettings,
    factories: Mapping[str, Factory],
    part: tuple[Ints, Ints],
    own: Floats,
    other: Floats,
    batch: int,
    similarity: Similarity,
) -> dict[str, Score]:
    trace = table.trace
    drawn, requests, owner = plan(trace, part[0], settings.seed, batch, settings.draws)
    taught = draw_prompts(trace, 0, settings.seed, among=part[1])
    tuned = Tuned(table, cost, other, own, priors(table, taught, max(settings.lengths)))
    starts = request_starts(trace)[requests]
    first = slice(None) if batch == 1 else owner == 0
    found = {}
    for name, factory in factories.items():
        router = factory(tuned)
        if router is None:
            continue
        single = settings.split and not isinstance(router, Foreseeing | Always)
        done = route(table, cost, router, starts, split=single, similarity=similarity)
        found[name] = Score(
            by_draw(drawn, requests, owner, done.seconds),
            by_draw(drawn, requests, owner, done.tokens.astype(np.float64)),
            int(done.decisions[first].sum()),
            int(done.switches[first].sum()),
            float(done.catching_up[first].sum() / done.seconds[first].sum()),
            done.chosen,
        )
    return found
