"""The claims on serving: the loop that can go wrong is the engine's; M9c's rule decides what it says."""

from __future__ import annotations

import pytest
from hypothesis import given

from simspec.claims.base import Effort
from simspec.claims.serving import blind_policies
from simspec.claims.serving.laws import lived
from simspec.claims.serving.plain_engine import serve_plainly, supported
from simspec.strategies.serving import all_scenarios, impatient, scenarios
from simspec.strategies.small_engines import Scenario
from tests.weakened import Weakening, missed


@given(scenarios(open_loop=True))
def test_the_plain_loop_is_the_engine(scenario: Scenario) -> None:
    assert serve_plainly(scenario) == lived(scenario)


def test_the_plain_loop_is_the_engine_for_all_small_scenarios() -> None:
    open_ones = [s for s in all_scenarios(0) if supported(s)]
    assert len(open_ones) > 60
    for scenario in open_ones:
        assert serve_plainly(scenario) == lived(scenario)


def test_the_plain_loop_refuses_what_it_does_not_know() -> None:
    for scenario in impatient(0):
        if not supported(scenario):
            with pytest.raises(ValueError, match="no open loop"):
                serve_plainly(scenario)


EITHER = "confidence = self._either(truth.confidence, other.confidence)"
WEAKENED = [
    Weakening("nothing compared", blind_policies, "if was != now:", "if False:", "M9c"),
    Weakening("steps before alone", blind_policies, "range(k + 1):", "range(k):", "M9c"),
    Weakening("confidences stay", blind_policies, EITHER, "confidence = truth.confidence", "M9c"),
]


@pytest.mark.parametrize("case", WEAKENED, ids=str)
def test_a_weakened_rule_is_missed(case: Weakening, monkeypatch: pytest.MonkeyPatch) -> None:
    (claim,) = case.claims(monkeypatch)
    assert missed(claim, Effort(0, 0.1))


def test_the_rule_as_it_is_is_not() -> None:
    assert not missed(blind_policies.M9C, Effort(0, 0.1))
