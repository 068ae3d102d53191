"""Which length rules keep rejection sampling lossless (L16 and its cases).

A drafter draws a block token by token; the rule says how many of the tokens are submitted to the target,
which weighs each against the distribution that it was drawn from. Lossless means, as for chains: for
every n, the joint distribution of the first n tokens of the emitted text is the target's own. All
draws and all refusals are enumerated, in fractions, through simspec.speculation.cycle.

A first stop is written here as a cut of the whole block: what is drafted beyond the cut is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import log2, prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Plot, Statement, against
from simspec.claims.chance import (
    LOSSLESS,
    AtOnce,
    Model,
    OneByOne,
    Rule,
    State,
    Texts,
    arrays,
    difference,
    first_tokens,
    joint,
    own_joint,
    play,
    submitting,
)
from simspec.claims.plain import shown
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import G4, Decision, LibraSpec, View
from simspec.speculation.verify import Block, Luck, Probs, RejectionJudge, Settled
from simspec.strategies.costs import Curve, convex_costs, rising_costs, staircase_costs
from simspec.strategies.distributions import Distribution, all_distributions, normalised
from simspec.strategies.models import (
    Chances,
    Table,
    Text,
    Tokens,
    distribution_levels,
    next_distributions,
    next_tokens,
)

PAIR = Chain(("drafter", "target"), "none")
_STOPS = "confidence stops (Kangaroo, SpecDec++, HF's assistant) under rejection sampling"


@dataclass(frozen=True)
class Case:
    """A text of ``want`` tokens; ``length`` tokens are drafted a cycle and the rule submits some.

    Attributes:
        setting: what the rule goes by: a threshold, or T(0) .. T(length).
    """

    setting: Any
    length: int
    want: int
    drafter: OneByOne | AtOnce
    target: Chances

    @property
    def own(self) -> Texts:
        return own_joint(arrays(self.target), self.target.vocabulary, self.want)

    def lines(self) -> tuple[str, ...]:
        tokens = "1 token" if self.length == 1 else f"{self.length} tokens"
        return (
            f"{tokens} drafted a cycle, a text of {self.want}; the rule's setting: {shown(self.setting)}; "
            "probabilities of token 0, 1, ...",
            *self.drafter.lines(),
            *self.target.lines("the target", shown),
        )


def texts_of(case: Case, rule: Rule) -> Texts:
    """The exact distribution of what comes out."""
    models: list[Model] = [arrays(case.target)] * 2

    def step(luck: Luck, text: Text, state: State, room: int) -> tuple[Text, State]:
        draft = submitting(rule, case.drafter.place, luck, case.length)
        return tuple(play(PAIR, RejectionJudge(luck), models, draft, text, room).emitted.tolist()), state

    return joint(step, case.want)


MakeRule = Callable[[Any], Rule]


def _lossless(made: MakeRule) -> Callable[[Case], Outcome]:
    def rule(case: Case) -> Outcome:
        parted = difference(texts_of(case, made(case.setting)), case.own)
        return against(*case.lines(), *parted) if parted else None

    return rule


def _first_tokens(made: MakeRule) -> Callable[[Case], Plot]:
    """The two distributions of the first token."""
    return lambda case: first_tokens(texts_of(case, made(case.setting)), case.own, case.target.vocabulary)


# Rules. Each is made from a threshold or a cost curve.


def stop_after(least: Fraction) -> Rule:
    """Submit up to the first token that was drawn with a probability below ``least``, it included."""

    def rule(tokens: Text, rows: Sequence[Distribution]) -> int:
        for i, (token, row) in enumerate(zip(tokens, rows, strict=True)):
            if row[token] < least:
                return i + 1
        return len(tokens)

    return rule


def stop_before(least: Fraction) -> Rule:
    """The same, but without that token."""

    def rule(tokens: Text, rows: Sequence[Distribution]) -> int:
        for i, (token, row) in enumerate(zip(tokens, rows, strict=True)):
            if row[token] < least:
                return i
        return len(tokens)

    return rule


def first_weak_top(least: Fraction) -> Rule:
    """Stop before the first place whose most probable token has less than ``least``."""

    def rule(tokens: Text, rows: Sequence[Distribution]) -> int:
        return next((i for i, row in enumerate(rows) if max(row) < least), len(tokens))

    return rule


def entropy(row: Distribution) -> float:
    """Shannon's, in bits. A float: it only says where to stop."""
    return -sum(float(x) * log2(x) for x in row if x)


