"""``simspec route``: what does picking the chain of every cycle gain?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from simspec.cli.output import interval, print_json, print_table, whole_numbers

if TYPE_CHECKING:
    from simspec.compare.explain import Explained


def route(
    trace: Path,
    *,
    cost: Annotated[list[str] | None, Parameter(consume_multiple=False)] = None,
    schedulers: str | None = None,
    batches: str = "1,2,4,8,16,32,64",
    lengths: str = "1-8",
    split: bool = False,
    explain: int | None = None,
    draws: int = 100,
    seed: int = 0,
    jobs: int = 0,
    json: bool = False,
) -> None:
    """Replay schedulers that pick the chain and draft length of every cycle, beside static ones.

    Candidates: those of rank. Static: target-only, smallest-drafter, static-pair, three-level,
    static-tuned (each at its best length), tuned on the other half of the prompts. Routers:
    SpecRouter's re-picking with Eq. 7 read as reach (from SimScore of the chain in use, or of
    all-pairs), reach-wide, funnel or exact (from verdicts); -learned-times takes each model's seconds
    from its forwards so far instead of the cost, whatever their width; -switch weighs what idle models
    must catch up on; polybasic, dytc (CAS-Spec), ucb and ucb-prior (a bandit). Oracles: static-oracle,
    myopic-hindsight, and the dynamic-program, which alone bounds them all: at batch 1 the fastest
    schedule itself; above, a bound that need not be reached, since it lets each request choose alone
    and charges it its least share of every forward. Batches and bootstrap draws stay within a half,
    so figures differ from rank's. Intervals are 95%, paired.

    With --json, keys: ``trace``, ``origin``, ``provenance`` and ``costs.<name>`` = {``cost``,
    ``candidates`` (how many), ``split``, ``batches``}; ``batches.<B>.<scheduler>`` = {tokens_per_second,
    speedup (over target-only), over_static_pair, regret (% more time than the dynamic
    program), each with ``_interval``; switches_per_cycle (to another chain), catching_up_share (of time,
    spent on what models missed while idle), taken[] = {chain, semantics, draft_length, share}, empty
    where there is no schedule}.
    With --explain: ``scheduler``, ``prompt``, ``cycles[]`` = {position, taken, predicted (seconds a
    token), runner_up, runner_up_predicted, alphas (along the chain), expected_tokens,
    expected_catching_up, emitted, seconds, catching_up, oracle, lost (seconds)}.

    Parameters
    ----------
    trace
        The trace's folder.
    cost
        A number format of the trace's latency table, a cost model (a .toml file), or the folder of
        a latency profile or of a trace of the same models. May be repeated.
        Default: the format that the behaviour was recorded in.
    schedulers
        Names, separated by commas; all of them by default. --explain takes one, by default funnel-switch.
    batches
        Batch sizes, such as 1,2,4 or 1-8.
    lengths
        Draft lengths.
    split
        Let every request of a batch take its own chain (routers only).
    explain
        A prompt's number: show its cycles instead, at batch 1.
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
    from simspec.compare.route_schedulers import SCHEDULERS
    from simspec.compare.routing import RouteSettings, study_routes
    from simspec.errors import BadInput, unknown_name
    from simspec.provenance import provenance
    from simspec.traces.index import load_trace

    draws_and_seed(draws, seed)
    wanted = list(SCHEDULERS) if schedulers is None else [n.strip() for n in schedulers.split(",")]
    for name in wanted:
        if name not in SCHEDULERS:
            raise unknown_name("scheduler", name, SCHEDULERS)
    loaded = load_trace(trace)
    settings = RouteSettings(
        batches=whole_numbers(batches, "--batches", 1, 4096),
        lengths=whole_numbers(lengths, "--lengths", 1, loaded.manifest.block_length),
        draws=draws,
        seed=seed,
        split=split,
    )
    names = cost or [loaded.manifest.dtype]
    command = ["route", trace.as_posix()]
    for name in names:
        command += ["--cost", name]
    command += ["--lengths", lengths, "--seed", str(seed)]
    document: dict[str, Any] = {"trace": loaded.manifest.name, "origin": loaded.manifest.origin}
    inputs = {**loaded.inputs, **cost_inputs(names)}
    if explain is not None:
        from simspec.compare.explain import explain as explain_prompt

        one = "funnel-switch" if schedulers is None else wanted[0]
        if len(names) > 1 or (schedulers is not None and len(wanted) > 1):
            raise BadInput("--explain follows one scheduler under one cost", allowed="one of each")
        cycles = explain_prompt(loaded, open_cost(loaded, names[0]), settings, explain, one)
        if not json:
            _show_cycles(
                cycles, f"prompt {explain}, {one}, cost {names[0]} ({loaded.manifest.origin} behaviour)"
            )
            return
        command += ["--schedulers", one, "--explain", str(explain), "--json"]
        document["provenance"] = provenance(command, inputs, seed)
        print_json({**document, "scheduler": one, "prompt": explain, "cycles": [c.as_json() for c in cycles]})
        return
    studies = [
        study_routes(
            loaded,
            open_cost(loaded, name),
            settings,
            schedulers={n: SCHEDULERS[n] for n in wanted},
            jobs=processes(jobs),
            progress=lambda line: print(line, file=sys.stderr),
        )
        for name in names
    ]
    if json:
        command += ["--schedulers", ",".join(wanted), "--batches", batches, "--draws", str(draws)]
        command += [*(["--split"] if split else []), "--json"]
        document["provenance"] = provenance(command, inputs, seed)
        print_json({**document, "costs": {s.cost.name: s.as_json() for s in studies}})
        return
    for study in studies:
        print(f"\ncost {study.cost.name}: {study.cost.label}")
        for batch, scores in study.as_json()["batches"].items():
            _show_batch(batch, scores, loaded.manifest.origin)


