"""When another level pays (S11, S12, and S40 to S46).

The truth side walks through cycles outcome by outcome: CS-Drafting's rounds token by token here, funnels
and nested chains by the project's own rules of a cycle, over every way in which the models can agree.
The other side is a published criterion or a closed form of simspec.theory.third_level.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import lcm, prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Plot, Statement, against
from simspec.claims.plain import number, shown
from simspec.speculation.chains import Chain
from simspec.speculation.cycle import AskDraft, AskWords, cycle, run_cycle
from simspec.speculation.verify import Block, GreedyJudge
from simspec.strategies.survivals import chances, grid
from simspec.theory import third_level as closed
from simspec.theory.third_level import Costs, Cycle, Insertion, PlaceLaw, emitted, independent

ONE, HALF = Fraction(1), Fraction(1, 2)
SOURCE_CS = "CS-Drafting (2312.11462)"
SOURCE_POLYBASIC = "Polybasic (2510.26527)"


def _whole(least: int, most: int) -> st.SearchStrategy[Fraction]:
    return st.builds(Fraction, st.integers(least, most))


# CS-Drafting's cycle, token by token


@dataclass(frozen=True)
class Cascade:
    """A target, M_d1 and M_d2; costs are forwards of the target over one token, M_d2's is 0.

    Attributes:
        alpha: the target accepts a token of M_d1.
        inner: M_d1 accepts a token of M_d2.
        rounds: n, forwards of M_d1 before the target reads (without M_d2: tokens that M_d1 drafts).
        reviewed: k, tokens of M_d2 in each round.
        middle: c_d1, a forward of M_d1 over one token.
        slope: a forward over w tokens costs 1 + slope (w - 1) times one over a single token.
    """

    alpha: Fraction
    inner: Fraction
    rounds: int
    reviewed: int
    middle: Fraction
    slope: Fraction = Fraction(0)


@lru_cache(maxsize=4096)
def review(rate: Fraction, block: int) -> dict[int, Fraction]:
    """Tokens after a verifier read ``block`` tokens, its own one included, with their probability."""
    alive, ends = ONE, {}
    for place in range(block):
        ends[place + 1] = alive * (1 - rate)
        alive *= rate
    ends[block + 1] = alive
    return ends


@lru_cache(maxsize=4096)
def handed_up(inner: Fraction, rounds: int, reviewed: int, own_tokens: int = 1) -> dict[int, Fraction]:
    """What ``rounds`` rounds collect, with its probability; 0 ``own_tokens`` forgets M_d1's own."""
    held = {0: ONE}
    for _ in range(rounds):
        more: dict[int, Fraction] = {}
        for (so_far, p), (tokens, q) in product(held.items(), review(inner, reviewed).items()):
            at = so_far + tokens - 1 + own_tokens
            more[at] = more.get(at, Fraction(0)) + p * q
        held = more
    return held


def _mean(outcomes: dict[int, Fraction]) -> Fraction:
    return sum((n * p for n, p in outcomes.items()), Fraction(0))


def walked_cascade(case: Cascade, own_tokens: int = 1, lower: Fraction = Fraction(0)) -> Cycle[Fraction]:
    """Expected tokens and cost of a cycle with M_d2, which costs ``lower`` a token."""
    tokens, spent = Fraction(0), Fraction(0)
    for handed, p in handed_up(case.inner, case.rounds, case.reviewed, own_tokens).items():
        tokens += p * _mean(review(case.alpha, handed))
        spent += p * (1 + case.slope * handed)
    rounds = case.rounds * (case.middle * (1 + case.slope * case.reviewed) + case.reviewed * lower)
    return Cycle(tokens, spent + rounds)


def walked_pair(case: Cascade) -> Cycle[Fraction]:
    """The same without M_d2: M_d1 drafts ``rounds`` tokens one by one."""
    spent = 1 + case.slope * case.rounds + case.rounds * case.middle
    return Cycle(_mean(review(case.alpha, case.rounds)), spent)


def _rate(one: Cycle[Fraction]) -> Fraction:
    return one.tokens / one.seconds


