"""Chains with rejection sampling: which keep the target's distribution (S5, S5b, S5c, S31 to S35).

Lossless means: for every n, the joint distribution of the first n tokens of the emitted text is the
target's own, prod p(x_i | x_1 .. x_{i-1}). Every outcome of every draw and of every refusal is
enumerated with its weight, in fractions, through the cycle that the decoder of real models follows
(simspec.speculation.cycle and verify).

p = the target's distribution, q1 = the drafter's, q2 = an intermediate's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Plot, Statement, against
from simspec.claims.chance import (
    LOSSLESS,
    State,
    Texts,
    arrays,
    beginnings,
    difference,
    drawn,
    every,
    first_tokens,
    joint,
    own_joint,
    play,
)
from simspec.claims.plain import number, shown
from simspec.speculation.chains import Chain, Semantics
from simspec.speculation.verify import Block, Judge, Luck, Probs, RejectionJudge, Settled, proposal
from simspec.strategies.distributions import Distribution, all_distributions, normalised, overlap
from simspec.strategies.models import Chances, Table, Text, all_next_distributions, distribution_levels

MakeJudge = Callable[[Luck], Judge]


@dataclass(frozen=True)
class Case:
    """A text of ``want`` tokens by a chain; the drafter draws ``length`` tokens a cycle.

    Attributes:
        models: distributions after each text, drafter first, target last.
        collect: for nested chains, tokens that each intermediate collects.
    """

    semantics: Semantics
    length: int
    want: int
    models: tuple[Chances, ...]
    collect: tuple[int, ...] = ()

    @property
    def chain(self) -> Chain:
        names = tuple(f"M{i}" for i in range(1, len(self.models) + 1))
        return Chain(names, self.semantics, self.collect)

    @property
    def own(self) -> Texts:
        """The target's own texts."""
        return own_joint(arrays(self.models[-1]), self.models[-1].vocabulary, self.want)

    def lines(self) -> tuple[str, ...]:
        names = [f"M{i}" for i in range(1, len(self.models) + 1)]
        names[0], names[-1] = f"{names[0]} (drafter)", f"{names[-1]} (target)"
        spoken = [model.lines(name, shown) for name, model in zip(names, self.models, strict=True)]
        tokens = "1 token" if self.length == 1 else f"{self.length} tokens"
        return (
            f"{self.semantics}, {tokens} drafted a cycle, a text of {self.want}; probabilities of token 0, "
            "1, ...",
            *(line for s in spoken for line in s),
        )


def texts_of(case: Case, judged: MakeJudge = RejectionJudge) -> Texts:
    """The exact distribution of what comes out."""
    models = [arrays(model) for model in case.models]
    chain = case.chain

    def step(luck: Luck, text: Text, state: State, room: int) -> tuple[Text, State]:
        done = play(chain, judged(luck), models, drawn(models[0], luck, case.length), text, room)
        return tuple(done.emitted.tolist()), state

    return joint(step, case.want)


def _lossless(judged: MakeJudge = RejectionJudge) -> Callable[[Case], Outcome]:
    def rule(case: Case) -> Outcome:
        parted = difference(texts_of(case, judged), case.own)
        return against(*case.lines(), *parted) if parted else None

    return rule


# Domains.

_ZERO, _ONE, _EVEN = (normalised(w) for w in ((1, 0), (0, 1), (1, 1)))


def _kind(semantics: Semantics, levels: int) -> tuple[Semantics, tuple[int, ...]]:
    """The semantics of a chain of so many levels, and what a nested one collects.

    A level that collects n asks the one below it for n - 1, and one that collects a single token for
    none: 2, 3, .. from below is the least for which the drafter drafts.
    """
    if levels == 2:
        return "none", ()
    return semantics, tuple(range(2, levels)) if semantics == "nested" else ()


def _least(semantics: Semantics, levels: int) -> int:
    """The shortest text for which the drafter drafts."""
    return levels if semantics == "nested" else 2


