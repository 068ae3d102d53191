"""First stops under rejection sampling (L16a, L16b, L16d)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

from simspec.claims.base import Claim, Outcome, Statement
from simspec.claims.lossless.chance import LOSSLESS
from simspec.claims.lossless.cycles import MakeJudge, OneByOne
from simspec.claims.lossless.faulty_judges import hidden
from simspec.claims.lossless.length_cases import (
    EVEN,
    HALVES,
    THIRDS,
    UNEVEN,
    Case,
    MakeRule,
    cases_of,
    first_text_tokens,
    lossless,
)
from simspec.claims.lossless.length_rules import (
    Threshold,
    first_uncertain,
    first_weak_top,
    last_place,
    stop_after,
    stop_before,
    stop_before_from,
    surprised,
    weak_itself,
)
from simspec.speculation.verify import RejectionJudge
from simspec.strategies.models import Table

_STOPS = "confidence stops (Kangaroo, SpecDec++, HF's assistant) under rejection sampling"


def _every_threshold(level: int) -> Iterator[Case]:
    """Blocks of 3 without memory; blocks of 2 whose drafter sees the last token."""
    setting = Threshold(Fraction(5, 8))
    for target in (EVEN, UNEVEN):
        for q in THIRDS:
            yield Case(setting, 3, 4, OneByOne(Table(2, 0, (q,))), target)
    for target in (EVEN, UNEVEN)[: level + 1]:
        for values in product(THIRDS if level else HALVES, repeat=3):
            yield Case(setting, 2, 3, OneByOne(Table(2, 1, values)), target)


OVER_THRESHOLDS = (
    "all drafters over 2 tokens that see the last one, in halves and thirds, blocks of 2, and without "
    "memory, blocks of 3; two targets, threshold 5/8 (fewer at the smallest budget); random models over 2 "
    "and 3 tokens that see up to 2, thresholds 3/8 to 1, blocks of 1 to 3"
)

# L16a, L16b

L16A_STATEMENT = Statement(
    words=(
        "Stopping after the first token that was drawn with a low probability, and submitting that token "
        "too, is lossless"
    ),
    formula=LOSSLESS,
    rule=lossless(stop_after),
    over=OVER_THRESHOLDS,
    domain=cases_of("threshold"),
    every=_every_threshold,
    examples=60,
)


def _judged_after(judged: MakeJudge) -> Callable[[Case], Outcome]:
    return lossless(stop_after, judged)


L16A = Claim(
    id="L16a",
    source=_STOPS,
    statement=L16A_STATEMENT,
    expected="holds",
    because=(
        "Whether place i is submitted depends on the probabilities of the tokens drawn before it: it is "
        "settled when its own token is drawn. So the token there is an honest draw from q, and L16's "
        "reason applies."
    ),
    broken=(
        L16A_STATEMENT.but("... and so is stopping before it", lossless(stop_before)),
        L16A_STATEMENT.but(
            "... and so is stopping before it, but submitting the first token in any case",
            lossless(stop_before_from(1)),
        ),
        *hidden(L16A_STATEMENT, _judged_after),
    ),
)
L16B = Claim(
    id="L16b",
    source=_STOPS,
    statement=L16A_STATEMENT.but(
        "Stopping before the first token that was drawn with a low probability is lossless",
        lossless(stop_before),
    ),
    expected="refuted",
    because=(
        "A weak token is never verified: it is dropped, and the target draws anew at its place. The "
        "drafter's strong tokens get a second chance there. The repaired statement is L16a, with its reason."
    ),
    pinned=Case(Threshold(Fraction(3, 4)), 1, 2, OneByOne(UNEVEN), EVEN),
    repaired=L16A_STATEMENT,
    broken=hidden(L16A_STATEMENT, _judged_after),
    plot=first_text_tokens(stop_before),
)


# L16d


def _both_stops(
    top: MakeRule = first_weak_top, uncertain: MakeRule = first_uncertain, judged: MakeJudge = RejectionJudge
) -> Callable[[Case], Outcome]:
    by_top, by_entropy = lossless(top, judged), lossless(uncertain, judged)
    return lambda case: by_top(case) or by_entropy(case)


L16D_STATEMENT = Statement(
    words=(
        "Stopping before the first place whose greatest probability is low, or whose entropy is high, is "
        "lossless"
    ),
    formula=LOSSLESS,
    rule=_both_stops(),
    over=OVER_THRESHOLDS + "; entropies in floats, which only say where to stop",
    domain=cases_of("threshold"),
    every=_every_threshold,
    examples=50,
)
L16D = Claim(
    id="L16d",
    source="stops by top-1 probability or entropy (SVIP, CaDDTree 2606.01813) under rejection sampling",
    statement=L16D_STATEMENT,
    expected="holds",
    because=(
        "A place's distribution is a function of the tokens before it, and so is any number made of it. A "
        "first stop looks at the places up to i, not beyond."
    ),
    broken=(
        L16D_STATEMENT.but(
            "... also if the first also drops a token that is not its place's most probable one",
            _both_stops(top=weak_itself),
        ),
        L16D_STATEMENT.but(
            "... also if the last place decides for the whole block by its greatest probability",
            _both_stops(top=last_place),
        ),
        L16D_STATEMENT.but(
            "... also if the second looks at the drawn token's information and not at the entropy, its mean",
            _both_stops(uncertain=surprised),
        ),
        *hidden(L16D_STATEMENT, lambda judged: _both_stops(judged=judged)),
    ),
)

CLAIMS = (L16A, L16B, L16D)
