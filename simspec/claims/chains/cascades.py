"""A free lower level below a drafter, as in CS-Drafting (S11, S11b, S40, S41)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Plot, Statement, against
from simspec.claims.chains.walked import HALF, ONE, SOURCE_CS, Cascade, walked_cascade, walked_pair
from simspec.claims.plain import number, shown
from simspec.strategies.survivals import chances, grid
from simspec.theory import third_level as closed
from simspec.theory.third_level import Cycle, emitted


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

CLAIMS = (S11, S11B, S40, S41)
