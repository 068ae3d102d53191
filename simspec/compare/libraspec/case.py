"""The paper's case study again: how far chosen lengths are from an oracle's, and whether that tells speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from simspec.compare.along import Followed, follow
from simspec.compare.asked import Asked, Progress
from simspec.compare.batches import draw_prompts
from simspec.compare.length_runs import LengthSettings, best_drafters
from simspec.compare.lengths import ORACLES, OURS, best_drafter, rules_under_test
from simspec.compare.libraspec.shares import over_draws
from simspec.cost.models import CostModel
from simspec.metrics import kendall_tau, percent_over
from simspec.oracle.lengths import hindsight_rates, known_tokens, least
from simspec.replay.sampled import usable
from simspec.speculation.chains import Chain
from simspec.speculation.rule_files import Rule
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]

# arXiv 2608.08721: mean absolute deviation from its oracle, whose objective it does not state.
PUBLISHED = {"libraspec": 2.78, "static": 9.48}
PRINTED, EXACT = "libraspec", "exact-marginal"
TEXTS = 4
PROGRAM, ACCEPTED = "dynamic-program", "accepted-run"
HINDSIGHT = "myopic-hindsight"
# Lengths whose tokens a second in hindsight are within these shares of the best one's are its ties; None:
# those of most tokens, whatever they cost.
SLACKS = (0.0, 0.01, 0.05, None)
_ROUNDING = 1e-12
READINGS = ("nearest", "shortest", "longest", "farthest")


def study(
    trace: Trace,
    costs: list[CostModel],
    asked: Asked,
    say: Progress,
    *,
    rules: Mapping[str, Rule] | None = None,
) -> dict[str, Any]:
    """Lengths along the first prompt of each category, and deviations over all prompts, at batch 1.

    The drafter is the network whose best static length is fastest, if drafting with it beats not drafting,
    and otherwise the fastest of all. All prompts are one stream in a shuffled order, so a rule that learns
    has seen those before. Oracles are those of :mod:`simspec.compare.lengths`, the dynamic program, and the
    run that is going to be accepted (most tokens, then fewest drafts). Intervals are over draws of prompts
    from that one stream.

    Args:
        rules: static lengths and the shown rules among them; None for all that come with the package.

    Returns:
        ``published`` (the paper's deviations), ``texts[]`` = {prompt, category, source, source_id, tokens};
        ``costs.<name>`` = {``label``, ``drafter``, ``network`` (whether it is one), ``static`` (best static),
        ``shown[]`` (rules), ``oracles.<oracle>`` = {``mean_length`` (over all positions), ``ratio``
        (deviation of the best static length over LibraSpec's), ``tau`` (Kendall's, deviation against seconds
        a token over all rules), ``least`` (rule of least deviation), ``least_over`` (% that it is slower than
        the fastest rule)}; ``rules.<rule>`` = {``seconds_per_token``, ``mean_length``, ``mad.<oracle>``};
        ``along[]``, one a text, = {``<rule>`` = {position[], submitted[], accepted[], ``wanted.<oracle>[]``,
        ``mad.<oracle>``}}; ``four.<rule>.<oracle>`` (deviation over the four texts); ``ties[]`` = {``slack``
        (null: all lengths of most tokens, whatever they cost), ``tied`` (share of all positions with
        several), ``span`` (their mean longest less shortest), ``<rule>.<reading>`` (deviation from the
        nearest, shortest, longest or farthest)}; ``afresh`` = {seconds_per_token, over_stream (%),
        ``mad.<oracle>``} (ours knowing nothing before each text)}. Figures with draws have ``_interval``.
    """
    first = trace.prompts.drop_duplicates("category").index.to_numpy()[:TEXTS]
    every = usable(trace, rules_under_test(trace)) if rules is None else dict(rules)
    found = {}
    for cost in costs:
        say(f"case study under {cost.name}")
        found[cost.name] = _case(trace, cost, asked, every, [int(p) for p in first])
    names = ("category", "source", "source_id")
    texts = [
        {"prompt": int(p), "tokens": int(trace.prompts["output_tokens"].iloc[p])}
        | {name: str(trace.prompts[name].iloc[p]) for name in names}
        for p in first
    ]
    return {"published": PUBLISHED, "texts": texts, "costs": found}


@dataclass(frozen=True)
class _Told:
    """What a rule did by prompt and draw.

    Attributes:
        cycles: how many each prompt took, (P,).
        counts: how often each draw has each prompt, row 0 once each, (draws + 1, P).
    """

    went: Followed
    owner: Ints
    cycles: Floats
    counts: Floats

    def mean(self, values: NDArray[Any]) -> Floats:
        """Of one value a cycle, (draws + 1,)."""
        sums = np.bincount(self.owner, weights=values, minlength=len(self.cycles))
        return np.asarray((self.counts @ sums) / (self.counts @ self.cycles))

    def deviation(self, lengths: Ints) -> Floats:
        return self.mean(np.abs(self.went.submitted - lengths[self.went.flat]))

    def per_token(self, tokens: Floats) -> Floats:
        return np.asarray((self.counts @ self.went.seconds) / (self.counts @ tokens))


def _case(
    trace: Trace, cost: CostModel, asked: Asked, rules: Mapping[str, Rule], texts: list[int]
) -> dict[str, Any]:
    drafter, network = chosen_drafter(trace, cost, asked.seed)
    chain = Chain((drafter, trace.target))
    oracles = {name: oracle(trace, chain, cost, 1).lengths for name, oracle in ORACLES.items()}
    oracles[PROGRAM] = least(trace, chain, cost).lengths
    rates, limit = hindsight_rates(trace, chain, cost, 1)
    emitted, _ = known_tokens(trace, chain)
    oracles[ACCEPTED] = np.where(inside(limit, emitted), emitted, 0.0).argmax(axis=1)
    drawn = draw_prompts(trace, asked.draws, asked.seed)
    order, counts = [int(p) for p in drawn.prompts[0]], drawn.counts()
    counts[0] = 1.0
    work = [(rule, False) for rule in rules.values()] + [(rules[OURS], True)]
    ran = joblib.Parallel(n_jobs=asked.jobs, batch_size=1)(
        joblib.delayed(follow)(trace, drafter, cost, rule, order, afresh=afresh) for rule, afresh in work
    )
    told = []
    for went in ran:
        owner = trace.prompt[went.flat]
        cycles = np.bincount(owner, minlength=len(trace.prompts)).astype(np.float64)
        told.append(_Told(went, owner, cycles, counts))
    *whole, afresh = told
    tokens = trace.prompts["output_tokens"].to_numpy().astype(np.float64)
    by_rule = dict(zip(rules, whole, strict=True))
    seconds = {name: t.per_token(tokens) for name, t in by_rule.items()}
    static = min((n for n in rules if n.startswith("static-")), key=lambda n: float(seconds[n][0]))
    mads = {o: {name: t.deviation(lengths) for name, t in by_rule.items()} for o, lengths in oracles.items()}
    shown = [PRINTED, static, OURS, EXACT]
    return {
        "label": cost.label,
        "drafter": drafter,
        "network": network,
        "static": static,
        "shown": shown,
        "oracles": {
            o: {"mean_length": float(lengths.mean()), **_ranked(mads[o], seconds, static)}
            for o, lengths in oracles.items()
        },
        "rules": {
            name: over_draws("seconds_per_token", seconds[name])
            | over_draws("mean_length", t.mean(t.went.submitted))
            | {"mad": _figures({o: mads[o][name] for o in oracles})}
            for name, t in by_rule.items()
        },
        "along": [{name: _along(trace, by_rule[name], text, oracles) for name in shown} for text in texts],
        "four": {name: _over_texts(by_rule[name], texts, oracles) for name in shown},
        "ties": [
            _ties(emitted if slack is None else rates, limit, slack, {name: by_rule[name] for name in shown})
            for slack in SLACKS
        ],
        "afresh": over_draws("seconds_per_token", afresh.per_token(tokens))
        | over_draws("over_stream", np.asarray(percent_over(afresh.per_token(tokens), seconds[OURS])))
        | {"mad": _figures({o: afresh.deviation(lengths) for o, lengths in oracles.items()})},
    }


def chosen_drafter(trace: Trace, cost: CostModel, seed: int) -> tuple[str, bool]:
    """The drafter as :func:`study` says, and whether it is a network."""
    networks = [d for d in trace.drafters if d in cost.models and not trace.is_lookup(d)]
    if networks:
        drafter = best_drafter(trace, cost, LengthSettings(draws=0, seed=seed), networks)
        statics = {n: r for n, r in rules_under_test(trace).items() if n.startswith("static-")}
        everyone = range(len(trace.prompts))
        took = {
            name: follow(trace, drafter, cost, rule, everyone).seconds.sum() for name, rule in statics.items()
        }
        if min(took, key=took.__getitem__) != "static-0":
            return drafter, True
    best = best_drafters(trace, cost, [1], seed)[1]
    return best, not trace.is_lookup(best)


def _ranked(mads: Mapping[str, Floats], seconds: Mapping[str, Floats], static: str) -> dict[str, Any]:
    """Whether less deviation is less time, over all rules; see :func:`study`."""
    off, took = np.stack([mads[n] for n in seconds]), np.stack(list(seconds.values()))
    tau = np.array([kendall_tau(a, b) for a, b in zip(off.T, took.T, strict=True)])
    names, nearest = list(seconds), int(off[:, 0].argmin())
    ratio = np.divide(mads[static], mads[PRINTED], out=np.full(len(tau), np.nan), where=mads[PRINTED] > 0)
    return (
        over_draws("ratio", ratio)
        | over_draws("tau", tau)
        | {
            "least": names[nearest],
            "least_over": float(percent_over(took[nearest, 0], took[:, 0].min())),
        }
    )


def _along(trace: Trace, told: _Told, text: int, oracles: Mapping[str, Ints]) -> dict[str, Any]:
    mine = told.owner == text
    flat, submitted = told.went.flat[mine], told.went.submitted[mine]
    return {
        "position": trace.position[flat].tolist(),
        "submitted": submitted.tolist(),
        "accepted": told.went.accepted[mine].tolist(),
        "wanted": {o: lengths[flat].tolist() for o, lengths in oracles.items()},
        "mad": {o: float(np.abs(submitted - lengths[flat]).mean()) for o, lengths in oracles.items()},
    }


def _over_texts(told: _Told, texts: list[int], oracles: Mapping[str, Ints]) -> dict[str, float]:
    mine = np.isin(told.owner, texts)
    flat, submitted = told.went.flat[mine], told.went.submitted[mine]
    return {o: float(np.abs(submitted - lengths[flat]).mean()) for o, lengths in oracles.items()}


def inside(limit: Ints, values: Floats) -> NDArray[np.bool_]:
    """Which lengths can be drafted, shape as ``values``, (N, D + 1)."""
    return np.asarray(np.arange(values.shape[1]) <= limit[:, None])


def _ties(worth: Floats, limit: Ints, slack: float | None, shown: Mapping[str, _Told]) -> dict[str, Any]:
    """Deviations by which of the lengths that hindsight finds as good is meant; see :func:`study`."""
    n, allowed = np.arange(worth.shape[1]), inside(limit, worth)
    best = np.where(allowed, worth, -np.inf).max(axis=1, keepdims=True)
    tied = allowed & (worth >= best * (1.0 - (slack or 0.0) - _ROUNDING))
    shortest, longest = tied.argmax(axis=1), n[-1] - tied[:, ::-1].argmax(axis=1)
    out: dict[str, Any] = {
        "slack": slack,
        "tied": float((tied.sum(axis=1) > 1).mean()),
        "span": float((longest - shortest).mean()),
    }
    for name, told in shown.items():
        flat, submitted = told.went.flat, told.went.submitted
        off = np.abs(submitted[:, None] - n[None])
        each = (
            np.where(tied[flat], off, n[-1] + 1).min(axis=1),
            np.abs(submitted - shortest[flat]),
            np.abs(submitted - longest[flat]),
            np.where(tied[flat], off, -1).max(axis=1),
        )
        out[name] = _figures({r: told.mean(values) for r, values in zip(READINGS, each, strict=True)})
    return out


def _figures(drawn: Mapping[str, Floats]) -> dict[str, Any]:
    return {key: value for name, values in drawn.items() for key, value in over_draws(name, values).items()}
