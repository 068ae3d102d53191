"""Luck: what is accepted is what the source says, wherever and whenever it is asked."""

from __future__ import annotations

import numpy as np

from simspec.serving.chain_verdicts import ChainSource
from simspec.serving.config import Speculation
from simspec.serving.verdicts import PLACES_A_STREAM, Mean, Rates, Recorded, Source
from simspec.streams import stream
from tests.invariants.life import Life, Turn
from tests.reference_serving_parts import luck


def luck_is_in_the_place(life: Life) -> list[str]:
    """M34: what is accepted is what the source says of the place in the text, whoever schedules."""
    found, known = [], {}
    for step, turns in zip(life.steps, life.turns_of, strict=True):
        speculation = life.engine(step).speculation
        if speculation is None or not step["drafted_tokens"]:
            continue
        source, exact = (
            _source(speculation, step["drafter"]),
            step["drafted_tokens"] == step["submitted_tokens"],
        )
        for turn in turns:
            number, drafted = turn.request["request_id"], turn.row["drafted_tokens"]
            if isinstance(source, Mean) or not drafted:
                continue
            if isinstance(source, ChainSource):
                right = _up_the_chain(source, life.case.seed, turn)
                if turn.row["accepted_tokens"] != right:
                    found.append(f"step {step['row']}: request {number}, of {turn.row}, its luck is {right}")
                continue
            key = number, id(source)
            if key not in known:
                known[key] = _runs(source, life.case.seed, number, turn.request["output_tokens"])
            right, said = min(int(known[key][turn.before]), drafted), turn.row["accepted_tokens"]
            if said != right if exact else said > right:
                found.append(
                    f"step {step['row']}, place {turn.before} of request {number}: {said} of {drafted} "
                    f"accepted, its luck is {right}"
                )
    return found


def _source(speculation: Speculation, drafter: int) -> Source:
    return (speculation.source, *(other.source for other in speculation.others))[drafter]


def _up_the_chain(source: ChainSource, seed: int, turn: Turn) -> int:
    """What the target accepts of what comes up to it, a request being alone."""
    alone, output = source.open(1, seed), turn.request["output_tokens"]
    alone.seat(0, turn.request["request_id"], turn.before, output)
    drafted, room = np.array([turn.row["drafted_tokens"]]), np.array([output - turn.before - 1])
    return int(alone.settled(*alone.handed(drafted, room))[0])


def _runs(source: Source, seed: int, number: int, output: int) -> np.ndarray:
    """Leading drafts that are right at each place of a request's answer."""
    if isinstance(source, Rates):
        drawn = luck(seed, number).random(output)
        return (np.asarray(source.survival)[:, None] > drawn).sum(axis=0)
    assert isinstance(source, Recorded)
    group, member = divmod(number, PLACES_A_STREAM)
    random = stream(seed, "acceptance", "places", group)
    flat = random.integers(len(source.matched), size=PLACES_A_STREAM)[member]
    text = np.searchsorted(source.offsets, flat, side="right") - 1
    begin, end = source.offsets[text : text + 2]
    return source.matched[begin + (flat - begin + np.arange(output)) % (end - begin)]


def a_mean_is_kept_to_within_one(life: Life) -> list[str]:
    """A source that is a mean owes less than one draft at any time, whatever the lengths."""
    found = []
    for number, turns in life.turns.items():
        if life.by_number[number]["preemptions"] or not life.calm:
            continue
        owed = 0.0
        for turn in turns:
            speculation = life.engine(turn.step).speculation
            if speculation is None or turn.step["drafted_tokens"] != turn.step["submitted_tokens"]:
                break
            source = _source(speculation, turn.step["drafter"])
            if not isinstance(source, Mean) or speculation.others:
                break
            owed += sum(source.survival[: turn.row["drafted_tokens"]]) - turn.row["accepted_tokens"]
            if not -1.001 < owed < 1.001:
                found.append(f"request {number} is owed {owed} drafts in step {turn.step['row']}")
    return found


def what_is_sure_is_accepted(life: Life) -> list[str]:
    """M4: where acceptance is 1 by every measure all drafts are accepted, where it is 0 none."""
    found = []
    for step in life.steps:
        speculation = life.engine(step).speculation
        if speculation is None or not step["submitted_tokens"]:
            continue
        source = _source(speculation, step["drafter"])
        survival = getattr(source, "survival", (0.5,))
        for always, right in ((1.0, step["submitted_tokens"]), (0.0, 0)):
            if all(rate == always for rate in survival) and step["accepted_tokens"] != right:
                found.append(f"step {step['row']}: {step['accepted_tokens']} accepted, {right} are right")
    return found


LAWS = (luck_is_in_the_place, a_mean_is_kept_to_within_one, what_is_sure_is_accepted)