def _all(semantics: Semantics, levels: int, sees: int, parts: int, length: int, want: int) -> Iterator[Case]:
    """Every choice of models over 2 tokens with probabilities in multiples of 1/n, n up to ``parts``."""
    kind, collect = _kind(semantics, levels)
    for models in product(all_next_distributions(2, sees, parts), repeat=levels):
        yield Case(kind, length, want, models, collect)


def _remembering() -> Iterator[tuple[Chances, ...]]:
    """Drafter and intermediate begin evenly and then look at the last token; the target is always even.

    The smallest models in which survival at a place says something about the token before it.
    """
    tables = [Table(2, 1, (_EVEN, *after)) for after in product(all_distributions(2, 2), repeat=2)]
    for below in product(tables, repeat=2):
        yield (*below, Table(2, 0, (_EVEN,)))


def _every(semantics: Semantics) -> Callable[[int], Iterator[Case]]:
    def cases(level: int) -> Iterator[Case]:
        shortest = _least(semantics, 3)
        yield from _all(semantics, 3, 0, 2, 1, shortest)
        yield from _all(semantics, 3, 0, 2, 2, 3)
        if level > 0:
            yield from _all(semantics, 3, 0, 3, 1, shortest)
            yield from _all(semantics, 2, 0, 4, 2, 3)
            yield from _all(semantics, 4, 0, 2, 1, _least(semantics, 4))
            kind, collect = _kind(semantics, 3)
            yield from (Case(kind, 2, 3, models, collect) for models in _remembering())
        if level > 1:
            yield from _all(semantics, 2, 1, 2, 1, 2)
            yield from _all(semantics, 3, 0, 4, 2, 3)

    return cases


@st.composite
def _cases(draw: st.DrawFn, semantics: Semantics, least: int = 3, most: int = 4) -> Case:
    levels = draw(st.integers(least, most))
    vocabulary = draw(st.integers(2, 3)) if levels < 4 else 2
    kind, collect = _kind(semantics, levels)
    # Wide vocabularies and deep chains have many outcomes: shorter texts there.
    shortest = _least(kind, levels)
    want = draw(st.integers(shortest, max(shortest, 3 if vocabulary == 2 else 2)))
    models = draw(distribution_levels(levels, vocabulary, draw(st.integers(0, 2))))
    return Case(kind, draw(st.integers(1, 2)), want, models, collect)


def _over(semantics: str) -> str:
    return (
        f"{semantics}: all models over 2 tokens without memory, probabilities in halves (2 to 4 levels), "
        "thirds (3 levels) and quarters (2 levels), blocks of 1 and 2, texts of 2 to 4; 81 chains of 3 that "
        "look at the last token; random ones over 2 and 3 tokens that see up to 2; all luck enumerated for "
        "each"
    )


# Judges with a fault that people make.


class _Fresh(RejectionJudge):
    """Draws from p after a refusal, not from (p - q)+."""

    def settle(self, block: Block, words: Probs) -> Settled:
        right = super().settle(block, words)
        if right.accepted == len(block):
            return right
        own = self.luck.pick(words[right.accepted])
        return Settled(
            right.accepted,
            right.survivors,
            own,
            Block(np.append(right.survivors.tokens, own).astype(np.int32), right.owned.probs),
        )


class _Sure(RejectionJudge):
    """Accepts where p(x) >= q(x), without luck."""

    def settle(self, block: Block, words: Probs) -> Settled:
        return RejectionJudge(_NoLuck(self.luck)).settle(block, words)


class _NoLuck:
    def __init__(self, luck: Luck) -> None:
        self.luck = luck

    def happens(self, part: Fraction, whole: Fraction) -> bool:
        return part >= whole

    def pick(self, probs: Probs) -> int:
        return self.luck.pick(probs)


