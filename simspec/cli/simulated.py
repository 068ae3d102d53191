"""The part of ``simspec simulate`` that shows people what it found."""

from __future__ import annotations

from typing import Any

from simspec.cli.output import print_table


def show(found: dict[str, Any], spent: dict[str, Any]) -> None:
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
    emitted, goodput, draft = found["emitted_per_pass"], found["goodput"], found["draft"]
    # One drafter alone drafts in all of them.
    by = draft["shares_by_drafter"] if len(draft["shares_by_drafter"]) > 1 else {}
    lines = {
        "output tokens a second": _number(found["throughput_tokens_per_second"], 1),
        "requests a second within the objectives": _number(goodput["requests_per_second"], 3),
        "their share of requests": _percent(goodput["share"]),
        "emitted a target pass, pooled": _number(emitted["pooled"], 3),
        "emitted a target pass, mean of requests": _number(emitted["mean_of_requests"], 3),
        "drafted tokens": f"{draft['drafted_tokens']:,}",
        "of these, submitted to the target": f"{draft['submitted_tokens']:,}",
        "drafted tokens not accepted": _percent(draft["waste"]),
        **{f"steps that {name} drafted": _percent(share) for name, share in by.items()},
        "preemptions": found["preemptions"],
        "KV blocks of the target at most": _peak(found["kv_blocks"]["target"]),
        "KV blocks of the drafter at most": _peak(found["kv_blocks"]["drafter"]),
    }
    lines |= {f"time: {name}": _percent(share) for name, share in (found["utilisation"] or {}).items()}
    print_table("measured", ["", "value"], lines.items())
    _show_engines(found)
    measured = found["measured"]
    print(
        f"{measured['rule']} ({measured['requests_left_out']} requests, {measured['steps_left_out']} steps); "
        f"{measured['span_seconds']:.3f} s measured"
    )
    if measured.get("mser", {}).get("remark"):
        print(f"MSER-5 of {measured['mser']['of']}: {measured['mser']['remark']}")
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


def show_comparison(found: dict[str, Any]) -> None:
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


def show_assumptions(found: dict[str, Any]) -> None:
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
