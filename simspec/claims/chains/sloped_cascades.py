"""The same free lower level where forwards cost more the more they read (S11b), and its count (S41)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial

from simspec.claims.base import UNMET, Claim, Outcome, Plot, Statement, against
from simspec.claims.chains.cascades import cascade_grid, random_cascades, speed, told
from simspec.claims.chains.walked import HALF, SOURCE_CS, Cascade, walked_cascade, walked_pair
from simspec.claims.plain import number
from simspec.strategies.survivals import chances
from simspec.theory import chains
from simspec.theory import third_level as closed
from simspec.theory.acceptance import emitted_tokens
from simspec.theory.third_level import Costs


def _never_slower(case: Cascade) -> Outcome:
    if not (case.alpha and case.inner):
        return UNMET
    with_it, without = walked_cascade(case), walked_pair(case)
    return against(*told(case, with_it, without)) if without.faster_than(with_it) else None


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
    return against(*told(case, with_it, without), f"tokens by {number(grows)}, time by {number(costs)}")


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
            "with M_d2": tuple(float(speed(walked_cascade(one))) for one in each),
            "without": tuple(float(speed(walked_pair(one))) for one in each),
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
    domain=random_cascades(chances()),
    every=lambda level: cascade_grid(level, SLOPES),
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
        domain=random_cascades(chances()),
        every=lambda level: cascade_grid(level, SLOPES),
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
    domain=random_cascades(chances()),
    every=lambda level: cascade_grid(level, SLOPES),
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


CLAIMS = (S11B, S41)
