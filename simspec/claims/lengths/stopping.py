"""Stopping at the first draft that does not improve (L13).

p_k = probability that draft k is accepted given that those before it were; S_j = p_1 .. p_j; tau_d =
expected tokens of a cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.lengths.blocks import (
    OVER_CONVEX,
    OVER_STAIRS,
    Block,
    all_convex,
    all_staircases,
    all_unpaid,
    blocks,
    lines,
    speedup_curve,
    tread_ends,
    unpaid_costs,
    working,
)
from simspec.claims.plain import number
from simspec.strategies.costs import convex_costs, staircase, staircase_costs
from simspec.theory.lengths import best_lengths, first_stop, speedups

# L13: stop at the first length that does not improve


def _stops_best(lengths: Callable[[Block], tuple[int, ...]]) -> Callable[[Block], Outcome]:
    """Go through ``lengths``, stop before the first that is no improvement; is that the best of all?"""

    def rule(block: Block) -> Outcome:
        if block.shortest:
            return UNMET
        rates, tried = speedups(block.p, block.cost, bonus=bool(block.bonus)), lengths(block)
        stop = tried[first_stop([rates[d] for d in tried])]
        every = block.speedups()
        if every[stop] == max(every):
            return None
        return against(
            *working(block),
            f"it stops at {stop} drafts with {number(every[stop])}; best: {best_lengths(every)[0]} with "
            f"{number(max(every))}",
        )

    return rule


def _each(block: Block) -> tuple[int, ...]:
    return tuple(range(len(block.cost)))


def _plain_or_from_one(block: Block) -> Outcome:
    """Search from one draft on, then compare with plain decoding."""
    rates = speedups(block.p, block.cost, bonus=bool(block.bonus))
    stop = 1 + first_stop(rates[1:])
    chosen = stop if rates[stop] > rates[0] else 0
    every = block.speedups()
    if every[chosen] == max(every):
        return None
    return against(*working(block), f"it takes {chosen} drafts")


L13_STATEMENT = Statement(
    words=(
        "With a convex cost in which every length pays for the drafting alike, stopping at the first draft "
        "that does not raise expected tokens per unit of time finds the best length of all"
    ),
    formula="n = first n with eta_{n+1} <= eta_n  =>  eta_n = max eta",
    rule=_stops_best(_each),
    over=OVER_CONVEX + "; affine ones with ties and near ties",
    domain=st.one_of(blocks(convex_costs), lines()),
    every=all_convex,
    examples=100,
)
L13 = Claim(
    id="L13",
    source="CaDDTree (2606.01813): theta(n+1) <= theta(n) ends the search",
    statement=L13_STATEMENT,
    expected="holds",
    because=(
        "One peak (L2c): after eta_{n+1} <= eta_n it never rises again. An equal value may end the search, "
        "too: it means S_{n+1}/(T(n+1) - T(n)) = eta_n, and the next place brings no more for no less."
    ),
    broken=(
        L13_STATEMENT.but(
            "The same with a staircase cost",
            _stops_best(_each),
            domain=blocks(staircase_costs),
            every=all_staircases,
        ),
        L13_STATEMENT.but(
            "The same where length 0 is spared the drafting",
            _stops_best(_each),
            domain=blocks(unpaid_costs),
            every=all_unpaid,
        ),
    ),
)
L13_STAIRS_STATEMENT = L13_STATEMENT.but(
    "Stopping at the first draft that does not improve finds the best length with a staircase cost, too",
    _stops_best(_each),
    over=OVER_STAIRS,
    domain=blocks(staircase_costs, longest=12),
    every=all_staircases,
)
L13_STAIRS = Claim(
    id="L13-stairs",
    source="CaDDTree (2606.01813) with a forward padded to a multiple of tokens",
    statement=L13_STAIRS_STATEMENT,
    expected="refuted",
    because=(
        "The draft that begins a tread pays for all of it, so the search ends at the edge even where the "
        "whole tread would pay. Looked at tread by tread the cost is affine and what a tread adds cannot "
        "rise."
    ),
    pinned=Block((Fraction(1, 2), Fraction(1), Fraction(1)), staircase(Fraction(1), Fraction(1), 2, 3), 1),
    repaired=L13_STAIRS_STATEMENT.but(
        (
            "Stopping at the first tread that does not improve finds it, trying only lengths that fill "
            "their tread"
        ),
        _stops_best(lambda block: tread_ends(block.cost)),
        formula="",
    ),
    plot=speedup_curve,
)
L13_FREE_STATEMENT = L13_STATEMENT.but(
    (
        "Stopping at the first draft that does not improve finds the best length where not drafting saves "
        "its cost"
    ),
    _stops_best(_each),
    formula="T(0) = V(0), T(n) = C + V(n) for n >= 1, V convex",
    over=OVER_CONVEX + ", with a cost of drafting that length 0 is spared",
    domain=blocks(unpaid_costs),
    every=all_unpaid,
)
L13_FREE = Claim(
    id="L13-free",
    source="CaDDTree (2606.01813) with n = 0 as plain decoding",
    statement=L13_FREE_STATEMENT,
    expected="refuted",
    because=(
        "The first draft pays for the drafter's forward as well, so the cost is not convex at 0. A drafter "
        "at .9, C = 1, V(n) = 1 + .05 n: one draft has .93, plain decoding 1, ten drafts 2.74. From length "
        "1 on it is convex."
    ),
    pinned=Block((Fraction(1),) * 2, tuple(map(Fraction, (2, 5, 5))), 1),
    repaired=L13_FREE_STATEMENT.but(
        "Searching from one draft on and comparing what is found with plain decoding finds it",
        _plain_or_from_one,
    ),
    plot=speedup_curve,
)


CLAIMS = (L13, L13_STAIRS, L13_FREE)