def first_uncertain(least: Fraction) -> Rule:
    """Stop before the first place whose entropy is above 2 (1 - ``least``) bits."""

    def rule(tokens: Text, rows: Sequence[Distribution]) -> int:
        return next((i for i, row in enumerate(rows) if entropy(row) > 2 * (1 - least)), len(tokens))

    return rule


def best_length(confidence: Sequence[Fraction], seconds: Curve) -> int:
    """The length of most expected tokens a second: (1 + sum of products of confidences) / T.

    The least of equals.
    """
    rates = [Fraction(1) / seconds[0]]
    tokens = Fraction(1)
    for n in range(1, len(confidence) + 1):
        tokens += prod(confidence[:n], start=Fraction(1))
        rates.append(tokens / seconds[n])
    return rates.index(max(rates))


def scan_drawn(seconds: Curve) -> Rule:
    """Look at the whole block's drawn tokens and take the best length."""
    return lambda tokens, rows: best_length([row[t] for t, row in zip(tokens, rows, strict=True)], seconds)


def scan_top(seconds: Curve) -> Rule:
    """The same with each place's greatest probability for the confidence."""
    return lambda tokens, rows: best_length([max(row) for row in rows], seconds)


def libraspec(setting: tuple[Fraction, int, int]) -> Rule:
    """LibraSpec's Algorithm 1, the simulator's own code, on top-1 confidences; alpha, n and d_max given."""
    alpha, block, longest = setting
    algorithm = LibraSpec(float(alpha), block, longest)

    def rule(tokens: Text, rows: Sequence[Distribution]) -> int:
        n = len(tokens)
        confidence = np.array([[float(max(row)) for row in rows]])
        view = View(confidence.reshape(1, n), np.array([n]), np.ones((1, n + 1)))
        return min(n, int(algorithm.decide(view, algorithm.begin(1)).submitted[0]))

    return rule


# Domains.

THRESHOLDS = tuple(Fraction(k, 8) for k in range(3, 9))


def _texts(draw: st.DrawFn, vocabulary: int, most: int) -> tuple[int, int]:
    """How many tokens are drafted, and how long the text is."""
    length = draw(st.integers(1, most if vocabulary == 2 else 2))
    return length, length + draw(st.integers(1, 2 if length == 1 else 1))


@st.composite
def _cases(draw: st.DrawFn, setting: str, *, at_once: bool = False, most: int = 3) -> Case:
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
        made = draw(st.sampled_from(THRESHOLDS))
    elif setting == "libraspec":
        alpha = draw(st.sampled_from([Fraction(1), Fraction(6, 5), Fraction(3, 2), Fraction(2)]))
        made = (alpha, draw(st.integers(1, 3)), draw(st.integers(2, 4)))
    else:
        curves = {"rising": rising_costs, "convex": convex_costs, "staircase": staircase_costs}
        made = draw(curves[setting](length))
    return Case(made, length, want, drafting, target)


_HALVES = tuple(all_distributions(2, 2))
_THIRDS = tuple(all_distributions(2, 3))
_EVEN, _UNEVEN = (Table(2, 0, (normalised(w),)) for w in ((1, 1), (3, 1)))


def _every_threshold(level: int) -> Iterator[Case]:
    """Drafters that see the last token, blocks of 2; an even target, and one that is not."""
    for least in (Fraction(5, 8), Fraction(1))[: max(level, 1)]:
        for target in (_EVEN, _UNEVEN)[: level + 1]:
            for values in product(_THIRDS, repeat=3):
                yield Case(least, 2, 3, OneByOne(Table(2, 1, values)), target)


