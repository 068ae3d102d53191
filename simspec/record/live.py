"""A live request of a real decoding: its text so far, and the cycle that it is in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.record.decoded import DecodedCycle, NearTie, Settings
from simspec.record.drafting import Drafting
from simspec.speculation.cycle import AskDraft, AskWords, Cycle, CycleSteps, Tell, cycle
from simspec.speculation.lengths import Decision
from simspec.speculation.schedulers import Past, Schedule
from simspec.speculation.verify import GreedyJudge, RandomLuck, RejectionJudge, Tokens

Floats = NDArray[np.float64]


@dataclass
class Request:
    """Its cycle asks (``ask``), is answered, and is ``done``."""

    index: int
    prompt: Tokens
    past: Past
    generator: np.random.Generator
    text: Tokens = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    states: dict[int, float] = field(default_factory=dict)
    cycles: list[DecodedCycle] = field(default_factory=list)
    chosen: int = 0
    schedule: Schedule | None = None
    steps: CycleSteps | None = None
    ask: AskDraft | AskWords | None = None
    done: Cycle | None = None
    drafting: Drafting | None = None
    drafted: int = 0
    submitted: int = 0
    kept: int = 0
    widths: dict[str, int] = field(default_factory=dict)
    margin: float = float("inf")
    target_margin: Floats | None = None

    def begin(self, chosen: int, schedule: Schedule, settings: Settings, eos_ids: tuple[int, ...]) -> None:
        """Begin a cycle under a schedule, number ``chosen`` of several, up to its first question."""
        self.chosen, self.schedule = chosen, schedule
        judge = RejectionJudge(RandomLuck(self.generator)) if settings.sampling else GreedyJudge()
        room = settings.output_tokens - len(self.text)
        self.steps = cycle(schedule.chain, judge, room, eos_ids)
        self.drafting, self.widths, self.margin = None, {}, float("inf")
        self.drafted = self.submitted = self.kept = 0
        self.answer(None)

    def answer(self, answer: Any) -> None:
        """Hand an answer to the cycle and go on to its next question."""
        assert self.steps is not None
        try:
            ask = self.steps.send(answer)
            while isinstance(ask, Tell):
                self._tell(ask)
                ask = self.steps.send(None)
            self.ask = ask
        except StopIteration as stop:
            self.ask, self.done = None, stop.value

    def _tell(self, told: Tell) -> None:
        assert self.schedule is not None
        rule = self.schedule.rule
        if rule is None or self.drafting is None:
            return
        decision = Decision(np.array([len(self.drafting.block)]), np.array([told.submitted]))
        state = rule.observe(np.array([self.drafting.state]), decision, np.array([told.kept]))
        self.states[self.chosen] = float(state[0])

    def held_to(self, reference: Tokens, emitted: Tokens) -> tuple[Tokens, NearTie | None]:
        """What was emitted, up to and with the first token that the reference corrects; and that place."""
        expected = reference[len(self.text) :][: len(emitted)]
        differ = np.flatnonzero(emitted[: len(expected)] != expected)
        if not len(differ):
            return emitted, None
        place = int(differ[0])
        assert self.target_margin is not None
        tie = NearTie(self.index, len(self.text) + place, float(self.target_margin[place]))
        return expected[: place + 1], tie

    def log_cycle(self, done: Cycle, emitted: int) -> None:
        """Note a cycle that has ended, before its tokens are added to the text."""
        assert self.schedule is not None
        chain = self.schedule.chain
        self.cycles.append(
            DecodedCycle(
                schedule=self.chosen,
                position=len(self.text),
                drafted=self.drafted,
                lag=self.widths.get(chain.drafter, 0) if chain.drafter else 0,
                submitted=self.submitted,
                middle=tuple(self.widths.get(m, 0) for m in chain.intermediates),
                width=self.widths[chain.target],
                accepted=done.accepted,
                emitted=emitted,
                kept=done.kept,
                survived=done.survived,
                block=done.block,
                margin=self.margin,
            )
        )
