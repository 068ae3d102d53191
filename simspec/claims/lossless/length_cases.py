"""Length rules under rejection sampling: the cases of claims about their texts.

A drafter draws a block token by token; the rule says how many of the tokens are submitted to the target,
which weighs each against the distribution that it was drawn from. Lossless means, as for chains: for
every n, the joint distribution of the first n tokens of the emitted text is the target's own. All
draws and all refusals are enumerated, in fractions, through simspec.speculation.cycle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from simspec.claims.base import Outcome, Plot
from simspec.claims.lossless.chance import State, Step, Texts, compared, first_tokens, joint, own_joint
from simspec.claims.lossless.cycles import AtOnce, MakeJudge, Model, OneByOne, Rule, arrays, play, submitting
from simspec.claims.lossless.length_rules import AlgorithmOne, Costs, Threshold
from simspec.claims.lossless.luck import EveryLuck
from simspec.claims.plain import shown
from simspec.speculation.chains import Chain
from simspec.speculation.verify import RejectionJudge
from simspec.strategies.costs import convex_costs, rising_costs, staircase_costs
from simspec.strategies.distributions import all_distributions, normalised
from simspec.strategies.models import Chances, Table, Text, distribution_levels, next_distributions

PAIR = Chain(("the drafter", "the target"), "none")


@dataclass(frozen=True)
class Case:
    """A text of ``want`` tokens; ``length`` tokens are drafted a cycle and the rule submits some.

    Attributes:
        setting: what the rule goes by; None for rules that go by the block alone.
    """

    setting: Threshold | Costs | AlgorithmOne | None
    length: int
    want: int
    drafter: OneByOne | AtOnce
    target: Chances

    @property
    def own(self) -> Texts:
        return own_joint(arrays(self.target), self.target.vocabulary, self.want)

    def lines(self) -> tuple[str, ...]:
        drafted = "1 token" if self.length == 1 else f"at most {self.length} tokens"
        return (
            f"{drafted} drafted a cycle, a text of {self.want}; probabilities of token 0, 1, ...",
            *self.drafter.lines(),
            *self.target.lines("the target", shown),
            *(() if self.setting is None else (self.setting.line(),)),
        )


def step_of(case: Case, rule: Rule, judged: MakeJudge = RejectionJudge) -> Step:
    """A cycle whose length the rule settles."""
    models: list[Model] = [arrays(case.target)] * 2

    def step(luck: EveryLuck, text: Text, state: State, room: int) -> tuple[Text, State]:
        draft = submitting(rule, case.drafter.place, luck, case.length)
        return tuple(play(PAIR, judged(luck), models, draft, text, room, luck).emitted.tolist()), state

    return step


def texts_of(case: Case, rule: Rule, judged: MakeJudge = RejectionJudge) -> Texts:
    """The exact distribution of what comes out."""
    return joint(step_of(case, rule, judged), case.want)


# A rule from a case's setting.
MakeRule = Callable[[Any], Rule]


def lossless(made: MakeRule, judged: MakeJudge = RejectionJudge) -> Callable[[Case], Outcome]:
    return lambda case: compared(step_of(case, made(case.setting), judged), case.own, case.lines)


def first_text_tokens(made: MakeRule) -> Callable[[Case], Plot]:
    """The two distributions of the first token."""
    return lambda case: first_tokens(texts_of(case, made(case.setting)), case.own, case.target.vocabulary)


# Domains.

THRESHOLDS = tuple(Fraction(k, 8) for k in range(3, 9))


def _texts(draw: st.DrawFn, vocabulary: int, most: int) -> tuple[int, int]:
    """How many tokens are drafted, and how long the text is."""
    length = draw(st.integers(1, most if vocabulary == 2 else 2))
    return length, length + draw(st.integers(1, 2 if length == 1 else 1))


@st.composite
def cases_of(draw: st.DrawFn, setting: str, *, at_once: bool = False, most: int = 3) -> Case:
    vocabulary = draw(st.integers(2, 3))
    length, want = _texts(draw, vocabulary, most)
    sees = draw(st.integers(0, 2 if vocabulary == 2 else 1))
    drafter, target = draw(distribution_levels(2, vocabulary, sees))
    drafting: OneByOne | AtOnce = OneByOne(drafter)
    if at_once:
        later = [draw(next_distributions(vocabulary, sees)) for _ in range(length - 1)]
        drafting = AtOnce((drafter, *later))
    made: Any
    if setting == "threshold":
        made = Threshold(draw(st.sampled_from(THRESHOLDS)))
    elif setting == "libraspec":
        alpha = draw(st.sampled_from([Fraction(1), Fraction(6, 5), Fraction(3, 2), Fraction(2)]))
        made = AlgorithmOne(alpha, draw(st.integers(1, 3)), draw(st.integers(2, 4)))
    else:
        curves = {"rising": rising_costs, "convex": convex_costs, "staircase": staircase_costs}
        made = Costs(draw(curves[setting](length)))
    return Case(made, length, want, drafting, target)


HALVES = tuple(all_distributions(2, 2))
THIRDS = tuple(all_distributions(2, 3))
EVEN, UNEVEN = (Table(2, 0, (normalised(w),)) for w in ((1, 1), (3, 1)))
