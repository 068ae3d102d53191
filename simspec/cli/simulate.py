"""``simspec simulate``: speculative decoding under load."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

from simspec.cli.output import print_json, print_table
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
    speculation, objectives, warm_up. Its paths are relative to its own folder. Seconds are simulated
    but for wall_seconds.

    With --json, keys: ``requests`` = {arrived, finished, rejected, timed_out, unfinished, lost} and
    ``output_tokens`` of the whole run; after the warm-up ``ttft_seconds``, ``tpot_seconds``,
    ``itl_seconds.per_chunk``, ``itl_seconds.per_token``, ``e2e_seconds``, ``queueing_seconds`` (each
    mean, p50, p90, p99), ``throughput_tokens_per_second``, ``goodput`` (requests that met all
    objectives), ``emitted_per_pass`` = {pooled, mean_of_requests, deviation_between_requests},
    ``draft`` = {drafted_tokens, accepted_tokens, waste, length_shares}, ``batch``, ``kv_blocks``,
    ``preemptions``, ``utilisation`` = shares of {draft, verify, prefill, swap, wait, overhead, idle, down,
    lost}, ``replicas[]`` (the same of each engine), ``failures``, ``drafter_device`` where it is its own,
    ``measured`` (the rule of the warm-up and what it left out); ``dropped`` and ``logs``,
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
        _show_assumptions(found)
    elif len(built) > 1:
        _show_comparison(found)
    else:
        _show(found, spent)


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


# -- for people --------------------------------------------------------------------------------------------


def _show(found: dict[str, Any], spent: dict[str, Any]) -> None:
    counts = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in found["requests"].items())
    print(f"{found['name']}: {counts}; {found['output_tokens']:,} output tokens")
    spreads = {
        "TTFT": found["ttft_seconds"],
        "TPOT": found["tpot_seconds"],
        "ITL, per chunk": found["itl_seconds"]["per_chunk"],
        "ITL, per token": found["itl_seconds"]["per_token"],
        "end to end": found["e2e_seconds"],
        "queueing": found["queueing_seconds"],
    }
    parts = ("mean", "p50", "p90", "p99")
    rows = [[name, *(_ms(spread[part]) for part in parts)] for name, spread in spreads.items()]
    print_table("milliseconds", ["", *parts], rows)
    emitted, goodput = found["emitted_per_pass"], found["goodput"]
    lines = {
        "output tokens a second": _number(found["throughput_tokens_per_second"], 1),
        "requests a second within the objectives": _number(goodput["requests_per_second"], 3),
        "their share of requests": _percent(goodput["share"]),
        "emitted a target pass, pooled": _number(emitted["pooled"], 3),
        "emitted a target pass, mean of requests": _number(emitted["mean_of_requests"], 3),
        "drafted tokens not accepted": _percent(found["draft"]["waste"]),
        "preemptions": found["preemptions"],
        "KV blocks of the target at most": _peak(found["kv_blocks"]["target"]),
        "KV blocks of the drafter at most": _peak(found["kv_blocks"]["drafter"]),
    }
    lines |= {f"time: {name}": _percent(share) for name, share in (found["utilisation"] or {}).items()}
    print_table("measured after the warm-up", ["", "value"], lines.items())
    _show_engines(found)
    measured = found["measured"]
    print(
        f"{measured['rule']} ({measured['requests_left_out']} requests, {measured['steps_left_out']} steps); "
        f"{measured['span_seconds']:.3f} s measured"
    )
    if found["itl_seconds"]["unknown_because"]:
        print(f"ITL unknown: {found['itl_seconds']['unknown_because']}")
    for log in found["logs"]:
        lost = ", ".join(f"{n} ({reason})" for reason, n in log["dropped"].items()) or "nothing"
        print(
            f"{log['use']} from {log['source']}, {log['unit']}: {log['requests']:,} requests, dropped {lost}"
        )
    for words in found["approximations"]:
        print(f"- {words}")
    if "replications" in found:
        replications = found["replications"]
        print_table(
            f"{len(replications['seeds'])} replications ({', '.join(replications['drawn'])} drawn)",
            ["figure", "mean", "95%"],
            [[name, *_estimate(figure)] for name, figure in replications["figures"].items()],
        )
    print(
        f"simulated in {spent['wall_seconds']:.2f} s, "
        f"{_number(spent['output_tokens_per_wall_second'], 0)} output tokens a second; "
        f"peak memory {spent['peak_rss_bytes'] / 2**20:.0f} MiB"
    )


def _show_engines(found: dict[str, Any]) -> None:
    """Each engine of several, and what failures did."""
    engines, failures = found["replicas"], found["failures"]
    if len(engines) > 1:
        shares = list(found["utilisation"] or {})
        rows = [
            [
                f"{one['replica']} {one['role']}",
                f"{one['emitted_tokens']:,}",
                _number(one["batch"]["mean_requests"], 2),
                *(_percent((one["utilisation"] or {}).get(name)) for name in shares),
            ]
            for one in engines
        ]
        print_table("each engine", ["engine", "emitted", "requests", *shares], rows)
    if failures["outages"]:
        print(
            f"{failures['outages']} outages: {failures['requests_restarted']:,} requests restarted, "
            f"{found['requests']['lost']:,} lost, {failures['discarded_tokens']:,} tokens thrown away"
        )
    if device := found.get("drafter_device"):
        print(f"devices of the drafter: busy {_percent(device['share'])} of the time")


def _show_comparison(found: dict[str, Any]) -> None:
    one, other = found["scenarios"]
    rows = []
    for name, difference in found["differences"].items():
        values = [_number(s["figures"][name]["value"], 6) for s in (one, other)]
        rows.append([name, *values, *_estimate(difference)])
    print_table(
        f"{other['name']} less {one['name']}, {len(found['seeds'])} replications with the same seeds",
        ["figure", one["name"], other["name"], "difference", "95%"],
        rows,
    )


def _show_assumptions(found: dict[str, Any]) -> None:
    fitted = found["fitted"]
    print(
        f"fitted at {fitted['draft_tokens']} drafts: {fitted['emitted_per_pass']:.3f} emitted a pass, "
        f"rate {fitted['rate']:.3f}; of the drafts asked for, "
        f"{100 * fitted['drafted_share']:.0f}% could be had on the record, and all can under the assumptions"
    )
    names = [f"tpot_seconds_{part}" for part in ("mean", "p50", "p99")]
    names += ["ttft_seconds_p99", "throughput_tokens_per_second"]
    names += ["emitted_per_pass_pooled", "emitted_per_pass_deviation_between_requests"]
    rows = []
    for name in names:
        for assumed, figures in found["assumptions"].items():
            difference = found["differences"].get(assumed, {}).get(name)
            beside = ["", ""] if difference is None else _estimate(difference)
            rows.append([name, assumed, _number(figures[name]["value"], 6), *beside])
    print_table(
        f"{found['name']}, {len(found['seeds'])} replications with the same seeds",
        ["figure", "verdicts", "mean", "less replay", "95%"],
        rows,
    )


def _estimate(figure: dict[str, Any]) -> list[str]:
    ends = (figure["low"], figure["high"])
    interval = "-" if None in ends else f"{ends[0]:.6g}..{ends[1]:.6g}"
    return [_number(figure["value"], 6), interval]


def _number(value: float | None, digits: int) -> str:
    """Six significant digits for figures of any size, decimals for those whose size is known."""
    if value is None:
        return "-"
    return f"{value:.6g}" if digits == 6 else f"{value:,.{digits}f}"


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:,.2f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}%"


def _peak(blocks: dict[str, Any]) -> str:
    if blocks["peak"] is None:
        return "-"
    return f"{blocks['peak']:,}" + ("" if blocks["total"] is None else f" of {blocks['total']:,}")


def _say(line: str) -> None:
    print(f"simulate: {line}", file=sys.stderr, flush=True)
