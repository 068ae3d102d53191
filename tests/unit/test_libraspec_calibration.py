"""Confidence against acceptance on made-up data whose truth is known, and rounds worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from simspec.compare.bands import with_interval
from simspec.compare.batches import draw_prompts
from simspec.compare.calibration import Drafts, drafts
from simspec.compare.calibration_scores import brier_parts, drift, scores
from simspec.compare.length_runs import LengthSettings, replayed
from simspec.compare.libraspec import wrong_confidences
from simspec.compare.libraspec.slower_rounds import Affine, affine, exact_length, slower_rounds, worked
from simspec.compare.recalibrated import METHODS, chances
from simspec.cost.models import AffineCost
from simspec.speculation.lengths import Decision, ExactMarginal, LibraSpec
from simspec.speculation.lengths_libraspec import TheoremLibraSpec
from simspec.streams import stream
from tests.toy import LOOKUP, MIDDLE, SMALL, TARGET, Setting, Toy


@pytest.fixture(scope="module")
def trace():
    return Toy(Setting(seed=4, prompts=12, output_tokens=20, block_length=6)).trace()


def cost(token: float = 1e-4, ratio: float = 0.1) -> AffineCost:
    """2 ms a forward and so many seconds a token, nothing for what is held; made up."""
    ratios = {SMALL: ratio, MIDDLE: 4 * ratio, LOOKUP: 0.0}
    return AffineCost("made-up", "SYNTHETIC", TARGET, 2e-3, token, 0.0, 0.0, ratios)


def made_up(share, many: int = 40_000, longest: int = 26) -> Drafts:
    """Confidences that are uniform; a token is accepted with the chance ``share`` of its own."""
    luck = stream(5, "made-up drafts")
    sure, place = luck.random(many), luck.integers(0, longest, many)
    nothing = np.zeros(many, dtype=np.int64)
    return Drafts(nothing, place, nothing, sure, luck.random(many) < share(sure))


def test_scores_of_a_known_miscalibration():
    # Ten tokens a confidence; .2 is right in 5 of 10, .8 in 6 of 10: bias (.2 + .8 - .5 - .6) / 2 = -.05,
    # ECE (.3 + .2) / 2.
    sure = np.repeat([0.2, 0.8], 10)
    right = np.array([1] * 5 + [0] * 5 + [1] * 6 + [0] * 4, dtype=bool)
    found = scores(sure, right, np.zeros(20, dtype=np.int64), np.ones((1, 1)))
    assert found.bias[0] == pytest.approx(-0.05)
    assert found.ece[0] == pytest.approx(0.25)
    assert found.brier[0] == pytest.approx((5 * 0.64 + 5 * 0.04 + 6 * 0.04 + 4 * 0.64) / 20)
    # Of 11 x 9 pairs 6 x 5 are won, and 5 x 5 + 6 x 4 are ties.
    assert found.auroc[0] == pytest.approx((30 + 49 / 2) / 99)
    # The isotonic map says .5 and .6: against it, against the mean .55, and the variance of acceptance.
    mapped = (10 * 0.25 + 10 * 0.24) / 20
    assert brier_parts(sure, right) == pytest.approx((found.brier[0] - mapped, 0.2475 - mapped, 0.2475))


def test_a_calibrated_drafter_shows_the_error_of_chance_alone():
    by_chance = []
    for seed in range(20):
        luck = stream(seed, "calibrated")
        sure = luck.random(3000)
        found = scores(sure, luck.random(3000) < sure, np.zeros(3000, dtype=np.int64), np.ones((1, 1)))
        by_chance.append(found.ece[0])
        told = found.ece_by_chance
    assert np.mean(by_chance) == pytest.approx(told, rel=0.15)


def test_drift_is_the_slope_it_was_given():
    # Never accepted, so confidence - acceptance is .1 + .03 a place.
    place = np.tile(np.arange(5), 4)
    nothing = np.zeros(20, dtype=np.int64)
    made = Drafts(nothing, place, nothing, 0.1 + 0.03 * (place + 1), np.zeros(20, dtype=bool))
    assert drift(made, np.ones((1, 1))) == pytest.approx([0.03])
    flat = replace(made, place=nothing)
    assert np.isnan(drift(flat, np.ones((1, 1)))[0])


def test_drafts_are_what_a_loop_over_blocks_counts(trace):
    index = trace.drafters[SMALL]
    wanted = []
    for flat in range(len(trace.tokens)):
        for place in range(int(min(index.length[flat], trace.remaining[flat]))):
            wanted.append((flat, place, place < index.matched[flat]))
            if place >= index.matched[flat]:
                break
    found = drafts(trace, SMALL)
    told = zip(found.flat.tolist(), found.place.tolist(), found.accepted.tolist(), strict=True)
    assert list(told) == wanted
    some = np.arange(len(trace.tokens)) % 3 == 0
    assert set(drafts(trace, SMALL, some).flat) == {flat for flat, _, _ in wanted if flat % 3 == 0}


@pytest.mark.parametrize("method", METHODS)
def test_maps_of_calibrated_confidences_are_nearly_the_identity(method):
    told = np.tile(np.linspace(0.05, 0.95, 19)[:, None], (1, 26))
    assert np.abs(METHODS[method](made_up(lambda q: q))(told) - told).max() < 0.1
    assert np.abs(METHODS[method](made_up(lambda q: q))(told) - told).mean() < 0.02


@pytest.mark.parametrize("method", ["isotonic", "isotonic by place"])
def test_isotonic_maps_find_a_known_miscalibration(method):
    told = np.tile(np.linspace(0.05, 0.95, 19)[:, None], (1, 26))
    found = METHODS[method](made_up(lambda q: q**2))(told)
    assert np.abs(found - told**2).mean() < 0.02


def test_the_temperature_is_found():
    told = np.tile(np.array([[0.1], [0.3], [0.9]]), (1, 26))
    found = METHODS["temperature by place"](made_up(lambda q: 1 / (1 + ((1 - q) / q) ** 0.5)))(told)
    assert found == pytest.approx(1 / (1 + ((1 - told) / told) ** 0.5), abs=0.03)


@pytest.mark.parametrize("method", METHODS)
def test_a_half_is_told_nothing_of_its_own_acceptance(trace, method):
    before = chances(trace, SMALL, METHODS[method])
    index = trace.drafters[SMALL]
    even = trace.prompt % 2 == 0
    spoilt = replace(index, matched=np.where(even, 0, index.matched))
    after = chances(replace(trace, drafters={**trace.drafters, SMALL: spoilt}), SMALL, METHODS[method])
    assert np.array_equal(before[even], after[even])
    assert not np.array_equal(before[~even], after[~even])


def test_nothing_changes_where_p_hat_is_q(trace, monkeypatch):
    monkeypatch.setattr(wrong_confidences, "isotonic_by_place", lambda _: lambda confidence: confidence)
    found = wrong_confidences.wrong_confidences(trace, SMALL, cost(), 8, 1)
    assert list(found) == list(wrong_confidences.RULES)
    for rule in found.values():
        for where in ("every", "visited"):
            told = rule[where]
            assert told["changed"] == told["slower"] == told["faster"] == told["change"] == [0.0] * 3
            assert told["most"] == 0
            assert told["rounds"] > 0
            assert rule["end_to_end"][where] == [0.0, 0.0, 0.0]


def test_confidences_that_are_wrong_change_lengths_and_time(trace, monkeypatch):
    # p-hat says that nothing is ever accepted: the exact rule drafts nothing more than it must.
    monkeypatch.setattr(
        wrong_confidences, "isotonic_by_place", lambda _: lambda confidence: 1e-6 * confidence
    )
    found = wrong_confidences.wrong_confidences(trace, SMALL, cost(), 8, 1)["exact-marginal"]
    assert found["every"]["changed"][0] > 50
    assert found["every"]["longer"][0] == 0.0
    assert found["every"]["change"][0] < 0.0
    # A token a cycle then, each for a forward of the target (2.1 ms) and at most one of the drafter (.21).
    rule = wrong_confidences.rules_of(trace)["exact-marginal"]
    by_q = replayed(trace, SMALL, cost(), LengthSettings(1, 2, 1), {"by q": rule})["by q"].seconds_per_token[
        0
    ]
    low, high = 100 * (by_q / 2.31e-3 - 1), 100 * (by_q / 2.1e-3 - 1)
    assert low > 1 or high < -1
    assert low - 0.01 <= found["end_to_end"]["every"][0] <= high + 0.01


def test_two_rounds_compared_by_hand(trace):
    among = np.zeros(len(trace.tokens), dtype=bool)
    among[[0, 1]] = True
    nothing = np.zeros(len(trace.tokens), dtype=np.int64)
    longer, ones = nothing.copy(), np.ones(len(trace.tokens))
    longer[0] = 8
    q, p = ones.copy(), ones.copy()
    q[0] = 0.75  # a quarter of the tokens a second forgone in one round of two
    counts = draw_prompts(trace, 4, 0).counts()
    found = wrong_confidences.compared(
        trace, among, Decision(nothing, nothing), Decision(longer, longer), (q, p), counts
    )
    assert found["rounds"] == 2
    assert [found[k][0] for k in ("changed", "longer", "slower", "faster")] == [50.0, 50.0, 50.0, 0.0]
    assert (found["change"][0], found["absolute"], found["most"]) == (4.0, 8.0, 8)
    assert found["loss"][0] == 12.5
    assert found["changes"] == [0.0] * 6 + [50.0] + [0.0] * 5 + [50.0]


def test_a_round_of_the_exact_rule_by_hand():
    # T = 2 + d microseconds. By q = (.8, .3): 1/2, 1.8/3 = .6, 2.04/4 = .51, so 1 token; by p = (.8, .9):
    # 1.8/3 = .6, 2.52/4 = .63, so 2. Under p that is .6 against .63 tokens a microsecond: 1/21 less.
    found = worked(ExactMarginal(), np.array([0.8, 0.3]), np.array([0.8, 0.9]), Affine(2, 1, 0.0))
    assert found is not None
    assert (found["length_q"], found["length_p"]) == (1, 2)
    assert (found["speed_q"], found["speed_p"]) == (6e5, 6.3e5)
    assert found["lost"] == pytest.approx(100 / 21)
    assert (found["q"], found["p"]) == ([0.8, 0.3], [0.8, 0.9])
    # The other way round acting on what is told is better.
    assert worked(ExactMarginal(), np.array([0.8, 0.9]), np.array([0.8, 0.9]), Affine(2, 1, 0.0)) is None


def test_lengths_in_rationals_by_hand():
    told, true = [[Fraction(x, 10) for x in each] for each in ((4, 9, 1), (5, 9, 1))]
    rule = LibraSpec(alpha=2.2, block=1, longest=24)
    # 2.2 x .4 + 1 = 1.88: 1. With .5 it is 2.1: 2; then the less of 3.98 and 3.09: 3; then the last token's
    # .22 + 3: 3, which is no further.
    assert exact_length(rule, told, []) == (1, 1)
    assert exact_length(rule, true, []) == (3, 3)
    # The theorem: the last d' below 2.2 x .4 + 1 is 1, and of what one block holds below 2.1 it is 2; then
    # below 2.2 (.5 + .45) + 1 = 3.09 it is 3 and below 3.98 too; then below 2.2 x .1 + 3 it is 3.
    theorem = TheoremLibraSpec(alpha=2.2, block=1, longest=24)
    assert exact_length(theorem, told, []) == (1, 1)
    assert exact_length(theorem, true, []) == (3, 3)
    assert exact_length(ExactMarginal(), told, [Fraction(1)] * 4) == (3, 3)
    with pytest.raises(TypeError, match="no rational form"):
        exact_length(object(), told, [])


def test_the_line_is_that_of_an_affine_cost(trace):
    # A cycle of d tokens: target 2 + .1 (d + 1), drafter d tenths of 2 + .1, all milliseconds.
    assert affine(trace, SMALL, cost()) == Affine(2100, 310, pytest.approx(0.0, abs=1e-9))
    told = slower_rounds(trace, SMALL, cost(), 4, 0)
    assert (told["fixed_us"], told["per_place_us"]) == (2100, 310)
    # Tokens and drafting for nothing: the line does not rise, so the theory says nothing.
    free = slower_rounds(trace, SMALL, cost(0.0, 0.0), 4, 0)
    assert (free["per_place_us"], free["rules"], free["examples"]) == (0, {}, [])


def test_intervals_hold_prompts_together():
    # Two prompts, one right always and one never, sure of .5: a draw is off by -.5, 0 or .5.
    sure, right = np.full(8, 0.5), np.repeat([True, False], 4)
    prompt = np.repeat([0, 1], 4)
    counts = np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 2.0]])
    found = scores(sure, right, prompt, counts)
    assert found.bias.tolist() == [0.0, -0.5, 0.5]
    assert found.ece.tolist() == [0.0, 0.5, 0.5]
    assert np.isnan(found.auroc[1:]).all()
    assert with_interval(found.auroc) == [0.5, None, None]
