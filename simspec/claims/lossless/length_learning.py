"""Length rules that learn from earlier cycles, under rejection sampling (L16i)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.lossless.chance import (
    LOSSLESS,
    Model,
    OneByOne,
    State,
    arrays,
    difference,
    joint,
    play,
    submitting,
)
from simspec.claims.lossless.length_cases import EVEN, HALVES, PAIR, UNEVEN, Case
from simspec.speculation.lengths import G4, Decision, View
from simspec.speculation.verify import Luck, RejectionJudge
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


def _learned(again: bool) -> Callable[[Learning], Outcome]:
    """With the simulator's own G4; ``again``: a cycle that accepts nothing is once thrown away."""

    def rule(learning: Learning) -> Outcome:
        case = learning.case
        g4 = G4(learning.first, learning.up, learning.down, learning.longest)
        models: list[Model] = [arrays(case.target)] * 2

        def step(luck: Luck, text: Text, state: State, room: int) -> tuple[Text, State]:
            before = np.array([state], dtype=np.float64)
            view = View(np.zeros((1, room)), np.array([room - 1]), np.ones((1, room + 1)))
            length = int(g4.decide(view, before).submitted[0])
            draft = submitting(lambda tokens, rows: len(tokens), case.drafter.place, luck, length)
            done = play(PAIR, RejectionJudge(luck), models, draft, text, room)
            if again and len(done.block) and not done.kept:
                done = play(PAIR, RejectionJudge(luck), models, draft, text, room)
            carried = Decision(np.array([len(done.block)]), np.array([len(done.block)]))
            after = g4.observe(before, carried, np.array([done.kept]))
            return tuple(done.emitted.tolist()), float(after[0])

        parted = difference(joint(step, case.want, float(learning.first)), case.own)
        return against(*case.lines(), *parted) if parted else None

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
    for values in product(HALVES, repeat=3):
        for target in (UNEVEN, EVEN)[: level + 1]:
            yield Learning(1, 1, 1, 2, Case(None, 2, 4, OneByOne(Table(2, 1, values)), target))


L16I_STATEMENT = Statement(
    words=(
        "A rule that learns from how many drafts were accepted in earlier cycles (G4: longer after full "
        "acceptance, shorter after a rejection) is lossless"
    ),
    formula=LOSSLESS,
    rule=_learned(again=False),
    over=(
        "all drafters over 2 tokens that see the last one, in halves, two targets, texts of 4; random "
        "models that see up to 2 tokens, steps of 1 and 2"
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
    ),
)

CLAIMS = (L16I,)
