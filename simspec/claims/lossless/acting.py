"""Acting on how much of a block survived a truncating intermediate (S31, S32).

p = the target's distribution, q1 = the drafter's, q2 = an intermediate's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import Against, Claim, Outcome, Statement, against
from simspec.claims.lossless.chance import LOSSLESS, Step, compared, joint, parting
from simspec.claims.lossless.cycles import MakeJudge
from simspec.claims.lossless.faulty_judges import AsDrafted, hidden
from simspec.claims.lossless.luck import EveryLuck
from simspec.claims.lossless.sampled_cases import (
    EVEN,
    EVENLY,
    ONE,
    ZERO,
    Case,
    below,
    drafting,
    memoryless,
    remembering,
    step_of,
)
from simspec.speculation.verify import Block, Judge, Probs, RejectionJudge, Settled
from simspec.strategies.models import Table, distribution_levels


@dataclass(frozen=True)
class Acting:
    """A funnel-truncate chain of three that hands ``handed[s]`` of s survivors to the target."""

    handed: tuple[int, ...]
    case: Case


def _told(handed: tuple[int, ...]) -> str:
    return f"of the survivors the target is handed {', '.join(f'{n} of {s}' for s, n in enumerate(handed))}"


class _Handing:
    """Cuts what the intermediate lets through by how much that was. One for each cycle."""

    def __init__(self, luck: EveryLuck, handed: tuple[int, ...], judge: Judge) -> None:
        self.luck, self.judge, self.handed, self.below = luck, judge, handed, True

    def settle(self, block: Block, words: Probs) -> Settled:
        right = self.judge.settle(block, words)
        # The intermediate is the first to be asked, unless nothing was drafted; and none of 0 is 0.
        if not self.below:
            return right
        self.below = False
        n = self.handed[right.accepted] if len(block) else right.accepted
        if len(block):
            self.luck.say(lambda: f"{right.accepted} survived, {n} handed on")
        return Settled(n, right.survivors.first(n), right.own, right.owned)


def _step(acting: Acting, judged: MakeJudge) -> Step:
    return step_of(acting.case, lambda luck: _Handing(luck, acting.handed, judged(luck)))


def _acted(judged: MakeJudge = RejectionJudge) -> Callable[[Acting], Outcome]:
    return lambda acting: compared(
        _step(acting, judged), acting.case.own, lambda: (*acting.case.lines(), _told(acting.handed))
    )


def rules(length: int) -> Iterator[tuple[int, ...]]:
    """Every way to hand on some of 0 .. ``length`` survivors."""
    yield from product(*(range(s + 1) for s in range(length + 1)))


def is_cut(handed: tuple[int, ...]) -> bool:
    """Whether it is min(s, c) for some c."""
    return any(handed == tuple(min(s, c) for s in range(len(handed))) for c in range(len(handed)))


@st.composite
def _acting(draw: st.DrawFn, *, cuts: bool = False) -> Acting:
    length = draw(st.integers(1, 3))
    handed = tuple(draw(st.integers(0, s)) for s in range(length + 1))
    if cuts:
        most = draw(st.integers(0, length))
        handed = tuple(min(s, most) for s in range(length + 1))
    models = draw(distribution_levels(3, 2, draw(st.integers(0, 2 if length < 3 else 1))))
    return Acting(handed, Case("funnel-truncate", length, length + 1, models))


def _every_acting(cuts: bool) -> Callable[[int], Iterator[Acting]]:
    def cases(level: int) -> Iterator[Acting]:
        for case in below("funnel-truncate", 3, EVENLY, 2):
            yield Acting((0, 1, 2, 3), case)
        twos = [handed for handed in rules(2) if not cuts or is_cut(handed)]
        for models in remembering():
            for handed in twos if level else twos[1:2]:
                yield Acting(handed, drafting("funnel-truncate", 2, models))

    return cases


def _over(handed: str) -> str:
    return (
        f"81 chains of 3 that look at the last token, blocks of 2, {handed} (one of them at the smallest "
        "budget); 9 chains without memory, blocks of 3, all handed on; random ones over 2 tokens that see up "
        f"to 2, blocks of 1 to 3, {handed}"
    )


S31_CUTS = Statement(
    words="It stays lossless if the survivors are cut to a number that was fixed beforehand, min(s, c)",
    formula=LOSSLESS,
    rule=_acted(),
    over=_over("every such cut"),
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
        rule=_acted(),
        over=_over("any number for each s"),
        domain=_acting(),
        every=_every_acting(cuts=False),
    ),
    expected="refuted",
    because=(
        "That place 2 survived says something about the token at place 1, if the models' overlap there "
        "depends on it. Looking at s before place 1 is verified therefore picks among its tokens. The "
        "repaired statement: place i is offered exactly where i <= c and it survived, as in S5c."
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
    broken=(
        S31_CUTS.but(
            "... also if the target weighs what it is handed against the drafter's q1", _acted(AsDrafted)
        ),
        *hidden(S31_CUTS, _acted),
    ),
    first_look=(
        "Not anything that acts on the surviving length breaks it: a cut to a fixed number of survivors does "
        "not. Everything else does (S32)."
    ),
)

# What follows a 0 survives for certain, what follows a 1 is refused: survival tells which token came before.
# The target refuses nothing that survived, so the text shows what was handed on.
_TELLING = (Table(2, 1, (EVEN, EVEN, ZERO)), Table(2, 1, (EVEN, EVEN, ONE)), EVENLY)
# All survives, and the target refuses some of it.
_REFUSING = memoryless((0, 1), (0, 1), (1, 1))


def _tells(
    safe: Callable[[tuple[int, ...]], bool], judged: MakeJudge = RejectionJudge
) -> Callable[[tuple[int, ...]], Outcome]:
    """Whether ``safe`` tells the rules that lose nothing from those that do, by models that tell."""

    def rule(handed: tuple[int, ...]) -> Outcome:
        lost = None
        for models in (_TELLING, _REFUSING):
            acting = Acting(handed, drafting("funnel-truncate", len(handed) - 1, models))
            if parting(joint(_step(acting, judged), acting.case.want), acting.case.own) is not None:
                lost = acting
                break
        if (lost is None) == safe(handed):
            return None
        worked = None if lost is None else _acted(judged)(lost)
        if isinstance(worked, Against):
            return against("said to be lossless, and is not:", *worked.working)
        return against(_told(handed), "said to lose something; lossless for the models tried")

    return rule


def _every_rule(level: int) -> Iterator[tuple[int, ...]]:
    """Cuts first: most of what could be wrong shows in them."""
    yield from sorted((f for length in (2, 3) for f in rules(length)), key=lambda f: not is_cut(f))


S32_STATEMENT = Statement(
    words=(
        "A rule that hands the target f(s) of s survivors is lossless for all models if and only if f(s) = "
        "min(s, c) for some c"
    ),
    formula=f"{LOSSLESS}  <=>  f(s) = min(s, c)",
    rule=_tells(is_cut),
    over=(
        "all 30 rules for blocks of 2 and 3, with models whose survival at a place tells the token before it "
        "and with a chain of which all survives (that cuts are lossless for other models, too: S31's "
        "repaired statement)"
    ),
    every=_every_rule,
)
S32 = Claim(
    id="S32",
    source="new here; the limit of S5c",
    statement=S32_STATEMENT,
    expected="holds",
    because=(
        "If: place i is offered exactly where i <= c and it survived, so S5c's reason stands. Only if: "
        "another f has a place i and counts s, t >= i with f(s) >= i > f(t); take the least such i. Let "
        "drafter and intermediate say all tokens evenly at place 1 and after a 0, and never agree after a "
        "1; the target says everything evenly and so accepts what it is offered. Then exactly s < n "
        "survive (n = the block's length) where the first s - 1 tokens are 0 and the next is 1. Each place "
        "before i is offered whenever it survived, so what follows is about texts that begin with i - 1 "
        "zeros. If the token at i is 1, i survive and place i is offered with [f(i) >= i], which is 0 or 1; "
        "if it is 0, more survive, and it is offered with w, the mean of [f(s) >= i] over s > i, each with "
        "a weight above 0. A place that is not offered is drawn anew, evenly, so a 1 comes out with "
        "1/2 + ([f(i) >= i] - w) / 4. That is 1/2 only if w is 0 or 1 as well and the same: if place i is "
        "offered for all s >= i or for none. For blocks of 1 both rules are cuts."
    ),
    broken=(
        S32_STATEMENT.but(
            "... if and only if f never falls", _tells(lambda f: list(f) == sorted(f)), formula=""
        ),
        S32_STATEMENT.but(
            "... if and only if all survivors are handed on, always, or none ever",
            _tells(lambda f: f in (tuple(range(len(f))), (0,) * len(f))),
            formula="",
        ),
        S32_STATEMENT.but(
            "... if and only if f(s) is all of the survivors or none",
            _tells(lambda f: all(n in (0, s) for s, n in enumerate(f))),
            formula="",
        ),
        *hidden(S32_STATEMENT, lambda judged: _tells(is_cut, judged)),
    ),
)

CLAIMS = (S31, S32)
