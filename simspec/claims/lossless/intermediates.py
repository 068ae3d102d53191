"""What an intermediate costs under greedy decoding (S4c, S30)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.lossless.cycles import certain, play
from simspec.claims.lossless.greedy_cases import (
    FUNNELS,
    ONE,
    ZERO,
    Case,
    MakeText,
    cases_of,
    chain_of,
    cycles_of,
    every_case,
    handed_out_early,
    text_of,
    words,
)
from simspec.claims.plain import shown
from simspec.speculation.verify import GreedyJudge
from simspec.strategies.models import Text
from simspec.strategies.models import Tokens as NextTokens

# S4c


def _run(block: Text, text: Text, models: tuple[NextTokens, ...]) -> int:
    """Leading tokens of a block that every one of ``models`` would say itself, read from the tables."""
    for i, token in enumerate(block):
        if any(model.after(text + block[:i]) != token for model in models):
            return i
    return len(block)


@dataclass(frozen=True)
class _Drafted:
    """A cycle's block: how many tokens came through the intermediates, and how many the target would take."""

    text: Text
    block: Text
    through: int
    liked: int
    accepted: int

    @property
    def lost(self) -> int:
        return max(0, self.liked - self.through)


def _drafted(case: Case) -> Iterator[_Drafted]:
    for text, done in cycles_of(case):
        block = tuple(done.block.tolist())
        through = _run(block, text, case.models[1:-1])
        yield _Drafted(text, block, through, _run(block, text, case.models[-1:]), done.kept)


def _changes(case: Case) -> Outcome:
    cycles = list(_drafted(case))
    if not any(one.lost for one in cycles):
        return UNMET
    found = text_of(case)
    if found != case.own:
        return None
    return against(
        *case.lines(),
        *(
            f"a cycle after {words(one.text)}: drafted {words(one.block)}; of these drafts {one.through} "
            f"come through the intermediates, the target would have accepted {one.liked} and accepts "
            f"{one.accepted}, {one.lost} fewer for the intermediates"
            for one in cycles
            if one.block
        ),
        f"the text is {shown(found)}, the target's own is {shown(case.own)}: the same",
        f"accepted drafts that it cost: {' + '.join(str(one.lost) for one in cycles)} over the cycles",
    )


def _costs(
    cost: Callable[[_Drafted], int] = lambda one: one.lost, found: MakeText = text_of
) -> Callable[[Case], Outcome]:
    """The text, and the drafts lost in each cycle against the same block given to the target alone.

    Args:
        cost: what a cycle is said to lose.
    """

    def rule(case: Case) -> Outcome:
        models = [model.after for model in case.models]
        pair, draft = chain_of("none", 2, ()), certain(models[0], case.length)
        ours = found(case)
        if ours != case.own:
            return against(*case.lines(), f"the text is {shown(ours)}, the target's own {shown(case.own)}")
        for one in _drafted(case):
            room = case.want - len(one.text)
            alone = play(pair, GreedyJudge(), [models[0], models[-1]], draft, one.text, room).accepted
            if alone - one.accepted != cost(one):
                return against(
                    *case.lines(),
                    f"a cycle after {words(one.text)}: drafted {words(one.block)}; of these drafts "
                    f"{one.through} come through the intermediates, {one.liked} are to the target's liking",
                    f"the target accepts {alone} without the intermediates and {one.accepted} with them: "
                    f"{alone - one.accepted} fewer, not {cost(one)}",
                )
        return None

    return rule


def _every_funnel(level: int) -> Iterator[Case]:
    return (case for case in every_case(level) if case.semantics in FUNNELS)


