"""A free lower level below a drafter, as in CS-Drafting (S11, S11b, S41)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Plot, Statement, against
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
from simspec.theory import chains
from simspec.theory import third_level as closed
from simspec.theory.acceptance import emitted_tokens
from simspec.theory.third_level import Costs, Cycle


def _rate(one: Cycle[Fraction]) -> Fraction:
    return one.tokens / one.seconds


def _told(case: Cascade, with_it: Cycle[Fraction], without: Cycle[Fraction]) -> tuple[str, ...]:
    handed = handed_up(case.inner, case.rounds, case.reviewed)
    return (
        f"the target accepts M_d1 with {case.alpha}, M_d1 accepts M_d2 with {case.inner}; a token of M_d1 "
        f"costs {case.middle} of the target's and of M_d2 nothing; each further token of a forward costs "
        f"{case.slope} of its first",
        f"without M_d2, M_d1 drafts {case.rounds}: "
        f"{' + '.join(str(case.alpha**j) for j in range(case.rounds + 1))} = {number(without.tokens)} tokens "
        f"for {number(without.seconds)} (1 + {case.slope} x {case.rounds} for the target to read "
        f"{case.rounds} and one, {case.rounds} x {case.middle} for M_d1), so {number(_rate(without))} of "
        "plain decoding's speed",
        f"with M_d2, {case.rounds} rounds of {case.reviewed} tokens hand up "
        + ", ".join(
            f"{n} with probability {p} (making {mean(review(case.alpha, n))})"
            for n, p in sorted(handed.items())
        )
        + f": {number(with_it.tokens)} tokens for {number(with_it.seconds)} (1 + {case.slope} x "
        f"{mean(handed)} for the target, {case.rounds} x {case.middle} x (1 + {case.slope} x "
        f"{case.reviewed}) for M_d1), so {number(_rate(with_it))}",
    )


def _cascades(level: int, slopes: tuple[Fraction, ...]) -> Iterator[Cascade]:
    for rounds, reviewed in product(range(1, 3 + level), repeat=2):
        for alpha, inner in product(grid(2 + level), repeat=2):
            for middle, slope in product((HALF, ONE), slopes):
                yield Cascade(alpha, inner, rounds, reviewed, middle, slope)


def _random_cascades(slope: st.SearchStrategy[Fraction]) -> st.SearchStrategy[Cascade]:
    few, cost = st.integers(1, 4), st.builds(Fraction, st.integers(1, 20), st.just(20))
    return st.builds(Cascade, chances(), chances(), few, few, cost, slope)


# S11, S11b


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
    return against(*_told(case, with_it, without))


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
    domain=_random_cascades(FLAT),
    every=lambda level: _cascades(level, (Fraction(0),)),
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


def _never_slower(case: Cascade) -> Outcome:
    if not (case.alpha and case.inner):
        return UNMET
    with_it, without = walked_cascade(case), walked_pair(case)
    return against(*_told(case, with_it, without)) if without.faster_than(with_it) else None


def _prices(case: Cascade) -> Costs[Fraction]:
    """With a free M_d2."""
    return closed.relative(case.middle, Fraction(0), case.slope)


Charge = Callable[[Cascade], Fraction]


def _nothing(case: Cascade) -> Fraction:
    return Fraction(0)


def _one_wide(case: Cascade) -> Fraction:
    """What is left out where M_d1 is charged for one token a round."""
    return -case.rounds * case.middle * case.slope * case.reviewed


def _all_handed(case: Cascade) -> Fraction:
    """What is charged too much where the target reads all that a round can hand up."""
    return case.slope * case.rounds * (case.reviewed + 1 - emitted_tokens(case.inner, case.reviewed))


def _exactly_when(case: Cascade, wrongly: Charge = _nothing) -> Outcome:
    prices = _prices(case)
    said = closed.nested(case.inner, case.alpha, prices, case.rounds, case.reviewed)
    alone = closed.pair(case.alpha, replace(prices, draft=case.middle), case.rounds)
    grows, costs = said.tokens / alone.tokens, (said.seconds + wrongly(case)) / alone.seconds
    with_it, without = walked_cascade(case), walked_pair(case)
    if with_it.faster_than(without) == (grows > costs):
        return None
    return against(*_told(case, with_it, without), f"tokens by {number(grows)}, time by {number(costs)}")


def _by_slope(case: Cascade) -> Plot:
    slopes = tuple(Fraction(i, 10) for i in range(6))
    each = [replace(case, slope=slope) for slope in slopes]
    return Plot(
        "Speed with and without the free lower level",
        "line",
        "slope of the cost of a forward",
        "speed over plain decoding",
        tuple(map(float, slopes)),
        {
            "with M_d2": tuple(float(_rate(walked_cascade(one))) for one in each),
            "without": tuple(float(_rate(walked_pair(one))) for one in each),
        },
    )


SLOPES = (Fraction(0), Fraction(1, 4), HALF)
OVER_SLOPES = (
    "acceptance on a grid of 1/3, up to 3 rounds of up to 3 tokens, M_d1 at half the target's cost or at all "
    "of it, slopes 0, 1/4 and 1/2; random ones of up to 4 rounds of 4, slopes up to 1"
)
S11B_REPAIRED = Statement(
    words=(
        "Such a level makes the chain faster exactly when expected tokens grow by a larger factor than "
        "expected cost, both in closed form"
    ),
    formula=(
        "(1 - alpha phi^n(alpha)) / (1 - alpha^(n+1)) > [1 + slope n E(inner, k) + n c (1 + slope k)] / "
        "[1 + slope n + n c]"
    ),
    rule=_exactly_when,
    over=OVER_SLOPES,
    domain=_random_cascades(chances()),
    every=lambda level: _cascades(level, SLOPES),
    examples=150,
)
S11B = Claim(
    id="S11b",
    source=f"{SOURCE_CS} Cor. 4.4 where verification costs more the more it reads",
    statement=Statement(
        words=(
            "A lower level that costs nothing and is sometimes accepted never slows a chain, whatever "
            "forwards cost"
        ),
        formula="alpha, alpha_inner > 0  =>  EWIF with M_d2 >= EWIF without, T(w) = 1 + slope (w - 1)",
        rule=_never_slower,
        over=OVER_SLOPES,
        domain=_random_cascades(chances()),
        every=lambda level: _cascades(level, SLOPES),
        examples=150,
    ),
    expected="refuted",
    because=(
        "More is handed up than the target accepts, and both verifiers pay for reading it: M_d1 for k "
        "tokens in every round, the target for n E(inner, k). With a poor M_d1 nothing comes of it. The "
        "repaired statement: cycles are independent and alike, so speed is mean tokens over mean cost. It "
        "grows exactly when tokens grow by the larger factor. Mean tokens are S41's; mean cost is the cost "
        "at the mean width, since it is affine in width."
    ),
    pinned=Cascade(HALF, HALF, 1, 1, HALF, HALF),
    repaired=S11B_REPAIRED,
    broken=(
        S11B_REPAIRED.but(
            "... with M_d1 charged for one token a round: says too often that it pays",
            partial(_exactly_when, wrongly=_one_wide),
        ),
        S11B_REPAIRED.but(
            "... with the target charged for all n (k + 1) tokens that can be handed up: says too seldom "
            "that it pays",
            partial(_exactly_when, wrongly=_all_handed),
        ),
    ),
    first_look=(
        "The first look's .62 -> .39 (slope .2, c .3, n 2, k 4, alpha .2) charges the target for n k = 8 "
        "tokens and M_d1 for 1. Counted as what is read, the cascade comes to .48 (inner .2), .44 (.5) or "
        ".31 (1)."
    ),
    plot=_by_slope,
)

# S41: the theorem's own count


def _thm_43(case: Cascade, iterated: bool = False, reviewed: int = 0, wrongly: Charge = _nothing) -> Outcome:
    k = case.reviewed + reviewed
    if iterated:
        x = case.alpha
        for _ in range(case.rounds):
            x = chains.round_generating((case.inner,), k, (), x)
        said = (1 - case.alpha * x) / (1 - case.alpha) if case.alpha < 1 else Fraction(-1)
    else:
        said = chains.round_tokens((case.inner, case.alpha), k, (case.rounds,))
    true = walked_cascade(case)
    time = closed.nested(case.inner, case.alpha, _prices(case), case.rounds, case.reviewed).seconds
    time += wrongly(case)
    if said == true.tokens and time == true.seconds:
        return None
    return against(
        f"walked: {number(true.tokens)} tokens for {number(true.seconds)}",
        f"formula: {number(said)} tokens for {number(time)}",
    )


S41_STATEMENT = Statement(
    words=(
        "Theorem 4.3's tokens of a cycle, with the n-th power of phi, are what the cycle yields, and its "
        "cost, with a slope put in, is what the cycle costs"
    ),
    formula=(
        "E[tokens] = (1 - alpha phi^n(alpha)) / (1 - alpha); cost 1 + slope n E(inner, k) + n c (1 + slope k)"
    ),
    rule=_thm_43,
    over=OVER_SLOPES,
    domain=_random_cascades(chances()),
    every=lambda level: _cascades(level, SLOPES),
    examples=100,
)
S41 = Claim(
    id="S41",
    source=f"{SOURCE_CS} Thm 4.3",
    statement=S41_STATEMENT,
    expected="holds",
    because=(
        "A round hands up N tokens, j <= k with probability inner^(j-1) (1 - inner) and k + 1 with inner^k, "
        "whose generating function E[x^N] is phi(x). L is a sum of n independent ones, so E[x^L] = "
        "phi(x)^n, and the target makes (1 - alpha^(L+1)) / (1 - alpha) tokens of L on average. It reads L "
        "and its own last token, n E(inner, k) + 1 on average, and M_d1 k + 1 in each round; cost is affine."
    ),
    broken=(
        S41_STATEMENT.but("phi applied n times instead", lambda case: _thm_43(case, iterated=True)),
        S41_STATEMENT.but("phi for k - 1 reviewed tokens", lambda case: _thm_43(case, reviewed=-1)),
        S41_STATEMENT.but("... with M_d1 charged for one token a round", partial(_thm_43, wrongly=_one_wide)),
        S41_STATEMENT.but(
            "... with the target charged for all n (k + 1) tokens that can be handed up",
            partial(_thm_43, wrongly=_all_handed),
        ),
    ),
)

CLAIMS = (S11, S11B, S41)
