"""Arrivals: rates, burstiness, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from simspec.errors import BadInput
from simspec.serving.arrivals import ClosedLoop, Gamma, Listed, Poisson, Sizes, open_loop


@pytest.mark.parametrize(("process", "variation"), [(Poisson(4.0), 1.0), (Gamma(4.0, 2.0), 2.0)])
def test_rate_and_variation(process, variation):
    """20,000 gaps: their mean within 3.3 of its deviations, variation / 141; the variation within 6%."""
    gaps = np.diff(process.instants(20_001, 5)) * 1e-9
    assert abs(gaps.mean() - 0.25) < 3.3 * 0.25 * variation / len(gaps) ** 0.5
    assert gaps.std() / gaps.mean() == pytest.approx(variation, rel=0.06)


def test_gamma_of_variation_1_is_poisson_in_distribution():
    gaps = np.diff(Gamma(2.0, 1.0).instants(20_001, 1)) * 1e-9
    # P(gap > mean) = 1 / e for exponential gaps; 3.3 standard deviations of 20,000 draws are .011.
    assert abs((gaps > 0.5).mean() - np.exp(-1)) < 0.0113


def test_a_longer_run_begins_with_the_same_arrivals():
    assert Poisson(3.0).instants(50, 9).tolist() == Poisson(3.0).instants(80, 9)[:50].tolist()


def test_listed_keeps_small_gaps_and_equal_instants():
    listed = Listed((0.0, 0.0, 1e-3, 1.0000001))
    assert listed.instants(4, 0).tolist() == [0, 0, 1_000_000, 1_000_000_100]


def test_requests_are_made_one_by_one():
    load = open_loop(Listed((0.0, 1.0)), Sizes(np.array([3, 4]), np.array([5, 6])), 0)
    assert list(load.arrivals) == [(0, (0, 3, 5, -1)), (1_000_000_000, (1, 4, 6, -1))]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Poisson(0.0), "rate is 0.0"),
        (lambda: Poisson(float("inf")), "rate is inf"),
        (lambda: Gamma(1.0, -1.0), "variation is -1.0"),
        (lambda: Listed((0.0, float("nan"))).instants(2, 0), "arrival 1 of nan seconds"),
        (lambda: Listed((1.0, 0.5)).instants(2, 0), "arrival 1 is before the one ahead of it"),
        (lambda: Listed((1.0,)).instants(2, 0), "2 arrivals of a list of 1"),
        (lambda: Sizes(np.array([1, 0]), np.array([1, 1])), "prompt_tokens of request 1 is 0"),
        (lambda: Sizes(np.array([1]), np.array([1, 1])), "1 prompts and 2 outputs"),
        (lambda: Sizes(np.array([1.5]), np.array([1])), "prompt_tokens are float64"),
        (lambda: ClosedLoop(0, []), "0 clients"),
        (lambda: ClosedLoop(1, [], -1.0), "think_seconds of -1.0"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(BadInput, match=message):
        make()
