"""Length rules at a temperature beside the same rules at temperature 0, on the same prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from simspec.compare.asked import Asked, Progress
from simspec.compare.batches import draw_prompts
from simspec.compare.calibration import survival
from simspec.compare.length_runs import LengthSettings, best_drafters
from simspec.compare.lengths import TUNED, LengthStudy, RuleResult, rules_under_test, study_batches
from simspec.compare.libraspec import shares
from simspec.compare.narrowed import narrowed
from simspec.cost.models import CostModel
from simspec.errors import BadInput
from simspec.replay.sampled import IN_DISTRIBUTION, UNSAFE, acceptance_chances, in_distribution
from simspec.speculation.rule_files import as_planner, published
from simspec.traces import ragged
from simspec.traces.checked import Tables
from simspec.traces.index import Trace
from simspec.traces.reader import read_tables

BATCHES = (1, 4, 16)
LUCKS = 3  # on each text; what a rule takes is the mean over them
PLAIN = "static-0"


def study(
    trace: Trace, costs: list[CostModel], asked: Asked, say: Progress, *, sampled: Trace | None = None
) -> dict[str, Any]:
    """Rules that rejection sampling allows, replayed at a temperature and greedily.

    Args:
        sampled: a sampled trace of models that the costs price, as :func:`~simspec.replay.sampled.load_any`
            gives it; its folder is read again for further lucks. None: only ``refused`` is told.

    Returns:
        ``refused`` (names of published rules that change what is drawn), ``safe`` (names of the others),
        ``why``, ``sampled``: null, or {``name``, ``origin``, ``temperature``, ``top_p``, ``approximate``,
        ``lucks``, ``prompts`` (of each task), ``same_prompts`` (whether greedy replay is of the same ones),
        ``tokens``, ``depth`` (texts and blocks are cut to these, in both), ``chances.<drafter>`` as
        :func:`chances`, ``stand_ins.<drafter>`` as :func:`stand_ins`,
        ``survival.<greedy|sampled>.<drafter>[]`` = {value, low, high} (share of starts whose first 1, 2, ..
        drafts are all accepted; Wilson; of the first luck)}; and then ``costs.<name>`` = {``label``,
        ``batches.<B>.<greedy|sampled>`` as :func:`told`}.
    """
    rules = published(trace.manifest.block_length)
    safe = {name: as_planner(rule).sampling_safe for name, rule in rules.items()}
    found: dict[str, Any] = {
        "refused": [name for name, allowed in safe.items() if not allowed],
        "safe": [name for name, allowed in safe.items() if allowed],
        "why": UNSAFE,
        "sampled": None,
        "costs": {},
    }
    if sampled is None:
        return found
    drawn = sampled.manifest.sampling
    if drawn is None:
        raise BadInput("texts are greedy", where=sampled.folder, allowed="a trace of sampled texts")
    read = read_tables(sampled.folder)
    lucks = [in_distribution(read, asked.seed + k) for k in range(LUCKS)]
    drafters = [d for d in lucks[0].drafters if d in trace.drafters]
    greedy, same = beside(trace, lucks[0])
    depth = greedy.manifest.block_length
    lucks = [narrowed(t, np.arange(len(t.prompts)), greedy.manifest.output_tokens, depth) for t in lucks]
    sides = {"greedy": [greedy], "sampled": lucks}
    found["sampled"] = {
        "name": sampled.manifest.name,
        "origin": sampled.manifest.origin,
        "temperature": drawn.temperature,
        "top_p": drawn.top_p,
        "approximate": IN_DISTRIBUTION,
        "lucks": LUCKS,
        "prompts": lucks[0].prompts["category"].value_counts(sort=False).to_dict(),
        "same_prompts": same,
        "tokens": greedy.manifest.output_tokens,
        "depth": depth,
        "chances": chances(read, drafters, asked),
        "stand_ins": {d: stand_ins(read, lucks[0], d) for d in drafters if not trace.is_lookup(d)},
        "survival": {
            side: {d: [e.as_json() for e in survival(t[0], d, depth).estimates()] for d in drafters}
            for side, t in sides.items()
        },
    }
    for cost in costs:
        batches: dict[str, dict[str, Any]] = {}
        for side, traces in sides.items():
            say(f"{cost.name}: {side}")
            for batch, result in _studied(traces, drafters, cost, asked).items():
                batches.setdefault(str(batch), {})[side] = told(result, found["safe"])
        found["costs"][cost.name] = {"label": cost.label, "batches": batches}
    return found


def beside(trace: Trace, sampled: Trace) -> tuple[Trace, bool]:
    """The greedy record cut like the sampled one: to its prompts where it has them all, its lengths.

    Returns:
        that record, and whether its prompts are the sampled ones, in their order.
    """
    number = {h: i for i, h in enumerate(trace.prompts["prompt_hash"])}
    chosen = [number.get(h, -1) for h in sampled.prompts["prompt_hash"]]
    same = -1 not in chosen and chosen == sorted(set(chosen))
    tokens = min(trace.manifest.output_tokens, sampled.manifest.output_tokens)
    among = np.array(chosen) if same else np.arange(len(trace.prompts))
    return narrowed(trace, among, tokens, sampled.manifest.block_length), same


def chances(read: Tables, drafters: Sequence[str], asked: Asked) -> dict[str, Any]:
    """Is min(1, q(y) / p(y)) on average the overlap sum min(p, q), as it must be where y is drawn from p?

    Returns:
        by network {``text`` (mean of the first over all places), ``overlap`` (of the second, 1 - TV),
        ``difference``, ``difference_interval`` (95%, over draws of prompts)}.
    """
    pairs, target = read.frame("pairs"), read.manifest.target
    prompts = read.frame("prompts")
    draws = draw_prompts(in_distribution(read, asked.seed), asked.draws, asked.seed).counts()
    owner = np.repeat(np.arange(len(prompts)), prompts["output_tokens"])
    size = draws @ prompts["output_tokens"].to_numpy()
    found = {}
    for name, chance in acceptance_chances(read).items():
        if name not in drafters:
            continue
        both = pairs[((pairs["model_a"] == target) & (pairs["model_b"] == name))]
        if not len(both):
            both = pairs[(pairs["model_a"] == name) & (pairs["model_b"] == target)]
        overlap = 1.0 - both.sort_values(["prompt_id", "position"])["tv"].to_numpy().astype(np.float64)
        text, over = (draws @ np.bincount(owner, weights=v) / size for v in (chance, overlap))
        found[name] = {
            "text": float(text[0]),
            "overlap": float(over[0]),
            **shares.over_draws("difference", text - over),
        }
    return found


def stand_ins(read: Tables, trace: Trace, drafter: str) -> float | None:
    """Share of refusals whose recorded block begins with a token that could not have been refused, p >= q.

    There, what a rule sees past the refusal follows another token than it would. Null without refusals.
    """
    refused = np.flatnonzero((trace.drafters[drafter].matched == 0) & (trace.drafters[drafter].length > 0))
    keys = ["prompt_id", "start"]
    first = {}
    for table, column in (("blocks", "confidence"), ("verdicts", "drafted_prob")):
        rows = read.tables[table]
        told = rows.select([c for c in (*keys, "drafter", "verifier") if c in rows.column_names]).to_pandas()
        told[column] = ragged.pad(rows.column(column), 1, 0.0)[:, 0].astype(np.float64)
        told = told[told["drafter"] == drafter]
        if "verifier" in told:
            told = told[told["verifier"] == trace.target]
        flat = trace.offsets[told["prompt_id"]] + told["start"].to_numpy()
        first[column] = np.zeros(len(trace.tokens))
        first[column][flat] = told[column]
    if not len(refused):
        return None
    # The target's is kept in half precision.
    sure = first["drafted_prob"][refused] >= first["confidence"][refused] * (1 - 1e-3)
    return float(sure.mean())


def _studied(
    traces: Sequence[Trace], drafters: Sequence[str], cost: CostModel, asked: Asked
) -> dict[int, LengthStudy]:
    """The study of each batch size, seconds and lengths averaged over the lucks.

    Greedy texts are replayed by all rules, sampled ones by those that they allow. The drafter is that of
    the fastest static length, of the first luck.
    """
    sizes = [b for b in BATCHES if b in asked.batches] or list(asked.batches)
    chosen = best_drafters(traces[0], cost, sizes, asked.seed, drafters)
    settings = LengthSettings(draws=asked.draws, seed=asked.seed)
    wanted = rules_under_test(traces[0])
    if traces[0].manifest.sampling is not None:
        wanted = {n: r for n, r in wanted.items() if as_planner(r).sampling_safe}
    each = [study_batches(t, chosen, cost, settings, wanted, asked.jobs) for t in traces]
    return {batch: mean_study([one[batch] for one in each]) for batch in chosen}


def mean_study(studies: Sequence[LengthStudy]) -> LengthStudy:
    """One study of the mean seconds, draw by draw; ``tuned`` is the first one's."""

    def mean(results: Sequence[RuleResult]) -> RuleResult:
        return RuleResult(
            seconds_per_token=np.mean([r.seconds_per_token for r in results], axis=0),
            mean_length=float(np.mean([r.mean_length for r in results])),
            mean_drafted=float(np.mean([r.mean_drafted for r in results])),
            deviations={n: float(np.mean([r.deviations[n] for r in results])) for n in results[0].deviations},
        )

    first, bounds = studies[0], [s.bound for s in studies if s.bound is not None]
    return replace(
        first,
        rules={name: mean([s.rules[name] for s in studies]) for name in first.rules},
        oracles={name: mean([s.oracles[name] for s in studies]) for name in first.oracles},
        bound=np.mean(bounds, axis=0) if bounds else None,
    )


