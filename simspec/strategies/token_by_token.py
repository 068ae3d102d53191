"""Scenarios decoded for real, token by token: what replay of their traces is held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simspec.speculation.cycle import AskDraft, AskWords, Cycle, cycle
from simspec.speculation.lengths import Decision, Floats, LengthRule, View
from simspec.speculation.verify import Block, GreedyJudge
from simspec.strategies.made_up_models import EOS
from simspec.strategies.scenarios import Scenario, made


@dataclass(frozen=True)
class Lived:
    """One cycle of real decoding: counts in the order of ``COUNTED``, and the tokens that it added."""

    counts: tuple[int, ...]
    emitted: tuple[int, ...]


COUNTED = ("drafted", "submitted", "width", "accepted", "emitted")


def decode(scenario: Scenario, prompt: int, seconds: Floats | None = None) -> list[Lived]:
    """Decode a prompt with the scenario's chain token by token, driven through the rules of a cycle.

    What replay is held against: no trace is looked at, the models are asked.

    Args:
        seconds: what rules that weigh cost are told, by place in the text and length, (L, D + 1).
    """
    rule, chain, setting = scenario.rule, scenario.chain, scenario.setting
    synthetic = made(setting)
    history, found = list(synthetic.prompts[prompt]), []
    produced, state = 0, np.zeros(1) if rule is None else rule.begin(1)
    while produced < setting.output_tokens and not (produced and history[-1] == EOS):
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
                tokens, sure = synthetic.draft(chain.drafter, history, min(ask.most, setting.block_length))
                priced = np.ones((1, setting.block_length + 1)) if seconds is None else seconds[[produced]]
                decided = _carried_out(rule, sure, setting.block_length, priced, state)
                answer = Block(np.array(tokens[: decided.submitted[0]], dtype=np.int32))
            elif isinstance(ask, AskWords):
                answer = synthetic.greedy(chain.levels[ask.level], history, ask.block.tolist())
            else:
                answer = None
        if rule is not None:
            state = rule.observe(state, decided, np.array([done.kept]))
        emitted = done.emitted.tolist()
        history, produced = history + emitted, produced + len(emitted)
        counts = (decided.drafted[0], decided.submitted[0], done.offered[-1] + 1, done.accepted, len(emitted))
        found.append(Lived(tuple(map(int, counts)), tuple(emitted)))
    return found


def _carried_out(rule: LengthRule, sure: list[float], depth: int, seconds: Floats, state: Floats) -> Decision:
    """What a rule decides on a block with these confidences, cut to what there is."""
    padded = np.zeros((1, depth))
    padded[0, : len(sure)] = sure
    limit = np.array([len(sure)])
    decided = rule.decide(View(padded, limit, seconds), state)
    drafted = np.minimum(decided.drafted, limit)
    return Decision(drafted, np.minimum(decided.submitted, drafted))
