"""``simspec libraspec``: how long a draft should be, by every rule and oracle, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from simspec.cli.output import whole_numbers


def libraspec(
    trace: Path,
    *,
    out: Path,
    cost: Annotated[list[str] | None, Parameter(consume_multiple=False)] = None,
    sampled: Path | None = None,
    tree_trace: Path | None = None,
    only: str = "",
    batches: str = "1,2,4,8,16,32,64",
    draws: int = 100,
    seed: int = 0,
    jobs: int = 0,
) -> None:
    """Carry out the studies of LibraSpec's questions and write a page of them.

    The folder gets index.html, a JSON file a study = {format, study, key, found}, and figures/, all at once
    or not at all. Finished studies are kept beside it in DIR.studies until then, and the same command
    goes on there; a study whose inputs, settings and code are those of the page that is there is taken
    from it. ``found`` has the keys that simspec.compare.libraspec.<study> says.

    Parameters
    ----------
    trace
        The trace's folder: greedy text.
    out
        The page's folder. An earlier page is replaced; any other folder that is not empty is refused.
    cost
        A number format of the trace's latency table, a cost model (a .toml file), or the folder of
        a latency profile or of a trace of the same models. May be repeated.
        Default: every number format of the table, and the profile
        calibrate/h100-llama-3.1-8b.toml if the current folder has it and it fits the trace.
    sampled
        A trace of sampled text by models that the costs price: rules at a temperature.
    tree_trace
        A trace that holds each place's alternatives, by models that the costs price: drafted trees.
    only
        Studies, comma-separated. Default: all.
    batches
        Batch sizes, such as 1,2,4 or 1-8.
    draws
        Bootstrap draws of prompts.
    seed
        Seed of the draws.
    jobs
        Processes; 0 for one a core. The result does not depend on it.
    """
    from simspec.cli.checks import draws_and_seed, processes
    from simspec.cli.inputs import default_costs
    from simspec.cli.laboratory import Extras, carry_out, open_costs, say, wanted_studies
    from simspec.compare.asked import Asked
    from simspec.compare.libraspec.others import check_models, check_sampled
    from simspec.compare.libraspec.studies import STUDIES
    from simspec.replay.sampled import load_any
    from simspec.report.folder import LIBRASPEC, check_free
    from simspec.report.libraspec.page import LABORATORY
    from simspec.traces.index import load_trace

    draws_and_seed(draws, seed)
    check_free(out, LIBRASPEC)
    wanted = {name: STUDIES[name] for name in wanted_studies(only, STUDIES)}
    folders = {"sampled": sampled, "tree_trace": tree_trace}
    given = {name: path for name, path in folders.items() if path is not None}
    asked = Asked(
        batches=whole_numbers(batches, "--batches", 1, 4096), draws=draws, seed=seed, jobs=processes(jobs)
    )
    loaded = load_trace(trace)
    others = {
        name: load_any(path, seed) if name == "sampled" else load_trace(path) for name, path in given.items()
    }
    names = cost or default_costs(loaded, lambda what: say("libraspec", what))
    costs = open_costs(loaded, names)
    # Before any work: these studies come last.
    if sampled is not None:
        check_sampled(loaded, others["sampled"], costs)
    if tree_trace is not None:
        check_models(loaded, others["tree_trace"])
    command = ["libraspec", trace.as_posix(), "--out", "DIR"]
    for name in names:
        command += ["--cost", name]
    for name, path in given.items():
        command += [f"--{name.replace('_', '-')}", path.as_posix()]
    command += ["--only", only] if only else []
    command += ["--batches", batches, "--draws", str(draws), "--seed", str(seed)]
    extras = Extras(
        {name: others.get(name) for name in folders},
        {n: {f"{n} {file}": told for file, told in other.inputs.items()} for n, other in others.items()},
    )
    carry_out(LABORATORY, wanted, loaded, names, costs, asked, out, command, extras)
