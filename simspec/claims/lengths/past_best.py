"""How far past the best length Algorithm 1 goes with true confidences, and what that costs (L32, L33).

p_k = chance that place k is accepted once all before it were; S_d = p_1 .. p_d. A cycle of d places takes
T(d) = T0 + c d and gives tau(d) = S_1 + .. + S_d tokens, one more with the bonus; its rate is tau(d) / T(d).
The unit of time is c = 1. G_i(d) and alpha are those of ``simspec.theory.libraspec``; q = p throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.lengths.runs import PAPER
from simspec.claims.lengths.tuned_cases import (
    OVER_TUNED,
    PAYS,
    PAYS_FORMULA,
    Tuned,
    all_tuned,
    by_algorithm,
    threshold,
    tuned,
)
from simspec.claims.plain import number, shown

ONE = Fraction(1)

# L32


@dataclass(frozen=True)
class TunedAt:
    """alpha is taken at length ``i``, best or not."""

    case: Tuned
    i: int


def all_tuned_at(level: int) -> Iterator[TunedAt]:
    for case in all_tuned(min(level, 1)):
        yield from (TunedAt(case, i) for i in {1, len(case.p)})


# What is submitted with an alpha.
Submits = Callable[[Tuned, Fraction], int]


def _past_best(at: TunedAt, submits: Submits = by_algorithm, most: int | None = None) -> Outcome:
    case, best = at.case, at.case.best()
    if not best or best[-1] == case.d_max or not case.tokens()[at.i]:
        return UNMET
    alpha = case.alpha(at.i)
    found = submits(case, alpha)
    if best[-1] < found and (most is None or found <= best[-1] + most):
        return None
    return against(
        case.told(),
        f"best lengths: {shown(tuple(best))}; alpha = T/(tau c) at length {at.i}: {number(alpha)}; {found} "
        "submitted",
    )


L32_STATEMENT = Statement(
    words=(
        "With true confidences and alpha = T_i/(tau_i c) taken at any length i with tau_i > 0, Algorithm 1 "
        f"submits more than the longest best length d*, from every block n, unless d* is d_max; {PAYS}"
    ),
    formula=f"{PAYS_FORMULA}, alpha = T(i) / (c tau(i)), d* < d_max  =>  result > d*",
    rule=_past_best,
    over=f"{OVER_TUNED}; alpha at i = 1 and i = d_max, and at random i",
    domain=tuned().flatmap(lambda case: st.builds(TunedAt, st.just(case), st.integers(1, len(case.p)))),
    every=all_tuned_at,
    examples=120,
)
L32 = Claim(
    id="L32",
    source=f"derived from {PAPER}, Algorithm 1 with Assumption 3.7",
    statement=L32_STATEMENT,
    expected="holds",
    because=(
        "Let r be the best rate, over length 0 too. No rate is above it, so alpha >= 1/(c r) whatever i. "
        "The place d* pays: length d* - 1, which is 0 for d* = 1, is a choice and has tau(d* - 1) <= r T(d* "
        "- 1), so S_{d*} = tau(d*) - tau(d* - 1) >= c r >= 1/alpha. (Here T0 > 0 is used: with T0 = 0 and "
        "the bonus length 0 gives a token for nothing, and S_1 >= c r need not hold: L32-from-1.) For each "
        "suffix i..d* the products from i on are at least those from 1 on, and those are at least S_{d*}: "
        "each suffix has mean survival 1/alpha or more, and a pass at d* extends (L30). So W >= d* if d* < "
        "d_max, and the result is W + 1 or more (L31)."
    ),
    broken=(
        L32_STATEMENT.but(
            "... with half that alpha", lambda at: _past_best(at, lambda c, alpha: by_algorithm(c, alpha / 2))
        ),
        L32_STATEMENT.but(
            "... with alpha = 2.2", lambda at: _past_best(at, lambda c, _: by_algorithm(c, Fraction(11, 5)))
        ),
        L32_STATEMENT.but("... and by one token only", lambda at: _past_best(at, most=1)),
        L32_STATEMENT.but(
            "... and so does the rule that ends at the last d with alpha S_d >= 1",
            lambda at: _past_best(at, threshold),
        ),
        L32_STATEMENT.but(
            "... and so does one place more than the last d with alpha S_d > 1 (than 1 if there is none)",
            lambda at: _past_best(at, lambda c, alpha: 1 + threshold(c, alpha, strict=True)),
        ),
    ),
)

# L33


def _keeps(case: Tuned, share: Fraction, from_any: bool = False) -> Outcome:
    best = case.best()
    if not best or (case.block > best[-1] and not from_any):
        return UNMET
    rates = case.rates()
    found = by_algorithm(case, case.alpha(best[-1]))
    if rates[found] >= share * max(rates):
        return None
    return against(
        case.told(),
        f"best d = {best[-1]} at {number(max(rates))} tokens per unit of time, submitted {found} at "
        f"{number(rates[found])}: {number(rates[found] / max(rates))} of it",
    )


def long_starts(level: int) -> Iterator[Tuned]:
    """The whole of a block of which only the first place is worth anything."""
    for weak in range(1, 5 + level):
        yield Tuned((Fraction(1, 3), *(Fraction(0),) * weak), ONE, False, 1 + weak)


L33_STATEMENT = Statement(
    words=(
        "With true confidences and alpha taken at the longest best length d*, from a block n <= d*, "
        f"Algorithm 1 keeps at least half of the best speedup, {PAYS}"
    ),
    formula=f"{PAYS_FORMULA}, alpha = T(d*) / (c tau(d*)), n <= d*  =>  rate(result) >= rate(d*) / 2",
    rule=lambda case: _keeps(case, Fraction(1, 2)),
    over=OVER_TUNED,
    domain=tuned(),
    every=all_tuned,
    examples=120,
)
L33 = Claim(
    id="L33",
    source=f"derived from {PAPER}, Algorithm 1 with Assumption 3.7",
    statement=L33_STATEMENT,
    expected="holds",
    because=(
        "Write t(d) for tau(d) without the bonus, b = 1 with a bonus and 0 without, r for the best speedup, "
        "R for the result. The last extension went from some d < R to R or beyond, and by i = 1 no further "
        "than alpha t(d) + 1, so R - 1 <= alpha t(R), alpha = 1/(c r). Then T(R) = T(1) + c (R - 1) <= "
        "T(d*) + t(R)/r = (t(d*) + b + t(R)) / r <= (2 t(R) + b) / r, as R >= d* (L32). So rate(R) = (t(R) "
        "+ b) / T(R) >= r (t(R) + b) / (2 t(R) + b) >= r / 2. Without a bonus the half is reached: p = "
        "(1/3, 0, 0), T0 = c; with one it is approached. From n > d* nothing of the kind holds: n = d_max "
        "is submitted unseen."
    ),
    broken=(
        L33_STATEMENT.but("... at least 51/100 of it", lambda case: _keeps(case, Fraction(51, 100))),
        L33_STATEMENT.but(
            "... from any block n <= d_max",
            lambda case: _keeps(case, Fraction(1, 2), from_any=True),
            every=long_starts,
        ),
    ),
)

CLAIMS = (L32, L33)
