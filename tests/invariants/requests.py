"""Requests: who comes, and how each ends."""

from __future__ import annotations

from itertools import pairwise

from simspec.claims.serving.laws import Row, every_request_ends_once
from simspec.serving.config import Serving
from tests.invariants.life import Life, Stay


def requests_in_are_requests_out(life: Life) -> list[str]:
    """M1: none is lost and none is twice, in the counters and in the table."""
    return every_request_ends_once(life.lived)


def tables_are_as_declared(life: Life) -> list[str]:
    """Whoever reads the files relies on types, ranges and keys."""
    return life.undeclared


def a_second_run_is_the_same(life: Life) -> list[str]:
    """M5: same seed, same tables, whether several steps are computed at once and emissions kept or not."""
    return life.changed


def what_was_sent_is_what_came(life: Life) -> list[str]:
    """Sizes, sessions and, in an open loop, instants are the workload's own, whatever the engine does."""
    case, found = life.case, []
    for number, row in life.by_number.items():
        session = case.sessions[number] if case.sessions else -1
        whose = {session} if session >= 0 else set(range(case.clients)) or {None}
        size = row["prompt_tokens"], row["output_tokens"]
        if size != case.sizes[number] or row["session"] not in whose:
            found.append(
                f"request {number} came as {size}, session {row['session']}; sent {case.sizes[number]}"
            )
        if not case.clients and row["arrived_at_ns"] != case.instants[number]:
            found.append(f"request {number} came at {row['arrived_at_ns']}, not {case.instants[number]}")
    return found


def clients_wait_for_their_answers(life: Life) -> list[str]:
    """In a closed loop every end is followed, a pause later, by the next request of the list: no other."""
    case = life.case
    if not case.clients:
        return []
    came = [row["arrived_at_ns"] for row in life.by_number.values()]
    answers = [row["ended_at_ns"] for row in life.requests if row["outcome"] != "unfinished"]
    due = [0] * case.clients + sorted(at + case.think_ns for at in answers)
    if case.until is not None:
        due = [at for at in due if at < case.until]
    due = due[: len(case.sizes)]
    found = [] if came == due else [f"clients sent at {came}, their answers say {due}"]
    free: dict[int, int] = {}
    for number, row in life.by_number.items():
        if case.sessions and case.sessions[number] >= 0:
            return found  # then the table does not say which client it was
        if free.get(row["session"], 0) != row["arrived_at_ns"]:
            found.append(f"request {number} of client {row['session']}, which is free at {free}")
        free[row["session"]] = row["ended_at_ns"] + case.think_ns
    return found


def ends_are_earned(life: Life) -> list[str]:
    """Each way to end has its own marks, and no request has another's."""
    found = []
    for number, row in life.by_number.items():
        how, over, produced = row["outcome"], row["ended_at_ns"], row["produced_tokens"]
        admitted, first = row["admitted_at_ns"], row["first_token_at_ns"]
        wrong = {
            "more tokens than asked for": produced > row["output_tokens"],
            "finished, and not all tokens": (how == "finished") != (produced == row["output_tokens"]),
            "a first token, and no tokens": (first is None) != (produced == 0),
            "tokens without a place": produced > 0 and admitted is None,
            "work without a place": admitted is None
            and any(row[name] for name in ("passes", "drafted_tokens", "preemptions", "discarded_tokens")),
            "withdrawn with a place": how == "timed_out" and admitted is not None,
            "rejected later than it came": how == "rejected"
            and over != row["arrived_at_ns"]
            and _stays(life),
            "rejected with a place": how == "rejected" and admitted is not None and _stays(life),
            "unfinished before the end": how == "unfinished" and over != life.ended_at,
            "unfinished without an end": how == "unfinished" and life.case.until is None,
            "over after the end": over > life.ended_at,
        }
        found += [f"request {number}, {how}: {what}" for what, broken in wrong.items() if broken]
    return found


def _stays(life: Life) -> bool:
    """Whether requests meet the door of one engine only."""
    return life.calm and not life.apart


def requests_are_told_as_they_end(life: Life) -> list[str]:
    """The table is written as requests end: who reads a part of it has all that ended until then."""
    ends = [row["ended_at_ns"] for row in life.requests]
    return [f"an end at {b} is told after one at {a}" for a, b in pairwise(ends) if b < a]


def rejections_have_a_reason(life: Life) -> list[str]:
    """Rejected is who could never be served, or finds the queue full: nobody else, and all of those.

    How long a queue was is known between bounds: who has lost its place may wait in it or not.
    """
    if not life.calm:
        return []
    found = []
    entries = range(life.decoders, len(life.cluster.engines)) if life.apart else range(life.decoders)
    for number, row in life.by_number.items():
        if row["outcome"] == "rejected":
            handed = row["first_token_at_ns"] is not None
            doors = range(life.decoders) if handed else entries
            if not any(_may_reject(life, door, row, handed) for door in doors):
                found.append(f"request {number} is rejected without a reason")
    for door, stays in life.stays.items():
        limit = life.cluster.engines[door].queue_limit
        for stay in stays:
            row = stay.request
            if not fits_alone(
                life.cluster.engines[door], row, 1 if door >= life.decoders else row["output_tokens"]
            ):
                found.append(f"request {row['request_id']} could never be served in {door}, which took it")
            if stay.entry and limit is not None and (n := len(_queued(life, door, row, sure=True))) >= limit:
                found.append(f"request {row['request_id']} is taken in {door} where {n} wait, limit {limit}")
    return found


def _may_reject(life: Life, door: int, row: Row, handed: bool) -> bool:
    serving = life.cluster.engines[door]
    limit = None if handed else serving.queue_limit
    full = limit is not None and len(_queued(life, door, row, sure=False)) >= limit
    return full or not fits_alone(serving, row, 1 if door >= life.decoders else row["output_tokens"])


def _queued(life: Life, door: int, row: Row, *, sure: bool) -> list[Stay]:
    """Who waited, surely or perhaps, in an engine that reads prompts when a request came."""
    at, number = row["arrived_at_ns"], row["request_id"]
    before = [s for s in life.stays[door] if s.entry and s.request["request_id"] < number]
    if sure:
        return [s for s in before if not s.admitted(at - 1) and s.until > at]
    return [s for s in before if s.until >= at and (not s.admitted(at - 1) or s.request["preemptions"])]


def fits_alone(serving: Serving, row: Row, output: int) -> bool:
    """Whether an engine could hold a request to its end, with room for its longest draft."""
    need = -(-(row["prompt_tokens"] + output + serving.lookahead) // serving.memory.block_tokens)
    return all(need <= total for total in limits(serving))


def limits(serving: Serving) -> list[int]:
    """Blocks of each cache that has a limit; every request holds as many in all of them."""
    memory = serving.memory
    own = [memory.drafter_blocks, *(blocks for _, blocks in memory.middle_blocks)]
    found = [memory.target_blocks, *(own if serving.speculation is not None else ())]
    return [total for total in found if total is not None]


LAWS = (
    requests_in_are_requests_out,
    tables_are_as_declared,
    a_second_run_is_the_same,
    what_was_sent_is_what_came,
    clients_wait_for_their_answers,
    ends_are_earned,
    requests_are_told_as_they_end,
    rejections_have_a_reason,
)
