"""Whether speedup has one peak, by the shape of the cost (L2, L2c, L20).

p_k = probability that draft k is accepted given that those before it were; S_j = p_1 .. p_j; tau_d =
expected tokens of a cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from hypothesis import strategies as st

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
    VLLM_DRAFTED,
    VLLM_STEP_MS,
    concave_costs,
    convex_costs,
    is_concave,
    rising_costs,
    staircase,
    staircase_costs,
    vllm_curve,
)
from simspec.strategies.survivals import all_conditionals, conditionals, grid
from simspec.theory.lengths import best_lengths, envelope_corners, is_unimodal

# L2


def _unimodal(block: Block) -> Outcome:
    return None if is_unimodal(block.speedups()) else against(*working(block), "it falls and rises again")


def _one_peak(block: Block) -> Outcome:
    best = best_lengths(block.speedups())
    return None if len(best) == 1 else against(*working(block), f"{len(best)} lengths are best")


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
        L2_STATEMENT.but("... and exactly one length is best", _one_peak),
        L2_STATEMENT.but(
            "... and length 0 may be spared the drafting that every other length pays for",
            _unimodal,
            domain=blocks(unpaid_costs),
            every=all_unpaid,
        ),
    ),
)

# L2c and L20: other costs

L2C_STATEMENT = L2_STATEMENT.but(
    "The same with any convex cost, flat beginnings included",
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


def _over_treads(block: Block) -> Outcome:
    rates = block.speedups()
    ends = [rates[d] for d in tread_ends(block.cost)]
    if is_unimodal(ends) and max(ends) == max(rates):
        return None
    return against(*working(block), f"lengths that fill a tread: {shown(tread_ends(block.cost))}")


L2C_STAIRS = Claim(
    id="L2c-stairs",
    source="LibraSpec (2608.08721) Thm 3.5 with a forward padded to a multiple of tokens",
    statement=L2_STATEMENT.but(
        "Expected speedup has one peak with a staircase cost, too",
        _unimodal,
        formula="T(d) = T0 + s ceil((d + 1)/w)  =>  unimodal",
        over=OVER_STAIRS,
        domain=blocks(staircase_costs, longest=12),
        every=all_staircases,
    ),
    expected="refuted",
    because=(
        "The first draft of a new tread pays for the whole tread, the others are free: speedup falls at the "
        "edge and rises along the tread. At the edges alone survival is summed tread by tread, which cannot "
        "rise, so there the proof of L2 goes through; and within a tread more drafts never lose."
    ),
    pinned=Block((Fraction(1, 2),) * 3, staircase(Fraction(0), Fraction(1), 2, 3), 1),
    repaired=L2_STATEMENT.but(
        (
            "Over the lengths that fill their tread (and the longest allowed) it has one peak, and one of "
            "them is best"
        ),
        _over_treads,
        over=OVER_STAIRS,
        domain=blocks(staircase_costs, longest=12),
        every=all_staircases,
    ),
    plot=speedup_curve,
)


def _unimodal_where_timed(block: Block) -> Outcome:
    """Only lengths that are in the table, so that nothing rests on what is drawn between them."""
    rates = block.speedups()
    timed = [d for d in VLLM_DRAFTED if d < len(rates)]
    if is_unimodal([rates[d] for d in timed]):
        return None
    return against(*working(block), f"lengths that were timed: {shown(tuple(timed))}")


def _measured(level: int) -> Iterator[Block]:
    depth, parts = ((3, 6), (3, 6), (5, 6))[level]
    for p in all_conditionals(depth, grid(parts)):
        for batch in VLLM_STEP_MS:
            yield Block(p, vllm_curve(batch, len(p)), 1)


_random_measured = st.builds(
    lambda p, batch: Block(p, vllm_curve(batch, len(p)), 1),
    conditionals(longest=7),
    st.sampled_from(sorted(VLLM_STEP_MS)),
)


def _over_corners(block: Block) -> Outcome:
    rates = block.speedups()
    corners = envelope_corners(block.cost)
    if is_unimodal([rates[d - block.shortest] for d in corners if d >= block.shortest]):
        return None
    return against(*working(block), f"corners: {shown(corners)}")


OVER_MEASURED = (
    "vLLM's published table of step times (0, 1, 3, 4, 5 and 7 drafts, batch 1, 16, 32) with all chances in "
    "sixths; random chances"
)
L20_STATEMENT = L2_STATEMENT.but(
    "Expected speedup has one peak over the lengths of a published table of measured step times",
    _unimodal_where_timed,
    formula="T from the table of vLLM's dynamic speculation manager  =>  unimodal",
    over=OVER_MEASURED,
    domain=_random_measured,
    every=_measured,
)
L20 = Claim(
    id="L20",
    source="LibraSpec (2608.08721) Thm 3.5 on a table published with vLLM",
    statement=L20_STATEMENT,
    expected="refuted",
    because=(
        "At batch 32 the first draft adds 1.33 ms and each of the next two .905: where the first draft is "
        "rarely accepted and the others nearly always, speedup falls and rises again. It takes such a "
        "drafter: of the 8,400 cases with up to four drafts in sixths 62 have two peaks. Corners of the "
        "lower convex envelope form a convex cost with steps wider than 1; survival averaged over those "
        "steps still cannot rise."
    ),
    pinned=Block((Fraction(1, 6), Fraction(5, 6), Fraction(5, 6)), vllm_curve(32, 3), 1),
    repaired=L20_STATEMENT.but(
        "Over the lengths at the corners of the cost's lower convex envelope it has one peak, for any cost",
        _over_corners,
        formula="",
        over=OVER_MEASURED + "; random blocks of up to 7 places with costs of every kind",
        domain=st.one_of(_random_measured, blocks(rising_costs)),
    ),
    plot=speedup_curve,
)

CLAIMS = (L2, L2C, L2C_STAIRS, L20)
