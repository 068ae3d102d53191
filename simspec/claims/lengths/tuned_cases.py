"""Algorithm 1 with alpha as the paper means it, T_i / (tau_i c): cases of claims on how far from best it is.

p_k = chance that place k is accepted once all before it were; S_d = p_1 .. p_d. A cycle of d places takes
T(d) = T0 + c d and gives tau(d) = S_1 + .. + S_d tokens, one more with the bonus; its rate is tau(d) / T(d).
The unit of time is c = 1. G_i(d) and alpha are those of ``simspec.theory.libraspec``; q = p throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Outcome, Plot, against
from simspec.claims.lengths.runs import weights
from simspec.claims.plain import number, shown
from simspec.strategies.survivals import (
    Conditional,
    all_conditionals,
    conditionals,
    grid,
    survival,
    tokens_by_outcome,
)
from simspec.theory.libraspec import algorithm_one

# alpha as the paper means it, T_i / (tau_i c), at the best length; d_max is the length of p.


@dataclass(frozen=True)
class Tuned:
    p: Conditional
    fixed: Fraction
    bonus: bool
    block: int

    @property
    def d_max(self) -> int:
        return len(self.p)

    def tokens(self) -> tuple[Fraction, ...]:
        """tau(0) .. tau(d_max)."""
        return tokens_by_outcome(self.p, int(self.bonus))

    def rates(self) -> tuple[Fraction, ...]:
        """tau(d) / T(d), d = 0..d_max."""
        return tuple(tau / (self.fixed + d) for d, tau in enumerate(self.tokens()))

    def best(self) -> list[int]:
        """All best lengths, shortest first; empty where drafting does not pay, that is, none is above 0."""
        rates = self.rates()
        return [d for d, rate in enumerate(rates) if d and rate == max(rates) > 0]

    def alpha(self, i: int) -> Fraction:
        return (self.fixed + i) / self.tokens()[i]

    def lengths(self, alpha: Fraction) -> tuple[int, ...]:
        """Algorithm 1's d, pass by pass; an overshoot past d_max is forgiven (it is L10)."""
        passed = algorithm_one(self.p, alpha, self.block, self.d_max).lengths
        return tuple(min(d, self.d_max) for d in passed)

    def told(self) -> str:
        return (
            f"p = {shown(self.p)}, T(d) = {self.fixed} + d, {'with' if self.bonus else 'without'} bonus, "
            f"n = {self.block}, d_max = {self.d_max}"
        )


def _fractions(rates: Iterable[Fraction]) -> str:
    return ", ".join(str(rate) for rate in rates)


@st.composite
def tuned(draw: st.DrawFn) -> Tuned:
    p = draw(conditionals(longest=10))
    return Tuned(p, draw(weights), draw(st.booleans()), draw(st.integers(1, len(p))))


def all_tuned(level: int) -> Iterator[Tuned]:
    for p in all_conditionals(3 if level < 2 else 4, grid(2 + min(level, 1))):
        for fixed, bonus in product((1, 2, 10), (False, True)):
            yield from (Tuned(p, Fraction(fixed), bonus, block) for block in range(1, len(p) + 1))


OVER_TUNED = (
    "all p of up to 3 places in thirds, T0 of 1, 2 and 10, with and without bonus, each n <= d_max; random "
    "p of up to 10 places, T0 from 1/10 to 40; d_max is the number of places"
)
# The premise of every claim on Tuned, in words and as a formula.
PAYS = "where drafting pays (T(d) = T0 + c d, T0 > 0; of the lengths 0 to d_max one that is not 0 is best)"
PAYS_FORMULA = "T(d) = T0 + c d, T0 > 0, d* = max argmax_{0 <= d <= d_max} tau(d)/T(d) >= 1, q = p"


def against_best(case: Tuned, chosen: Callable[[Tuned, Fraction], int]) -> Outcome:
    best = case.best()
    if not best:
        return UNMET
    alpha = case.alpha(best[-1])
    found, rates = chosen(case, alpha), case.rates()
    if found in best:
        return None
    return against(
        case.told(),
        f"speedups at d = 0..{case.d_max}, as tokens per unit of time: {_fractions(rates)}",
        f"best: d = {shown(tuple(best))}, where alpha = T / (tau c) = {number(alpha)}",
        f"with this alpha {found} is submitted: {number(1 - rates[found] / max(rates))} of the best speedup "
        f"lost",
    )


def by_algorithm(case: Tuned, alpha: Fraction) -> int:
    """What Algorithm 1 submits."""
    return case.lengths(alpha)[-1]


def threshold(
    case: Tuned,
    alpha: Fraction,
    measure: Callable[[Conditional], Iterable[Fraction]] = survival,
    strict: bool = False,
) -> int:
    """The last d whose measure times alpha is 1 or more (``strict``: above 1); 1 if there is none."""
    worth = [alpha * m for m in measure(case.p)]
    return max((d for d, w in enumerate(worth, 1) if w > 1 or (w == 1 and not strict)), default=1)


def speedup_plot(case: Tuned) -> Plot:
    rates = case.rates()
    found = case.lengths(case.alpha(case.best()[-1]))[-1]
    return Plot(
        f"Best at {case.best()[-1]}; Algorithm 1 submits {found}",
        "line",
        "submitted tokens",
        "tokens per unit of time",
        tuple(range(len(rates))),
        {"speedup": tuple(map(float, rates))},
    )
