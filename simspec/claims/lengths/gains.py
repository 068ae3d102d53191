"""LibraSpec's expected gain of going from one block length to another (L3, L3-offset, L3-printed).

p_k = probability that draft k is accepted given that those before it were; S_j = p_1 .. p_j; tau_d =
expected tokens of a cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import prod

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.lengths.blocks import OVER_ORIGIN, listed
from simspec.claims.lengths.conditions import Gain, last_left_out, later_sum, printed_sum, sum_of_survivals
from simspec.claims.plain import number, shown
from simspec.strategies.survivals import Conditional, all_conditionals, conditionals, grid, tokens_by_outcome
from simspec.theory.lengths import marginal_gain

# L3


def _gain_of(told: Gain) -> Callable[[Conditional], Outcome]:
    """Whether ``told(p, i, d')`` is what a cycle emits more when the block is cut at d' instead of at i."""

    def rule(p: Conditional) -> Outcome:
        tokens = tokens_by_outcome(p, 0)
        for i in range(1, len(p) + 1):
            for longer in range(i, len(p) + 1):
                true, said = tokens[longer] - tokens[i], told(p, i, longer)
                if said != true:
                    return against(
                        f"draft k is accepted, given all before it were, with probability {shown(p)}",
                        f"expected accepted drafts with 0, 1, .. submitted: {listed(tokens)}",
                        f"so going from {i} to {longer} gains {number(true)}; the formula: {number(said)}",
                    )
        return None

    return rule


def _from_place(told: Gain) -> Callable[[Conditional], Outcome]:
    """Whether ``told(p, i, d')`` is what places i .. d' are expected to have accepted."""

    def rule(p: Conditional) -> Outcome:
        tokens = tokens_by_outcome(p, 0)
        for i in range(1, len(p) + 1):
            for longer in range(i, len(p) + 1):
                true, said = tokens[longer] - tokens[i - 1], told(p, i, longer)
                if said != true:
                    return against(
                        f"draft k is accepted, given all before it were, with probability {shown(p)}",
                        f"expected accepted drafts with 0, 1, .. submitted: {listed(tokens)}",
                        f"so places {i} to {longer} add {number(true)}; the formula: {number(said)}",
                    )
        return None

    return rule


def _reached(p: Conditional, places: int, gain: Fraction) -> Fraction:
    """A gain given that the first so many are accepted, times the chance that they are."""
    return prod(p[:places], start=Fraction(1)) * gain


L3_STATEMENT = Statement(
    words=(
        "The sum of products that start at place i, as in Thm 3.3, is what places i to d' are expected to "
        "add to the cycle"
    ),
    formula="sum_{j=i..d'} p_i .. p_j = E[min(A, d')] - E[min(A, i - 1)], A = accepted drafts",
    rule=_from_place(printed_sum),
    over=OVER_ORIGIN,
    domain=conditionals(longest=8),
    every=lambda level: all_conditionals((3, 4, 5)[level], grid(4)),
    examples=150,
)
L3 = Claim(
    id="L3",
    source="LibraSpec (2608.08721) Thm 3.3 against Thm 3.2: the products",
    statement=L3_STATEMENT,
    expected="refuted",
    because=(
        "The sum is conditional on place i being reached, which has probability S_{i-1} = p_1 .. p_{i-1}: it "
        "overstates by 1/S_{i-1}. Thm 3.2 compares unconditional numbers."
    ),
    pinned=(Fraction(1, 2), Fraction(1)),
    repaired=L3_STATEMENT.but(
        "The products that start at place 1 are: the printed sum times the chance that place i is reached",
        _from_place(lambda p, i, longer: _reached(p, i - 1, printed_sum(p, i, longer))),
        formula=(
            "sum_{j=i..d'} p_1 .. p_j = S_{i-1} sum_{j=i..d'} p_i .. p_j = E[min(A, d')] - E[min(A, i - 1)]"
        ),
    ),
    broken=(
        L3_STATEMENT.but(
            "The printed sum times the chance that place i is accepted is",
            _from_place(lambda p, i, longer: _reached(p, i, printed_sum(p, i, longer))),
        ),
        L3_STATEMENT.but(
            "The sum of products from place 1 that starts after place i is", _from_place(marginal_gain)
        ),
    ),
)
L3_OFFSET_STATEMENT = L3_STATEMENT.but(
    "Going from i to d' drafts gains the survivals summed from place i on, as in Thm 3.3",
    _gain_of(sum_of_survivals),
    formula="tau_{d'} - tau_i = sum_{j=i..d'} S_j",
)
L3_OFFSET_REPAIRED = L3_OFFSET_STATEMENT.but(
    "It gains the survivals summed from place i + 1 on",
    _gain_of(marginal_gain),
    formula="tau_{d'} - tau_i = sum_{j=i+1..d'} S_j",
)
L3_OFFSET = Claim(
    id="L3-offset",
    source="LibraSpec (2608.08721) Thm 3.3 against Thm 3.2: where the sum starts",
    statement=L3_OFFSET_STATEMENT,
    expected="refuted",
    because=(
        "Place i is among the first i, so tau_i counts it already; the cost c (d' - i) set against it is "
        "that of d' - i places, while i .. d' are d' - i + 1. For i = d the printed gain is p_d (1 + "
        "p_{d+1} + ..) where Thm 3.2 needs S_d p_{d+1} (1 + ..)."
    ),
    pinned=(Fraction(1),),
    repaired=L3_OFFSET_REPAIRED,
    broken=(
        L3_OFFSET_REPAIRED.but("It gains the printed products, summed from i + 1", _gain_of(later_sum)),
        L3_OFFSET_REPAIRED.but(
            "It gains the survivals summed from i + 1 on, but for the last", _gain_of(last_left_out)
        ),
    ),
)

L3_PRINTED_STATEMENT = L3_STATEMENT.but(
    "Thm 3.3's gain as printed, products and sum both from place i, is what going from i to d' drafts gains, "
    "which Thm 3.2 needs",
    _gain_of(printed_sum),
    formula="tau_{d'} - tau_i = sum_{j=i..d'} p_i .. p_j",
)
L3_PRINTED_REPAIRED = L3_PRINTED_STATEMENT.but(
    "With both repaired it is: the printed products times the chance S_i that the first i are accepted, "
    "summed from i + 1 on",
    _gain_of(lambda p, i, longer: _reached(p, i, later_sum(p, i, longer))),
    formula="tau_{d'} - tau_i = S_i sum_{j=i+1..d'} p_{i+1} .. p_j",
)
L3_PRINTED = Claim(
    id="L3-printed",
    source="LibraSpec (2608.08721) Thm 3.3 against Thm 3.2: the sum as it stands",
    statement=L3_PRINTED_STATEMENT,
    expected="refuted",
    because=(
        "Both mistakes at once (L3, L3-offset): the sum is conditional on place i being reached, and counts "
        "place i, which is among the first i. With S_j = S_i p_{i+1} .. p_j for j > i, tau_{d'} - tau_i = "
        "S_{i+1} + .. + S_{d'} is the repaired sum. For sure drafts the products alone would be right, for i "
        "= 1 the start alone is wrong."
    ),
    pinned=(Fraction(1),),
    repaired=L3_PRINTED_REPAIRED,
    broken=(
        L3_PRINTED_REPAIRED.but("Repairing the products alone will do", _gain_of(sum_of_survivals)),
        L3_PRINTED_REPAIRED.but("Repairing the start alone will do", _gain_of(later_sum)),
    ),
)

CLAIMS = (L3, L3_OFFSET, L3_PRINTED)
