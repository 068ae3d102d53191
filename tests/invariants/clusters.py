"""Clusters: routing, failures, prompts that are read elsewhere, and drafters on their own devices."""

from __future__ import annotations

from itertools import islice, pairwise

from simspec.claims.serving.laws import PARTS
from simspec.serving.clock import nanoseconds
from tests.invariants.life import Life


def engines_are_those_there_are(life: Life) -> list[str]:
    """Every step and every request belongs to an engine, and who only reads prompts decodes nothing."""
    count = len(life.cluster.engines)
    found = [
        f"step {step['row']} in engine {step['replica']} of {count}: {step['decoding_requests']} rows"
        for step in life.steps
        if step["replica"] >= count or (step["replica"] >= life.decoders and step["decoding_requests"])
    ]
    for number, row in life.by_number.items():
        nowhere = row["replica"] is None and row["admitted_at_ns"] is not None and life.calm
        if nowhere or (row["replica"] or 0) >= count:
            found.append(f"request {number}, admitted at {row['admitted_at_ns']}, in engine {row['replica']}")
    return found


def requests_end_where_they_were(life: Life) -> list[str]:
    """A request ends in the engine that emitted its last token, unless that failed or handed it over."""
    found = []
    for number, row in life.by_number.items():
        turns = life.turns[number]
        if not turns or row["restarts"]:
            continue
        last = turns[-1].step["replica"]
        handed = last >= life.decoders and row["outcome"] != "finished"
        if last != row["replica"] and not handed:
            found.append(f"request {number} emits last in {last} and ends in {row['replica']}")
        if len({turn.step["replica"] for turn in turns[life.apart :]}) > 1:
            found.append(f"request {number} moves between engines, none of which failed")
    return found


def turns_are_taken(life: Life) -> list[str]:
    """Round-robin gives requests out in the order of numbers, as long as all are up."""
    if life.cluster.routing != "round-robin" or not life.calm:
        return []
    first = life.decoders if life.apart else 0
    count = len(life.cluster.engines) - first
    found = []
    for place, (number, row) in enumerate(life.by_number.items()):
        turns = life.turns[number]
        entry = turns[0].step["replica"] if turns else row["replica"]
        if entry is not None and entry != first + place % count:
            found.append(f"request {number} is in engine {entry}, the turn is {first + place % count}'s")
    return found


def the_least_loaded_is_chosen(life: Life) -> list[str]:
    """Nobody goes where more are than elsewhere; who leaves at that instant may be counted or not."""
    cluster = life.cluster
    if cluster.routing == "round-robin" or life.apart or not life.calm:
        return []
    found = []
    for number, row in life.by_number.items():
        if row["replica"] is None or (cluster.routing == "session-affine" and row["session"] is not None):
            continue
        at, load = row["arrived_at_ns"], {}
        for engine, stays in life.stays.items():
            before = [s for s in stays if s.request["request_id"] < number]
            load[engine] = sum(s.until > at for s in before), sum(s.until >= at for s in before)
        least, chosen = min(most for _, most in load.values()), load[row["replica"]][0]
        if chosen > least:
            found.append(f"request {number} goes to {row['replica']} where {chosen} are; elsewhere {least}")
    return found


def sessions_stay_together(life: Life) -> list[str]:
    """Session-affine routing moves no session while all replicas are up."""
    if life.cluster.routing != "session-affine" or not life.calm:
        return []
    seen: dict[tuple[int, bool], int] = {}
    found = []
    for number, row in life.by_number.items():
        session, turns = row["session"], life.turns[number]
        if session is None:
            continue
        places = {turn.step["replica"] for turn in turns} | ({row["replica"]} - {None})
        for place in places:
            home = seen.setdefault((session, place >= life.decoders), place)
            if home != place:
                found.append(f"request {number} of session {session} is in {place}, others in {home}")
    return found


def failures_are_those_that_were_to_come(life: Life) -> list[str]:
    """Outages are the configured ones from the first on, until nobody is left to be hit."""
    found = []
    for number in range(len(life.cluster.engines)):
        said = [(o["failed_at_ns"], o["back_at_ns"]) for o in life.outages if o["replica"] == number]
        due = list(islice(life.cluster.outages_of(number, life.case.seed), len(said)))
        if said != due:
            found.append(f"engine {number} fails at {said}, due {due}")
        over = max((row["ended_at_ns"] for row in life.requests), default=0)
        to_come = islice(life.cluster.outages_of(number, life.case.seed), len(said), len(said) + 1)
        if any(failed < over for failed, _ in to_come):
            found.append(f"engine {number} does not fail when it should before {over}")
    return found


