"""``simspec rank``: which chain is fastest, and does the cost model know?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from simspec.cli.output import interval, print_json, print_table, whole_numbers


def rank(
    trace: Path,
    *,
    cost: Annotated[list[str] | None, Parameter(consume_multiple=False)] = None,
    batches: str = "1,2,4,8,16,32,64",
    lengths: str = "1-8",
    draws: int = 100,
    seed: int = 0,
    jobs: int = 0,
    json: bool = False,
) -> None:
    """Rank chains by replay and by Eq. 7's readings.

    Candidates: the target alone, every pair, every ordered triple under both funnels, at each draft
    length. Predictions: variants ``reach``, ``reach-wide`` and ``funnel``, with acceptance from
    SimScore or as realised. Intervals are 95%, over bootstrap draws of prompts.

    With --json, keys: ``trace``, ``origin``, ``provenance`` and ``costs.<name>`` = {``cost``,
    ``lower_bound_seconds_per_token`` (dynamic program, batch 1), ``alphas.<source>``, ``batches``};
    with a single cost also ``batches`` itself. ``batches.<B>.chains[]`` = {chain, draft_length,
    semantics, replay_seconds_per_token, replay_interval, speedup, speedup_interval, predicted
    (seconds a token by ``<variant>/<alpha source>``)}; ``batches.<B>.best`` = index of the fastest;
    ``batches.<B>.scores.<variant>/<alpha source>`` = {kendall_tau, kendall_tau_interval, top1,
    top1_share_of_draws, regret (% over the fastest), regret_interval, pick (index)}.

    Parameters
    ----------
    trace
        The trace's folder.
    cost
        A number format of the trace's latency table, a cost model (a .toml file), or the folder of
        a latency profile. May be repeated.
        Default: the format that the behaviour was recorded in.
    batches
        Batch sizes, such as 1,2,4 or 1-8.
    lengths
        Draft lengths.
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
    from simspec.compare.rank import RankSettings
    from simspec.compare.rank import rank as carry_out
    from simspec.provenance import provenance
    from simspec.traces.index import load_trace

    draws_and_seed(draws, seed)
    loaded = load_trace(trace)
    settings = RankSettings(
        batches=whole_numbers(batches, "--batches", 1, 4096),
        lengths=whole_numbers(lengths, "--lengths", 1, loaded.manifest.block_length),
        draws=draws,
        seed=seed,
    )
    names = cost or [loaded.manifest.dtype]
    rankings = carry_out(
        loaded,
        [open_cost(loaded, name) for name in names],
        settings,
        jobs=processes(jobs),
        progress=lambda line: print(line, file=sys.stderr),
    )
    if json:
        command = ["rank", trace.as_posix()]
        for name in names:
            command += ["--cost", name]
        command += ["--batches", batches, "--lengths", lengths]
        command += ["--draws", str(draws), "--seed", str(seed), "--json"]
        document = {
            "trace": loaded.manifest.name,
            "origin": loaded.manifest.origin,
            "provenance": provenance(command, {**loaded.inputs, **cost_inputs(names)}, seed),
            "costs": {r.cost.name: r.as_json() for r in rankings},
        }
        if len(rankings) == 1:
            document["batches"] = rankings[0].as_json()["batches"]
        print_json(document)
        return
    for ranking in rankings:
        found = ranking.as_json()
        print(f"\ncost {ranking.cost.name}: {ranking.cost.label}")
        rows = []
        for batch, entry in found["batches"].items():
            best = entry["chains"][entry["best"]]
            rows.append([batch, _name(best), f"{best['speedup']:.3f}", interval(best["speedup_interval"], 3)])
        print_table(
            f"fastest chain by replay ({loaded.manifest.origin} behaviour)",
            ["batch", "chain x length", "speedup", "95%"],
            rows,
        )
        rows = []
        for batch, entry in found["batches"].items():
            for name, score in entry["scores"].items():
                pick = entry["chains"][score["pick"]]
                rows.append(
                    [
                        batch,
                        name,
                        f"{score['kendall_tau']:.2f}",
                        "yes" if score["top1"] else "no",
                        f"{score['regret']:.1f}",
                        interval(score["regret_interval"], 1),
                        _name(pick),
                    ]
                )
        print_table(
            "what Eq. 7's readings pick",
            ["batch", "variant/alpha", "tau", "top-1", "regret %", "95%", "pick"],
            rows,
        )


def _name(chain: dict[str, object]) -> str:
    levels = chain["chain"]
    assert isinstance(levels, list)
    text = " > ".join(levels)
    if len(levels) > 1:
        text += f" x {chain['draft_length']}"
    return f"{text} ({chain['semantics']})" if chain["semantics"] else text
