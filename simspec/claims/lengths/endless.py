"""Blocks that go on for ever: their speedups, exactly, and sequences of adjustments along them (L6).

S_d = probability that at least d drafts are accepted; tau_d = expected tokens of a cycle that submits d
drafts; T(d) = T0 + d its time (the unit of time is free); speedup eta_d = tau_d / T(d).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.strategies.survivals import Conditional, all_conditionals, grid, survival

HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Tail:
    """How survival goes on after some place, as a multiple of what it is there.

    Attributes:
        after: the multiple j places later; 1 for j = 0, never rising.
        limit: what it goes to.
        excess: the sum over j >= 1 of what it has over its limit; None if that is without bound.
        reached: whether it is at its limit from some j on.
        summed: the sum of the multiples for 1 .. n; None for adding them up.
    """

    after: Callable[[int], Fraction]
    limit: Fraction
    excess: Fraction | None
    reached: bool
    summed: Callable[[int], Fraction] | None = None


def _geometric(chance: Fraction) -> Tail:
    def summed(n: int) -> Fraction:
        return chance * (1 - chance**n) / (1 - chance)

    # 0^0 = 1: nothing is refused before the tail begins.
    return Tail(lambda j: chance**j, Fraction(0), chance / (1 - chance), chance == 0, summed)


TAILS: dict[str, Tail] = {
    "0": _geometric(Fraction(0)),
    "(1/2)^j": _geometric(HALF),
    "(3/4)^j": _geometric(Fraction(3, 4)),
    "1/(j + 1)": Tail(lambda j: Fraction(1, j + 1), Fraction(0), None, False),
    "1": Tail(lambda j: Fraction(1), Fraction(1), Fraction(0), True, Fraction),
    "(1 + (1/2)^j)/2": Tail(lambda j: (1 + HALF**j) / 2, HALF, HALF, False, lambda n: (n + 1 - HALF**n) / 2),
    "(1 + 1/(j + 1))/2": Tail(lambda j: (1 + Fraction(1, j + 1)) / 2, HALF, None, False),
}
VANISHING = tuple(name for name, tail in TAILS.items() if tail.limit == 0)
LASTING = tuple(name for name, tail in TAILS.items() if tail.limit > 0)
# Partial sums that have no short form, as far as they have been needed.
_SUMS: dict[str, list[Fraction]] = {name: [Fraction(0)] for name, tail in TAILS.items() if not tail.summed}


@dataclass(frozen=True)
class Unbounded:
    """Chances ``lead`` of the first places, then survival times a function of j, the places past them.

    Attributes:
        tail: that function, a name in ``TAILS``.
        fixed: T0.
        bonus: 0 or 1.
    """

    lead: Conditional
    tail: str
    fixed: Fraction
    bonus: int

    @property
    def reach(self) -> Fraction:
        """Survival at the end of ``lead``."""
        return survival(self.lead)[-1] if self.lead else Fraction(1)

    @property
    def limit(self) -> Fraction:
        """Where survival goes to."""
        return self.reach * TAILS[self.tail].limit

    @property
    def excess(self) -> Fraction | None:
        """R, the sum of what survivals have over their limit; None if that is without bound."""
        beyond = TAILS[self.tail].excess
        if beyond is None:
            return None
        return sum((s - self.limit for s in survival(self.lead)), Fraction(0)) + self.reach * beyond

    def survives(self, d: int) -> Fraction:
        """S_d, d >= 1."""
        if d <= len(self.lead):
            return survival(self.lead)[d - 1]
        return self.reach * TAILS[self.tail].after(d - len(self.lead))

    def tokens(self, d: int) -> Fraction:
        """tau_d."""
        first = min(d, len(self.lead))
        begun = self.bonus + sum(survival(self.lead)[:first], Fraction(0))
        return begun + self.reach * _summed(self.tail, d - first)

    def speedup(self, d: int) -> Fraction:
        return self.tokens(d) / (self.fixed + d)

    def end(self, rate: Fraction) -> int:
        """A length from which on no speedup is above ``rate``, which must be more than the limit of survival.

        With S_m below the rate, tau_e <= tau_m + (e - m) S_m for e > m, and that is at most rate (T0 + e) if
        e (rate - S_m) >= tau_m - m S_m - rate T0.
        """
        m = 1
        while 2 * self.survives(m) > rate + self.limit:
            m += 1
        s = self.survives(m)
        return max(m, -int(-(self.tokens(m) - m * s - rate * self.fixed) // (rate - s)))

    def is_best(self, d: int) -> bool:
        """Whether no length from 1 on is faster than d."""
        rate = self.speedup(d)
        if rate > self.limit:
            return all(self.speedup(e) <= rate for e in range(1, self.end(rate) + 1))
        # Speedup goes to the limit. Where d is just as fast, the next place must not bring more than that.
        return (
            rate == self.limit
            and self.survives(d + 1) == self.limit
            and all(self.speedup(e) <= rate for e in range(1, d))
        )


def _summed(name: str, n: int) -> Fraction:
    short = TAILS[name].summed
    if short is not None:
        return short(n)
    held = _SUMS[name]
    while len(held) <= n:
        held.append(held[-1] + TAILS[name].after(len(held)))
    return held[n]


LONG = 2**12
# What is tried from d, in this order; the two take turns.
Habit = tuple[Callable[[int], int], ...]
FAR_FIRST: Habit = (lambda d: 2 * d, lambda d: d + 1, lambda d: d - 1, lambda d: d // 2)
NEAR_FIRST: Habit = (lambda d: d - 1, lambda d: d + 1, lambda d: d // 2, lambda d: 2 * d)
FAR_ONLY: Habit = (lambda d: 2 * d, lambda d: d // 2)


def adjusted(case: Unbounded, start: int, habits: tuple[Habit, Habit]) -> tuple[int, ...]:
    """A sequence of beneficial adjustments: each time to the first length tried that has a higher speedup.

    Until none has, or the length exceeds ``LONG``.
    """
    path = [start]
    while path[-1] <= LONG:
        d = path[-1]
        tried = (step(d) for step in habits[len(path) % 2])
        better = next((e for e in tried if e >= 1 and case.speedup(e) > case.speedup(d)), None)
        if better is None:
            break
        path.append(better)
    return tuple(path)


def all_unbounded(tails: tuple[str, ...]) -> Callable[[int], Iterator[Unbounded]]:
    """Leads of up to 1, 2 or 3 chances in quarters, T0 = 0, 1, 2, 3."""

    def every(level: int) -> Iterator[Unbounded]:
        leads = [(), *all_conditionals(1 + level, grid(4, zero=False))]
        for lead, fixed, bonus, tail in product(leads, range(4), (0, 1), tails):
            yield Unbounded(lead, tail, Fraction(fixed), bonus)

    return every


@st.composite
def any_unbounded(draw: st.DrawFn, tails: tuple[str, ...]) -> Unbounded:
    """Leads of up to 4 chances in quarters, T0 up to 4 in quarters."""
    lead = draw(st.lists(st.sampled_from(grid(4, zero=False)), max_size=4))
    fixed = Fraction(draw(st.integers(0, 16)), 4)
    return Unbounded(tuple(lead), draw(st.sampled_from(tails)), fixed, draw(st.integers(0, 1)))
