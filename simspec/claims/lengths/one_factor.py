"""The factor that LibraSpec's Algorithm 1 takes to be one constant (L12).

p_k = probability that draft k is accepted given that those before it were; S_j = p_1 .. p_j; tau_d =
expected tokens of a cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

from simspec.claims.base import UNMET, Claim, Outcome, Plot, Statement, against
from simspec.claims.lengths.blocks import OVER_LINES, Block, all_lines, lines, listed, working
from simspec.strategies.costs import affine
from simspec.strategies.survivals import tokens_by_outcome
from simspec.theory.lengths import best_lengths


def _alphas(block: Block) -> tuple[Fraction, ...]:
    """T_i / (tau_i c), i = 1 .. D; empty where no token is expected."""
    tokens = tokens_by_outcome(block.p, block.bonus)
    slope = block.cost[1] - block.cost[0]
    return tuple(t / (n * slope) for n, t in zip(tokens[1:], block.cost[1:], strict=True) if n > 0)


def _told(block: Block, values: tuple[Fraction, ...]) -> tuple[str, ...]:
    return (*working(block), f"T_i / (tau_i c) for i = 1, 2, ..: {listed(values)}")


def _constant(block: Block) -> Outcome:
    values = _alphas(block)
    if not values:
        return UNMET
    return None if len(set(values)) == 1 else against(*_told(block, values))


def _turns(
    falls_to: Callable[[list[int]], int], rises_from: Callable[[list[int]], int]
) -> Callable[[Block], Outcome]:
    """Whether it falls up to one length (an index from 0), rises from another, and is least at the best.

    Args:
        falls_to, rises_from: given the indices of the first and the last length, and of the best ones.
    """

    def rule(block: Block) -> Outcome:
        values = _alphas(block)
        if not values:
            return UNMET
        best = best_lengths(block.speedups()[1 - block.shortest :])
        of = [0, *best, len(values) - 1]
        falls = all(a > b for a, b in pairwise(values[: falls_to(of) + 1]))
        rises = all(a < b for a, b in pairwise(values[rises_from(of) :]))
        if falls and rises and best == best_lengths([-value for value in values]):
            return None
        lengths = ", ".join(str(d + 1) for d in best)
        return against(*_told(block, values), f"lengths (from 1) with the best speedup: {lengths}")

    return rule


L12_STATEMENT = Statement(
    words="The factor T_i/(tau_i c), which Algorithm 1 takes to be one constant alpha, does not depend on i",
    formula="T_i/(tau_i c) = T_d/(tau_d c) for all i, d >= 1   (T = T0 + c d, tau_1 > 0)",
    rule=_constant,
    over=OVER_LINES,
    domain=lines(),
    every=all_lines,
    examples=250,
)
L12_REPAIRED = L12_STATEMENT.but(
    "It is least exactly at the best lengths (from 1), falls with every draft up to the first of them and "
    "rises with every draft from the last on",
    _turns(lambda of: of[1], lambda of: of[-2]),
    formula="T_i/(tau_i c) = 1/(c eta_i)   (T = T0 + c d, tau_1 > 0)",
)
L12 = Claim(
    id="L12",
    source="LibraSpec (2608.08721) Thm 3.3 and Algorithm 1",
    statement=L12_STATEMENT,
    expected="refuted",
    because=(
        "It is 1/(c eta_i), so it is least where speedup is greatest: by L2 it falls until the best length "
        "and rises after it, strictly, since equal speedups lie side by side at the top. With T0 = 12, c = "
        "1, p = 9/10 and no bonus it goes 14.4, 8.2, 6.2 .. 3.72 .. 4.4. It is constant only where speedup "
        "is: if each place from the second on brings S_j = c eta_1, that is for p_2 = c tau_1/((T0 + c) "
        "p_1) and sure places after that, as for p = (1/2, 3/4), T0 = 3, c = 1 with the bonus (3/8 and "
        "3/8). Smaller than the pinned case, but of drafts that are never accepted: p = (0, 0), T = d, "
        "bonus goes 1, 2. The pinned one is the smallest that both falls and rises."
    ),
    first_look=(
        "'It grows throughout only when T0 = 0' is too narrow: T0 = 0 makes it grow (or stay) for every p, "
        "but with a fixed cost it grows throughout whenever one draft is the best length, as for p = (1/2, "
        "1/4), T0 = c = 1 (4, then 24/5)."
    ),
    pinned=Block((Fraction(1), Fraction(1), Fraction(0)), affine(Fraction(1), Fraction(1), 3), 0),
    repaired=L12_REPAIRED,
    broken=(
        L12_REPAIRED.but("It rises with every draft", _turns(lambda of: of[1], lambda of: of[0])),
        L12_REPAIRED.but("It falls with every draft", _turns(lambda of: of[-1], lambda of: of[-2])),
        L12_REPAIRED.but(
            "It falls up to the last of the best lengths", _turns(lambda of: of[-2], lambda of: of[-2])
        ),
        L12_REPAIRED.but(
            "It rises from the first of the best lengths on", _turns(lambda of: of[1], lambda of: of[1])
        ),
    ),
    plot=lambda block: Plot(
        "What Algorithm 1 takes to be constant",
        "line",
        "i",
        "T_i / (tau_i c)",
        tuple(range(1, len(block.p) + 1)),
        {"T_i / (tau_i c)": tuple(map(float, _alphas(block)))},
    ),
)

CLAIMS = (L12,)
