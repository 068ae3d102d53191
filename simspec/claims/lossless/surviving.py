"""What survives a truncating intermediate: acting on how much it is, its acceptance (S31, S32, S35).

p = the target's distribution, q1 = the drafter's, q2 = an intermediate's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.lossless.chance import LOSSLESS, arrays, difference, drawn, every, play
from simspec.claims.lossless.sampled_cases import (
    EVEN,
    ONE,
    ZERO,
    Case,
    all_cases,
    early,
    remembering,
    texts_of,
)
from simspec.claims.plain import number
from simspec.speculation.verify import Block, Judge, Luck, Probs, RejectionJudge, Settled
from simspec.strategies.distributions import Distribution, overlap
from simspec.strategies.models import Table, distribution_levels

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
        for models in remembering():
            for handed in rules[: None if level else 2]:
                yield Acting(handed, Case("funnel-truncate", 2, 3, models))

    return cases


# What follows a 0 survives for certain, what follows a 1 is refused: survival tells which token came before.
_TELLING = (
    Table(2, 1, (EVEN, EVEN, ZERO)),
    Table(2, 1, (EVEN, EVEN, ONE)),
    Table(2, 0, (EVEN,)),
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
                Table(2, 1, (EVEN, ZERO, ZERO)),
                Table(2, 1, (EVEN, ZERO, ONE)),
                Table(2, 0, (EVEN,)),
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
    domain=early().map(lambda case: Case("funnel-truncate", 1, 2, case.models)),
    every=lambda level: all_cases("funnel-truncate", 3, 0, 3 + level, 1, 2),
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

CLAIMS = (S31, S32, S35)
