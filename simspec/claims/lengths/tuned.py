"""How far from best Algorithm 1 is with true confidences and its alpha tuned (L8, L9).

p_k = chance that place k is accepted once all before it were; S_d = p_1 .. p_d. A cycle of d places takes
T(d) = T0 + c d and gives tau(d) = S_1 + .. + S_d tokens, one more with the bonus; its rate is tau(d) / T(d).
The unit of time is c = 1. G_i(d) and alpha are those of ``simspec.theory.libraspec``; q = p throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import accumulate, pairwise

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.lengths.families import Family, histogram
from simspec.claims.lengths.runs import PAPER
from simspec.claims.lengths.tuned_cases import (
    OVER_TUNED,
    PAYS,
    PAYS_FORMULA,
    Tuned,
    against_best,
    all_tuned,
    by_algorithm,
    speedup_plot,
    threshold,
    tuned,
)
from simspec.claims.plain import number
from simspec.strategies.survivals import Conditional, survival

ONE = Fraction(1)


def _chances_alone(p: Conditional) -> Iterable[Fraction]:
    return p


def _means(p: Conditional) -> Iterable[Fraction]:
    """(S_1 + .. + S_d) / d."""
    return (total / d for d, total in enumerate(accumulate(survival(p)), 1))


L8_STATEMENT = Statement(
    words=(
        "With true confidences and alpha = T/(tau c) taken at the best length, Algorithm 1 submits a best "
        f"length, {PAYS}"
    ),
    formula=f"{PAYS_FORMULA}, alpha = T(d*) / (c tau(d*))  =>  tau(d)/T(d) is greatest at d = result",
    rule=lambda case: against_best(case, by_algorithm),
    over=OVER_TUNED,
    domain=tuned(),
    every=all_tuned,
    examples=150,
)
L8_REPAIRED = L8_STATEMENT.but(
    "With the same alpha and premise, the last d with alpha p_1 .. p_d >= 1 (1 if there is none) is a best "
    "length",
    lambda case: against_best(case, threshold),
    formula=(
        f"{PAYS_FORMULA}, alpha = T(d*) / (c tau(d*))  =>  "
        "max{1, d : alpha S_d >= 1} is in argmax tau(d)/T(d)"
    ),
    examples=100,
)
L8 = Claim(
    id="L8",
    source=f"{PAPER}, Algorithm 1 with Assumption 3.7 and Theorem 3.6",
    statement=L8_STATEMENT,
    expected="refuted",
    because=(
        "It asks for the average survival of a suffix where the survival of the next place decides (L30), "
        "and so goes past the best length whenever that is below d_max (L32, with proof). The repaired "
        "rule: let r = tau(d*)/T(d*) be the best speedup. Then tau(d) - r T(d) is 0 at the best lengths and "
        "below 0 elsewhere; from d - 1 to d it changes by S_d - r c, which never rises with d. So the last "
        "d with S_d >= r c = 1/alpha is best."
    ),
    pinned=Tuned((Fraction(1), Fraction(0)), Fraction(1), False, 1),
    repaired=L8_REPAIRED,
    broken=(
        L8_REPAIRED.but(
            "The last d whose own chance p_d is 1/alpha or more is a best length",
            lambda case: against_best(case, lambda c, alpha: threshold(c, alpha, _chances_alone)),
        ),
        L8_REPAIRED.but(
            "The last d at which the block's mean survival is 1/alpha or more is a best length",
            lambda case: against_best(case, lambda c, alpha: threshold(c, alpha, _means)),
        ),
    ),
    first_look=(
        "Optimal in 0 of 6,000 is right where drafting pays, length 0 is a choice, T0 > 0 and the best "
        "length is below d_max: there it is a theorem (L32). Where the best length is d_max Algorithm 1 is "
        "optimal (L37), and where a token must be drafted though drafting does not pay it is, from n = 1 "
        "(L8-from-1). Medians and worst cases are those of the curves drawn. All p of 4 places in quarters "
        "that drafting pays for, T0 = 1, 2, 10, n = 1: optimal 79 of 1000, median regret 11.2%, worst 33.3% "
        "with the bonus, optimal 208 of 1500, median regret 16.7%, worst 50.0% without. Constant p = .05 to "
        ".95, T0 = 5 to 100, n = 10, d_max = 60, where the first look's medians (24% and 37%) and worst "
        "(36% and 48%) are nearly met: optimal 0 of 91, median regret 21.1%, worst 35.1% with the bonus, "
        "optimal 0 of 95, median regret 40.5%, worst 49.3% without. From n <= d* no more than half can be "
        "lost, and without a bonus half is (L33)."
    ),
    plot=lambda case: histogram(Family("constant", (5, 20, 100), case.bonus, 16, 24)),
)

# L9


def _each_raises(case: Tuned, path: Callable[[Tuned, Fraction], Iterable[int]]) -> Outcome:
    best = case.best()
    if not best or case.block == case.d_max:
        return UNMET
    rates, alpha = case.rates(), case.alpha(best[-1])
    lengths = tuple(path(case, alpha))
    for before, after in pairwise(lengths):
        if rates[after] < rates[before]:
            return against(
                case.told(),
                f"alpha at the best length {best[-1]}: {number(alpha)}; d = {' -> '.join(map(str, lengths))}",
                f"the pass {before} -> {after} takes the speedup from {number(rates[before])} to "
                f"{number(rates[after])}",
            )
    return None


def _one_by_one(
    case: Tuned, alpha: Fraction, on: Fraction = ONE, back: Fraction = ONE, chance: bool = False
) -> Iterator[int]:
    """On by one place while alpha times its survival is ``on`` or more, then back while below ``back``.

    Args:
        chance: on by the place's own chance, not by its survival.
    """
    s, d = survival(case.p), case.block
    yield d
    while d < case.d_max and alpha * (case.p if chance else s)[d] >= on:
        d += 1
        yield d
    while d > 1 and alpha * s[d - 1] < back:
        d -= 1
        yield d


def near_ties(_level: int) -> Iterator[Tuned]:
    """Where one length and the next are nearly as good, so that a step the wrong way loses little."""
    for k in range(11, 15):
        yield Tuned((ONE, Fraction(k, 25)), ONE, False, 1)


L9_STATEMENT = Statement(
    words=(
        "With true confidences and alpha at the best length, no pass of Algorithm 1 from n < d_max lowers "
        f"the speedup, {PAYS}"
    ),
    formula=f"{PAYS_FORMULA}, n < d_max, a pass takes d to e  =>  tau(e)/T(e) >= tau(d)/T(d)",
    rule=lambda case: _each_raises(case, lambda c, alpha: c.lengths(alpha)),
    over=OVER_TUNED,
    domain=tuned(),
    every=all_tuned,
    examples=150,
)
L9_REPAIRED = L9_STATEMENT.but(
    "Under the same premise, going on by one place while alpha S_{d+1} >= 1, then back by one while alpha "
    "S_d < 1, never lowers it",
    lambda case: _each_raises(case, _one_by_one),
    formula=f"{PAYS_FORMULA}, n < d_max, S_j = p_1 .. p_j, each step d to e  =>  tau(e)/T(e) >= tau(d)/T(d)",
    examples=100,
)
L9 = Claim(
    id="L9",
    source=f'{PAPER}, Algorithm 1 ("monotonically converges")',
    statement=L9_STATEMENT,
    expected="refuted",
    because=(
        "At the best length d* < d_max a pass extends (L32), which can only lower the speedup. The repaired "
        "steps, with r the best rate and r(d) that of d: alpha S_{d+1} >= 1 means that place d + 1 brings r "
        "c or more for its c, no less than the r(d) c that keeps the rate. Past d*, the longest best "
        "length, rates fall, to d* + 1 by what d* is. Later on, were S_d > c r(d-1), then S_j > c r(d-1) "
        "for all j < d, and tau(d-1) > r T(d*) + c r(d-1) (d - 1 - d*) >= r(d-1) T(d-1) would be more than "
        "itself. A step back is from such a length."
    ),
    pinned=Tuned((Fraction(1), Fraction(0)), Fraction(1), False, 1),
    repaired=L9_REPAIRED,
    broken=(
        L9_REPAIRED.but(
            "... on by one place while alpha p_{d+1} >= 1",
            lambda case: _each_raises(case, lambda c, alpha: _one_by_one(c, alpha, chance=True)),
        ),
        L9_REPAIRED.but(
            "... on by one place while alpha S_{d+1} >= 9/10",
            lambda case: _each_raises(case, lambda c, alpha: _one_by_one(c, alpha, on=Fraction(9, 10))),
            every=near_ties,
        ),
        L9_REPAIRED.but(
            "... back by one while alpha S_d < 10/9",
            lambda case: _each_raises(case, lambda c, alpha: _one_by_one(c, alpha, back=Fraction(10, 9))),
            every=near_ties,
        ),
    ),
    plot=speedup_plot,
)

CLAIMS = (L8, L9)
