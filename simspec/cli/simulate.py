"""``simspec simulate``: speculative decoding under load."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

from simspec.cli.output import print_json
from simspec.cli.simulated import show, show_assumptions, show_comparison
from simspec.errors import BadInput


def simulate(
    scenario: Path,
    other: Path | None = None,
    *,
    seed: int | None = None,
    until: float | None = None,
    replications: int = 1,
    assumptions: bool = False,
    out: Path | None = None,
    timeline: Path | None = None,
    window: str | None = None,
    json: bool = False,
) -> None:
    """Serve a scenario's requests, or compare two scenarios under the same luck.

    A scenario is a TOML file (reports/serving holds examples): workload, lengths, engine, memory, cost,
    speculation, objectives, warm_up, cool_down. Its paths are relative to its own folder. Seconds are
    simulated but for wall_seconds.

    With --json, keys: ``requests`` = {arrived, finished, rejected, timed_out, unfinished, lost} and
    ``output_tokens`` of the whole run; without warm-up and cool-down ``ttft_seconds``, ``tpot_seconds``,
    ``itl_seconds.per_chunk``, ``itl_seconds.per_token``, ``e2e_seconds``, ``queueing_seconds`` (each
    mean, p50, p90, p99), ``throughput_tokens_per_second``, ``goodput`` (requests that met all
    objectives), ``emitted_per_pass`` = {pooled, mean_of_requests, deviation_between_requests},
    ``draft`` = {drafted_tokens, submitted_tokens (to the target), accepted_tokens, waste, length_shares
    (of steps that decoded), shares_by_drafter (of steps that drafted)}, ``batch``, ``kv_blocks``,
    ``preemptions``, ``utilisation`` = shares of {draft, verify, prefill, swap, wait, overhead, idle, down,
    lost}, ``replicas[]`` (the same of each engine), ``failures``, ``drafter_device`` where it is its own,
    ``measured`` (the rule of warm-up and cool-down, what it left out, and ``mser``: what it chose itself);
    ``dropped`` and ``logs``,
    ``approximations``, ``scenario``, ``provenance``; and of this machine ``wall_seconds`` (of the
    simulation alone), ``output_tokens_per_wall_second``, ``peak_rss_bytes``. What is undefined is null.

    With several replications also ``replications.figures.<figure>`` = {value, low, high, values}. With
    two scenarios: ``scenarios[]`` with ``figures``, and ``differences.<figure>`` = {value, low, high},
    the second less the first. With --assumptions: ``fitted``, ``assumptions.<name>.<figure>`` and
    ``differences.<name>.<figure>``, each less replay.

    Parameters
    ----------
    scenario
        The scenario's file.
    other
        A second one, to compare with the first under the same seeds.
    seed
        Of arrivals, lengths and verdicts. Default: the scenario's own.
    until
        Stop after so many simulated seconds, whatever the scenario says.
    replications
        How many seeds, from the first on; intervals are 95%, over them.
    assumptions
        Run the scenario under replay and under acceptance by place in the block, one independent rate and the
        mean, each fitted to what is replayed.
    out
        A folder: steps.parquet and requests.parquet of one run, and figures.json without the figures of
        the machine. Appears whole or not at all. An earlier one is replaced; any other folder that is not
        empty is refused.
    timeline
        With --out and --window: a file for a Chrome trace of one run (opens in Perfetto): steps and their
        parts, requests, counters.
    window
        Simulated seconds that the timeline shows, such as 10:12.5.
    json
        Print JSON.
    """
    if seed is not None and seed < 0:
        raise BadInput(f"--seed {seed}", allowed="0 or more")
    if until is not None and not (math.isfinite(until) and 0 < until <= 1e9):
        raise BadInput(f"--until {until}", allowed="above 0, at most 1e9 seconds")
    if not 1 <= replications <= 10_000:
        raise BadInput(f"--replications {replications}", allowed="1 to 10000")
    if assumptions and other is not None:
        raise BadInput("--assumptions takes one scenario", hint="run it on each")
    if (timeline is None) != (window is None) or (timeline is not None and out is None):
        raise BadInput("--timeline without --window and --out, or the other way round", allowed="all or none")
    if timeline is not None and (assumptions or other is not None or replications > 1):
        raise BadInput("--timeline shows one run", hint="leave the comparison away")
    from simspec.report.folder import RUN, SIMULATION, check_free, replacing
    from simspec.scenario.build import build
    from simspec.scenario.documents import comparison, simulation, under_assumptions
    from simspec.scenario.reading import read_scenario
    from simspec.serving.timeline import window_of, write_timeline

    if window is not None:
        window_of(window)
    if timeline is not None:
        _check_timeline(timeline, scenario)
    if out is not None:
        check_free(out, SIMULATION)
    read = [read_scenario(path) for path in (scenario, other) if path is not None]
    first = read[0].scenario.seed if seed is None else seed
    seeds = list(range(first, first + replications))
    built = [build(one) for one in read]
    command = ["simulate", *(one.read.path.as_posix() for one in built), "--seed", str(first)]
    command += [] if until is None else ["--until", repr(until)]
    command += ["--replications", str(replications)] if replications > 1 else []
    command += ["--assumptions"] if assumptions else []

    def carry_out(folder: Path | None) -> tuple[dict[str, Any], dict[str, Any]]:
        spent: dict[str, Any] = {}
        if assumptions:
            found = under_assumptions(built[0], seeds, until, _say)
        elif len(built) > 1:
            found = comparison(built[0], built[1], seeds, until, _say)
        else:
            found, spent = simulation(built[0], seeds, until, folder, _say)
            if timeline is not None and folder is not None and window is not None:
                write_timeline(folder, window, timeline)
        found["provenance"] = _provenance(command, built, first)
        return found, spent

    if out is None:
        found, spent = carry_out(None)
    else:
        with replacing(out, SIMULATION) as folder:
            found, spent = carry_out(folder)
            _write(folder / RUN, found)
        _say(f"wrote {out}")
    if json:
        print_json({**found, **spent})
    elif assumptions:
        show_assumptions(found)
    elif len(built) > 1:
        show_comparison(found)
    else:
        show(found, spent)


def _check_timeline(path: Path, scenario: Path) -> None:
    """What would only be found out when all is simulated; and the scenario is not written over."""
    try:
        inside, taken = path.parent.is_dir(), path.is_dir() or path.resolve() == scenario.resolve()
    except (OSError, ValueError) as error:
        raise BadInput(f"--timeline {path}: {error}") from error
    if not inside or taken:
        raise BadInput(f"--timeline {path}", allowed="a file in a folder that is there, not the scenario")


def _provenance(command: list[str], built: list[Any], seed: int) -> dict[str, object]:
    from simspec.provenance import provenance, versions

    inputs: dict[str, str] = {}
    for number, one in enumerate(built, 1):
        # Two scenarios may have files of one name.
        inputs |= {name if len(built) == 1 else f"{number}/{name}": h for name, h in one.inputs.items()}
    found = provenance(command, inputs, seed)
    found["versions"] = versions(("msgspec", "numpy", "pandas", "pyarrow", "scipy", "simpy"))
    return found


def _write(path: Path, document: dict[str, Any]) -> None:
    import msgspec

    path.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")


def _say(line: str) -> None:
    print(f"simulate: {line}", file=sys.stderr, flush=True)
