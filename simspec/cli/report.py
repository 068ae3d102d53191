"""``simspec report``: a study of one trace as a page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from simspec.cli.output import print_table, whole_numbers


def report(
    trace: Path,
    *,
    out: Path,
    cost: Annotated[list[str] | None, Parameter(consume_multiple=False)] = None,
    critic: Path | None = None,
    validation: Path | None = None,
    batches: str = "1,2,4,8,16,32,64",
    lengths: str = "1-8",
    draws: int = 100,
    seed: int = 0,
    jobs: int = 0,
) -> None:
    """Write a page with figures on chains, draft lengths and drafters of one trace.

    The folder gets index.html, rank.json, lengths.json and figures/, all at once or not at all. A
    report that is there is replaced; any other folder that is not empty is refused. The same
    command on the same inputs writes the same bytes. Intervals are 95%, over bootstrap draws of
    prompts.

    rank.json: as ``simspec rank --json``, and ``costs.<name>.leave_one_out.<model>``.
    lengths.json: ``costs.<name>.batches.<B>`` as ``simspec lengths --json``,
    ``costs.<name>.along_text[]``, ``drafters.<name>`` = {survival[], calibration}.

    Parameters
    ----------
    trace
        The trace's folder.
    out
        The report's folder.
    cost
        A number format of the trace's latency table, a cost model (a .toml file), or the folder of
        a latency profile or of a trace of the same models. May be repeated.
        Default: every number format of the table, and the profile
        calibrate/h100-llama-3.1-8b.toml if the current folder has it and it fits the trace.
    critic
        A file that ``simspec critic`` wrote, to be shown on the page.
    validation
        A file that ``simspec validate`` wrote, likewise.
    batches
        Batch sizes, such as 1,2,4 or 1-8. 1 is always among them: the bounds hold there.
    lengths
        Draft lengths of the ranked chains.
    draws
        Bootstrap draws of prompts.
    seed
        Seed of the draws.
    jobs
        Processes; 0 for one a core. The result does not depend on it.
    """
    from simspec.cli.checks import draws_and_seed, processes
    from simspec.cli.inputs import default_costs, document
    from simspec.compare.costs import cost_inputs, open_cost
    from simspec.compare.rank import RankSettings
    from simspec.errors import BadInput
    from simspec.provenance import provenance, sha256_file
    from simspec.report.folder import REPORT, check_free
    from simspec.report.page import rules_table, slug, write_report
    from simspec.report.rank_tables import picks_table
    from simspec.report.study import carry_out
    from simspec.traces.index import load_trace

    draws_and_seed(draws, seed)
    check_free(out, REPORT)
    shown = {"critic": critic, "validation": validation}
    documents = {name: document(name, path) for name, path in shown.items() if path is not None}
    loaded = load_trace(trace)
    settings = RankSettings(
        batches=tuple(sorted({1, *whole_numbers(batches, "--batches", 1, 4096)})),
        lengths=whole_numbers(lengths, "--lengths", 1, loaded.manifest.block_length),
        draws=draws,
        seed=seed,
    )
    names = cost or default_costs(loaded, _say)
    costs = [open_cost(loaded, name) for name in names]
    called = [slug(c.name) for c in costs]
    if len(set(called)) < len(called):
        raise BadInput(f"--cost gives two costs of one name: {', '.join(called)}", allowed="different names")

    command = ["report", trace.as_posix(), "--out", "DIR"]
    for name in names:
        command += ["--cost", name]
    command += ["--batches", batches, "--lengths", lengths, "--draws", str(draws), "--seed", str(seed)]
    inputs = {**loaded.inputs, **cost_inputs(names)}
    for name, path in shown.items():
        if path is not None:
            command += [f"--{name}", path.as_posix()]
            inputs[name] = sha256_file(path)
    made_by = provenance(command, inputs, seed)

    study = carry_out(loaded, costs, settings, _say, processes(jobs))
    write_report(study, out, made_by, _say, **documents)
    for found in study.costs:
        print(f"\ncost {found.cost.name}: {found.cost.label}")
        print_table(f"chains ({study.behaviour}); bound: dynamic program", *picks_table(found))
        print_table(f"length rules ({study.behaviour}); regrets in %", *rules_table(found))
    print(f"\nwrote {out / 'index.html'}")


def _say(what: str) -> None:
    print(f"report: {what}", file=sys.stderr, flush=True)
