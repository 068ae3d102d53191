"""Length rules that learn from earlier cycles, under rejection sampling (L16i)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement
from simspec.claims.lossless.chance import LOSSLESS, State, compared
from simspec.claims.lossless.cycles import MakeJudge, Model, OneByOne, Rule, arrays, play, submitting
from simspec.claims.lossless.faulty_judges import hidden
from simspec.claims.lossless.length_cases import EVEN, HALVES, PAIR, UNEVEN, Case
from simspec.claims.lossless.luck import EveryLuck
from simspec.speculation.lengths import G4, Decision, View
from simspec.speculation.verify import RejectionJudge
from simspec.strategies.models import Table, Text, distribution_levels

# L16i


@dataclass(frozen=True)
class Learning:
    """G4's rule: ``up`` more after a block that was accepted whole, ``down`` less after a rejection."""

    first: int
    up: int
    down: int
    longest: int
    case: Case

    def line(self) -> str:
        return (
            f"G4 begins with {self.first} drafts, goes up by {self.up} and down by {self.down}, to "
            f"{self.longest} at most"
        )


def _learned(*, again: bool = False, judged: MakeJudge = RejectionJudge) -> Callable[[Learning], Outcome]:
    """With the simulator's own G4; ``again``: a cycle that accepts nothing is once thrown away."""
    whole = Rule(lambda tokens, rows: len(tokens))

    def rule(learning: Learning) -> Outcome:
        case = learning.case
        g4 = G4(learning.first, learning.up, learning.down, learning.longest)
        models: list[Model] = [arrays(case.target)] * 2

        def step(luck: EveryLuck, text: Text, state: State, room: int) -> tuple[Text, State]:
            before = np.array([state], dtype=np.float64)
            view = View(np.zeros((1, room)), np.array([room - 1]), np.ones((1, room + 1)))
            length = int(g4.decide(view, before).submitted[0])
            draft = submitting(whole, case.drafter.place, luck, length)
            done = play(PAIR, judged(luck), models, draft, text, room, luck)
            if again and len(done.block) and not done.kept:
                luck.say(lambda: "nothing accepted: once more")
                done = play(PAIR, judged(luck), models, draft, text, room, luck)
            carried = Decision(np.array([len(done.block)]), np.array([len(done.block)]))
            after = g4.observe(before, carried, np.array([done.kept]))
            return tuple(done.emitted.tolist()), float(after[0])

        return compared(step, case.own, lambda: (*case.lines(), learning.line()), float(learning.first))

    return rule


@st.composite
def _learning(draw: st.DrawFn) -> Learning:
    drafter, target = draw(distribution_levels(2, 2, draw(st.integers(0, 2))))
    first, up, down = (draw(st.integers(1, 2)) for _ in range(3))
    longest = draw(st.integers(2, 3))
    return Learning(
        first, up, down, longest, Case(None, longest, draw(st.integers(3, 4)), OneByOne(drafter), target)
    )


def _every_learning(level: int) -> Iterator[Learning]:
    for q in HALVES:
        yield Learning(3, 1, 1, 3, Case(None, 3, 4, OneByOne(Table(2, 0, (q,))), EVEN))
    for values in product(HALVES, repeat=3):
        for target in (UNEVEN, EVEN)[: level + 1]:
            yield Learning(1, 1, 1, 2, Case(None, 2, 4, OneByOne(Table(2, 1, values)), target))


L16I_STATEMENT = Statement(
    words=(
        "A rule that learns from how many drafts were accepted in earlier cycles (G4: longer after full "
        "acceptance, shorter after a rejection) is lossless"
    ),
    formula=LOSSLESS,
    rule=_learned(),
    over=(
        "all drafters over 2 tokens that see the last one, in halves, two targets, texts of 4, blocks of 1 "
        "and 2; three without memory, blocks of 3 and less; random models that see up to 2 tokens, steps of "
        "1 and 2"
    ),
    domain=_learning(),
    every=_every_learning,
    examples=60,
)
L16I = Claim(
    id="L16i",
    source="the G4-style baseline of LibraSpec (2608.08721), and every rule with a memory of acceptance",
    statement=L16I_STATEMENT,
    expected="holds",
    because=(
        "What was accepted in earlier cycles is settled before anything of this one is drawn. The text's "
        "next tokens are draws from p given all of that, so the length may depend on it."
    ),
    broken=(
        L16I_STATEMENT.but(
            "... also if a cycle in which nothing was accepted is thrown away and drafted once more",
            _learned(again=True),
        ),
        *hidden(L16I_STATEMENT, lambda judged: _learned(judged=judged)),
    ),
)

CLAIMS = (L16I,)
