"""Tests and intervals over prompts: worked cases, exactness, and false alarms under dependence."""

from __future__ import annotations

from itertools import product
from typing import Literal

import numpy as np
import pytest
from scipy import stats

from simspec.claims.empirical.resample import (
    PValue,
    bootstrap_counts,
    both_sides,
    even_scores,
    flips,
    holm,
    ratio,
    sums_by,
    upper,
)
from simspec.streams import stream

CASES = 300
# With a true rate of .05 more rejections than this come once in 10,000 runs.
MOST = int(stats.binom.ppf(0.9999, CASES, 0.05))


def luck(*name: str | int) -> np.random.Generator:
    return stream(0, "test", *name)


def test_holm_by_hand() -> None:
    # Sorted .01 .02 .03 .5 times 4 3 2 1: .04 .06 .06 .5 (never falling).
    assert holm(np.array([0.5, 0.01, 0.03, 0.02])) == pytest.approx([0.5, 0.04, 0.06, 0.06])
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]
    assert holm(np.array([])).tolist() == []


def test_sums_and_ratio() -> None:
    sums = sums_by(np.array([0, 0, 2]), np.array([True, False, True]), 3)
    assert sums.tolist() == [1.0, 0.0, 1.0]
    counts = np.array([[1.0, 1.0, 1.0], [3.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
    value, draws = ratio(sums, np.array([2.0, 0.0, 1.0]), counts)
    assert value.value == pytest.approx(2 / 3)
    assert draws[:2] == pytest.approx([2 / 3, 1 / 2])
    assert np.isnan(draws[2])  # only a prompt without any place
    assert ratio(sums, np.zeros(3), counts)[0].value is None


def test_sums_of_nothing() -> None:
    none = np.array([], dtype=np.int64)
    assert sums_by(none, none.astype(np.float64), 2).tolist() == [0.0, 0.0]


def test_bootstrap_draws_as_many_prompts_as_there_are() -> None:
    counts = bootstrap_counts(7, 50, luck("counts"))
    assert counts.shape == (50, 7)
    assert (counts.sum(axis=1) == 7).all()


def test_flips_approach_the_exact_test() -> None:
    """All 2^8 sign patterns, counted, against the sampled ones."""
    u = np.array([1.0, 2.0, 0.5, -0.3, 1.2, 0.8, 2.5, -1.0])
    exact = np.mean([abs(np.dot(s, u)) >= u.sum() - 1e-9 for s in product((-1, 1), repeat=8)])
    found = flips(u, 40_000, luck("exact"))
    assert found is not None
    # Standard error of the sampled share: sqrt(.05 / 40,000) = .001.
    assert found.p == pytest.approx(exact, abs=0.005)
    assert found.least == 2.0**-7


def test_flips_of_nothing_is_no_test() -> None:
    assert flips(np.zeros(5), 100, luck("nothing")) is None
    assert flips(np.zeros((5, 3)), 100, luck("nothing")) is None
    assert flips(np.zeros((0, 3)), 100, luck("nothing")) is None


def test_flips_do_not_depend_on_scale_or_on_prompts_without_places() -> None:
    u = luck("scale").normal(0.4, 1.0, (12, 3))
    plain = flips(u, 500, luck("same"))
    padded = np.concatenate([u * np.array([1.0, 1e6, 1e-6]), np.zeros((4, 3))])
    assert plain is not None
    scaled = flips(padded, 500, luck("same"))
    assert scaled is not None
    assert scaled.p == pytest.approx(plain.p)
    assert scaled.least == plain.least


@pytest.mark.parametrize("statistic", ["quadratic", "absolute"])
def test_flips_alarm_rarely_under_dependence(statistic: Literal["quadratic", "absolute"]) -> None:
    """Scores of mean zero whose four entries depend on each other, skewed, of unlike size by prompt."""
    rejected = 0
    for case in range(CASES):
        random = luck("null", case)
        shared = random.exponential(1.0, (30, 1)) - 1.0
        size = random.uniform(0.5, 3.0, (30, 1))
        scores = size * (shared + 0.5 * random.normal(0.0, 1.0, (30, 4)))
        found = flips(scores, 199, random, statistic)
        assert found is not None
        rejected += found.p <= 0.05
    assert rejected <= MOST


def test_taking_positions_for_prompts_alarms_often() -> None:
    """What the unit is for: the same test over positions that repeat each other is wrong most of the time."""
    wrong = 0
    for case in range(100):
        random = luck("repeated", case)
        positions = np.repeat(random.normal(0.0, 1.0, 20), 30)
        found = flips(positions, 199, random)
        assert found is not None
        wrong += found.p <= 0.05
    assert wrong > 50


def test_flips_find_a_shift() -> None:
    found = flips(luck("shift").normal(1.0, 1.0, 30), 999, luck("shift", 1))
    assert found is not None
    assert found.p <= 0.002


def test_upper_counts_ties_and_is_never_zero() -> None:
    assert upper(3.0, np.array([1.0, 2.0, 3.0, 4.0])) == PValue(3 / 5, 1 / 5)
    assert upper(9.0, np.zeros(9), least=0.5) == PValue(0.1, 0.5)


def test_both_sides_is_uniform_under_exchangeability() -> None:
    """One of 20 equals: each rank as likely as any other, so that p <= .1 in a tenth of the cases."""
    small = 0
    for case in range(CASES):
        values = luck("ranks", case).exponential(1.0, 20)
        small += both_sides(float(values[0]), values[1:]).p <= 0.1
    assert stats.binomtest(small, CASES, 0.1).pvalue > 1e-3


def test_even_scores_cancel_the_pooled_rate() -> None:
    """They sum to the departures from the pooled rate, and rates that are all the same leave zeros."""
    tried = np.array([[10.0, 5.0], [20.0, 10.0]])
    assert even_scores(0.4 * tried, tried) == pytest.approx(np.zeros((2, 2)))
    values = np.array([[6.0, 1.0], [12.0, 2.0]])
    # Pooled 21/45; places 18/30 and 3/15: departures 18 - 14 = 4 and 3 - 7 = -4.
    assert even_scores(values, tried).sum(axis=0) == pytest.approx([4.0, -4.0])


def test_even_scores_do_not_see_rates_that_differ_between_prompts_alone() -> None:
    """.2 and .8 at both places of two prompts whose places are tried in the same proportion."""
    tried = np.array([[10.0, 5.0], [20.0, 10.0]])
    values = np.array([[0.2], [0.8]]) * tried
    assert even_scores(values, tried) == pytest.approx(np.zeros((2, 2)))
