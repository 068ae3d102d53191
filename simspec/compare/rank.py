"""Does the cost model pick the chain that replay finds fastest?"""

from __future__ import annotations

from dataclasses import dataclass

import joblib
import numpy as np
from numpy.typing import NDArray

from simspec.compare.estimates.similarity import Pair
from simspec.compare.estimates.sources import SOURCES, alphas
from simspec.compare.parts import Part, parts
from simspec.compare.predicted import BY_RATES, JOINT, JOINT_SOURCES, Told, predict, prices_for
from simspec.compare.rankings import BatchRanking, Candidate, Ranking, Score, score
from simspec.compare.replayed import Progress, Replayed, replay_all
from simspec.cost.models import CostModel
from simspec.errors import BadInput, unknown_name
from simspec.oracle.chains import least_seconds
from simspec.speculation.chains import all_chains
from simspec.traces.index import Trace

Floats = NDArray[np.float64]

__all__ = ["VARIANTS", "RankSettings", "Ranking", "rank"]

VARIANTS = (*BY_RATES, *JOINT)


@dataclass(frozen=True)
class RankSettings:
    """What is ranked, and by what.

    Attributes:
        models: the pool; empty for all of the trace. The target is always in it.
        deepest: levels of the longest chains.
        draws: bootstrap draws of prompts.
        split: fit on one half of the prompts and score on the other, both ways, instead of both on all.
        by_task: each category of prompts by itself as well.
        ema_weight: of the latest request, in the source ``simscore-ema``.
    """

    batches: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    lengths: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    deepest: int = 3
    draws: int = 100
    seed: int = 0
    models: tuple[str, ...] = ()
    variants: tuple[str, ...] = VARIANTS
    sources: tuple[str, ...] = SOURCES
    split: bool = False
    by_task: bool = False
    ema_weight: float = 0.1


def rank(
    trace: Trace,
    costs: list[CostModel],
    settings: RankSettings,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[Ranking]:
    """Replay every candidate at every batch size, predict it, and keep both.

    Args:
        jobs: processes to work in; the result does not depend on it.
        progress: called with a line to show now and then.

    Returns:
        for each cost a ranking of each part (one part, unless split or by task), over the candidates whose
        models it can price.

    Raises:
        BadInput: when a cost cannot price the target and at least one drafter.
    """
    candidates = _candidates(trace, settings)
    for cost in costs:
        if trace.target not in cost.models or not cost.models & {c.drafter for c, _ in candidates}:
            raise BadInput(
                f"cost {cost.name!r} prices {sorted(cost.models)}",
                allowed=f"{trace.target} and one of {sorted(trace.drafters)}",
            )
    divided = parts(trace, settings.draws, settings.seed, split=settings.split, by_task=settings.by_task)
    scored = [part.score for part in divided]
    replayed = replay_all(trace, costs, candidates, scored, settings.batches, jobs, progress)
    longest = max(settings.lengths)
    rates = [alphas(trace, p.fit, longest, settings.sources, settings.ema_weight) for p in divided]
    able = [[k for k, (c, _) in enumerate(candidates) if set(c.levels) <= cost.models] for cost in costs]
    truth = {
        (c, d): np.stack(
            [[replayed[k].seconds[c, d, b] for k in able[c]] for b in settings.batches]
        ).transpose(0, 2, 1)
        for c in range(len(costs))
        for d in range(len(divided))
    }
    work = (
        joblib.delayed(_scored)(
            trace,
            cost,
            [candidates[k] for k in able[c]],
            settings.batches,
            truth[c, d],
            variant,
            _told(variant, part, rates[d], [replayed[k] for k in able[c]]),
        )
        for c, cost in enumerate(costs)
        for d, part in enumerate(divided)
        for variant in settings.variants
    )
    found = iter(joblib.Parallel(n_jobs=jobs, return_as="generator")(work))
    rankings = []
    for c, cost in enumerate(costs):
        mine = [candidates[k] for k in able[c]]
        least = least_seconds(trace, mine, cost)
        for d, part in enumerate(divided):
            shares = [next(found) for _ in settings.variants]
            batches = []
            for i, batch in enumerate(settings.batches):
                both = {name: pair for share in shares for name, pair in share[i].items()}
                batches.append(
                    BatchRanking(
                        batch=batch,
                        replayed=truth[c, d][i],
                        predicted={name: times for name, (times, _) in both.items()},
                        scores={name: kept for name, (_, kept) in both.items()},
                    )
                )
            prompts = part.score.prompts[0]
            tokens = float(trace.prompts["output_tokens"].to_numpy()[prompts].sum())
            shown = {s: {p: float(v[0]) for p, v in pairs.items()} for s, pairs in rates[d].items()}
            rankings.append(Ranking(cost, mine, batches, float(least[prompts].sum() / tokens), part, shown))
            if progress:
                progress(f"scored under {cost.name} on {part.name}")
    return rankings


def _candidates(trace: Trace, settings: RankSettings) -> list[Candidate]:
    pool = list(settings.models or trace.manifest.models)
    for name in pool:
        trace.require(name)
    for kind, asked, known in (
        ("variant", settings.variants, VARIANTS),
        ("source", settings.sources, SOURCES),
    ):
        for name in asked:
            if name not in known:
                raise unknown_name(kind, name, known)
    only_draft = set(pool) - set(trace.verifiers)
    chains = all_chains(pool, trace.target, only_draft, settings.deepest)
    return [(c, n) for c in chains for n in (settings.lengths if c.drafter else (0,))]


def _told(variant: str, part: Part, rates: dict[str, dict[Pair, Floats]], replayed: list[Replayed]) -> Told:
    """What a variant needs and no more, since it goes to another process.

    Cycles are counted on each prompt by itself; only those of the fitted prompts have any weight.
    """
    counted = {s: [r.counted[s] for r in replayed] for s in JOINT_SOURCES} if variant in JOINT else {}
    return Told(rates, part.fit.counts(), counted)


def _scored(
    trace: Trace,
    cost: CostModel,
    candidates: list[Candidate],
    batches: tuple[int, ...],
    truth: Floats,
    variant: str,
    told: Told,
) -> list[dict[str, tuple[Floats, Score]]]:
    """For each batch size, what a variant predicts on all prompts and how well, by "variant/source"."""
    prices = prices_for(trace, cost, candidates, batches)
    found = predict(trace, cost, prices, candidates, variant, told)
    return [
        {name: (times[i, 0], score(times[i], truth[i])) for name, times in found.items()}
        for i in range(len(batches))
    ]
