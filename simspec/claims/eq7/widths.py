"""Eq. 7 where forwards take longer for more tokens (S7, S7-wide, S7-nested-steps)."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from simspec.claims.base import Claim, Statement
from simspec.claims.eq7.cases import ALONE, HALF, INDEPENDENT, TRIPLE, Choice, choices, swaps
from simspec.claims.eq7.readings import FORMULAS, READINGS, SOURCES, nested, reach
from simspec.claims.eq7.rules import ranks
from simspec.claims.eq7.statements import REPAIRED
from simspec.strategies.chains import Level, Plan, Pool, independent

_S7 = Statement(
    words=(
        "The reading nearest to the published words (reach, any), given exact inputs, never puts the "
        "slower of two chains first under funnel-truncate, where acceptance is independent and a forward "
        "may take longer for more tokens; its T_i are single-token times, as printed; independent: "
        f"{INDEPENDENT}"
    ),
    formula="T_eff = " + FORMULAS["reach-any"],
    rule=ranks(READINGS["reach-any"], "funnel-truncate"),
    over=(
        "three models with times that sum to at most 5, slopes 0 or 1, rates 1/2, 3/4, 1, drafts 1 or 2; "
        "random pools of three and four models whose forwards take longer for more tokens, drafts up to 3"
    ),
    domain=choices("funnel-truncate", widths=True),
    every=swaps(3, 5, product((HALF, Fraction(3, 4), Fraction(1)), repeat=2), (0, 1)),
    examples=150,
)
_SLOPED = Level(Fraction(2), Fraction(1))
S7 = Claim(
    id="S7",
    source=SOURCES["reach-any"],
    statement=_S7,
    expected="refuted",
    because=(
        "A verifying forward is gamma + 1 tokens wide and costs more than a single-token one. What holds "
        "without that is decided reading by reading in the claims S7-...: with forwards of the same time "
        "at any width this reading is exact under funnel-truncate and no other reading is; CS-Drafting's "
        "Theorem 4.3 is exact under funnel-replace and a fixed number of rounds; no reading ranks right "
        "under nested."
    ),
    pinned=Choice(
        Pool((Level(Fraction(1)), Level(Fraction(1)), _SLOPED), independent((Fraction(1), Fraction(3, 4)))),
        ALONE,
        Plan((0, 2), 1),
    ),
    repaired=REPAIRED["funnel-truncate"],
)
S7_WIDE = Claim(
    id="S7-wide@truncate",
    source=SOURCES["reach-any"],
    statement=_S7.but(
        "The same with forwards over gamma + 1 tokens in the place of single-token times (reach, wide)",
        ranks(reach("any", wide=True), "funnel-truncate"),
    ),
    expected="refuted",
    because=(
        "Right for M2 and for pairs; the levels above M2 read only what came through, so chains with a "
        "middle are put too low, and what a third level is good for under funnel-truncate is left out of "
        "the sum."
    ),
    pinned=Choice(
        Pool(
            (Level(Fraction(1)), Level(Fraction(1)), Level(Fraction(1), Fraction(1))),
            independent((HALF, HALF)),
        ),
        Plan((1, 2), 2),
        TRIPLE,
    ),
    repaired=REPAIRED["funnel-truncate"],
)
S7_STEPS = Claim(
    id="S7-nested-steps@rounds",
    source=SOURCES["nested"],
    statement=Statement(
        words=(
            "CS-Drafting's Theorem 4.3 with forwards priced at their mean width never puts the slower of "
            "two chains "
            "first where a forward takes longer in steps (padding); independent: " + INDEPENDENT
        ),
        rule=ranks(nested, "rounds"),
        over=(
            "three models with times that sum to at most 5, 0 or 2 for each further 2 tokens begun, rates "
            "1/2 or 1, drafts 1 or 2; random pools of three models, drafts up to 3, rounds up to 2"
        ),
        domain=choices("rounds", widths=True),
        every=swaps(3, 5, product((HALF, Fraction(1)), repeat=2), (0, 2), 2),
        examples=150,
    ),
    expected="refuted",
    because=(
        "The width varies with luck, and the cost of the mean width is not the mean cost unless cost is a "
        "straight line."
    ),
    pinned=Choice(
        Pool(
            (Level(Fraction(1)), Level(Fraction(1)), Level(Fraction(3), Fraction(2), 2)),
            independent((HALF, Fraction(1))),
        ),
        ALONE,
        Plan((0, 1, 2), 2),
    ),
    repaired=REPAIRED["rounds"],
)

CLAIMS = (S7, S7_WIDE, S7_STEPS)
