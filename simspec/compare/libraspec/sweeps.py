"""Algorithm 1's constants swept: what the best alpha is, how far it wanders, and what tuning it gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from simspec.compare.asked import Asked, Progress
from simspec.compare.batches import request_starts
from simspec.compare.length_runs import static_lengths
from simspec.compare.libraspec.alphas import along_lengths, readings
from simspec.compare.libraspec.shares import Floats, over_draws
from simspec.compare.libraspec.tuning import Priced, best_on, held_out, learning_parts
from simspec.cost.models import CostModel
from simspec.metrics import INTERVAL, estimate, percent_over
from simspec.replay.trajectories import Trajectories, run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import LengthRule, LibraSpec, Static
from simspec.speculation.lengths_libraspec import ClampedLibraSpec
from simspec.traces.index import Trace

ALPHAS = (0.5, 0.7, 1.0, 1.4, 1.8, 1.9, 2.0, 2.1, 2.2, 2.8, 4.0, 5.6, 8.0, 11.0, 15.0)
PAPER = (2.0, 2.2)
# n: DFlash's, and that of a drafter of one token at a time.
BLOCKS = (16, 1)
LONGEST = 24
GRID_BLOCKS, GRID_LONGEST = (1, 4, 8, 10, 16), (4, 8, 12, 16, 24, 26)
BATCHES = (1, 4, 16)
# A speedup that is short of the greatest by no more than this counts as like it.
LIKE = 0.01


def study(trace: Trace, costs: list[CostModel], asked: Asked, say: Progress) -> dict[str, Any]:
    """Every drafter but look-ups, under every cost that prices it; speedups are over plain decoding.

    What is tuned is tuned on the even or the odd prompts and scored on the others, which run in batches of
    their own; so is everything that it is held against.

    alpha is swept with Algorithm 1 held within d_max, which the record's blocks then show exactly whatever
    alpha is. n and d_max are swept with Algorithm 1 as printed, cut by the record's blocks.

    Returns:
        ``alphas``, ``blocks``, ``longest``, ``batches``, ``prompts`` (of each task), ``costs.<name>`` =
        {``label``, ``drafters.<name>.<batch>``}: ``curves.<n>`` = {``speedup`` and ``relative`` (that over
        the speedup at alpha 2.0, paired) by alpha, with their ``_interval``, ``best`` (alpha) and
        ``best_interval`` (of the best of each draw), ``like`` (least and greatest alpha whose speedup is
        short of the best by 1% at most), ``parts`` = [{half left out, task or None, best}], ``readings`` as
        :func:`~simspec.compare.libraspec.alphas.readings`}; ``policies.<name>`` = {speedup,
        speedup_interval, over_static (% more time than the static length tuned on the other half, paired),
        over_static_interval, over_paper (than alpha 2.2 with the same n, where it has one),
        over_paper_interval, over_tuned and its interval (than one constant for all tasks, where it has one
        a task)}: ``alpha-<a>/<n>`` of the paper, ``tuned/<n>`` and ``tuned-by-task/<n>`` (alpha tuned on
        the other half), ``static`` and ``static-by-task``, ``grid/<alpha>`` (n and d_max tuned on the other
        half); ``grid.<alpha>`` = {``blocks``, ``longest``, ``speedup[n][d_max]``, ``drafted[n][d_max]`` a
        cycle}; ``along_lengths`` as :func:`~simspec.compare.libraspec.alphas.along_lengths`.
    """
    batches = [b for b in BATCHES if b in asked.batches] or [asked.batches[0]]
    work = [
        (trace, d, able, batches, asked)
        for d in trace.drafters
        if not trace.is_lookup(d) and (able := [c for c in costs if d in c.models])
    ]
    say(f"sweeps: {len(work)} drafters at batch {', '.join(map(str, batches))}")
    done = Parallel(n_jobs=asked.jobs)(delayed(_one)(*each) for each in work)
    found: dict[str, Any] = {c.name: {"label": c.label, "drafters": {}} for c in costs}
    for (_, drafter, *_), of_costs in zip(work, done, strict=True):
        for cost, each in of_costs.items():
            found[cost]["drafters"][drafter] = each
    depth = trace.manifest.block_length
    return {
        "alphas": list(ALPHAS),
        "blocks": blocks(depth),
        "longest": min(LONGEST, depth),
        "batches": batches,
        "prompts": trace.prompts["category"].value_counts(sort=False).to_dict(),
        "costs": found,
    }


def blocks(depth: int, of: Sequence[int] = BLOCKS) -> list[int]:
    """Block sizes that the record's blocks hold."""
    return list(dict.fromkeys(min(n, depth) for n in of))


