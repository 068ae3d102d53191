"""Blocks that may be cut at any length: the cases of claims about block lengths.

p_k = probability that draft k is accepted given that those before it were; S_j = p_1 .. p_j; tau_d =
expected tokens of a cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product

from hypothesis import strategies as st

from simspec.claims.base import Plot
from simspec.claims.plain import number, shown
from simspec.strategies.costs import (
    Curve,
    affine,
    affine_costs,
    all_curves,
    amounts,
    convex_costs,
    is_convex,
    staircase,
    tying_costs,
)
from simspec.strategies.survivals import Conditional, all_conditionals, conditionals, grid, tokens_by_outcome


@dataclass(frozen=True)
class Block:
    """A block that may be cut at any length: chances p_1 .. p_D, times T(0) .. T(D), bonus 0 or 1."""

    p: Conditional
    cost: Curve
    bonus: int

    @property
    def shortest(self) -> int:
        """0, or 1 where length 0 takes no time and so has no speedup."""
        return 0 if self.cost[0] > 0 else 1

    def speedups(self) -> tuple[Fraction, ...]:
        """eta_d for d = ``shortest`` .. D, tokens averaged over the ways in which a cycle can go."""
        tokens = tokens_by_outcome(self.p, self.bonus)
        return tuple(tokens[d] / self.cost[d] for d in range(self.shortest, len(self.cost)))


def listed(values: Iterable[Fraction]) -> str:
    """Numbers one after the other, fractions with their decimals."""
    return ", ".join(number(value) for value in values)


def drafts(count: int) -> str:
    return f"{count} draft" if count == 1 else f"{count} drafts"


def working(block: Block) -> tuple[str, ...]:
    """A block's numbers, for a reader who does not know the symbols."""
    tokens = tokens_by_outcome(block.p, block.bonus)
    counted = "with" if block.bonus else "without"
    return (
        f"draft k is accepted, given all before it were, with probability {shown(block.p)}",
        f"time of a cycle with 0, 1, 2, .. drafts: {listed(block.cost)}",
        f"expected tokens, {counted} the target's own: {listed(tokens)}",
        f"tokens per unit of time with {', '.join(map(str, range(block.shortest, 3)))}, .. drafts: "
        f"{listed(block.speedups())}",
    )


def speedup_curve(block: Block) -> Plot:
    """The figure of a block."""
    rates = block.speedups()
    return Plot(
        "Speedup by length of the block",
        "line",
        "drafts submitted",
        "expected tokens per unit of time",
        tuple(range(block.shortest, len(block.cost))),
        {"speedup": tuple(map(float, rates))},
    )


# Cases


def blocks(
    costs: Callable[[int], st.SearchStrategy[Curve]], *, shortest: int = 1, longest: int = 7
) -> st.SearchStrategy[Block]:
    """Random blocks with costs that a strategy draws for the block's length."""
    return conditionals(shortest=shortest, longest=longest).flatmap(
        lambda p: st.builds(Block, st.just(p), costs(len(p)), st.integers(0, 1))
    )


@st.composite
def lines(draw: st.DrawFn, *, shortest: int = 1, longest: int = 7) -> Block:
    """Blocks of affine cost; every other one has two lengths that tie, or nearly."""
    p, bonus = draw(conditionals(shortest=shortest, longest=longest)), draw(st.integers(0, 1))
    costs = (affine_costs(len(p)), affine_costs(len(p), free_start=True), tying_costs(p, bonus))
    return Block(p, draw(st.one_of(*costs, tying_costs(p, bonus))), bonus)


def all_lines(level: int) -> Iterator[Block]:
    """Cost T0 + d with T0 = 0, 1, 2, ..., since the unit of time is free."""
    depth, parts, fixed = ((3, 3, 3), (4, 3, 4), (4, 5, 8))[level]
    for p in all_conditionals(depth, grid(parts)):
        for first in range(fixed):
            for bonus in (0, 1):
                yield Block(p, affine(Fraction(first), Fraction(1), len(p)), bonus)


def all_blocks(level: int) -> Iterator[Block]:
    """Every small curve that does not fall."""
    depth, parts, largest = ((2, 3, 2), (3, 2, 2), (3, 3, 3))[level]
    for p in all_conditionals(depth, grid(parts)):
        for cost in all_curves(len(p), largest):
            for bonus in (0, 1):
                yield Block(p, cost, bonus)


def all_convex(level: int) -> Iterator[Block]:
    """Those of :func:`all_blocks` with a convex cost."""
    return (block for block in all_blocks(level) if is_convex(block.cost))


