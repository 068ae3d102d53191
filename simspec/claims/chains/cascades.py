"""A free lower level below a drafter, as in CS-Drafting, where any width costs the same (S11)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.chains.walked import (
    HALF,
    ONE,
    SOURCE_CS,
    Cascade,
    handed_up,
    mean,
    review,
    walked_cascade,
    walked_pair,
)
from simspec.claims.plain import number
from simspec.strategies.survivals import chances, grid
from simspec.theory.third_level import Cycle


def speed(one: Cycle[Fraction]) -> Fraction:
    return one.tokens / one.seconds


def told(case: Cascade, with_it: Cycle[Fraction], without: Cycle[Fraction]) -> tuple[str, ...]:
    handed = handed_up(case.inner, case.rounds, case.reviewed)
    return (
        f"the target accepts M_d1 with {case.alpha}, M_d1 accepts M_d2 with {case.inner}; a token of M_d1 "
        f"costs {case.middle} of the target's and of M_d2 nothing; each further token of a forward costs "
        f"{case.slope} of its first",
        f"without M_d2, M_d1 drafts {case.rounds}: "
        f"{' + '.join(str(case.alpha**j) for j in range(case.rounds + 1))} = {number(without.tokens)} tokens "
        f"for {number(without.seconds)} (1 + {case.slope} x {case.rounds} for the target to read "
        f"{case.rounds} and one, {case.rounds} x {case.middle} for M_d1), so {number(speed(without))} of "
        "plain decoding's speed",
        f"with M_d2, {case.rounds} rounds of {case.reviewed} tokens hand up "
        + ", ".join(
            f"{n} with probability {p} (making {mean(review(case.alpha, n))})"
            for n, p in sorted(handed.items())
        )
        + f": {number(with_it.tokens)} tokens for {number(with_it.seconds)} (1 + {case.slope} x "
        f"{mean(handed)} for the target, {case.rounds} x {case.middle} x (1 + {case.slope} x "
        f"{case.reviewed}) for M_d1), so {number(speed(with_it))}",
    )


def cascade_grid(level: int, slopes: tuple[Fraction, ...]) -> Iterator[Cascade]:
    for rounds, reviewed in product(range(1, 3 + level), repeat=2):
        for alpha, inner in product(grid(2 + level), repeat=2):
            for middle, slope in product((HALF, ONE), slopes):
                yield Cascade(alpha, inner, rounds, reviewed, middle, slope)


def random_cascades(slope: st.SearchStrategy[Fraction]) -> st.SearchStrategy[Cascade]:
    few, cost = st.integers(1, 4), st.builds(Fraction, st.integers(1, 20), st.just(20))
    return st.builds(Cascade, chances(), chances(), few, few, cost, slope)


def _helps(
    case: Cascade,
    own_tokens: int = 1,
    lower: Fraction = Fraction(0),
    capped: bool = False,
    inner_is_enough: bool = False,
    as_slow: bool = False,
) -> Outcome:
    """Never slower, and faster exactly when there is anything to gain.

    Args:
        own_tokens, lower, capped: faults of the cycle, as for :func:`walked_cascade`.
        inner_is_enough: takes it that there is whenever M_d1 accepts anything.
        as_slow: a fault of the cycle, which takes the same time for each token as without M_d2.
    """
    with_it, without = walked_cascade(case, own_tokens, lower, capped), walked_pair(case)
    if as_slow:
        with_it = Cycle(with_it.tokens, with_it.tokens / without.tokens * without.seconds)
    gains = with_it.faster_than(without)
    should = case.inner > 0 and (case.alpha > 0 or inner_is_enough)
    if not without.faster_than(with_it) and gains == should:
        return None
    return against(*told(case, with_it, without))


FLAT = st.just(Fraction(0))
S11_STATEMENT = Statement(
    words=(
        "A lower level that costs nothing never slows a chain whose forwards cost the same whatever they "
        "read, and makes it faster exactly when M_d1 and the target ever accept anything"
    ),
    formula=(
        "EWIF(c_d2 = 0) >= (1 - alpha^(n+1)) / ((1 - alpha)(1 + n c_d1)), strictly iff alpha, alpha_inner > 0"
    ),
    rule=_helps,
    over="acceptance on a grid of 1/3, up to 3 rounds of up to 3 tokens; random ones of up to 4 rounds of 4",
    domain=random_cascades(FLAT),
    every=lambda level: cascade_grid(level, (Fraction(0),)),
    examples=150,
)
S11 = Claim(
    id="S11",
    source=(
        f"{SOURCE_CS} Cor. 4.4, with its suppositions: independent acceptance, flat verification cost, c_d2 "
        "= 0"
    ),
    statement=S11_STATEMENT,
    expected="holds",
    because=(
        "Both cycles run the target once and M_d1 n times, so they take the same time. A round hands up "
        "M_d1's own token and whatever M_d2 got right before it, so at least 1: n rounds hand up L >= n "
        "tokens, and the target's accepted run min(A, L) is at least min(A, n). L > n happens iff M_d2 is "
        "ever accepted, and is used iff alpha > 0."
    ),
    broken=(
        S11_STATEMENT.but(
            "... and so does one whose token costs a million millionth of the target's",
            # So little that what is gained anywhere outweighs it: only a loss where nothing is gained shows.
            lambda case: _helps(case, lower=Fraction(1, 10**12)),
        ),
        S11_STATEMENT.but(
            "... even if M_d1's own token after its review is not handed up",
            lambda case: _helps(case, own_tokens=0),
        ),
        S11_STATEMENT.but(
            "... even if the target reads no more than the n tokens that it would read without",
            lambda case: _helps(case, capped=True),
        ),
        S11_STATEMENT.but(
            "... counting M_d1's own token after its review twice",
            lambda case: _helps(case, own_tokens=2),
        ),
        S11_STATEMENT.but(
            "... even if what it adds to a cycle takes as long a token as the rest",
            lambda case: _helps(case, as_slow=True),
        ),
        S11_STATEMENT.but(
            "... and makes it faster exactly when M_d1 ever accepts anything",
            lambda case: _helps(case, inner_is_enough=True),
        ),
    ),
)


CLAIMS = (S11,)
