"""The statements that a reading ranks chains right under some rules of a cycle, and the repaired formulas."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from simspec.claims.base import Statement
from simspec.claims.eq7.cases import (
    ALL_SEMANTICS,
    BENT,
    HALF,
    INDEPENDENT,
    OVER,
    choices,
    every_choice,
    swaps,
)
from simspec.claims.eq7.readings import FORMULAS, READINGS, exact
from simspec.claims.eq7.rules import is_exact, ranks
from simspec.strategies.chains import Semantics


def _repaired(semantics: Semantics) -> Statement:
    how = {
        "funnel-truncate": "to min(G, n) by level, G geometric",
        "funnel-replace": "to min(G, n) + 1 by level, G geometric",
        "nested": "round by round until the middle has enough",
        "rounds": "round by round, a fixed number of times",
    }[semantics]
    return Statement(
        words=(
            f"Under {semantics}, the length of the block followed as a Markov chain ({how}), each length "
            "priced at its own width, gives the exact time per token of every chain, and so its rank; "
            f"independent: {INDEPENDENT}"
        ),
        formula="T = E[sum of V_i(n_i + 1) + drafts T_1] / (1 + E[S(alpha_{N-1}, n_{N-1})])",
        rule=is_exact(exact, semantics),
        over=OVER + "; random forwards also take longer for more tokens, by the token or in steps",
        domain=choices(semantics, widths=True),
        every=every_choice(semantics),
        examples=40,
    )


REPAIRED = {semantics: _repaired(semantics) for semantics in (*ALL_SEMANTICS, "rounds")}

# Right up to three levels.
DEEP = {("reach-all", "funnel-truncate"), ("reach-always", "funnel-truncate")}


def ranking(name: str, semantics: Semantics) -> Statement:
    every, over = every_choice(semantics), OVER
    if name.startswith("funnel"):
        over = (
            "three models with alpha_1 = 1/2, alpha_2 = 1/4, times that sum to at most 9, drafts 1 or 2; "
            "random ones with alpha_1 of 1/3, 1/2, 2/3 and alpha_2 such that the formula gives fractions"
        )
        every = swaps(3, 9, [BENT])
        if semantics == "nested":
            # With alpha_2 = 1 nothing bends.
            every = swaps(3, 5, product((Fraction(0), Fraction(1, 4), HALF), (Fraction(1),)))
            over = over.replace("alpha_1 = 1/2, alpha_2 = 1/4", "alpha_1 of 0, 1/4, 1/2 and alpha_2 = 1")
            over = over.replace("at most 9", "at most 5")
    elif (name, semantics) in DEEP:
        over = "four models with whole times that sum to at most 5, rates 1/4, 1/2, 1, drafts 1 or 2; " + (
            "random pools of three and four models, drafts up to 3"
        )
        every = swaps(4, 5, product((HALF / 2, HALF, Fraction(1)), repeat=3))
    return Statement(
        words=(
            f"The reading {name}, given exact inputs, never puts the slower of two chains first under "
            f"{semantics}, where forwards take the same time at any width and acceptance is independent "
            f"({INDEPENDENT})"
        ),
        formula=f"T_eff = {FORMULAS[name]}",
        rule=ranks(READINGS[name], semantics),
        over=over,
        domain=choices(semantics, bends=name.startswith("funnel")),
        every=every,
        examples=150,
    )