def _one(
    trace: Trace, drafter: str, costs: list[CostModel], batches: list[int], asked: Asked
) -> dict[str, dict[str, Any]]:
    chain, starts, depth = Chain((drafter, trace.target)), request_starts(trace), trace.manifest.block_length

    def went(rule: LengthRule) -> Trajectories:
        return run(trace, chain, rule, starts)

    longest = min(LONGEST, depth)
    swept = {n: [went(ClampedLibraSpec(a, n, longest)) for a in ALPHAS] for n in blocks(depth)}
    static = {n: went(Static(n)) for n in static_lengths(trace)}
    within = [d for d in GRID_LONGEST if d <= depth] or [depth]
    grid = {
        a: [[went(LibraSpec(a, n, d)) for d in within] for n in blocks(depth, GRID_BLOCKS)] for a in PAPER
    }
    found: dict[str, dict[str, Any]] = {}
    for cost in costs:
        found[cost.name] = {}
        for batch in batches:
            priced = Priced(trace, drafter, cost, batch, asked.seed)
            found[cost.name][str(batch)] = _priced(priced, swept, static, grid, within, asked.draws)
    return found


def _priced(
    priced: Priced,
    swept: Mapping[int, list[Trajectories]],
    static: Mapping[int, Trajectories],
    grid: Mapping[float, list[list[Trajectories]]],
    within: Sequence[int],
    draws: int,
) -> dict[str, Any]:
    trace, parts = priced.trace, learning_parts(priced.trace)
    plain = priced.by_halves(static[0], draws)
    lengths = list(static.values())
    fixed = best_on(priced, lengths, parts)
    policies = {
        f"static{'-by-task' if by_task else ''}": priced.by_halves(
            held_out(trace, lengths, fixed, by_task=by_task), draws
        )
        for by_task in (False, True)
    }
    curves: dict[str, Any] = {}
    against: dict[str, dict[str, Floats]] = {"static-by-task": {"tuned": policies["static"]}}
    for n, runs in swept.items():
        every = np.array([priced.by_halves(r, draws) for r in runs])
        best = best_on(priced, runs, parts)
        curves[str(n)] = _curve(every, plain) | {
            "parts": [{"half": h, "task": t, "best": ALPHAS[k]} for (h, t), k in best.items()],
            "readings": readings(priced, runs[int(every[:, 0].argmin())]),
        }
        mine = {f"alpha-{a}/{n}": every[ALPHAS.index(a)] for a in PAPER}
        for by_task in (False, True):
            name = f"tuned{'-by-task' if by_task else ''}/{n}"
            mine[name] = priced.by_halves(held_out(trace, runs, best, by_task=by_task), draws)
        against |= {m: {"paper": mine[f"alpha-{PAPER[-1]}/{n}"]} for m in mine}
        against[f"tuned-by-task/{n}"]["tuned"] = mine[f"tuned/{n}"]
        policies |= mine
    tables: dict[str, Any] = {}
    for alpha, rows in grid.items():
        flat = [r for row in rows for r in row]
        seconds = [[priced.by_halves(r, 0)[0] for r in row] for row in rows]
        tables[str(alpha)] = {
            "blocks": blocks(trace.manifest.block_length, GRID_BLOCKS),
            "longest": list(within),
            "speedup": (plain[0] / np.array(seconds)).tolist(),
            "drafted": [[float(r.drafted[r.active].mean()) for r in row] for row in rows],
        }
        both = {part: prompts for part, prompts in parts.items() if part[1] is None}
        chosen = held_out(trace, flat, best_on(priced, flat, both), by_task=False)
        policies[f"grid/{alpha}"] = priced.by_halves(chosen, draws)
    return {
        "curves": curves,
        "policies": {
            n: _policy(s, plain, {"static": policies["static"], **against.get(n, {})})
            for n, s in policies.items()
        },
        "grid": tables,
        "along_lengths": along_lengths(priced, static),
    }


def _curve(seconds: Floats, plain: Floats) -> dict[str, Any]:
    """Of seconds a token by alpha and draw, (alphas, draws + 1)."""
    speedup = plain / seconds
    relative = seconds[ALPHAS.index(PAPER[0])] / seconds
    of_draws = np.array(ALPHAS)[seconds.argmin(axis=0)]
    like = np.array(ALPHAS)[speedup[:, 0] >= speedup[:, 0].max() * (1 - LIKE)]
    return {
        **_each("speedup", speedup),
        **_each("relative", relative),
        "best": float(of_draws[0]),
        "best_interval": np.quantile(of_draws[1:], INTERVAL, method="inverted_cdf").tolist()
        if len(of_draws) > 1
        else [None, None],
        "like": [float(like.min()), float(like.max())],
    }


def _each(name: str, values: Floats) -> dict[str, Any]:
    found = [estimate(v[0], v[1:]) for v in values]
    return {name: [f.value for f in found], f"{name}_interval": [[f.low, f.high] for f in found]}


def _policy(seconds: Floats, plain: Floats, against: Mapping[str, Floats]) -> dict[str, Any]:
    speedup = plain / seconds
    found = over_draws("speedup", speedup)
    for name, other in against.items():
        found |= over_draws(f"over_{name}", np.asarray(percent_over(seconds, other)))
    return found
