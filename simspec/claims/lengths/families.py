"""Algorithm 1 on several curves: no alpha fits two of them, and how often it is best (L34, L37).

p_k = chance that place k is accepted once all before it were; S_d = p_1 .. p_d. A cycle of d places takes
T(d) = T0 + c d and gives tau(d) = S_1 + .. + S_d tokens, one more with the bonus; its rate is tau(d) / T(d).
The unit of time is c = 1. G_i(d) and alpha are those of ``simspec.theory.libraspec``; q = p throughout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Plot, Statement, against
from simspec.claims.lengths.runs import ALPHAS, PAPER, weights
from simspec.claims.lengths.tuned_cases import Tuned
from simspec.claims.plain import number, shown
from simspec.strategies.survivals import Conditional, grid

# L34


@dataclass(frozen=True)
class Knob:
    alpha: Fraction
    fixed: Fraction
    bonus: bool
    block: int
    d_max: int


def _somewhere_wrong(case: Knob, sure: tuple[int, ...]) -> Outcome:
    """``sure``: one curve for each, which many places being certain and the rest impossible."""
    if case.block >= case.d_max or (case.bonus and case.fixed <= 1):
        return UNMET
    for count in sure:
        p = tuple(Fraction(int(k < count)) for k in range(case.d_max))
        curve = Tuned(p, case.fixed, case.bonus, case.block)
        if curve.lengths(case.alpha)[-1] not in curve.best():
            return None
    return against(f"{shown(case)}: a best length is submitted on each curve")


def all_knobs(level: int) -> Iterator[Knob]:
    for d_max, alpha in product(range(2, 4 + level), ALPHAS):
        for fixed, bonus, block in product((2, 10), (False, True), range(1, d_max)):
            yield Knob(alpha, Fraction(fixed), bonus, block, d_max)


L34_STATEMENT = Statement(
    words=(
        "Whatever alpha, and whatever the cost and n < d_max, Algorithm 1 misses the best length on one of "
        "two curves: n certain places followed by impossible ones, or all places certain"
    ),
    formula="no alpha: result = d* for both p = (1, .., 1, 0, .., 0) (n ones) and p = (1, .., 1)",
    rule=lambda case: _somewhere_wrong(case, (case.block, case.d_max)),
    over="7 values of alpha, T0 of 2 and 10, with and without bonus, d_max of 2 to 4, n < d_max; random ones",
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
        "the first curve n + 1 or more is submitted: the place that stops Algorithm 1 is itself submitted."
    ),
    broken=(
        L34_STATEMENT.but("The first curve alone will do", lambda c: _somewhere_wrong(c, (c.block,))),
        L34_STATEMENT.but("The second curve alone will do", lambda c: _somewhere_wrong(c, (c.d_max,))),
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


def _mostly_best(case: Family) -> Outcome:
    regrets = [regret(member) for member in case.members()]
    if 2 * regrets.count(Fraction(0)) >= len(regrets):
        return None
    at_end = sum(member.best()[-1] == case.d_max for member in case.members())
    return against(
        f"{shown(case)}: {spread(regrets)}", f"best lengths that are d_max: {at_end} of {len(regrets)}"
    )


def _best_at_end(case: Family) -> Outcome:
    for member in case.members():
        if (regret(member) == 0) != (member.best()[-1] == case.d_max):
            return against(
                member.told(), f"regret {number(regret(member))}, best {shown(tuple(member.best()))}"
            )
    return None


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


def _histogram(case: Family) -> Plot:
    edges = range(0, 50, 5)
    series = {}
    for bonus in (True, False):
        found = [float(100 * regret(member)) for member in replace(case, bonus=bonus).members()]
        counts = [0.0] * (len(edges) + 1)
        for lost in found:
            counts[0 if lost == 0 else 1 + min(int(lost / 5), len(edges) - 1)] += 100 / len(found)
        series["with bonus" if bonus else "without bonus"] = tuple(counts)
    names = ("none", *(f"{edge} to {edge + 5}%" for edge in edges))
    return Plot(
        f"Speedup lost by Algorithm 1 ({case.shape} p, n {case.block}, d_max {case.d_max})",
        "bars",
        "part of the best speedup that is lost",
        "curves (%)",
        names,
        series,
    )


L37_STATEMENT = Statement(
    words=(
        "With true confidences and alpha at the best length, Algorithm 1 submits a best length for at least "
        "half of the curves of a family (among curves for which drafting pays)"
    ),
    rule=_mostly_best,
    over=(
        "families with and without bonus: all p of 4 places in quarters, T0 1, 2, 10, n = 1, d_max = 4; "
        "constant and falling p, T0 5 to 100, n = 16, d_max = 24 (and n = 10, d_max = 60 at the largest "
        "effort)"
    ),
    every=families,
)
L37 = Claim(
    id="L37",
    source=f"derived from {PAPER}, Algorithm 1 with Assumption 3.7",
    statement=L37_STATEMENT,
    expected="refuted",
    because="L32: it is optimal only where the best length is d_max. There it is, as it stops no sooner.",
    pinned=Family("constant", (5, 20, 100), True, 16, 24),
    repaired=L37_STATEMENT.but("It does so exactly for the curves whose best length is d_max", _best_at_end),
    plot=_histogram,
)

CLAIMS = (L34, L37)