def _told(case: Cascade, with_it: Cycle[Fraction], without: Cycle[Fraction]) -> tuple[str, ...]:
    return (
        f"the target accepts M_d1 with {case.alpha}, M_d1 accepts M_d2 with {case.inner}; a token of M_d1 "
        f"costs {case.middle} of the target's and of M_d2 nothing; each further token of a forward costs "
        f"{case.slope} of its first",
        f"without M_d2: M_d1 drafts {case.rounds}: {number(without.tokens)} tokens for "
        f"{number(without.seconds)}, so {number(_rate(without))} of plain decoding's speed",
        f"with M_d2: {case.rounds} rounds of {case.reviewed} tokens: {number(with_it.tokens)} tokens for "
        f"{number(with_it.seconds)}, so {number(_rate(with_it))}",
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


def _helps(case: Cascade, own_tokens: int = 1, lower: Fraction = Fraction(0)) -> Outcome:
    """Never slower, and faster exactly when there is anything to gain."""
    with_it, without = walked_cascade(case, own_tokens, lower), walked_pair(case)
    gains = with_it.faster_than(without)
    if not without.faster_than(with_it) and gains == (case.alpha > 0 and case.inner > 0):
        return None
    return against(*_told(case, with_it, without))


FLAT = st.just(Fraction(0))
S11_STATEMENT = Statement(
    words=(
        "A lower level that costs nothing never slows a chain whose forwards cost the same whatever they "
        "read, and makes it faster if it is ever accepted"
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
            "... and so does one that costs a hundredth of a target's token",
            lambda case: _helps(case, lower=Fraction(1, 100)),
        ),
        S11_STATEMENT.but(
            "... even if M_d1's own token after its review is not handed up",
            lambda case: _helps(case, own_tokens=0),
        ),
    ),
)


def _never_slower(case: Cascade) -> Outcome:
    if not (case.alpha and case.inner):
        return UNMET
    with_it, without = walked_cascade(case), walked_pair(case)
    return against(*_told(case, with_it, without)) if without.faster_than(with_it) else None


def _exactly_when(case: Cascade) -> Outcome:
    tokens = closed.cascade_tokens(case.alpha, case.inner, case.rounds, case.reviewed)
    time = closed.cascade_seconds(
        case.inner, case.rounds, case.reviewed, case.middle, Fraction(0), case.slope
    )
    grows = tokens / emitted(case.alpha, case.rounds)
    costs = time / closed.pair_seconds(case.rounds, case.middle, case.slope)
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
OVER_SLOPES = "as for S11, slopes 0, 1/4 and 1/2; random slopes up to 1"
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
        "tokens in every round, the target for n E(inner, k). With a poor M_d1 nothing comes of it."
    ),
    pinned=Cascade(HALF, HALF, 1, 1, HALF, HALF),
    repaired=Statement(
        words=(
            "It makes the chain faster exactly when expected tokens grow by a larger factor than expected "
            "cost, both in closed form"
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
    ),
    first_look=(
        "The first look's .62 -> .39 (slope .2, c .3, n 2, k 4, alpha .2) charges the target for n k = 8 "
        "tokens and M_d1 for 1. Counted as what is read, the cascade comes to .48 (inner .2), .44 (.5) or "
        ".31 (1)."
    ),
    plot=_by_slope,
)

# S40: on any text


@dataclass(frozen=True)
class HandedUp:
    """A text decoded with blocks of M_d1's own tokens.

    Attributes:
        agreed: at each place, whether M_d1 says what the target says (given the text before it).
        extra: tokens beyond ``least`` that are handed up if a cycle begins at that place.
    """

    agreed: tuple[int, ...]
    least: int
    extra: tuple[int, ...]


def _target_passes(case: HandedUp, extra: tuple[int, ...]) -> int:
    at = passes = 0
    while at < len(case.agreed):
        handed, end = case.least + extra[at], at
        while end < len(case.agreed) and end - at < handed and case.agreed[end]:
            end += 1
        at, passes = end + 1, passes + 1
    return passes


def _no_more_passes(case: HandedUp, fewer: int = 0) -> Outcome:
    given = tuple(n - fewer for n in case.extra)
    more = _target_passes(case, given)
    same = _target_passes(case, (0,) * len(case.agreed))
    if more <= same:
        return None
    return against(
        f"M_d1 agrees with the target at {shown(case.agreed)}",
        f"{case.least} tokens in every cycle: {same} passes of the target",
        f"{shown(tuple(case.least + n for n in given))} if begun at that place: {more} passes",
    )


def _texts(level: int) -> Iterator[HandedUp]:
    for size in range(1, 5 + level):
        for agreed in product((1, 0), repeat=size):
            for least, extra in product((1, 2), product((0, 1), repeat=size)):
                yield HandedUp(agreed, least, extra)


