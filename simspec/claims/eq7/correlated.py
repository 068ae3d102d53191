"""Agreement that is not independent from pair to pair: pairwise rates do not rank chains (S7b)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.eq7.cases import ALONE, HALF, TRIPLE, Choice
from simspec.claims.eq7.readings import exact, says, truth
from simspec.claims.eq7.rules import described
from simspec.claims.plain import number
from simspec.strategies.chains import Law, Level, Plan, Pool, Semantics, plans, pools
from simspec.strategies.survivals import grid
from simspec.theory.acceptance import emitted_tokens


@dataclass(frozen=True)
class Worlds:
    """Two laws with the same pairwise rates, and two chains."""

    levels: tuple[Level, ...]
    here: Law
    there: Law
    one: Plan
    other: Plan


def correlated_by(rates: tuple[Fraction, Fraction, Fraction], together: Fraction) -> Law:
    """Three models with alpha_12, alpha_23, alpha_13 that all agree with probability ``together``.

    Empty where there are no such models.
    """
    a12, a23, a13 = rates
    parts = {
        (0, 0, 0): together,
        (0, 0, 1): a12 - together,
        (0, 1, 1): a23 - together,
        (0, 1, 0): a13 - together,
        (0, 1, 2): 1 - a12 - a23 - a13 + 2 * together,
    }
    return tuple((w, p) for w, p in sorted(parts.items()) if p) if min(parts.values()) >= 0 else ()


def _same_order(semantics: Semantics) -> Callable[[Worlds], Outcome]:
    def rule(case: Worlds) -> Outcome:
        times = [
            [
                truth(Pool(case.levels, law), plan, semantics).seconds_per_token
                for plan in (case.one, case.other)
            ]
            for law in (case.here, case.there)
        ]
        (a, b), (c, d) = times
        if (a - b) * (c - d) >= 0:
            return None
        together = [dict(law).get((0, 0, 0), Fraction(0)) for law in (case.here, case.there)]
        return against(
            *described(Pool(case.levels, case.here), semantics),
            f"if all three agree with probability {together[0]}: {case.one} takes {number(a)}, "
            f"{case.other} {number(b)}",
            f"if all three agree with probability {together[1]}: {case.one} takes {number(c)}, "
            f"{case.other} {number(d)}",
        )

    return rule


def _with_joint_rate(case: Choice) -> Outcome:
    """gamma T_1 + V_2(gamma + 1) + E[V_3(min(G, gamma) + 1)] over E(e, gamma), e the rate of all agreeing."""
    for plan in (case.one, case.other):
        real = truth(case.pool, plan, "funnel-truncate").seconds_per_token
        said = says(exact, case.pool, plan, "funnel-truncate")
        if len(plan.models) == 3:
            together = dict(case.pool.law).get((0, 0, 0), Fraction(0))
            a, g = case.pool.rate(0, 1), plan.drafts
            first, second, target = case.pool.levels
            time = g * first.forward(1) + second.forward(g + 1) + a**g * target.forward(g + 1)
            time += sum(a**n * (1 - a) * target.forward(n + 1) for n in range(g))
            said = time / emitted_tokens(together, g)
        if said != real:
            return against(*described(case.pool, "funnel-truncate"), f"{plan}: {real}, formula {said}")
    return None


def _worlds(level: int) -> Iterator[Worlds]:
    """Whole times to 6 (7 at larger budgets) that sum to least first, rates and joint rates in quarters."""
    some = grid(4)
    laws = [
        [law for e in some if (law := correlated_by((a, b, c), e))] for a, b, c in product(some, some, some)
    ]
    several = [held for held in laws if len(held) > 1]
    for seconds in sorted(product(range(1, 6 + level), repeat=3), key=lambda t: (sum(t), t)):
        levels = tuple(Level(Fraction(s)) for s in seconds)
        for held in several:
            for here, there in combinations(held, 2):
                for plan in (ALONE, Plan((0, 2), 1), Plan((1, 2), 1)):
                    yield Worlds(levels, here, there, plan, TRIPLE)


S7B_STATEMENT = Statement(
    words=(
        "Which of two chains is faster follows from the models' times and pairwise acceptance rates alone, "
        "also where agreement is not independent from pair to pair (places are; funnel-truncate)"
    ),
    rule=_same_order("funnel-truncate"),
    over="whole times up to 6, rates in quarters; a chain of three, 1 drafted, against the target alone "
    "and pairs",
    every=_worlds,
)
S7B = Claim(
    id="S7b",
    source="SpecRouter (2505.07680) Eq. 7 is a function of times and pairwise acceptance rates",
    statement=S7B_STATEMENT,
    expected="refuted",
    because=(
        "A draft reaches the text of a three-level chain where all three agree, and pairwise rates do not "
        "fix how often that is: between alpha_12 + alpha_23 - 1 and the least of the three. So no formula "
        "of these inputs, however expanded, ranks every two chains right."
    ),
    pinned=Worlds(
        (Level(Fraction(1)), Level(Fraction(1)), Level(Fraction(5))),
        correlated_by((HALF, HALF, HALF), Fraction(1, 4)),
        correlated_by((HALF, HALF, HALF), HALF),
        ALONE,
        TRIPLE,
    ),
    repaired=Statement(
        words=(
            "With one more number, the rate at which all three models agree, the exact time per token "
            "under funnel-truncate follows, whatever the correlation between the pairs"
        ),
        formula="T = [gamma T_1 + V_2(gamma + 1) + E[V_3(min(G, gamma) + 1)]] / E(e, gamma), e = P(all "
        "three agree)",
        rule=_with_joint_rate,
        over="random pools of three models with any law of agreement, drafts up to 3",
        domain=st.builds(Choice, pools(3), plans(3), plans(3)),
        examples=100,
    ),
)

CLAIMS = (S7B,)
