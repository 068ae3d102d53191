"""Adjusting a length again and again without a bound: whether it ends (L6-vanishing, L6-limit).

S_d = probability that at least d drafts are accepted; tau_d = expected tokens of a cycle that submits d
drafts; T(d) = T0 + c d its time; speedup eta_d = tau_d / T(d). Lengths are 1, 2, ..
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from simspec.claims.base import UNMET, Claim, Outcome, Plot, Statement, against
from simspec.claims.lengths.blocks import drafts
from simspec.claims.lengths.endless import (
    FAR_FIRST,
    FAR_ONLY,
    LASTING,
    LONG,
    NEAR_FIRST,
    TAILS,
    VANISHING,
    Habit,
    Unbounded,
    adjusted,
    all_unbounded,
    any_unbounded,
)
from simspec.claims.plain import number, shown

STARTS = (1, 6)


def _reaches(
    expected: Callable[[Unbounded], bool], habits: tuple[Habit, Habit] = (FAR_FIRST, NEAR_FIRST)
) -> Callable[[Unbounded], Outcome]:
    """Whether sequences of adjustments end exactly where that is expected, and then at a best length."""

    def rule(case: Unbounded) -> Outcome:
        if case.tokens(1) == 0:
            return UNMET
        for start in STARTS:
            path = adjusted(case, start, habits)
            ends = path[-1] <= LONG
            best = ends and case.is_best(path[-1])
            if ends == expected(case) and best == ends:
                continue
            counted = "with" if case.bonus else "without"
            how = "each one raised it, and there is no end to it"
            if ends:
                how = "none that is tried raises it, and " + ("none does" if best else "another length does")
            return against(
                f"chances of the first drafts, each given that all before were accepted: {shown(case.lead)}",
                f"j places later survival is {case.tail} times as much; it goes to {number(case.limit)}",
                f"T(d) = {case.fixed} + d, {counted} the bonus",
                "speedups on the way: "
                + "; ".join(f"{drafts(d)} {number(case.speedup(d))}" for d in path if d <= 8),
                f"after {len(path) - 1} adjustment{'s' * (len(path) != 2)}, at {drafts(path[-1])}: {how}",
            )
        return None

    return rule


def _over(tails: tuple[str, ...]) -> str:
    return (
        "all blocks of up to 2 first chances in quarters (smallest effort: 1; largest: 3) that go on for "
        "ever, "
        f"survival falling j places later to {', '.join(tails)} times what it is, T0 = 0 .. 3, with and "
        "without the bonus; random ones of up to 4 first chances, T0 to 4 in quarters. Followed are the "
        "sequences from 1 and from 6 drafts that go to twice as many, one more, one less or half as many, "
        "to the first that is "
        f"better, the order changing at each step, up to {LONG} drafts; the end is compared with every "
        "length up to one from which on none can be better. Of other sequences only the proof says that "
        "they end"
    )


L6_VANISHING_STATEMENT = Statement(
    words=(
        "Without a bound on the length, adjustments that raise expected speedup reach a best length after "
        "finitely many if survival goes to 0, however slowly, and some token is expected of one draft"
    ),
    formula="S_d -> 0, T(d) = T0 + c d, T0 >= 0, c > 0, tau_1 > 0  =>  a best d >= 1 exists and is reached",
    rule=_reaches(lambda case: True),
    over=_over(VANISHING),
    domain=any_unbounded(VANISHING),
    every=all_unbounded(VANISHING),
    examples=40,
)
L6_VANISHING = Claim(
    id="L6-vanishing",
    source="LibraSpec (2608.08721) Thm 3.6, without a bound on d",
    statement=L6_VANISHING_STATEMENT,
    expected="holds",
    because=(
        "eta_d = tau_d/(T0 + c d) goes to lim S_d / c = 0 (a mean of what goes to 0), while the speedup "
        "that one begins with is above 0 and never lost: only finitely many lengths are faster than it, no "
        "length comes twice, and one that is not best can be left. So every sequence ends, and at a best "
        "length, if it may go to any length; with one peak (L2) going to the next is enough."
    ),
    broken=(
        L6_VANISHING_STATEMENT.but(
            "The same where survival goes to some number above 0",
            _reaches(lambda case: True),
            domain=any_unbounded(LASTING),
            every=all_unbounded(LASTING),
        ),
        L6_VANISHING_STATEMENT.but(
            "The same if lengths are doubled and halved only",
            _reaches(lambda case: True, (FAR_ONLY, FAR_ONLY)),
        ),
    ),
)

EVERY_TAIL = tuple(TAILS)
L6_LIMIT_STATEMENT = L6_VANISHING_STATEMENT.but(
    "Without a bound on the length, adjustments that raise expected speedup reach a best length after "
    "finitely many",
    _reaches(lambda case: True),
    formula="T(d) = T0 + c d, tau_1 > 0  =>  a best d >= 1 exists and is reached",
    over=_over(EVERY_TAIL),
    domain=any_unbounded(EVERY_TAIL),
    every=all_unbounded(EVERY_TAIL),
)


def _enough(case: Unbounded, *, bonus: bool = True, more: bool | None = None) -> bool:
    """Whether b + R >= s T0/c, or s = 0: with > for >= where survival never comes to its limit.

    Args:
        bonus: count b.
        more: with > (True) or >= (False) everywhere.
    """
    if case.limit == 0 or case.excess is None:
        return True
    left, right = case.bonus * bonus + case.excess, case.limit * case.fixed
    strict = not TAILS[case.tail].reached if more is None else more
    return left > right or (left == right and not strict)


L6_LIMIT_REPAIRED = L6_LIMIT_STATEMENT.but(
    "They do exactly if survival goes to 0, or what it has over its limit s, and the bonus, sum up to more "
    "than s T0/c, or to as much if survival comes to its limit",
    _reaches(_enough),
    formula=(
        "S_d -> s, R = sum_j (S_j - s), b = 1 with the bonus, else 0:  ends <=> s = 0 or b + R > s T0/c or "
        "(b + R = s T0/c and S_d = s for some d)   (T(d) = T0 + c d, tau_1 > 0)"
    ),
)
L6_LIMIT = Claim(
    id="L6-limit",
    source="LibraSpec (2608.08721) Thm 3.6, without a bound on d",
    statement=L6_LIMIT_STATEMENT,
    expected="refuted",
    because=(
        "Let S_d go to s > 0, R = sum (S_j - s), b = 1 with the bonus and 0 without. eta_d goes to s/c, and "
        "eta_d >= s/c exactly if b + sum_{j<=d} (S_j - s) >= s T0/c, whose left side rises to b + R. If b + "
        "R < s T0/c, every length is below s/c, so none is best: longer ones always raise it. If b + R > s "
        "T0/c some length is above the limit, a best one exists, and past the peak only finitely many are "
        "faster. If they are equal, it exists exactly if survival reaches its limit, after which all lengths "
        "are equally good; where it never does, each length is below s/c."
    ),
    first_look=(
        "'With a fixed cost large enough' needs R finite: where survival comes down to s so slowly that R "
        "is not, a best length exists for every T0."
    ),
    pinned=Unbounded((), "1", Fraction(1), 0),
    repaired=L6_LIMIT_REPAIRED,
    broken=(
        L6_LIMIT_REPAIRED.but(
            "They do exactly if survival goes to 0", _reaches(lambda case: case.limit == 0)
        ),
        L6_LIMIT_REPAIRED.but(
            "The criterion without the bonus", _reaches(lambda case: _enough(case, bonus=False))
        ),
        L6_LIMIT_REPAIRED.but(
            "They do if the sum is as much, whether or not survival comes to its limit",
            _reaches(lambda case: _enough(case, more=False)),
        ),
        L6_LIMIT_REPAIRED.but(
            "They do only if the sum is more, even if survival comes to its limit",
            _reaches(lambda case: _enough(case, more=True)),
        ),
        L6_LIMIT_REPAIRED.but(
            "The same criterion if lengths are doubled and halved only",
            _reaches(_enough, (FAR_ONLY, FAR_ONLY)),
            domain=any_unbounded(VANISHING),
            every=all_unbounded(VANISHING),
        ),
    ),
    plot=lambda case: Plot(
        "No length is best",
        "line",
        "drafts submitted",
        "expected tokens per unit of time",
        tuple(range(1, 31)),
        {"speedup": tuple(float(case.speedup(d)) for d in range(1, 31))},
    ),
)

CLAIMS = (L6_VANISHING, L6_LIMIT)