class _AsDrafted(RejectionJudge):
    """Hands on survivors as if they were still draws from what the block was drawn from."""

    def settle(self, block: Block, words: Probs) -> Settled:
        right = super().settle(block, words)
        return Settled(right.accepted, block.first(right.accepted), right.own, right.owned)


class _AsVerified(RejectionJudge):
    """Hands on survivors as if they were draws from the verifier."""

    def settle(self, block: Block, words: Probs) -> Settled:
        right = super().settle(block, words)
        survivors = Block(right.survivors.tokens, words[: right.accepted] if right.accepted else None)
        return Settled(right.accepted, survivors, right.own, right.owned)


class _OwnAsDrafted(RejectionJudge):
    """Hands on its text, own token included, as if its accepted part were draws from the drafter."""

    def settle(self, block: Block, words: Probs) -> Settled:
        right = super().settle(block, words)
        n = right.accepted
        rows = [proposal(block, i, words[i]) for i in range(n)] + [words[n]]
        return Settled(n, right.survivors, right.own, Block(right.owned.tokens, np.array(rows)))


def _first_tokens(judged: MakeJudge) -> Callable[[Case], Plot]:
    """The two distributions of the first token."""
    return lambda case: first_tokens(texts_of(case, judged), case.own, case.models[-1].vocabulary)


# S5

_INDUCTION = (
    "One place: x drawn from q is let through with min(1, p/q), which gives min(p, q); a refusal, of "
    "probability 1 - sum min(p, q), draws from (p - q)+ over the same number. Together: min(p, q) + (p - "
    "q)+ = p, given all tokens before. By induction along the text every token is a draw from p."
)

S5_STATEMENT = Statement(
    words=(
        "With rejection sampling at each level a pair or a funnel-replace chain is lossless: the joint "
        "distribution of the emitted text's first n tokens is the target's, for every n"
    ),
    formula=LOSSLESS,
    rule=_lossless(),
    over=_over("pairs and funnel-replace"),
    domain=_cases("funnel-replace", 2),
    every=_every("funnel-replace"),
    examples=100,
)
S5 = Claim(
    id="S5",
    source=(
        "Leviathan et al. (2211.17192) Thm 1 for a pair; SpecRouter (2505.07680) with three and more levels"
    ),
    statement=S5_STATEMENT,
    expected="holds",
    because=(
        f"{_INDUCTION} An intermediate's accepted tokens with its own one after them are thus draws from q2, "
        "whatever drafted them, and q2 is what the next level weighs them against. That the block's length "
        "is random does no harm: it says which places are drafted, and is settled at each place by the "
        "tokens before it."
    ),
    broken=(
        S5_STATEMENT.but("... also if a refusal is followed by a draw from p itself", _lossless(_Fresh)),
        S5_STATEMENT.but("... also if a token is let through exactly where p(x) >= q(x)", _lossless(_Sure)),
        S5_STATEMENT.but(
            "... also if the target weighs what the intermediate accepted against the drafter's distribution",
            _lossless(_OwnAsDrafted),
        ),
    ),
)

# S5b, S5c


def _memoryless(*weights: tuple[int, ...]) -> tuple[Chances, ...]:
    return tuple(Table(len(w), 0, (normalised(w),)) for w in weights)


