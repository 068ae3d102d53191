"""Whether speedup has one peak, by the shape of the cost (L2, L2c, L2c-stairs).

p_k = probability that draft k is accepted given that those before it were; S_j = p_1 .. p_j; tau_d =
expected tokens of a cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.lengths.blocks import (
    OVER_CONVEX,
    OVER_LINES,
    OVER_STAIRS,
    Block,
    all_blocks,
    all_convex,
    all_lines,
    all_staircases,
    all_unpaid,
    blocks,
    lines,
    speedup_curve,
    tread_ends,
    unpaid_costs,
    working,
)
from simspec.claims.plain import shown
from simspec.strategies.costs import (
    concave_costs,
    convex_costs,
    is_concave,
    padded_costs,
    rising_costs,
    staircase,
)
from simspec.strategies.survivals import all_conditionals, grid
from simspec.theory.lengths import best_lengths, is_unimodal

# L2


def _peaked(*, alone: bool = False) -> Callable[[Block], Outcome]:
    """Whether speedup, once fallen, never rises; with ``alone`` also whether only one length is best."""

    def rule(block: Block) -> Outcome:
        rates = block.speedups()
        if not is_unimodal(rates):
            return against(*working(block), "it falls and rises again")
        best = best_lengths(rates)
        if alone and len(best) > 1:
            return against(*working(block), f"{len(best)} lengths are best")
        return None

    return rule


_unimodal = _peaked()


def _possible(blocks_of: Callable[[int], Iterator[Block]]) -> Callable[[int], Iterator[Block]]:
    """Those in which every draft may be accepted, and be refused."""
    return lambda level: (block for block in blocks_of(level) if 0 < min(block.p) <= max(block.p) < 1)


L2_STATEMENT = Statement(
    words="With an affine cost expected speedup has one peak: once it has fallen it never rises again",
    formula="T(d) = T0 + c d, T0 >= 0, c > 0  =>  no d < e < f with eta_d > eta_e < eta_f",
    rule=_unimodal,
    over=OVER_LINES,
    domain=lines(),
    every=all_lines,
    examples=250,
)
L2 = Claim(
    id="L2",
    source="LibraSpec (2608.08721) Thm 3.5",
    statement=L2_STATEMENT,
    expected="holds",
    because=(
        "Suppose eta_{d+1} <= eta_d. The new place's S_{d+1}/c is then at most eta_{d+1} (the mean of L1 "
        "lies between its parts), and S_{d+2} <= S_{d+1}, so S_{d+2}/c <= eta_{d+1} and eta_{d+2} <= "
        "eta_{d+1}. It uses only that survival cannot rise (L18), so p may be anything, and the bonus, "
        "which is in tau_0, changes nothing. A strict fall stays strict; equal values can occur, but only "
        "side by side at the top."
    ),
    broken=(
        L2_STATEMENT.but(
            "... and exactly one length is best, where every draft may be accepted and may be refused",
            _peaked(alone=True),
            domain=None,
            every=_possible(all_lines),
        ),
        L2_STATEMENT.but(
            "... and length 0 may be spared the drafting that every other length pays for",
            _unimodal,
            domain=blocks(unpaid_costs),
            every=all_unpaid,
        ),
    ),
)

# L2c: other costs

L2C_STATEMENT = L2_STATEMENT.but(
    "With any convex cost that never falls, flat beginnings included, expected speedup has one peak: once it "
    "has fallen it never rises again",
    _unimodal,
    formula="T(d+2) - T(d+1) >= T(d+1) - T(d) >= 0  =>  unimodal",
    over=OVER_CONVEX,
    domain=blocks(convex_costs),
    every=all_convex,
)
L2C = Claim(
    id="L2c",
    source="CaDDTree (2606.01813); LibraSpec (2608.08721) Thm 3.5 extended",
    statement=L2C_STATEMENT,
    expected="holds",
    because=(
        "The proof of L2 needs only that S_{d+1} / (T(d+1) - T(d)) does not rise with d: survival does not "
        "rise and a convex cost's steps do not fall. A step of 0 is at the beginning, where every place "
        "pays."
    ),
    broken=(
        L2C_STATEMENT.but(
            "The same with a concave cost",
            _unimodal,
            domain=blocks(concave_costs),
            every=lambda level: (block for block in all_blocks(level) if is_concave(block.cost)),
        ),
        L2C_STATEMENT.but(
            "The same with any cost that rises", _unimodal, domain=blocks(rising_costs), every=all_blocks
        ),
    ),
)


def _even_heights(level: int) -> Iterator[Block]:
    """Treads of 1, 1 and 3 tokens, each 1 higher than the one before."""
    for p in all_conditionals(4, grid(2 + level)):
        yield Block(p, tuple(map(Fraction, (1, 2, 3, 3, 3)[: len(p) + 1])), 1)


def _over_treads(*, last: bool = True, best: bool = True) -> Callable[[Block], Outcome]:
    """Whether speedup has one peak over the lengths that fill their tread, and one of them is best.

    Args:
        last: count the longest length of all among them.
        best: whether one of them should be best, or only one peak be had.
    """

    def rule(block: Block) -> Outcome:
        rates = block.speedups()
        lengths = tread_ends(block.cost)[: None if last else -1]
        ends = [rates[d] for d in lengths]
        if is_unimodal(ends) and (not best or not ends or max(ends) == max(rates)):
            return None
        return against(*working(block), f"lengths that fill a tread: {shown(lengths)}")

    return rule


L2C_STAIRS_STATEMENT = L2_STATEMENT.but(
    "Expected speedup has one peak with a staircase cost, too",
    _unimodal,
    formula="T(d) = T0 + s (least allowed size >= d + 1), as multiples of w  =>  unimodal",
    over=OVER_STAIRS,
    domain=blocks(padded_costs, longest=24),
    every=all_staircases,
    examples=150,
)
L2C_STAIRS_REPAIRED = L2C_STAIRS_STATEMENT.but(
    "Over the lengths that fill their tread (and the longest allowed) it has one peak, and one of them is "
    "best, whatever the sizes that a forward is padded to, if time is a fixed one and so much a token of the "
    "padded size",
    _over_treads(),
    formula=(
        "T(d) = T0 + s (least allowed size >= d + 1), e_1 < e_2 < .. the d with d + 1 an allowed size, and "
        "D  =>  eta over them unimodal, max eta_{e_k} = max eta"
    ),
)
L2C_STAIRS = Claim(
    id="L2c-stairs",
    source="LibraSpec (2608.08721) Thm 3.5 with a forward padded to a multiple of tokens",
    statement=L2C_STAIRS_STATEMENT,
    expected="refuted",
    because=(
        "The first draft of a new tread pays for the whole tread, the others are free: speedup falls at the "
        "edge and rises along the tread. Within a tread more drafts never lose, so a length that fills one "
        "is best. Over those lengths the cost is T0 + s (d + 1), affine, and what a tread adds over what it "
        "costs is the mean of its survivals, which does not rise from tread to tread, however wide; a last "
        "tread that is not full has less of both still. So the proof of L2 goes through there."
    ),
    pinned=Block((Fraction(1, 2),) * 3, staircase(Fraction(0), Fraction(1), 2, 3), 1),
    repaired=L2C_STAIRS_REPAIRED,
    broken=(
        L2C_STAIRS_REPAIRED.but(
            "Of the lengths that fill their tread, without the longest allowed, one is best",
            _over_treads(last=False),
        ),
        L2C_STAIRS_REPAIRED.but(
            "The same if each further tread takes as long as the one before, however wide they are",
            _over_treads(),
            domain=None,
            every=_even_heights,
        ),
    ),
    plot=speedup_curve,
)

CLAIMS = (L2, L2C, L2C_STAIRS)
