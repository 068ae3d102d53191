"""Memory: KV blocks, who loses its place for want of them, and what is moved to the host."""

from __future__ import annotations

from simspec.serving.clock import nanoseconds
from simspec.serving.config import Serving
from tests.invariants.life import Life, Stay
from tests.invariants.requests import limits


def blocks_are_there(life: Life) -> list[str]:
    """M3: no more blocks are in use than there are, and never less than none."""
    found = []
    for step in life.steps:
        memory = life.engine(step).memory
        for kind, total in (("target", memory.target_blocks), ("drafter", memory.drafter_blocks)):
            used = step[f"{kind}_blocks"]
            if used < 0 or (total is not None and used > total):
                found.append(f"step {step['row']}: {used} of {total} blocks of the {kind} are in use")
    return found


def both_caches_hold_the_same_texts(life: Life) -> list[str]:
    """The drafter's cache, where it is counted, holds what the target's does."""
    return [
        f"step {step['row']}: {step['target_blocks']} blocks, {step['drafter_blocks']} of the drafter"
        for step in life.steps
        if step["drafter_blocks"] != (step["target_blocks"] if _own(life.engine(step)) else 0)
    ]


def _own(serving: Serving) -> bool:
    return serving.speculation is not None and serving.memory.drafter_blocks is not None


def texts_have_their_blocks(life: Life) -> list[str]:
    """M32: whoever emits in a step holds blocks for its text and its drafts, reserved or made."""
    found = []
    for step, turns in zip(life.steps, life.turns_of, strict=True):
        serving = life.engine(step)
        reserved = serving.memory.lookahead == "reserved"
        need = sum(
            _blocks(serving, turn.text + (serving.lookahead if reserved else turn.row["drafted_tokens"]))
            for turn in turns
        )
        if step["target_blocks"] < need:
            found.append(f"step {step['row']}: {step['target_blocks']} blocks, its rows need {need}")
    return found


def no_block_is_lost(life: Life) -> list[str]:
    """M32: no more blocks are in use than texts of those who can be there need, with the drafts of this step.

    Where lookahead is reserved: with their longest draft, and for a prompt the token after it.
    """
    found = []
    restarted = [row for row in life.requests if row["restarts"]]
    for number, steps in life.by_replica.items():
        serving = life.cluster.engines[number]
        reserved = serving.memory.lookahead == "reserved"
        for step in steps:
            at = step["started_at_ns"]
            drafted = {t.request["request_id"]: t.row["drafted_tokens"] for t in life.turns_of[step["row"]]}
            here = [s.request for s in life.stays[number] if _may_hold(s, at)]
            here += [row for row in restarted if row["arrived_at_ns"] <= at < row["ended_at_ns"]]
            most = 0
            for row in here:
                more = (
                    serving.lookahead + 1 if reserved else drafted.get(row["request_id"], 0) + _adds(serving)
                )
                most += _blocks(serving, row["prompt_tokens"] + life.had(row, at) + more)
            if step["target_blocks"] > most:
                found.append(f"step {step['row']}: {step['target_blocks']} blocks, texts need {most}")
    return found


def _adds(serving: Serving) -> bool:
    """Whether intermediates may add a token to what is drafted."""
    return any(links.replace for links in serving.chains)


def _may_hold(stay: Stay, at: int) -> bool:
    return stay.since <= at < stay.until and (stay.admitted(at) or not stay.entry)


def blocks_are_just_enough(life: Life) -> list[str]:
    """Where nobody has lost a place, what is in use is known to the block.

    A row holds its text and its longest draft, or the draft that it makes, once it decodes; a prompt that is
    read holds the token after these too. (Where reading is done alone, rows wait with what they had.)
    """
    found = []
    if not life.calm or life.apart or any(row["preemptions"] for row in life.requests):
        return []
    for step, turns in zip(life.steps, life.turns_of, strict=True):
        serving, at = life.engine(step), step["started_at_ns"]
        if not serving.mixed or _adds(serving):
            continue
        reserved, ahead = serving.memory.lookahead == "reserved", serving.lookahead
        drafted = {turn.request["request_id"]: turn.row["drafted_tokens"] for turn in turns}
        right = 0
        for stay in life.stays[step["replica"]]:
            if not _may_hold(stay, at):
                continue
            row, had = stay.request, life.had(stay.request, at)
            more = ahead + (not had) if reserved else drafted.get(row["request_id"], 0)
            right += _blocks(serving, row["prompt_tokens"] + had + more)
        if step["target_blocks"] != right:
            found.append(f"step {step['row']}: {step['target_blocks']} blocks, texts need {right}")
    return found


def _blocks(serving: Serving, tokens: int) -> int:
    return -(-tokens // serving.memory.block_tokens)


def places_are_lost_for_want_of_blocks(life: Life) -> list[str]:
    """Requests and steps count the same lost places, and without a limit on memory there are none."""
    found = [
        f"step {step['row']}: {step['preempted_requests']} lose their place, memory has no limit"
        for step in life.steps
        if step["preempted_requests"] and not limits(life.engine(step))
    ]
    steps = sum(step["preempted_requests"] for step in life.steps)
    requests = sum(row["preemptions"] for row in life.requests)
    cut = not life.calm or any(row["outcome"] == "unfinished" for row in life.requests)
    if steps > requests or (steps < requests and not cut):
        found.append(f"places lost: {steps} by steps, {requests} by requests")
    return found


def the_oldest_keeps_its_place(life: Life) -> list[str]:
    """The last admitted loses its place first, and one alone fits: whoever finds nobody there never does."""
    found = []
    for number, stays in life.stays.items():
        if not life.calm or life.apart:
            continue
        there = [s for s in stays if s.request["admitted_at_ns"] is not None]
        for place, stay in enumerate(there):
            at = stay.request["admitted_at_ns"]
            alone = not any(s.until > at for s in there[:place])
            if alone and stay.request["preemptions"]:
                found.append(
                    f"engine {number}: request {stay.request['request_id']} is the oldest and is lost"
                )
    return found


def what_is_moved_out_comes_back(life: Life) -> list[str]:
    """A swapped text comes back as it was: as many blocks go each way, and only where places are lost."""
    found = []
    for number, steps in life.by_replica.items():
        serving = life.cluster.engines[number]
        caches = 1 + _own(serving) + (len(serving.memory.middle_blocks) if serving.speculation else 0)
        block = nanoseconds(serving.memory.block_swap_seconds) * caches
        if not block or not life.calm or any(row["outcome"] == "unfinished" for row in life.requests):
            continue
        moved = [step["swap_ns"] // block for step in steps if step["swap_ns"]]
        lost = sum(step["preempted_requests"] for step in steps)
        # One that loses its place goes and comes; one that had not been read to its end does neither.
        once = lost == 1 and moved and moved != [moved[0]] * 2
        if (moved and not lost) or sum(moved) % 2 or once:
            found.append(f"engine {number}: {moved} blocks are moved for {lost} lost places")
    return found


LAWS = (
    blocks_are_there,
    both_caches_hold_the_same_texts,
    texts_have_their_blocks,
    no_block_is_lost,
    blocks_are_just_enough,
    places_are_lost_for_want_of_blocks,
    the_oldest_keeps_its_place,
    what_is_moved_out_comes_back,
)
