"""LibraSpec's adjustments from one block length to another (L4, L4b, L21, L27).

p_k = probability that draft k is accepted given that those before it were; S_j = p_1 .. p_j; tau_d =
expected tokens of a cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d). Past the
last place nothing is accepted, and the cost goes on as it did.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from simspec.claims.base import Claim, Statement
from simspec.claims.lengths.blocks import (
    OVER_CONVEX,
    OVER_LINES,
    Block,
    Endless,
    all_convex,
    all_lines,
    blocks,
    four_stairs,
    lines,
    speedup_curve,
)
from simspec.claims.lengths.conditions import (
    PRINTED,
    later_sum,
    looked_for,
    printed_sum,
    sum_of_survivals,
)
from simspec.claims.lengths.moves import (
    adjusted,
    is_best_cut,
    least,
    lowers,
    lowers_if,
    never_raises,
    next_survives,
    raises,
)
from simspec.strategies.costs import affine, convex_costs

# L4

L4_STATEMENT = Statement(
    words=(
        "With a cost of T0 + c d, extending a block from d to d' = min eps_i (i = 1 .. d) raises expected "
        "speedup"
    ),
    formula=(
        "eps_i = max{d' : d' < T_i/(tau_i c) sum_{j=i..d'} p_i .. p_j + i};  d' = min_{i<=d} eps_i > d  =>  "
        "eta_d' > eta_d   (T = T0 + c d, T0 >= 0, c > 0, tau_1 > 0)"
    ),
    rule=adjusted(raises, longer=True, targets=least),
    over=OVER_LINES,
    domain=lines(),
    every=all_lines,
    examples=80,
)
L4_REPAIRED = L4_STATEMENT.but(
    "Extending to any eps_i above d (i <= d), so to the least, never raises expected speedup, and lowers it "
    "if draft eps_i + 1 could survive",
    adjusted(lowers_if(next_survives), longer=True),
    formula="i <= d < eps_i = e  =>  eta_e <= eta_d, and < if S_{e+1} > 0   (T = T0 + c d, tau_1 > 0)",
)
L4 = Claim(
    id="L4",
    source="LibraSpec (2608.08721) Thm 3.4, extending",
    statement=L4_STATEMENT,
    expected="refuted",
    because=(
        "No extension to any eps_i ever raises it, for any p with tau_1 > 0, any affine cost with T0 >= 0, c "
        "> 0, with the bonus or without. Proof. Let e = eps_i > d >= i. (1) e + 1 is not allowed at i, so c "
        "(e + 1 - i) >= (1/eta_i) sum_{j=i..e+1} p_i .. p_j >= (1/eta_i) (S_i + .. + S_{e+1}), since a "
        "product that starts at i is S_j / S_{i-1} >= S_j, or S_j = 0. As S_{i+1} + .. + S_e = tau_e - "
        "tau_i this says tau_e - tau_i <= eta_i c (e - i) + (c eta_i - S_i - S_{e+1}). (2) If speedup does "
        "not fall into i (eta_i >= eta_{i-1}), the last place pays: S_i >= c eta_i. Then tau_e - tau_i <= "
        "eta_i c (e - i), which by L1 is eta_e <= eta_i; with one peak (L2) and i <= d < e, eta_e <= eta_d. "
        "(3) If it falls into i, one peak says that it goes on falling: eta_e < eta_d. For i = 1 read eta_0 "
        "= tau_0/T0 (with T0 = 0: without the bonus S_1 = c eta_1, case 2; with it S_1 < c eta_1, case 3). "
        "Equality needs, in (2), S_i = c eta_i and S_{e+1} = 0: if a draft can still survive at e + 1, "
        "every extension strictly lowers. What makes the theorem fail is its sum's first term: place i, "
        "already paid for, is counted again as if it were new. Smaller than the pinned case, if going past "
        "the places given counts: p = (1/3), T = 1 + d, no bonus, from 1 draft to 2: 1/6 to 1/9."
    ),
    first_look=(
        "'Every extension lowers' has exceptions, ties: p = (1/4, 1), T0 = 0 goes from 1 to 2 at the same "
        "speedup. The larger example's '2 -> 12' cuts eps at the twelve places given; uncut, with nothing "
        "accepted beyond them, it is 2 -> 16, .194 -> .163. The condition is the affine cost: with a convex "
        "one an extension may pay (L21), and so may one that is cut at the last place."
    ),
    pinned=Block((Fraction(1, 4), Fraction(1, 4)), affine(Fraction(0), Fraction(1), 2), 0),
    repaired=L4_REPAIRED,
    broken=(
        L4_REPAIRED.but("Extending to any eps_i above d lowers it", adjusted(lowers, longer=True)),
        L4_REPAIRED.but(
            "Extending to any eps_i above d never raises it, and lowers it if draft eps_i itself could "
            "survive",
            adjusted(lowers_if(Endless.survives), longer=True),
        ),
        L4_REPAIRED.but(
            "Extending to any eps_i above d, cut at the last place, never raises it",
            adjusted(never_raises, longer=True, within=True),
        ),
        L4_REPAIRED.but(
            "The same with the sum of i = 1 started one place later (d > 1)",
            adjusted(
                lowers_if(next_survives),
                longer=True,
                other=looked_for(later_sum, least=0),
                other_at="first",
            ),
        ),
        L4_REPAIRED.but(
            "The same with the sum of i = d started one place later (d > 1)",
            adjusted(
                lowers_if(next_survives), longer=True, other=looked_for(later_sum, least=0), other_at="last"
            ),
        ),
    ),
    plot=speedup_curve,
)

# L4b


def _first_draft_free(block: Block) -> Block:
    """The same block, length 0 taking as long as length 1."""
    return Block(block.p, (block.cost[1], *block.cost[1:]), block.bonus)


FURTHER_BACK = replace(PRINTED, shift=-1, least=1)
L4B_STATEMENT = L4_STATEMENT.but(
    "With a cost of T0 + c d, cutting a block from d back to any eps_i below d (i <= d), so to the least, "
    "raises expected speedup (back to no draft at all where T0 > 0)",
    adjusted(raises, longer=False),
    formula="i <= d, eps_i = e < d, T(e) > 0  =>  eta_e > eta_d   (T = T0 + c d, tau_1 > 0)",
)
L4B = Claim(
    id="L4b",
    source="LibraSpec (2608.08721) Thm 3.4, truncating",
    statement=L4B_STATEMENT,
    expected="holds",
    because=(
        "Let e = eps_i < d, i <= d. If p_i > 0 then e >= i (d' = i is always allowed). If S_i > 0, (1) of L4 "
        "gives tau_{e+1} - tau_i <= eta_i c (e + 1 - i) - S_i, so eta_{e+1} < eta_i: speedup falls strictly "
        "somewhere between i and e + 1 <= d, and by one peak ever after, so eta_e > eta_d. If S_i = 0 < p_i, "
        "or if p_i = 0 and so e = i - 1, nothing after e is accepted, and d costs more. So it needs only "
        "tau_1 > 0, not p_i > 0, and the least is not needed either. It is right for a weak reason: its cut "
        "comes too late (the conditions overstate every gain)."
    ),
    first_look="p_i > 0 is not needed.",
    broken=(
        L4B_STATEMENT.but(
            "... and no other cut is better",
            adjusted(is_best_cut, longer=False),
        ),
        L4B_STATEMENT.but(
            "The same one place further back for i = 1 (d > 1)",
            adjusted(raises, longer=False, other=FURTHER_BACK, other_at="first"),
        ),
        L4B_STATEMENT.but(
            "The same one place further back for i = d (d > 1)",
            adjusted(raises, longer=False, other=FURTHER_BACK, other_at="last"),
        ),
        L4B_STATEMENT.but(
            "The same where length 0 takes as long as length 1",
            adjusted(raises, longer=False),
            domain=None,
            every=lambda level: map(_first_draft_free, all_lines(level)),
        ),
    ),
)

# L21: convex costs


PAST = replace(PRINTED, shift=1)
L21_STATEMENT = L4_STATEMENT.but(
    "Extending to d' = min eps_i, with differences of the true cost in place of c (d' - i), never raises "
    "expected speedup for any convex cost",
    adjusted(never_raises, longer=True, targets=least),
    formula=(
        "eps_i = the larger of i - 1 and max{d' >= i : T(d') - T(i) < T_i/tau_i sum_{j=i..d'} p_i .. p_j};  "
        "d' = min_{i<=d} eps_i > d  =>  eta_d' <= eta_d   (T convex, tau_1 > 0)"
    ),
    over=OVER_CONVEX,
    domain=blocks(convex_costs),
    every=all_convex,
)
L21_REPAIRED = L21_STATEMENT.but(
    "Extending one place past any eps_i that is d or more (i <= d) always lowers it",
    adjusted(lowers, longer=True, condition=PAST),
    formula="i <= d <= eps_i = e  =>  eta_{e+1} < eta_d   (T convex, tau_1 > 0)",
)
L21 = Claim(
    id="L21",
    source="L4 with a convex cost",
    statement=L21_STATEMENT,
    expected="refuted",
    because=(
        "Step (2) of L4's proof sets what place i brings against the cost of place e + 1, which a convex "
        "cost lets grow. What is left of it: with e = eps_i >= d >= i, p_i > 0 (else e = i - 1), and T(e+1) "
        "- T(i) >= (1/eta_i) (p_i + .. ) > 0, so the step to e + 1 is above 0. If S_i > 0, (1) of L4 gives "
        "tau_{e+1} - tau_i <= eta_i (T(e+1) - T(i)) - S_i, so eta_{e+1} < eta_i; if eta_d >= eta_i, "
        "eta_{e+1} < eta_d, and else speedup has fallen between i and d and, with one peak (L2c), a fall "
        "that is strict goes on strictly. If S_i = 0, tau_{e+1} = tau_d and e + 1 costs more. So one place "
        "past any eps_i is always too far."
    ),
    pinned=Block(tuple(map(Fraction, (1, 1, 0))), tuple(map(Fraction, (1, 1, 1, 2))), 1),
    repaired=L21_REPAIRED,
    broken=(
        L21_REPAIRED.but(
            "Extending to any eps_i above d lowers it, with an affine cost",
            adjusted(lowers, longer=True),
            over=OVER_LINES,
            domain=lines(),
            every=all_lines,
        ),
        L21_REPAIRED.but(
            "The same without the one place more for i = 1 (d > 1)",
            adjusted(lowers, longer=True, condition=PAST, other=PRINTED, other_at="first"),
            every=lambda level: all_convex(max(1, level)),
        ),
        L21_REPAIRED.but(
            "The same without the one place more for i = d (d > 1)",
            adjusted(lowers, longer=True, condition=PAST, other=PRINTED, other_at="last"),
            every=lambda level: all_convex(max(1, level)),
        ),
        L21_REPAIRED.but(
            "The same with a staircase cost",
            adjusted(lowers, longer=True, condition=replace(looked_for(printed_sum, least=-1), shift=1)),
            domain=None,
            every=four_stairs,
        ),
    ),
    plot=speedup_curve,
)

# L27: which of the two mistakes does the harm

LATER = looked_for(later_sum, least=0)
FROM_ONE = looked_for(sum_of_survivals, least=-1)
L27_STATEMENT = L4_STATEMENT.but(
    "With a cost of T0 + c d, products from place 1, but the sum still from i, extending to any eps_i above "
    "d (i <= d) never raises expected speedup: the term counted twice does the harm",
    adjusted(never_raises, longer=True, condition=FROM_ONE),
    formula=(
        "eps_i = max{d' : d' < T_i/(tau_i c) sum_{j=i..d'} S_j + i};  i <= d < eps_i = e  =>  eta_e <= eta_d"
    ),
)
L27 = Claim(
    id="L27",
    source="LibraSpec (2608.08721) Thm 3.4 with one of the two repairs",
    statement=L27_STATEMENT,
    expected="holds",
    because=(
        "The proof of L4 uses of the products only that they are at least S_j, so it holds word for word. "
        "The other half repaired alone (the sum from i + 1, products from there on) is too long by "
        "overstated gains only: among small blocks about one such extension in six does raise speedup."
    ),
    broken=(
        L27_STATEMENT.but(
            "With the sum from i + 1, but products from there on, it never does either",
            adjusted(never_raises, longer=True, condition=LATER),
        ),
        L27_STATEMENT.but(
            "The same with the sum of i = 1 started one place later (d > 1)",
            adjusted(never_raises, longer=True, condition=FROM_ONE, other=LATER, other_at="first"),
        ),
        L27_STATEMENT.but(
            "The same with the sum of i = d started one place later (d > 1)",
            adjusted(never_raises, longer=True, condition=FROM_ONE, other=LATER, other_at="last"),
        ),
    ),
)

CLAIMS = (L4, L4B, L21, L27)
