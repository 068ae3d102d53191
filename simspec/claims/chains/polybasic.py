"""Polybasic's criterion for inserting a model, and its time per token (S12, S12b, S12c, S42)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

from simspec.claims.base import UNMET, Claim, Outcome, Plot, Statement, against
from simspec.claims.chains.inserted import (
    OWN,
    TEXT,
    Found,
    Inserted,
    both,
    first,
    insertion,
    insertions,
    random_insertions,
    savings_told,
    second,
    sides,
    worked,
)
from simspec.claims.chains.walked import HALF, ONE, right_by_round
from simspec.claims.plain import number
from simspec.theory import chains
from simspec.theory.third_level import PlaceLaw

SOURCE_POLYBASIC = "Polybasic (2510.26527)"
ZERO = Fraction(0)

Inequality = Callable[[Found], bool]


def _second_unreduced(found: Found) -> bool:
    """The second without the 1 that is taken off: what the drafter would have to do anyway is counted."""
    return found.new / found.below < found.drafts_a_pass * found.new_after / found.before


def _drafter_no_more(found: Found) -> bool:
    """The drafter runs no more often for each token of the text."""
    return found.new_after >= found.before


def _target_no_more(found: Found) -> bool:
    """The target runs no more often for each token of the text."""
    return found.above_after >= found.before


def _suffices(
    case: Inserted,
    inequality: Inequality,
    own_yields: tuple[bool, ...],
    premise: Inequality | None = None,
) -> Outcome:
    """Whether the inequality makes decoding faster.

    Args:
        own_yields: the readings of L_new under all of which it must hold.
        premise: what must be true besides, under the first of these readings.
    """
    found = [insertion(case, own) for own in own_yields]
    if not all(map(inequality, found)) or (premise is not None and not premise(found[0])):
        return UNMET
    before, after = both(case)
    if after.faster_than(before):
        return None
    return against(*worked(case), *(sides(case, own) for own in own_yields), savings_told(case))


def _necessary(case: Inserted) -> Outcome:
    before, after = both(case)
    if not after.faster_than(before):
        return UNMET
    found = [insertion(case, own) for own in (False, True)]
    if any(first(one) or second(one) for one in found):
        return None
    return against(*worked(case), *(sides(case, own) for own in (False, True)), savings_told(case))


def _sum_decides(
    case: Inserted, own_yield: bool = False, margin: Fraction = ONE, drafter_too: bool = True
) -> Outcome:
    """Args:
    own_yield: the other reading of L_new.
    margin: M_new's time counts so many times.
    drafter_too: whether what the drafter is spared counts.
    """
    before, after = both(case)
    found = insertion(case, own_yield)
    saved = found.saved_above + (found.saved_below if drafter_too else 0)
    if after.faster_than(before) == (margin * found.spent < saved):
        return None
    return against(*worked(case), sides(case, own_yield), savings_told(case))


def _savings(case: Inserted) -> Plot:
    found = insertion(case)
    both = found.saved_above + found.saved_below
    return Plot(
        "Seconds per token that the insertion spares and spends",
        "bars",
        "",
        "seconds per token",
        ("target spared", "drafter spared", "both together", "new model spent"),
        {"seconds": tuple(map(float, (found.saved_above, found.saved_below, both, found.spent)))},
    )


S12_STATEMENT = Statement(
    words=(
        "If the theorem's first inequality holds, and that under both readings of L_new, inserting M_new "
        "makes decoding faster"
    ),
    formula="T_new/T_i < L_new (1/L_i - 1/L_(i-new))  =>  faster",
    rule=partial(_suffices, inequality=first, own_yields=(False, True)),
    over=(
        "whole seconds up to 7, every way in which three models can agree at a place in halves, up to 2 "
        "rounds of 2 drafts; random ones up to 76 s, any way of agreeing, 2 rounds of 4. The target may run "
        "more often after the insertion (where M_new throws good tokens away) or less; L_new is read as "
        "tokens of the text for each forward of M_new, and as what a forward of M_new yields, accepted by "
        "the target or not"
    ),
    domain=random_insertions(),
    every=insertions,
    examples=200,
)
S12_REPAIRED = S12_STATEMENT.but(
    "If the first inequality holds with L_new in tokens of the text, and the drafter runs no more often per "
    "token of the text than before, inserting M_new makes decoding faster",
    partial(_suffices, inequality=first, own_yields=(False,), premise=_drafter_no_more),
    formula="L_new >= L_i and T_new/T_i < L_new (1/L_i - 1/L_(i-new))  =>  faster",
)
S12 = Claim(
    id="S12",
    source=f"{SOURCE_POLYBASIC} Thm 3.2, the 'if' of its first inequality",
    statement=S12_STATEMENT,
    expected="refuted",
    because=(
        "It says that what the target is spared pays for M_new, and forgets that the drafter may now run "
        "more often per token: each token of M_new that the target throws away was drafted for. The "
        "repaired statement: time per token falls by T_i (1/L_i - 1/L_(i-new)) + beta T_(i+1) (1/L_i - "
        "1/L_new) - T_new/L_new (S12b); the inequality makes the first outweigh the last, and L_new >= L_i "
        "makes the middle one no loss. Of the paper's three cases only the two sides are known: .318 < .330 "
        "and .403 < .462 leave open whether it helps, as the drafter's share is not in them; with .800 and "
        "-.116 the target runs more often, so L_new <= L_(i-new) < L_i, nothing is spared and it does not."
    ),
    pinned=Inserted(PlaceLaw(ZERO, ZERO, HALF, ZERO), 2, 2, Fraction(6), Fraction(2), ONE),
    repaired=S12_REPAIRED,
    broken=(
        S12_REPAIRED.but(
            "... with the target, not the drafter, running no more often",
            partial(_suffices, inequality=first, own_yields=(False,), premise=_target_no_more),
        ),
        S12_REPAIRED.but(
            "... with L_new as what a forward of M_new yields",
            partial(_suffices, inequality=first, own_yields=(True,), premise=_drafter_no_more),
        ),
    ),
    plot=_savings,
)
S12B_REPAIRED = S12_STATEMENT.but(
    "Inserting M_new makes decoding faster exactly when both savings together exceed its time per token",
    _sum_decides,
    formula="faster  <=>  T_new/L_new < T_i (1/L_i - 1/L_(i-new)) + beta T_(i+1) (1/L_i - 1/L_new)",
)
S12B = Claim(
    id="S12b",
    source=f"{SOURCE_POLYBASIC} Thm 3.2, the 'only if' (its limitations say 'sufficient' only)",
    statement=S12_STATEMENT.but(
        "Inserting M_new makes decoding faster only if one of the theorem's two inequalities holds, under "
        "one of the two readings of L_new",
        _necessary,
        formula="faster  =>  T_new/T_i < L_new (1/L_i - 1/L_(i-new)) or T_new/T_(i+1) < beta (L_new/L_i - 1)",
    ),
    expected="refuted",
    because=(
        "Each inequality sets one saving alone against the whole price. Two savings, neither of which pays "
        "for M_new, may do so together. The repaired statement: with L_new in tokens of the text, Eq. 3 is "
        "the time per token before and after (S42), and the difference is the two savings less T_new/L_new."
    ),
    pinned=Inserted(PlaceLaw(HALF, ZERO, HALF, ZERO), 1, 1, Fraction(3), Fraction(2), ONE),
    repaired=S12B_REPAIRED,
    broken=(
        S12B_REPAIRED.but(
            "... with L_new as what a forward of M_new yields, thrown away by the target or not",
            partial(_sum_decides, own_yield=True),
        ),
        S12B_REPAIRED.but(
            "... exceed it by a tenth: says too seldom that it is faster",
            partial(_sum_decides, margin=Fraction(11, 10)),
        ),
        S12B_REPAIRED.but(
            "... exceed nine tenths of it: says too often that it is faster",
            partial(_sum_decides, margin=Fraction(9, 10)),
        ),
        S12B_REPAIRED.but(
            "... when what the target is spared exceeds it", partial(_sum_decides, drafter_too=False)
        ),
    ),
    plot=_savings,
)
S12C_REPAIRED = S12_STATEMENT.but(
    "If the second inequality holds with L_new in tokens of the text, inserting M_new makes decoding faster",
    partial(_suffices, inequality=second, own_yields=(False,)),
    formula="T_new/T_(i+1) < beta (L_new/L_i - 1), L_new = L_(i-new) / rounds  =>  faster",
)
S12C = Claim(
    id="S12c",
    source=f"{SOURCE_POLYBASIC} Thm 3.2, the 'if' of its second inequality",
    statement=S12_STATEMENT.but(
        "If the theorem's second inequality holds, with L_new as what a forward of M_new yields, inserting "
        "M_new makes decoding faster",
        partial(_suffices, inequality=second, own_yields=(True,)),
        formula="T_new/T_(i+1) < beta (L_(new-(i+1))/L_i - 1)  =>  faster",
    ),
    expected="refuted",
    because=(
        "What M_new yields, the target may throw away, and then neither drafter nor target is spared "
        "anything. The repaired statement: the inequality says that T_new/L_new is less than what the "
        "drafter is spared. Then L_new > L_i, and as a cycle has at least one forward of M_new, L_(i-new) >= "
        "L_new > L_i, so the target is spared something, too."
    ),
    pinned=Inserted(PlaceLaw(ZERO, ONE, ZERO, ZERO), 1, 2, Fraction(3), Fraction(2), ONE),
    repaired=S12C_REPAIRED,
    broken=(
        S12C_REPAIRED.but(
            "... without the 1 that is taken off",
            partial(_suffices, inequality=_second_unreduced, own_yields=(False,)),
        ),
    ),
    plot=_savings,
)


def _eq_3(case: Inserted, own_yield: bool = True, bonus: int = 0, drafts: int = 0) -> Outcome:
    """Args:
    own_yield: L_2 as what a forward of M_2 yields.
    bonus: tokens that L_1 counts too many.
    drafts: by which beta is too great.
    """
    _, after = both(case)
    found = insertion(case, own_yield)
    lengths = (found.above_after + bonus, found.new_after)
    times = (case.target, case.new, case.drafter)
    said = chains.polybasic(lengths, times, found.drafts_a_pass + drafts)
    true = after.seconds / after.tokens
    if said == true:
        return None
    law = case.law
    steps = " + ".join(str(law.lower**j) for j in range(case.drafts + 1))
    if not own_yield:
        steps = f"{after.tokens} / {case.rounds}"
    return against(
        f"seconds of a forward: T_1 = {case.target} of the target, T_2 = {case.new} of M_2, T_3 = "
        f"{case.drafter} of the drafter M_3; beta = {case.drafts} drafts for each forward of M_2, "
        f"{case.rounds} forwards of M_2 for each of the target",
        f"at a place all three agree with probability {law.all_agree}, only M_3 and M_2 with "
        f"{law.only_lower}, only M_2 and target with {law.only_upper}, only M_3 and target with "
        f"{law.only_outer}",
        "a round of M_2 hands up its tokens as far as M_3 agrees and one more; each counts with the "
        "probability that it and all before it are right: L_1 = 1 (the target's own) + "
        f"{' + '.join(map(str, right_by_round(law, case.rounds, case.drafts)))} = {number(after.tokens)}",
        f"L_2, {(OWN if own_yield else TEXT).replace('M_new', 'M_2')}: {steps} = {number(found.new_after)}",
        f"Eq. 3: {case.target}/L_1 + ({case.new} + {case.drafts} x {case.drafter})/L_2 = {number(said)} s a "
        "token",
        f"walked through: {case.target} + {case.rounds} x ({case.new} + {case.drafts} x {case.drafter}) = "
        f"{number(after.seconds)} s for {number(after.tokens)} tokens, {number(true)} s a token",
    )


S42_STATEMENT = S12_STATEMENT.but(
    "Eq. 3 is the time per token if L_2 is what a forward of M_2 yields with its drafter, whatever the "
    "target makes of it, and L_1 what a forward of the target adds to the text",
    _eq_3,
    formula="T = T_1 / L_1 + T_2 / L_2 + beta T_3 / L_2",
    over="three models; cases as for S12",
)
S42_REPAIRED = S42_STATEMENT.but(
    "Eq. 3 is the time per token if each L_i counts tokens of the final text for each forward of M_i",
    partial(_eq_3, own_yield=False),
)
S42 = Claim(
    id="S42",
    source=f"{SOURCE_POLYBASIC} Eq. 3, three models (L_2 is L_(new-(i+1)) of its Thm 3.2)",
    statement=S42_STATEMENT,
    expected="refuted",
    because=(
        "M_2 runs for tokens that the target then throws away, and the target's own token costs M_2 "
        "nothing: M_2 runs n / L_1 times per token of text, not 1 / L_2. The repaired statement: a cycle "
        "takes T_1 + n (T_2 + beta T_3) for L_1 tokens, and with L_2 = L_1 / n that is Eq. 3."
    ),
    pinned=Inserted(PlaceLaw(ZERO, ZERO, HALF, ZERO), 1, 1, Fraction(3), Fraction(2), ONE),
    repaired=S42_REPAIRED,
    broken=(
        S42_REPAIRED.but("... with one token too many in L_1", partial(_eq_3, own_yield=False, bonus=1)),
        S42_REPAIRED.but("... with one draft too many in beta", partial(_eq_3, own_yield=False, drafts=1)),
    ),
)

CLAIMS = (S12, S12B, S12C, S42)