@st.composite
def unpaid_costs(draw: st.DrawFn, depth: int) -> Curve:
    """A convex cost from length 1 on, and a length 0 that is spared the drafting."""
    cost, draft = draw(convex_costs(depth)), draw(amounts(1))
    return (cost[0], *(t + draft for t in cost[1:]))


def all_unpaid(level: int) -> Iterator[Block]:
    """Those of :func:`all_convex` with drafting that takes 1 (at level 2 also 2) at any length but 0."""
    for block in all_convex(level):
        for draft in range(1, 2 + level // 2):
            cost = (block.cost[0], *(t + draft for t in block.cost[1:]))
            yield Block(block.p, cost, block.bonus)


OVER_LINES = (
    "all blocks of up to 4 places with chances in thirds and T = T0 + d, T0 = 0 .. 3, with and without the "
    "bonus (smallest effort: 3 places, T0 to 2; largest: fifths, T0 to 7); random ones of up to 7 places "
    "with chances k/n, n to 20, half of them with two neighbouring lengths that tie, or miss a tie by a "
    "millionth of T0"
)
OVER_BLOCKS = (
    "all blocks of up to 3 places with chances 0, 1/2, 1 and every cost with T(0) of 1 or 2 and steps up of "
    "0, 1, 2, with and without the bonus (smallest effort: 2 places, chances in thirds; largest: thirds, "
    "T(0) and steps to 3); random ones of up to 7 places with affine, convex, concave, staircase and "
    "measured costs"
)
OVER_CONVEX = (
    "all blocks of up to 3 places with chances 0, 1/2, 1 and every convex cost with T(0) of 1 or 2 and steps "
    "up of 0, 1, 2, with and without the bonus (smallest effort: 2 places, chances in thirds; largest: "
    "thirds, T(0) and steps to 3); random ones of up to 7 places with convex costs, half of them flat at "
    "first"
)
OVER_STAIRS = (
    "all blocks of up to 5 places (smallest effort: 3) with chances 0, 1/2, 1 (largest: thirds), T0 = 0, 1, "
    "2, the bonus, and a forward of d + 1 tokens padded to a multiple of 2 or 3; random ones of up to 24 "
    "places padded to multiples of 2 to 16, or to sizes of captured graphs (1, 2, 4, 8, 16, 24, 32, and "
    "other irregular lists)"
)
OVER_ORIGIN = (
    "all blocks of up to 4 places with chances in quarters (smallest effort: 3; largest: 5 places); random "
    "ones of up to 8 places with chances k/n, n to 20"
)


def all_staircases(level: int) -> Iterator[Block]:
    """Padding to multiples of 2 and 3, small fixed costs."""
    depth, parts = ((3, 2), (5, 2), (5, 3))[level]
    for p in all_conditionals(depth, grid(parts)):
        for tread in (2, 3):
            for fixed in (0, 1, 2):
                yield Block(p, staircase(Fraction(fixed), Fraction(1), tread, len(p)), 1)


def four_stairs(level: int) -> Iterator[Block]:
    """Blocks of four places padded to multiples of 2, so that the last one begins a tread."""
    for p in product(grid(2 + level // 2), repeat=4):
        for fixed in (0, 1, 2):
            yield Block(p, staircase(Fraction(fixed), Fraction(1), 2, 4), 1)


def tread_ends(cost: Curve) -> tuple[int, ...]:
    """Lengths that fill their tread, and the last one."""
    return (*(d for d, (here, then) in enumerate(pairwise(cost)) if then > here), len(cost) - 1)


class Endless:
    """A block's numbers at any length: nothing is accepted past its end, and each further draft takes as
    long as the last one did, or 1 where that took no time."""

    def __init__(self, block: Block):
        self.block = block
        self.size = len(block.p)
        self._tokens = tokens_by_outcome(block.p, block.bonus)
        self._step = block.cost[-1] - block.cost[-2] or Fraction(1)
        self._speedups: dict[int, Fraction] = {}

    def cost(self, d: int) -> Fraction:
        if d <= self.size:
            return self.block.cost[d]
        return self.block.cost[-1] + (d - self.size) * self._step

    def tokens(self, d: int) -> Fraction:
        return self._tokens[min(d, self.size)]

    def speedup(self, d: int) -> Fraction:
        if d not in self._speedups:
            self._speedups[d] = self.tokens(d) / self.cost(d)
        return self._speedups[d]

    def survives(self, d: int) -> bool:
        """Whether draft d can be accepted."""
        return 0 < d <= self.size and self._tokens[d] > self._tokens[d - 1]


def has_values(block: Block) -> bool:
    """Whether T_i / tau_i has a value for every i >= 1: some token is expected of one draft."""
    return block.bonus == 1 or block.p[0] > 0
