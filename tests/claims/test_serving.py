"""The claims on serving: that the loop which can go wrong is the engine's where nothing is spoiled."""

from __future__ import annotations

import pytest
from hypothesis import given

from simspec.claims.serving.laws import lived
from simspec.claims.serving.plain_engine import serve_plainly, supported
from simspec.strategies.serving import all_scenarios, impatient, scenarios
from simspec.strategies.small_engines import Scenario


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
