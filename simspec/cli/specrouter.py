"""``simspec specrouter``: SpecRouter's cost model tried in every way, on one page."""

from __future__ import annotations

import sys
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
        a latency profile. May be repeated.
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
    from simspec.compare.costs import cost_inputs, open_cost
    from simspec.compare.specrouter.asked import Asked
    from simspec.compare.specrouter.kept import Kept, key_of
    from simspec.compare.specrouter.studies import STUDIES
    from simspec.errors import BadInput, unknown_name
    from simspec.provenance import code_hash, provenance, sha256_file
    from simspec.report.folder import SPECROUTER, check_free
    from simspec.report.specrouter.page import write_specrouter
    from simspec.traces.index import load_trace

    draws_and_seed(draws, seed)
    check_free(out, SPECROUTER)
    wanted = only.split(",") if only else list(STUDIES)
    for name in wanted:
        if name not in STUDIES:
            raise unknown_name("study", name, STUDIES)
    files = {"validation": validation, "critic": critic, "masks": masks}
    documents = {name: None if path is None else document(name, path) for name, path in files.items()}
    loaded = load_trace(trace)
    names = cost or default_costs(loaded, _say)
    costs = [open_cost(loaded, name) for name in names]
    called = [c.name for c in costs]
    if len(set(called)) < len(called):
        raise BadInput(f"--cost gives two costs of one name: {', '.join(called)}", allowed="different names")
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
    inputs = {**loaded.inputs, **cost_inputs(names)}
    hashes = {name: sha256_file(path) for name, path in files.items() if path is not None}
    for name in hashes:
        command += [f"--{name}", str(files[name])]

    kept, code, found = Kept(out.with_name(f"{out.name}.studies"), out), code_hash(), {}
    for name in (n for n in STUDIES if n in wanted):
        study = STUDIES[name]
        own = {n: hashes[n] for n in study.takes if n in hashes}
        key = key_of(name, asked, {**inputs, **own, "costs": " ".join(names)}, code)
        known = kept.find(name, key)
        _say(f"{name}: {'carried out before' if known else 'begins'}")
        if known is None:
            given = {n: documents[n] for n in study.takes}
            known = kept.keep(name, key, study.run(loaded, costs, asked, _say, **given))
        found[name] = known
    head = {
        "name": loaded.manifest.name,
        "origin": loaded.manifest.origin,
        "target": loaded.target,
        "prompts": len(loaded.prompts),
        "draws": draws,
    }
    write_specrouter(found, head, out, provenance(command, {**inputs, **hashes}, seed))
    kept.forget(STUDIES)
    print(f"wrote {out / 'index.html'}")


def _say(what: str) -> None:
    print(f"specrouter: {what}", file=sys.stderr, flush=True)
