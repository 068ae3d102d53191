"""When a third level pays nested, and what nesting can gain over the middle drafting alone (S45, S46).

S45 is about CS-Drafting's cycle, a fixed number of rounds; S46 about rounds until the middle has collected so
many tokens, which is what the executor's nested chains do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.chains.walked import (
    HALF,
    ONE,
    SOURCE_CS,
    Setting,
    cascade_tokens,
    fewer_tokens,
    handed_up,
    more_seconds,
    pays,
    random_costs,
    whole_numbers,
)
from simspec.claims.plain import number
from simspec.speculation.chains import Chain
from simspec.speculation.cycle import AskDraft, AskWords, cycle
from simspec.speculation.verify import Block, GreedyJudge
from simspec.strategies.survivals import chances, grid
from simspec.theory import third_level as closed
from simspec.theory.acceptance import emitted_tokens
from simspec.theory.third_level import Costs, Cycle, independent


def _walked_rounds(case: Setting) -> Cycle[Fraction]:
    """n rounds of k drafts, then the target: CS-Drafting's cycle at this setting's costs."""
    law, n = case.law, case.rounds
    inner = case.rounds * (case.drafts * case.costs.draft + case.costs.middle(case.drafts + 1))
    given = handed_up(law.lower, n, case.drafts)
    reading = sum((p * case.costs.target(handed + 1) for handed, p in given.items()), Fraction(0))
    return Cycle(cascade_tokens(law.upper, law.lower, n, case.drafts), inner + reading)


def _nested_rule(
    case: Setting, rounds_less: int = 0, change: Any = None, same: bool = False, twice: bool = False
) -> Outcome:
    """Args:
    rounds_less: rounds that the formula does not know of.
    change: another fault of the closed form.
    same, twice: faults of the limit, as for :func:`pays`.
    """
    law, n = case.law, case.rounds - rounds_less
    said = closed.nested(law.lower, law.upper, case.costs, n, case.drafts)
    if change is not None:
        said = change(case, said)
    return pays(case, _walked_rounds(case), said, same, twice)


def _all_handed(case: Setting, said: Cycle[Fraction]) -> Cycle[Fraction]:
    """With the target reading all that the rounds can hand up."""
    more = case.drafts + 1 - emitted_tokens(case.law.lower, case.drafts)
    return Cycle(said.tokens, said.seconds + case.rounds * case.costs.target_slope * more)


def _nested_settings(level: int) -> Iterator[Setting]:
    costs = Costs(Fraction(0), Fraction(1, 8), Fraction(1, 8), ONE, Fraction(1, 4))
    for drafts, rounds, alone in product((1, 2), (1, 2), (0, 1, 2)):
        for lower, upper in product(grid(2 + level), repeat=2):
            yield Setting(independent(lower, upper), costs, drafts, alone, rounds)


_RANDOM_NESTED = st.builds(
    lambda lower, upper, costs, drafts, alone, rounds: Setting(
        independent(lower, upper), costs, drafts, alone, rounds
    ),
    chances(10),
    chances(10),
    random_costs(),
    st.integers(1, 3),
    st.integers(0, 3),
    st.integers(1, 3),
)
S45_STATEMENT = Statement(
    words=(
        "Nested, with a fixed number n of rounds before the target reads, the tokens and seconds of a cycle "
        "have a closed form, and so a third level beats the pair at its best length (plain decoding "
        "included) exactly when the middle's n forwards take less than a closed form of the two acceptances "
        "and the other costs"
    ),
    formula=(
        "n V_2(k+1) < min_d' C2(d') [(1 - b phi^n(b)) / (1 - b)] / E(ab, d') - n k T_1 - V_3(1 + n E(a, k)), "
        "a = alpha_12, b = alpha_23 independent, C2(d') = d' T_1 + V_3(d'+1)"
    ),
    rule=_nested_rule,
    over=(
        "acceptance in thirds, up to 2 rounds of 2 drafts, 1 set of costs, the pair's best of up to 0, 1 or "
        "2 drafts; random ones and affine costs, up to 3 rounds of 3, the pair's of up to 3"
    ),
    domain=_RANDOM_NESTED,
    every=_nested_settings,
    examples=100,
)
S45 = Claim(
    id="S45",
    source=f"{SOURCE_CS} Thm 4.3 at affine cost, three levels",
    statement=S45_STATEMENT,
    expected="holds",
    because=(
        "S41 gives the tokens; the target reads n E(a, k) + 1 tokens on average, and its cost is affine. "
        "Cycles are independent and alike, so faster means more mean tokens per mean second; solved for the "
        "middle's time. The executor's nested chains end their rounds when n tokens are there: S46."
    ),
    broken=(
        S45_STATEMENT.but("... with one round fewer", partial(_nested_rule, rounds_less=1)),
        S45_STATEMENT.but(
            "... with the target charged for all n (k + 1) tokens that can be handed up",
            partial(_nested_rule, change=_all_handed),
        ),
        S45_STATEMENT.but(
            "... with a million millionth of the tokens left out", partial(_nested_rule, change=fewer_tokens)
        ),
        S45_STATEMENT.but(
            "... with a million millionth more time", partial(_nested_rule, change=more_seconds)
        ),
        S45_STATEMENT.but("... against the pair with k drafts only", partial(_nested_rule, same=True)),
        S45_STATEMENT.but(
            "... with the middle's own time taken off twice", partial(_nested_rule, twice=True)
        ),
    ),
)

# S46: what nesting can gain over the middle drafting alone


@dataclass(frozen=True)
class Inner:
    """The middle collects ``wanted`` tokens of its own, M_1 drafting at most ``drafts`` at a time.

    Attributes:
        agreement: alpha_12.
        draft: seconds of a token of M_1.
        middle: seconds of a forward of M_2 over 1, 2, ... tokens.
    """

    agreement: Fraction
    wanted: int
    drafts: int
    draft: Fraction
    middle: tuple[Fraction, ...]


@lru_cache(maxsize=64)
def _inner_rounds(wanted: int, drafts: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Drafts of each inner round, for every way in which M_1 can agree with M_2; with the ways' agreements.

    Walked by the project's own nested cycle.
    """
    found = []
    chain = Chain(("1", "2", "3"), "nested", (wanted,))
    for agreed in product((1, 0), repeat=wanted):
        steps = cycle(chain, GreedyJudge(), wanted + 1, ())
        answer: Any = None
        rounds = []
        try:
            while True:
                ask = steps.send(answer)
                answer = None
                if isinstance(ask, AskDraft):
                    n, at = min(drafts, ask.most), len(ask.ahead)
                    answer = Block(np.array(agreed[at : at + n], dtype=np.int32))
                elif isinstance(ask, AskWords):
                    if ask.level == 1:
                        rounds.append(len(ask.block))
                    answer = np.ones(len(ask.block) + 1, dtype=np.int32)
        except StopIteration:
            found.append((sum(agreed), tuple(rounds)))
    return tuple(found)