S5C_STATEMENT = Statement(
    words=(
        "Funnel-truncate with rejection sampling is lossless if every verifier weighs what survived the "
        "one below it against min(q1, q2) / sum min(q1, q2)"
    ),
    formula=LOSSLESS,
    rule=_lossless(),
    over=_over("funnel-truncate"),
    domain=_cases("funnel-truncate"),
    every=_every("funnel-truncate"),
    examples=100,
)
S5C = Claim(
    id="S5c",
    source="repair of S5b; chains of SpecRouter (2505.07680)",
    statement=S5C_STATEMENT,
    expected="holds",
    because=(
        "Place i survives with probability b = sum min(q1, q2), given the tokens before it, and a survivor "
        "is then distributed as min(q1, q2) / b. Whether place i is offered to the target is settled by "
        "the tokens before it and by luck that is independent of which token survived. So the target sees "
        "an honest draw from min(q1, q2) / b, or nothing and draws from p itself: p either way, and the "
        "induction of S5 goes through. With more levels the same holds of min(q1, q2) / b in the place of "
        "q1."
    ),
    broken=(
        S5C_STATEMENT.but("... if it weighs it against the intermediate's q2", _lossless(_AsVerified)),
        S5C_STATEMENT.but("... if it weighs it against the drafter's q1", _lossless(_AsDrafted)),
        S5C_STATEMENT.but("... also if a refusal is followed by a draw from p itself", _lossless(_Fresh)),
    ),
)
S5B = Claim(
    id="S5b",
    source="the plain reading of SpecRouter's (2505.07680) chains in sampling mode",
    statement=S5C_STATEMENT.but(
        "Funnel-truncate with rejection sampling is lossless if the target weighs what survived against the "
        "distribution it was drafted from, q1",
        _lossless(_AsDrafted),
    ),
    expected="refuted",
    because=(
        "What survives the intermediate is no longer a draw from q1: tokens that q2 dislikes are gone. "
        "Where p/q1 >= 1 for all that survive, the target passes on the intermediate's bias as it is."
    ),
    pinned=Case("funnel-truncate", 1, 2, _memoryless((1, 1), (1, 0), (1, 1))),
    repaired=S5C_STATEMENT,
    plot=_first_tokens(_AsDrafted),
)

# S31, S32: acting on the number that survived


@dataclass(frozen=True)
class Acting:
    """A funnel-truncate chain of three that hands ``handed[s]`` of s survivors to the target."""

    handed: tuple[int, ...]
    case: Case


class _Handing:
    """Cuts what the intermediate lets through by how much that was. One for each cycle."""

    def __init__(self, luck: Luck, handed: tuple[int, ...]) -> None:
        self.judge, self.handed, self.below = RejectionJudge(luck), handed, True

    def settle(self, block: Block, words: Probs) -> Settled:
        right = self.judge.settle(block, words)
        # The intermediate is the first to be asked, unless nothing was drafted; and none of 0 is 0.
        if not self.below:
            return right
        self.below = False
        n = self.handed[right.accepted] if len(block) else right.accepted
        return Settled(n, right.survivors.first(n), right.own, right.owned)


def _acted(acting: Acting) -> Outcome:
    def judged(luck: Luck) -> Judge:
        return _Handing(luck, acting.handed)

    parted = difference(texts_of(acting.case, judged), acting.case.own)
    if not parted:
        return None
    told = ", ".join(f"{n} of {s}" for s, n in enumerate(acting.handed))
    return against(*acting.case.lines(), f"of the survivors the target is handed {told}", *parted)


def _rules(length: int) -> Iterator[tuple[int, ...]]:
    """Every way to hand on some of 0 .. ``length`` survivors."""
    yield from product(*(range(s + 1) for s in range(length + 1)))


def _is_cut(handed: tuple[int, ...]) -> bool:
    return any(handed == tuple(min(s, c) for s in range(len(handed))) for c in range(len(handed)))


@st.composite
def _acting(draw: st.DrawFn, *, cuts: bool = False) -> Acting:
    length = draw(st.integers(1, 2))
    handed = tuple(draw(st.integers(0, s)) for s in range(length + 1))
    if cuts:
        most = draw(st.integers(0, length))
        handed = tuple(min(s, most) for s in range(length + 1))
    models = draw(distribution_levels(3, 2, draw(st.integers(0, 1))))
    return Acting(handed, Case("funnel-truncate", length, length + 1, models))


def _every_acting(cuts: bool) -> Callable[[int], Iterator[Acting]]:
    def cases(level: int) -> Iterator[Acting]:
        rules = [handed for handed in _rules(2) if not cuts or _is_cut(handed)]
        for models in _remembering():
            for handed in rules[: None if level else 2]:
                yield Acting(handed, Case("funnel-truncate", 2, 3, models))

    return cases


