"""Which length is best where the cost goes through the origin (L2b).

p_k = probability that draft k is accepted given that those before it were; S_j = p_1 .. p_j; tau_d =
expected tokens of a cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.lengths.blocks import OVER_ORIGIN, Block, working
from simspec.strategies.costs import affine
from simspec.strategies.survivals import all_conditionals, conditionals, grid
from simspec.theory.lengths import best_lengths

# L2b: where the cost goes through the origin


def _first_is_best(shortest: int, ties: Callable[[Block], bool] | None) -> Callable[[Block], Outcome]:
    """Whether ``shortest`` is a best length, and shares that exactly where ``ties`` says (None: anywhere)."""

    def rule(block: Block) -> Outcome:
        best = best_lengths(block.speedups()[shortest - block.shortest :])
        shared = len(best) > 1
        if best[0] == 0 and (ties is None or shared == ties(block)):
            return None
        told = "" if ties is None else f"; more than one are expected: {'yes' if ties(block) else 'no'}"
        lengths = ", ".join(str(d + shortest) for d in best)
        return against(*working(block), f"lengths that are best: {lengths}{told}")

    return rule


def _second_is_sure(block: Block) -> bool:
    return block.bonus == 0 and len(block.p) > 1 and block.p[1] == 1


def _none_is_accepted(block: Block) -> bool:
    return block.bonus == 0 and len(block.p) > 1 and block.p[0] == 0


def _second_adds_as_much(block: Block) -> bool:
    return _second_is_sure(block) or _none_is_accepted(block)


def _first_is_sure(block: Block) -> bool:
    return block.p[0] == 1


def _through(bonuses: tuple[int, ...], fixed: int) -> Callable[[int], Iterator[Block]]:
    """All small blocks with T(d) = fixed + d."""

    def every(level: int) -> Iterator[Block]:
        depth, parts = ((3, 4), (4, 4), (5, 5))[level]
        for p in all_conditionals(depth, grid(parts)):
            for bonus in bonuses:
                yield Block(p, affine(Fraction(fixed), Fraction(1), len(p)), bonus)

    return every


def _random_through(bonuses: tuple[int, ...], fixed: int) -> st.SearchStrategy[Block]:
    return st.builds(
        lambda p, bonus: Block(p, affine(Fraction(fixed), Fraction(1), len(p)), bonus),
        conditionals(longest=8),
        st.sampled_from(bonuses),
    )


L2B_STATEMENT = Statement(
    words=(
        "Where time is c for each draft and nothing besides, one draft is a best length among 1, 2, ..; "
        "others are as good exactly where there is a second draft, the bonus is not counted, and the second "
        "is sure (p_2 = 1) or none is ever accepted (p_1 = 0)"
    ),
    formula=(
        "T(d) = c d  =>  eta_1 >= eta_d for all d >= 1;  eta_d = eta_1 for some d > 1 <=> no bonus, D > 1, "
        "and p_2 = 1 or p_1 = 0"
    ),
    rule=_first_is_best(1, _second_adds_as_much),
    over=OVER_ORIGIN,
    domain=_random_through((0, 1), 0),
    every=_through((0, 1), 0),
    examples=250,
)
L2B = Claim(
    id="L2b",
    source="LibraSpec (2608.08721): segment cost T_{i:d'} = c (d' - i), read as T(d) = c d",
    statement=L2B_STATEMENT,
    expected="holds",
    because=(
        "Without the bonus c eta_d is the mean of S_1 .. S_d, none of which exceeds S_1; the mean of d is "
        "S_1 only if S_2 = S_1. The bonus adds 1/d, which falls. So a theory of lengths says nothing "
        "without a fixed cost: it would always draft one token."
    ),
    first_look="It left out p_1 = 0, where without the bonus every length is worth the same: nothing.",
    broken=(
        L2B_STATEMENT.but("... and always the only one", _first_is_best(1, lambda block: False)),
        L2B_STATEMENT.but("... the only one unless the second is sure", _first_is_best(1, _second_is_sure)),
        L2B_STATEMENT.but("... the only one unless none is accepted", _first_is_best(1, _none_is_accepted)),
        L2B_STATEMENT.but(
            "... one of several with the bonus, too, if the second is sure",
            _first_is_best(1, lambda block: _second_adds_as_much(replace(block, bonus=0))),
        ),
        L2B_STATEMENT.but(
            "One draft is a best length, the only one or not, with a fixed cost as large as a draft's",
            _first_is_best(1, None),
            domain=_random_through((0, 1), 1),
            every=_through((0, 1), 1),
        ),
    ),
)

L2B_BONUS_STATEMENT = Statement(
    words=(
        "Where the bonus is counted and time is c for each token of the forward (drafts and one more), plain "
        "decoding is a best length; others are as good exactly where the first draft is sure"
    ),
    formula=(
        "T(d) = c (d + 1), tau_d = 1 + S_1 + .. + S_d  =>  eta_0 >= eta_d;  eta_d = eta_0 for some d > 0 <=> "
        "p_1 = 1"
    ),
    rule=_first_is_best(0, _first_is_sure),
    over=OVER_ORIGIN,
    domain=_random_through((1,), 1),
    every=_through((1,), 1),
    examples=250,
)
L2B_BONUS = Claim(
    id="L2b-bonus",
    source="LibraSpec (2608.08721), the same cost with the bonus token charged for",
    statement=L2B_BONUS_STATEMENT,
    expected="holds",
    because="c eta_d is the mean of 1, S_1 .. S_d, none of which exceeds 1; it is 1 only if S_1 = 1.",
    broken=(
        L2B_BONUS_STATEMENT.but("... and always the only one", _first_is_best(0, lambda block: False)),
        L2B_BONUS_STATEMENT.but(
            "... one of several wherever some draft is sure",
            _first_is_best(0, lambda block: max(block.p) == 1),
        ),
        L2B_BONUS_STATEMENT.but(
            "Plain decoding is a best length, the only one or not, with a fixed cost, T(d) = c (d + 2)",
            _first_is_best(0, None),
            domain=_random_through((1,), 2),
            every=_through((1,), 2),
        ),
    ),
)

CLAIMS = (L2B, L2B_BONUS)