@st.composite
def _random_texts(draw: st.DrawFn) -> HandedUp:
    size = draw(st.integers(1, 30))
    agreed = draw(st.lists(st.sampled_from([1, 1, 1, 0]), min_size=size, max_size=size))
    extra = draw(st.lists(st.integers(0, 5), min_size=size, max_size=size))
    return HandedUp(tuple(agreed), draw(st.integers(1, 4)), tuple(extra))


S40_STATEMENT = Statement(
    words=(
        "On every text, handing up n tokens of M_d1 or more in each cycle takes no more passes of the "
        "target than n in each (greedy): with flat costs a free lower level never slows any text, "
        "independent or not"
    ),
    formula="h(t) >= n for all t  =>  passes(h) <= passes(n)",
    rule=_no_more_passes,
    over="all texts of up to 5 tokens, n 1 and 2, up to 1 more at each place; random ones of up to 30 tokens",
    domain=_random_texts(),
    every=_texts,
    examples=150,
)
S40 = Claim(
    id="S40",
    source=f"S11 without its supposition of independent acceptance ({SOURCE_CS} Cor. 4.4)",
    statement=S40_STATEMENT,
    expected="holds",
    because=(
        "Let D(t) be the first place from t on where M_d1 errs. A cycle from t that is handed h tokens ends "
        "at min(D(t), t + h) + 1. D never falls, so a cycle that begins no earlier and is handed no less "
        "ends no earlier: by induction the j-th cycle with more ends no earlier than the j-th with n. Each "
        "costs the same."
    ),
    broken=(
        S40_STATEMENT.but(
            "... or one fewer than n, now and then", lambda case: _no_more_passes(case, fewer=1)
        ),
    ),
)

# S41: the theorem's own count


def _thm_43(case: Cascade, iterated: bool = False, reviewed: int = 0) -> Outcome:
    k = case.reviewed + reviewed
    if iterated:
        x = case.alpha
        for _ in range(case.rounds):
            x = closed.phi(case.inner, k, x)
        said = (1 - case.alpha * x) / (1 - case.alpha) if case.alpha < 1 else Fraction(-1)
    else:
        said = closed.cascade_tokens(case.alpha, case.inner, case.rounds, k)
    true = walked_cascade(case)
    time = closed.cascade_seconds(
        case.inner, case.rounds, case.reviewed, case.middle, Fraction(0), case.slope
    )
    if said == true.tokens and time == true.seconds:
        return None
    return against(
        f"walked: {number(true.tokens)} tokens for {number(true.seconds)}",
        f"formula: {number(said)} tokens for {number(time)}",
    )


S41_STATEMENT = Statement(
    words="Theorem 4.3's tokens of a cycle, with the n-th power of phi, are what the cycle yields",
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
        "phi(x)^n, and the target makes (1 - alpha^(L+1)) / (1 - alpha) tokens of L on average."
    ),
    broken=(
        S41_STATEMENT.but("phi applied n times instead", lambda case: _thm_43(case, iterated=True)),
        S41_STATEMENT.but("phi for k - 1 reviewed tokens", lambda case: _thm_43(case, reviewed=-1)),
    ),
)

# S42, S12, S12b: Polybasic


@dataclass(frozen=True)
class Inserted:
    """M_new between a target and its drafter; seconds of a forward, whatever it reads.

    Attributes:
        lower, upper: M_new accepts the drafter, the target accepts M_new, independently; without M_new the
            target accepts the drafter with their product.
        rounds: forwards of M_new for each of the target's.
        drafts: beta, tokens of the drafter for each forward above it.
        target, new, drafter: T_i > T_new > T_{i+1}.
    """

    lower: Fraction
    upper: Fraction
    rounds: int
    drafts: int
    target: Fraction
    new: Fraction
    drafter: Fraction


@lru_cache(maxsize=4096)
def _cascade_tokens(alpha: Fraction, inner: Fraction, rounds: int, reviewed: int) -> Fraction:
    return walked_cascade(Cascade(alpha, inner, rounds, reviewed, ONE)).tokens


def _both(case: Inserted) -> tuple[Cycle[Fraction], Cycle[Fraction]]:
    """Walked cycles before and after the insertion."""
    before = _mean(review(case.lower * case.upper, case.drafts))
    after = _cascade_tokens(case.upper, case.lower, case.rounds, case.drafts)
    drafting = case.drafts * case.drafter
    return (
        Cycle(before, case.target + drafting),
        Cycle(after, case.target + case.rounds * (case.new + drafting)),
    )


