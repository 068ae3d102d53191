"""What a search has been through: options of its scenarios, and what happened in them.

A search that never comes to a swapped row says nothing about swaps, so each of these is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from simspec.cost.models import AffineCost
from simspec.serving.cluster import Cluster
from simspec.serving.config import Serving
from simspec.serving.verdicts import Recorded
from simspec.strategies.small_engines import made_up_cost
from tests.invariants.case import Case
from tests.invariants.life import Life
from tests.invariants.requests import fits_alone


def options(case: Case) -> Iterator[str]:
    """Of a scenario."""
    for one in case.cluster.engines:
        yield from _of_engine(one)
    yield from _of_cluster(case.cluster) if isinstance(case.served, Cluster) else ("one engine",)
    told = {
        "open loop": not case.clients,
        "closed loop": bool(case.clients) and not case.think_ns,
        "closed loop of thinkers": bool(case.clients and case.think_ns),
        "a horizon": case.until is not None,
        "arrivals that meet": not case.clients and len(set(case.instants)) < len(case.instants),
        "sessions": any(session >= 0 for session in case.sessions),
        "a crowd": len(case.sizes) > 12,
        "bursts": _variation(case) > 1.5,
        "regular arrivals": 0 < _variation(case) < 0.5,
    }
    yield from (name for name, there in told.items() if there)


def _variation(case: Case) -> float:
    """Of a crowd's gaps: 1 for Poisson, 3 and 0.3 for the gamma processes drawn; 0 for no crowd."""
    gaps = np.diff(case.instants)
    return float(gaps.std() / gaps.mean()) if len(gaps) > 12 and not case.clients and gaps.any() else 0.0


def _of_engine(one: Serving) -> Iterator[str]:
    memory, costs, spec = one.memory, one.costs, one.speculation
    yield f"{one.prefill} prompts, {'mixed' if one.mixed else 'alone'}"
    yield f"{memory.lookahead}, {memory.preemption}"
    told: dict[str, Any] = {
        "one slot": one.slots == 1,
        "several slots": one.slots > 1,
        "target's memory limited": memory.target_blocks is not None,
        "drafter's memory limited": memory.drafter_blocks is not None and spec is not None,
        "swaps take time": memory.preemption == "swap" and memory.block_swap_seconds,
        "a queue limit": one.queue_limit is not None,
        "no queue": one.queue_limit == 0,
        "patience": one.patience_seconds is not None,
        "graphs by rows": costs.graphs and costs.graphs.rows,
        "graphs by tokens": costs.graphs and costs.graphs.tokens,
        "nothing beyond graphs": costs.graphs and costs.graphs.beyond_factor == 1,
        "overhead of its own": costs.overhead_seconds is not None,
        "a price for drafting nothing": costs.idle_seconds,
        "device prices": costs.cost is made_up_cost("device"),
        "tick prices": costs.cost is made_up_cost("ticks"),
        "measured prices": not isinstance(costs.cost, AffineCost),
        "a drafter priced apart": costs.drafter_cost is not None and spec is not None,
        "a look-up": costs.lookup and spec is not None,
        "one intermediate": any(len(chain.intermediates) == 1 for chain in one.candidates),
        "two intermediates": any(len(chain.intermediates) == 2 for chain in one.candidates),
        "an intermediate that adds": any(links.replace for links in one.chains),
        "intermediates' memory limited": memory.middle_blocks and spec is not None,
    }
    yield from (name for name, there in told.items() if there)
    if spec is None:
        yield "plain decoding"
        return
    rule = getattr(spec.policy, "rule", None)
    full = " in full" if getattr(spec.policy, "full_scan", False) else ""
    yield f"policy {type(spec.policy).__name__ if rule is None else type(rule).__name__ + ' by row'}{full}"
    yield f"{spec.drafters} drafters"
    for source in (spec.source, *(other.source for other in spec.others)):
        unsure = isinstance(source, Recorded) and source.blocks is None
        yield f"source {type(source).__name__}{' without confidences' if unsure else ''}"
        rates = set(getattr(source, "survival", ()))
        yield from (
            f"all accepted with probability {rate:.0f}"
            for rate in rates
            if len(rates) == 1 and rate in (0, 1)
        )