# A plain step, then one step up that any number of drafts shares, as where steps of 1 token and of 3 are
# compiled; and a cost that is charged for every draft.
_STEP: Curve = (Fraction(4), Fraction(7), Fraction(7))
_SLOPE: Curve = (Fraction(4), Fraction(5), Fraction(6))


def _every_scan(curves: Sequence[Curve]) -> Callable[[int], Iterator[Case]]:
    """Drafters that see the last token, blocks of 2."""

    def cases(level: int) -> Iterator[Case]:
        for curve in curves:
            for target in (_EVEN, _UNEVEN)[: level + 1]:
                for values in product(_THIRDS if level else _HALVES, repeat=3):
                    yield Case(curve, 2, 3, OneByOne(Table(2, 1, values)), target)

    return cases


def _every_block(level: int) -> Iterator[Case]:
    """Block drafters without memory, blocks of 2."""
    for curve in (_SLOPE, _STEP):
        for target in (_EVEN, _UNEVEN)[: level + 1]:
            for places in product(_THIRDS, repeat=2):
                yield Case(curve, 2, 3, AtOnce(tuple(Table(2, 0, (q,)) for q in places)), target)


def _every_libraspec(at_once: bool) -> Callable[[int], Iterator[Case]]:
    """Halves, blocks of 3: alpha 1, where a greatest probability of 1/2 is low enough for the rule to cut."""
    setting = (Fraction(1), 3, 4)

    def cases(level: int) -> Iterator[Case]:
        for values in product(_HALVES[::-1], repeat=3):
            drafter: OneByOne | AtOnce = OneByOne(Table(2, 1, values))
            if at_once:
                drafter = AtOnce(tuple(Table(2, 0, (q,)) for q in values))
            yield Case(setting, 3, 4, drafter, _UNEVEN)

    return cases


OVER_THRESHOLDS = (
    "all drafters over 2 tokens that see the last one, in halves and thirds, two targets, threshold 5/8, "
    "blocks of 2; random models over 2 and 3 tokens that see up to 2, thresholds 3/8 to 1, blocks of 1 to 3"
)
OVER_COSTS = "random models over 2 and 3 tokens that see up to 2, blocks of 1 to 3; cost curves: "

# L16a, L16b

L16A_STATEMENT = Statement(
    words=(
        "Stopping after the first token that was drawn with a low probability, and submitting that token "
        "too, is lossless"
    ),
    formula=LOSSLESS,
    rule=_lossless(stop_after),
    over=OVER_THRESHOLDS,
    domain=_cases("threshold"),
    every=_every_threshold,
    examples=60,
)
L16A = Claim(
    id="L16a",
    source=_STOPS,
    statement=L16A_STATEMENT,
    expected="holds",
    because=(
        "Whether place i is submitted depends on the probabilities of the tokens drawn before it: it is "
        "settled when its own token is drawn. So the token there is an honest draw from q, and L16's "
        "reason applies."
    ),
    broken=(L16A_STATEMENT.but("... and so is stopping before it", _lossless(stop_before)),),
)
L16B = Claim(
    id="L16b",
    source=_STOPS,
    statement=L16A_STATEMENT.but(
        "Stopping before the first token that was drawn with a low probability is lossless",
        _lossless(stop_before),
    ),
    expected="refuted",
    because=(
        "A weak token is never verified: it is dropped, and the target draws anew at its place. The "
        "drafter's strong tokens get a second chance there."
    ),
    pinned=Case(Fraction(3, 4), 1, 2, OneByOne(_UNEVEN), _EVEN),
    repaired=L16A_STATEMENT,
    plot=_first_tokens(stop_before),
)

# L16c, L16e, L16f