def _insertion(case: Inserted, own_level: bool = False) -> Insertion[Fraction]:
    """What the criterion looks at.

    Args:
        own_level: L_new as the tokens that a forward of M_new yields, thrown away by the target or not;
            otherwise as tokens of the text for each forward of M_new.
    """
    before, after = _both(case)
    new_after = _mean(review(case.lower, case.drafts)) if own_level else after.tokens / case.rounds
    beta = Fraction(case.drafts)
    return Insertion(case.target, case.new, case.drafter, beta, before.tokens, after.tokens, new_after)


def _worked(case: Inserted) -> tuple[str, ...]:
    before, after = _both(case)
    found = _insertion(case)
    return (
        f"T_i = {case.target}, T_new = {case.new}, T_(i+1) = {case.drafter}, beta = {case.drafts}, "
        f"{case.rounds} forwards of M_new a target's; M_new accepts with {case.lower}, the target accepts "
        f"M_new with {case.upper}",
        f"L_i = {number(found.before)}, L_(i-new) = {number(found.above_after)}, L_new = "
        f"{number(found.new_after)}",
        f"T_new/T_i = {number(found.new / found.above)} against L_new (1/L_i - 1/L_(i-new)) = "
        f"{number(found.new_after * (1 / found.before - 1 / found.above_after))}; T_new/T_(i+1) = "
        f"{number(found.new / found.below)} against beta (L_new/L_i - 1) = "
        f"{number(found.drafts_a_pass * (found.new_after / found.before - 1))}: insert {found.published}",
        f"per token the target is spared {number(found.saved_above)}, the drafter "
        f"{number(found.saved_below)}, and M_new takes {number(found.spent)}",
        f"true seconds per token: {number(before.seconds / before.tokens)} before, "
        f"{number(after.seconds / after.tokens)} after",
    )


def _sufficient(case: Inserted) -> Outcome:
    before, after = _both(case)
    if not _insertion(case).published:
        return UNMET
    return None if after.faster_than(before) else against(*_worked(case))


def _sufficient_if_both_gain(case: Inserted) -> Outcome:
    found = _insertion(case)
    return UNMET if min(found.saved_above, found.saved_below) < 0 else _sufficient(case)


def _necessary(case: Inserted) -> Outcome:
    before, after = _both(case)
    if not after.faster_than(before):
        return UNMET
    return None if _insertion(case).published else against(*_worked(case))


def _sum_decides(case: Inserted, own_level: bool = False) -> Outcome:
    before, after = _both(case)
    agrees = after.faster_than(before) == _insertion(case, own_level).exact
    return None if agrees else against(*_worked(case))


def _insertions(level: int) -> Iterator[Inserted]:
    times = [t for t in product(range(1, (7, 10, 12)[level]), repeat=3) if t[0] > t[1] > t[2]]
    for target, new, drafter in sorted(times, key=lambda t: (sum(t), t)):
        seconds = (Fraction(target), Fraction(new), Fraction(drafter))
        for rounds, drafts in product((1, 2), repeat=2):
            for lower, upper in product(grid(2), repeat=2):
                yield Inserted(lower, upper, rounds, drafts, *seconds)


@st.composite
def _random_insertions(draw: st.DrawFn) -> Inserted:
    drafter = draw(st.integers(1, 8))
    new = drafter + draw(st.integers(1, 8))
    target = new + draw(st.integers(1, 60))
    seconds = (Fraction(target), Fraction(new), Fraction(drafter))
    # One or two rounds, so that the repaired premise (nothing runs more often) is met now and then.
    return Inserted(
        draw(chances(10)), draw(chances(10)), draw(st.integers(1, 2)), draw(st.integers(1, 4)), *seconds
    )


def _savings(case: Inserted) -> Plot:
    found = _insertion(case)
    return Plot(
        "Seconds per token that the insertion spares and spends",
        "bars",
        "",
        "seconds per token",
        ("target spared", "drafter spared", "both together", "new model spent"),
        {
            "seconds": tuple(
                map(
                    float,
                    (
                        found.saved_above,
                        found.saved_below,
                        found.saved_above + found.saved_below,
                        found.spent,
                    ),
                )
            )
        },
    )


