"""A model put between a target and its drafter, as Polybasic does: the cases, walked through (for S12, S42).

The theorem writes L_new in its first inequality and L_(new-(i+1)) in its second; Eq. 3 after the insertion
has one such length, so both are taken for that. What it counts is left open, and both readings are decided:
what a forward of M_new yields of its drafter's tokens, or what of that gets into the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.chains.walked import mean, review, right_by_round
from simspec.claims.plain import number
from simspec.theory.third_level import Cycle, Insertion, PlaceLaw


@dataclass(frozen=True)
class Inserted:
    """M_new between a target and its drafter; seconds of a forward, whatever it reads.

    Attributes:
        law: how the drafter (M_1 of the law), M_new (M_2) and the target agree at a place.
        rounds: forwards of M_new for each of the target's.
        drafts: beta, tokens of the drafter for each forward above it.
        target, new, drafter: T_i > T_new > T_{i+1}.
    """

    law: PlaceLaw[Fraction]
    rounds: int
    drafts: int
    target: Fraction
    new: Fraction
    drafter: Fraction


def both(case: Inserted) -> tuple[Cycle[Fraction], Cycle[Fraction]]:
    """Walked cycles before and after the insertion."""
    before = mean(review(case.law.outer, case.drafts))
    after = sum(right_by_round(case.law, case.rounds, case.drafts), Fraction(1))
    drafting = case.drafts * case.drafter
    return (
        Cycle(before, case.target + drafting),
        Cycle(after, case.target + case.rounds * (case.new + drafting)),
    )


def insertion(case: Inserted, own_yield: bool = False) -> Insertion[Fraction]:
    """What the criterion looks at.

    Args:
        own_yield: L_new as the tokens that a forward of M_new yields, thrown away by the target or not;
            otherwise as tokens of the text for each forward of M_new.
    """
    before, after = both(case)
    new_after = mean(review(case.law.lower, case.drafts)) if own_yield else after.tokens / case.rounds
    beta = Fraction(case.drafts)
    return Insertion(case.target, case.new, case.drafter, beta, before.tokens, after.tokens, new_after)


Found = Insertion[Fraction]


def first(found: Found) -> bool:
    """Thm 3.2's first inequality, as printed."""
    return found.new / found.above < found.new_after * (1 / found.before - 1 / found.above_after)


def second(found: Found) -> bool:
    """Thm 3.2's second inequality, as printed."""
    return found.new / found.below < found.drafts_a_pass * (found.new_after / found.before - 1)


TEXT, OWN = "tokens of the text for each forward of M_new", "what a forward of M_new yields"


def worked(case: Inserted) -> tuple[str, ...]:
    law, beta = case.law, case.drafts
    before, after = both(case)
    rounds = right_by_round(law, case.rounds, beta)
    accepted = " + ".join(str(law.outer**j) for j in range(beta + 1))
    return (
        f"seconds of a forward: T_i = {case.target} of the target, T_new = {case.new} of M_new, T_(i+1) = "
        f"{case.drafter} of the drafter; beta = {beta} drafts for each forward above the drafter, "
        f"{case.rounds} forwards of M_new for each of the target",
        f"at a place all three agree with probability {law.all_agree}, only drafter and M_new with "
        f"{law.only_lower}, only M_new and target with {law.only_upper}, only drafter and target with "
        f"{law.only_outer}",
        f"before, the target accepts a draft with {law.outer}: L_i = {accepted} = {number(before.tokens)} "
        f"tokens in {case.target} + {beta} x {case.drafter} = {before.seconds} s, so "
        f"{number(before.seconds / before.tokens)} s a token",
        "after, a round of M_new hands up its tokens as far as the drafter agrees and one more; each counts "
        "with the probability that it and all before it are right: L_(i-new) = 1 (the target's own) + "
        f"{' + '.join(map(str, rounds))} = {number(after.tokens)} tokens in {case.target} + {case.rounds} x "
        f"({case.new} + {beta} x {case.drafter}) = {after.seconds} s, so "
        f"{number(after.seconds / after.tokens)} s a token: "
        f"{'faster' if after.faster_than(before) else 'no faster'}",
    )


def sides(case: Inserted, own_yield: bool) -> str:
    found = insertion(case, own_yield)
    one = found.new_after * (1 / found.before - 1 / found.above_after)
    two = found.drafts_a_pass * (found.new_after / found.before - 1)
    price, small = found.new / found.above, found.new / found.below
    steps = " + ".join(str(case.law.lower**j) for j in range(case.drafts + 1))
    if not own_yield:
        steps = f"{found.above_after} / {case.rounds}"
    return (
        f"with L_new = {steps} = {number(found.new_after)}, {OWN if own_yield else TEXT}: T_new/T_i = "
        f"{number(price)} {'<' if first(found) else '>='} L_new (1/L_i - 1/L_(i-new)) = {number(one)}; "
        f"T_new/T_(i+1) = {number(small)} {'<' if second(found) else '>='} beta (L_new/L_i - 1) = "
        f"{number(two)}"
    )


def savings_told(case: Inserted) -> str:
    found = insertion(case)
    spared = [
        f"{who} {'runs' if saved < 0 else 'is spared'} {number(abs(saved))} s{' more' if saved < 0 else ''}"
        for who, saved in (("the target", found.saved_above), ("the drafter", found.saved_below))
    ]
    return f"for each token of the text {' and '.join(spared)}, and M_new takes {number(found.spent)} s"


def insertions(level: int) -> Iterator[Inserted]:
    times = [t for t in product(range(1, (7, 8, 10)[level]), repeat=3) if t[0] > t[1] > t[2]]
    laws = [
        PlaceLaw(*(Fraction(w, 2) for w in weights))
        for weights in product(range(3), repeat=4)
        if sum(weights) <= 2
    ]
    for target, new, drafter in sorted(times, key=lambda t: (sum(t), t)):
        seconds = (Fraction(target), Fraction(new), Fraction(drafter))
        for rounds, drafts in product((1, 2), repeat=2):
            for law in laws:
                yield Inserted(law, rounds, drafts, *seconds)


@st.composite
def random_insertions(draw: st.DrawFn) -> Inserted:
    drafter = draw(st.integers(1, 8))
    new = drafter + draw(st.integers(1, 8))
    target = new + draw(st.integers(1, 60))
    weights = draw(st.lists(st.integers(0, 8), min_size=5, max_size=5).filter(any))
    law = PlaceLaw(*(Fraction(w, sum(weights)) for w in weights[:4]))
    seconds = (Fraction(target), Fraction(new), Fraction(drafter))
    # One or two rounds, so that the drafter often runs no more than before.
    return Inserted(law, draw(st.integers(1, 2)), draw(st.integers(1, 4)), *seconds)
