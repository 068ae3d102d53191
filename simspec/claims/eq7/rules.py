"""What decides a reading: whether it puts two chains in their true order, and whether it is exact."""

from __future__ import annotations

from itertools import combinations

from simspec.claims.base import UNMET, Outcome, Rule, against
from simspec.claims.eq7.cases import Choice
from simspec.claims.eq7.readings import Reading, says, truth
from simspec.claims.plain import number
from simspec.strategies.chains import Pool, Semantics


def ranks(reading: Reading, semantics: Semantics) -> Rule:
    """The slower of two chains is never put first; nothing is said of chains that are equally fast."""

    def rule(case: Choice) -> Outcome:
        fast, slow = case.one, case.other
        times = {plan: truth(case.pool, plan, semantics).seconds_per_token for plan in (fast, slow)}
        if times[fast] == times[slow]:
            return UNMET
        if times[fast] > times[slow]:
            fast, slow = slow, fast
        said = {plan: says(reading, case.pool, plan, semantics) for plan in (fast, slow)}
        first, second = said[fast], said[slow]
        if first is None or second is None:
            return UNMET
        if first <= second:
            return None
        return against(
            *described(case.pool, semantics),
            f"{fast} really takes {number(times[fast])} a token; the formula says {number(first)}",
            f"{slow} really takes {number(times[slow])} a token; the formula says {number(second)}",
            "so the formula puts the slower chain first",
        )

    return rule


def is_exact(reading: Reading, semantics: Semantics) -> Rule:
    """The formula's seconds a token are the exact ones, for both chains (and so in their order)."""

    def rule(case: Choice) -> Outcome:
        for plan in (case.one, case.other):
            real = truth(case.pool, plan, semantics).seconds_per_token
            said = says(reading, case.pool, plan, semantics)
            if said != real:
                return against(
                    *described(case.pool, semantics), f"{plan}: {number(real)} a token, formula {said}"
                )
        return None

    return rule


def described(pool: Pool, semantics: Semantics) -> tuple[str, ...]:
    """A pool in words."""
    forwards = []
    for i, level in enumerate(pool.levels, 1):
        more = f" and {level.slope} for each further {level.tread} tokens begun" if level.slope else ""
        forwards.append(f"M{i} {level.seconds}{more}")
    rates = [f"M{a + 1} and M{b + 1} {pool.rate(a, b)}" for a, b in combinations(range(len(pool.levels)), 2)]
    return (
        f"a forward takes: {', '.join(forwards)}; M{len(pool.levels)} is the target",
        f"they say the same with probability: {', '.join(rates)}; cycles go by {semantics}",
    )