L16F_STATEMENT = Statement(
    words=(
        "With a block drafter, whose places do not see what is drawn at other places, a full scan over "
        "each place's greatest probability is lossless at any cost"
    ),
    formula=LOSSLESS,
    rule=_lossless(scan_top),
    over="all blocks of 2 over 2 tokens in halves and thirds, two costs, two targets; "
    + OVER_COSTS
    + "any that rise",
    domain=_cases("rising", at_once=True),
    every=_every_block,
    examples=100,
)
L16C = Claim(
    id="L16c",
    source="LibraSpec (2608.08721): q_i read as the probability of the token that was drawn",
    statement=Statement(
        words="Taking the best length for the drawn tokens' probabilities, over the whole block, is lossless",
        formula=LOSSLESS,
        rule=_lossless(scan_drawn),
        over=(
            "all drafters over 2 tokens that see the last one, in halves and thirds, two costs, two targets; "
            + OVER_COSTS
            + "any that rise"
        ),
        domain=_cases("rising"),
        every=_every_scan((_SLOPE, _STEP)),
    ),
    expected="refuted",
    because="Whether a token is submitted depends on which token it is, as in L16b.",
    pinned=Case((Fraction(2), Fraction(3)), 1, 2, OneByOne(_UNEVEN), _EVEN),
    repaired=L16F_STATEMENT,
    plot=_first_tokens(scan_drawn),
)
L16F = Claim(
    id="L16f",
    source="LibraSpec (2608.08721) with block-parallel drafters (DFlash, Fast-dLLM)",
    statement=L16F_STATEMENT,
    expected="holds",
    because=(
        "The greatest probability of each place of the block is known before anything is drawn, so the "
        "length is, too. Not so for blocks chained one after another: the second one's confidences see "
        "what the first drew."
    ),
    broken=(
        L16F_STATEMENT.but("... also over the drawn tokens' own probabilities", _lossless(scan_drawn)),
        L16F_STATEMENT.but(
            "... also with a drafter whose places see what was drawn before them",
            _lossless(scan_top),
            domain=_cases("staircase"),
            every=_every_scan((_STEP,)),
        ),
    ),
)

L16E = Claim(
    id="L16e",
    source="a full scan (L13) with padded or staircase cost, under rejection sampling",
    statement=Statement(
        words=(
            "With a drafter that goes token by token, a full scan over each place's greatest probability "
            "is lossless when the cost is a staircase"
        ),
        formula=LOSSLESS,
        rule=_lossless(scan_top),
        over=(
            "all drafters over 2 tokens that see the last one, in halves and thirds, where any number of "
            "drafts costs the same; " + OVER_COSTS + "staircases"
        ),
        domain=_cases("staircase"),
        every=_every_scan((_STEP,)),
    ),
    expected="refuted",
    because=(
        "At a step the first draft pays only if the second is good as well. How good the second is depends "
        "on which token the first is, so that first token is submitted or not depending on itself."
    ),
    pinned=Case(
        _STEP,
        2,
        3,
        OneByOne(Table(2, 1, (normalised((1, 1)), normalised((1, 0)), normalised((1, 1))))),
        _EVEN,
    ),
    repaired=Statement(
        words="It is lossless where the cost is convex: there a full scan stops where a first stop would",
        formula=LOSSLESS,
        rule=_lossless(scan_top),
        over="all drafters over 2 tokens that see the last one, in halves and thirds, one slope; "
        + OVER_COSTS
        + "convex ones",
        domain=_cases("convex"),
        every=_every_scan((_SLOPE,)),
        examples=60,
    ),
    plot=_first_tokens(scan_top),
)

# L16d


def _both_stops(case: Case) -> Outcome:
    return _lossless(first_weak_top)(case) or _lossless(first_uncertain)(case)


def _weak_itself(least: Fraction) -> Rule:
    """A stop by the greatest probability that also drops a drawn token which is not the greatest."""

    def rule(tokens: Text, rows: Sequence[Distribution]) -> int:
        stop = first_weak_top(least)(tokens, rows)
        return next((i for i in range(stop) if rows[i][tokens[i]] < max(rows[i])), stop)

    return rule


def _last_place(least: Fraction) -> Rule:
    """Submit all of the block if its last place is confident, nothing otherwise."""
    return lambda tokens, rows: len(tokens) if rows and max(rows[-1]) >= least else 0


