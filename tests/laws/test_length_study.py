"""Length rules compared: two ways of replaying agree, nothing beats the program, shares are shares."""

from __future__ import annotations

import inspect
import sys
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from simspec.compare import lengths as module
from simspec.compare.batches import request_starts
from simspec.compare.costs import open_cost
from simspec.compare.length_runs import LengthSettings, replayed, tuned_static
from simspec.compare.lengths import OURS, TUNED, LengthStudy, RuleResult, rules_under_test, study_batches
from simspec.oracle.lengths import least_seconds, long_run_expected, long_run_hindsight, myopic_hindsight
from simspec.replay.lockstep import price
from simspec.replay.planned import plan
from simspec.replay.trajectories import run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import G4, ExactMarginal, LibraSpec, Static, View
from simspec.speculation.planning import EachAlone
from simspec.speculation.rule_files import WEIGH_COST, as_planner, published, published_alone
from simspec.traces.index import load_trace

TRACE = load_trace(Path("traces/smollm2-cpu"))
COST = open_cost(TRACE, "calibrate/h100-llama-3.1-8b.toml")
RULES = published(TRACE.manifest.block_length)
FEW = LengthSettings(batch=24, draws=2)


@pytest.mark.parametrize("name", published_alone(20))
def test_rules_weigh_costs_only_where_that_is_said(name):
    rule = published_alone(20)[name]
    generator = np.random.default_rng(5)
    confidence = generator.uniform(0.6, 1.0, (200, 20))
    told = [1.0 + slope * np.arange(21.0) for slope in (0.001, 10.0)]
    found = [
        rule.decide(
            View(confidence, np.full(200, 20), np.broadcast_to(seconds, (200, 21)), 1.0 - confidence),
            rule.begin(200),
        ).submitted
        for seconds in told
    ]
    assert (found[0] != found[1]).any() == isinstance(rule, WEIGH_COST)


@pytest.mark.parametrize("batch", [1, 24])
def test_the_fast_way_is_the_long_way(batch):
    settings = replace(FEW, batch=batch, draws=1)
    rules = {"g4": G4(), "libraspec": LibraSpec()} | ({"marginal": ExactMarginal()} if batch == 1 else {})
    fast = replayed(TRACE, "skip-6", COST, settings, rules)
    slow = replayed(TRACE, "skip-6", COST, settings, {name: EachAlone(r) for name, r in rules.items()})
    for name, found in fast.items():
        np.testing.assert_allclose(found.seconds_per_token, slow[name].seconds_per_token, rtol=1e-12)
        one, other = (
            np.stack([r.flat, r.drafted, r.submitted])[:, np.lexsort((r.submitted, r.flat))]
            for r in (found, slow[name])
        )
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("drafter", ["ngram", "skip-2"])
def test_no_published_rule_beats_the_program(drafter):
    """Those that learn go on from prompt to prompt; the program's sum over them bounds even that."""
    chain, starts = Chain((drafter, TRACE.target)), request_starts(TRACE)[:3]
    bound = least_seconds(TRACE, chain, COST)[:3].sum()
    for name, rule in RULES.items():
        took = plan(TRACE, chain, COST, as_planner(rule), starts.reshape(1, 3, 1)).seconds[0]
        assert took >= bound * (1 - 1e-9), name


def test_results_do_not_depend_on_processes():
    names = {"static-0", "static-5", "g4", "exact-marginal", "dspark", OURS}
    rules = {name: rule for name, rule in rules_under_test(TRACE).items() if name in names}
    drafters = {24: "skip-6", 56: "ngram"}
    one, two = (study_batches(TRACE, drafters, COST, FEW, rules, jobs) for jobs in (1, 2))
    assert list(one) == list(two) == [24, 56]
    for batch, study in one.items():
        assert study.as_json() == two[batch].as_json()
        assert list(study.rules) == [*rules, TUNED]


def test_each_half_has_the_length_that_is_fastest_on_the_other():
    fixed, tuned = tuned_static(TRACE, "skip-6", COST, replace(FEW, batch=1))
    chain, lengths = Chain(("skip-6", TRACE.target)), (0, 1, 2, 3, 4, 5, 6, 8, 12, 16)
    for half, chosen in enumerate(tuned):
        assert set(fixed.lengths[TRACE.prompt % 2 == half]) == {chosen}
        others = TRACE.offsets[:-1][1 - half :: 2]
        alone = np.arange(len(others))[:, None]
        runs = [run(TRACE, chain, Static(n), others) for n in lengths]
        took = [price(each, alone, [COST], lookup=False)[0].seconds.sum() for each in runs]
        assert chosen == lengths[int(np.argmin(took))]


def test_the_long_run_in_hindsight_is_no_slower_than_the_best_of_each_cycle():
    """Its own rate is a fixed point: no other lengths at the positions it visits are worth more."""
    for drafter in ("ngram", "skip-6"):
        chain, one = Chain((drafter, TRACE.target)), replace(FEW, batch=1, draws=0)
        oracles = {
            oracle.__name__: oracle(TRACE, chain, COST, 1)
            for oracle in (long_run_hindsight, long_run_expected, myopic_hindsight)
        }
        found = replayed(TRACE, drafter, COST, one, oracles)
        times = {name: r.seconds_per_token[0] for name, r in found.items()}
        assert times["long_run_hindsight"] <= times["myopic_hindsight"] * (1 + 1e-9)
        assert times["long_run_hindsight"] < times["long_run_expected"]


# The share of the gap that a rule closes.


def study_of(kind: type[LengthStudy], result: type[RuleResult]) -> LengthStudy:
    """Best static 4 seconds a token, bound 2; in the second draw there is no gap to close."""

    def took(*seconds: float) -> RuleResult:
        return result(np.array(seconds), 0.0, 0.0, {})

    rules = {"static-0": took(4, 4, 2, 4), "static-1": took(5, 3, 5, 5), "half": took(3, 3.5, 2, 4)}
    given = dict.fromkeys((f.name for f in fields(kind)), None) | {"rules": rules}
    return kind(**given | {"bound": np.array([2.0, 2.0, 3.0, 2.0])})


def right(found: ModuleType) -> bool:
    study = study_of(found.LengthStudy, found.RuleResult)
    half = study.gap_closed(study.rules["half"].seconds_per_token)
    ends = [study.gap_closed(s).value for s in (study.bound, study.rules["static-0"].seconds_per_token)]
    worse = study.gap_closed(study.rules["static-1"].seconds_per_token).value
    # Draws: .25, none, 0.
    return (
        half.value == 0.5
        and half.low == pytest.approx(0.25 * 0.025)
        and half.high == pytest.approx(0.25 * 0.975)
        and ends == [1.0, 0.0]
        and worse == -0.5
        and replace(study, bound=None).gap_closed(study.bound).value is None
    )


def test_a_share_of_the_gap():
    assert right(module)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("share = np.divide(static - seconds,", "share = np.divide(seconds - self.bound,"),
        ("gap = static - self.bound", "gap = seconds - self.bound"),
        ("where=gap > 0", "where=gap > -9"),
        ("static = self.rules[self.best_static]", "static = self.rules['static-1']"),
        ("return estimate(share[0], share[1:])", "return estimate(share[0], share)"),
    ],
)
def test_a_share_that_is_wrong_is_noticed(monkeypatch, old, new):
    source = inspect.getsource(module)
    assert old in source
    changed = ModuleType("simspec.compare.lengths_changed")
    monkeypatch.setitem(sys.modules, changed.__name__, changed)
    exec(compile(source.replace(old, new), "changed", "exec"), changed.__dict__)
    with np.errstate(all="ignore"):
        assert not right(changed)