def _inner_seconds(case: Inner) -> Fraction:
    total = Fraction(0)
    for agreements, rounds in _inner_rounds(case.wanted, case.drafts):
        p = case.agreement**agreements * (1 - case.agreement) ** (case.wanted - agreements)
        total += p * sum((n * case.draft + case.middle[n] for n in rounds), Fraction(0))
    return total


def _inner_rate(case: Inner, drafts: int) -> Fraction:
    """Seconds per token of the inner pair by itself."""
    return (drafts * case.draft + case.middle[drafts]) / emitted_tokens(case.agreement, drafts)


def _inner_must_pay(
    case: Inner, share: Fraction = ONE, at_most_drafts: bool = False, enough: bool = False
) -> Outcome:
    """Args:
    share: of the bound that is claimed.
    at_most_drafts: judges the inner pair by its time per token at k drafts, not at its best length.
    enough: takes it that nesting wins whenever the inner pair does.
    """
    inner, alone = _inner_seconds(case), case.wanted * case.middle[0]
    rates = [_inner_rate(case, n) for n in range(case.drafts + 1)]
    bound = share * case.wanted * min(rates)
    pair = rates[-1] if at_most_drafts else min(rates)
    nesting_wins, pair_wins = inner < alone, pair < case.middle[0]
    if inner >= bound and (pair_wins or not nesting_wins) and (nesting_wins or not (enough and pair_wins)):
        return None
    forwards = ", ".join(f"{seconds} over {width}" for width, seconds in enumerate(case.middle, 1))
    return against(
        f"M_1 agrees with the middle with probability {case.agreement} and takes {case.draft} s a draft; a "
        f"forward of the middle takes {forwards} tokens",
        f"{case.wanted} tokens of the middle, up to {case.drafts} drafts a round: {number(inner)} s nested, "
        f"{number(alone)} s one by one; claimed to be at least {number(bound)} s",
        "the inner pair by itself: "
        + ", ".join(f"{number(rate)} s a token with {n} drafts" for n, rate in enumerate(rates)),
    )