S12_STATEMENT = Statement(
    words="If either of the theorem's two inequalities holds, inserting M_new makes decoding faster",
    formula="T_new/T_i < L_new (1/L_i - 1/L_(i-new)) or T_new/T_(i+1) < beta (L_new/L_i - 1)  =>  faster",
    rule=_sufficient,
    over=(
        "whole seconds up to 9, acceptance 0, 1/2 and 1, up to 2 rounds of 2 drafts; random ones up to 76 s "
        "and 2 rounds of 4. L_new counts tokens of the text for each forward of M_new, which makes Eq. 3 "
        "exact"
    ),
    domain=_random_insertions(),
    every=_insertions,
    examples=200,
)
S12 = Claim(
    id="S12",
    source=f"{SOURCE_POLYBASIC} Thm 3.2, the 'if'",
    statement=S12_STATEMENT,
    expected="refuted",
    because=(
        "The first inequality says that what the target is spared pays for M_new, and forgets that the "
        "drafter may now run more often per token: each token of M_new that the target throws away was "
        "drafted for."
    ),
    pinned=Inserted(HALF, HALF, 2, 1, Fraction(9), Fraction(2), ONE),
    repaired=S12_STATEMENT.but(
        "If neither the target nor the drafter runs more often per token, either inequality suffices",
        _sufficient_if_both_gain,
        formula="L_(i-new) >= L_i, L_new >= L_i and either inequality  =>  faster",
    ),
    plot=_savings,
)
S12B = Claim(
    id="S12b",
    source=f"{SOURCE_POLYBASIC} Thm 3.2, the 'only if' (its limitations say 'sufficient' only)",
    statement=S12_STATEMENT.but(
        "Inserting M_new makes decoding faster only if one of the theorem's two inequalities holds",
        _necessary,
        formula="faster  =>  T_new/T_i < L_new (1/L_i - 1/L_(i-new)) or T_new/T_(i+1) < beta (L_new/L_i - 1)",
    ),
    expected="refuted",
    because=(
        "Each inequality sets one saving alone against the whole price. Two savings, neither of which pays "
        "for M_new, may do so together."
    ),
    pinned=Inserted(HALF, HALF, 1, 1, Fraction(6), Fraction(2), ONE),
    repaired=S12_STATEMENT.but(
        "Inserting M_new makes decoding faster exactly when both savings together exceed its time per token",
        _sum_decides,
        formula="faster  <=>  T_new/L_new < T_i (1/L_i - 1/L_(i-new)) + beta T_(i+1) (1/L_i - 1/L_new)",
    ),
    broken=(
        S12_STATEMENT.but(
            "... with L_new as the tokens that a forward of M_new yields, thrown away by the target or not",
            lambda case: _sum_decides(case, own_level=True),
        ),
    ),
    plot=_savings,
)


def _eq_3(case: Inserted, own_level: bool = True) -> Outcome:
    _, after = _both(case)
    found = _insertion(case, own_level)
    lengths = (found.above_after, found.new_after)
    times = (case.target, case.new, case.drafter)
    said = closed.polybasic_seconds(lengths, times, found.drafts_a_pass)
    true = after.seconds / after.tokens
    if said == true:
        return None
    return against(
        *_worked(case)[:1],
        f"a cycle yields L_1 = {number(after.tokens)} tokens; a forward of M_2 yields "
        f"{number(found.new_after)}",
        f"Eq. 3: {case.target}/L_1 + ({case.new} + {case.drafts} x {case.drafter})/L_2 = {number(said)} "
        "seconds a token",
        f"walked: {number(after.seconds)} seconds for {number(after.tokens)} tokens, {number(true)} a token",
    )


S42_STATEMENT = S12_STATEMENT.but(
    "Eq. 3 is the time per token if each L_i is what a forward of M_i yields, as measured on M_i and "
    "M_(i+1) alone",
    _eq_3,
    formula="T = sum_{i<n} T_i / L_i + beta T_n / L_(n-1)",
    over="as for S12",
)
S42 = Claim(
    id="S42",
    source=f"{SOURCE_POLYBASIC} Eq. 3, three models",
    statement=S42_STATEMENT,
    expected="refuted",
    because=(
        "M_2 runs for tokens that the target then throws away, and the target's own token costs M_2 "
        "nothing: M_2 runs n / L_1 times per token of text, not 1 / L_2."
    ),
    pinned=Inserted(HALF, HALF, 1, 1, Fraction(3), Fraction(2), ONE),
    repaired=S42_STATEMENT.but(
        "Eq. 3 is the time per token if each L_i counts tokens of the final text for each forward of M_i",
        lambda case: _eq_3(case, own_level=False),
    ),
)

# S43, S44, S45: closed forms, against the rules of a cycle

# What M_1 and M_2 say where the target says 0, for each part of a PlaceLaw and for "all differ".
_SAID = ((0, 0), (1, 1), (2, 0), (0, 1), (2, 1))


