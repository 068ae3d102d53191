"""Acceptance and confidence, against counting by hand and by running the toy's models."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.compare.calibration import auroc, calibrate, first_drafts, survival
from tests.toy import LOOKUP, MIDDLE, SMALL, Setting, Toy

HALVES = st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=40)


def arrays(rows):
    return np.array([c / 8 for c, _ in rows]), np.array([a for _, a in rows])


@pytest.fixture(scope="module")
def toy():
    return Toy(Setting(seed=3, prompts=4, output_tokens=14, order=1))


@given(HALVES)
def test_scores_are_what_a_loop_over_tokens_counts(rows):
    confidence, accepted = arrays(rows)
    found = calibrate(confidence, accepted, bins=4)
    assert sum(b.tokens for b in found.bins) == found.tokens == len(rows)
    assert sum(b.accepted for b in found.bins) == sum(a for _, a in rows)
    assert found.brier == pytest.approx(sum((c / 8 - a) ** 2 for c, a in rows) / len(rows))
    pairs = [(g, b) for g, up in rows if up for b, down in rows if not down]
    if pairs:
        won = sum((g > b) + 0.5 * (g == b) for g, b in pairs) / len(pairs)
        assert found.auroc == pytest.approx(won)
    else:
        assert found.auroc is None


@given(HALVES)
def test_bins_do_not_part_equal_confidences_and_rise(rows):
    found = calibrate(*arrays(rows), bins=4)
    means = [b.mean_confidence for b in found.bins]
    assert means == sorted(means)
    assert len(set(means)) == len(means)
    assert len(found.bins) <= min(4, len({c for c, _ in rows}))
    gap = abs(found.mean_confidence - found.accepted_share)
    assert gap - 1e-12 <= found.expected_error <= 1.0


def test_distinct_confidences_fill_bins_equally():
    found = calibrate(np.linspace(0.01, 0.99, 40), np.arange(40) % 2 == 0, bins=10)
    assert [b.tokens for b in found.bins] == [4] * 10


def test_a_worked_example():
    # Two bins: {.2, .4} with one accepted of two, {.6, .8} with both.
    found = calibrate(np.array([0.2, 0.4, 0.6, 0.8]), np.array([True, False, True, True]), bins=2)
    assert [(b.tokens, b.accepted) for b in found.bins] == [(2, 1), (2, 2)]
    assert found.expected_error == pytest.approx((abs(0.3 - 0.5) + abs(0.7 - 1.0)) / 2)
    assert found.brier == pytest.approx((0.64 + 0.16 + 0.16 + 0.04) / 4)
    assert found.auroc == pytest.approx(2 / 3)
    assert found.as_json()["bins"][1]["accepted_share_interval"][1] == pytest.approx(1.0)


def test_auroc_says_nothing_of_one_class():
    assert auroc(np.array([0.1, 0.9]), np.array([True, True])) is None


def test_nothing_to_count_is_refused():
    with pytest.raises(ValueError, match="need as many"):
        calibrate(np.empty(0), np.empty(0, dtype=bool))


@pytest.mark.parametrize("drafter", [SMALL, MIDDLE])
def test_first_drafts_are_what_the_model_says_at_every_place(toy, drafter):
    confidence, accepted = first_drafts(toy.trace(), drafter)
    places = [
        ([*prompt, *text[:t]], text[t])
        for prompt, text in zip(toy.prompts, toy.texts, strict=True)
        for t in range(len(text))
    ]
    np.testing.assert_allclose(confidence, [toy.confidence(drafter, seen) for seen, _ in places], rtol=1e-6)
    assert accepted.tolist() == [toy.next_token(drafter, seen) == token for seen, token in places]


@pytest.mark.parametrize("drafter", [SMALL, MIDDLE, LOOKUP])
def test_survival_counts_blocks_that_follow_the_text(toy, drafter):
    found = survival(toy.trace(), drafter, 5)
    accepted, starts = [0] * 5, [0] * 5
    for prompt, text in zip(toy.prompts, toy.texts, strict=True):
        for t in range(len(text)):
            block, _ = toy.draft(drafter, [*prompt, *text[:t]], 5)
            for j in range(1, 6):
                left = text[t : t + j]
                starts[j - 1] += len(left) == j
                accepted[j - 1] += len(left) == j and block[:j] == left
    assert found.accepted.tolist() == accepted
    assert found.starts.tolist() == starts
    for share in found.estimates():
        assert share.low <= share.value <= share.high
