"""Figures of merit: shares sum to 1, and nothing lies beyond what it could be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from simspec.claims.serving.laws import Row
from tests.invariants.life import Life

Measured = dict[str, Any]
NS = 1e-9


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


def _utilisations(life: Life) -> Iterator[tuple[str, Measured | None]]:
    for name, measured in (("all", life.measured), ("late", life.late)):
        if measured is None:
            continue
        yield name, measured["utilisation"]
        yield from ((f"{name}, {own['replica']}", own["utilisation"]) for own in measured["replicas"])


def shares_of_time_sum_to_one(life: Life) -> list[str]:
    """An engine's time is spent once; with and without a warm-up, and in every engine."""
    return [
        f"{name}: {shares}"
        for name, shares in _utilisations(life)
        if shares is not None and not (_close(sum(shares.values()), 1) and min(shares.values()) >= -1e-12)
    ]


def quantiles_are_in_order(life: Life) -> list[str]:
    """p50 <= p90 <= p99, and the mean between the least and the greatest, of what the tables say."""
    found = []
    for name, values in _of_requests(life.requests).items():
        said = life.measured[f"{name}_seconds"]
        if not values:
            right = set(said.values()) == {None}
        else:
            right = said["p50"] <= said["p90"] <= said["p99"] <= max(values) + 1e-12
            right = (
                right and min(values) <= said["p50"] + 1e-12 and _close(said["mean"], float(np.mean(values)))
            )
        if not right:
            found.append(f"{name} {said} of {values}")
    return found


def _of_requests(rows: list[Row]) -> dict[str, list[float]]:
    done = [row for row in rows if row["outcome"] == "finished"]
    first = [row for row in rows if row["first_token_at_ns"] is not None]
    admitted = [row for row in rows if row["admitted_at_ns"] is not None]
    return {
        "ttft": [(row["first_token_at_ns"] - row["arrived_at_ns"]) * NS for row in first],
        "queueing": [(row["admitted_at_ns"] - row["arrived_at_ns"]) * NS for row in admitted],
        "e2e": [(row["ended_at_ns"] - row["arrived_at_ns"]) * NS for row in done],
        "tpot": [
            (row["ended_at_ns"] - row["first_token_at_ns"]) * NS / (row["produced_tokens"] - 1)
            for row in done
            if row["produced_tokens"] > 1
        ],
    }


def goodput_is_at_most_throughput(life: Life) -> list[str]:
    """Good are some of the finished, by their own times; and no more tokens come out than were emitted."""
    measured, found = life.measured, []
    span, good = measured["measured"]["span_seconds"], measured["goodput"]
    objectives = good["objectives"]
    met = [
        row
        for row in life.requests
        if row["outcome"] == "finished"
        and (row["first_token_at_ns"] - row["arrived_at_ns"]) * NS <= objectives["ttft_seconds"]
        and (row["ended_at_ns"] - row["first_token_at_ns"]) * NS
        <= objectives["tpot_seconds"] * (row["produced_tokens"] - 1)
    ]
    finished, emitted = life.outcomes["finished"], sum(step["emitted_tokens"] for step in life.steps)
    if good["requests"] != len(met) or good["requests"] > finished:
        found.append(f"{good}: {len(met)} are good of {finished} finished")
    if good["share"] is not None and not 0 <= good["share"] <= 1:
        found.append(f"a share of {good['share']}")
    if span:
        rate = measured["throughput_tokens_per_second"]
        if not _close(rate * span, emitted) or good["requests_per_second"] > finished / span * (1 + 1e-9):
            found.append(f"{rate} tokens a second for {span} s, {emitted} emitted; {good}")
    return found