@lru_cache(maxsize=64)
def _funnel_outcomes(semantics: Any, drafts: int) -> tuple[tuple[tuple[int, ...], int, int, int], ...]:
    """Every cycle of a funnel over ``drafts`` drafted places and the one after them.

    Returns:
        (how often each way of agreeing occurs, tokens that the target was given, emitted, how many such).
        Without semantics, of the pair.
    """
    seen: Counter[tuple[tuple[int, ...], int, int]] = Counter()
    target = np.zeros(drafts + 3, dtype=np.int32)
    for ways in product(range(len(_SAID)), repeat=drafts + 1):
        block = np.array([_SAID[way][0] for way in ways[:drafts]], dtype=np.int32)
        middle = np.array([_SAID[way][1] for way in ways], dtype=np.int32)

        def read(block: Any, words: Any = target) -> Any:
            return words[: len(block) + 1]

        def read_middle(block: Any, words: Any = middle) -> Any:
            return words[: len(block) + 1]

        verifiers = [read] if semantics is None else [read_middle, read]
        done = run_cycle(block, verifiers, semantics or "none", drafts + 3, ())
        counts = tuple(ways.count(way) for way in range(len(_SAID)))
        seen[counts, done.offered[-1], len(done.emitted)] += 1
    return tuple((counts, given, out, times) for (counts, given, out), times in seen.items())


@dataclass(frozen=True)
class Setting:
    """Three models at work; the pair without the middle drafts ``alone`` tokens (0: plain decoding)."""

    law: PlaceLaw[Fraction]
    costs: Costs[Fraction]
    drafts: int
    alone: int
    rounds: int = 1


def _walked_funnel(case: Setting, semantics: Any, drafts: int) -> Cycle[Fraction]:
    law = case.law
    known = (law.all_agree, law.only_lower, law.only_upper, law.only_outer)
    whole = lcm(*(chance.denominator for chance in known))
    weights = [int(chance * whole) for chance in (*known, 1 - sum(known))]
    tokens, given_to_target = 0, Counter[int]()
    for counts, given, out, times in _funnel_outcomes(semantics, drafts):
        weight = times * prod(w**n for w, n in zip(weights, counts, strict=True))
        tokens += weight * out
        given_to_target[given] += weight
    every = whole ** (drafts + 1)
    spent = drafts * case.costs.draft + (case.costs.middle(drafts + 1) if semantics else 0)
    reading = sum((w * case.costs.target(n + 1) for n, w in given_to_target.items()), Fraction(0))
    return Cycle(Fraction(tokens, every), spent + reading / every)


def _walked_rounds(case: Setting) -> Cycle[Fraction]:
    """n rounds of k drafts, then the target: CS-Drafting's cycle at this setting's costs."""
    law, n = case.law, case.rounds
    inner = case.rounds * (case.drafts * case.costs.draft + case.costs.middle(case.drafts + 1))
    given = handed_up(law.lower, n, case.drafts)
    reading = sum((p * case.costs.target(handed + 1) for handed, p in given.items()), Fraction(0))
    return Cycle(_cascade_tokens(law.upper, law.lower, n, case.drafts), inner + reading)


def _pays(case: Setting, walked: Cycle[Fraction], said: Cycle[Fraction]) -> Outcome:
    """Whether the closed form's limit on the middle's time decides as walking through does."""
    alone = _walked_funnel(case, None, case.alone)
    free = case.rounds * case.costs.middle(case.drafts + 1)
    most = closed.most_middle_seconds(said, closed.pair(case.law, case.costs, case.alone), free)
    if walked == said and walked.faster_than(alone) == (free < most):
        return None
    return against(
        f"{shown(case)}",
        f"walked: {number(walked.tokens)} tokens in {number(walked.seconds)}; without the middle "
        f"{number(alone.tokens)} in {number(alone.seconds)}",
        f"formula: {number(said.tokens)} tokens in {number(said.seconds)}; the middle takes {number(free)}, "
        f"at most {number(most)} pays",
    )


def _funnel_rule(semantics: str, form: Any, change: Any = None) -> Any:
    def rule(case: Setting) -> Outcome:
        said = form(case.law, case.costs, case.drafts)
        if change is not None:
            said = change(case, said)
        return _pays(case, _walked_funnel(case, semantics, case.drafts), said)

    return rule


def _as_the_pair(case: Setting, said: Cycle[Fraction]) -> Cycle[Fraction]:
    return Cycle(emitted(case.law.outer, case.drafts), said.seconds)


