"""Adjusting a length again and again without a bound: whether it ends (L6).

p_k = probability that draft k is accepted given that those before it were; S_j = p_1 .. p_j; tau_d =
expected tokens of a cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Plot, Statement, against
from simspec.claims.plain import number, shown
from simspec.strategies.survivals import Conditional, all_conditionals, grid, survival


@dataclass(frozen=True)
class Unbounded:
    """A block without end: chances ``lead``, then ``tail`` for ever; T(d) = fixed + d."""

    lead: Conditional
    tail: Fraction
    fixed: Fraction
    bonus: int

    @property
    def limit(self) -> Fraction:
        """Where survival goes to."""
        return self.reach if self.tail == 1 else Fraction(0)

    @property
    def reach(self) -> Fraction:
        """Survival at the end of ``lead``."""
        return survival(self.lead)[-1] if self.lead else Fraction(1)

    def tokens(self, d: int) -> Fraction:
        """tau_d."""
        first = min(d, len(self.lead))
        rest = d - first
        tail = Fraction(rest) if self.tail == 1 else self.tail * (1 - self.tail**rest) / (1 - self.tail)
        return self.bonus + sum(survival(self.lead)[:first], Fraction(0)) + self.reach * tail

    def speedup(self, d: int) -> Fraction:
        return self.tokens(d) / (self.fixed + d)

    def far(self) -> int:
        """A length past which every speedup is below that of one draft, for survival that goes to 0."""
        everything = self.tokens(len(self.lead)) + self.reach * self.tail / (1 - self.tail)
        return int(everything / self.speedup(1) - self.fixed) + 1


LONG = 2**40


def adjusted_for_long(case: Unbounded) -> tuple[int, ...]:
    """One sequence of beneficial adjustments from one draft on: to twice as many, else one more, else one
    less, whichever comes first to raise speedup; until none does or the length exceeds ``LONG``."""
    path = [1]
    while path[-1] <= LONG:
        d = path[-1]
        better = [e for e in (2 * d, d + 1, d - 1) if e >= 1 and case.speedup(e) > case.speedup(d)]
        if not better:
            break
        path.append(better[0])
    return tuple(path)


def _is_best(case: Unbounded, d: int) -> bool:
    """Whether no length at all is faster than d."""
    if case.limit > 0:
        # Past the lead eta is a quotient of two straight lines: monotone, from its first value to its limit.
        near = max(case.speedup(e) for e in range(1, len(case.lead) + 2))
        return case.speedup(d) >= max(near, case.limit)
    return case.speedup(d) == max(case.speedup(e) for e in range(1, case.far() + 1))


def _reaches(expected: Callable[[Unbounded], bool]) -> Callable[[Unbounded], Outcome]:
    """Whether the adjustments end at a best length exactly where they are expected to."""

    def rule(case: Unbounded) -> Outcome:
        if case.tokens(1) == 0:
            return UNMET
        path = adjusted_for_long(case)
        ends = path[-1] <= LONG
        if ends == expected(case) and (not ends or _is_best(case, path[-1])):
            return None
        counted = "with" if case.bonus else "without"
        some = [d for d in path if d <= 8]
        return against(
            f"chances, each given that all before were accepted: {shown((*case.lead, case.tail))}, and so on",
            f"T(d) = {case.fixed} + d, {counted} the bonus; survival goes to {number(case.limit)}",
            "speedups on the way: " + "; ".join(f"{d} drafts {number(case.speedup(d))}" for d in some),
            f"after {len(path) - 1} adjustments, at {path[-1]} drafts: "
            + ("none raises it" if ends else "each one raised it, and there is no end to it"),
        )

    return rule


def _unbounded(tails: tuple[Fraction, ...]) -> Callable[[int], Iterator[Unbounded]]:
    def every(level: int) -> Iterator[Unbounded]:
        chances = grid(4, zero=False)
        leads = [(), *all_conditionals(1 + (level > 0) + (level > 1), chances)]
        for lead, fixed, bonus, tail in product(leads, range(1, 4 + level // 2), (0, 1), tails):
            yield Unbounded(lead, tail, Fraction(fixed), bonus)

    return every


@st.composite
def _any_unbounded(draw: st.DrawFn, tails: tuple[Fraction, ...]) -> Unbounded:
    lead = draw(st.lists(st.sampled_from(grid(4, zero=False)), max_size=4))
    fixed = Fraction(draw(st.integers(1, 24)), 4)
    return Unbounded(tuple(lead), draw(st.sampled_from(tails)), fixed, draw(st.integers(0, 1)))


VANISHING = (Fraction(0), Fraction(1, 2), Fraction(3, 4))
OVER_UNBOUNDED = (
    "all blocks of few chances in quarters that go on for ever with one chance, T = T0 + d, small T0"
)
L6_VANISHING_STATEMENT = Statement(
    words=(
        "Without a bound on the length, adjustments that raise expected speedup reach a best length after "
        "finitely many if survival goes to 0"
    ),
    formula="S_d -> 0, T(d) = T0 + c d  =>  a best d exists and is reached",
    rule=_reaches(lambda case: True),
    over=OVER_UNBOUNDED + " of 0, 1/2, 3/4; random ones",
    domain=_any_unbounded(VANISHING),
    every=_unbounded(VANISHING),
    examples=60,
)
L6_VANISHING = Claim(
    id="L6-vanishing",
    source="LibraSpec (2608.08721) Thm 3.6, without a bound on d",
    statement=L6_VANISHING_STATEMENT,
    expected="holds",
    because=(
        "eta_d = tau_d/(T0 + c d) goes to lim S_d / c = 0 (a mean of what goes to 0), while the speedup "
        "that one begins with is above 0 and never lost: only finitely many lengths are faster than it. The "
        "rule follows one sequence and compares its end with all lengths up to where tau's limit over T "
        "falls below one draft's."
    ),
    broken=(
        L6_VANISHING_STATEMENT.but(
            "The same where survival goes to some number above 0",
            _reaches(lambda case: True),
            domain=_any_unbounded((Fraction(1),)),
            every=_unbounded((Fraction(1),)),
        ),
    ),
)


def excess(case: Unbounded) -> Fraction:
    """R, the sum of what survivals have over their limit."""
    return sum((s - case.limit for s in survival(case.lead)), Fraction(0))


EVERY_TAIL = (*VANISHING, Fraction(1))
L6_LIMIT_STATEMENT = L6_VANISHING_STATEMENT.but(
    (
        "Without a bound on the length, adjustments that raise expected speedup reach a best length after "
        "finitely many"
    ),
    _reaches(lambda case: True),
    formula="T(d) = T0 + c d  =>  a best d exists and is reached",
    over=OVER_UNBOUNDED + " of 0, 1/2, 3/4, 1; random ones",
    domain=_any_unbounded(EVERY_TAIL),
    every=_unbounded(EVERY_TAIL),
)
L6_LIMIT = Claim(
    id="L6-limit",
    source="LibraSpec (2608.08721) Thm 3.6, without a bound on d",
    statement=L6_LIMIT_STATEMENT,
    expected="refuted",
    because=(
        "Let S_d go to s > 0, R = sum (S_j - s), b = 1 with the bonus and 0 without. eta_d goes to s/c, and "
        "eta_d >= s/c exactly if b + sum_{j<=d} (S_j - s) >= s T0/c, whose left side rises to b + R. If b + "
        "R < s T0/c, every length is below s/c, so none is best: longer ones always raise it. If b + R > s "
        "T0/c some length is above the limit, a best one exists, and past the peak only finitely many are "
        "faster. If they are equal, it exists exactly if survival reaches its limit (as it does here), "
        "after which all lengths are equally good."
    ),
    first_look=(
        "'With a fixed cost large enough' needs R finite: where survival comes down to s so slowly that R "
        "is not, a best length exists for every T0."
    ),
    pinned=Unbounded((), Fraction(1), Fraction(1), 0),
    repaired=L6_LIMIT_STATEMENT.but(
        (
            "They do exactly if survival goes to 0, or its excess over its limit s, and the bonus, sum up "
            "to s T0/c or more"
        ),
        _reaches(lambda case: case.limit == 0 or case.bonus + excess(case) >= case.limit * case.fixed),
        formula="S_d -> s, reached: ends <=> s = 0 or b + sum_j (S_j - s) >= s T0/c",
    ),
    broken=(
        L6_LIMIT_STATEMENT.but(
            "They do exactly if survival goes to 0", _reaches(lambda case: case.limit == 0)
        ),
        L6_LIMIT_STATEMENT.but(
            "The criterion without the bonus",
            _reaches(lambda case: case.limit == 0 or excess(case) >= case.limit * case.fixed),
        ),
    ),
    plot=lambda case: Plot(
        "No length is best",
        "line",
        "drafts submitted",
        "expected tokens per unit of time",
        tuple(range(1, 31)),
        {"speedup": tuple(float(case.speedup(d)) for d in range(1, 31))},
    ),
)

CLAIMS = (L6_VANISHING, L6_LIMIT)