_COST = Statement(
    words=(
        "It costs accepted tokens and nothing else: with u drafts coming through the intermediates and "
        "v of the whole block to the target's liking, a cycle keeps max(0, v - u) drafts fewer than "
        "the pair of drafter and target would with the same block, and the text stays the target's"
    ),
    formula="kept(chain) = kept(pair) - max(0, v - u)",
    rule=_costs(),
    over="of the cases of S4 those of both funnels, 3 and 4 levels",
    domain=cases_of(FUNNELS, 3),
    every=_every_funnel,
    examples=150,
)
S4C = Claim(
    id="S4c",
    source="a reviewer's objection to SpecRouter (2505.07680)",
    statement=Statement(
        words="An intermediate's rejection of a token that the target would have accepted changes the output",
        formula="refused by some M_i, i < N, and liked by M_N  =>  text(M_1 > ... > M_N) != text(M_N)",
        rule=_changes,
        over="of the cases of S4 those of both funnels, 3 and 4 levels",
        domain=cases_of(FUNNELS, 3),
        every=_every_funnel,
    ),
    expected="refuted",
    because=(
        "The target still reads what survived and adds its own token at the cut, which is the very token "
        "that was thrown away. The objection would be right of early-emit with a token that was let "
        "through. The repaired statement: of the block the target keeps the drafts that came through and "
        "that it likes, min(u, v); alone it keeps v. The text is S4's."
    ),
    pinned=Case("funnel-truncate", 1, 2, (ZERO, ONE, ZERO)),
    repaired=_COST,
    broken=(
        _COST.but("It costs nothing", _costs(lambda one: 0), formula="kept(chain) = kept(pair)"),
        _COST.but(
            "One less, since the target's own token stands in for the first that is lost",
            _costs(lambda one: max(0, one.lost - 1)),
            formula="kept(chain) = kept(pair) - max(0, v - u - 1)",
        ),
        _COST.but(
            "... all of v wherever an intermediate refused one",
            _costs(lambda one: one.liked if one.lost else 0),
            formula="kept(chain) = 0 where u < v",
        ),
        _COST.but(
            "... and so is what a reader sees who is given each cycle's first draft before it is checked",
            _costs(found=handed_out_early),
        ),
    ),
)

# S30


def _passes(case: Case) -> int:
    return sum(1 for _ in cycles_of(case))


def _some_lost(case: Case) -> bool:
    return any(one.lost for one in _drafted(case))


def _at_least(more: int, premise: Callable[[Case], bool] = lambda case: True) -> Callable[[Case], Outcome]:
    """Whether the chain needs as many passes as the pair and so many ``more``, where the premise is met."""

    def rule(case: Case) -> Outcome:
        if not premise(case):
            return UNMET
        alone = _passes(Case("none", case.length, case.want, (case.models[0], case.models[-1])))
        found = _passes(case)
        if found >= alone + more:
            return None
        return against(
            *case.lines(),
            f"passes of the target: {found}; without the intermediates: {alone}; said to be at least "
            f"{alone + more}",
        )

    return rule


def _every_truncating(level: int) -> Iterator[Case]:
    return (case for case in every_case(level) if case.semantics == "funnel-truncate")


S30_STATEMENT = Statement(
    words=(
        "Under greedy decoding a funnel-truncate chain never needs fewer passes of the target for a text "
        "than its drafter and target alone, at the same draft length"
    ),
    formula="passes(M_1 > ... > M_N) >= passes(M_1 > M_N)",
    rule=_at_least(0),
    over="of the cases of S4 those of funnel-truncate, 3 and 4 levels",
    domain=cases_of(("funnel-truncate",), 3),
    every=_every_truncating,
)
S30 = Claim(
    id="S30",
    source="new here; for SpecRouter's (2505.07680) third level, over a whole text and not one block (S6)",
    statement=S30_STATEMENT,
    expected="holds",
    because=(
        "Let f(t) be where the pair's cycle that begins at place t of the text ends, g(t) the chain's. g "
        "<= f, since truncating only shortens (S4c). f never falls: take t < t' <= f(t) - 1. The drafts "
        "from t at places t' .. f(t) - 2 are the text's own, so from t' the drafter, a function of the "
        "text, drafts them again and they are accepted again: f(t') >= f(t). For t' >= f(t), f(t') > t'. "
        "So after k cycles the chain is never ahead of the pair: g(s) <= f(s) <= f(t) whenever s <= t."
    ),
    broken=(
        S30_STATEMENT.but(
            "... nor does a funnel-replace chain",
            _at_least(0),
            domain=cases_of(("funnel-replace",), 3),
            every=lambda level: (case for case in every_case(level) if case.semantics == "funnel-replace"),
        ),
        S30_STATEMENT.but(
            "... and it needs more wherever a token was refused that the target would have accepted",
            _at_least(1, _some_lost),
        ),
        S30_STATEMENT.but(
            "... and always needs one more",
            _at_least(1),
            formula="passes(M_1 > ... > M_N) >= passes(M_1 > M_N) + 1",
        ),
    ),
)

CLAIMS = (S4C, S30)
