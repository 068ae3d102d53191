"""Polybasic's criterion for inserting a model, and its time per token (S12, S12b, S42)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Plot, Statement, against
from simspec.claims.chains.walked import HALF, ONE, cascade_tokens, mean, review
from simspec.claims.plain import number
from simspec.strategies.survivals import chances, grid
from simspec.theory import third_level as closed
from simspec.theory.third_level import Cycle, Insertion

SOURCE_POLYBASIC = "Polybasic (2510.26527)"


# S42, S12, S12b: Polybasic


@dataclass(frozen=True)
class Inserted:
    """M_new between a target and its drafter; seconds of a forward, whatever it reads.

    Attributes:
        lower, upper: M_new accepts the drafter, the target accepts M_new, independently; without M_new the
            target accepts the drafter with their product.
        rounds: forwards of M_new for each of the target's.
        drafts: beta, tokens of the drafter for each forward above it.
        target, new, drafter: T_i > T_new > T_{i+1}.
    """

    lower: Fraction
    upper: Fraction
    rounds: int
    drafts: int
    target: Fraction
    new: Fraction
    drafter: Fraction


def _both(case: Inserted) -> tuple[Cycle[Fraction], Cycle[Fraction]]:
    """Walked cycles before and after the insertion."""
    before = mean(review(case.lower * case.upper, case.drafts))
    after = cascade_tokens(case.upper, case.lower, case.rounds, case.drafts)
    drafting = case.drafts * case.drafter
    return (
        Cycle(before, case.target + drafting),
        Cycle(after, case.target + case.rounds * (case.new + drafting)),
    )


def _insertion(case: Inserted, own_level: bool = False) -> Insertion[Fraction]:
    """What the criterion looks at.

    Args:
        own_level: L_new as the tokens that a forward of M_new yields, thrown away by the target or not;
            otherwise as tokens of the text for each forward of M_new.
    """
    before, after = _both(case)
    new_after = mean(review(case.lower, case.drafts)) if own_level else after.tokens / case.rounds
    beta = Fraction(case.drafts)
    return Insertion(case.target, case.new, case.drafter, beta, before.tokens, after.tokens, new_after)


def _worked(case: Inserted) -> tuple[str, ...]:
    before, after = _both(case)
    found = _insertion(case)
    return (
        f"T_i = {case.target}, T_new = {case.new}, T_(i+1) = {case.drafter}, beta = {case.drafts}, "
        f"{case.rounds} forwards of M_new a target's; M_new accepts with {case.lower}, the target accepts "
        f"M_new with {case.upper}",
        f"L_i = {number(found.before)}, L_(i-new) = {number(found.above_after)}, L_new = "
        f"{number(found.new_after)}",
        f"T_new/T_i = {number(found.new / found.above)} against L_new (1/L_i - 1/L_(i-new)) = "
        f"{number(found.new_after * (1 / found.before - 1 / found.above_after))}; T_new/T_(i+1) = "
        f"{number(found.new / found.below)} against beta (L_new/L_i - 1) = "
        f"{number(found.drafts_a_pass * (found.new_after / found.before - 1))}: insert {found.published}",
        f"per token the target is spared {number(found.saved_above)}, the drafter "
        f"{number(found.saved_below)}, and M_new takes {number(found.spent)}",
        f"true seconds per token: {number(before.seconds / before.tokens)} before, "
        f"{number(after.seconds / after.tokens)} after",
    )


def _sufficient(case: Inserted) -> Outcome:
    before, after = _both(case)
    if not _insertion(case).published:
        return UNMET
    return None if after.faster_than(before) else against(*_worked(case))


def _sufficient_if_both_gain(case: Inserted) -> Outcome:
    found = _insertion(case)
    return UNMET if min(found.saved_above, found.saved_below) < 0 else _sufficient(case)


def _necessary(case: Inserted) -> Outcome:
    before, after = _both(case)
    if not after.faster_than(before):
        return UNMET
    return None if _insertion(case).published else against(*_worked(case))


def _sum_decides(case: Inserted, own_level: bool = False) -> Outcome:
    before, after = _both(case)
    agrees = after.faster_than(before) == _insertion(case, own_level).exact
    return None if agrees else against(*_worked(case))


def _insertions(level: int) -> Iterator[Inserted]:
    times = [t for t in product(range(1, (7, 10, 12)[level]), repeat=3) if t[0] > t[1] > t[2]]
    for target, new, drafter in sorted(times, key=lambda t: (sum(t), t)):
        seconds = (Fraction(target), Fraction(new), Fraction(drafter))
        for rounds, drafts in product((1, 2), repeat=2):
            for lower, upper in product(grid(2), repeat=2):
                yield Inserted(lower, upper, rounds, drafts, *seconds)


@st.composite
def _random_insertions(draw: st.DrawFn) -> Inserted:
    drafter = draw(st.integers(1, 8))
    new = drafter + draw(st.integers(1, 8))
    target = new + draw(st.integers(1, 60))
    seconds = (Fraction(target), Fraction(new), Fraction(drafter))
    # One or two rounds, so that the repaired premise (nothing runs more often) is met now and then.
    return Inserted(
        draw(chances(10)), draw(chances(10)), draw(st.integers(1, 2)), draw(st.integers(1, 4)), *seconds
    )


def _savings(case: Inserted) -> Plot:
    found = _insertion(case)
    return Plot(
        "Seconds per token that the insertion spares and spends",
        "bars",
        "",
        "seconds per token",
        ("target spared", "drafter spared", "both together", "new model spent"),
        {
            "seconds": tuple(
                map(
                    float,
                    (
                        found.saved_above,
                        found.saved_below,
                        found.saved_above + found.saved_below,
                        found.spent,
                    ),
                )
            )
        },
    )


S12_STATEMENT = Statement(
    words="If either of the theorem's two inequalities holds, inserting M_new makes decoding faster",
    formula="T_new/T_i < L_new (1/L_i - 1/L_(i-new)) or T_new/T_(i+1) < beta (L_new/L_i - 1)  =>  faster",
    rule=_sufficient,
    over=(
        "whole seconds up to 9, acceptance 0, 1/2 and 1, up to 2 rounds of 2 drafts; random ones up to 76 s "
        "and 2 rounds of 4. L_new counts tokens of the text for each forward of M_new, which makes Eq. 3 "
        "exact"
    ),
    domain=_random_insertions(),
    every=_insertions,
    examples=200,
)
S12 = Claim(
    id="S12",
    source=f"{SOURCE_POLYBASIC} Thm 3.2, the 'if'",
    statement=S12_STATEMENT,
    expected="refuted",
    because=(
        "The first inequality says that what the target is spared pays for M_new, and forgets that the "
        "drafter may now run more often per token: each token of M_new that the target throws away was "
        "drafted for."
    ),
    pinned=Inserted(HALF, HALF, 2, 1, Fraction(9), Fraction(2), ONE),
    repaired=S12_STATEMENT.but(
        "If neither the target nor the drafter runs more often per token, either inequality suffices",
        _sufficient_if_both_gain,
        formula="L_(i-new) >= L_i, L_new >= L_i and either inequality  =>  faster",
    ),
    plot=_savings,
)
S12B = Claim(
    id="S12b",
    source=f"{SOURCE_POLYBASIC} Thm 3.2, the 'only if' (its limitations say 'sufficient' only)",
    statement=S12_STATEMENT.but(
        "Inserting M_new makes decoding faster only if one of the theorem's two inequalities holds",
        _necessary,
        formula="faster  =>  T_new/T_i < L_new (1/L_i - 1/L_(i-new)) or T_new/T_(i+1) < beta (L_new/L_i - 1)",
    ),
    expected="refuted",
    because=(
        "Each inequality sets one saving alone against the whole price. Two savings, neither of which pays "
        "for M_new, may do so together."
    ),
    pinned=Inserted(HALF, HALF, 1, 1, Fraction(6), Fraction(2), ONE),
    repaired=S12_STATEMENT.but(
        "Inserting M_new makes decoding faster exactly when both savings together exceed its time per token",
        _sum_decides,
        formula="faster  <=>  T_new/L_new < T_i (1/L_i - 1/L_(i-new)) + beta T_(i+1) (1/L_i - 1/L_new)",
    ),
    broken=(
        S12_STATEMENT.but(
            "... with L_new as the tokens that a forward of M_new yields, thrown away by the target or not",
            lambda case: _sum_decides(case, own_level=True),
        ),
    ),
    plot=_savings,
)


def _eq_3(case: Inserted, own_level: bool = True) -> Outcome:
    _, after = _both(case)
    found = _insertion(case, own_level)
    lengths = (found.above_after, found.new_after)
    times = (case.target, case.new, case.drafter)
    said = closed.polybasic_seconds(lengths, times, found.drafts_a_pass)
    true = after.seconds / after.tokens
    if said == true:
        return None
    return against(
        *_worked(case)[:1],
        f"a cycle yields L_1 = {number(after.tokens)} tokens; a forward of M_2 yields "
        f"{number(found.new_after)}",
        f"Eq. 3: {case.target}/L_1 + ({case.new} + {case.drafts} x {case.drafter})/L_2 = {number(said)} "
        "seconds a token",
        f"walked: {number(after.seconds)} seconds for {number(after.tokens)} tokens, {number(true)} a token",
    )


S42_STATEMENT = S12_STATEMENT.but(
    "Eq. 3 is the time per token if each L_i is what a forward of M_i yields, as measured on M_i and "
    "M_(i+1) alone",
    _eq_3,
    formula="T = sum_{i<n} T_i / L_i + beta T_n / L_(n-1)",
    over="as for S12",
)
S42 = Claim(
    id="S42",
    source=f"{SOURCE_POLYBASIC} Eq. 3, three models",
    statement=S42_STATEMENT,
    expected="refuted",
    because=(
        "M_2 runs for tokens that the target then throws away, and the target's own token costs M_2 "
        "nothing: M_2 runs n / L_1 times per token of text, not 1 / L_2."
    ),
    pinned=Inserted(HALF, HALF, 1, 1, Fraction(3), Fraction(2), ONE),
    repaired=S42_STATEMENT.but(
        "Eq. 3 is the time per token if each L_i counts tokens of the final text for each forward of M_i",
        lambda case: _eq_3(case, own_level=False),
    ),
)

CLAIMS = (S12, S12B, S42)
