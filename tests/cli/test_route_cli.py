"""``simspec route``, run as a user runs it."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from tests.cli.test_commands import PROFILE, TRACE, simspec

QUICK = ("--cost", PROFILE, "--lengths", "1,4", "--draws", "5")


def test_a_result_has_the_documented_keys_and_is_made_again_by_its_command():
    done = simspec("route", TRACE, *QUICK, "--batches", "1,4", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["origin"] == "measured"
    batches = document["costs"]["h100-published"]["batches"]
    assert set(batches["1"]) == set(batches["4"])
    for batch, scores in batches.items():
        least = scores["dynamic-program"]["tokens_per_second"]
        # Above batch 1 there is a bound and no schedule.
        assert bool(scores["dynamic-program"]["taken"]) == (batch == "1")
        for name, found in scores.items():
            low, high = found["tokens_per_second_interval"]
            assert 0 < low <= high
            assert sum(t["share"] for t in found["taken"]) <= 1 + 1e-9
            assert found["tokens_per_second"] <= least * (1 + 1e-9), name
            assert found["regret"] >= -1e-7
        assert scores["target-only"]["speedup"] == 1.0
        assert scores["static-pair"]["over_static_pair"] == 1.0
    command = document["provenance"]["command"]
    assert command[:2] == ["simspec", "route"]
    assert simspec(*command[1:]).stdout == done.stdout


def test_a_text_is_explained_cycle_by_cycle():
    words = (
        "route",
        TRACE,
        "--cost",
        PROFILE,
        "--lengths",
        "1,4",
        "--explain",
        "3",
        "--schedulers",
        "funnel",
    )
    document = json.loads(simspec(*words, "--json").stdout)
    cycles = document["cycles"]
    assert cycles[0]["position"] == 0
    for before, after in pairwise(cycles):
        assert after["position"] == before["position"] + before["emitted"]
    for cycle in cycles:
        assert cycle["predicted"] <= cycle["runner_up_predicted"]
        assert cycle["lost"] >= -1e-9
        assert len(cycle["alphas"]) == len(cycle["taken"]["chain"]) - 1
    shown = simspec(*words)
    assert f"in {len(cycles)} cycles; the choices lost" in shown.stdout


def test_each_request_may_take_its_own_chain():
    words = ("--schedulers", "target-only,static-pair,funnel", "--batches", "4", "--split", "--json")
    document = json.loads(simspec("route", TRACE, *QUICK, *words).stdout)
    found = document["costs"]["h100-published"]
    assert found["split"] is True
    assert found["batches"]["4"]["funnel"]["tokens_per_second"] > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--schedulers", "funel"), "did you mean 'funnel'"),
        (("--explain", "999"), "no prompt 999"),
        (("--explain", "1", "--schedulers", "myopic-hindsight"), "see only the past"),
        (("--explain", "1", "--schedulers", "reach,funnel"), "one of each"),
        (("--lengths", "0-4"), "--lengths"),
        (("--draws", "-1"), "--draws"),
    ],
)
def test_bad_input_is_told(words: tuple[str, ...], said: str):
    done = simspec("route", TRACE, "--cost", PROFILE, *words)
    assert done.returncode == 2
    assert said in done.stderr