def told(study: LengthStudy, safe: Sequence[str]) -> dict[str, Any]:
    """One batch size at one temperature.

    Returns:
        ``drafter``, ``best_static`` (tuned on the same prompts), ``fastest`` (of the published rules: a
        name, none of them a static length), ``fastest_safe`` (of those that sampling allows), both picked on
        the prompts that they are scored on, ``lost`` (% that the latter takes over the former; with
        ``lost_interval``), and ``rules.<name>``, ``oracles.<name>``, ``bound`` (the dynamic
        program, null but at batch 1), each = {``speedup`` (over plain decoding), ``over_static`` (% more
        time than the best static length), ``over_tuned`` (than the static length tuned on the other half),
        ``closed`` (share of the gap from best static to bound), each with ``_interval``; ``length``,
        ``drafted`` (tokens a cycle; not of bound)}.
    """
    plain, tuned = study.rules[PLAIN].seconds_per_token, study.rules[TUNED].seconds_per_token
    static = study.rules[study.best_static].seconds_per_token

    def figures(seconds: Any, result: RuleResult | None = None) -> dict[str, Any]:
        out = {
            **shares.over_draws("speedup", plain / seconds),
            **shares.told("over_static", study.over(seconds, static)),
            **shares.told("over_tuned", study.over(seconds, tuned)),
            **shares.told("closed", study.gap_closed(seconds)),
        }
        return out if result is None else out | {"length": result.mean_length, "drafted": result.mean_drafted}

    rules = {n: r for n, r in study.rules.items() if n != TUNED and not n.startswith("static-")}
    fastest = min(rules, key=lambda n: rules[n].seconds_per_token[0])
    allowed = min((n for n in rules if n in safe), key=lambda n: rules[n].seconds_per_token[0])
    lost = study.over(rules[allowed].seconds_per_token, rules[fastest].seconds_per_token)
    return {
        "drafter": study.drafter,
        "best_static": study.best_static,
        "fastest": fastest,
        "fastest_safe": allowed,
        **shares.told("lost", lost),
        "rules": {n: figures(r.seconds_per_token, r) for n, r in study.rules.items()},
        "oracles": {n: figures(r.seconds_per_token, r) for n, r in study.oracles.items()},
        "bound": None if study.bound is None else figures(study.bound),
    }
