"""How far from best Algorithm 1 is with true confidences and its alpha tuned (L8, L9, L32, L33).

p_k = chance that place k is accepted once all before it were; S_d = p_1 .. p_d. A cycle of d places takes
T(d) = T0 + c d and gives tau(d) = S_1 + .. + S_d tokens, one more with the bonus; its rate is tau(d) / T(d).
The unit of time is c = 1. G_i(d) and alpha are those of ``simspec.theory.libraspec``; q = p throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.lengths.runs import PAPER
from simspec.claims.lengths.tuned_cases import OVER_TUNED, Tuned, against_best, all_tuned, speedup_plot, tuned
from simspec.claims.plain import number
from simspec.strategies.survivals import survival


def _threshold(case: Tuned, alpha: Fraction) -> int:
    return max((d for d, s in enumerate(survival(case.p), 1) if alpha * s >= 1), default=1)


L8_STATEMENT = Statement(
    words=(
        "With true confidences and alpha = T/(tau c) taken at the best length, Algorithm 1 submits a best "
        "length"
    ),
    formula="q = p, alpha = T(d*) / (c tau(d*))  =>  tau(d)/T(d) is greatest at d = result",
    rule=lambda case: against_best(case, lambda c, alpha: c.lengths(alpha)[-1]),
    over=OVER_TUNED,
    domain=tuned(),
    every=all_tuned,
    examples=150,
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
    repaired=L8_STATEMENT.but(
        "With the same alpha, the last d with alpha p_1 .. p_d >= 1 (1 if there is none) is a best length",
        lambda case: against_best(case, _threshold),
        formula="max{d : alpha S_d >= 1} is in argmax tau(d)/T(d)",
    ),
    first_look=(
        "Optimal in 0 of 6,000 is right where the best length is below d_max, and there it is a theorem "
        "(L32); where it is d_max, Algorithm 1 is optimal. Medians and worst cases are those of the curves "
        "drawn. All p of 4 places in quarters that drafting pays for, T0 = 1, 2, 10, n = 1: "
        "optimal 79 of 1000, median regret 11.2%, worst 33.3% with the bonus, "
        "optimal 208 of 1500, median regret 16.7%, worst 50.0% without. Constant p = .05 to .95, T0 = 5 to "
        "100, n = 10, d_max = 60, where the first look's medians (24% and 37%) and worst (36% and 48%) are "
        "nearly met: optimal 0 of 91, median regret 21.1%, worst 35.1% with the bonus, "
        "optimal 0 of 95, median regret 40.5%, worst 49.3% without. From n <= d* no more than half can be "
        "lost, and without a bonus half is (L33)."
    ),
    plot=speedup_plot,
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


def _one_by_one(case: Tuned, alpha: Fraction) -> Iterator[int]:
    s, d = survival(case.p), case.block
    yield d
    while d < case.d_max and alpha * s[d] >= 1:
        d += 1
        yield d
    while d > 1 and alpha * s[d - 1] < 1:
        d -= 1
        yield d


L9_STATEMENT = Statement(
    words="With true confidences and alpha at the best length, no pass of Algorithm 1 lowers the speedup",
    formula="q = p, a pass takes d to e  =>  tau(e)/T(e) >= tau(d)/T(d)",
    rule=lambda case: _each_raises(case, lambda c, alpha: c.lengths(alpha)),
    over=OVER_TUNED,
    domain=tuned(),
    every=all_tuned,
    examples=150,
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
        "itself."
    ),
    pinned=Tuned((Fraction(1), Fraction(0)), Fraction(1), False, 1),
    repaired=L9_STATEMENT.but(
        "Going on by one place while alpha S_{d+1} >= 1, then back by one while alpha S_d < 1, never lowers "
        "it",
        lambda case: _each_raises(case, _one_by_one),
        formula="S_j = p_1 .. p_j",
    ),
    plot=speedup_plot,
)

# L32


@dataclass(frozen=True)
class TunedAt:
    """alpha is taken at length ``i``, best or not."""

    case: Tuned
    i: int


def all_tuned_at(level: int) -> Iterator[TunedAt]:
    for case in all_tuned(min(level, 1)):
        yield from (TunedAt(case, i) for i in {1, len(case.p)})


def _past_best(at: TunedAt, alpha: Callable[[TunedAt], Fraction], most: int | None = None) -> Outcome:
    case, best = at.case, at.case.best()
    if not best or best[-1] == case.d_max or not case.tokens()[at.i]:
        return UNMET
    found = case.lengths(alpha(at))[-1]
    if best[-1] < found and (most is None or found <= best[-1] + most):
        return None
    return against(case.told(), f"best: {best[-1]}; alpha = {number(alpha(at))}: {found} is submitted")


L32_STATEMENT = Statement(
    words=(
        "With true confidences and alpha = T_i/(tau_i c) taken at any length i, Algorithm 1 submits more "
        "than the longest best length d*, from every block n, unless d* is d_max or 0"
    ),
    formula="q = p, alpha = T(i) / (c tau(i)), 1 <= d* < d_max  =>  result > d*",
    rule=lambda at: _past_best(at, lambda a: a.case.alpha(a.i)),
    over=f"{OVER_TUNED}; alpha at i = 1 and i = d_max, and at random i",
    domain=tuned().flatmap(lambda case: st.builds(TunedAt, st.just(case), st.integers(1, len(case.p)))),
    every=all_tuned_at,
    examples=150,
)
L32 = Claim(
    id="L32",
    source=f"derived from {PAPER}, Algorithm 1 with Assumption 3.7",
    statement=L32_STATEMENT,
    expected="holds",
    because=(
        "No rate is above the best one, r, so alpha >= 1/(c r) whatever i. The place d* pays: S_{d*} >= c r "
        ">= 1/alpha. For each suffix i..d* the products from i on are at least those from 1 on, and those "
        "are at least S_{d*}: each suffix has mean survival 1/alpha or more, and a pass at d* extends "
        "(L30). So W >= d* if d* < d_max, and the result is W + 1 or more (L31)."
    ),
    broken=(
        L32_STATEMENT.but(
            "... with half that alpha", lambda at: _past_best(at, lambda a: a.case.alpha(a.i) / 2)
        ),
        L32_STATEMENT.but("... with alpha = 2.2", lambda at: _past_best(at, lambda a: Fraction(11, 5))),
        L32_STATEMENT.but(
            "... and by one token only", lambda at: _past_best(at, lambda a: a.case.alpha(a.i), most=1)
        ),
    ),
)

# L33


def _keeps(case: Tuned, share: Fraction) -> Outcome:
    best = case.best()
    if not best or case.block > best[-1]:
        return UNMET
    rates = case.rates()
    found = case.lengths(case.alpha(best[-1]))[-1]
    if rates[found] >= share * max(rates):
        return None
    return against(
        case.told(),
        f"best d = {best[-1]}, submitted {found}: {float(rates[found] / max(rates)):.4f} of the best speedup",
    )


L33_STATEMENT = Statement(
    words=(
        "With true confidences and alpha taken at the best length, from a block no longer than that, "
        "Algorithm 1 keeps at least half of the best speedup"
    ),
    formula="q = p, alpha = T(d*) / (c tau(d*)), n <= d*  =>  rate(result) >= rate(d*) / 2",
    rule=lambda case: _keeps(case, Fraction(1, 2)),
    over=OVER_TUNED,
    domain=tuned(),
    every=all_tuned,
    examples=150,
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
    broken=(L33_STATEMENT.but("... at least 51/100 of it", lambda case: _keeps(case, Fraction(51, 100))),),
)

CLAIMS = (L8, L9, L32, L33)
