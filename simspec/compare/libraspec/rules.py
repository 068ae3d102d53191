"""Every length rule against every other, static lengths, oracles and bounds: is ours ever the slower one?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from simspec.compare.asked import Asked, Progress
from simspec.compare.batches import batch_requests, draw_prompts, request_starts
from simspec.compare.length_runs import LengthSettings, best_drafters, replayed
from simspec.compare.lengths import OURS, TUNED, LengthStudy, RuleResult, study_batches
from simspec.compare.libraspec import shares
from simspec.compare.recalibrated import with_confidence
from simspec.cost.models import CostModel
from simspec.metrics import Estimate, estimate, percent_over
from simspec.oracle.length_batches import least_batch_seconds
from simspec.oracle.lengths import calibrated
from simspec.speculation.chains import Chain
from simspec.speculation.planners_longrun import LongRun
from simspec.speculation.rule_files import Rule
from simspec.traces.index import Trace

Floats = NDArray[np.float64]

# Where other drafters than the fastest are tried too, and where verdicts are asked for.
JUDGED = (1, 4, 16)
# Of the other drafters' studies at most; the fastest drafter's has as many as are asked for.
OTHER_DRAWS = 40
PLAIN = "static-0"
ORACLE = "long-run-expected"
TOLD = "long-run, told acceptance"


def study(
    trace: Trace,
    costs: list[CostModel],
    asked: Asked,
    say: Progress,
    *,
    rules: Mapping[str, Rule] | None = None,
) -> dict[str, Any]:
    """All rules with the fastest drafter of each batch size, and with each other one at ``JUDGED``.

    The bound is the dynamic program at batch 1 and that of :mod:`simspec.oracle.length_batches` above.
    ``long-run, told acceptance`` is ours that gets as confidences what acceptance they stood for on the other
    half of the prompts: the oracle's information, and a whole batch to use it on. It counts as an oracle.

    Args:
        rules: static lengths and ours among them; None for all that come with the package.

    Returns:
        ``ours``, ``oracle``, ``told`` (names), ``prompts`` (how many), ``costs.<name>`` = {``label``,
        ``studies[]`` = {the keys of :mod:`simspec.cli.lengths` for one batch size with ``regret_<oracle>``
        for all of ``oracles``, ``fastest`` (whether its drafter is that of its batch size), ``draws``,
        ``plain_over_bound`` (decoding without drafts over its own bound, %: how loose bounds are here),
        ``verdict`` as :func:`verdict`}}.
    """
    found = {}
    for cost in costs:
        best = best_drafters(trace, cost, asked.batches, asked.seed)
        others = [d for d in trace.drafters if d in cost.models]
        work = [(best, asked.draws)]
        for drafter in others:
            here = {b: drafter for b in asked.batches if b in JUDGED and best[b] != drafter}
            work += [(here, min(asked.draws, OTHER_DRAWS))] if here else []
        shown = []
        for drafters, draws in work:
            say(f"rules under {cost.name}: {_told(drafters)}")
            settings = LengthSettings(draws=draws, seed=asked.seed)
            studies = study_batches(trace, drafters, cost, settings, rules, asked.jobs)
            done = joblib.Parallel(n_jobs=asked.jobs)(
                joblib.delayed(_completed)(trace, studies[b]) for b in sorted(studies)
            )
            shown += [one | {"fastest": best[one["batch"]] == one["drafter"]} for one in done]
        found[cost.name] = {"label": cost.label, "studies": shown}
    return {"ours": OURS, "oracle": ORACLE, "told": TOLD, "prompts": len(trace.prompts), "costs": found}


def _told(drafters: Mapping[int, str]) -> str:
    return ", ".join(f"{d} at batch {b}" for b, d in sorted(drafters.items()))


def _completed(trace: Trace, found: LengthStudy) -> dict[str, Any]:
    """The study as JSON, with a bound at every batch size, and ours with the oracle's information."""
    settings, drafter, cost = found.settings, found.drafter, found.cost
    plain = found.rules[PLAIN].seconds_per_token
    least = bound_per_token(trace, drafter, cost, settings, longest=0)
    bound = found.bound
    if bound is None:
        bound = bound_per_token(trace, drafter, cost, settings)
    held = replace(trace, drafters={drafter: trace.drafters[drafter]})
    known = with_confidence(held, drafter, calibrated(trace, drafter))
    told = replayed(known, drafter, cost, settings, {TOLD: LongRun(calibration=None)})[TOLD]
    result = RuleResult(
        told.seconds_per_token, float(told.submitted.mean()), float(told.drafted.mean()), deviations={}
    )
    whole = replace(found, bound=bound, oracles=found.oracles | {TOLD: result})
    document = whole.as_json()
    for kind in ("rules", "oracles"):
        for name, each in document[kind].items():
            mine = getattr(whole, kind)[name].seconds_per_token
            for oracle, reference in whole.oracles.items():
                each |= shares.told(f"regret_{oracle}", whole.over(mine, reference.seconds_per_token))
    document |= {
        "draws": settings.draws,
        "plain_over_bound": float(percent_over(plain[0], least[0])),
        "verdict": verdict(whole),
    }
    return {name: _short(value) for name, value in document.items()}