def _of_cluster(cluster: Cluster) -> Iterator[str]:
    yield f"routing {cluster.routing}"
    device = cluster.drafter_device
    told = {
        "several replicas": len(cluster.replicas) > 1,
        "unlike replicas": len(set(map(id, cluster.replicas))) > 1,
        "prefill apart": bool(cluster.prefill),
        "transfers take time": bool(
            cluster.prefill and (cluster.transfer_seconds or cluster.transfer_token_seconds)
        ),
        "outages listed": bool(cluster.outages),
        "failures by chance": cluster.failures is not None,
        "a drafter's device": device is not None and device.devices == 1,
        "drafters' devices": device is not None and device.devices > 1,
        "a link to the drafter": device is not None and device.link_seconds > 0,
    }
    yield from (name for name, there in told.items() if there)
    if cluster.outages or cluster.failures is not None:
        yield f"on failure {cluster.on_failure}"


def events(life: Life) -> Iterator[str]:
    """That happened in a run."""
    yield from (name for name, happened in EVENTS.items() if happened(life))
    yield from (f"a request {name}" for name, count in life.outcomes.items() if count)


def _step(test: Callable[[dict[str, Any]], object]) -> Callable[[Life], bool]:
    return lambda life: any(map(test, life.steps))


def _request(test: Callable[[dict[str, Any]], object]) -> Callable[[Life], bool]:
    return lambda life: any(map(test, life.requests))


def _rejected_for_size(life: Life) -> bool:
    engines = life.cluster.engines
    return any(
        row["outcome"] == "rejected"
        and not any(fits_alone(one, row, row["output_tokens"]) for one in engines)
        for row in life.requests
    )


def _rejected_for_the_queue(life: Life) -> bool:
    engines = life.cluster.engines
    return any(
        row["outcome"] == "rejected" and all(fits_alone(one, row, row["output_tokens"]) for one in engines)
        for row in life.requests
    )


def _over_budget(life: Life) -> bool:
    return any(
        step["prefill_tokens"]
        > life.engine(step).token_budget - step["decoding_requests"] - step["submitted_tokens"]
        for step in life.steps
        if step["prefill_tokens"]
    )


def _rows_over_budget(life: Life) -> bool:
    return any(
        s["decoding_requests"] + s["submitted_tokens"] > life.engine(s).token_budget for s in life.steps
    )


def _in_chunks(life: Life) -> bool:
    return any(t and not e for s in life.steps for t, e in [(s["prefill_tokens"], s["emitted_tokens"])])


def _idle(life: Life) -> bool:
    return any(
        b["started_at_ns"] > life.ends[a["row"]]
        for steps in life.by_replica.values()
        for a, b in pairwise(steps)
    )


def _read_twice(life: Life) -> bool:
    return any(
        row["preemptions"] and len(life.turns[n]) - row["passes"] > 1 + row["restarts"]
        for n, row in life.by_number.items()
    )


def _swapped(life: Life) -> bool:
    return any(s["preempted_requests"] and s["swap_ns"] for s in life.steps)


def _changes(life: Life) -> int:
    return sum(a["drafter"] != b["drafter"] for own in life.by_replica.values() for a, b in pairwise(own))


def _unlike_rows(life: Life) -> bool:
    return any(
        len({t.row["drafted_tokens"] for t in turns if t.reads is False}) > 1 for turns in life.turns_of
    )


def _reads(one: Serving) -> bool:
    """Whether an engine's drafter reads prompts."""
    return one.speculation is not None and one.speculation.drafters == 1 and not one.costs.lookup


def _held(life: Life) -> bool:
    """Somebody came while nobody was up, and was served in the end."""
    return any(
        row["admitted_at_ns"] is not None
        and all(
            any(
                o["replica"] == n and o["failed_at_ns"] <= row["arrived_at_ns"] < o["back_at_ns"]
                for o in life.outages
            )
            for n in (range(life.decoders, len(life.cluster.engines)) if life.apart else range(life.decoders))
        )
        for row in life.requests
    )


def _meet(life: Life) -> bool:
    """Steps of two engines end at one instant."""
    return any(a == b for a, b in pairwise(life.ends))


def _returns_and_fails(life: Life) -> bool:
    said = {(o["replica"], o["back_at_ns"]) for o in life.outages}
    return any((o["replica"], o["failed_at_ns"]) in said for o in life.outages)