def _all_read(case: Setting, said: Cycle[Fraction]) -> Cycle[Fraction]:
    widest = case.costs.target(case.drafts + 1) - case.costs.target(emitted(case.law.lower, case.drafts))
    return Cycle(said.tokens, said.seconds + widest)


def _no_correction(case: Setting, said: Cycle[Fraction]) -> Cycle[Fraction]:
    return Cycle(emitted(case.law.all_agree, case.drafts + 1), said.seconds)


def _laws(parts: int) -> Iterator[PlaceLaw[Fraction]]:
    for weights in product(range(parts + 1), repeat=4):
        if sum(weights) <= parts:
            yield PlaceLaw(*(Fraction(w, parts) for w in weights))


def _settings(level: int) -> Iterator[Setting]:
    prices = (Costs(HALF, HALF, HALF, ONE, ONE), Costs(Fraction(0), Fraction(0), Fraction(1, 8), ONE, ONE))
    for drafts, alone in product((1, 2), (0, 1, 2)):
        for law, costs in product(_laws(1 + level), prices):
            yield Setting(law, costs, drafts, alone)


def _random_costs() -> st.SearchStrategy[Costs[Fraction]]:
    small, some = _whole(0, 5), _whole(0, 40)
    return st.builds(Costs, small, small, small, some, small).filter(lambda c: c.target(1) > 0)


@st.composite
def _random_settings(draw: st.DrawFn) -> Setting:
    weights = draw(st.lists(st.integers(0, 8), min_size=5, max_size=5).filter(any))
    law = PlaceLaw(*(Fraction(w, sum(weights)) for w in weights[:4]))
    return Setting(law, draw(_random_costs()), draw(st.integers(1, 3)), draw(st.integers(0, 3)))


S43_STATEMENT = Statement(
    words=(
        "Under funnel-truncate a third level beats the pair (or plain decoding) exactly when the middle's "
        "forward takes less than a closed form of the place law and the other costs"
    ),
    formula=(
        "V_2(d+1) < C2 E(e, d) / E(alpha_13, d') - d T_1 - V_3(E(alpha_12, d)), C2 = d' T_1 + V_3(d'+1), e "
        "= P(all three agree)"
    ),
    rule=_funnel_rule("funnel-truncate", closed.truncate),
    over=(
        "place laws in multiples of 1/2, 2 sets of costs, up to 2 drafts; random laws and affine costs, up "
        "to 3 drafts; every cycle over all ways in which three models can agree is walked through"
    ),
    domain=_random_settings(),
    every=_settings,
    examples=100,
)
S43 = Claim(
    id="S43",
    source="for SpecRouter's (2505.07680) chains, i.i.d. places, affine cost; goes with S6",
    statement=S43_STATEMENT,
    expected="holds",
    because=(
        "A place reaches the text only if all three agree on it and on all before: E(e, d) tokens. The "
        "target reads the run on which M_1 and M_2 agree, S(alpha_12, d) on average, and one more; cost is "
        "affine, so the mean run is enough. At the same d, e <= alpha_13 makes it necessary that V_2(d+1) "
        "is below the slope saved, slope_3 (d - S(alpha_12, d)): where a wider forward of the target costs "
        "no more, a truncating level never pays, and if V_2's slope is at least the target's neither."
    ),
    broken=(
        S43_STATEMENT.but(
            "... with as many tokens as the pair gets from the block, E(alpha_13, d)",
            _funnel_rule("funnel-truncate", closed.truncate, _as_the_pair),
        ),
        S43_STATEMENT.but(
            "... with the target reading the whole block",
            _funnel_rule("funnel-truncate", closed.truncate, _all_read),
        ),
    ),
)
S44_STATEMENT = S43_STATEMENT.but(
    "Under funnel-replace a third level beats the pair (or plain decoding) exactly when the middle's "
    "forward takes less than a closed form of the place law and the other costs",
    _funnel_rule("funnel-replace", closed.replace),
    formula=(
        "V_2(d+1) < C2 [E(e, d+1) + y E(e, d)] / E(alpha_13, d') - d T_1 - V_3(1 + E(alpha_12, d)), y = "
        "P(only M_2 and the target agree)"
    ),
)
S44 = Claim(
    id="S44",
    source="for SpecRouter's (2505.07680) chains, i.i.d. places, affine cost",
    statement=S44_STATEMENT,
    expected="holds",
    because=(
        "The middle adds a token at its cut, right with probability y there, or after all d, right with "
        "alpha_23 = e + y: 1 + sum_{j <= d} e^j + y sum_{n < d} e^n + e^d (e + y) = E(e, d+1) + y E(e, d). "
        "The target reads one more than under truncation. Where its cost is flat and M_2 throws no good "
        "token away, at d' = d: V_2(d+1) / C2 < y + e^(d+1) / E(e, d)."
    ),
    broken=(
        S44_STATEMENT.but(
            "... with the middle's own token counted only after a whole block",
            _funnel_rule("funnel-replace", closed.replace, _no_correction),
        ),
        S44_STATEMENT.but(
            "... with the width that truncation gives the target",
            _funnel_rule(
                "funnel-replace",
                closed.replace,
                lambda case, said: Cycle(
                    said.tokens, closed.truncate(case.law, case.costs, case.drafts).seconds
                ),
            ),
        ),
    ),
)