L16D_STATEMENT = Statement(
    words=(
        "Stopping before the first place whose greatest probability is low, or whose entropy is high, is "
        "lossless"
    ),
    formula=LOSSLESS,
    rule=_both_stops,
    over=OVER_THRESHOLDS + "; entropies in floats, which only say where to stop",
    domain=_cases("threshold"),
    every=_every_threshold,
    examples=50,
)
L16D = Claim(
    id="L16d",
    source="stops by top-1 probability or entropy (SVIP, CaDDTree 2606.01813) under rejection sampling",
    statement=L16D_STATEMENT,
    expected="holds",
    because=(
        "A place's distribution is a function of the tokens before it, and so is any number made of it. A "
        "first stop looks at the places up to i, not beyond."
    ),
    broken=(
        L16D_STATEMENT.but(
            "... also if a token that is not its place's most probable one is dropped",
            _lossless(_weak_itself),
        ),
        L16D_STATEMENT.but("... also if the last place decides for the whole block", _lossless(_last_place)),
    ),
)

# L16g


@dataclass(frozen=True)
class Sure:
    """A greedy drafter and a length for each text: whatever a rule sees of the drafter, it comes to this.

    Attributes:
        drafter: its token after each text.
        lengths: how many it submits after each text.
    """

    want: int
    drafter: Tokens
    lengths: Tokens
    target: Chances

    def block(self, text: Text, most: int) -> Block:
        tokens: Text = ()
        for _ in range(min(self.lengths.after(text), most)):
            tokens += (self.drafter.after(text + tokens),)
        return Block(np.array(tokens, dtype=np.int32))

    def lines(self) -> tuple[str, ...]:
        return (
            f"a text of {self.want}; probabilities of token 0, 1, ...",
            *self.drafter.lines("the greedy drafter"),
            *self.lengths.lines("the length rule"),
            *self.target.lines("the target", shown),
        )


class _Compare:
    """Accept a draft where the target's own sample equals it; the first sample that does not is emitted."""

    def __init__(self, luck: Luck) -> None:
        self.luck = luck

    def settle(self, block: Block, words: Probs) -> Settled:
        accepted = 0
        own = self.luck.pick(words[0])
        while accepted < len(block) and own == block.tokens[accepted]:
            accepted += 1
            own = self.luck.pick(words[accepted])
        return _settled(block, accepted, own)


class _Again(_Compare):
    """The same, but where a sample differs another one is drawn and emitted."""

    def settle(self, block: Block, words: Probs) -> Settled:
        right = super().settle(block, words)
        return _settled(block, right.accepted, self.luck.pick(words[right.accepted]))


def _settled(block: Block, accepted: int, own: int) -> Settled:
    tokens = np.append(block.tokens[:accepted], own).astype(np.int32)
    return Settled(accepted, block.first(accepted), own, Block(tokens))


JudgeOf = type[RejectionJudge] | type[_Compare]


def _sure_texts(case: Sure, judged: JudgeOf) -> Texts:
    models: list[Model] = [arrays(case.target)] * 2

    def step(luck: Luck, text: Text, state: State, room: int) -> tuple[Text, State]:
        return tuple(play(PAIR, judged(luck), models, case.block, text, room).emitted.tolist()), state

    return joint(step, case.want)


def _sure(*judges: JudgeOf) -> Callable[[Sure], Outcome]:
    def rule(case: Sure) -> Outcome:
        own = own_joint(arrays(case.target), case.target.vocabulary, case.want)
        for judged in judges:
            parted = difference(_sure_texts(case, judged), own)
            if parted:
                return against(*case.lines(), *parted)
        return None

    return rule


@st.composite
def _sure_cases(draw: st.DrawFn) -> Sure:
    vocabulary, sees = draw(st.integers(2, 3)), draw(st.integers(0, 2))
    target = draw(next_distributions(vocabulary, sees))
    lengths = draw(next_tokens(4, 0)).values[0]
    by_text = draw(next_tokens(vocabulary, sees))
    table = Table(vocabulary, sees, tuple(lengths + n for n in by_text.values))
    return Sure(draw(st.integers(2, 4)), draw(next_tokens(vocabulary, sees)), table, target)


