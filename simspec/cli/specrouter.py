"""``simspec specrouter``: SpecRouter's cost model tried in every way, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from simspec.cli.output import whole_numbers


def specrouter(
    trace: Path,
    *,
    out: Path,
    cost: Annotated[list[str] | None, Parameter(consume_multiple=False)] = None,
    validation: Path | None = None,
    critic: Path | None = None,
    masks: Path | None = None,
    only: str = "",
    batches: str = "1,2,4,8,16,32,64",
    lengths: str = "1-8",
    draws: int = 100,
    seed: int = 0,
    jobs: int = 0,
) -> None:
    """Carry out the studies of SpecRouter's cost model and write a page of them.

    The folder gets index.html, a JSON file a study = {format, study, key, found}, and figures/, all at once
    or not at all. Finished studies are kept beside it in DIR.studies until then, and the same command
    goes on there; a study whose inputs, settings and code are those of the page that is there is taken
    from it. ``found`` has the keys that simspec.compare.specrouter.<study> says.

    Parameters
    ----------
    trace
        The trace's folder.
    out
        The page's folder. An earlier page is replaced; any other folder that is not empty is refused.
    cost
        A number format of the trace's latency table, a cost model (a .toml file), or the folder of
        a latency profile or of a trace of the same models. May be repeated.
        Default: every number format of the table, and the profile
        calibrate/h100-llama-3.1-8b.toml if the current folder has it and it fits the trace.
    validation
        A file that ``simspec validate`` wrote: predictions are held against its measured times.
    critic
        A file that ``simspec critic`` wrote: what an intermediate verifier cost.
    masks
        A file that ``simspec masks`` wrote: what moving rejected cache entries costs.
    only
        Studies, comma-separated. Default: all.
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
    """
    from simspec.cli.checks import draws_and_seed, processes
    from simspec.cli.inputs import default_costs, document
    from simspec.cli.laboratory import Extras, carry_out, open_costs, say, wanted_studies
    from simspec.compare.asked import Asked
    from simspec.compare.specrouter.studies import STUDIES
    from simspec.provenance import sha256_file
    from simspec.report.folder import SPECROUTER, check_free
    from simspec.report.specrouter.page import LABORATORY
    from simspec.traces.index import load_trace

    draws_and_seed(draws, seed)
    check_free(out, SPECROUTER)
    wanted = {name: STUDIES[name] for name in wanted_studies(only, STUDIES)}
    files = {"validation": validation, "critic": critic, "masks": masks}
    given = {name: path for name, path in files.items() if path is not None}
    documents = {name: document(name, path) for name, path in given.items()}
    loaded = load_trace(trace)
    names = cost or default_costs(loaded, lambda what: say("specrouter", what))
    costs = open_costs(loaded, names)
    asked = Asked(
        batches=whole_numbers(batches, "--batches", 1, 4096),
        lengths=whole_numbers(lengths, "--lengths", 1, loaded.manifest.block_length),
        draws=draws,
        seed=seed,
        jobs=processes(jobs),
    )
    command = ["specrouter", trace.as_posix(), "--out", "DIR"]
    for name in names:
        command += ["--cost", name]
    command += ["--only", only] if only else []
    command += ["--batches", batches, "--lengths", lengths, "--draws", str(draws), "--seed", str(seed)]
    for name, path in given.items():
        command += [f"--{name}", str(path)]
    hashes = {name: {name: sha256_file(path)} for name, path in given.items()}
    extras = Extras({name: documents.get(name) for name in files}, hashes)
    carry_out(LABORATORY, wanted, loaded, names, costs, asked, out, command, extras)