def _inners(level: int) -> Iterator[Inner]:
    curves = ((1, 1, 1, 1), (1, 2, 3, 4), (2, 3, 4, 5), (2, 2, 4, 4))
    for wanted, drafts in product(range(1, 4 + level // 2), (1, 2, 3)):
        for agreement, draft, curve in product(grid(3 + level), (Fraction(0), HALF), curves):
            yield Inner(agreement, wanted, drafts, draft, tuple(map(Fraction, curve)))


@st.composite
def _random_inners(draw: st.DrawFn) -> Inner:
    curve = draw(st.lists(whole_numbers(1, 20), min_size=5, max_size=5).map(sorted))
    wanted, drafts = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    return Inner(draw(chances()), wanted, drafts, draw(whole_numbers(0, 10)), tuple(curve))


S46_STATEMENT = Statement(
    words=(
        "Nested, the inner pair never collects n tokens of the middle faster than n times its own best time "
        "per token: nesting beats the middle drafting alone only if the inner pair by itself beats the "
        "middle"
    ),
    formula="E[inner seconds for n tokens] >= n min_{0<=j<=k} (j T_1 + V_2(j+1)) / E(alpha_12, j)",
    rule=_inner_must_pay,
    over=(
        "up to 3 tokens, 3 drafts, agreement in quarters, 4 cost curves; random rising cost curves, up to 5 "
        "tokens and 4 drafts"
    ),
    domain=_random_inners(),
    every=_inners,
    examples=100,
)
S46 = Claim(
    id="S46",
    source="nested chains as the executor runs them (rounds until n tokens are collected), i.i.d. agreement",
    statement=S46_STATEMENT,
    expected="holds",
    because=(
        "What the target is handed, n tokens of the middle, and what it makes of them do not depend on M_1: "
        "only the inner time C(n) does. With r the least time per token over inner lengths 0..k, a round of "
        "j drafts takes at least r E(alpha_12, j), the tokens it yields times r on average; by induction on "
        "what is left C(n) >= n r. With j = 0 best, r is the middle's own step."
    ),
    broken=(
        S46_STATEMENT.but(
            "... takes at least a twentieth more than that", partial(_inner_must_pay, share=Fraction(21, 20))
        ),
        S46_STATEMENT.but(
            "... only if the inner pair beats the middle with k drafts",
            partial(_inner_must_pay, at_most_drafts=True),
        ),
        S46_STATEMENT.but(
            "... exactly when the inner pair by itself beats the middle",
            partial(_inner_must_pay, enough=True),
        ),
    ),
)

CLAIMS = (S45, S46)