# What follows a 0 survives for certain, what follows a 1 is refused: survival tells which token came before.
_TELLING = (
    Table(2, 1, (_EVEN, _EVEN, _ZERO)),
    Table(2, 1, (_EVEN, _EVEN, _ONE)),
    Table(2, 0, (_EVEN,)),
)

S31_CUTS = Statement(
    words="It stays lossless if the survivors are cut to a number that was fixed beforehand, min(s, c)",
    formula=LOSSLESS,
    rule=_acted,
    over=(
        "81 chains that look at the last token, blocks of 2, every such cut; random ones over 2 tokens, "
        "blocks of 1 and 2"
    ),
    domain=_acting(cuts=True),
    every=_every_acting(cuts=True),
    examples=50,
)
S31 = Claim(
    id="S31",
    source="S5c, where anything between intermediate and target acts on the surviving length",
    statement=Statement(
        words=(
            "With the corrected proposal funnel-truncate stays lossless whatever is made of the number s "
            "of survivors, such as to verify them only where enough survived"
        ),
        formula=LOSSLESS,
        rule=_acted,
        over=(
            "81 chains that look at the last token, blocks of 2, any number handed on for each s; random "
            "ones over 2 tokens, blocks of 1 and 2"
        ),
        domain=_acting(),
        every=_every_acting(cuts=False),
    ),
    expected="refuted",
    because=(
        "That place 2 survived says something about the token at place 1, if the models' overlap there "
        "depends on it. Looking at s before place 1 is verified therefore picks among its tokens."
    ),
    pinned=Acting(
        (0, 0, 1),
        Case(
            "funnel-truncate",
            2,
            3,
            (
                Table(2, 1, (_EVEN, _ZERO, _ZERO)),
                Table(2, 1, (_EVEN, _ZERO, _ONE)),
                Table(2, 0, (_EVEN,)),
            ),
        ),
    ),
    repaired=S31_CUTS,
    first_look=(
        "Not anything that acts on the surviving length breaks it: a cut to a fixed number of survivors does "
        "not. Everything else does (S32)."
    ),
)


def _told(safe: Callable[[tuple[int, ...]], bool]) -> Callable[[tuple[int, ...]], Outcome]:
    """Whether ``safe`` tells the rules that lose nothing from those that do, by models that tell."""

    def rule(handed: tuple[int, ...]) -> Outcome:
        length = len(handed) - 1
        found = _acted(Acting(handed, Case("funnel-truncate", length, length + 1, _TELLING)))
        if (found is None) == safe(handed):
            return None
        told = ", ".join(f"{n} of {s}" for s, n in enumerate(handed))
        return against(f"handed on: {told}", "lossless" if found is None else "not lossless")

    return rule


S32_STATEMENT = Statement(
    words=(
        "A rule that hands the target f(s) of s survivors is lossless for all models if and only if f(s) = "
        "min(s, c) for some c"
    ),
    formula=f"{LOSSLESS}  <=>  f(s) = min(s, c)",
    rule=_told(_is_cut),
    over=(
        "all 30 rules for blocks of 2 and 3, against models whose survival at a place tells the token "
        "before it"
    ),
    every=lambda level: (handed for length in (2, 3) for handed in _rules(length)),
)
S32 = Claim(
    id="S32",
    source="new here; the limit of S5c",
    statement=S32_STATEMENT,
    expected="holds",
    because=(
        "If: place i is offered exactly where i <= c and it survived, so S5c's reason stands. Only if: for "
        "another f there is a place i <= s, t with f(s) >= i > f(t); offered at s and not at t, it is "
        "offered depending on which later places survived. In the models used here a place survives for "
        "certain after a 0 and never after a 1, and the first place always does; so the token at i, which "
        "comes out even, is picked by what came after it. For blocks of 1 both rules are cuts."
    ),
    broken=(
        S32_STATEMENT.but(
            "... if and only if f never falls", _told(lambda f: list(f) == sorted(f)), formula=""
        ),
        S32_STATEMENT.but(
            "... if and only if f(s) is all of the survivors or none",
            _told(lambda f: all(n in (0, s) for s, n in enumerate(f))),
            formula="",
        ),
    ),
)

