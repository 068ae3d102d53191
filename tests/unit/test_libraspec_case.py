"""The case study: lengths along texts, deviations and ties worked out by hand, and the page's part."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from simspec.compare.along import follow, lengths_along_text
from simspec.compare.asked import Asked
from simspec.compare.lengths import OURS, rules_under_test
from simspec.compare.libraspec import case
from simspec.compare.libraspec.case import ACCEPTED, EXACT, HINDSIGHT, PRINTED, PROGRAM, study
from simspec.oracle.lengths import least, myopic_hindsight
from simspec.replay.lockstep import price
from simspec.replay.pricing import two_level_seconds
from simspec.replay.trajectories import run
from simspec.report.libraspec.case import findings, parts
from simspec.report.parts import Grid
from simspec.report.style import drawing
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import G4, Static
from simspec.speculation.planning import EachAlone
from tests.oracles.test_lockstep import AFFINE, measured
from tests.toy import LOOKUP, MIDDLE, SMALL, TARGET, Setting, Toy

ORDER = [4, 0, 3, 1]
# Drafting with the middle network costs next to nothing, so that it pays.
CHEAP = msgspec.structs.replace(AFFINE, name="made-up", ratios={LOOKUP: 0.0, SMALL: 0.1, MIDDLE: 0.01})


@pytest.fixture(scope="module")
def trace():
    made = Toy(Setting(seed=8, prompts=6, output_tokens=14, block_length=5, middle_rate=0.9)).trace()
    return replace(made, prompts=made.prompts.assign(category=["a", "b", "b", "a", "c", "c"]))


def some(trace) -> dict:
    wanted = ("static-0", "static-1", "static-3", PRINTED, EXACT, OURS, "g4", "vllm-goodput")
    return {name: rule for name, rule in rules_under_test(trace).items() if name in wanted}


@pytest.fixture(scope="module")
def found(trace) -> dict:
    costs = [CHEAP, measured(trace)[0]]
    return study(trace, costs, Asked(draws=20), lambda _: None, rules=some(trace))


# One rule along texts.


@pytest.mark.parametrize("rule", [Static(2), G4(first=2)], ids=str)
def test_a_rule_is_followed_as_it_is_replayed(trace, rule):
    cost, chain = measured(trace)[0], Chain((MIDDLE, TARGET))
    starts = trace.offsets[:-1][ORDER]
    runs = run(trace, chain, rule, starts, two_level_seconds(trace, chain, cost, 1))
    took = price(runs, np.arange(4)[:, None], [cost], lookup=False)[0].seconds
    for given in (rule, EachAlone(rule)):  # the fast way and the planner's
        for afresh in (False, True):
            went = follow(trace, MIDDLE, cost, given, ORDER, afresh=afresh)
            np.testing.assert_array_equal(went.flat, runs.flat[runs.active])
            np.testing.assert_array_equal(went.submitted, runs.submitted[runs.active])
            np.testing.assert_array_equal(went.accepted, runs.accepted[runs.active])
            np.testing.assert_allclose(went.seconds[ORDER], took)
            assert went.seconds[[2, 5]].tolist() == [0.0, 0.0]


def test_memory_lasts_unless_each_text_is_begun_afresh(trace):
    rule = some(trace)[OURS]
    alone = [follow(trace, MIDDLE, CHEAP, rule, [p]) for p in ORDER]
    afresh = follow(trace, MIDDLE, CHEAP, rule, ORDER, afresh=True)
    stream = follow(trace, MIDDLE, CHEAP, rule, ORDER)
    np.testing.assert_array_equal(afresh.submitted, np.concatenate([a.submitted for a in alone]))
    np.testing.assert_allclose(afresh.seconds, sum(a.seconds for a in alone))
    first = trace.prompt[stream.flat] == ORDER[0]
    np.testing.assert_array_equal(stream.submitted[first], alone[0].submitted)
    assert len(stream.submitted) != len(afresh.submitted) or (stream.submitted != afresh.submitted).any()


@pytest.mark.parametrize("name", ["libraspec", "vllm-goodput", OURS])
def test_published_rules_along_a_text(trace, name):
    cost = measured(trace)[0]
    found = lengths_along_text(trace, MIDDLE, cost, 3, name)
    assert found.position[0] == 0
    # Each cycle adds what was accepted and one more, until the text ends.
    assert (np.diff(found.position) == found.accepted[:-1] + 1).all()
    wanted = myopic_hindsight(trace, Chain((MIDDLE, TARGET)), cost, 1).lengths
    np.testing.assert_array_equal(found.hindsight, wanted[trace.offsets[3] + found.position])


# Deviations.


def test_results_do_not_depend_on_processes(trace, found):
    costs = [CHEAP, measured(trace)[0]]
    again = study(trace, costs, Asked(draws=20, jobs=2), lambda _: None, rules=some(trace))
    assert json.dumps(again, allow_nan=False) == json.dumps(found, allow_nan=False)


def test_deviations_add_up(trace, found):
    """A loop over cycles, for the four texts and for all."""
    assert [t["prompt"] for t in found["texts"]] == [0, 1, 4]
    for cost, name in ((CHEAP, "made-up"), (measured(trace)[0], "toy")):
        mine = found["costs"][name]
        chain = Chain((mine["drafter"], TARGET))
        program = least(trace, chain, cost).lengths
        for rule in (PRINTED, mine["static"], EXACT):
            went = follow(trace, mine["drafter"], cost, some(trace)[rule], range(6))
            off = [abs(int(n) - int(program[at])) for at, n in zip(went.flat, went.submitted, strict=True)]
            assert mine["rules"][rule]["mad"][PROGRAM] == pytest.approx(sum(off) / len(off))
            some_off = [d for d, at in zip(off, went.flat, strict=True) if trace.prompt[at] in (0, 1, 4)]
            assert mine["four"][rule][PROGRAM] == pytest.approx(sum(some_off) / len(some_off))
            per_token = went.seconds.sum() / len(trace.tokens)
            assert mine["rules"][rule]["seconds_per_token"] == pytest.approx(per_token)
            first = mine["along"][0][rule]
            wanted = program[np.array(first["position"])]
            assert first["wanted"][PROGRAM] == wanted.tolist()
            assert first["mad"][PROGRAM] == pytest.approx(np.abs(wanted - first["submitted"]).mean())


def test_the_accepted_run_is_what_is_accepted(trace, found):
    mine = found["costs"]["toy"]
    index = trace.drafters[mine["drafter"]]
    for text in mine["along"]:
        for rule in mine["shown"]:
            told = text[rule]
            assert all(a <= w for a, w in zip(told["accepted"], told["wanted"][ACCEPTED], strict=True))
    for p, text in zip((0, 1, 4), mine["along"], strict=True):
        told = text[PRINTED]
        at = trace.offsets[p] + np.array(told["position"])
        most = np.minimum(np.minimum(index.matched[at], index.length[at]), trace.remaining[at] - 1)
        assert (np.array(told["wanted"][ACCEPTED]) == np.maximum(most, 0)).all()


def test_best_static_is_the_fastest_and_the_drafter_a_network_that_pays(trace, found):
    for name, cost in found["costs"].items():
        times = {n: r["seconds_per_token"] for n, r in cost["rules"].items() if n.startswith("static-")}
        assert cost["static"] == min(times, key=times.__getitem__)
        assert cost["network"] == (cost["drafter"] != LOOKUP), name
        assert not cost["network"] or times["static-0"] > min(times.values())


def test_a_network_that_does_not_pay_is_not_taken(trace):
    dear = msgspec.structs.replace(AFFINE, ratios={LOOKUP: 0.0, SMALL: 5.0, MIDDLE: 5.0})
    assert case.chosen_drafter(trace, dear, 0) == (LOOKUP, False)
    assert case.chosen_drafter(trace, CHEAP, 0) == (MIDDLE, True)


def told(submitted: list[int]) -> case._Told:
    """Three cycles of one prompt at flat positions 0, 1, 2."""
    went = case.Followed(np.arange(3), np.array(submitted), np.zeros(3, dtype=np.int64), np.ones(1))
    return case._Told(went, np.zeros(3, dtype=np.int64), np.array([3.0]), np.ones((1, 1)))


def test_ties_by_hand():
    # Position 0: lengths 1 and 3 are best; 1: 2 alone; 2: only 0 and 1 can be drafted, alike.
    rates = np.array([[1.0, 2.0, 1.99, 2.0], [1.0, 1.0, 3.0, 2.99], [5.0, 5.0, 9.0, 9.0]])
    limit = np.array([3, 3, 1])
    exact = case._ties(rates, limit, 0.0, {"rule": told([3, 0, 1])})
    assert (exact["tied"], exact["span"]) == (pytest.approx(2 / 3), pytest.approx((2 + 0 + 1) / 3))
    by_hand = {"nearest": (0 + 2 + 0) / 3, "shortest": (2 + 2 + 1) / 3, "longest": (0 + 2 + 0) / 3}
    by_hand |= {"farthest": (2 + 2 + 1) / 3}
    assert {r: exact["rule"][r] for r in by_hand} == pytest.approx(by_hand)
    loose = case._ties(rates, limit, 0.01, {"rule": told([2, 0, 1])})
    assert loose["tied"] == 1.0
    assert loose["rule"]["nearest"] == pytest.approx((0 + 2 + 0) / 3)
    assert loose["rule"]["farthest"] == pytest.approx((1 + 3 + 1) / 3)


def test_ranks_by_hand():
    seconds = {"static-1": [1.0, 1.0], PRINTED: [2.0, 2.0], "x": [3.0, 3.0]}
    took = {name: np.array(values) for name, values in seconds.items()}
    mads = {"static-1": np.array([6.0, 1.0]), PRINTED: np.array([3.0, 2.0]), "x": np.array([1.0, 3.0])}
    ranked = case._ranked(mads, took, "static-1")
    assert (ranked["tau"], ranked["least"], ranked["ratio"]) == (-1.0, "x", 2.0)
    assert ranked["tau_interval"] == pytest.approx([1.0, 1.0])
    assert ranked["least_over"] == pytest.approx(200.0)


# The page's part.


def test_it_is_shown(found, tmp_path):
    one = found | {"costs": {"made-up": found["costs"]["made-up"]}}
    with drawing():
        out = list(parts(one, tmp_path, "SYNTHETIC behaviour"))
    for part in out:
        if isinstance(part, Grid):
            assert all(len(row) == len(part.header) for row in part.rows), part.caption
        else:
            assert (tmp_path / part.file).stat().st_size > 1000
            assert part.file.startswith("case-")
        assert "SYNTHETIC" in part.caption
    said = findings(found)
    assert sum("2.78" in s and "9.48" in s for s in said) == 1
    assert not any("nan" in s.lower().split() for s in said)


def test_findings_are_read_from_the_document(found):
    other = copy.deepcopy(found)
    cost = other["costs"]["toy"]
    cost["rules"][PRINTED]["mad"][HINDSIGHT] = 77.25
    cost["oracles"][PROGRAM]["tau"] = -0.87
    cost["oracles"][PROGRAM]["least"], cost["oracles"][PROGRAM]["least_over"] = "nobody", 66.6
    cost["ties"][0][PRINTED]["farthest"] += 55.0
    text = " ".join(findings(other))
    for word in ("to 77.25", "-0.87", "66.6% (nobody)", "more than 55"):
        assert word in text, word
    assert text != " ".join(findings(found))
