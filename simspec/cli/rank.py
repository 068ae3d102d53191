"""``simspec rank``: which chain is fastest, and does the cost model know?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from simspec.cli.output import interval, print_json, print_table, whole_numbers

if TYPE_CHECKING:
    from simspec.compare.rankings import Ranking
    from simspec.traces.index import Trace


def rank(
    trace: Path,
    *,
    cost: Annotated[list[str] | None, Parameter(consume_multiple=False)] = None,
    batches: str = "1,2,4,8,16,32,64",
    lengths: str = "1-8",
    models: str = "",
    deepest: int = 3,
    variants: str = "",
    alphas: str = "",
    ema_weight: float = 0.1,
    split: bool = False,
    by: Literal["all", "task"] = "all",
    draws: int = 100,
    seed: int = 0,
    jobs: int = 0,
    json: bool = False,
) -> None:
    """Rank chains by replay and by the variants of Eq. 7.

    Candidates: the target alone, every pair, every ordered triple under both funnels, and every deeper chain
    that is asked for under funnel-truncate, at each draft length. Predictions are called variant/source.
    Variants of Eq. 7 (simspec.theory.variants): reach, reach-all, reach-always, reach-direct, reach-wide,
    funnel, nested, polybasic, product, exact (under independence), exact-by-row (and rows of a batch
    unlike). They take acceptance from: simscore, simscore-ema, logistic, isotonic, constant,
    greedy-correct, realised (simspec.compare.estimates.sources). Exact on the trace: joint, joint-by-row and
    joint-drained (rows that finish leave), from the cycles that a replay visits, or from anywhere in the
    texts. Intervals are 95%, over bootstrap draws of prompts. Without --split, predictions are made from the
    prompts that they are scored on.

    With --json, keys: ``trace``, ``origin``, ``provenance``, ``acceptance`` and ``costs.<name>`` =
    {``cost``, ``prompts``, ``lower_bound_seconds_per_token`` (dynamic program, batch 1),
    ``alphas.<source>``, ``batches``, ``summary``}; with --split or --by task instead ``parts.<name>``
    with all of these but ``summary``, and ``summary.<task>``; with a single cost and part also ``batches``
    itself. ``batches.<B>`` = {``best`` (index of the fastest), ``lead`` (% that the second is slower),
    ``lead_interval``, ``chains[]`` = {chain, draft_length, semantics, replay_seconds_per_token,
    replay_interval, speedup, speedup_interval}, ``predicted.<variant>/<source>[]`` (seconds a token, in the
    order of the chains; null where infinite), ``scores.<variant>/<source>`` = {kendall_tau,
    kendall_tau_interval, top1, top1_share_of_draws, regret (% over the fastest), regret_interval,
    median_abs_error (|predicted / replayed - 1| over chains), pick (index)}}.
    ``summary``, over batch sizes and both halves, by variant/source = {median_regret (%),
    median_regret_interval, mean_regret, worst_regret, mean_kendall_tau, top1, median_abs_error, of, clear
    (batch sizes where the two fastest differ by more than their interval), clear_top1}.
    ``acceptance.<part>[]`` = {source, by (task, position in the block, time), cell, tried,
    accepted_share, bias, absolute}: estimates held against the drafts of the scored prompts.

    Parameters
    ----------
    trace
        The trace's folder.
    cost
        A number format of the trace's latency table, a cost model (a .toml file), or the folder of
        a latency profile or of a trace of the same models. May be repeated.
        Default: the format that the behaviour was recorded in.
    batches
        Batch sizes, such as 1,2,4 or 1-8.
    lengths
        Draft lengths.
    models
        The pool, comma-separated; the target is in it anyhow. Default: all of the trace.
    deepest
        Levels of the longest chains.
    variants
        Variants, comma-separated. Default: all.
    alphas
        Sources of acceptance, comma-separated. Default: all.
    ema_weight
        Weight of the latest request in simscore-ema.
    split
        Predict from one half of the prompts and score on the other, both ways.
    by
        "task": each category of prompts by itself as well.
    draws
        Bootstrap draws of prompts.
    seed
        Seed of the draws.
    jobs
        Processes; 0 for one a core. The result does not depend on it.
    json
        Print JSON.
    """
    from simspec.cli.checks import draws_and_seed, processes
    from simspec.compare.costs import cost_inputs, open_cost
    from simspec.compare.estimates.sources import SOURCES
    from simspec.compare.rank import VARIANTS, RankSettings
    from simspec.compare.rank import rank as carry_out
    from simspec.errors import BadInput
    from simspec.provenance import provenance
    from simspec.traces.index import load_trace

    draws_and_seed(draws, seed)
    if not 2 <= deepest <= 5:
        raise BadInput(f"--deepest {deepest}", allowed="2 to 5")
    if not 0.0 < ema_weight <= 1.0:
        raise BadInput(f"--ema-weight {ema_weight}", allowed="above 0, at most 1")
    loaded = load_trace(trace)
    settings = RankSettings(
        batches=whole_numbers(batches, "--batches", 1, 4096),
        lengths=whole_numbers(lengths, "--lengths", 1, loaded.manifest.block_length),
        deepest=deepest,
        draws=draws,
        seed=seed,
        models=tuple(models.split(",")) if models else (),
        variants=tuple(variants.split(",")) if variants else VARIANTS,
        sources=tuple(alphas.split(",")) if alphas else SOURCES,
        split=split,
        by_task=by == "task",
        ema_weight=ema_weight,
    )
    names = cost or [loaded.manifest.dtype]
    rankings = carry_out(
        loaded,
        [open_cost(loaded, name) for name in names],
        settings,
        jobs=processes(jobs),
        progress=lambda line: print(line, file=sys.stderr),
    )
    by_cost = [
        [r for r in rankings if r.cost.name == name] for name in dict.fromkeys(r.cost.name for r in rankings)
    ]
    if not json:
        for mine in by_cost:
            _show(mine, loaded.manifest.origin)
        return
    command = ["rank", trace.as_posix()]
    for name in names:
        command += ["--cost", name]
    command += ["--batches", batches, "--lengths", lengths, "--deepest", str(deepest)]
    for option, value in (("--models", models), ("--variants", variants), ("--alphas", alphas)):
        command += [option, value] if value else []
    command += ["--ema-weight", str(ema_weight), *(["--split"] if split else []), "--by", by]
    command += ["--draws", str(draws), "--seed", str(seed), "--json"]
    costs = {mine[0].cost.name: _document(mine) for mine in by_cost}
    document = {
        "trace": loaded.manifest.name,
        "origin": loaded.manifest.origin,
        "provenance": provenance(command, {**loaded.inputs, **cost_inputs(names)}, seed),
        "acceptance": _acceptance(loaded, by_cost[0], max(settings.lengths)),
        "costs": costs,
    }
    if len(rankings) == 1:
        document["batches"] = costs[rankings[0].cost.name]["batches"]
    print_json(document)


def _document(rankings: list[Ranking]) -> dict[str, Any]:
    """One cost's parts."""
    from simspec.compare.rankings import summary

    tasks = dict.fromkeys(r.part.task for r in rankings)
    if len(rankings) == 1:
        return {**rankings[0].as_json(), "summary": summary(rankings)}
    return {
        "parts": {r.part.name: r.as_json() for r in rankings},
        "summary": {t: summary([r for r in rankings if r.part.task == t]) for t in tasks},
    }


