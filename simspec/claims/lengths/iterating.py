"""Adjusting a length again and again among finitely many: where it ends (L6).

p_k = probability that draft k is accepted given that those before it were; S_j = p_1 .. p_j; tau_d =
expected tokens of a cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.lengths.blocks import (
    all_lines,
    all_staircases,
    blocks,
    lines,
    listed,
)
from simspec.claims.plain import number
from simspec.strategies.costs import staircase_costs

# L6: any beneficial adjustment, again and again

Values = tuple[Fraction, ...]


def _raises(new: Fraction, old: Fraction) -> bool:
    return new > old


def _ends_best(
    steps: Callable[[int, int], range], worth: Callable[[Fraction, Fraction], bool] = _raises
) -> Callable[[Values], Outcome]:
    """Whether every sequence of adjustments ends, and only where the value is greatest.

    Args:
        steps: the lengths that may be gone to, given where one is and how many there are.
        worth: whether an adjustment is made, given the value there and here.
    """

    def rule(values: Values) -> Outcome:
        size = len(values)
        moves = [[e for e in steps(d, size) if e != d and worth(values[e], values[d])] for d in range(size)]
        ended: set[int] = set()

        def ends(d: int, on_the_way: frozenset[int]) -> bool:
            """Whether every sequence from d on comes to an end; a length met twice would go on for ever."""
            if d in on_the_way:
                return False
            if d not in ended and all(ends(e, on_the_way | {d}) for e in moves[d]):
                ended.add(d)
            return d in ended

        for d in range(size):
            if not ends(d, frozenset()):
                return against(
                    f"speedups {listed(values)}", f"adjustments from place {d} (of 0, 1, ..) can go round"
                )
            if not moves[d] and values[d] < max(values):
                return against(
                    f"speedups {listed(values)}",
                    f"at place {d} (of 0, 1, ..) nothing in reach is more, and {number(max(values))} is",
                )
        return None

    return rule


def _anywhere(d: int, size: int) -> range:
    return range(size)


def _one_step(d: int, size: int) -> range:
    return range(max(0, d - 1), min(size, d + 2))


def _two_steps(d: int, size: int) -> range:
    return range(max(d % 2, d - 2), min(size, d + 3), 2)


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
        "speedups of all blocks of up to 3 places with chances in thirds and T = T0 + d, T0 = 0, 1, 2, with "
        "and without the bonus (smallest effort: 2 places; largest: 4, T0 to 3), and of random ones of up "
        "to 7, ties among them; beyond the theory: 3 to 5 arbitrary values in place of speedups"
    ),
    domain=lines().map(lambda block: block.speedups()),
    every=_all_speedups,
    beyond=_arbitrary,
    examples=100,
)
L6_REPAIRED = L6_STATEMENT.but(
    "With an affine cost adjustments by one draft, up or down, that raise expected speedup end, and at the "
    "best length only",
    _ends_best(_one_step),
    formula="eta_{d-1} <= eta_d >= eta_{d+1}  =>  eta_d = max eta   (T = T0 + c d)",
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
        "one draft: with one peak (L2) and equal values at the top only, where neither neighbour is more "
        "none is."
    ),
    repaired=L6_REPAIRED,
    broken=(
        L6_REPAIRED.but(
            "Adjustments by one draft end at the best length with a staircase cost, too",
            _ends_best(_one_step),
            domain=blocks(staircase_costs).map(lambda block: block.speedups()),
            every=lambda level: (block.speedups() for block in all_staircases(level)),
            beyond=None,
        ),
        L6_REPAIRED.but(
            "Adjustments by one draft that do not lower expected speedup end, and at the best length",
            _ends_best(_one_step, lambda new, old: new >= old),
            beyond=None,
        ),
        L6_REPAIRED.but(
            "Adjustments by two drafts that raise expected speedup end at the best length",
            _ends_best(_two_steps),
            beyond=None,
        ),
    ),
)

CLAIMS = (L6,)
