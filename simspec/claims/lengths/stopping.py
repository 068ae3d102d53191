"""Stopping at the first draft that does not improve (L13).

p_k = probability that draft k is accepted given that those before it were; S_j = p_1 .. p_j; tau_d =
expected tokens of a cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from simspec.strategies.costs import convex_costs, padded_costs, staircase, staircase_costs
from simspec.theory.lengths import best_lengths, first_stop, speedups

# L13: stop at the first length that does not improve


def _stops_best(
    lengths: Callable[[Block], tuple[int, ...]],
    *,
    or_plain: bool = False,
    at_least: Fraction = Fraction(0),
) -> Callable[[Block], Outcome]:
    """Go through ``lengths``, stop before the first that is no improvement; is that the best of all?

    Args:
        or_plain: in the end take length 0 if that is as good.
        at_least: count as an improvement only what is more by this share.
    """

    def rule(block: Block) -> Outcome:
        if block.shortest:
            return UNMET
        rates, tried = speedups(block.p, block.cost, bonus=bool(block.bonus)), lengths(block)
        # Each length's value lowered by the share for every step: a smaller rise is then none.
        stop = tried[first_stop([rates[d] / (1 + at_least) ** k for k, d in enumerate(tried)])]
        if or_plain and rates[0] >= rates[stop]:
            stop = 0
        every = block.speedups()
        if every[stop] == max(every):
            return None
        return against(
            *working(block),
            f"tried in turn: {', '.join(map(str, tried))} drafts; it ends with {stop}, which have "
            f"{number(every[stop])}; best: {best_lengths(every)[0]} with {number(max(every))}",
        )

    return rule


def _each(block: Block) -> tuple[int, ...]:
    return tuple(range(len(block.cost)))


def _from_one(block: Block) -> tuple[int, ...]:
    return tuple(range(1, len(block.cost)))


def _slow_rise(*, tread: int = 1) -> Callable[[int], Iterator[Block]]:
    """Sure drafts, each tread taking 1 and a thirty-second besides: each raises speedup, by less and less.

    Treads of one draft leave the thirty-second out for length 0, wider ones are those of a forward with one
    more token, the bonus.
    """

    def every(level: int) -> Iterator[Block]:
        bonus = int(tread > 1)
        for size in range(1, 5 + level):
            cost = [Fraction(1, 32) + max(1, -(-(d + bonus) // tread)) for d in range(size + 1)]
            yield Block((Fraction(1),) * size, (cost[0] if bonus else Fraction(1), *cost[1:]), bonus)

    return every


L13_STATEMENT = Statement(
    words=(
        "With a convex cost that never falls, that of length 0 included, stopping at the first draft that "
        "does not raise expected tokens per unit of time finds the best length of all"
    ),
    formula="n = first n with eta_{n+1} <= eta_n, T convex, T(0) > 0  =>  eta_n = max eta",
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
        "One peak (L2c): after eta_{n+1} < eta_n it never rises again. An equal value may end the search, "
        "too. Where T(n+1) > T(n) it means S_{n+1}/(T(n+1) - T(n)) = eta_n, and the next place brings no "
        "more for no less, so eta_{n+2} <= eta_n, and so on. Where T(n+1) = T(n), a flat step, it means "
        "S_{n+1} = 0: nothing is accepted from there on, and no length is cheaper."
    ),
    broken=(
        L13_STATEMENT.but(
            "The same stopping at the first draft that does not raise it by a fiftieth",
            _stops_best(_each, at_least=Fraction(1, 50)),
            domain=None,
            every=_slow_rise(),
        ),
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
    formula=(
        "n = first n with eta_{n+1} <= eta_n, T(d) = T0 + s (least allowed size >= d + 1)  =>  eta_n = max "
        "eta"
    ),
    over=OVER_STAIRS,
    domain=blocks(padded_costs, longest=24),
    every=all_staircases,
)
L13_STAIRS_REPAIRED = L13_STAIRS_STATEMENT.but(
    "Stopping at the first tread that does not improve finds it, trying only lengths that fill their tread, "
    "and the longest allowed",
    _stops_best(lambda block: tread_ends(block.cost)),
    formula=(
        "e_1 < e_2 < .. the d with d + 1 an allowed size, and D; k = first k with eta_{e_{k+1}} <= "
        "eta_{e_k}, T(d) = T0 + s (least allowed size >= d + 1)  =>  eta_{e_k} = max eta"
    ),
)
L13_STAIRS = Claim(
    id="L13-stairs",
    source="CaDDTree (2606.01813) with a forward padded to a multiple of tokens",
    statement=L13_STAIRS_STATEMENT,
    expected="refuted",
    because=(
        "The draft that begins a tread pays for all of it, so the search ends at the edge even where the "
        "whole tread would pay. Over lengths that fill their tread the cost is affine in the tokens, what a "
        "tread adds over what it costs cannot rise, and one of them is best (L2c-stairs)."
    ),
    pinned=Block((Fraction(1, 2), Fraction(1), Fraction(1)), staircase(Fraction(1), Fraction(1), 2, 3), 1),
    repaired=L13_STAIRS_REPAIRED,
    broken=(
        L13_STAIRS_REPAIRED.but(
            "The same trying lengths that begin a tread",
            _stops_best(lambda block: (0, *(d + 1 for d in tread_ends(block.cost)[:-1]))),
        ),
        L13_STAIRS_REPAIRED.but(
            "The same stopping at the first tread that does not raise it by a fiftieth",
            _stops_best(lambda block: tread_ends(block.cost), at_least=Fraction(1, 50)),
            domain=None,
            every=_slow_rise(tread=2),
        ),
        L13_STAIRS_REPAIRED.but(
            "The same without the longest allowed",
            _stops_best(lambda block: tread_ends(block.cost)[:-1] or (0,)),
        ),
    ),
    plot=speedup_curve,
)
L13_FREE_STATEMENT = L13_STATEMENT.but(
    "Stopping at the first draft that does not improve finds the best length where not drafting saves its "
    "cost",
    _stops_best(_each),
    formula=(
        "T(0) = V(0), T(n) = C + V(n) for n >= 1, V convex, C > 0; n = first n with eta_{n+1} <= eta_n  =>  "
        "eta_n = max eta"
    ),
    over=OVER_CONVEX + ", with a cost of drafting that length 0 is spared: 1 (at the largest effort also 2)",
    domain=blocks(unpaid_costs),
    every=all_unpaid,
)
L13_FREE_REPAIRED = L13_FREE_STATEMENT.but(
    "Searching from one draft on, ending at the first that does not improve, and comparing what is found "
    "with plain decoding finds it",
    _stops_best(_from_one, or_plain=True),
    formula="n = first n >= 1 with eta_{n+1} <= eta_n  =>  max(eta_0, eta_n) = max eta",
)
L13_FREE = Claim(
    id="L13-free",
    source="CaDDTree (2606.01813) with n = 0 as plain decoding",
    statement=L13_FREE_STATEMENT,
    expected="refuted",
    because=(
        "The first draft pays for the drafter's forward as well, so the cost is not convex at 0. A drafter "
        "at .9, C = 1, V(n) = 1 + .05 n: one draft has .93, plain decoding 1, ten drafts 2.74. From length "
        "1 on it is convex, so there L13 holds, and plain decoding is all that is left."
    ),
    pinned=Block((Fraction(1),) * 2, tuple(map(Fraction, (2, 5, 5))), 1),
    repaired=L13_FREE_REPAIRED,
    broken=(
        L13_FREE_REPAIRED.but(
            "The same ending at the first draft that does not raise it by a fiftieth",
            _stops_best(_from_one, or_plain=True, at_least=Fraction(1, 50)),
            domain=None,
            every=_slow_rise(),
        ),
        L13_FREE_REPAIRED.but("The search from one draft on alone finds it", _stops_best(_from_one)),
        L13_FREE_REPAIRED.but(
            "The search from no draft on, compared with plain decoding, finds it",
            _stops_best(_each, or_plain=True),
        ),
    ),
    plot=speedup_curve,
)


CLAIMS = (L13, L13_STAIRS, L13_FREE)