def _every_sure(level: int) -> Iterator[Sure]:
    """Drafter and lengths that see the last token; targets without memory."""
    for target in all_distributions(2, max(2, 1 + level)):
        for drafts in product(range(2), repeat=3):
            for lengths in product(range(3), repeat=3) if level else [(1, 0, 2), (2, 1, 1)]:
                drafter, table = Table(2, 1, drafts), Table(2, 1, lengths)
                yield Sure(3, drafter, table, Table(2, 0, (target,)))


L16G_STATEMENT = Statement(
    words=(
        "Drafts that are certain, accepted where the target's own sample equals them, are lossless under "
        "every length rule; accepting x with probability p(x) and else drawing from p without x does the "
        "same"
    ),
    formula=LOSSLESS,
    rule=_sure(_Compare, RejectionJudge),
    over=(
        "all greedy drafters over 2 tokens that see the last one, every length 0 to 2 after each text, "
        "targets in halves; random ones over 2 and 3 tokens, lengths to 5"
    ),
    domain=_sure_cases(),
    every=_every_sure,
    examples=100,
)
L16G = Claim(
    id="L16g",
    source=(
        "sample matching, as for look-ups and greedy drafts; Leviathan et al. (2211.17192) with q a point "
        "mass"
    ),
    statement=L16G_STATEMENT,
    expected="holds",
    because=(
        "Every emitted token is the target's own sample; drafts only say how many samples a pass takes. "
        "With greedy drafts nothing is drawn before the length is settled, so whatever a rule looks at is "
        "a function of the text."
    ),
    broken=(L16G_STATEMENT.but("... also if a sample that differs is drawn again", _sure(_Again)),),
)

# L16h

L16H = Claim(
    id="L16h",
    source="LibraSpec (2608.08721) Algorithm 1 at temperature above 0, top-1 confidences",
    statement=Statement(
        words=(
            "LibraSpec's Algorithm 1 keeps rejection sampling lossless for a drafter that goes token by "
            "token, with each place's greatest probability for its confidence"
        ),
        formula=LOSSLESS,
        rule=_lossless(libraspec),
        over=(
            "all drafters over 2 tokens that see the last one, in halves, alpha 1, n 3, d_max 4; random "
            "models over 2 and 3 tokens, alpha 1 to 2, n 1 to 3, d_max 2 to 4"
        ),
        domain=_cases("libraspec"),
        every=_every_libraspec(at_once=False),
    ),
    expected="refuted",
    because=(
        "It drafts a block and then cuts it by a minimum over sums to the block's end, so that confidences "
        "that were formed after a token was drawn decide whether that token is submitted. The alpha here "
        "is the paper's 2; with a vocabulary of thousands a greatest probability below 1/2 is nothing rare."
    ),
    pinned=Case(
        (Fraction(2), 3, 4),
        3,
        4,
        OneByOne(Table(3, 1, tuple(map(normalised, ((1, 1, 1), (1, 0, 0), (1, 1, 1), (1, 1, 1)))))),
        Table(3, 0, (normalised((1, 1, 1)),)),
    ),
    repaired=Statement(
        words="It does with a block drafter that fills the whole block in one forward",
        formula=LOSSLESS,
        rule=_lossless(libraspec),
        over=(
            "all blocks of 3 over 2 tokens in halves, alpha 1, n 3, d_max 4; random models over 2 and 3 "
            "tokens, alpha 1 to 2, n 1 to 3, d_max 2 to 4"
        ),
        domain=_cases("libraspec", at_once=True),
        every=_every_libraspec(at_once=True),
        examples=100,
    ),
)

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
    for values in product(_HALVES, repeat=3):
        for target in (_UNEVEN, _EVEN)[: level + 1]:
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

# L16: the criterion


@dataclass(frozen=True)
class Lengths:
    """A rule for two drafts over two tokens: how many are submitted of the blocks 00, 01, 10, 11."""

    submitted: tuple[int, ...]

    def of(self, tokens: Text) -> int:
        # A block that the text's end has cut to one token is left alone.
        return self.submitted[2 * tokens[0] + tokens[1]] if len(tokens) == 2 else len(tokens)


