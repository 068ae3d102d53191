"""``simspec lengths``: how long should a draft be?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from simspec.cli.output import interval, print_json, print_table, whole_numbers

if TYPE_CHECKING:
    from simspec.speculation.rule_files import Rule
    from simspec.traces.index import Trace

HEADER = (
    "rule",
    "ms/token",
    "v. static",
    "95%",
    "v. ours",
    "95%",
    "v. expected",
    "closed",
    "length",
    "drafted",
)


def lengths(
    trace: Path,
    *,
    drafter: str | None = None,
    cost: str | None = None,
    batches: Annotated[str, Parameter(name=("--batches", "--batch"))] = "1,4,16",
    rules: str = "",
    rule: Annotated[list[Path] | None, Parameter(consume_multiple=False)] = None,
    draws: int = 100,
    seed: int = 0,
    jobs: int = 0,
    json: bool = False,
) -> None:
    """Replay length rules with one drafter, beside oracles.

    Rules: static lengths; tuned-static, whose length for one half of the prompts is the fastest on the other;
    the published ones, and ours, long-run (a file each in the package's folder speculation/rules). Those
    that learn begin each draw of prompts knowing nothing, so their time has the learning in it.

    Oracles choose for each request alone, at the price of a cycle in which all rows do alike. What they know:
    hindsight, which tokens will be accepted; expected, the confidences of the whole block, and how often
    tokens of such a confidence were accepted in the other half of the prompts. Myopic ones maximise each
    cycle's tokens a second; long-run ones tokens less seconds at the worth of a second that is
    consistent (of expected, found on the other half). Other schedules may beat any of them (a negative
    regret); none can beat the dynamic program, at batch 1. Intervals are 95%, over bootstrap draws of
    prompts, paired.

    A trace of sampled texts is replayed in distribution (:mod:`simspec.replay.sampled`), with luck of the
    seed, and only by rules that rejection sampling allows: others are left out, and refused when named.

    With --json, keys: ``trace``, ``origin``, ``provenance``, for sampled texts ``sampling`` =
    {``temperature``, ``top_p``, ``replay`` (what is approximate)}, and ``batches.<B>`` = {``cost``,
    ``drafter``, ``batch``, ``best_static``, ``tuned_static`` (lengths of the even and the odd prompts),
    ``lower_bound_seconds_per_token``; ``rules.<name>`` and ``oracles.<name>`` = {seconds_per_token; regrets
    (% over): regret_best_static (tuned on the same prompts), regret_tuned_static, regret_ours (over
    long-run), regret_expected, regret_hindsight, regret_long_run (the expected one), regret_lower_bound
    (the dynamic program); gap_closed (share of the gap from the best static length to the dynamic program);
    each with ``_interval``, null where there is none; mad_expected, mad_hindsight, mad_long_run_expected,
    mad_long_run_hindsight, mad_lower_bound (mean absolute difference of tokens submitted from each
    oracle's at the same places; the last at batch 1); mean_length, mean_drafted (tokens a cycle)}}.

    Parameters
    ----------
    trace
        The trace's folder.
    drafter
        The drafter; by default for each batch size the one whose best static length is fastest.
    cost
        A number format of the trace's latency table, a cost model (a .toml file), or the folder of
        a latency profile or of a trace of the same models.
        Default: the format that the behaviour was recorded in.
    batches
        Requests in lock-step, such as 1,4,16.
    rules
        Rules of the package, comma-separated; static lengths are always there. Default: all.
    rule
        A file with a rule of your own; it is called by the file's name. May be repeated.
    draws
        Bootstrap draws of prompts.
    seed
        Seed of the draws.
    jobs
        Processes; 0 for one a core. The result does not depend on it.
    json
        Print JSON.
    """
    from msgspec import to_builtins

    from simspec.cli.checks import draws_and_seed, processes
    from simspec.compare.costs import cost_inputs, open_cost
    from simspec.compare.length_runs import LengthSettings, best_drafters
    from simspec.compare.lengths import study_batches
    from simspec.provenance import provenance, sha256_file
    from simspec.replay.sampled import IN_DISTRIBUTION, load_any, refuse_unsafe
    from simspec.speculation.chains import Chain
    from simspec.speculation.rule_files import as_planner

    draws_and_seed(draws, seed)
    sizes = whole_numbers(batches, "--batches", 1, 4096)
    loaded = load_any(trace, seed)
    drawn = loaded.manifest.sampling
    asked = _asked(loaded, rules, rule or [])
    refuse_unsafe(loaded, Chain((loaded.target,)), {n: as_planner(r) for n, r in asked.items()})
    name = cost or loaded.manifest.dtype
    priced = open_cost(loaded, name)
    chosen = dict.fromkeys(sizes, drafter) if drafter else best_drafters(loaded, priced, sizes, seed)
    settings = LengthSettings(draws=draws, seed=seed)
    studies = study_batches(loaded, chosen, priced, settings, asked, processes(jobs))
    found = {str(batch): study.as_json() for batch, study in studies.items()}
    if json:
        command = ["lengths", trace.as_posix(), *(["--drafter", drafter] if drafter else []), "--cost", name]
        command += ["--batches", batches, *(["--rules", rules] if rules else [])]
        command += [word for path in rule or [] for word in ("--rule", path.as_posix())]
        command += ["--draws", str(draws), "--seed", str(seed), "--json"]
        digests = {f"rule {path.name}": sha256_file(path) for path in rule or []}
        inputs = {**loaded.inputs, **cost_inputs([name]), **digests}
        print_json(
            {
                "trace": loaded.manifest.name,
                "origin": loaded.manifest.origin,
                "provenance": provenance(command, inputs, seed),
                **({"sampling": {**to_builtins(drawn), "replay": IN_DISTRIBUTION}} if drawn else {}),
                "batches": found,
            }
        )
        return
    print(f"\ncost {priced.name}: {priced.label}")
    if drawn:
        print(f"temperature {drawn.temperature:g}, top_p {drawn.top_p:g}: {IN_DISTRIBUTION}")
    for batch, document in found.items():
        tuned = document["tuned_static"]
        print_table(
            f"drafter {document['drafter']}, batch {batch} ({loaded.manifest.origin} behaviour); "
            f"regrets in %; best static: {document['best_static']}; on other half {tuned['even']} "
            f"(even prompts), {tuned['odd']} (odd); closed: share of the gap from best static to bound",
            HEADER,
            _rows(document),
        )


def _rows(document: dict[str, Any]) -> list[list[str]]:
    """The fastest first."""

    def signed(value: float | None) -> str:
        return "-" if value is None else f"{value:+.1f}"

    told = [(name, r) for name, r in document["rules"].items()]
    told += [(f"oracle {name}", r) for name, r in document["oracles"].items()]
    rows = [
        [
            name,
            f"{1000 * r['seconds_per_token']:.3f}",
            signed(r["regret_best_static"]),
            interval(r["regret_best_static_interval"], 1),
            signed(r["regret_ours"]),
            interval(r["regret_ours_interval"], 1),
            signed(r["regret_expected"]),
            "-" if r["gap_closed"] is None else f"{r['gap_closed']:.2f}",
            f"{r['mean_length']:.2f}",
            f"{r['mean_drafted']:.2f}",
        ]
        for name, r in sorted(told, key=lambda each: float(each[1]["seconds_per_token"]))
    ]
    bound = document["lower_bound_seconds_per_token"]
    if bound is not None:
        rows.insert(0, ["bound (dynamic program)", f"{1000 * bound:.3f}", *["-"] * (len(HEADER) - 2)])
    return rows


def _asked(trace: Trace, names: str, files: list[Path]) -> dict[str, Rule]:
    """The rules by name: those of the package that are asked for, then the user's."""
    from simspec.compare.lengths import TUNED, rules_under_test
    from simspec.errors import BadInput, unknown_name
    from simspec.replay.sampled import usable
    from simspec.speculation.rule_files import read_rule, shortened

    every = rules_under_test(trace)
    wanted = [name.strip() for name in names.split(",")] if names else list(usable(trace, every))
    for name in wanted:
        if name not in every:
            raise unknown_name("rule", name, every, where="--rules")
    found = {name: r for name, r in every.items() if name in wanted or name.startswith("static-")}
    # Static lengths are known by their names.
    for path in files:
        if path.stem in {*every, *found, TUNED} or path.stem.startswith("static-"):
            raise BadInput(f"the name {path.stem} is taken", where=path, hint="rename the file")
        found[path.stem] = shortened(read_rule(path), trace.manifest.block_length)
    return found
