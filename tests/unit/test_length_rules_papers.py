"""Published length rules, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from simspec.errors import BadInput
from simspec.speculation.lengths import LengthRule, LibraSpec, View
from simspec.speculation.lengths_libraspec import ClampedLibraSpec, RepairedLibraSpec, TheoremLibraSpec
from simspec.speculation.lengths_thresholds import FailFast, SpecDecPlusPlus, Svip, WeakToken


def decided(rule: LengthRule, q, seconds=None, entropy=None) -> tuple[int, int]:
    """Drafted and submitted."""
    q = np.array([q], dtype=float)
    depth = q.shape[1]
    priced = np.ones((1, depth + 1)) if seconds is None else np.array([seconds], dtype=float)
    view = View(q, np.array([depth]), priced, None if entropy is None else np.array([entropy]))
    found = rule.decide(view, rule.begin(1))
    return int(found.drafted[0]), int(found.submitted[0])


# LibraSpec and its repairs.


@pytest.mark.parametrize("block", [1, 7, 10, 60, 64])
def test_clamped_is_printed_but_for_its_overshoot(block):
    for q in (0.5, 0.9, 0.97, 0.99):
        _, printed = decided(LibraSpec(2.2, block, 60), [q] * 90)
        drafted, clamped = decided(ClampedLibraSpec(2.2, block, 60), [q] * 90)
        assert clamped == min(printed, 60)
        assert drafted % block == 0
        assert clamped <= drafted < max(clamped, 60) + block
    # Constant .99 is submitted without end: printed to 61 at n 1.
    assert decided(LibraSpec(2.2, 1, 60), [0.99] * 90) == (61, 61)
    assert decided(ClampedLibraSpec(2.2, 1, 60), [0.99] * 90) == (60, 60)


def test_theorem_and_algorithm_differ():
    """alpha 2, q = 1/4, 1. Theorem: eps_1 = 1, as 2 - 1 < 2 (1/4 + 1/4) fails, so 1. Algorithm 1: floor(2 x
    1/2 + 1) = 2 and floor(2 x 1 + 2) = 4, so 2."""
    assert decided(TheoremLibraSpec(2.0, 2, 9), [0.25, 1.0]) == (2, 1)
    assert decided(LibraSpec(2.0, 2, 9), [0.25, 1.0]) == (2, 2)


def test_theorem_extends_and_is_clamped():
    """alpha 2, blocks of 2, q = 1. Two tokens drafted: d' < 2 x 2 + 1 gives 4, d' < 2 x 1 + 2 gives 3.
    Then from 3, four drafted: d' < 2 x 4 + 1, < 2 x 3 + 2, < 2 x 2 + 3: the least 6."""
    assert decided(TheoremLibraSpec(2.0, 2, 3), [1.0] * 9) == (4, 3)
    assert decided(TheoremLibraSpec(2.0, 2, 6), [1.0] * 9) == (6, 6)
    assert decided(TheoremLibraSpec(2.0, 2, 5), [1.0] * 9) == (6, 5)
    # A confidence of 0 ends it before that token.
    assert decided(TheoremLibraSpec(2.0, 2, 9), [1.0, 1.0, 1.0, 0.0]) == (4, 3)


def test_a_request_with_fewer_drafts_does_not_see_as_far_as_another():
    """alpha 4, blocks of 2. Beside q = 1, 1, .., of which 6 are drafted, 1 .5 1 1 1 0 goes on from 3 with 4
    drafted: 4 (.5 + .5 + .5) = 6 and so 7; a fifth would make it 9, and draft 10."""
    q = np.array([[1.0] * 12, [1.0, 0.5, 1.0, 1.0, 1.0, *[0.0] * 7]])
    found = TheoremLibraSpec(4.0, 2, 12).decide(View(q, np.array([12, 12]), np.ones((2, 13))), np.zeros(2))
    assert (found.drafted[1], found.submitted[1]) == (8, 5)


def test_repaired_takes_the_best_of_what_is_drafted():
    """Rates 1/4, 1.5/5, 1.75/6, 1.975/7: best at 1."""
    q, seconds = [0.5, 0.5, 0.9], [4, 5, 6, 7]
    assert decided(RepairedLibraSpec(3, 3), q, seconds) == (3, 1)
    assert decided(RepairedLibraSpec(1, 3), q, seconds) == (2, 1)
    # Rates 1/1, 2/2, 3/3: the last of equals, and it goes on to the end.
    assert decided(RepairedLibraSpec(1, 9), [1.0, 1.0], [1, 2, 3]) == (2, 2)
    # Rates 1/4, 1.5/9, 2/9, 2.5/9: none at first, or all of a longer block.
    assert decided(RepairedLibraSpec(1, 3), [0.5, 1.0, 1.0], [4, 9, 9, 9]) == (1, 0)
    assert decided(RepairedLibraSpec(3, 3), [0.5, 1.0, 1.0], [4, 9, 9, 9]) == (3, 3)


# Thresholds: the weak token itself is submitted.


@pytest.mark.parametrize(
    ("rule", "q", "length"),
    [
        (WeakToken(), [0.9, 0.4, 0.39, 0.9], 3),
        (WeakToken(), [0.39, 0.9], 1),
        (WeakToken(), [0.4] * 30, 20),
        (WeakToken(0.6, 6), [0.9, 0.59, 0.9], 2),
        (WeakToken(0.6, 6), [0.9] * 9, 6),
        (FailFast(), [0.45] * 70, 60),
        (FailFast(), [*[0.9] * 10, 0.44, *[0.9] * 19], 20),
        (FailFast(), [0.44, *[0.9] * 29], 10),
        (FailFast(0.5, 2, 5), [0.9, 0.9, 0.9, 0.3, 0.9, 0.9], 4),
        (FailFast(0.5, 2, 5), [0.9] * 6, 5),
        # .9 x .8 = .72 and .9 x .8 x .9 = .648: refused with .28, then .352.
        (SpecDecPlusPlus(0.3), [0.9, 0.8, 0.9, 0.9], 3),
        # .5 x .5 x .5 = .125.
        (SpecDecPlusPlus(), [0.5] * 9, 2),
        (SpecDecPlusPlus(0.8), [0.5] * 9, 3),
        (SpecDecPlusPlus(), [0.1, 0.9], 2),
        (SpecDecPlusPlus(), [1.0] * 30, 20),
    ],
    ids=str,
)
def test_thresholds(rule, q, length):
    assert decided(rule, q) == (length, length)


def test_svip():
    """sqrt(.15 H) > .3 where H > .6 nats; confidences do not matter."""
    assert decided(Svip(), [0.0, 0.5, 1.0, 1.0], entropy=[0.1, 0.59, 0.61, 0.0]) == (3, 3)
    assert decided(Svip(), [0.0] * 50, entropy=[0.0] * 50) == (40, 40)
    with pytest.raises(BadInput, match="entropy"):
        decided(Svip(), [0.5])