# S33: nested chains


def _uncollected(case: Case) -> Outcome:
    return _lossless(_OwnAsDrafted)(case)


S33_STATEMENT = Statement(
    words=(
        "Nested chains with rejection sampling at each level are lossless: what a level collects over its "
        "inner rounds are draws of its own, and the level above weighs them as such"
    ),
    formula=LOSSLESS,
    rule=_lossless(),
    over=_over("nested"),
    domain=_cases("nested"),
    every=_every("nested"),
    examples=100,
)
S33 = Claim(
    id="S33",
    source="CS-Drafting (2312.11462), vertical cascade, in sampling mode",
    statement=S33_STATEMENT,
    expected="holds",
    because=(
        "By S5 applied to the inner chain, its text of any length is distributed as the intermediate's "
        "own; so it is an honest draft from q2, and S5 for a pair does the rest. Rounds end when enough "
        "tokens are collected: a number, whatever the tokens are."
    ),
    broken=(
        S33_STATEMENT.but(
            "... also if the target weighs what the intermediate accepted against the drafter", _uncollected
        ),
        S33_STATEMENT.but("... also if a refusal is followed by a draw from p itself", _lossless(_Fresh)),
    ),
)

# S34: early-emit


@st.composite
def _twins(draw: st.DrawFn) -> Case:
    """Early-emit chains whose intermediate is the target itself."""
    drafter, target = draw(distribution_levels(2, draw(st.integers(2, 3)), 0))
    return Case("early-emit", 1, 2, (drafter, target, target))


@st.composite
def _early(draw: st.DrawFn) -> Case:
    size = draw(st.integers(2, 3))
    return Case("early-emit", 1, 2, draw(distribution_levels(3, size, draw(st.integers(0, 1)))))


def _every_early(level: int) -> Iterator[Case]:
    return _all("early-emit", 3, 0, 3 + level, 1, 2)


def _first_of_early(share: Callable[[Fraction], Fraction]) -> Callable[[Case], Outcome]:
    """P(first token = x) = min(q1, q2)(x) + share(b) p(x)."""

    def rule(case: Case) -> Outcome:
        q1, q2, p = (model.after(()) for model in case.models)
        rest = share(overlap(q1, q2))
        found = beginnings(texts_of(case), 1)
        for x in range(len(p)):
            wanted = min(q1[x], q2[x]) + rest * p[x]
            if found.get((x,), Fraction(0)) != wanted:
                return against(
                    *case.lines(), f"P(first = {x}) is {found.get((x,), Fraction(0))}, not {wanted}"
                )
        return None

    return rule


S34 = Claim(
    id="S34",
    source=(
        "the reading of SpecRouter (2505.07680) in which an intermediate's verdict is emitted; S4b in "
        "sampling mode"
    ),
    statement=Statement(
        words=(
            "An early-emit chain is lossless in sampling mode if its intermediate is the target itself, q2 "
            "= p"
        ),
        formula=LOSSLESS,
        rule=_lossless(),
        over="random drafters and targets over 2 and 3 tokens without memory",
        domain=_twins(),
    ),
    expected="refuted",
    because=(
        "Survivors are draws from min(q1, p) / b and go out unseen, while the token after a cut is drawn "
        "from p and not from (p - q1)+: what the drafter says too rarely is never made up for. Under "
        "greedy decoding the same chain is the target's text (S4b)."
    ),
    pinned=Case("early-emit", 1, 2, _memoryless((1, 0), (1, 1), (1, 1))),
    repaired=Statement(
        words=(
            "With one token drafted, an early-emit chain's first token has the distribution min(q1, q2) + "
            "(1 - b) p with b = sum min(q1, q2): right only where survivors happen to be draws from p"
        ),
        formula="P(x_1) = min(q1, q2)(x_1) + (1 - b) p(x_1)",
        rule=_first_of_early(lambda b: 1 - b),
        over="all models over 2 tokens without memory, thirds and quarters; random ones over 2 and 3 tokens",
        domain=_early(),
        every=_every_early,
        examples=100,
    ),
    plot=_first_tokens(RejectionJudge),
)

