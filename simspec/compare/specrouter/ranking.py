"""The experiment: does a reading of Eq. 7 pick the chain that replay finds fastest? Is one best for all?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from simspec.compare.asked import Asked, Progress
from simspec.compare.parts import ALL
from simspec.compare.rank import RankSettings, rank
from simspec.compare.rankings import Candidate, Ranking, summary
from simspec.cost.models import CostModel
from simspec.metrics import estimate, percent_over
from simspec.traces.index import Trace


def study(trace: Trace, costs: list[CostModel], asked: Asked, say: Progress) -> dict[str, Any]:
    """Every reading with every source, fitted on one half of the prompts and scored on the other, both ways.

    Returns:
        ``candidates`` (how many chains x lengths), ``prompts`` (of each task), ``costs.<name>`` = {``label``,
        ``tasks.<task>`` = {``summary`` as :func:`~simspec.compare.rankings.summary`, ``tuned`` as
        :func:`tuned`, ``batches.<B>[]``, one a half = {best, speedup, speedup_interval, lead (%),
        lead_interval, regret.<variant>/<source> (%)}},
        ``one_chain.<B>.<task>`` as :func:`one_chain`}.
    """
    settings = RankSettings(
        batches=asked.batches,
        lengths=asked.lengths,
        draws=asked.draws,
        seed=asked.seed,
        split=True,
        by_task=trace.prompts["category"].nunique() > 1,
    )
    rankings = rank(trace, costs, settings, jobs=asked.jobs, progress=say)
    found = {}
    for cost in costs:
        mine = [r for r in rankings if r.cost is cost]
        tasks = {t: [r for r in mine if r.part.task == t] for t in dict.fromkeys(r.part.task for r in mine)}
        found[cost.name] = {
            "label": cost.label,
            "tasks": {
                task: {
                    "summary": summary(both),
                    "tuned": tuned(both),
                    "batches": {str(b): [_batch(r, i) for r in both] for i, b in enumerate(settings.batches)},
                }
                for task, both in tasks.items()
            },
            "one_chain": {
                str(b): {task: one_chain(tasks[ALL], both, i) for task, both in tasks.items() if task != ALL}
                for i, b in enumerate(settings.batches)
            },
        }
    return {
        "candidates": max(len(r.candidates) for r in rankings),
        "prompts": trace.prompts["category"].value_counts(sort=False).to_dict(),
        "costs": found,
    }


def tuned(halves: Sequence[Ranking]) -> dict[str, Any]:
    """What taking the replayed best of one half does on the other: as well as an estimate can know.

    Returns:
        ``median_regret``, ``mean_regret``, ``worst_regret`` (%), ``of``, ``clear`` and ``clear_top1`` as in
        :func:`~simspec.compare.rankings.summary`.
    """
    regret, right, clear = [], [], []
    for scored, other in zip(halves, reversed(halves), strict=True):
        for mine, theirs in zip(scored.batches, other.batches, strict=True):
            k = int(theirs.replayed[0].argmin())
            regret.append(float(percent_over(mine.replayed[0, k], mine.replayed[0].min())))
            right.append(k == int(mine.replayed[0].argmin()))
            clear.append(mine.clear())
    return {
        "median_regret": float(np.median(regret)),
        "mean_regret": float(np.mean(regret)),
        "worst_regret": max(regret),
        "of": len(regret),
        "clear": sum(clear),
        "clear_top1": sum(r for r, c in zip(right, clear, strict=True) if c),
    }


def one_chain(overall: Sequence[Ranking], task: Sequence[Ranking], batch: int) -> dict[str, Any]:
    """What serving a task with the chain that is best for all tasks costs, over its own best chain.

    Both are chosen by replay of the half that is not scored, so neither is flattered by its own prompts;
    their times are summed over both halves, each weighing as much.

    Args:
        overall, task: rankings of all prompts and of the task's, one a half, in the same order.
        batch: index of the batch size.

    Returns:
        ``loss`` (% more time for the chain of all), ``loss_interval``, ``clear`` (whether the interval leaves
        out 0), ``all[]`` and ``own[]`` (what each half was served with).
    """
    seconds = []
    chosen: dict[str, list[dict[str, Any]]] = {"all": [], "own": []}
    for half, scored in enumerate(task):
        other = len(task) - 1 - half
        times = []
        for name, tuned in (("all", overall[other]), ("own", task[other])):
            k = int(tuned.batches[batch].replayed[0].argmin())
            chosen[name].append(named(tuned.candidates[k]))
            times.append(scored.batches[batch].replayed[:, k])
        seconds.append(times)
    general, own = np.sum(seconds, axis=0)
    loss = np.asarray(percent_over(general, own))
    found = estimate(loss[0], loss[1:])
    low, high = found.low, found.high
    return {
        "loss": found.value,
        "loss_interval": [low, high],
        "clear": low is not None and high is not None and (low > 0.0 or high < 0.0),
        **chosen,
    }


def named(candidate: Candidate) -> dict[str, Any]:
    """Chain, draft_length and semantics, as :mod:`simspec.cli.rank` shows them."""
    chain, length = candidate
    return {
        "chain": list(chain.levels),
        "draft_length": length,
        "semantics": chain.semantics if chain.intermediates else None,
    }


def _batch(ranking: Ranking, i: int) -> dict[str, Any]:
    found = ranking.batches[i].as_json(ranking.candidates)
    best = found["chains"][found["best"]]
    return {
        "best": named(ranking.candidates[found["best"]]),
        "speedup": best["speedup"],
        "speedup_interval": best["speedup_interval"],
        "lead": found["lead"],
        "lead_interval": found["lead_interval"],
        "regret": {name: score["regret"] for name, score in found["scores"].items()},
    }
