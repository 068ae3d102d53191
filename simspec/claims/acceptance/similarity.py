"""Acceptance and similarity: what one number says about another (S1, S2 and its parts).

p = target's distribution, q = draft's; TV is total variation.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from simspec.claims.acceptance.cases import Pair, alike
from simspec.claims.base import UNMET, Claim, Outcome, Plot, Statement, against
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


OVER_PAIRS = "all pairs over 2 and 3 tokens with small denominators; random pairs over 2 to 4 tokens"

# S1


def sampled_acceptance(p: Distribution, q: Distribution) -> Fraction:
    """sum q(x) min(1, p(x) / q(x)): draw x from q, let it through with that chance (2211.17192)."""
    return sum((b * min(Fraction(1), a / b) for a, b in zip(p, q, strict=True) if b), Fraction(0))


def _same_number(pair: Pair) -> Outcome:
    p, q = pair
    acceptance, similar = sampled_acceptance(p, q), 1 - total_variation(p, q)
    if acceptance == similar == overlap(p, q):
        return None
    return against(f"acceptance {number(acceptance)}", f"1 - TV {number(similar)}")


def _same_as_dot(pair: Pair) -> Outcome:
    p, q = pair
    acceptance, dot = sampled_acceptance(p, q), sum(a * b for a, b in zip(p, q, strict=True))
    return (
        None if acceptance == dot else against(f"acceptance {number(acceptance)}", f"sum p q {number(dot)}")
    )


S1_STATEMENT = Statement(
    words="Under speculative sampling a drafted token is accepted with probability 1 - TV(p, q)",
    formula="sum_x q(x) min(1, p(x)/q(x)) = sum_x min(p(x), q(x)) = 1 - TV(p, q)",
    rule=_same_number,
    over=OVER_PAIRS,
    domain=alike(2),
    every=_pairs,
)
S1 = Claim(
    id="S1",
    source="SpecRouter (2505.07680) Eq. 2, after 2211.17192",
    statement=S1_STATEMENT,
    expected="holds",
    because=(
        "q min(1, p/q) = min(p, q) wherever q > 0, and both are 0 elsewhere. The sum of |p - q| is "
        "2 - 2 sum min(p, q), since p and q each sum to 1."
    ),
    broken=(
        S1_STATEMENT.but(
            "The probability is that of two independent draws being equal, sum p q", _same_as_dot
        ),
    ),
)

# S2


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


def _margin(pair: Pair) -> Outcome:
    p, q = pair
    top, second = sorted(p, reverse=True)[:2]
    if top - second <= 2 * total_variation(p, q):
        return UNMET
    if argmax(p) == argmax(q):
        return None
    return against(f"margin {number(top - second)}, 2 TV {number(2 * total_variation(p, q))}")


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
        "their first token by a hair have TV near 1 and are always accepted."
    ),
    pinned=(normalised((1, 0)), normalised((1, 1))),
    repaired=Statement(
        words=(
            "If the target's first token leads its second by more than 2 TV(p, q), greedy decoding accepts: "
            "similarity certifies agreement, it does not measure it"
        ),
        formula="p_(1) - p_(2) > 2 TV(p, q)  =>  argmax p = argmax q",
        rule=_margin,
        over=OVER_PAIRS,
        domain=alike(2),
        every=_pairs,
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
        over=OVER_PAIRS,
        domain=alike(2),
    ),
    expected="refuted",
    because="A tie broken by a tenth is enough: no threshold below 1 is safe without the margin of S2.",
    pinned=(normalised((1, 1)), normalised((9, 11))),
    repaired=S2.repaired,
    plot=_two_distributions,
)


def _half_alike(pair: Pair) -> Outcome:
    return _alike_by(pair, Fraction(1, 2))


def _alike_at_all(pair: Pair) -> Outcome:
    return _alike_by(pair, Fraction(1, len(pair[0])))


def _alike_by(pair: Pair, least: Fraction) -> Outcome:
    """Same first token: is 1 - TV at least so much?"""
    p, q = pair
    if argmax(p) != argmax(q):
        return UNMET
    similar = overlap(p, q)
    if similar >= least:
        return None
    return against(
        f"p = {shown(p)}, q = {shown(q)}: token {argmax(p)} is first in both, so every draft is accepted",
        f"1 - TV = {number(similar)}, less than {least}",
    )


S2C_STATEMENT = Statement(
    words="Models with the same greedy token are similar: their 1 - TV is at least 1/2",
    formula="argmax p = argmax q  =>  1 - TV(p, q) >= 1/2",
    rule=_half_alike,
    over=OVER_PAIRS,
    domain=alike(2),
    every=_pairs,
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
        "TV near 0 does."
    ),
    pinned=(normalised((1, 0, 0)), normalised((1, 1, 1))),
    repaired=S2C_STATEMENT.but(
        "Over n tokens, models with the same greedy token have 1 - TV of at least 1/n, and no more is sure",
        _alike_at_all,
        formula="argmax p = argmax q  =>  1 - TV(p, q) >= min(max p, max q) >= 1/n",
    ),
    plot=_two_distributions,
)

CLAIMS = (S1, S2, S2B, S2C)
