"""Every variant of Eq. 7 on a chain worked by hand; the exact ones against enumeration of every outcome."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.theory.padding import padded_seconds
from simspec.theory.variants import VARIANTS, Given
from tests.profiles import examples

F = Fraction
SECONDS = {2: F(1), 3: F(4)}


def chain(replace: bool = False) -> Given[Fraction]:
    """M_1 > M_2 > M_3: alpha 1/2 and 1/3, alpha_13 = 1/4, two drafts of 1/10 s each; a forward over n tokens
    takes its model's single-token time and 1/10 s for each further token."""
    return Given(
        alphas=[F(1, 2), F(1, 3)],
        gamma=2,
        draft_seconds=F(1, 10),
        verify=lambda i, n: SECONDS[i] + (n - 1) / 10,
        end_to_end=F(1, 4),
        replace=replace,
    )


# E(1/6, 2) = 1 + 1/6 + 1/36 = 43/36; single times: 2/10 + 1 + 4 = 26/5.
SINGLE = F(26, 5) / F(43, 36)

BY_HAND = {
    "reach": SINGLE,
    "reach-all": SINGLE,
    "reach-always": SINGLE,
    # E(1/4, 2) = 21/16.
    "reach-direct": F(26, 5) / F(21, 16),
    # Each verifier reads three tokens, 2/10 more: 28/5.
    "reach-wide": F(28, 5) / F(43, 36),
    # E(1/2, 2) = 7/4 tokens from M_2, its own with them: M_3 reads one more, 4 + 7/40; M_2 6/5, drafts 1/5.
    # Tokens: (1 - alpha_2 phi(alpha_2)) / (1 - alpha_2), phi(1/3) = 1/2 1/3 + 1/4 1/9 + 1/4 1/27 = 11/54.
    "nested": (F(1, 5) + F(6, 5) + F(4) + F(7, 40)) / ((1 - F(11, 162)) / F(2, 3)),
    # n by level from M_2: 2 drafts, lengths kept 0, 1, 2 with 1/2, 1/4, 1/4. M_3 reads one more: 4, 4.1, 4.2.
    # Tokens E(1/3, 0) = 1, E(1/3, 1) = 4/3, E(1/3, 2) = 13/9.
    "exact": (F(1, 5) + F(6, 5) + F(4) + F(1, 40) + F(2, 40)) / (F(1, 2) + F(1, 3) + F(13, 36)),
    # 0.1 + 1 + 4 = 51/10 over alpha 1/6.
    "product": F(51, 10) * 6,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_chain_worked_by_hand(name: str) -> None:
    assert VARIANTS[name](chain()) == BY_HAND[name]


def test_mean_lengths_that_are_no_fractions_by_hand_in_floats() -> None:
    """funnel: S(1/2, 2) = 3/4 reach M_3. polybasic: L_2 = 7/4, L_3 = E(1/3, 7/4)."""
    floats = Given(
        alphas=[np.array(1 / 2), np.array(1 / 3)],
        gamma=2,
        draft_seconds=np.array(0.1),
        verify=lambda i, n: float(SECONDS[i]) + (n - 1) / 10,
        end_to_end=np.array(1 / 4),
    )
    survive = 1 / 3 * (1 - (1 / 3) ** 0.75) / (2 / 3)
    assert VARIANTS["funnel"](floats) == pytest.approx((0.2 + 1.2 + 4.075) / (1 + survive))
    long = (1 - (1 / 3) ** 2.75) / (2 / 3)
    assert VARIANTS["polybasic"](floats) == pytest.approx(4 / long + 1 / 1.75 + 2 * 0.1 / 1.75)


def test_product_is_infinite_where_nothing_is_accepted() -> None:
    never = Given([np.array(0.0)], 1, np.array(0.1), lambda i, n: np.ones_like(n), np.array(0.0))
    assert VARIANTS["product"](never) == np.inf


def by_enumeration(asked: Given[Fraction]) -> Fraction:
    """Whether each level keeps each place of its block, every combination, with its chance."""
    levels, rates = len(asked.alphas) + 1, asked.alphas
    places = asked.gamma + (levels - 2 if asked.replace else 0)
    seconds = tokens = F(0)
    for bits in product((False, True), repeat=places * len(rates)):
        chance, block = F(1), asked.gamma
        spent = asked.gamma * asked.draft_seconds
        for j, bit in enumerate(bits):
            rate = rates[j // places]
            chance *= rate if bit else 1 - rate
        if not chance:
            continue
        for level in range(2, levels + 1):
            mine = bits[(level - 2) * places : (level - 1) * places]
            if block or level == levels:
                spent += asked.verify(level, F(block + 1))
            kept = next((n for n in range(block) if not mine[n]), block)
            block = kept + int(asked.replace or level == levels)
        seconds += chance * spent
        tokens += chance * block
    return seconds / tokens


small = st.sampled_from([F(0), F(1, 3), F(1, 2), F(4, 5), F(1)])


@given(st.lists(small, min_size=1, max_size=2), st.integers(1, 3), st.booleans(), st.integers(0, 3))
@examples(1)
def test_exact_is_what_enumeration_finds(
    alphas: list[Fraction], gamma: int, replace: bool, step: int
) -> None:
    """Forwards that cost more by the token squared, so that a mean length would not do."""
    asked = Given(alphas, gamma, F(1, 7), lambda i, n: i + step * n * n, F(0), replace)
    assert VARIANTS["exact"](asked) == by_enumeration(asked)


def test_exact_with_four_levels_is_what_enumeration_finds() -> None:
    asked = Given([F(1, 2), F(2, 3), F(3, 4)], 2, F(1, 7), lambda i, n: i + n * n, F(0))
    assert VARIANTS["exact"](asked) == by_enumeration(asked)


@given(st.integers(1, 4), st.lists(st.integers(0, 3), min_size=2, max_size=4), st.integers(0, 99))
@examples(2)
def test_padding_is_what_enumeration_of_rows_finds(rows: int, weights: list[int], seed: int) -> None:
    """Widths of every row, every combination; in fractions exactly, and floats beside them."""
    total = sum(weights) or 1
    idle, *chances = [F(w, total) for w in weights] if sum(weights) else [F(1)] + [F(0)] * (len(weights) - 1)
    count = len(chances)
    prices = np.random.default_rng(seed).integers(0, 50, (rows + 1, count))
    prices[0] = 0
    expected = F(0)
    for case in product(range(count + 1), repeat=rows):
        chance = F(1)
        for width in case:
            chance *= idle if width == 0 else chances[width - 1]
        running = sum(w > 0 for w in case)
        if running:
            expected += chance * int(prices[running, max(case) - 1])
    found = padded_seconds(np.array(chances, dtype=object), rows, prices.astype(object))
    assert found == expected
    floats = np.array([float(c) for c in chances])
    assert padded_seconds(floats, rows, prices.astype(float)) == pytest.approx(float(expected), abs=1e-9)
    # Two prices at once, and draws along an axis of their own.
    both = padded_seconds(np.stack([floats, floats], axis=1), rows, np.stack([prices, 2.0 * prices], axis=2))
    np.testing.assert_allclose(both, float(expected) * np.array([[1, 2], [1, 2]]), atol=1e-9)
