"""Which way two readings err: a mean length carried through a curve (S22), an own token left out (S23)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.eq7.cases import ALONE, HALF, OVER, Choice, choices, every_choice, flat
from simspec.claims.eq7.readings import READINGS, SOURCES, says, truth
from simspec.claims.eq7.rules import described
from simspec.claims.plain import number
from simspec.strategies.chains import Semantics, all_plans
from simspec.strategies.survivals import grid


def _errs(name: str, semantics: Semantics, sign: int) -> Callable[[Choice], Outcome]:
    """The reading's time per token is at most (-1) or at least (1) the exact one; for pairs it is exact."""

    def rule(case: Choice) -> Outcome:
        real = truth(case.pool, case.one, semantics).seconds_per_token
        said = says(READINGS[name], case.pool, case.one, semantics)
        if said is None:
            return UNMET
        if said == real or (len(case.one.models) > 2 and (said - real) * sign > 0):
            return None
        return against(
            *described(case.pool, semantics),
            f"{case.one}: {number(real)} a token, the formula says {number(said)}",
        )

    return rule


def _bent(level: int) -> Iterator[Choice]:
    """alpha_1 = 1/2 and alpha_2 a fourth power, so that mean lengths give fractions; forwards of 1 or 2."""
    for seconds in product((1, 2), repeat=3):
        for root in grid(2 + level):
            pool = flat(seconds, (HALF, root**4))
            for plan in all_plans(3, 2):
                yield Choice(pool, plan, ALONE)


S22_STATEMENT = Statement(
    words=(
        "The funnel reading never takes a chain with a middle to be slower than it is, and is exact for "
        "pairs (funnel-truncate, independent acceptance, forwards of the same time at any width): it swaps "
        "only in favour of the longer chain"
    ),
    formula="S(alpha_2, S(alpha_1, gamma)) >= sum_{j=1}^{gamma} (alpha_1 alpha_2)^j",
    rule=_errs("funnel-truncate", "funnel-truncate", -1),
    over="three models, alpha_1 of 1/3, 1/2 or 2/3 and alpha_2 such powers that the formula gives fractions",
    domain=choices("funnel-truncate", bends=True),
    every=_bent,
    examples=60,
)
S22 = Claim(
    id="S22",
    source=SOURCES["funnel-truncate"],
    statement=S22_STATEMENT,
    expected="holds",
    because=(
        "S(a, n) = a (1 - a^n) / (1 - a) is concave in n, so E[S(a, n)] <= S(a, E[n]) (Jensen), and "
        "E[S(alpha_2, n)] with n = min(G, gamma) is the sum of (alpha_1 alpha_2)^j."
    ),
    broken=(
        S22_STATEMENT.but("It is exact", _errs("funnel-truncate", "funnel-truncate", 0)),
        S22_STATEMENT.but(
            "It never takes one to be faster than it is", _errs("funnel-truncate", "funnel-truncate", 1)
        ),
    ),
)
S23_STATEMENT = Statement(
    words=(
        "The reach reading (any) never takes a chain to be faster than it is under funnel-replace, and is "
        "exact for pairs (three models, independent acceptance, forwards of the same time at any width)"
    ),
    formula="E(alpha_1 alpha_2, gamma) <= 1 + alpha_2 E(alpha_1 alpha_2, gamma)",
    rule=_errs("reach-any", "funnel-replace", 1),
    over=OVER,
    domain=choices("funnel-replace", deep=False),
    every=every_choice("funnel-replace"),
    examples=60,
)
S23 = Claim(
    id="S23",
    source=SOURCES["reach-any"],
    statement=S23_STATEMENT,
    expected="holds",
    because=(
        "Let x = alpha_1 alpha_2. E(x, gamma) = 1 + x E(x, gamma - 1), which is at most 1 + alpha_2 E(x, "
        "gamma). The ratio goes to 2 as alpha_1 goes to 0 and alpha_2 to 1: the middle's own token is all "
        "that is passed on."
    ),
    broken=(S23_STATEMENT.but("It never takes one to be slower", _errs("reach-any", "funnel-replace", -1)),),
)

CLAIMS = (S22, S23)