EVENTS: dict[str, Callable[[Life], object]] = {
    "a place is lost": _step(lambda s: s["preempted_requests"]),
    "two places are lost at once": _step(lambda s: s["preempted_requests"] > 1),
    "a request loses its place twice": _request(lambda r: r["preemptions"] > 1),
    "a text is read again": _read_twice,
    "a text is swapped out": _swapped,
    "a place is lost in a cluster": lambda life: (
        len(life.cluster.engines) > 1 and any(s["preempted_requests"] for s in life.steps)
    ),
    "rejected for its size": _rejected_for_size,
    "rejected for the queue": _rejected_for_the_queue,
    "withdrawn after a wait": _request(
        lambda r: r["outcome"] == "timed_out" and r["ended_at_ns"] > r["arrived_at_ns"]
    ),
    "cut off in the middle": _request(lambda r: r["outcome"] == "unfinished" and r["produced_tokens"]),
    "cut off in the queue": _request(lambda r: r["outcome"] == "unfinished" and r["admitted_at_ns"] is None),
    "an engine stands idle": _idle,
    "a prompt beyond the budget": _over_budget,
    "rows beyond the budget": _rows_over_budget,
    "a prompt in chunks": _in_chunks,
    "a prompt beside rows": _step(lambda s: s["prefilling_requests"] and s["decoding_requests"]),
    "several prompts at once": _step(lambda s: s["prefilling_requests"] > 1),
    "all slots held": lambda life: any(
        s["decoding_requests"] == life.engine(s).slots and s["queued_requests"] for s in life.steps
    ),
    "all blocks held": lambda life: any(
        s["target_blocks"] == life.engine(s).memory.target_blocks for s in life.steps
    ),
    "all drafts accepted": _step(lambda s: s["submitted_tokens"] == s["accepted_tokens"] > 0),
    "no draft accepted": _step(lambda s: s["submitted_tokens"] and not s["accepted_tokens"]),
    "drafts held back": _step(lambda s: s["drafted_tokens"] > s["submitted_tokens"]),
    "all drafts held back": _step(lambda s: s["drafted_tokens"] and not s["submitted_tokens"]),
    "rows of unlike lengths": _unlike_rows,
    "nothing to draft, and a length": _step(lambda s: s["draft_length_tokens"] and not s["drafted_tokens"]),
    "an intermediate's token accepted": _request(lambda r: r["accepted_tokens"] > r["drafted_tokens"]),
    "intermediates take time": _step(lambda s: s["middle_ns"]),
    "another drafter": lambda life: _changes(life) > 0,
    "another drafter, and back": lambda life: _changes(life) > 1,
    "speculation goes off": lambda life: len({bool(s["draft_length_tokens"]) for s in life.steps}) > 1,
    "steps end at one instant": _meet,
    "a failure": lambda life: bool(life.outages),
    "a failure of an idle engine": lambda life: any(o["step_began_at_ns"] is None for o in life.outages),
    "a failure under several": lambda life: any(o["batch_requests"] > 1 for o in life.outages),
    "a failure under a queue": lambda life: any(
        o["batch_requests"] and o["queued_requests"] for o in life.outages
    ),
    "a failure at the return": _returns_and_fails,
    "tokens thrown away": _request(lambda r: r["discarded_tokens"]),
    "restarted and finished": _request(lambda r: r["restarts"] and r["outcome"] == "finished"),
    "restarted twice": _request(lambda r: r["restarts"] > 1),
    "retries exhausted": _request(lambda r: r["restarts"] and r["outcome"] == "lost"),
    "rejected after a restart": _request(lambda r: r["restarts"] and r["outcome"] == "rejected"),
    "a place and a replica lost": _request(lambda r: r["restarts"] and r["preemptions"]),
    "resumed with what it had": lambda life: (
        life.cluster.on_failure == "resume"
        and any(r["restarts"] and r["produced_tokens"] > 1 for r in life.requests)
    ),
    "held while nobody is up": _held,
    "handed over": lambda life: (
        any(len({t.step["replica"] for t in turns}) > 1 for turns in life.turns.values()) and life.apart
    ),
    "handed over and preempted": lambda life: life.apart and any(r["preemptions"] for r in life.requests),
    "handed over and drafted for": lambda life: life.apart and any(s["drafted_tokens"] for s in life.steps),
    "a wait for the drafter's device": lambda life: any(
        step["wait_ns"] > 2e9 * life.cluster.drafter_device.link_seconds + 0.5
        for step in life.steps
        if life.cluster.drafter_device
    ),
    "prompts read on a drafter's device": lambda life: (
        life.cluster.drafter_device is not None
        and any(s["prefilling_requests"] and _reads(life.engine(s)) for s in life.steps)
    ),
}