def _show_batch(batch: str, scores: dict[str, Any], origin: str) -> None:
    from simspec.compare.explain import told
    from simspec.compare.route_schedulers import ORACLES

    rows = []
    for name, found in scores.items():
        most = found["taken"][0] if found["taken"] else None  # above batch 1 the bound has no schedule
        rows.append(
            [
                f"{name} (oracle)" if name in ORACLES else name,
                f"{found['tokens_per_second']:.4g}",
                *(
                    text
                    for key, digits in (("speedup", 3), ("over_static_pair", 3), ("regret", 1))
                    for text in (
                        "-" if found[key] is None else f"{found[key]:.{digits}f}",
                        interval(found[f"{key}_interval"], digits),
                    )
                ),
                f"{100 * found['switches_per_cycle']:.0f}",
                f"{100 * found['catching_up_share']:.1f}",
                "-" if most is None else f"{told(most)} {100 * most['share']:.0f}%",
            ]
        )
    print_table(
        f"batch {batch} ({origin} behaviour); regret over the dynamic program"
        f"{'' if batch == '1' else ' (a bound that need not be reached)'}, %",
        [
            "scheduler",
            "tokens/s",
            "speedup",
            "95%",
            "v. pair",
            "95%",
            "regret",
            "95%",
            "switch %",
            "late %",
            "most",
        ],
        rows,
    )


def _show_cycles(cycles: list[Explained], title: str) -> None:
    from simspec.compare.explain import told

    def thousandths(value: float | None) -> str:
        return "-" if value is None else f"{1000 * value:.2f}"

    rows = [
        [
            c.position,
            told(c.taken),
            thousandths(c.predicted),
            " ".join(f"{a:.2f}" for a in c.alphas) or "-",
            "-" if c.runner_up is None else f"{told(c.runner_up)} {thousandths(c.runner_up_predicted)}",
            c.emitted,
            thousandths(c.seconds),
            thousandths(c.catching_up),
            told(c.oracle),
            thousandths(c.lost),
        ]
        for c in cycles
    ]
    print_table(
        f"{title}; ms, predicted ms a token",
        ["at", "taken", "predicted", "alphas", "runner-up", "tokens", "took", "late", "oracle", "lost"],
        rows,
    )
    seconds, lost = sum(c.seconds for c in cycles), sum(c.lost for c in cycles)
    print(f"{1000 * seconds:.1f} ms in {len(cycles)} cycles; the choices lost {1000 * lost:.1f} ms of them")
