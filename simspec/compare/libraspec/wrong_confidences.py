"""What it costs to act on confidences that are not chances (Assumption 3.7 of arXiv 2608.08721 dropped).

Each rule is carried out twice, told the drafter's confidence q and told p-hat, the acceptance that confidence
and place had on the other half of the prompts (:func:`~simspec.compare.recalibrated.isotonic_by_place`).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from simspec.compare.bands import short, shorts, with_interval
from simspec.compare.batches import draw_prompts, request_starts
from simspec.compare.length_runs import LengthSettings, replayed
from simspec.compare.libraspec.shares import mean_over
from simspec.compare.recalibrated import chances, isotonic_by_place, with_confidence
from simspec.cost.models import CostModel
from simspec.metrics import percent_over
from simspec.replay.pricing import draft_seconds, forward, two_level_seconds
from simspec.replay.trajectories import draft_limit, run, seen
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Decision, LengthRule, View, expected_tokens
from simspec.speculation.rule_files import published_alone
from simspec.traces.index import Trace

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Algorithm 1 as printed, the theorem's fixed point, each by blocks of 16 and of one token; the exact rule.
RULES = ("libraspec", "libraspec-n1", "libraspec-theorem", "libraspec-theorem-n1", "exact-marginal")
# Changes of a length by this much or more are counted together.
FAR = 6
# Expected tokens a second that differ by less are the same.
ROUNDING = 1e-12


def rules_of(trace: Trace) -> dict[str, LengthRule]:
    """The rules tried, within the record's blocks; all without memory."""
    known = published_alone(trace.manifest.block_length)
    return {name: known[name] for name in RULES}


def decided(trace: Trace, drafter: str, rule: LengthRule, seconds: Floats) -> Decision:
    """What a rule without memory does at every flat position; ``seconds`` of shape (N, D + 1)."""
    at = np.arange(len(trace.tokens))
    limit, recorded = draft_limit(trace, drafter, at), trace.drafters[drafter].confidence
    confidence = seen(recorded, at, np.arange(recorded.shape[1]) >= limit[:, None])
    assert confidence is not None
    found = rule.decide(View(confidence, limit, seconds), rule.begin(len(at)))
    drafted = np.minimum(found.drafted, limit)
    return Decision(drafted, np.minimum(found.submitted, drafted))


def visited(trace: Trace, drafter: str, rule: LengthRule, seconds: Floats) -> Flags:
    """Where cycles of the prompts' requests begin under a rule, (N,)."""
    chain = Chain((drafter, trace.target))
    runs = run(trace, chain, rule, request_starts(trace)[: len(trace.prompts)], seconds)
    found = np.zeros(len(trace.tokens), dtype=bool)
    found[runs.flat[runs.active]] = True
    return found


def speed(trace: Trace, drafter: str, cost: CostModel, chance: Floats, decision: Decision) -> Floats:
    """Expected tokens a second of each flat position's cycle at batch 1, were ``chance`` true, (N,)."""
    lag = np.ones_like(trace.context)
    seconds = draft_seconds(trace, cost, drafter, 1, decision.drafted, lag, trace.context)
    seconds = seconds + forward(cost, trace.target, 1, decision.submitted + 1, trace.context)
    tokens = np.take_along_axis(expected_tokens(chance), decision.submitted[:, None], axis=1)[:, 0]
    return np.asarray(tokens / (seconds + cost.step_overhead_seconds))


def mean(trace: Trace, among: Flags, values: NDArray[Any], counts: Floats) -> list[float | None]:
    """[value, low, high] of the mean of ``values`` (N,) at the flat positions ``among``."""
    found = mean_over(values[among], trace.prompt[among], counts)
    return [short(found.value), short(found.low), short(found.high)]


def compared(
    trace: Trace, among: Flags, by_q: Decision, by_p: Decision, speeds: tuple[Floats, Floats], counts: Floats
) -> dict[str, Any]:
    """Decisions by q and by p-hat held together at the positions ``among``.

    Returns:
        ``rounds``; in % of them ``changed`` (another length submitted), ``longer`` (by p-hat), ``slower``
        and ``faster`` (the expected tokens a second of q's length, under p-hat, against those of p-hat's);
        ``change`` (mean, p-hat's less q's length), ``loss`` (mean % of p-hat's expected tokens a second that
        acting on q forgoes; below 0 where the rule makes less of better chances), each [value, low, high];
        ``absolute`` (mean |change| where changed), ``most``; ``changes``, % of rounds by change -FAR .. FAR.
    """
    moved = by_p.submitted - by_q.submitted
    q, p = speeds
    figures = {
        "changed": 100.0 * (moved != 0),
        "longer": 100.0 * (moved > 0),
        "slower": 100.0 * (q < p * (1.0 - ROUNDING)),
        "faster": 100.0 * (q > p * (1.0 + ROUNDING)),
        "change": moved,
        "loss": 100.0 * (1.0 - q / p),
    }
    told: dict[str, Any] = {n: mean(trace, among, values, counts) for n, values in figures.items()}
    apart = np.abs(moved[among & (moved != 0)])
    shares = np.bincount(np.clip(moved[among], -FAR, FAR) + FAR, minlength=2 * FAR + 1) / max(among.sum(), 1)
    return {
        "rounds": int(among.sum()),
        **told,
        "absolute": float(apart.mean()) if len(apart) else 0.0,
        "most": int(apart.max(initial=0)),
        "changes": shorts(100.0 * shares),
    }


def wrong_confidences(trace: Trace, drafter: str, cost: CostModel, draws: int, seed: int) -> dict[str, Any]:
    """One drafter under one cost at batch 1.

    Returns:
        by rule ``every`` and ``visited`` as :func:`compared` (every position of the record at which a token
        can be drafted, and those at which cycles begin under the rule told q), and ``end_to_end`` = by where
        p-hat was fitted (``every`` position, or those ``visited``) % more time a token by q than by p-hat,
        [value, low, high], draws paired.
    """
    settings = LengthSettings(1, draws, seed)
    counts = draw_prompts(trace, draws, seed).counts()
    seconds = two_level_seconds(trace, Chain((drafter, trace.target)), cost, 1)
    able = draft_limit(trace, drafter, np.arange(len(trace.tokens))) > 0
    chance = chances(trace, drafter, isotonic_by_place)
    informed = with_confidence(trace, drafter, chance)
    rules = rules_of(trace)
    # A rule of a request, replayed as it is.
    by_q = replayed(trace, drafter, cost, settings, cast("dict[str, Any]", rules))
    by_p = replayed(informed, drafter, cost, settings, cast("dict[str, Any]", rules))
    found = {}
    for name, rule in rules.items():
        begun = visited(trace, drafter, rule, seconds)
        one, other = (decided(t, drafter, rule, seconds) for t in (trace, informed))
        speeds = speed(trace, drafter, cost, chance, one), speed(trace, drafter, cost, chance, other)
        there = with_confidence(trace, drafter, chances(trace, drafter, isotonic_by_place, begun))
        again = replayed(there, drafter, cost, settings, cast("dict[str, Any]", {name: rule}))
        times = {"every": by_p[name], "visited": again[name]}
        found[name] = {
            where: compared(trace, among & able, one, other, speeds, counts)
            for where, among in (("every", able), ("visited", begun))
        } | {
            "end_to_end": {
                fitted: with_interval(
                    np.asarray(percent_over(by_q[name].seconds_per_token, time.seconds_per_token))
                )
                for fitted, time in times.items()
            }
        }
    return found
