"""Expected tokens of a cycle at one acceptance rate (S3).

alpha = acceptance rate, gamma = draft length, E(alpha, gamma) = (1 - alpha^(gamma+1)) / (1 - alpha)
(arXiv 2211.17192). What is true is counted by running the rules of a cycle
(:mod:`simspec.speculation.cycle`) on every outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.plain import number, shown
from simspec.speculation.cycle import run_cycle
from simspec.strategies.survivals import Conditional, chances, grid
from simspec.theory.acceptance import emitted_tokens

Sequence = tuple[bool, ...]


@cache
def counted(agreed: Sequence) -> int:
    """Tokens that a cycle emits where the target has the drafted token at these places of the block."""
    words = np.array([*(int(not a) for a in agreed), 1], dtype=np.int32)
    drafted = np.zeros(len(agreed), dtype=np.int32)
    return len(run_cycle(drafted, [lambda block: words], "none", len(agreed) + 1, ()).emitted)


def mean_over_outcomes(p: Conditional, of: Callable[[Sequence], int]) -> Fraction:
    """Expectation of ``of`` over every sequence of agreements, place k agreeing with probability p_k."""
    total = Fraction(0)
    for agreed in product((True, False), repeat=len(p)):
        chance = Fraction(1)
        for a, rate in zip(agreed, p, strict=True):
            chance *= rate if a else 1 - rate
        total += chance * of(agreed) if chance else 0
    return total


def _formula(shift: int = 0, bonus: int = 0) -> Callable[[Conditional], Outcome]:
    def rule(p: Conditional) -> Outcome:
        mean = sum(p, Fraction(0)) / len(p)
        said, truth = emitted_tokens(mean, len(p) + shift) + bonus, mean_over_outcomes(p, counted)
        if said == truth:
            return None
        return against(
            f"places are accepted with probability {shown(p)}, whatever happened before",
            f"over all {2 ** len(p)} outcomes a cycle emits {number(truth)} tokens on average",
            f"the formula says {number(said)}",
        )

    return rule


def _constant(rate: Fraction, size: int) -> Conditional:
    return (rate,) * size


def _constants(level: int) -> Iterator[Conditional]:
    for size in range(1, 6 + level):
        for rate in grid(4 + 4 * level):
            yield _constant(rate, size)


S3_STATEMENT = Statement(
    words=(
        "If every drafted token is accepted with probability alpha, independently, a cycle that drafts gamma "
        "emits (1 - alpha^(gamma+1)) / (1 - alpha) tokens on average, the target's own one included"
    ),
    formula="E[tokens] = sum_{j=0}^{gamma} alpha^j = (1 - alpha^(gamma+1)) / (1 - alpha)",
    rule=_formula(),
    over="alpha = 0, 1/8, .., 1 and gamma up to 6 (more at larger budgets); random alpha, gamma up to 6",
    domain=st.builds(_constant, chances(), st.integers(1, 6)),
    every=_constants,
    beyond=st.tuples(chances(6), chances(6)).filter(lambda p: len(set(p)) > 1),
    examples=100,
)
S3 = Claim(
    id="S3",
    source="arXiv 2211.17192 Eq. 1; the denominator of SpecRouter's (2505.07680) Eq. 7",
    statement=S3_STATEMENT,
    expected="holds",
    because=(
        "At least j drafts are accepted exactly if the first j are: probability alpha^j. A mean is the sum "
        "of such probabilities over j = 1 .. gamma; the target's own token is the term j = 0. Where the "
        "rate changes along the block the formula at the mean rate is wrong, so the supposition is needed."
    ),
    broken=(
        S3_STATEMENT.but("The same for one token fewer (the bonus is forgotten)", _formula(shift=-1)),
        S3_STATEMENT.but("The same for accepted drafts, which leave the bonus out", _formula(bonus=-1)),
        S3_STATEMENT.but("The same for one token more", _formula(shift=1)),
    ),
)

CLAIMS = (S3,)
