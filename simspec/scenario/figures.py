"""Figures of merit of a scenario's run, from its tables, after the fact and after its warm-up.

What a single request says (TTFT, TPOT, ...) is taken from :mod:`simspec.serving.figures`; here stand what
needs the clock of the whole run, the memory or the objectives. Undefined is None, never NaN.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from simspec.scenario.config import CoolDownPart, ObjectivesPart, WarmUpPart
from simspec.scenario.itl import NONE, Latencies, column, from_emissions, from_steps
from simspec.scenario.period import NS, Period, period, told
from simspec.scenario.replicas import batch, blocks, failures, of_each, utilisation
from simspec.serving.cluster import Cluster
from simspec.serving.figures import figures
from simspec.serving.request import Outcome
from simspec.serving.simulate import Records

KEPT = CoolDownPart()
# Tokens that were drafted, of these given to the target, of these accepted.
DRAFTS = ("drafted", "submitted", "accepted")


def measure(
    records: Records,
    cluster: Cluster,
    objectives: ObjectivesPart,
    warm_up: WarmUpPart,
    cool_down: CoolDownPart = KEPT,
) -> dict[str, Any]:
    """All figures, ready for JSON, of records that hold their tables. Seconds are simulated ones.

    ``requests``, ``output_tokens`` and ``failures`` count the whole run; everything else leaves the warm-up
    and the cool-down out. Of several engines, ``batch`` and ``kv_blocks`` are of one: mean over all, peak of
    any.
    """
    steps, requests, outages = records.steps, records.requests, records.outages
    when = period(warm_up, cool_down, steps, requests, len(cluster.engines))
    measured_steps = steps.filter(pa.array(when.steps(steps)))
    measured = requests.filter(pa.array(when.requests(requests)))
    of_requests = figures(measured_steps, measured)
    span = when.span_ns if measured_steps.num_rows else 0.0
    emitted = int(column(measured_steps, "emitted_tokens").sum())
    latencies, why = _itl(steps, requests, records.emissions, cluster, when)
    return {
        "requests": _counts(requests),
        "output_tokens": int(column(requests, "produced_tokens").sum()),
        "ttft_seconds": asdict(of_requests.ttft_seconds),
        "tpot_seconds": asdict(of_requests.tpot_seconds),
        "itl_seconds": {
            "per_chunk": asdict(latencies.per_chunk),
            "per_token": asdict(latencies.per_token),
            "unknown_because": why,
        },
        "e2e_seconds": asdict(of_requests.e2e_seconds),
        "queueing_seconds": asdict(of_requests.queueing_seconds),
        "throughput_tokens_per_second": emitted * NS / span if span else None,
        "goodput": _goodput(measured, objectives, span),
        "emitted_per_pass": {
            "pooled": of_requests.emitted_per_pass_pooled,
            "mean_of_requests": of_requests.emitted_per_pass_mean,
            "deviation_between_requests": _deviation(measured),
        },
        "draft": {
            **{f"{n}_tokens": int(column(measured_steps, f"{n}_tokens").sum()) for n in DRAFTS},
            # Where intermediates add tokens of their own, what is accepted is not the drafter's alone.
            "waste": None if _replaces(cluster) else of_requests.draft_waste,
            "length_shares": _lengths(measured_steps),
            "shares_by_drafter": _drafters(measured_steps, cluster),
        },
        "batch": batch(measured_steps, when),
        "kv_blocks": {
            kind: blocks(measured_steps, f"{kind}_blocks", _one(cluster, f"{kind}_blocks"), when)
            for kind in ("target", "drafter")
        },
        "preemptions": int(column(measured_steps, "preempted_requests").sum()),
        "failures": failures(requests, outages),
        "utilisation": utilisation(measured_steps, outages, when),
        "replicas": of_each(measured_steps, measured, outages, when, cluster),
        "measured": {
            **told(warm_up, cool_down, when),
            "from_seconds": int(when.begins.min()) / NS if measured_steps.num_rows else None,
            "span_seconds": span / NS,
            "requests_left_out": requests.num_rows - measured.num_rows,
            "steps_left_out": steps.num_rows - measured_steps.num_rows,
            "requests": measured.num_rows,
            "steps": measured_steps.num_rows,
        },
    }


def _one(cluster: Cluster, blocks: str) -> int | None:
    """What every engine has of a kind of blocks; None without limit, or where they differ."""
    found = {getattr(one.memory, blocks) for one in cluster.engines}
    return found.pop() if len(found) == 1 else None


def _replaces(cluster: Cluster) -> bool:
    return any(links.replace for one in cluster.engines for links in one.chains)


def _counts(requests: pa.Table) -> dict[str, int]:
    outcomes = np.asarray(requests["outcome"].to_pylist(), dtype=object)
    found = {o.name.lower(): int((outcomes == o.name.lower()).sum()) for o in Outcome}
    return {"arrived": requests.num_rows, **found}


def _itl(
    steps: pa.Table, requests: pa.Table, emissions: pa.Table | None, cluster: Cluster, when: Period
) -> tuple[Latencies, str | None]:
    if emissions is not None:
        return from_emissions(steps, emissions, when.steps(steps)), None
    unknown, ask = Latencies(NONE, NONE), "set emissions = true"
    if cluster.prefill:
        return unknown, f"requests go from one engine to another; {ask}"
    if not all(one.mixed for one in cluster.engines):
        return unknown, f"prompts are read between steps that decode; {ask}"
    for name, what in (("preemptions", "were preempted"), ("restarts", "were in replicas that failed")):
        if column(requests, name).any():
            return unknown, f"requests {what}; {ask}"
    return from_steps(steps, when.steps(steps)), None


def _goodput(measured: pa.Table, objectives: ObjectivesPart, span: float) -> dict[str, Any]:
    """Requests that finished and met every objective that is set; all None where none is.

    A request of one token has no time between tokens, and meets any objective on it.
    """
    wanted = {
        name: value
        for name in ("ttft_seconds", "tpot_seconds")
        if (value := getattr(objectives, name)) is not None
    }
    found: dict[str, Any] = {
        "objectives": wanted,
        "requests": None,
        "share": None,
        "requests_per_second": None,
    }
    if not wanted:
        return found
    good = np.asarray(measured["outcome"].to_pylist(), dtype=object) == "finished"
    first, ended = column(measured, "first_token_at_ns"), column(measured, "ended_at_ns")
    if objectives.ttft_seconds is not None:
        good &= (first - column(measured, "arrived_at_ns")) * 1e-9 <= objectives.ttft_seconds
    if objectives.tpot_seconds is not None:
        after_first = column(measured, "produced_tokens") - 1
        good &= (ended - first) * 1e-9 <= objectives.tpot_seconds * after_first
    found["requests"] = int(good.sum())
    found["share"] = float(good.mean()) if len(good) else None
    found["requests_per_second"] = found["requests"] * NS / span if span else None
    return found


def _deviation(measured: pa.Table) -> float | None:
    passes, accepted = column(measured, "passes"), column(measured, "accepted_tokens")
    decoded = passes > 0
    return float((accepted[decoded] / passes[decoded]).std()) if decoded.any() else None


def _lengths(steps: pa.Table) -> dict[str, float]:
    """Draft length -> share of the steps that decoded."""
    asked = column(steps, "draft_length_tokens")[column(steps, "decoding_requests") > 0]
    values, counts = np.unique(asked, return_counts=True)
    return {str(v): float(c / len(asked)) for v, c in zip(values.tolist(), counts, strict=True)}


def _drafters(steps: pa.Table, cluster: Cluster) -> dict[str, float]:
    """Drafter -> share of the steps that drafted; empty where none did."""
    speculation, costs = cluster.replicas[0].speculation, cluster.replicas[0].costs
    who = column(steps, "drafter")[column(steps, "drafted_tokens") > 0]
    if speculation is None or not len(who):
        return {}
    names = [str(costs.drafter), *(other.drafter for other in speculation.others)]
    shares = np.bincount(who, minlength=len(names)) / len(who)
    # Two of one name are told apart by their place in the scenario.
    called = [n if names.count(n) == 1 else f"{n} #{i}" for i, n in enumerate(names)]
    return dict(zip(called, shares.tolist(), strict=True))