def _acceptance(trace: Trace, rankings: list[Ranking], longest: int) -> dict[str, Any]:
    from simspec.compare.estimates.errors import as_json, errors

    return {r.part.name: as_json(errors(trace, r.alphas, r.part.score.prompts[0], longest)) for r in rankings}


def _show(rankings: list[Ranking], origin: str) -> None:
    """Tables of one cost."""
    from simspec.compare.rankings import summary

    print(f"\ncost {rankings[0].cost.name}: {rankings[0].cost.label}")
    for ranking in rankings:
        found = ranking.as_json()
        rows = []
        for batch, entry in found["batches"].items():
            best = entry["chains"][entry["best"]]
            lead = f"{entry['lead']:.1f}", interval(entry["lead_interval"], 1)
            gain = f"{best['speedup']:.3f}", interval(best["speedup_interval"], 3)
            rows.append([batch, _name(best), *gain, *lead])
        print_table(
            f"fastest chain by replay ({origin} behaviour), {ranking.part.name}",
            ["batch", "chain x length", "speedup", "95%", "second is slower by %", "95%"],
            rows,
        )
    for task in dict.fromkeys(r.part.task for r in rankings):
        mine = [r for r in rankings if r.part.task == task]
        scores = summary(mine)
        rows = []
        for name in sorted(scores, key=lambda n: (scores[n]["median_regret"], scores[n]["mean_regret"])):
            s = scores[name]
            tau = "-" if s["mean_kendall_tau"] is None else f"{s['mean_kendall_tau']:.2f}"
            rows.append(
                [
                    name,
                    f"{s['median_regret']:.1f}",
                    interval(s["median_regret_interval"], 1),
                    f"{s['mean_regret']:.1f}",
                    f"{s['worst_regret']:.1f}",
                    tau,
                    f"{s['top1']} of {s['of']}",
                    f"{s['clear_top1']} of {s['clear']}",
                    f"{100 * s['median_abs_error']:.0f}",
                ]
            )
        how = (
            "one half predicts the other"
            if mine[0].part.fold
            else "predicted from the prompts it is scored on"
        )
        print_table(
            f"what variants of Eq. 7 pick, over batch sizes: {task}, {how}",
            [
                "variant/source",
                "regret %: median",
                "95%",
                "mean",
                "worst",
                "tau",
                "top-1",
                "where clear",
                "error %",
            ],
            rows,
        )


def _name(chain: dict[str, object]) -> str:
    levels = chain["chain"]
    assert isinstance(levels, list)
    text = " > ".join(levels)
    if len(levels) > 1:
        text += f" x {chain['draft_length']}"
    return f"{text} ({chain['semantics']})" if chain["semantics"] else text