def _nested_rule(case: Setting, rounds_less: int = 0) -> Outcome:
    law, n = case.law, case.rounds - rounds_less
    said = closed.nested(law.lower, law.upper, case.costs, n, case.drafts)
    return _pays(case, _walked_rounds(case), said)


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
    _random_costs(),
    st.integers(1, 3),
    st.integers(0, 3),
    st.integers(1, 3),
)
S45_STATEMENT = Statement(
    words=(
        "Nested, with n rounds before the target reads, a third level beats the pair (or plain decoding) "
        "exactly when the middle's n forwards take less than a closed form of the two acceptances and the "
        "other costs"
    ),
    formula=(
        "n V_2(k+1) < C2 [(1 - b phi^n(b)) / (1 - b)] / E(ab, d') - n k T_1 - V_3(1 + n E(a, k)), a = "
        "alpha_12, b = alpha_23 independent"
    ),
    rule=_nested_rule,
    over=(
        "acceptance on a grid, up to 2 rounds of 2 drafts; random ones and affine costs, up to 3 rounds of 3"
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
    because="S41 gives the tokens; the target reads n E(a, k) + 1 tokens on average, and its cost is affine.",
    broken=(S45_STATEMENT.but("... with one round fewer", lambda case: _nested_rule(case, rounds_less=1)),),
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
    return (drafts * case.draft + case.middle[drafts]) / emitted(case.agreement, drafts)


def _inner_must_pay(case: Inner, only_at_drafts: bool = False) -> Outcome:
    inner, alone = _inner_seconds(case), case.wanted * case.middle[0]
    lengths = [case.drafts] if only_at_drafts else list(range(case.drafts + 1))
    best = min(_inner_rate(case, n) for n in lengths)
    if inner >= case.wanted * best and (not only_at_drafts or (inner < alone) == (best < case.middle[0])):
        return None
    return against(
        f"{shown(case)}",
        f"{case.wanted} tokens of the middle: {number(inner)} s nested, {number(alone)} s one by one",
        f"the inner pair by itself: {number(best)} s a token at best",
    )


def _inners(level: int) -> Iterator[Inner]:
    curves = ((1, 1, 1, 1), (1, 2, 3, 4), (2, 3, 4, 5), (2, 2, 4, 4))
    for wanted, drafts in product(range(1, 4 + level // 2), (1, 2, 3)):
        for agreement, draft, curve in product(grid(3 + level), (Fraction(0), HALF), curves):
            yield Inner(agreement, wanted, drafts, draft, tuple(map(Fraction, curve)))


@st.composite
def _random_inners(draw: st.DrawFn) -> Inner:
    curve = draw(st.lists(_whole(1, 20), min_size=5, max_size=5).map(sorted))
    wanted, drafts = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    return Inner(draw(chances()), wanted, drafts, draw(_whole(0, 10)), tuple(curve))


S46_STATEMENT = Statement(
    words=(
        "Nested, the inner pair never collects n tokens of the middle faster than n times its own best time "
        "per token: nesting beats the middle drafting alone only if the inner pair by itself beats the "
        "middle"
    ),
    formula="E[inner seconds for n tokens] >= n min_{0<=j<=k} (j T_1 + V_2(j+1)) / E(alpha_12, j)",
    rule=_inner_must_pay,
    over="up to 3 tokens, 3 drafts, 4 cost curves; random rising cost curves, up to 5 tokens and 4 drafts",
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
            "Nesting beats the middle alone exactly when the inner pair does at k drafts",
            lambda case: _inner_must_pay(case, only_at_drafts=True),
        ),
    ),
)

CLAIMS = (S11, S11B, S12, S12B, S40, S41, S42, S43, S44, S45, S46)