def bound_per_token(
    trace: Trace, drafter: str, cost: CostModel, settings: LengthSettings, *, longest: int | None = None
) -> Floats:
    """The bound's seconds a token, for all prompts and each draw, (draws + 1,)."""
    requests, owner = batch_requests(draw_prompts(trace, settings.draws, settings.seed), settings.batch)
    starts, chain = request_starts(trace), Chain((drafter, trace.target))
    seconds = least_batch_seconds(trace, chain, cost, starts, requests, longest)
    tokens = trace.remaining[starts][requests].sum(axis=1)
    return np.bincount(owner, weights=seconds) / np.bincount(owner, weights=tokens)


def verdict(found: LengthStudy) -> dict[str, Any]:
    """Ours held against every other rule, and what is left of the way to the bound.

    Returns:
        ``over_static``, ``over_tuned`` (% more time than the best static length, tuned on the same prompts,
        and than the tuned one), ``slower_than[]`` = {``rule``, ``by`` (%), ``by_interval``} for rules that
        are faster beyond their paired interval, the fastest first; ``faster_than`` (how many are slower
        beyond theirs), ``of``; shares of the gap from the best static length to the bound, null where there
        is none: ``closed`` (ours), ``closed_by_oracle``, ``closed_by_told``, ``left_to_rule`` and
        ``left_to_planner`` (what either has closed beyond ours); each but ``of`` and ``faster_than`` with
        ``_interval``.
    """
    ours = found.rules[OURS].seconds_per_token
    slower, faster = [], 0
    for name, other in found.rules.items():
        over = found.over(ours, other.seconds_per_token)
        if name == OURS or over.low is None or over.high is None:
            continue
        faster += over.high < 0.0
        if over.low > 0.0:
            slower.append({"rule": name, **shares.told("by", over)})
    told: dict[str, Any] = {
        "slower_than": sorted(slower, key=lambda each: -float(each["by"])),
        "faster_than": faster,
        "of": len(found.rules) - 1,
    }
    told |= shares.told("over_static", found.over(ours, found.rules[found.best_static].seconds_per_token))
    told |= shares.told("over_tuned", found.over(ours, found.rules[TUNED].seconds_per_token))
    told |= shares.told("closed", found.gap_closed(ours))
    for name, oracle, left in (("oracle", ORACLE, "rule"), ("told", TOLD, "planner")):
        theirs = found.oracles[oracle].seconds_per_token
        told |= shares.told(f"closed_by_{name}", found.gap_closed(theirs))
        told |= shares.told(f"left_to_{left}", _beyond(found, theirs, ours))
    return told


def _beyond(found: LengthStudy, theirs: Floats, ours: Floats) -> Estimate:
    """The share of the gap that ``theirs`` closes more than ``ours``, paired."""
    assert found.bound is not None
    gap = found.rules[found.best_static].seconds_per_token - found.bound
    share = np.divide(ours - theirs, gap, out=np.full(gap.shape, np.nan), where=gap > 0)
    return estimate(share[0], share[1:])


def _short(values: Any) -> Any:
    """Figures to six digits: a document of thousands of them is read by people too."""
    if isinstance(values, dict):
        return {name: _short(value) for name, value in values.items()}
    if isinstance(values, list):
        return [_short(value) for value in values]
    return float(f"{values:.6g}") if isinstance(values, float) else values
