"""``simspec sweep``: policies of speculation against load."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

from simspec.cli.output import print_json, print_table, whole_numbers
from simspec.errors import BadInput


def sweep(
    scenario: Path,
    *others: Path,
    rates: str | None = None,
    clients: str | None = None,
    policy: list[str] | None = None,
    replications: int = 5,
    assumptions: bool = False,
    seed: int | None = None,
    until: float | None = None,
    jobs: int = 0,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Serve a scenario at several loads under several policies, and say where speculation stops paying.

    Every policy meets the same requests and the same luck, and plain decoding (``off``) is always among
    them. A gain's crossover is the load at which it changes sign: in mean TPOT and in throughput. Intervals
    are 95%, over replications; differences are paired.

    With --json, keys: ``load`` = {kind, unit, values}, ``seeds``, ``policies``, ``cells[]`` = {policy,
    verdicts, load, figures, differences (to off), terms, less_own}, each figure {value, low, high};
    figures named ``engine.<part>`` and ``requests.<part>`` are seconds a pass, ``<view>.tokens`` tokens a
    pass; ``terms.<view>`` = shares of a plain pass's time: ``tokens`` gained, what each part costs more,
    and their ``margin``; ``crossovers[]`` = {policy, verdicts, figure, verdict, load, low, high, before,
    after, told, because = {term, changes, exceeding, before, after}}; ``assumptions``, ``synthetic``,
    ``published``, ``approximations``, ``scenario``, ``provenance``. What is undefined is null.

    Parameters
    ----------
    scenario
        A scenario's file, as ``simspec simulate`` takes it.
    others
        Further ones that differ from it in nothing but name and speculation.
    rates
        Mean requests a second, such as 2,4,8; for all workloads but closed loops.
    clients
        For closed loops: how many clients, such as 1-4,8,16.
    policy
        A policy for the first scenario's drafter, beside those of the files: a kind that needs no keys,
        such as g4, or a TOML table, such as '{kind = "fixed", draft_tokens = 3}'. May be given several times.
    replications
        How many seeds, from the first on.
    assumptions
        Run policies that replay recorded verdicts also under acceptance by place in the block (rates), one
        independent rate (iid) and the mean, each fitted to the record.
    seed
        The first seed. Default: the scenario's own.
    until
        Stop each simulation after so many simulated seconds, whatever the scenario says.
    jobs
        Processes; 0 for one a core. The results do not depend on it.
    out
        A folder for a page (index.html, sweep.json, figures/), which appears whole or not at all. An earlier
        one is replaced; any other folder that is not empty is refused.
        Until then finished cells are kept beside it, in DIR.cells.jsonl, and the same command goes on there.
    json
        Print JSON.
    """
    if seed is not None and seed < 0:
        raise BadInput(f"--seed {seed}", allowed="0 or more")
    if until is not None and not (math.isfinite(until) and 0 < until <= 1e9):
        raise BadInput(f"--until {until}", allowed="above 0, at most 1e9 seconds")
    if not 1 <= replications <= 10_000:
        raise BadInput(f"--replications {replications}", allowed="1 to 10000")
    if (rates is None) == (clients is None):
        raise BadInput("--rates and --clients", allowed="one of them, such as --rates 2,4,8")
    from simspec.cli.checks import processes
    from simspec.provenance import provenance, versions
    from simspec.report.folder import SWEEP, check_free
    from simspec.scenario.reading import read_scenario
    from simspec.sweep.document import Asked
    from simspec.sweep.document import sweep as run_sweep
    from simspec.sweep.kept import Kept

    if clients is not None:
        loads = tuple(float(n) for n in whole_numbers(clients, "--clients", 1, 10**6))
    else:
        assert rates is not None
        loads = _rates(rates)
    if out is not None:
        check_free(out, SWEEP)
    reads = [read_scenario(path) for path in (scenario, *others)]
    first = reads[0].scenario.seed if seed is None else seed
    asked = Asked(
        policies=policy or [],
        loads=loads,
        clients=clients is not None,
        seeds=range(first, first + replications),
        until_seconds=until,
        assumed=assumptions,
    )
    kept = Kept(None if out is None else out.with_name(f"{out.name}.cells.jsonl"))
    found, inputs = run_sweep(reads, asked, kept, processes(jobs), _say)
    command = ["sweep", *(read.path.as_posix() for read in reads)]
    command += ["--rates", rates] if rates is not None else ["--clients", str(clients)]
    for text in policy or []:
        command += ["--policy", text]
    command += ["--replications", str(replications), "--seed", str(first)]
    command += ["--assumptions"] if assumptions else []
    command += [] if until is None else ["--until", repr(until)]
    made_by = provenance(command, inputs, first)
    made_by["versions"] = versions(("msgspec", "numpy", "pandas", "pyarrow", "scipy", "simpy"))
    found["provenance"] = made_by
    if out is not None:
        from simspec.report.serving import write_sweep

        write_sweep(found, out)
        _say(f"wrote {out / 'index.html'}")
    kept.forget()
    if json:
        print_json(found)
    else:
        _show(found)


# What fits a terminal.
SHORT = (
    "throughput_tokens_per_second",
    "tpot_seconds_mean",
    "tpot_seconds_p99",
    "rows_per_step",
    "emitted_per_pass",
)


def _rates(text: str) -> tuple[float, ...]:
    found = set()
    for part in text.split(","):
        try:
            rate = float(part)
        except ValueError:
            rate = math.nan
        if not 0 < rate <= 1e9:
            raise BadInput(
                f"--rates {text!r} holds {part.strip()!r}", allowed="numbers above 0, such as 2,4,8"
            )
        found.add(rate)
    return tuple(sorted(found))


def _show(found: dict[str, Any]) -> None:
    from simspec.report.serving_tables import cells_table, crossings_table

    for title, table in (
        (f"{found['name']}, {len(found['seeds'])} replications, same luck", cells_table(found, SHORT)),
        ("where speculation stops paying", crossings_table(found)),
    ):
        print_table(title, *table)
    for words in found["approximations"]:
        print(f"- {words}")


def _say(line: str) -> None:
    print(f"sweep: {line}", file=sys.stderr, flush=True)
