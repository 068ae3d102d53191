"""LibraSpec's position-wise conditions on a length d', one for each place i, and the lengths they allow.

Condition i allows d' if T(d') - T(i) < (T(i) / tau_i) x (a sum over places, told by ``gain``): time spent
on going from i to d' against the accepted drafts it brings, each worth the time that a token of i drafts
takes. p_k, S_j, tau_d and T(d) are those of :mod:`simspec.claims.lengths.blocks`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from simspec.claims.lengths.blocks import Block, Endless, drafts
from simspec.claims.plain import number
from simspec.strategies.survivals import Conditional
from simspec.theory.lengths import conditional_gain, eps_printed, eps_repaired, marginal_gain

# Of (p, i, d'): a sum over places up to d'.
Gain = Callable[[Conditional, int, int], Fraction]


def printed_sum(p: Conditional, i: int, longer: int) -> Fraction:
    """As in Thm 3.3: sum_{j=i..d'} p_i .. p_j; from place 1 for i = 0."""
    return conditional_gain(p, max(i, 1), longer)


def sum_of_survivals(p: Conditional, i: int, longer: int) -> Fraction:
    """Products from place 1, the sum still from i: sum_{j=i..d'} S_j; from place 1 for i = 0."""
    return marginal_gain(p, max(i - 1, 0), longer)


def later_sum(p: Conditional, i: int, longer: int) -> Fraction:
    """The sum from i + 1, products from there on: sum_{j=i+1..d'} p_{i+1} .. p_j."""
    return conditional_gain(p, i + 1, longer)


def last_left_out(p: Conditional, i: int, longer: int) -> Fraction:
    """The right gain of one draft less: sum_{j=i+1..d'-1} S_j."""
    return marginal_gain(p, i, max(i, longer - 1))


@dataclass(frozen=True)
class Condition:
    """One condition for each i.

    Attributes:
        furthest: the longest length allowed, given the block's numbers and i.
        gain: what it sums.
        ties: whether equal is enough.
        shift, least: eps_i is so many places past the longest length allowed, but not below ``least``.
    """

    furthest: Callable[[Endless, int], int]
    gain: Gain
    ties: bool = False
    shift: int = 0
    least: int = 0

    def eps(self, of: Endless, i: int) -> int:
        return max(self.least, self.furthest(of, i) + self.shift)

    def worked(self, of: Endless, i: int) -> tuple[str, ...]:
        """Why eps_i is what it is: the last length that is allowed, and the one after it."""
        p, last, worth = of.block.p, self.furthest(of, i), 1 / of.speedup(i)
        told = [
            f"condition {i}: T({i}) = {number(of.cost(i))} over tau_{i} = {number(of.tokens(i))}: a token "
            f"takes {number(worth)} of time with {drafts(i)}"
        ]
        for longer in range(max(last, i, 1), last + 2):
            spent, gain = of.cost(longer) - of.cost(i), self.gain(p, i, longer)
            fits = spent < gain * worth or (self.ties and spent == gain * worth)
            told.append(
                f"d' = {longer}: {number(gain)} said to be gained, worth {number(gain * worth)}; "
                f"T({longer}) - T({i}) = {number(spent)}: {'allowed' if fits else 'not allowed'}"
            )
        moved = f", moved by {self.shift}" if self.shift else ""
        return (*told, f"so eps_{i} = {self.eps(of, i)}{moved}")


def looked_for(gain: Gain, *, least: int, ties: bool = False) -> Condition:
    """The condition with any sum, by trying every length of the block; eps_i is at least i + ``least``."""

    def furthest(of: Endless, i: int) -> int:
        p, worth = of.block.p, 1 / of.speedup(i)

        def left(d: int) -> Fraction:
            return worth * gain(p, i, d) - (of.cost(d) - of.cost(i))

        # Past the last place nothing is gained any more, but for a sum that lags one place behind.
        end = of.size + 1
        if left(end) > 0 or (ties and left(end) == 0):
            more = left(end) / (of.cost(end + 1) - of.cost(end))
            return end + (math.floor(more) if ties else math.ceil(more) - 1)
        allowed = (d for d in range(i, end) if left(d) > 0 or (ties and left(d) == 0))
        return max(allowed, default=i + least)

    return Condition(furthest, gain, ties)


def _printed(of: Endless, i: int) -> int:
    return eps_printed(of.block.p, i, of.cost, bonus=bool(of.block.bonus))


def _repaired(ties: bool) -> Callable[[Endless, int], int]:
    return lambda of, i: eps_repaired(of.block.p, i, of.cost, bonus=bool(of.block.bonus), ties=ties)


PRINTED = Condition(_printed, printed_sum)
# With products from place 1 and a sum from i + 1: lengths faster than i, or as fast with ties.
REPAIRED = Condition(_repaired(ties=False), marginal_gain)
REPAIRED_TIES = Condition(_repaired(ties=True), marginal_gain, ties=True)


def printed(block: Block, i: int) -> int:
    """eps_i as printed, with differences of the true cost."""
    return _printed(Endless(block), i)