def a_pass_emits_one_and_its_drafts(life: Life) -> list[str]:
    """M10: tokens a pass = 1 + accepted drafts a pass, between 1 and one more than the longest draft."""
    said, longest = life.measured["emitted_per_pass"], max(one.lookahead for one in life.cluster.engines)
    found = [
        f"{name} {value}, longest draft {longest}"
        for name, value in said.items()
        if value is not None
        and not (
            0 <= value <= longest / 2 + 1e-9 if "deviation" in name else 1 <= value <= 1 + longest + 1e-9
        )
    ]
    rows, accepted = (sum(step[n] for step in life.steps) for n in ("decoding_requests", "accepted_tokens"))
    if rows and not _close(said["pooled"], 1 + accepted / rows):
        found.append(f"{said['pooled']} tokens a pass, {accepted} accepted in {rows}")
    waste, drafted = life.measured["draft"]["waste"], sum(step["drafted_tokens"] for step in life.steps)
    # Tokens that intermediates add are accepted beside what was drafted.
    unknown = not drafted or any(links.replace for one in life.cluster.engines for links in one.chains)
    if (waste is None) != unknown or (not unknown and not _close(waste, 1 - accepted / drafted)):
        found.append(f"waste {waste}: {accepted} of {drafted} accepted")
    lengths = life.measured["draft"]["length_shares"]
    if lengths and not _close(sum(lengths.values()), 1):
        found.append(f"shares of draft lengths {lengths}")
    return found


def means_lie_below_peaks(life: Life) -> list[str]:
    """Rows, queues and blocks: mean <= peak <= what there is, in each engine."""
    found = []
    for own, serving in zip(life.measured["replicas"], life.cluster.engines, strict=True):
        batch, kv = own["batch"], own["kv_blocks"]
        limits = [
            (batch["mean_requests"], batch["peak_requests"], serving.slots),
            (kv["mean"], kv["peak"], kv["total"]),
        ]
        for mean, peak, most in limits:
            if peak is not None and not (mean <= peak * (1 + 1e-12) and (most is None or peak <= most)):
                found.append(f"engine {own['replica']}: mean {mean}, peak {peak} of {most}")
    sums = {name: sum(own[name] for own in life.measured["replicas"]) for name in ("steps", "emitted_tokens")}
    if sums != {"steps": len(life.steps), "emitted_tokens": sum(s["emitted_tokens"] for s in life.steps)}:
        found.append(f"engines have {sums}")
    return found


def times_between_tokens_add_up(life: Life) -> list[str]:
    """Gaps between tokens span from the first to the last: what TPOT divides, and ITL averages."""
    said = life.measured["itl_seconds"]
    spans, tokens, chunks = 0, 0, 0
    for turns in life.turns.values():
        if turns:
            spans += life.ends[turns[-1].step["row"]] - life.ends[turns[0].step["row"]]
            tokens += sum(turn.row["emitted_tokens"] for turn in turns[1:])
            chunks += len(turns) - 1
    if not chunks:
        return [] if said["per_token"]["mean"] is None else [f"{said} of nothing"]
    found = []
    for name, count in (("per_token", tokens), ("per_chunk", chunks)):
        if not _close(said[name]["mean"] * count, spans * NS):
            found.append(f"{name} {said[name]['mean']} for {count}, from first to last {spans} ns in all")
    done = [row for row in life.requests if row["outcome"] == "finished" and not row["restarts"]]
    # All that was emitted is theirs: then TPOT, weighted by tokens, is the mean time between tokens.
    if len(done) == sum(bool(turns) for turns in life.turns.values()):
        whole = sum(row["ended_at_ns"] - row["first_token_at_ns"] for row in done)
        if whole != spans or tokens != sum(row["produced_tokens"] - 1 for row in done):
            found.append(f"TPOT divides {whole} ns, ITL {spans}")
    return found


def steps_alone_tell_the_same_times(life: Life) -> list[str]:
    """Where times between tokens are told without emissions they are those told with them."""
    said, right = life.without_emissions, life.measured["itl_seconds"]
    if said is None or said["unknown_because"] is not None:
        return []
    return [
        f"{name} {how}: {said[name][how]} from steps, {right[name][how]} from emissions"
        for name in ("per_chunk", "per_token")
        for how in said[name]
        if (said[name][how] is None) != (right[name][how] is None)
        or (said[name][how] is not None and not _close(said[name][how], right[name][how]))
    ]


LAWS = (
    shares_of_time_sum_to_one,
    quantiles_are_in_order,
    goodput_is_at_most_throughput,
    a_pass_emits_one_and_its_drafts,
    means_lie_below_peaks,
    times_between_tokens_add_up,
    steps_alone_tell_the_same_times,
)
