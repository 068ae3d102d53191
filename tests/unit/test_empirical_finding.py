"""Verdicts of one family, and what is said where a test had no chance."""

from __future__ import annotations

from statistics import NormalDist

import pytest

from simspec.claims.empirical.finding import Finding, Question, judged, undecided
from simspec.claims.empirical.resample import PValue

ASKED = Question("E0", "words", "null", "statistic", "source", "because")


def member(p: float, least: float = 1e-4, error: float | None = None) -> Finding:
    return Finding(ASKED, "x", None, n=20, tested=PValue(p, least), standard_error=error)


def test_holm_decides_over_the_family() -> None:
    # .01 x 3 = .03, .02 x 2 = .04, .2: the last stays.
    found = judged([member(0.2), member(0.01), member(0.02)])
    assert [f.verdict for f in found] == ["not rejected", "rejected", "rejected"]
    assert [f.p_adjusted for f in found] == pytest.approx([0.2, 0.03, 0.04])


def test_one_more_test_can_take_a_rejection_away() -> None:
    assert judged([member(0.03)])[0].verdict == "rejected"
    assert judged([member(0.03), member(0.9)])[0].verdict == "not rejected"


def test_what_has_no_test_is_left_alone() -> None:
    left = undecided(ASKED, "x", "no data")
    exact = Finding(ASKED, "x", "holds")
    found = judged([left, exact, member(0.03)])
    assert found[:2] == [left, exact]
    assert found[2].p_adjusted == pytest.approx(0.03)


def test_a_test_that_cannot_reject_says_so() -> None:
    """Four prompts: p is at least 1/8, above .05; "not rejected" would be no news."""
    (found,) = judged([member(0.125, least=0.125)])
    assert found.verdict == "not decidable here"
    assert "0.12" in found.note


def test_detectable_effect() -> None:
    # Two tests: each at .025, both sides; 80% power.
    found = judged([member(0.5, error=0.1), member(0.5)])
    reach = NormalDist().inv_cdf(1 - 0.025 / 2) + NormalDist().inv_cdf(0.8)
    assert found[0].detectable == pytest.approx(0.1 * reach)
    assert found[1].detectable is None


def test_json_has_every_key_and_no_claim_of_exactness() -> None:
    told = judged([member(0.04)])[0].as_json()
    assert told["family"] is True
    assert told["exact"] is False
    assert told["p_value"] == 0.04
    assert told["interval"] == [None, None]
    assert undecided(ASKED, "x", "why").as_json()["note"] == "why"
