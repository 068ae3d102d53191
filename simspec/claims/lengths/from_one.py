"""Algorithm 1 where a cycle must submit a token: lengths from 1 on, T0 = 0 allowed (L8-from-1, L32-from-1).

p_k = chance that place k is accepted once all before it were; S_d = p_1 .. p_d. A cycle of d places takes
T(d) = T0 + c d and gives tau(d) = S_1 + .. + S_d tokens, one more with the bonus; its rate is tau(d) / T(d).
The unit of time is c = 1. alpha = T_i / (tau_i c); q = p throughout. Length 0 is no choice here; drafting
pays where its rate (1/T0 with the bonus, 0 without) is no better than the best of the others. With the bonus
and T0 = 0 it never pays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.lengths.past_best import TunedAt
from simspec.claims.lengths.runs import PAPER, weights
from simspec.claims.lengths.tuned_cases import Tuned
from simspec.claims.plain import number, shown
from simspec.strategies.survivals import all_conditionals, conditionals, grid


def rates_from_one(case: Tuned) -> dict[int, Fraction]:
    """tau(d) / T(d), d = 1..d_max."""
    tokens = case.tokens()
    return {d: tokens[d] / (case.fixed + d) for d in range(1, case.d_max + 1)}


def best_from_one(case: Tuned) -> list[int]:
    """All best lengths from 1 on; empty where no token is expected at all."""
    rates = rates_from_one(case)
    return [d for d, rate in rates.items() if rate == max(rates.values()) > 0]


def pays(case: Tuned) -> bool:
    return not case.bonus or max(rates_from_one(case).values()) * case.fixed >= 1


def told(case: Tuned, alpha: Fraction, found: int) -> tuple[str, ...]:
    rates = ", ".join(f"{d}: {number(rate)}" for d, rate in rates_from_one(case).items())
    return (
        case.told(),
        f"tokens per unit of time by length: {rates}; "
        + ("drafting pays" if pays(case) else "drafting does not pay: no drafts at all would be better"),
        f"best lengths: {shown(tuple(best_from_one(case)))}; alpha = {number(alpha)}; {found} submitted",
    )


@st.composite
def tuned_from_one(draw: st.DrawFn) -> Tuned:
    p = draw(conditionals(longest=8))
    fixed = draw(st.one_of(st.just(Fraction(0)), weights))
    return Tuned(p, fixed, draw(st.booleans()), min(draw(st.sampled_from((1, 1, 2, 3, 5))), len(p)))


def all_from_one(level: int) -> Iterator[Tuned]:
    for p in all_conditionals(3, grid(2 + min(level, 1))):
        for fixed, bonus in product((0, 1, 2), (False, True)):
            yield from (Tuned(p, Fraction(fixed), bonus, block) for block in range(1, len(p) + 1))


OVER_FROM_ONE = (
    "all p of up to 3 places in thirds, T0 of 0, 1 and 2, with and without bonus, each n <= d_max; random "
    "p of up to 8 places, T0 of 0 and from 1/10 to 40; d_max is the number of places"
)
CHOICE = "a cycle must submit at least one token (lengths 1 to d_max, T(d) = T0 + c d, T0 >= 0)"

# L8-from-1


def _submits_best(case: Tuned, where: Callable[[Tuned], bool]) -> Outcome:
    best = best_from_one(case)
    if not best or not where(case):
        return UNMET
    alpha = case.alpha(best[-1])
    found = case.lengths(alpha)[-1]
    return None if found in best else against(*told(case, alpha, found))


def _pays_not(case: Tuned) -> bool:
    return not pays(case)


L8_STATEMENT = Statement(
    words=(
        f"Where {CHOICE} though drafting does not pay, Algorithm 1 with true confidences and alpha = T/(tau "
        "c) at the best length submits a best length, from every block n < d_max"
    ),
    formula=(
        "bonus, max_{1 <= d <= d_max} tau(d)/T(d) < 1/T0, alpha = T(d*) / (c tau(d*)), n < d_max  =>  "
        "tau(d)/T(d) is greatest at d = result"
    ),
    rule=lambda case: _submits_best(case, lambda c: _pays_not(c) and c.block < c.d_max),
    over=OVER_FROM_ONE,
    domain=tuned_from_one(),
    every=all_from_one,
    examples=120,
)
L8_REPAIRED = L8_STATEMENT.but(
    f"Where {CHOICE} though drafting does not pay, Algorithm 1 with that alpha submits a best length from n "
    "= 1",
    lambda case: _submits_best(case, lambda c: _pays_not(c) and c.block == 1),
    formula=(
        "bonus, max_{1 <= d <= d_max} tau(d)/T(d) < 1/T0, alpha = T(d*) / (c tau(d*)), n = 1  =>  "
        "tau(d)/T(d) is greatest at d = result = 1"
    ),
)
L8_FROM_ONE = Claim(
    id="L8-from-1",
    source=f"derived from {PAPER}, Algorithm 1 with Assumption 3.7",
    statement=L8_STATEMENT,
    expected="refuted",
    because=(
        "Drafting does not pay only with the bonus. Then rate(1), which lies between 1/T0 (no bound for T0 "
        "= 0) and S_1/c, is above S_1/c; so is each later place's S_j/c, and the rates fall from 1 on: 1 "
        "alone is best. At n = 1 a pass extends only if alpha S_1 >= 1, that is S_1/c >= rate(1), which is "
        "not so: 1 is submitted. From a longer block a pass cuts back to wherever its sums put it. So "
        "Algorithm 1 can be best below d_max, here; where drafting pays it never is (L32-from-1)."
    ),
    pinned=Tuned((Fraction(1), Fraction(1), Fraction(0)), Fraction(0), True, 2),
    repaired=L8_REPAIRED,
    broken=(
        L8_REPAIRED.but(
            "... from n = 1, whether drafting pays or not",
            lambda case: _submits_best(case, lambda c: c.block == 1),
        ),
        L8_REPAIRED.but(
            "... from n of 1 and 2", lambda case: _submits_best(case, lambda c: _pays_not(c) and c.block <= 2)
        ),
    ),
)

# L32-from-1


def _past_best(at: TunedAt, where: Callable[[Tuned], bool], most: int | None = None) -> Outcome:
    case, best = at.case, best_from_one(at.case)
    if not best or best[-1] == case.d_max or not case.tokens()[at.i] or not where(case):
        return UNMET
    alpha = case.alpha(at.i)
    found = case.lengths(alpha)[-1]
    if best[-1] < found and (most is None or found <= best[-1] + most):
        return None
    return against(*told(case, alpha, found))


def all_from_one_at(level: int) -> Iterator[TunedAt]:
    for case in all_from_one(level):
        yield from (TunedAt(case, i) for i in {1, len(case.p)})


L32_STATEMENT = Statement(
    words=(
        f"Where {CHOICE}, Algorithm 1 with true confidences and alpha = T_i/(tau_i c) at any length i with "
        "tau_i > 0 submits more than the longest best length, unless that is d_max"
    ),
    formula=(
        "d* = max argmax_{1 <= d <= d_max} tau(d)/T(d) < d_max, alpha = T(i) / (c tau(i))  =>  result > d*"
    ),
    rule=lambda at: _past_best(at, lambda c: True),
    over=f"{OVER_FROM_ONE}; alpha at i = 1 and i = d_max, and at random i",
    domain=tuned_from_one().flatmap(
        lambda case: st.builds(TunedAt, st.just(case), st.integers(1, len(case.p)))
    ),
    every=all_from_one_at,
    examples=80,
)
L32_REPAIRED = L32_STATEMENT.but(
    f"Where {CHOICE} and drafting pays (no bonus, or a best rate of at least 1/T0), Algorithm 1 with that "
    "alpha submits more than the longest best length, from every block n, unless that is d_max",
    lambda at: _past_best(at, pays),
    formula=(
        "d* = max argmax_{1 <= d <= d_max} tau(d)/T(d) < d_max, no bonus or tau(d*)/T(d*) >= 1/T0, alpha = "
        "T(i) / (c tau(i))  =>  result > d*"
    ),
)
L32_FROM_ONE = Claim(
    id="L32-from-1",
    source=f"derived from {PAPER}, Algorithm 1 with Assumption 3.7",
    statement=L32_STATEMENT,
    expected="refuted",
    because=(
        "Where drafting does not pay the best length is 1, and from n = 1 it is submitted (L8-from-1). The "
        "repaired statement as L32: with r the best rate, S_{d*} = tau(d*) - tau(d* - 1) >= c r, since "
        "tau(d* - 1) <= r T(d* - 1): for d* > 1 because r is best, for d* = 1 because tau(0) is 0, or r T0 "
        ">= 1 and drafting pays."
    ),
    pinned=TunedAt(Tuned((Fraction(0), Fraction(0)), Fraction(0), True, 1), 1),
    repaired=L32_REPAIRED,
    broken=(
        L32_REPAIRED.but("... wherever T0 > 0", lambda at: _past_best(at, lambda c: c.fixed > 0)),
        L32_REPAIRED.but("... by one token only", lambda at: _past_best(at, pays, most=1)),
    ),
)

CLAIMS = (L8_FROM_ONE, L32_FROM_ONE)
