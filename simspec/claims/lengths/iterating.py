"""Adjusting a length again and again among finitely many: where it ends (L6).

p_k = probability that draft k is accepted given that those before it were; S_j = p_1 .. p_j; tau_d =
expected tokens of a cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.lengths.blocks import all_lines, all_staircases, blocks, lines, listed
from simspec.strategies.costs import staircase_costs

# L6: any beneficial adjustment, again and again

Values = tuple[Fraction, ...]


def _ends_best(steps: Callable[[int, int], range]) -> Callable[[Values], Outcome]:
    """Whether every sequence of adjustments that raise the value ends, and only where it is greatest.

    Args:
        steps: the lengths that may be gone to, given where one is and how many there are.
    """

    def rule(values: Values) -> Outcome:
        size = len(values)
        moves = [[e for e in steps(d, size) if values[e] > values[d]] for d in range(size)]
        longest: dict[int, int] = {}

        def follow(d: int, on_the_way: frozenset[int]) -> int:
            """The most adjustments from d on; a length met twice would go on for ever."""
            if d in on_the_way:
                raise RecursionError
            if d not in longest:
                longest[d] = max((1 + follow(e, on_the_way | {d}) for e in moves[d]), default=0)
            return longest[d]

        try:
            for d in range(size):
                follow(d, frozenset())
        except RecursionError:
            return against(f"values {listed(values)}", "adjustments go round in a circle")
        for d in range(size):
            if not moves[d] and values[d] < max(values):
                return against(
                    f"values {listed(values)}", f"nothing raises the value at place {d}, not the best"
                )
        return None

    return rule


def _anywhere(d: int, size: int) -> range:
    return range(size)


def _one_step(d: int, size: int) -> range:
    return range(max(0, d - 1), min(size, d + 2))


def _all_speedups(level: int) -> Iterator[Values]:
    return (b.speedups() for b in all_lines(max(0, level - 1)) if level > 0 or len(b.p) < 3)


_arbitrary: st.SearchStrategy[Values] = st.lists(st.integers(0, 9).map(Fraction), min_size=3, max_size=5).map(
    tuple
)

L6_STATEMENT = Statement(
    words=(
        "With lengths up to some bound, adjustments that raise expected speedup, to any other length, reach "
        "the best length after finitely many, wherever they begin and whichever are chosen"
    ),
    formula="eta_{d_1} < eta_{d_2} < ...  ends, and at max eta",
    rule=_ends_best(_anywhere),
    over=(
        "speedups of all small blocks of affine cost, and of random ones of up to 7 places; beyond the "
        "theory: 3 to 5 arbitrary values in place of speedups"
    ),
    domain=lines().map(lambda block: block.speedups()),
    every=_all_speedups,
    beyond=_arbitrary,
    examples=100,
)
L6 = Claim(
    id="L6",
    source="LibraSpec (2608.08721) Thm 3.6, with d up to a bound",
    statement=L6_STATEMENT,
    expected="vacuous",
    because=(
        "It holds for any numbers whatever: values that rise cannot come back, there are finitely many, and "
        "where none is greater one is at the greatest. Nothing about acceptance or cost is used, and "
        "'finitely many' may be as many as there are lengths. The shape of the curve matters for steps of "
        "one draft."
    ),
    repaired=L6_STATEMENT.but(
        (
            "Adjustments by one draft, up or down, that raise expected speedup end at the best length and "
            "nowhere else"
        ),
        _ends_best(_one_step),
        formula="eta_{d-1} <= eta_d >= eta_{d+1}  =>  eta_d = max eta",
    ),
    broken=(
        L6_STATEMENT.but(
            "Adjustments by one draft end at the best length with a staircase cost, too",
            _ends_best(_one_step),
            domain=blocks(staircase_costs).map(lambda block: block.speedups()),
            every=lambda level: (block.speedups() for block in all_staircases(level)),
            beyond=None,
        ),
    ),
)

CLAIMS = (L6,)
