"""Greedy acceptance and similarity: what one number says about another (S2 and its parts).

p = target's distribution, q = draft's; TV is total variation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

from simspec.claims.acceptance.cases import OVER_PAIRS, Pair, alike
from simspec.claims.base import UNMET, Claim, Outcome, Plot, Rule, Statement, against
from simspec.claims.plain import number, shown
from simspec.strategies.distributions import (
    Distribution,
    all_distributions,
    argmax,
    normalised,
    overlap,
    total_variation,
)


def _pairs(level: int) -> Iterator[Pair]:
    for size, parts in ((2, 6 + 4 * level), (3, 3 + level)):
        yield from product(all_distributions(size, parts), repeat=2)


def _greedy(pair: Pair) -> Outcome:
    p, q = pair
    accepted, similar = Fraction(int(argmax(p) == argmax(q))), 1 - total_variation(p, q)
    if accepted == similar:
        return None
    return against(
        f"p = {shown(p)}, q = {shown(q)}",
        f"1 - TV = {number(similar)}",
        f"the most probable tokens are {argmax(p)} and {argmax(q)}: greedy decoding accepts with {accepted}",
    )


def _certified(times: Fraction) -> Rule:
    """A lead of more than ``times`` TV makes the first tokens equal."""

    def rule(pair: Pair) -> Outcome:
        p, q = pair
        top, second = sorted(p, reverse=True)[:2]
        bound = times * total_variation(p, q)
        if top - second <= bound:
            return UNMET
        if argmax(p) == argmax(q):
            return None
        return against(
            f"p = {shown(p)}, q = {shown(q)}",
            f"p's first token leads by {number(top - second)}, more than {times} TV = {number(bound)}",
            f"and yet the first tokens are {argmax(p)} and {argmax(q)}",
        )

    return rule


def _two_distributions(pair: Pair) -> Plot:
    p, q = pair
    return Plot(
        "The two distributions",
        "bars",
        "token",
        "probability",
        tuple(str(t) for t in range(len(p))),
        {"p (target)": tuple(map(float, p)), "q (draft)": tuple(map(float, q))},
    )


S2_REPAIRED = Statement(
    words=(
        "If the target's first token leads its second by more than 2 TV(p, q), greedy decoding accepts: "
        "similarity certifies agreement, it does not measure it"
    ),
    formula="p_(1) - p_(2) > 2 TV(p, q)  =>  argmax p = argmax q",
    rule=_certified(Fraction(2)),
    over=OVER_PAIRS,
    domain=alike(2),
    every=_pairs,
)
S2 = Claim(
    id="S2",
    source="SpecRouter (2505.07680) Eq. 2, 5 and 6 applied to greedy decoding",
    statement=Statement(
        words="1 - TV(p, q) is also the acceptance probability under greedy decoding",
        formula="[argmax p = argmax q] = 1 - TV(p, q)",
        rule=_greedy,
        over=OVER_PAIRS,
        domain=alike(2),
        every=_pairs,
    ),
    expected="refuted",
    because=(
        "Greedy acceptance is 0 or 1 and sees only which token is first. Distributions arbitrarily close to "
        "one another may put different tokens first (TV near 0, always refused), and ones that share only "
        "their first token by a hair have TV near 1 and are always accepted (S2b, S2c). The repair: no "
        "probability differs by more than TV, so p's first token keeps at least p_(1) - TV in q and every "
        "other has at most p_(2) + TV there."
    ),
    pinned=(normalised((1, 0)), normalised((1, 1))),
    repaired=S2_REPAIRED,
    broken=(
        S2_REPAIRED.but("A lead of more than TV is enough", _certified(Fraction(1))),
        S2_REPAIRED.but("Any lead is enough", _certified(Fraction(0))),
    ),
    plot=_two_distributions,
)


def _near_but_different(pair: Pair) -> Outcome:
    """S2 in its two directions: a rule that thresholds TV."""
    p, q = pair
    similar = 1 - total_variation(p, q)
    if similar < Fraction(9, 10):
        return UNMET
    if argmax(p) == argmax(q):
        return None
    return against(
        f"p = {shown(p)}, q = {shown(q)}", f"1 - TV = {number(similar)}, yet different first tokens"
    )


S2B = Claim(
    id="S2b",
    source="a reading of SpecRouter (2505.07680) Eq. 6: a threshold on similarity",
    statement=Statement(
        words="Models whose similarity is at least .9 have the same greedy token",
        formula="1 - TV(p, q) >= 9/10  =>  argmax p = argmax q",
        rule=_near_but_different,
        over="random pairs over 2 to 4 tokens, near ties among them",
        domain=alike(2),
    ),
    expected="refuted",
    because=(
        "Where two tokens nearly tie, a shift of a hundredth changes which is first: with p = (1/2 + e, "
        "1/2 - e) and q the other way round TV is 2e, as small as one likes. No threshold below 1 is safe; "
        "a lead of more than 2 TV is (S2)."
    ),
    pinned=(normalised((51, 49)), normalised((49, 51))),
    repaired=S2.repaired,
    broken=S2.broken,
    plot=_two_distributions,
)


def _alike_by(bound: Callable[[Distribution, Distribution], Fraction], strictly: bool = False) -> Rule:
    """Same first token: is 1 - TV at least (or above) the bound?"""

    def rule(pair: Pair) -> Outcome:
        p, q = pair
        if argmax(p) != argmax(q):
            return UNMET
        similar, least = overlap(p, q), bound(p, q)
        if similar > least or (similar == least and not strictly):
            return None
        return against(
            f"p = {shown(p)}, q = {shown(q)}: token {argmax(p)} is first in both, so every draft is accepted",
            f"1 - TV = {number(similar)}, {'not above' if strictly else 'less than'} {number(least)}",
        )

    return rule


def _half(p: Distribution, q: Distribution) -> Fraction:
    return Fraction(1, 2)


def _less_sure(p: Distribution, q: Distribution) -> Fraction:
    return max(min(max(p), max(q)), Fraction(1, len(p)))


def _more_sure(p: Distribution, q: Distribution) -> Fraction:
    return max(*p, *q)


S2C_STATEMENT = Statement(
    words="Models with the same greedy token are similar: their 1 - TV is at least 1/2",
    formula="argmax p = argmax q  =>  1 - TV(p, q) >= 1/2",
    rule=_alike_by(_half),
    over=OVER_PAIRS,
    domain=alike(2),
    every=_pairs,
)
S2C_REPAIRED = S2C_STATEMENT.but(
    "Over n tokens, models with the same greedy token have 1 - TV of at least what the less sure of them "
    "gives that token, which is at least 1/n",
    _alike_by(_less_sure),
    formula="argmax p = argmax q  =>  1 - TV(p, q) >= min(max p, max q) >= 1/n",
)
S2C = Claim(
    id="S2c",
    source="the converse reading of SpecRouter (2505.07680) Eq. 6",
    statement=S2C_STATEMENT,
    expected="refuted",
    because=(
        "A target that is unsure spreads its probability, and its first token may have as little as 1/n of "
        "it over n tokens. A sure drafter that puts all on that token is always accepted greedily, at "
        "1 - TV = 1/n: with a real vocabulary, near 0. So TV near 1 says no more of greedy acceptance than "
        "TV near 0 does. The repair: both give the shared token at least the smaller of their maxima, and "
        "sum min(p, q) counts it."
    ),
    pinned=(normalised((1, 0, 0)), normalised((1, 1, 1))),
    repaired=S2C_REPAIRED,
    broken=(
        S2C_REPAIRED.but("1 - TV is always above that", _alike_by(_less_sure, strictly=True)),
        S2C_REPAIRED.but("It is at least what the surer model gives its token", _alike_by(_more_sure)),
    ),
    plot=_two_distributions,
)

CLAIMS = (S2, S2B, S2C)
