"""Closed forms against the sums that they close, and against published anchors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.theory.acceptance import emitted_tokens, surviving_tokens
from simspec.theory.chains import Forward, funnel, reach

rates = st.one_of(st.floats(0, 0.999), st.sampled_from([0.0, 0.5, 1.0]))


def sums(a: float, n: int) -> float:
    return sum(a**j for j in range(n + 1))


def verify(seconds: dict[int, float]) -> Forward:
    """Forwards that cost the same at any width."""
    return lambda i, n: np.full_like(np.asarray(n, dtype=float), seconds[i])


@given(rates, st.integers(0, 40))
def test_emitted_and_surviving_tokens_are_their_sums(a: float, n: int) -> None:
    assert emitted_tokens(a, n) == pytest.approx(sums(a, n), rel=1e-9)
    assert surviving_tokens(a, n) == pytest.approx(sum(a**j for j in range(1, n + 1)), rel=1e-9, abs=1e-12)


def test_emitted_tokens_as_an_expectation() -> None:
    """Over every outcome of a block: n accepted, each with its chance, and one token of the target's."""
    for a in (0.1, 0.6, 0.9):
        for gamma in (1, 4, 7):
            chances = [a**k * (1 - a) for k in range(gamma)] + [a**gamma]
            expected = sum(p * (k + 1) for k, p in enumerate(chances))
            assert emitted_tokens(a, gamma) == pytest.approx(expected)


def test_shapes_broadcast() -> None:
    found = emitted_tokens(np.array([[0.5], [1.0]]), np.array([1, 2, 3]))
    np.testing.assert_allclose(found, [[1.5, 1.75, 1.875], [2, 3, 4]])


def test_reach_pays_for_the_target_in_every_cycle() -> None:
    """T = (.05, .3, 1), gamma 4, a_1 = 0: one token a cycle, which costs .2 + .3 + 1."""
    for reached in ("any", "all", "always"):
        found = reach([np.array(0.0), np.array(0.7)], 4, np.array(0.05), verify({2: 0.3, 3: 1.0}), reached)
        assert found == pytest.approx(1.50)


@given(st.lists(rates, min_size=1, max_size=4), st.integers(1, 10), st.floats(0, 1))
def test_reach_is_its_formula(alphas: list[float], gamma: int, first: float) -> None:
    levels = len(alphas) + 1
    seconds = {i: 0.1 * i + 0.02 * i * i for i in range(2, levels + 1)}
    for reached in ("any", "all", "always"):
        total, product = gamma * first, 1.0
        for i in range(2, levels + 1):
            weight = 1.0
            if 2 < i < levels and reached != "always":
                for a in alphas[: i - 2]:
                    weight *= a
                weight = weight**gamma if reached == "all" else weight
            total += weight * seconds[i]
        for a in alphas:
            product *= a
        found = reach([np.array(a) for a in alphas], gamma, np.array(first), verify(seconds), reached)
        assert found == pytest.approx(total / sums(product, gamma), rel=1e-9)


@pytest.mark.parametrize(("wide", "width"), [(False, 1.0), (True, 5.0)])
def test_reach_asks_for_single_tokens_or_for_the_whole_block(wide: bool, width: float) -> None:
    asked = []

    def forward(i: int, n: np.ndarray) -> np.ndarray:
        asked.append((i, float(n)))
        return np.asarray(1.0)

    reach([np.array(0.5), np.array(0.5)], 4, np.array(0.1), forward, wide=wide)
    assert asked == [(2, width), (3, width)]


@given(st.lists(rates, min_size=1, max_size=4), st.integers(1, 10), st.booleans())
def test_funnel_is_its_formula(alphas: list[float], gamma: int, replace: bool) -> None:
    """With forwards that cost their width, so that every level's tokens show."""
    total, n = gamma * 0.1, float(gamma)
    for i in range(2, len(alphas) + 2):
        total += i * (n + 1)
        if i <= len(alphas):
            a = alphas[i - 2]
            survive = n if a == 1.0 else a * (1 - a**n) / (1 - a)
            n = survive + 1 if replace else survive
    last = alphas[-1]
    kept = n if last == 1.0 else last * (1 - last**n) / (1 - last)
    found = funnel([np.array(a) for a in alphas], gamma, np.array(0.1), lambda i, w: i * w, replace=replace)
    assert found == pytest.approx(total / (1 + kept), rel=1e-6)


@given(rates, st.integers(1, 10))
def test_all_readings_agree_on_a_pair(a: float, gamma: int) -> None:
    args = ([np.array(a)], gamma, np.array(0.1), verify({2: 1.0}))
    wanted = (0.1 * gamma + 1.0) / sums(a, gamma)
    for found in (reach(*args), funnel(*args), funnel(*args, replace=True)):
        assert found == pytest.approx(wanted, rel=1e-9)