# S35: what a level costs in sampling mode


def _accepted(case: Case) -> Fraction:
    """Probability that the first cycle's single draft reaches the text."""
    models = [arrays(model) for model in case.models]

    def accepted(luck: Luck) -> int:
        draft = drawn(models[0], luck, case.length)
        return play(case.chain, RejectionJudge(luck), models, draft, (), case.want).accepted

    return every(accepted).get(1, Fraction(0))


def _chance(case: Case) -> tuple[Fraction, Fraction]:
    pair = Case("none", 1, 2, (case.models[0], case.models[-1]))
    return _accepted(case), _accepted(pair)


def _no_more(case: Case) -> Outcome:
    chain, pair = _chance(case)
    q1, q2, p = (model.after(()) for model in case.models)
    b = overlap(q1, q2)
    closed = sum((min(x, y, b * z) for x, y, z in zip(q1, q2, p, strict=True)), Fraction(0))
    if chain == closed <= pair:
        return None
    return against(*case.lines(), f"accepted in the chain {number(chain)}, in the pair {number(pair)}")


def _min_of_three(case: Case) -> Outcome:
    chain, _ = _chance(case)
    q: tuple[Distribution, ...] = tuple(model.after(()) for model in case.models)
    least = sum((min(column) for column in zip(*q, strict=True)), Fraction(0))
    return (
        None if chain == least else against(*case.lines(), f"accepted {number(chain)}, not {number(least)}")
    )


def _as_product(case: Case) -> Outcome:
    chain, _ = _chance(case)
    q1, q2, p = (model.after(()) for model in case.models)
    wanted = overlap(q1, q2) * overlap(q2, p)
    return (
        None if chain == wanted else against(*case.lines(), f"accepted {number(chain)}, not {number(wanted)}")
    )


S35_STATEMENT = Statement(
    words=(
        "Under lossless sampling funnel-truncate accepts a draft with probability sum min(q1, q2, b p), "
        "b = sum min(q1, q2): never more than the pair without the intermediate"
    ),
    formula="sum_x min(q1, q2, b p) <= sum_x min(q1, p)",
    rule=_no_more,
    over=(
        "all models over 2 tokens without memory, thirds and quarters; random ones over 2 and 3 tokens; a "
        "single draft"
    ),
    domain=_early().map(lambda case: Case("funnel-truncate", 1, 2, case.models)),
    every=lambda level: _all("funnel-truncate", 3, 0, 3 + level, 1, 2),
    examples=100,
)
S35 = Claim(
    id="S35",
    source=(
        "new here; S6 in sampling mode, and what chain acceptance in SpecRouter's (2505.07680) Eq. 7 "
        "stands for"
    ),
    statement=S35_STATEMENT,
    expected="holds",
    because=(
        "A draft survives with b and is then a draw from min(q1, q2) / b, which the target accepts with "
        "probability sum min(min(q1, q2) / b, p); the product is sum min(q1, q2, b p). With b <= 1 each "
        "term is at most min(q1, p)."
    ),
    broken=(
        S35_STATEMENT.but("It is sum min(q1, q2, p)", _min_of_three, formula="sum_x min(q1, q2, p)"),
        S35_STATEMENT.but(
            "It is the product of the adjacent acceptances", _as_product, formula="alpha_12 alpha_23"
        ),
    ),
)

CLAIMS = (S5, S5B, S5C, S31, S32, S33, S34, S35)
