"""The shape of SpecRouter's Table 2 (arXiv 2505.07680): speedup by batch size of fixed and chosen chains."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.compare.asked import Asked, Progress
from simspec.compare.route_batches import halves
from simspec.compare.route_bounds import bound_scores
from simspec.compare.route_schedulers import SCHEDULERS, Factory, Tuned
from simspec.compare.route_scores import Score
from simspec.compare.routing import BOUND, PAIR, PLAIN, RouteSettings, route_halves
from simspec.compare.specrouter import alpha_map, roofline_models
from simspec.cost.models import CostModel
from simspec.metrics import estimate
from simspec.replay.candidates import tabulate
from simspec.replay.pricing import forward
from simspec.speculation.routing import Always, Candidate, Router
from simspec.traces.index import Trace

Floats = NDArray[np.float64]

# Draws of prompts at most: routers are replayed on each.
DRAWS = 50
# Ours, of which each half of the prompts takes the one that was fastest on the other.
ROUTERS = ("funnel-switch", "exact-switch", "ucb-prior")
SPECROUTER, VANILLA, TRIPLE = "reach", "vanilla", "three-level"


def study(trace: Trace, costs: list[CostModel], asked: Asked, say: Progress) -> dict[str, Any]:
    """Everything static is tuned on the other half of the prompts; one chain for a whole batch.

    Returns:
        ``prompts``, ``draws``; ``costs.<name>`` = {``label``, ``derived`` (a roofline of ours),
        ``batches.<B>.<scheme>`` = {speedup, interval}, ``chosen.<B>[]`` (our router, one a half)} with scheme
        ``second`` (best static pair), ``third`` (best static triple), ``vanilla`` (smallest drafter, next
        model, target), ``reach`` (SpecRouter's re-picking), ``ours``, ``bound`` (of any scheme) and
        ``bound_of_two`` (of any that has plain decoding and the static pair and triple to choose from);
        ``roles`` (which model of the trace stands for which of the rooflines'; empty where it has too few);
        ``theory`` as :func:`simspec.compare.specrouter.alpha_map.alpha_map`.
    """
    asked = replace(asked, draws=min(asked.draws, DRAWS))
    roles = _roles(trace, costs[0]) if costs else {}
    derived = [roofline_models.roofline(device, roles) for device in alpha_map.DEVICES] if roles else []
    found = {}
    for cost in (*costs, *derived):

        def told(line: str, name: str = cost.name) -> None:
            say(f"{name}: {line}")

        found[cost.name] = {"label": cost.label, "derived": cost in derived} | _by_batch(
            trace, cost, asked, told
        )
    theory = alpha_map.alpha_map(asked.batches, asked.jobs)
    say("mapped alphas")
    return {
        "prompts": len(trace.prompts),
        "draws": asked.draws,
        "costs": found,
        "roles": roles,
        "theory": theory,
    }


def _roles(trace: Trace, cost: CostModel) -> dict[str, str]:
    """The trace's cheapest drafting model, its costliest, and its target, as the rooflines' three."""
    one, context = np.ones(1, dtype=np.int64), np.array([round(float(trace.context.mean()))])
    able = [m for m in trace.verifiers if m != trace.target and m in trace.drafters and m in cost.models]
    able.sort(key=lambda m: (float(forward(cost, m, 1, one, context)[0]), m))
    if len(able) < 2:
        return {}
    return {
        able[0]: roofline_models.SMALL,
        able[-1]: roofline_models.MIDDLE,
        trace.target: roofline_models.TARGET,
    }


def _vanilla(tuned: Tuned) -> Router | None:
    """The smallest drafter, the model that takes least after it, and the target, at the best length."""
    pool, smallest = tuned.table.pool, tuned.smallest
    one = np.ones(1, dtype=np.int64)
    context = np.array([round(float(tuned.table.trace.context.mean()))])
    between = {c.intermediates[0] for c, _ in pool.candidates if c.intermediates and c.drafter == smallest}
    if not between:
        return None
    nearest = min(between, key=lambda m: (float(forward(tuned.cost, m, 1, one, context)[0]), m))
    fits = [c.levels == (smallest, nearest, pool.target) for c, _ in pool.candidates]
    return Always(int(np.where(fits, tuned.seconds, np.inf).argmin()))


def _by_batch(trace: Trace, cost: CostModel, asked: Asked, say: Progress) -> dict[str, Any]:
    settings = RouteSettings(batches=asked.batches, lengths=asked.lengths, draws=asked.draws, seed=asked.seed)
    names = (PLAIN, PAIR, TRIPLE, SPECROUTER, *ROUTERS)
    schedulers: dict[str, Factory] = {n: SCHEDULERS[n] for n in names} | {VANILLA: _vanilla}
    candidates, scores = route_halves(
        trace, cost, settings, schedulers=schedulers, jobs=asked.jobs, progress=say
    )
    batches, chosen = {}, {}
    for batch, both in scores.items():
        mine = [_fastest(other) for other in both[::-1]]
        schemes: dict[str, list[Score | None]] = {
            "second": [s.get(PAIR) for s in both],
            "third": [s.get(TRIPLE) for s in both],
            "vanilla": [s.get(VANILLA) for s in both],
            "reach": [s[SPECROUTER] for s in both],
            "ours": [s[n] for s, n in zip(both, mine, strict=True)],
            "bound": [s[BOUND] for s in both],
            "bound_of_two": _bounds_of_two(trace, cost, candidates, both, batch, asked),
        }
        plain = reduce(Score.plus, [s[PLAIN] for s in both]).per_token
        batches[str(batch)] = {
            name: _speedup(plain, known)
            for name, some in schemes.items()
            if len(known := [s for s in some if s is not None]) == len(both)
        }
        chosen[str(batch)] = mine
    return {"batches": batches, "chosen": chosen}


def _fastest(scores: dict[str, Score]) -> str:
    return min(ROUTERS, key=lambda name: float(scores[name].per_token[0]))


def _speedup(plain: Floats, scores: list[Score]) -> dict[str, Any]:
    ratio = np.asarray(plain / reduce(Score.plus, scores).per_token)
    found = estimate(float(ratio[0]), ratio[1:])
    return {"speedup": found.value, "interval": [found.low, found.high]}


def _bounds_of_two(
    trace: Trace,
    cost: CostModel,
    candidates: list[Candidate],
    both: list[dict[str, Score]],
    batch: int,
    asked: Asked,
) -> list[Score | None]:
    """The bound over plain decoding and the static pair and triple of each half."""
    found: list[Score | None] = []
    for half, scores in enumerate(both):
        if TRIPLE not in scores or PAIR not in scores:
            return [None] * len(both)
        used = {int(scores[n].taken.argmax()) for n in (PLAIN, PAIR, TRIPLE)}
        table = tabulate(trace, [candidates[k] for k in sorted(used)])
        part = halves(trace)[half][0]
        found += bound_scores(table, cost, [batch], [part], asked.draws, asked.seed, asked.jobs)[batch]
    return found