# Drafters that see the token before, and one that does not: enough to tell every unsafe rule.
_WITNESSES = tuple(
    (OneByOne(Table(2, 1, tuple(map(normalised, drafter)))), Table(2, 1, tuple(map(normalised, target))))
    for drafter, target in (
        (((1, 1), (1, 1), (1, 1)), ((1, 1), (1, 1), (1, 1))),
        (((1, 1), (1, 0), (0, 1)), ((1, 1), (1, 1), (1, 1))),
        (((1, 1), (3, 1), (1, 2)), ((2, 1), (1, 3), (1, 1))),
        (((2, 1), (1, 1), (1, 0)), ((1, 2), (2, 1), (1, 1))),
    )
)


def _by_tokens_before(rule: Lengths) -> bool:
    """Whether place 1 is submitted never depends on the block, and place 2 on the first token only."""
    first = {n >= 1 for n in rule.submitted}
    second = [{n >= 2 for n in rule.submitted[2 * token : 2 * token + 2]} for token in range(2)]
    return len(first) == 1 and all(len(one) == 1 for one in second)


def _by_tokens_to(rule: Lengths) -> bool:
    """The same with the place's own token among those that may settle it."""
    return all(len({n >= 1 for n in rule.submitted[2 * t : 2 * t + 2]}) == 1 for t in range(2))


def _by_nothing(rule: Lengths) -> bool:
    return len(set(rule.submitted)) == 1


def _tells(criterion: Callable[[Lengths], bool]) -> Callable[[Lengths], Outcome]:
    def rule(lengths: Lengths) -> Outcome:
        lost: tuple[str, ...] = ()
        for drafter, target in _WITNESSES:
            case = Case(None, 2, 3, drafter, target)
            parted = difference(texts_of(case, lambda tokens, rows: lengths.of(tokens)), case.own)
            if parted:
                lost = (*case.lines()[1:], *parted)
                break
        if criterion(lengths) == (not lost):
            return None
        blocks = ", ".join(
            f"{n} of {a}{b}" for n, (a, b) in zip(lengths.submitted, product(range(2), repeat=2), strict=True)
        )
        said = "safe" if criterion(lengths) else "unsafe"
        return against(f"submitted: {blocks}; called {said}", *(lost or ("lossless for all models tried",)))

    return rule


L16_STATEMENT = Statement(
    words=(
        "A length rule keeps rejection sampling lossless for all models if and only if whether place i is "
        "submitted is settled by the tokens before place i"
    ),
    formula=f"{LOSSLESS}  <=>  [submitted >= i] is a function of x_1 .. x_{{i-1}}",
    rule=_tells(_by_tokens_before),
    over="all 81 rules for two drafts over two tokens, each against four pairs of models",
    every=lambda level: (Lengths(submitted) for submitted in product(range(3), repeat=4)),
)
L16 = Claim(
    id="L16",
    source=(
        "rejection sampling (2211.17192) with any rule that reads a drafted block, such as LibraSpec's "
        "(2608.08721)"
    ),
    statement=L16_STATEMENT,
    expected="holds",
    because=(
        "If: take place i, reached with tokens x_1 .. x_{i-1} emitted. Whether its draft is submitted is "
        "settled by them (and by luck that was drawn before it or apart from it), so given that it is, the "
        "draft is an honest draw from q, and accepting with min(1, p/q), else drawing from (p - q)+, emits "
        "a draw from p (S5). Given that it is not, the target draws from p. p either way; by induction the "
        "joint distribution is the target's. What happened in earlier cycles is settled before, so rules "
        "that learn from accepted lengths are covered. Only if: each of the 76 other rules submits some "
        "place depending on the token at it or, through a later one that depends on it, on what comes "
        "after; tokens that are dropped are drawn anew from p, so the favoured one comes out too often. "
        "One of four small pairs of models shows it for each rule."
    ),
    broken=(
        L16_STATEMENT.but(
            "... is settled by the tokens up to and including place i", _tells(_by_tokens_to), formula=""
        ),
        L16_STATEMENT.but("... does not depend on any drawn token", _tells(_by_nothing), formula=""),
    ),
)

CLAIMS = (L16, L16A, L16B, L16C, L16D, L16E, L16F, L16G, L16H, L16I)
