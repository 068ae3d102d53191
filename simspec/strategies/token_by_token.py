"""Scenarios decoded for real, token by token: what replay of their traces is held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simspec.speculation.cycle import AskDraft, AskWords, Cycle, cycle
from simspec.speculation.lengths import Decision, Floats, LengthRule, View
from simspec.speculation.schedulers import ChainScheduler, Fixed, Past, Schedule
from simspec.speculation.verify import Block, GreedyJudge
from simspec.strategies.made_up_models import EOS, MadeUpModels
from simspec.strategies.scenarios import Scenario, made


@dataclass(frozen=True)
class Lived:
    """One cycle of real decoding: counts in the order of ``COUNTED``, and the tokens that it added.

    ``chosen`` is the schedule that it took, an index.
    """

    counts: tuple[int, ...]
    emitted: tuple[int, ...]
    chosen: int = 0


COUNTED = ("drafted", "submitted", "width", "accepted", "emitted")


def decode(scenario: Scenario, prompt: int, seconds: Floats | None = None) -> list[Lived]:
    """Decode a prompt with the scenario's chain token by token, driven through the rules of a cycle.

    What replay is held against: no trace is looked at, the models are asked.

    Args:
        seconds: what rules that weigh cost are told, by place in the text and length, (L, D + 1).
    """
    schedules = (Schedule(scenario.chain, scenario.rule),)
    return decode_scheduled(made(scenario.setting), prompt, schedules, Fixed(), seconds)


def decode_scheduled(
    models: MadeUpModels,
    prompt: int,
    schedules: Sequence[Schedule],
    scheduler: ChainScheduler,
    seconds: Floats | None = None,
) -> list[Lived]:
    """The same where a scheduler picks each cycle's schedule; a rule's state stays with its schedule."""
    setting = models.setting
    history, found = list(models.prompts[prompt]), []
    past, states = Past(prompt, 0), {}
    while past.emitted_tokens < setting.output_tokens and not (past.emitted_tokens and history[-1] == EOS):
        produced, chosen = past.emitted_tokens, scheduler.choose(past, len(schedules))
        chain, rule = schedules[chosen].chain, schedules[chosen].rule
        if chosen not in states:
            states[chosen] = np.zeros(1) if rule is None else rule.begin(1)
        decided = Decision(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
        steps = cycle(chain, GreedyJudge(), setting.output_tokens - produced, [EOS])
        answer: Any = None
        while True:
            try:
                ask = steps.send(answer)
            except StopIteration as stop:
                done: Cycle = stop.value
                break
            if isinstance(ask, AskDraft) and rule is not None and chain.drafter is not None:
                tokens, sure = models.draft(chain.drafter, history, min(ask.most, setting.block_length))
                priced = np.ones((1, setting.block_length + 1)) if seconds is None else seconds[[produced]]
                decided = _carried_out(rule, sure, setting.block_length, priced, states[chosen])
                answer = Block(np.array(tokens[: decided.submitted[0]], dtype=np.int32))
            elif isinstance(ask, AskWords):
                answer = models.greedy(chain.levels[ask.level], history, ask.block.tolist())
            else:
                answer = None
        if rule is not None:
            states[chosen] = rule.observe(states[chosen], decided, np.array([done.kept]))
        emitted = done.emitted.tolist()
        history = history + emitted
        past.chosen.append(chosen)
        past.submitted.append(int(decided.submitted[0]))
        past.kept.append(done.kept)
        past = replace(past, emitted_tokens=produced + len(emitted))
        counts = (decided.drafted[0], decided.submitted[0], done.offered[-1] + 1, done.accepted, len(emitted))
        found.append(Lived(tuple(map(int, counts)), tuple(emitted), chosen))
    return found


def _carried_out(rule: LengthRule, sure: list[float], depth: int, seconds: Floats, state: Floats) -> Decision:
    """What a rule decides on a block with these confidences, cut to what there is."""
    padded = np.zeros((1, depth))
    padded[0, : len(sure)] = sure
    limit = np.array([len(sure)])
    decided = rule.decide(View(padded, limit, seconds), state)
    drafted = np.minimum(decided.drafted, limit)
    return Decision(drafted, np.minimum(decided.submitted, drafted))
