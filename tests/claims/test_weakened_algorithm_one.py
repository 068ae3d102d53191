"""Claims on Algorithm 1, wrong confidences and batches notice it when their own rule is weakened.

A rule that lets too much pass agrees with its claim just as well. So each line below weakens one comparison
in a copy of a module, and the claims of that copy must complain: a broken variant is no longer caught, or
what should be refuted is not.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import pytest

from simspec.claims.base import Effort
from simspec.claims.ledger import entry
from simspec.claims.lengths import packed, padded, partly_padded, tuned, tuned_cases
from tests.weakened import Weakening, claims_of

EFFORT = Effort(0, 1 / 12)

# Module and claim; what stands there; what is put in its place.
WEAKER = {
    "L7-no-case-speaks-against-it": ("one_pass L7", "if found not in (printed, rounded):", "if False:"),
    "L7-repaired-above": ("one_pass L7", "if not low <= found <= high:", "if not low <= found:"),
    "L7-repaired-below": ("one_pass L7", "if not low <= found <= high:", "if not found <= high:"),
    "L30-extends-gives-means": ("one_pass L30", "if found == all(", "if found or not all("),
    "L30-means-give-extends": ("one_pass L30", "if found == all(", "if not found or all("),
    "L10-one-more": ("algorithm_one L10", "<= most(case):", "<= most(case) + 1:"),
    "L11-one-more": ("algorithm_one L11", "second.submitted()) <= most:", "second.submitted()) <= most + 1:"),
    "L31-above": ("algorithm_one L31", "low <= case.submitted() <= high", "low <= case.submitted()"),
    "L31-below": ("algorithm_one L31", "low <= case.submitted() <= high", "case.submitted() <= high"),
    "L35-one-less": ("confidences L35", "before - fewer:", "before - fewer - 1:"),
    "L36-above": ("confidences L36", "low <= lengths[-1] <= high", "low <= lengths[-1]"),
    "L36-below": ("confidences L36", "low <= lengths[-1] <= high", "lengths[-1] <= high"),
    "L36-alpha-for-alpha-q": ("confidences L36", "math.floor(case.alpha * case.q)", "math.floor(case.alpha)"),
    "L36-passes": ("confidences L36", "if found != meant:", "if False:"),
    "L9-a-tenth": ("tuned L9", "rates[after] < rates[before]", "rates[after] < rates[before] * 9 / 10"),
    "L32-not-less": ("past_best L32", "if best[-1] < found", "if best[-1] <= found"),
    "L32-shortest": ("past_best L32", "if best[-1] < found", "if best[0] < found"),
    "L33-slack": ("past_best L33", ">= share * max(rates):", ">= share * max(rates) * 49 / 50:"),
    "L34-never-missed": ("families L34", "if found not in curve.best():", "if True:"),
    "L37-only-if": ("families L37", "(found in best) == told_by(", "(found not in best) or told_by("),
    "L37-if": ("families L37", "(found in best) == told_by(", "(found in best) or not told_by("),
    "L8-from-1-slack": ("from_one L8-from-1", "if found in best else", "if found <= best[-1] + 1 else"),
    "L32-from-1-not-less": ("from_one L32-from-1", "if best[-1] < found", "if best[-1] <= found"),
    "L32-from-1-shortest": ("from_one L32-from-1", "if best[-1] < found", "if best[0] <= found"),
    "L14-bound-only": ("calibration_regret L14", "if lost <= limit == shift:", "if lost <= limit:"),
    "L14-form-only": ("calibration_regret L14", "if lost <= limit == shift:", "if limit == shift:"),
    "L14b-bound-only": ("calibration_regret L14b", "if lost <= limit == shift:", "if lost <= limit:"),
    "L14b-form-only": ("calibration_regret L14b", "if lost <= limit == shift:", "if limit == shift:"),
    "L14-g-inflated": ("calibration_regret L14", "/ cost[b], a, b))", "/ cost[b] + a / cost[b] / 10, a, b))"),
    "L14b-luckiest-tie": (
        "calibration_regret L14b",
        "chosen = min((d for d, r in enumerate(believed) if r == max(believed)), key=lambda d: true[d])",
        "chosen = believed.index(max(believed))",
    ),
    "L14c-upper-bound": ("tolerance L14c", "if found != formula(", "if found > formula("),
    "L14c-lower-bound": ("tolerance L14c", "if found != formula(", "if found < formula("),
    "L38-any-distance": ("regret_reached L38", "apart <= within * case.apart and lost", "lost"),
    "L38-any-loss": ("regret_reached L38", "case.apart and lost == most:", "case.apart:"),
    "L38-most-of-it": ("regret_reached L38", "and lost == most:", "and lost >= most * 4 / 5:"),
    "L39-only-where": ("regret_shares L39", "if (share == 1) == where(", "if share < 1 or where("),
    "L39-where": ("regret_shares L39", "if (share == 1) == where(", "if share == 1 or not where("),
    "L15-slack": ("packed L15", "if found != most[budget]:", "if found < most[budget] * 9 / 10:"),
    "L15d-slack": ("padded L15d", "max) == best:", "max) >= best * 4 / 5:"),
    "L15e-slack": (
        "partly_padded L15e",
        "rate_of(found) == rate_of(best)",
        "rate_of(found) >= rate_of(best) / 2",
    ),
    "L15f-slack": ("partly_padded L15f", "case.rate(found) == case.rate(best)", "case.rate(found) * 2 >= 0"),
}


def room(name: str) -> ModuleType:
    return import_module(f"simspec.claims.lengths.{name}")


@pytest.mark.parametrize("claim", sorted({claim for claim, _, _ in WEAKER.values()}))
def test_the_rule_as_it_is_has_nothing_to_complain_of(claim: str) -> None:
    where, name = claim.split()
    (own,) = claims_of([room(where)], name)
    assert entry(own, EFFORT).complaints == ()


@pytest.mark.parametrize("weakening", WEAKER)
def test_a_weaker_rule_is_noticed(weakening: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (where, name), old, new = WEAKER[weakening][0].split(), *WEAKER[weakening][1:]
    (own,) = Weakening(weakening, room(where), old, new, name).claims(monkeypatch)
    assert entry(own, EFFORT).complaints


@pytest.mark.parametrize(
    ("module", "rule", "name"),
    [
        (tuned, "against_best", "L8"),
        (packed, "has_best", "L15b"),
        (padded, "has_best", "L15-padded"),
        (padded, "has_best", "L15c"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_rule_that_always_agrees_is_noticed(
    module: ModuleType, rule: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules that several modules share."""
    monkeypatch.setattr(module, rule, lambda *_: None)
    (own,) = claims_of([module], name)
    assert entry(own, EFFORT).complaints


def test_the_premise_of_tuned_claims_is_in_their_words() -> None:
    assert "T0 > 0" in tuned_cases.PAYS
    for claim in (tuned.L8, tuned.L9):
        assert claim.repaired is not None
        assert tuned_cases.PAYS in claim.statement.words
        assert tuned_cases.PAYS_FORMULA in claim.repaired.formula
    assert "T never falls" in partly_padded.L15E_REPAIRED.formula
