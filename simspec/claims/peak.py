"""Whether speedup has one peak, by the shape of the cost (L2, L2b, L2c, L20).

p_k = probability that draft k is accepted given that those before it were; S_j = p_1 .. p_j; tau_d =
expected tokens of a cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.blocks import (
    OVER_CONVEX,
    OVER_LINES,
    OVER_ORIGIN,
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
    affine,
    concave_costs,
    convex_costs,
    is_concave,
    rising_costs,
    staircase,
    staircase_costs,
    vllm_curve,
)
from simspec.strategies.survivals import all_conditionals, conditionals, grid
from simspec.theory.lengths import (
    best_lengths,
    envelope_corners,
    is_unimodal,
)

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


# L2b: where the cost goes through the origin


def _first_is_best(shortest: int, may_tie: Callable[[Block], bool]) -> Callable[[Block], Outcome]:
    """Whether ``shortest`` is a best length, and the only one unless the block may tie with it."""

    def rule(block: Block) -> Outcome:
        best = best_lengths(block.speedups()[shortest - block.shortest :])
        if best[0] == 0 and (len(best) == 1 or may_tie(block)):
            return None
        return against(*working(block), f"best: {', '.join(str(d + shortest) for d in best)} drafts")

    return rule


def _second_adds_as_much(block: Block) -> bool:
    p = block.p
    return block.bonus == 0 and (p[0] == 0 or (len(p) > 1 and p[1] == 1))


def _through(bonuses: tuple[int, ...], fixed: int) -> Callable[[int], Iterator[Block]]:
    """All small blocks with T(d) = fixed + d."""

    def every(level: int) -> Iterator[Block]:
        depth, parts = ((3, 4), (4, 4), (5, 5))[level]
        for p in all_conditionals(depth, grid(parts)):
            for bonus in bonuses:
                yield Block(p, affine(Fraction(fixed), Fraction(1), len(p)), bonus)

    return every


def _random_through(bonuses: tuple[int, ...], fixed: int) -> st.SearchStrategy[Block]:
    return st.builds(
        lambda p, bonus: Block(p, affine(Fraction(fixed), Fraction(1), len(p)), bonus),
        conditionals(longest=8),
        st.sampled_from(bonuses),
    )


L2B_STATEMENT = Statement(
    words=(
        "Where time is c for each draft and nothing besides, one draft is a best length; without the bonus "
        "it is the only one unless the second is sure (p_2 = 1) or none is ever accepted (p_1 = 0), with it "
        "always"
    ),
    formula="T(d) = c d  =>  eta_1 >= eta_d for all d >= 1",
    rule=_first_is_best(1, _second_adds_as_much),
    over=OVER_ORIGIN,
    domain=_random_through((0, 1), 0),
    every=_through((0, 1), 0),
    examples=250,
)
L2B = Claim(
    id="L2b",
    source="LibraSpec (2608.08721): segment cost T_{i:d'} = c (d' - i), read as T(d) = c d",
    statement=L2B_STATEMENT,
    expected="holds",
    because=(
        "Without the bonus c eta_d is the mean of S_1 .. S_d, none of which exceeds S_1; the mean of two is "
        "S_1 only if S_2 = S_1. The bonus adds 1/d, which falls. So a theory of lengths says nothing "
        "without a fixed cost: it would always draft one token."
    ),
    first_look="It left out p_1 = 0, where without the bonus every length is worth the same: nothing.",
    broken=(
        L2B_STATEMENT.but("... and always the only one", _first_is_best(1, lambda block: False)),
        L2B_STATEMENT.but(
            "The same with a fixed cost",
            _first_is_best(1, _second_adds_as_much),
            domain=_random_through((0, 1), 1),
            every=_through((0, 1), 1),
        ),
    ),
)

L2B_BONUS_STATEMENT = Statement(
    words=(
        "Where the bonus is counted and time is c for each token of the forward (drafts and one more), plain "
        "decoding is a best length, and the only one unless the first draft is sure"
    ),
    formula="T(d) = c (d + 1), tau_d = 1 + S_1 + .. + S_d  =>  eta_0 >= eta_d; alone unless p_1 = 1",
    rule=_first_is_best(0, lambda block: block.p[0] == 1),
    over=OVER_ORIGIN,
    domain=_random_through((1,), 1),
    every=_through((1,), 1),
    examples=250,
)
L2B_BONUS = Claim(
    id="L2b-bonus",
    source="LibraSpec (2608.08721), the same cost with the bonus token charged for",
    statement=L2B_BONUS_STATEMENT,
    expected="holds",
    because="c eta_d is the mean of 1, S_1 .. S_d, none of which exceeds 1.",
    broken=(
        L2B_BONUS_STATEMENT.but("... and always the only one", _first_is_best(0, lambda block: False)),
        L2B_BONUS_STATEMENT.but(
            "The same with a fixed cost, T(d) = c (d + 2)",
            _first_is_best(0, lambda block: block.p[0] == 1),
            domain=_random_through((1,), 2),
            every=_through((1,), 2),
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


CLAIMS = (L2, L2B, L2B_BONUS, L2C, L2C_STAIRS, L20)
