"""LibraSpec's position-wise theorem with both repairs (L5, L22).

p_k = probability that draft k is accepted given that those before it were; S_j = p_1 .. p_j; tau_d =
expected tokens of a cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d).
Past the last place nothing is accepted, and the cost goes on as it did. Conditions are those of places i
from 1 on, and of i = 0 where plain decoding has a speedup: with the bonus, and T(0) > 0.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.lengths.blocks import (
    OVER_CONVEX,
    OVER_LINES,
    Block,
    Endless,
    all_convex,
    all_lines,
    blocks,
    drafts,
    four_stairs,
    has_values,
    lines,
    working,
)
from simspec.claims.lengths.conditions import (
    REPAIRED,
    REPAIRED_TIES,
    Condition,
    last_left_out,
    later_sum,
    looked_for,
    printed_sum,
    sum_of_survivals,
)
from simspec.claims.plain import number, shown
from simspec.strategies.costs import convex_costs
from simspec.theory.lengths import marginal_gain


def _first(block: Block) -> int:
    """The first i whose condition has a meaning."""
    return 0 if block.bonus and block.cost[0] > 0 else 1


def _all_to(first: int, d: int) -> range:
    return range(first, d + 1)


# L5: the theorem with both repairs


def _decides(
    extend: Condition = REPAIRED,
    cut: Condition = REPAIRED_TIES,
    *,
    extend_by: Callable[[int, int], range] = _all_to,
    cut_by: Callable[[int, int], range] = _all_to,
    back: int = 0,
) -> Callable[[Block], Outcome]:
    """Whether min eps_i tells every extension and every cut that raises expected speedup, from every d.

    Args:
        extend, cut: the conditions; cutting may go to a length that is as fast as i.
        extend_by, cut_by: the i that the least is taken over, given the first there is, and d.
        back: cut so many places further back than to min eps_i.
    """

    def rule(block: Block) -> Outcome:
        if not has_values(block):
            return UNMET
        of, first = Endless(block), _first(block)
        strict = {i: extend.eps(of, i) for i in range(first, of.size + 1)}
        loose = {i: cut.eps(of, i) for i in range(first, of.size + 1)}
        for d in range(first, of.size + 1):
            far, at = min((strict[i], i) for i in extend_by(first, d))
            for longer in sorted({*range(d + 1, of.size + 3), *range(max(far, d + 1), far + 2)}):
                raises = of.speedup(longer) > of.speedup(d)
                if raises != (longer <= far):
                    return against(
                        *working(block),
                        *extend.worked(of, at),
                        f"at length {d} the least bound is {far}, of condition {at}; speedup of "
                        f"{drafts(longer)}: {number(of.speedup(longer))}, "
                        f"of {drafts(d)}: {number(of.speedup(d))}",
                    )
            shorter = range(block.shortest, d)
            some_raises = any(of.speedup(e) > of.speedup(d) for e in shorter)
            near, at = min((loose[i], i) for i in cut_by(first, d))
            to = max(near - back, block.shortest)
            if (some_raises and near >= d) or (near < d and not of.speedup(to) > of.speedup(d)):
                told = "; ".join(f"{e}: {number(of.speedup(e))}" for e in (*shorter, d))
                return against(
                    *working(block),
                    *cut.worked(of, at),
                    f"at length {d} the least bound is {near}, that of condition {at}: "
                    + (f"cut to {to}" if near < d else "no cut raises the speedup"),
                    f"speedups by length: {told}",
                )
        return None

    return rule


L5_STATEMENT = Statement(
    words=(
        "With products from place 1 and sums from i + 1 the position-wise theorem is right for any convex "
        "cost: a longer block raises expected speedup exactly if it is within eps_i for every i up to d; a "
        "cut raises it only if the least eps_i is below d, and then the cut to that does (i from 0 with the "
        "bonus and T(0) > 0, else from 1)"
    ),
    rule=_decides(),
    over=f"{OVER_LINES}. And with convex costs: {OVER_CONVEX}. Lengths to D + 2, and min eps_i and the next",
    domain=st.one_of(lines(), blocks(convex_costs)),
    every=lambda level: (b for of in (all_lines(max(0, level - 1)), all_convex(level)) for b in of),
    examples=80,
    formula=(
        "eps_i = max{d' >= i : T(d') - T(i) <= T_i/tau_i sum_{j=i+1..d'} S_j}; extending: eps'_i = i or, "
        "where there is one, the greatest d' > i with < for <=.  d' > d: eta_d' > eta_d <=> d' <= "
        "min_{i<=d} eps'_i;  max_{d'<d} eta_d' > eta_d => e = min_{i<=d} eps_i < d;  e < d => eta_e > "
        "eta_d   (T convex, tau_1 > 0)"
    ),
)
L5 = Claim(
    id="L5",
    source="LibraSpec (2608.08721) Thm 3.3 and 3.4, both repaired",
    statement=L5_STATEMENT,
    expected="holds",
    because=(
        "By L1 'd' within eps_i' says eta_d' > eta_i (cutting: >=; by one peak the lengths from i on that "
        "are faster than i, or as fast, have no gap). Sufficient: take i = d. Necessary: if eta_d' > eta_d "
        "with d' > d, no i < d has eta_i > eta_d, or speedup would fall and then rise, against L2c; so "
        "eta_d' > eta_i for all of them, i = 0 included. Cutting: the least eps_i is below d exactly if "
        "some eta_i > eta_d, i < d. If it is e, attained at i, then eta_{e+1} < eta_i <= eta_e: a strict "
        "fall at or before e + 1 <= d, which goes on, so eta_e > eta_d. Length 0 without the bonus is worth "
        "nothing, so no cut to it raises anything and no condition is needed; with T(0) = 0 it has no "
        "speedup. Without i = 0 cuts back to plain decoding are missed: p = (1/6, 11/12), T = 3 + d, bonus "
        "has 1/3, 7/24, 19/72."
    ),
    first_look=(
        "'The condition at i = d alone decides' is right for extending only; for cutting it says nothing "
        "(eps_d >= d always), and i = d - 1 is needed (L22)."
    ),
    broken=(
        L5_STATEMENT.but(
            "The same with the printed products and start when extending",
            _decides(extend=looked_for(printed_sum, least=-1)),
        ),
        L5_STATEMENT.but(
            "The same with products from place 1 but sums from i when cutting",
            _decides(cut=looked_for(sum_of_survivals, least=-1, ties=True)),
        ),
        L5_STATEMENT.but(
            "The same with sums from i + 1 but products from there on when cutting",
            _decides(cut=looked_for(later_sum, least=0, ties=True)),
        ),
        L5_STATEMENT.but("The same with <= when extending", _decides(extend=REPAIRED_TIES)),
        L5_STATEMENT.but(
            "The same with sums that leave the last draft out when extending",
            _decides(extend=looked_for(last_left_out, least=0)),
        ),
        L5_STATEMENT.but("The same with < when cutting", _decides(cut=REPAIRED)),
        L5_STATEMENT.but("The same with cuts to one place before the least eps_i", _decides(back=1)),
        L5_STATEMENT.but(
            "The same with the first condition alone when extending",
            _decides(extend_by=lambda first, d: range(first, first + 1)),
        ),
        L5_STATEMENT.but(
            "The same with the last condition alone, i = d, when cutting",
            _decides(cut_by=lambda first, d: range(d, d + 1)),
        ),
        L5_STATEMENT.but(
            "The same with i from 1, plain decoding being a length like the others",
            _decides(cut_by=lambda first, d: range(min(1, d), d + 1)),
        ),
        L5_STATEMENT.but(
            "The same with a staircase cost",
            _decides(looked_for(marginal_gain, least=0), looked_for(marginal_gain, least=0, ties=True)),
            domain=None,
            every=four_stairs,
        ),
    ),
)

# L22: which of the conditions say something


def _one_decides(
    extend: Condition = REPAIRED,
    cut: Condition = REPAIRED_TIES,
    *,
    extend_from: Callable[[int, int], int] = lambda first, d: d,
    cut_from: Callable[[int, int], int] = lambda first, d: d - 1,
) -> Callable[[Block], Outcome]:
    """Whether one condition implies the others when extending, and tells whether some cut raises speedup.

    Args:
        extend_from, cut_from: which condition, given the first there is, and d.
    """

    def rule(block: Block) -> Outcome:
        if not has_values(block):
            return UNMET
        of, first = Endless(block), _first(block)
        strict = {i: extend.eps(of, i) for i in range(first, of.size + 1)}
        loose = {i: cut.eps(of, i) for i in range(first, of.size + 1)}
        for d in range(first, of.size + 1):
            one, before = extend_from(first, d), tuple(strict[i] for i in range(first, d + 1))
            if strict[one] > d and min(before) < strict[one]:
                return against(
                    *working(block),
                    *extend.worked(of, one),
                    f"at length {d} condition {one} allows {strict[one]}; conditions {first} to {d}: "
                    f"{shown(before)}",
                )
            if d == first:
                continue  # no shorter length has a condition
            one = cut_from(first, d)
            raises = any(of.speedup(e) > of.speedup(d) for e in range(first, d))
            one_less = of.speedup(d - 1) > of.speedup(d)
            if raises != (loose[one] < d) or raises != one_less:
                told = "; ".join(f"{e}: {number(of.speedup(e))}" for e in range(first, d + 1))
                return against(
                    *working(block),
                    *cut.worked(of, one),
                    f"at length {d} condition {one} says {loose[one]}: "
                    f"{'a' if loose[one] < d else 'no'} cut raises the speedup",
                    f"speedups by length: {told}",
                )
        return None

    return rule


L22_STATEMENT = L5_STATEMENT.but(
    "With any convex cost one of the repaired conditions decides: where that of i = d allows a longer block, "
    "those of all i < d do; and some cut raises expected speedup exactly if the condition of i = d - 1 fails "
    "at d, that is, if cutting one draft does (i from 0 with the bonus and T(0) > 0, else from 1)",
    _one_decides(),
    formula=(
        "d < d' <= eps'_d  =>  d' <= eps'_i for all i < d;   max_{d'<d} eta_d' > eta_d <=> eps_{d-1} < d <=> "
        "eta_{d-1} > eta_d   (eps, eps' of L5; T convex, tau_1 > 0)"
    ),
    over=OVER_CONVEX,
    domain=blocks(convex_costs),
    every=all_convex,
)
L22 = Claim(
    id="L22",
    source="LibraSpec (2608.08721) Thm 3.3: which of its d conditions say something",
    statement=L22_STATEMENT,
    expected="holds",
    because=(
        "With one peak (any convex cost, L2c) eta_d' > eta_d for some d' > d makes eta_i <= eta_d for all i "
        "< d: the conditions at smaller i are weaker. And if some shorter block is better, speedup has "
        "fallen strictly before d, and so it does from d - 1 to d, which is what condition d - 1 says. The "
        "position-wise form adds nothing to Thm 3.2."
    ),
    first_look=(
        "'The condition at i = d alone decides' is right for extending; for cutting it never fails, and the "
        "one that decides is i = d - 1."
    ),
    broken=(
        L22_STATEMENT.but(
            "The first condition decides extending", _one_decides(extend_from=lambda first, d: first)
        ),
        L22_STATEMENT.but(
            "The condition of i = d decides cutting, too", _one_decides(cut_from=lambda first, d: d)
        ),
        L22_STATEMENT.but("The same with < when cutting", _one_decides(cut=REPAIRED)),
        L22_STATEMENT.but(
            "The first condition decides cutting",
            _one_decides(cut_from=lambda first, d: first),
            domain=lines(),
            every=all_lines,
        ),
        L22_STATEMENT.but(
            "The same with a staircase cost",
            _one_decides(looked_for(marginal_gain, least=0), looked_for(marginal_gain, least=0, ties=True)),
            domain=None,
            every=four_stairs,
        ),
    ),
)

CLAIMS = (L5, L22)