def nothing_happens_in_an_engine_that_is_down(life: Life) -> list[str]:
    """A step that would end at a failure or later does not happen, and none begins before the return."""
    found = []
    for out in life.outages:
        failed, back, began = out["failed_at_ns"], out["back_at_ns"], out["step_began_at_ns"]
        if (began is None) != (out["batch_requests"] == 0) or (began or 0) > failed:
            found.append(f"{out}: a step is lost where somebody is in a batch")
        for step in life.by_replica[out["replica"]]:
            start, end = step["started_at_ns"], life.ends[step["row"]]
            if not (end < failed or start >= back) or (began is not None and began < end and start < failed):
                found.append(f"step {step['row']} from {start} to {end}, in {out}")
    return found


def whoever_is_hit_is_counted(life: Life) -> list[str]:
    """Requests under which a replica failed are those that it had: each restarts, or is lost."""
    cluster = life.cluster
    hit = sum(out["batch_requests"] + out["queued_requests"] for out in life.outages)
    restarts = sum(row["restarts"] for row in life.requests)
    lost = sum(row["outcome"] == "lost" for row in life.requests)
    told = lost if cluster.on_failure == "lost" else restarts
    found = [] if told == hit else [f"{hit} are hit, {restarts} restarts, {lost} lost"]
    for number, row in life.by_number.items():
        again, gone = row["restarts"], row["outcome"] == "lost"
        if cluster.on_failure == "lost":
            right = again == 0
        else:
            right = gone == (again > cluster.retries) and again <= cluster.retries + 1
        if gone:
            right &= any(out["failed_at_ns"] == row["ended_at_ns"] for out in life.outages)
        if not right:
            found.append(f"request {number}, {row['outcome']}, restarts {again} times of {cluster.retries}")
    return found


def caches_take_their_time(life: Life) -> list[str]:
    """Whoever is handed over decodes no sooner than its cache can be there."""
    found = []
    for number, turns in life.turns.items():
        for turn, then in pairwise(turns):
            if turn.step["replica"] < life.decoders or then.step["replica"] >= life.decoders:
                continue
            cluster = life.cluster
            took = nanoseconds(cluster.transfer_seconds + turn.text * cluster.transfer_token_seconds)
            there = life.ends[turn.step["row"]] + took
            if then.step["started_at_ns"] < there:
                found.append(f"request {number} decodes from {then.step['started_at_ns']}, there at {there}")
    return found


def decoders_read_what_was_lost_alone(life: Life) -> list[str]:
    """Where others read prompts, a replica reads only the texts of those that it took the place of."""
    if not life.apart:
        return []
    return [
        f"step {step['row']} reads in {number}, which took nobody's place"
        for number, steps in life.by_replica.items()
        if number < life.decoders and not any(step["preempted_requests"] for step in steps)
        for step in steps
        if step["prefilling_requests"]
    ]


def drafters_devices_do_one_thing_at_a_time(life: Life) -> list[str]:
    """So many devices draft for so many steps at once; and the link is paid by every step that drafts."""
    told = life.cluster.drafter_device
    if told is None:
        return [f"step {s['row']} waits for no device" for s in life.steps if s["wait_ns"]]
    link, found, turns = 2 * nanoseconds(told.link_seconds), [], []
    for step in life.steps:
        draft, wait = (step[part] for part in (PARTS[0], "wait_ns"))
        if draft and not step["prefilling_requests"]:
            begin = step["started_at_ns"] + wait - link
            turns += [(begin, 1), (begin + draft, -1)]
            if wait < link:
                found.append(f"step {step['row']} waits {wait} and the link takes {link}")
    busy = 0
    for at, change in sorted(turns):
        busy += change
        if busy > told.devices:
            found.append(f"at {at} {busy} steps are drafted for by {told.devices} devices")
    return found


def devices_are_charged_what_they_do(life: Life) -> list[str]:
    """Devices have done what steps say of them that read nothing, and no more than there was time for."""
    told = life.cluster.drafter_device
    least = sum(step["draft_ns"] for step in life.steps if not step["prefilling_requests"])
    most = 0 if told is None else told.devices * life.ended_at
    right = least * (told is not None) <= life.drafters_ns <= most
    return [] if right else [f"devices have done {life.drafters_ns} ns, steps say {least}, there were {most}"]


LAWS = (
    engines_are_those_there_are,
    requests_end_where_they_were,
    turns_are_taken,
    the_least_loaded_is_chosen,
    sessions_stay_together,
    failures_are_those_that_were_to_come,
    nothing_happens_in_an_engine_that_is_down,
    whoever_is_hit_is_counted,
    caches_take_their_time,
    decoders_read_what_was_lost_alone,
    drafters_devices_do_one_thing_at_a_time,
    devices_are_charged_what_they_do,
)
