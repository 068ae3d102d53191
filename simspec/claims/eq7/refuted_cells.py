"""The readings that rank chains wrong, each under the rules of a cycle where it does (S7-reading@rules)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from simspec.claims.base import Claim
from simspec.claims.eq7.cases import ALL_SEMANTICS, ALONE, BENT, HALF, TRIPLE, Choice, flat
from simspec.claims.eq7.readings import SOURCES
from simspec.claims.eq7.statements import REPAIRED, ranking
from simspec.strategies.chains import Plan, Semantics

# What each reading gets wrong under each semantics, and the smallest two chains that it swaps: of all pools
# with whole times up to 3 (7 for funnel-replace under itself), rates in quarters and drafts up to 2.
_TRUNCATED = "The target's tokens under funnel-truncate are E(alpha_1 alpha_2 .., gamma). "
_OWN = (
    "The middle's own token is passed on as well, and the target accepts it with alpha_2: a cycle emits 1 "
    "+ alpha_2 E(alpha_1 alpha_2, gamma) tokens where the formula has E(alpha_1 alpha_2, gamma), up to "
    "twice too few. Chains with a middle are put too low (S23). "
)
_COLLECTED = (
    "(The middle collects m = n (gamma + 1) tokens, what n rounds make when everything is accepted.) "
    "What the target reads are m tokens of the middle's own text: a cycle emits E(alpha_2, m) whatever M1 "
    "is, and M1's rate only sets the number of rounds. The formula makes tokens, or rounds, depend "
    "otherwise on alpha_1. "
)
_JENSEN = (
    "It carries the mean length n into S(alpha_2, n), which is concave in n, so it counts too many tokens "
    "for every chain with a middle and none too many for pairs (S22): by up to {} for gamma = 1, {} for 4, "
    "{} for 8. "
)
_LEVELS = (
    "It divides the time of the levels below the target by what they pass on, as if the target let all of it "
)
_STRAW = "It knows no draft length and no bonus token, and is not even right for a pair. "
_LOW = flat((1, 1, 2), (HALF, Fraction(1)))
_NONE_ALIKE = flat((1, 1, 2), (Fraction(0), Fraction(1)))
_QUARTER = flat((2, 1, 2), (Fraction(1, 4), Fraction(1)))

WRONG: dict[tuple[str, Semantics], tuple[Choice, str]] = {
    ("reach-all", "funnel-truncate"): (
        Choice(
            flat((1, 1, 2, 1), (HALF, Fraction(1), Fraction(1))), Plan((0, 2, 3), 1), Plan((0, 1, 2, 3), 2)
        ),
        "Right up to three levels. M3 runs when anything comes through M2 (probability alpha_1), not only "
        "when all does: it is charged too seldom. ",
    ),
    ("reach-always", "funnel-truncate"): (
        Choice(
            flat((1, 1, 1, 1), (Fraction(1, 4), Fraction(1), Fraction(1))),
            Plan((0, 1, 3), 2),
            Plan((0, 1, 2, 3), 1),
        ),
        "Right up to three levels. M3 stays idle when nothing comes through M2 (probability 1 - alpha_1): "
        "it is charged too often. ",
    ),
    ("reach-direct", "funnel-truncate"): (
        Choice(flat((1, 1, 3), (Fraction(0), Fraction(0)), 1), ALONE, TRIPLE),
        _TRUNCATED + "How often M1 and the target agree counts tokens that M2 throws away on the way. ",
    ),
    ("funnel-truncate", "funnel-truncate"): (
        Choice(flat((1, 1, 1), BENT), Plan((0, 2), 2), TRIPLE),
        _TRUNCATED + _JENSEN.format("3.9%", "12.0%", "16.9%"),
    ),
    ("funnel-replace", "funnel-truncate"): (
        Choice(_LOW, ALONE, TRIPLE),
        _TRUNCATED + "It counts the middle's own token, which is not passed on. ",
    ),
    ("nested", "funnel-truncate"): (
        Choice(_LOW, ALONE, TRIPLE),
        _TRUNCATED + "It counts the middle's own token, which is not passed on. ",
    ),
    ("polybasic", "funnel-truncate"): (
        Choice(flat((1, 1, 3), (Fraction(1), Fraction(1))), ALONE, TRIPLE),
        _LEVELS + "through once and added nothing itself. ",
    ),
    ("funnel-replace", "funnel-replace"): (
        Choice(flat((1, 1, 7), BENT), ALONE, TRIPLE),
        "A cycle emits 1 + alpha_2 E(alpha_1 alpha_2, gamma). " + _JENSEN.format("1.3%", "5.8%", "9.9%"),
    ),
    ("funnel-replace", "nested"): (Choice(_QUARTER, ALONE, TRIPLE), _COLLECTED),
    ("nested", "nested"): (
        Choice(_QUARTER, ALONE, TRIPLE),
        _COLLECTED + "Theorem 4.3 fixes the rounds, and lets the number of tokens vary. ",
    ),
}

for _name in ("reach-any", "reach-all", "reach-always", "reach-direct", "funnel-truncate"):
    WRONG[_name, "funnel-replace"] = (Choice(_LOW, ALONE, TRIPLE), _OWN)
    WRONG[_name, "nested"] = (Choice(_NONE_ALIKE, ALONE, TRIPLE), _COLLECTED)

WRONG["polybasic", "funnel-replace"] = (Choice(_LOW, ALONE, TRIPLE), _LEVELS + "through. ")
WRONG["polybasic", "nested"] = (Choice(_NONE_ALIKE, ALONE, TRIPLE), _LEVELS + "through. ")

for _semantics in ALL_SEMANTICS:
    WRONG["product", _semantics] = (
        Choice(flat((1, 1, 2), (Fraction(0), Fraction(0)), 1), ALONE, Plan((0, 2), 1)),
        _STRAW,
    )


def _refuted(name: str, semantics: Semantics) -> Claim:
    pinned, because = WRONG[name, semantics]
    return Claim(
        id=f"S7-{name}@{semantics.removeprefix('funnel-')}",
        source=SOURCES[name],
        statement=ranking(name, semantics),
        expected="refuted",
        because=because.strip(),
        pinned=pinned,
        # Decided over the grid as well where it is the repair of S7 and of the readings' own semantics.
        repaired=REPAIRED[semantics] if name == "nested" else replace(REPAIRED[semantics], every=None),
    )


CLAIMS = tuple(_refuted(name, semantics) for name, semantics in WRONG)
