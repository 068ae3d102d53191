"""Whether speedup has one peak over measured step times (L20).

p_k = probability that draft k is accepted given that those before it were; tau_d = expected tokens of a
cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.lengths.blocks import Block, all_blocks, blocks, speedup_curve, working
from simspec.claims.plain import shown
from simspec.strategies.costs import VLLM_DRAFTED, VLLM_STEP_MS, Curve, is_convex, rising_costs, vllm_curve
from simspec.strategies.survivals import all_conditionals, conditionals, grid
from simspec.theory.lengths import envelope_corners, is_unimodal


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


def _over(
    lengths: Callable[[Curve], tuple[int, ...]] = envelope_corners, *, best: bool = False
) -> Callable[[Block], Outcome]:
    """Whether speedup has one peak over the lengths told; with ``best`` also whether one of them is best."""

    def rule(block: Block) -> Outcome:
        rates, tried = block.speedups(), lengths(block.cost)
        told = [rates[d - block.shortest] for d in tried if d >= block.shortest]
        if is_unimodal(told) and (not best or max(told) == max(rates)):
            return None
        return against(*working(block), f"lengths looked at: {shown(tried)}")

    return rule


OVER_MEASURED = (
    "vLLM's published table of step times (0, 1, 3, 4, 5 and 7 drafts, batch 1, 16, 32) with all chances in "
    "sixths; random chances"
)
L20_STATEMENT = Statement(
    "Expected speedup has one peak over the lengths of a published table of measured step times",
    _unimodal_where_timed,
    formula="T from the table of vLLM's dynamic speculation manager  =>  unimodal",
    over=OVER_MEASURED,
    domain=_random_measured,
    every=_measured,
)
L20_REPAIRED = L20_STATEMENT.but(
    "Over the lengths at the corners of the cost's lower convex envelope it has one peak, for any cost that "
    "never falls (though none of them need be a best length)",
    _over(),
    formula="d_1 < d_2 < .. corners of the greatest convex curve below T  =>  eta unimodal over them",
    over=OVER_MEASURED + "; random blocks of up to 7 places with costs of every kind",
    domain=st.one_of(_random_measured, blocks(rising_costs)),
    examples=150,
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
        "steps still cannot rise. A length between two corners may yet be the best of all, where survival "
        "drops within the step: p = (1, 0), T = (2, 2.6, 3), no bonus has corners 0 and 2 and 1/2.6 at 1 "
        "against 1/3 at 2. The corner after it has at least as many tokens, so at least T(d)/T(corner) of "
        "its speedup: scanning corners alone loses no more than that."
    ),
    pinned=Block((Fraction(1, 6), Fraction(5, 6), Fraction(5, 6)), vllm_curve(32, 3), 1),
    repaired=L20_REPAIRED,
    broken=(
        L20_REPAIRED.but(
            "... and one of them is a best length",
            _over(best=True),
            domain=None,
            every=lambda level: (b for b in all_blocks(max(1, level)) if not is_convex(b.cost)),
        ),
        L20_REPAIRED.but(
            "It has one peak over all lengths, for any cost that never falls",
            _over(lambda cost: tuple(range(len(cost)))),
            domain=blocks(rising_costs),
            every=all_blocks,
        ),
    ),
    plot=speedup_curve,
)

CLAIMS = (L20,)
