"""Waiting: who is admitted when, and what a step may hold."""

from __future__ import annotations

from simspec.claims.serving.laws import Row
from simspec.serving.config import Serving
from tests.invariants.life import Life, Stay
from tests.invariants.requests import limits


def rows_fit_the_slots(life: Life) -> list[str]:
    """A slot holds one request."""
    return [
        f"step {step['row']}: {step['decoding_requests']} rows and {step['prefilling_requests']} prompts"
        for step in life.steps
        if step["decoding_requests"] + step["prefilling_requests"] > life.engine(step).slots
    ]


def the_token_budget_is_kept(life: Life) -> list[str]:
    """Rows that decode go first; then prompts, as far as the budget goes, but for the first whole one."""
    found = []
    for step in life.steps:
        serving = life.engine(step)
        left = serving.token_budget - step["decoding_requests"] - step["submitted_tokens"]
        first = serving.prefill == "whole" and step["prefilling_requests"] == 1
        if step["prefill_tokens"] > max(left, 0) and not first:
            found.append(
                f"step {step['row']}: {step['prefill_tokens']} tokens are read, the budget has {left}"
            )
    return found


def reading_alone_is_alone(life: Life) -> list[str]:
    """Where prompts are not read beside decoding, no step does both."""
    return [
        f"step {step['row']} does both"
        for step in life.steps
        if not life.engine(step).mixed and step["decoding_requests"] and step["prefilling_requests"]
    ]


def patience_is_kept(life: Life) -> list[str]:
    """Whoever is not admitted is withdrawn when its patience ends, at that instant and no other."""
    patience, found = life.patience_ns, []
    for number, row in life.by_number.items():
        admitted, how = row["admitted_at_ns"], row["outcome"]
        waited = (row["ended_at_ns"] if admitted is None else admitted) - row["arrived_at_ns"]
        if how == "timed_out":
            right = patience is not None and waited == patience
        elif patience is None:
            right = True
        else:
            right = waited <= patience - (admitted is not None)
        if not right:
            found.append(f"request {number}, {how}, waited {waited} of {patience}")
    return found


def first_come_first_served(life: Life) -> list[str]:
    """M30: in an engine, whoever is admitted finds nobody waiting who came before and never was."""
    found = []
    for number, stays in life.stays.items():
        entries = [s for s in stays if s.entry and s.request["outcome"] != "rejected"]
        for place, later in enumerate(entries):
            at = later.request["admitted_at_ns"]
            found += [
                f"engine {number}: request {later.request['request_id']} is admitted at {at} before "
                f"{s.request['request_id']}"
                for s in entries[:place]
                if at is not None and not s.admitted(at) and at < s.until
            ]
    return found


def queues_are_as_long_as_told(life: Life) -> list[str]:
    """Who waits as a step begins came by then and is admitted later; or has lost its place before."""
    found = []
    for number, steps in life.by_replica.items():
        if not life.calm or (life.apart and number < life.decoders):
            continue
        lost = 0
        for step in steps:
            waiting = len(_waiting(life.stays[number], step["started_at_ns"]))
            lost += step["preempted_requests"]
            if not waiting <= step["queued_requests"] <= waiting + lost:
                found.append(f"step {step['row']}: {step['queued_requests']} queued, {waiting} wait")
    return found


def _waiting(stays: list[Stay], at: int) -> list[Stay]:
    """Who has come by an instant, and is admitted later."""
    return [s for s in stays if s.entry and s.since <= at < s.until and not s.admitted(at)]


def nobody_waits_who_could_be_admitted(life: Life) -> list[str]:
    """M31: while somebody waits every slot is held, or memory lacks what the first of them needs.

    Where everybody is is known as long as nobody has lost a place.
    """
    found = []
    for number, steps in life.by_replica.items():
        serving, stays = life.cluster.engines[number], life.stays[number]
        if not life.calm or any(row["preemptions"] for row in life.requests):
            continue
        for step in steps:
            at = step["started_at_ns"]
            if life.apart and number < life.decoders:
                # Handed over: they decode from their admission on, and when that was is not in the tables.
                there = sum(s.since <= at < s.until for s in stays)
                if not limits(serving) and step["decoding_requests"] != min(there, serving.slots):
                    found.append(f"step {step['row']}: {step['decoding_requests']} rows of {there} there")
                continue
            held = sum(s.entry and s.admitted(at) and at < s.until for s in stays)
            waiting = _waiting(stays, at)
            if held > serving.slots:
                found.append(f"step {step['row']}: {held} hold a slot")
            if waiting and held < serving.slots and _has_room(serving, step, waiting[0].request, held):
                found.append(
                    f"step {step['row']}: request {waiting[0].request['request_id']} waits, {held} of "
                    f"{serving.slots} slots are held, {step['target_blocks']} blocks in use"
                )
    return found


def _has_room(serving: Serving, step: Row, first: Row, held: int) -> bool:
    """Whether blocks that nobody held in a step would surely have done for one more request."""
    memory, ahead = serving.memory, serving.lookahead
    reserved = memory.lookahead == "reserved"
    need = -(-(first["prompt_tokens"] + (ahead + 1) * reserved) // memory.block_tokens)
    # Admission leaves what rows may need in this step. Where they hold it already it is in use.
    if not (reserved and step["decoding_requests"]):
        need += held * (-(-(ahead + 1) // memory.block_tokens) + 1)
    return all(need <= total - step["target_blocks"] for total in limits(serving))


LAWS = (
    rows_fit_the_slots,
    the_token_budget_is_kept,
    reading_alone_is_alone,
    patience_is_kept,
    first_come_first_served,
    queues_are_as_long_as_told,
    nobody_waits_who_could_be_admitted,
)
