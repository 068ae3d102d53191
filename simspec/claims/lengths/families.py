"""Algorithm 1 on several curves: no alpha fits two of them, and how often it is best (L34, L37).

p_k = chance that place k is accepted once all before it were; S_d = p_1 .. p_d. A cycle of d places takes
T(d) = T0 + c d and gives tau(d) = S_1 + .. + S_d tokens, one more with the bonus; its rate is tau(d) / T(d).
The unit of time is c = 1. G_i(d) and alpha are those of ``simspec.theory.libraspec``; q = p throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Plot, Statement, against
from simspec.claims.lengths.runs import ALPHAS, PAPER, weights
from simspec.claims.lengths.tuned_cases import PAYS, PAYS_FORMULA, Tuned, tuned
from simspec.claims.plain import shown
from simspec.strategies.survivals import Conditional, grid

# L34


@dataclass(frozen=True)
class Knob:
    alpha: Fraction
    fixed: Fraction
    bonus: bool
    block: int
    d_max: int


def _somewhere_wrong(case: Knob, sure: tuple[int, ...], any_cost: bool = False) -> Outcome:
    """``sure``: one curve for each, which many places being certain and the rest impossible.

    Args:
        any_cost: also where the rate does not rise along certain places, T0 <= c with the bonus.
    """
    if case.block >= case.d_max or (case.bonus and case.fixed <= 1 and not any_cost):
        return UNMET
    told = []
    for count in sure:
        p = tuple(Fraction(int(k < count)) for k in range(case.d_max))
        curve = Tuned(p, case.fixed, case.bonus, case.block)
        found = curve.lengths(case.alpha)[-1]
        if found not in curve.best():
            return None
        told.append(f"{curve.told()}: best {shown(tuple(curve.best()))}, submitted {found}")
    return against(f"alpha = {case.alpha}", *told)


def all_knobs(level: int) -> Iterator[Knob]:
    for d_max, alpha in product(range(2, 4 + level), ALPHAS):
        for fixed, bonus, block in product((1, 2, 10), (False, True), range(1, d_max)):
            yield Knob(alpha, Fraction(fixed), bonus, block, d_max)


L34_STATEMENT = Statement(
    words=(
        "Whatever alpha, whatever n < d_max and T0 > 0 (T0 > c with the bonus), Algorithm 1 misses the best "
        "length on one of two curves: n certain places followed by impossible ones, or all places certain"
    ),
    formula=(
        "T(d) = T0 + c d, T0 > 0 (> c with the bonus), n < d_max: no alpha has result = d* for both p = (1, "
        ".., 1, 0, .., 0) (n ones) and p = (1, .., 1)"
    ),
    rule=lambda case: _somewhere_wrong(case, (case.block, case.d_max)),
    over=(
        "7 values of alpha from 2/5 to 16/5, T0 of 1, 2 and 10, with and without bonus, d_max of 2 to 4, n "
        "< d_max; random ones with d_max up to 8, alpha and T0 from 1/10 to 40"
    ),
    domain=st.integers(2, 8).flatmap(
        lambda top: st.builds(
            Knob, weights, weights, st.booleans(), st.integers(1, top - 1), st.sampled_from([top])
        )
    ),
    every=all_knobs,
    examples=150,
)
L34 = Claim(
    id="L34",
    source=f"derived from {PAPER}, Algorithm 1",
    statement=L34_STATEMENT,
    expected="holds",
    because=(
        "With T0 > 0 (T0 > c with a bonus) the rate rises along certain places and falls along impossible "
        "ones: best are n and d_max. At n all suffixes have mean survival 1. If alpha < 1 the first pass "
        "does not extend, and n < d_max is submitted on the second curve. If alpha >= 1 it extends, and on "
        "the first curve n + 1 or more is submitted: the place that stops Algorithm 1 is itself submitted. "
        "With the bonus and T0 = c all lengths tie along certain places, and an alpha below 1 misses "
        "neither curve."
    ),
    broken=(
        L34_STATEMENT.but("The first curve alone will do", lambda c: _somewhere_wrong(c, (c.block,))),
        L34_STATEMENT.but("The second curve alone will do", lambda c: _somewhere_wrong(c, (c.d_max,))),
        L34_STATEMENT.but(
            "... whatever the cost, with the bonus, too",
            lambda c: _somewhere_wrong(c, (c.block, c.d_max), any_cost=True),
        ),
    ),
)

# L37


@dataclass(frozen=True)
class Family:
    """Curves for which drafting pays; ``fixed`` lists the T0."""

    shape: str
    fixed: tuple[int, ...]
    bonus: bool
    block: int
    d_max: int

    def curves(self) -> Iterator[Conditional]:
        """``grid``: all in quarters; ``constant``: in twentieths; ``falling``: straight, between tenths."""
        if self.shape == "grid":
            yield from product(grid(4), repeat=self.d_max)
        elif self.shape == "constant":
            yield from ((q,) * self.d_max for q in grid(20, zero=False, one=False))
        else:
            for first, last in product(grid(10, zero=False), grid(10)):
                if last < first:
                    fall = (first - last) / (self.d_max - 1)
                    yield tuple(first - k * fall for k in range(self.d_max))

    def members(self) -> Iterator[Tuned]:
        for p, fixed in product(self.curves(), self.fixed):
            member = Tuned(p, Fraction(fixed), self.bonus, self.block)
            if member.best():
                yield member


def regret(case: Tuned) -> Fraction:
    """Share of the best speedup that Algorithm 1 loses, alpha taken at the best length."""
    rates = case.rates()
    return 1 - rates[case.lengths(case.alpha(case.best()[-1]))[-1]] / max(rates)


def spread(regrets: Iterable[Fraction]) -> str:
    """How many are 0, the median and the worst."""
    found = sorted(regrets)
    return (
        f"optimal {found.count(Fraction(0))} of {len(found)}, median regret "
        f"{float(found[len(found) // 2]):.1%}, worst {float(found[-1]):.1%}"
    )


def _best_exactly_if(case: Tuned, told_by: Callable[[list[int], int], bool]) -> Outcome:
    """Whether ``told_by`` says of the best lengths and d_max that Algorithm 1 submits a best one."""
    best = case.best()
    if not best:
        return UNMET
    found = case.lengths(case.alpha(best[-1]))[-1]
    if (found in best) == told_by(best, case.d_max):
        return None
    return against(case.told(), f"best lengths: {shown(tuple(best))}; {found} submitted")


def families(level: int) -> Iterator[Family]:
    for bonus in (True, False):
        yield Family("grid", (1, 2, 10), bonus, 1, 3 + min(level, 1))
    if level:
        for bonus in (True, False):
            yield Family("constant", (5, 20, 100), bonus, 16, 24)
            yield Family("falling", (20,), bonus, 16, 24)
    if level > 1:
        for shape, bonus in product(("constant", "falling"), (True, False)):
            yield Family(shape, (5, 10, 20, 40, 100), bonus, 10, 60)


def all_members(level: int) -> Iterator[Tuned]:
    return (member for family in families(level) for member in family.members())


def histogram(case: Family) -> Plot:
    """How much of the best speedup is lost, over a family, with and without the bonus."""
    edges = range(0, 50, 5)
    series = {}
    for bonus in (True, False):
        found = [float(100 * regret(member)) for member in replace(case, bonus=bonus).members()]
        counts = [0.0] * (len(edges) + 1)
        for lost in found:
            counts[0 if lost == 0 else 1 + min(int(lost / 5), len(edges) - 1)] += 100 / len(found)
        series["with bonus" if bonus else "without bonus"] = tuple(counts)
    names = ("none", *(f"{edge} to {edge + 5}%" for edge in edges))
    times = ", ".join(map(str, case.fixed))
    return Plot(
        f"Speedup lost by Algorithm 1 ({case.shape} p, T0 = {times}, n = {case.block}, d_max = {case.d_max})",
        "bars",
        "part of the best speedup that is lost",
        "curves (%)",
        names,
        series,
    )


L37_STATEMENT = Statement(
    words=(
        "With true confidences and alpha at the best length, Algorithm 1 (an overshoot past d_max cut "
        f"back) submits a best length exactly if d_max is one; {PAYS}"
    ),
    formula=(
        f"{PAYS_FORMULA}, alpha = T(d*) / (c tau(d*)): rate(min(result, d_max)) = rate(d*)  <=>  d* = d_max"
    ),
    rule=lambda case: _best_exactly_if(case, lambda best, d_max: best[-1] == d_max),
    over=(
        "families with and without bonus: all p of 4 places (3 at the smallest effort) in quarters, T0 1, "
        "2, 10, n = 1; constant and falling p, T0 5 to 100, n = 16, d_max = 24 (and n = 10, d_max = 60 at "
        "the largest effort); random p of up to 10 places, any n <= d_max"
    ),
    domain=tuned(),
    every=all_members,
    examples=100,
)
L37 = Claim(
    id="L37",
    source=f"derived from {PAPER}, Algorithm 1 with Assumption 3.7",
    statement=L37_STATEMENT,
    expected="holds",
    because=(
        "If d* < d_max, it submits more than the longest best length (L32). If d* = d_max, then S_{d_max} "
        ">= c r = 1/alpha, as in L32, so a pass at any d < d_max extends (L30), and the run ends at d_max "
        "or past it. How much is lost elsewhere: see L8 and L33. Where a token must be drafted, d* is the "
        "best of 1 .. d_max, and this is so only where drafting pays (L8-from-1)."
    ),
    broken=(
        L37_STATEMENT.but(
            "... exactly if one of the two longest, d_max - 1 and d_max, is best",
            lambda case: _best_exactly_if(case, lambda best, d_max: best[-1] >= d_max - 1),
        ),
        L37_STATEMENT.but(
            "... exactly if d_max alone is best",
            lambda case: _best_exactly_if(case, lambda best, d_max: best[0] == d_max),
        ),
    ),
)

CLAIMS = (L34, L37)
