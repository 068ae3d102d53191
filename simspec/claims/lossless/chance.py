"""The exact distribution of a whole text, and whether it is the target's own.

A cycle of speculative sampling asks for luck a few times. Run with every possible luck in turn, it gives
the exact distribution of what it emits; cycles follow one another given the text alone, so the
distribution of a whole text follows cycle by cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from functools import partial
from itertools import product

from simspec.claims.base import Outcome, Plot, against
from simspec.claims.lossless.cycles import Model
from simspec.claims.lossless.luck import ONE, EveryLuck, every
from simspec.claims.lossless.story import ways_to
from simspec.strategies.models import Text

# The distribution of a text.
Texts = dict[Text, Fraction]
# What is known between cycles apart from the text, such as a length rule's state.
State = Hashable
# One cycle with some luck, given text, state and room: the tokens it emits and the state after it.
Step = Callable[[EveryLuck, Text, State, int], tuple[Text, State]]

# The exact notion of "lossless" under sampling.
LOSSLESS = "P(first n tokens = x_1 .. x_n) = prod p(x_i | x_1 .. x_{i-1}) for every n"


def _step(step: Step, text: Text, state: State, room: int, luck: EveryLuck) -> tuple[Text, State]:
    return step(luck, text, state, room)


def joint(step: Step, want: int, state: State = None) -> Texts:
    """The distribution of texts of ``want`` tokens made by cycles that begin with ``state``.

    A cycle's luck is its own, so what it does depends on the past through text and state alone.
    """
    at: list[dict[tuple[Text, State], Fraction]] = [{} for _ in range(want + 1)]
    at[0][(), state] = ONE
    for here in at[:want]:
        for (text, before), weight in here.items():
            room = want - len(text)
            for (emitted, after), chance in every(partial(_step, step, text, before, room)).items():
                longer = text + emitted
                there = at[len(longer)]
                there[longer, after] = there.get((longer, after), Fraction(0)) + weight * chance
    found: Texts = {}
    for (text, _), weight in at[want].items():
        found[text] = found.get(text, Fraction(0)) + weight
    return found


def own_joint(model: Model, vocabulary: int, want: int) -> Texts:
    """The distribution of a model's own texts: the product of its words along the text; no zeros."""
    found: Texts = {}
    for text in product(range(vocabulary), repeat=want):
        chance = ONE
        for i, token in enumerate(text):
            chance *= Fraction(model(text[:i])[token])
        if chance:
            found[text] = chance
    return found


def beginnings(texts: Texts, length: int) -> Texts:
    """The distribution of the first ``length`` tokens."""
    found: Texts = {}
    for text, weight in texts.items():
        found[text[:length]] = found.get(text[:length], Fraction(0)) + weight
    return found


def parting(found: Texts, truth: Texts) -> Text | None:
    """The first beginning whose probabilities differ, None where two distributions are the same.

    Shortest beginnings first, so that a reader sees the simplest of the probabilities that differ.
    """
    want = max(map(len, (*found, *truth)))
    for length in range(1, want + 1):
        here, there = beginnings(found, length), beginnings(truth, length)
        for text in sorted({*here, *there}):
            if here.get(text, Fraction(0)) != there.get(text, Fraction(0)):
                return text
    return None


def compared(
    step: Step,
    truth: Texts,
    setting: Callable[[], tuple[str, ...]],
    state: State = None,
    right: str = "the target's own text begins so with probability",
) -> Outcome:
    """Whether the texts that cycles make are distributed as ``truth``; else one beginning, worked through.

    Args:
        truth: texts that are all of one length.
        setting: the case in words.
        right: what ``truth`` is, for the last line.
    """
    want = len(next(iter(truth)))
    found = joint(step, want, state)
    begins = parting(found, truth)
    if begins is None:
        return None

    def run(luck: EveryLuck) -> Text:
        text: Text = ()
        held = state
        while len(text) < len(begins) and text == begins[: len(text)]:
            if text:
                luck.say(partial("the next cycle begins after {}".format, " ".join(map(str, text))))
            emitted, held = step(luck, text, held, want - len(text))
            text += emitted
        return text[: len(begins)]

    said = " ".join(map(str, begins))
    ours, theirs = (beginnings(texts, len(begins)).get(begins, Fraction(0)) for texts in (found, truth))
    return against(
        *setting(),
        f"the text begins with {said} in these ways:",
        *ways_to(run, begins),
        f"so it begins with {said} with probability {ours}; {right} {theirs}",
    )


def first_tokens(found: Texts, own: Texts, vocabulary: int) -> Plot:
    """The distributions of the first token: of what comes out and of the target."""
    ours, theirs = beginnings(found, 1), beginnings(own, 1)
    tokens = range(vocabulary)
    return Plot(
        "First token of the text",
        "bars",
        "token",
        "probability",
        tuple(map(str, tokens)),
        {
            "the target's own": tuple(float(theirs.get((t,), 0)) for t in tokens),
            "what comes out": tuple(float(ours.get((t,), 0)) for t in tokens),
        },
    )
