"""Where a gain changes sign: worked cases, and the interval against a scan of every load."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from simspec.streams import stream
from simspec.sweep.crossing import crossover


@pytest.mark.parametrize(
    ("gains", "verdict", "load"),
    [
        ([[3.0], [1.0], [-1.0]], "stops paying", 3.0),  # from 2 to 4, halfway
        ([[3.0], [1.0], [-3.0]], "stops paying", 2.5),  # a quarter of the way
        ([[-1.0], [0.0], [1.0]], "starts paying", 2.0),
        ([[2.0], [1.0], [0.5]], "pays", None),
        ([[-2.0], [0.0], [-0.5]], "does not pay", None),
        ([[0.0], [0.0], [0.0]], "undecided", None),
    ],
)
def test_one_replication_by_hand(gains, verdict, load):
    found = crossover([1.0, 2.0, 4.0], gains)
    assert (found.verdict, found.load) == (verdict, load)
    assert found.low is found.high is None


def test_the_first_turn_counts_and_undefined_gains_are_passed_over():
    found = crossover([1.0, 2.0, 3.0, 4.0, 5.0], [[1.0], [None], [-1.0], [1.0], [-1.0]])
    assert (found.load, found.before, found.after) == (2.0, 1.0, 3.0)
    assert found.told == (1.0, 3.0, 4.0, 5.0)


def test_a_gain_that_flickers_within_its_luck_changes_no_sign():
    # Means -.05 and .05, and a spread of 1: not told from zero. Then 2 and -2, which are.
    noise = np.array([1.0, -1.0, 0.5, -0.5])
    gains = [(noise - 0.05).tolist(), (noise + 0.05).tolist(), [2.0, 2.1, 1.9, 2.0]]
    assert crossover([1.0, 2.0, 3.0], gains).verdict == "pays"
    assert crossover([1.0, 2.0], gains[:2]).verdict == "undecided"
    found = crossover([1.0, 2.0, 3.0, 4.0], [*gains, [-2.0, -2.1, -1.9, -2.0]])
    assert found.verdict == "stops paying"
    assert (found.before, found.after) == (3.0, 4.0)
    assert found.load == pytest.approx(3.5)


@given(st.integers(0, 10_000), st.integers(2, 8))
def test_the_interval_holds_the_loads_whose_gain_is_not_told_from_zero(seed, many):
    """Against a scan of 2,000 loads, each with its own Student's interval."""
    random = stream(seed, "gains")
    loads = np.cumsum(random.uniform(1, 3, 4))
    gains = np.array([[4.0], [2.0], [-1.0], [-4.0]]) + random.normal(0, 0.5, (4, many))
    found = crossover(loads.tolist(), gains.tolist())
    if found.load is None or found.low is None or found.high is None:
        assert found.verdict in ("undecided", "pays", "does not pay")
        return
    between = np.linspace(found.before, found.after, 2000)
    at = np.array([np.interp(between, loads, gains[:, r]) for r in range(many)])
    half = stats.t.ppf(0.975, many - 1) * at.std(axis=0, ddof=1) / many**0.5
    inside = between[np.abs(at.mean(axis=0)) <= half]
    step = between[1] - between[0]
    assert found.before < found.low <= found.load <= found.high < found.after
    if len(inside):  # an interval narrower than the scan's step is seen by none
        assert found.low == pytest.approx(inside[0], abs=1.01 * step)
        assert found.high == pytest.approx(inside[-1], abs=1.01 * step)
    else:
        assert found.high - found.low < step


def test_less_luck_a_narrower_interval():
    noise = np.array([1.0, -1.0, 0.5, -0.5])
    wide, narrow = (
        crossover([1.0, 2.0], [(3 + scale * noise).tolist(), (-3 - scale * noise).tolist()])
        for scale in (1.0, 0.1)
    )
    assert wide.load == pytest.approx(narrow.load) == pytest.approx(1.5)
    assert narrow.high - narrow.low <= wide.high - wide.low
