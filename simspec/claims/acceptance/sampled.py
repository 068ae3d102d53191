"""Acceptance under speculative sampling (S1): one less total variation.

p = target's distribution, q = draft's; TV is total variation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

import numpy as np

from simspec.claims.acceptance.cases import OVER_PAIRS, Pair, alike
from simspec.claims.base import Claim, Outcome, Rule, Statement, against
from simspec.claims.lossless.luck import EveryLuck, every
from simspec.claims.plain import number, shown
from simspec.speculation.verify import Block, RejectionJudge
from simspec.strategies.distributions import Distribution, all_distributions, total_variation


def _few_pairs(level: int) -> Iterator[Pair]:
    for size, parts in ((2, 5 + 2 * level), (3, 2 + level)):
        yield from product(all_distributions(size, parts), repeat=2)


def sampled_acceptance(p: Distribution, q: Distribution) -> Fraction:
    """How often the verifier that decodes (:class:`RejectionJudge`) accepts a draw from q, all luck tried."""
    target, draft = np.array([p, p], dtype=object), np.array([q], dtype=object)

    def once(luck: EveryLuck) -> int:
        token = luck.pick(draft[0])
        block = Block(np.array([token], dtype=np.int32), draft)
        return RejectionJudge(luck).settle(block, target).accepted

    return every(once).get(1, Fraction(0))


def _acceptance_is(of: Callable[[Distribution, Distribution], Fraction], name: str) -> Rule:
    def rule(pair: Pair) -> Outcome:
        p, q = pair
        acceptance, said = sampled_acceptance(p, q), of(p, q)
        if acceptance == said:
            return None
        return against(
            f"p = {shown(p)}, q = {shown(q)}",
            f"the verifier accepts with {number(acceptance)}; {name} is {number(said)}",
        )

    return rule


def _similarity(p: Distribution, q: Distribution) -> Fraction:
    return 1 - total_variation(p, q)


def _without_the_half(p: Distribution, q: Distribution) -> Fraction:
    return 1 - 2 * total_variation(p, q)


def _dot(p: Distribution, q: Distribution) -> Fraction:
    return sum((a * b for a, b in zip(p, q, strict=True)), Fraction(0))


def _weighed_by_target(p: Distribution, q: Distribution) -> Fraction:
    return sum((a * min(Fraction(1), b / a) * a for a, b in zip(p, q, strict=True) if a), Fraction(0))


S1_STATEMENT = Statement(
    words="Under speculative sampling a drafted token is accepted with probability 1 - TV(p, q)",
    formula="P(accepted) = sum_x q(x) min(1, p(x)/q(x)) = sum_x min(p(x), q(x)) = 1 - TV(p, q)",
    rule=_acceptance_is(_similarity, "1 - TV"),
    over=OVER_PAIRS,
    domain=alike(2),
    every=_few_pairs,
    examples=150,
)
S1 = Claim(
    id="S1",
    source="SpecRouter (2505.07680) Eq. 2, after 2211.17192",
    statement=S1_STATEMENT,
    expected="holds",
    because=(
        "A draw x from q is accepted with min(1, p(x)/q(x)), and q min(1, p/q) = min(p, q) wherever q > 0; "
        "both are 0 elsewhere. The sum of |p - q| is 2 - 2 sum min(p, q), since p and q each sum to 1."
    ),
    broken=(
        S1_STATEMENT.but(
            "The probability is that of two independent draws being equal, sum p q",
            _acceptance_is(_dot, "sum p q"),
        ),
        S1_STATEMENT.but(
            "It is 1 less the sum of absolute differences, without the half",
            _acceptance_is(_without_the_half, "1 - sum |p - q|"),
        ),
        S1_STATEMENT.but(
            "It is the overlap weighed by the target, sum p min(p, q)",
            _acceptance_is(_weighed_by_target, "sum p min(p, q)"),
        ),
    ),
)


CLAIMS = (S1,)
