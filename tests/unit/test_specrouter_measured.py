"""The falsifier and the ablations on made-up documents whose truth is known."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from simspec.compare.asked import Asked
from simspec.compare.cut import cut_texts
from simspec.compare.foretold import DRAINED, REPLAYED
from simspec.compare.specrouter import ablations, measured
from simspec.compare.validated import read_validation
from simspec.cost.shape import StepShape
from simspec.errors import BadInput
from simspec.replay.trajectories import run
from simspec.report.parts import Grid, Picture
from simspec.report.specrouter import ablations as ablations_section
from simspec.report.specrouter import measured as measured_section
from simspec.report.style import drawing
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Static
from tests import validated
from tests.toy import LOOKUP, MIDDLE, SMALL, TARGET, Setting, Toy

ASKED = Asked(batches=(1, 2), lengths=(1, 2), draws=20, seed=3)
OURS = "joint-by-row/visited"
UNITS = {1: [[0], [2], [4], [6], [8], [10]], 2: [[0, 2], [4, 6], [8, 10]]}


def quiet(_: str) -> None: ...


@pytest.fixture(scope="module")
def trace():
    return Toy(Setting(seed=4, prompts=12, output_tokens=20, block_length=6)).trace()


@pytest.fixture(scope="module")
def told(trace):
    document = validated.document(trace, 12, UNITS)
    return document, measured.study(trace, [], ASKED, quiet, validation=document)


def test_a_cut_record_replays_as_the_shortened_one(trace):
    cut, short = cut_texts(trace, 9), trace.shortened(9)
    assert len(cut.tokens) == int(np.minimum(trace.prompts["output_tokens"], 9).sum())
    arrays = [v for d in cut.drafters.values() for v in vars(d).values() if isinstance(v, np.ndarray)]
    assert {len(v) for v in arrays} == {len(cut.tokens)}
    for chain in (Chain((SMALL, TARGET)), Chain((LOOKUP, MIDDLE, TARGET), "funnel-replace")):
        mine = run(cut, chain, Static(3), cut.offsets[:-1])
        theirs = run(short, chain, Static(3), short.offsets[:-1])
        for name in ("context", "drafted", "lag", "submitted", "width", "accepted", "emitted"):
            assert np.array_equal(getattr(mine, name), getattr(theirs, name)), name
        assert all(np.array_equal(a, b) for a, b in zip(mine.middle, theirs.middle, strict=True))


def test_the_documents_cost_has_its_forwards_and_what_is_beside_them(trace, told):
    cost = read_validation(told[0], trace).cost(trace)
    one = np.array([3]), np.array([2]), np.array([6]), np.array([64]), np.array([192])
    expected = 0.1 * (1 + 0.1 * 6 + 0.064) + 0.001 + 6 * 0.0002 + 3 * 0.0004
    assert cost.forward_seconds(TARGET, StepShape(*one))[0] == pytest.approx(expected)
    assert cost.forward_seconds(LOOKUP, StepShape(*one))[0] == pytest.approx(1e-6 * 1.664)
    assert cost.step_overhead_seconds == 0.003


def test_times_that_are_simulated_are_told_without_error(told):
    _, found = told
    assert found["why"] is None
    assert found["about"]["decoded"] == found["about"]["fitted"] == 6
    for name, batch in found["batches"].items():
        perfect = batch["scores"][measured.SIMULATED]
        assert (perfect["regret"], perfect["top1"], perfect["pick"]) == (0.0, True, batch["best"])
        assert perfect["median_abs_error"] == pytest.approx(0.0, abs=1e-12)
        assert perfect["kendall_tau"] == pytest.approx(1.0)
        assert 0.0 < batch["scores"][OURS]["median_abs_error"] < 0.15
        assert batch["scores"][OURS]["kendall_tau"] > 0.5
        errors = found["errors"][name]
        assert errors["whole"] == pytest.approx(0.0, abs=1e-12)
        assert errors["by_slots"] == pytest.approx(0.1)
    # Three batches of two are too few for anything to be clear.
    assert not found["batches"]["2"]["clear"]
    assert found["batches"]["1"]["units"] == 6
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_batch_that_drains_takes_longer_than_one_that_is_always_full(told):
    _, found = told
    one, two = found["batches"]["1"]["predicted"], found["batches"]["2"]["predicted"]
    # A request alone takes as long either way; of two, one may go on alone.
    assert one[DRAINED] == pytest.approx(one[OURS])
    assert all(a >= b * (1 - 1e-9) for a, b in zip(two[DRAINED], two[OURS], strict=True))
    off = {n: np.abs(np.array(two[n]) / two[REPLAYED] - 1.0).mean() for n in (DRAINED, OURS)}
    assert off[DRAINED] < 0.5 * off[OURS]


def test_the_fitted_prompts_alone_are_looked_at(trace, told):
    document, found = told
    other = {**document, "fitted": document["fitted"][:3]}
    fewer = measured.study(trace, [], ASKED, quiet, validation=other)
    before, after = (f["batches"]["1"] for f in (found, fewer))
    assert before["predicted"][OURS] != after["predicted"][OURS]
    assert before["predicted"][measured.SIMULATED] == after["predicted"][measured.SIMULATED]
    again = measured.study(trace, [], replace(ASKED, jobs=2), quiet, validation=document)
    assert again == found


def test_a_chain_that_is_slower_than_told_costs_whoever_picks_it(trace):
    document = validated.document(trace, 12, UNITS)
    mine = [c for c in document["same_prompts"]["all"] if c["batch"] == 1]
    best = min(mine, key=lambda c: c["measured"])
    second = sorted(c["measured"] for c in mine)[1]
    best["unit_seconds"] = [2.0 * s for s in best["unit_seconds"]]
    found = measured.study(trace, [], ASKED, quiet, validation=document)["batches"]["1"]
    fooled = found["scores"][measured.SIMULATED]
    assert not fooled["top1"]
    assert fooled["regret"] == pytest.approx(100 * (2 * best["measured"] / second - 1))
    assert found["configurations"][found["best"]]["chain"] != best["chain"] or (
        found["configurations"][found["best"]]["draft_length"] != best["draft_length"]
    )


def test_what_was_not_measured_is_said(trace, told):
    assert "no document" in measured.study(trace, [], ASKED, quiet)["why"]
    old = {k: v for k, v in told[0].items() if k != "forwards"}
    assert "before" in measured.study(trace, [], ASKED, quiet, validation=old)["why"]


def ratio(value: float, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high}


CRITIC: dict[str, Any] = {
    "chain": [SMALL, MIDDLE, TARGET],
    "length": 3,
    "device": "cpu",
    "dtype": "float32",
    "machine": {"processor": "made up", "cores": 0},
    "configurations": {
        "target": {"batches": {"1": {"requests": 2, "time_over_pair": ratio(0.5)}}},
        "pair": {"batches": {"1": {"requests": 2, "time_over_pair": ratio(1.0)}}},
        "nested": {"batches": {"1": {"requests": 2, "time_over_pair": ratio(1.1, 1.05, 1.2)}}},
    },
}


def way(seconds: float, packed: int) -> dict[str, Any]:
    parts = {"forward": 0.8 * seconds, "choosing": 0.1 * seconds, "packing": 0.0, "rest": 0.1 * seconds}
    return {"seconds_per_token": seconds, "cycles": 10, "packed": packed, "slots_over_tokens": 1.0, **parts}


MASKS: dict[str, Any] = {
    "device": "cpu",
    "dtype": "float32",
    "machine": {"processor": "made up", "cores": 0},
    "ways": {"mask": {}, "move": {}},
    "cells": [
        {
            "chain": [SMALL, TARGET],
            "draft_length": 4,
            "batch": 4,
            "output_tokens": 8,
            "context": 0,
            "rounds": [
                {"prompt_tokens": [5, 7], "equal": True, "ways": {"mask": way(1.0, 0), "move": way(1.1, 5)}},
                {"prompt_tokens": [6, 6], "equal": False, "ways": {"mask": way(2.0, 0), "move": way(2.6, 7)}},
                {"prompt_tokens": [6, 6], "equal": True, "ways": {"mask": way(4.0, 1), "move": way(4.8, 9)}},
            ],
        }
    ],
}


def test_ablations_tell_what_was_replayed_and_what_was_measured(trace, told):
    document, _ = told
    cost = read_validation(document, trace).cost(trace)
    found = ablations.study(trace, [cost], ASKED, quiet, validation=document, critic=CRITIC, masks=MASKS)
    assert json.loads(msgspec.json.encode(found)) == found
    for batch in found["replayed"]["validation"]["batches"].values():
        for mine, own in zip(batch["triple"], batch["own_pair"], strict=True):
            assert len(mine["chain"]) == 3
            assert own["chain"] == [mine["chain"][0], TARGET]
        low, high = batch["over_best_pair_interval"]
        assert low <= high
        # The best pair of all need not be the best on the other half, but here it is nowhere near slower.
        assert batch["over_best_pair"] >= batch["over_own_pair"] - 5.0
    decoded = found["decoded"]["batches"]
    for name, batch in decoded.items():
        mine = [c for c in document["same_prompts"]["all"] if c["batch"] == int(name)]
        triple = min((c for c in mine if len(c["chain"]) == 3), key=lambda c: c["measured"])
        pair = min((c for c in mine if len(c["chain"]) == 2), key=lambda c: c["measured"])
        assert batch["over_best_pair"] == pytest.approx(100 * (triple["measured"] / pair["measured"] - 1))
    assert decoded["1"]["over_best_pair_interval"][0] is not None
    assert decoded["2"]["over_best_pair_interval"] == [None, None]
    assert list(found["critic"]["configurations"]) == ["nested"]
    nested = found["critic"]["configurations"]["nested"]["1"]
    assert nested["over_pair"] == pytest.approx(10.0)
    assert nested["interval"] == pytest.approx([5.0, 20.0])
    (cell,) = found["masks"]["cells"]
    assert (cell["rounds"], cell["equal"], cell["prompt_tokens"]) == (3, 2, 6.0)
    move = cell["ways"]["move"]
    # 10%, 30% and 20% more, each round over itself.
    assert move["over_mask"] == pytest.approx(20.0)
    assert move["range"] == pytest.approx([10.0, 30.0])
    assert move["packed_per_cycle"] == pytest.approx(0.7)


def test_ablations_say_what_is_absent(trace):
    cost = read_validation(validated.document(trace, 12, UNITS), trace).cost(trace)
    found = ablations.study(trace, [cost], ASKED, quiet)
    assert all(found[part]["why"] for part in ("decoded", "critic", "masks"))


@pytest.mark.parametrize(
    "given",
    [
        {"critic": {}},
        {"critic": {**CRITIC, "configurations": [1]}},
        {"critic": {**CRITIC, "configurations": {"nested": {"batches": {"1": {}}}}}},
        {"masks": {**MASKS, "machine": None}},
        {"masks": {**MASKS, "cells": [{**MASKS["cells"][0], "rounds": [{"ways": {}}]}]}},
    ],
)
def test_a_document_that_is_not_whole_is_refused_by_name(trace, given):
    cost = read_validation(validated.document(trace, 12, UNITS), trace).cost(trace)
    (name,) = given
    with pytest.raises(BadInput, match=f"{name}.*does not hold what is needed.*simspec {name}"):
        ablations.study(trace, [cost], ASKED, quiet, **given)


def test_sections_draw_what_was_found_and_say_what_was_not(trace, told, tmp_path):
    document, found = told
    cost = read_validation(document, trace).cost(trace)
    both = ablations.study(trace, [cost], ASKED, quiet, validation=document, critic=CRITIC, masks=MASKS)
    neither = ablations.study(trace, [cost], ASKED, quiet)
    with drawing():
        for section, given, files in (
            (measured_section, found, {"measured-regret.png", "measured-times.png"}),
            (measured_section, {"why": "nothing was given"}, set()),
            (ablations_section, both, {"ablation-middle.png", "ablation-masks.png"}),
            (ablations_section, neither, {"ablation-middle.png"}),
        ):
            folder = tmp_path / str(len(list(tmp_path.iterdir())))
            folder.mkdir()
            said = " ".join(section.findings(given))
            parts = list(section.parts(given, folder, "SYNTHETIC behaviour"))
            pictures = {p.file for p in parts if isinstance(p, Picture)}
            assert pictures == {p.name for p in folder.iterdir()} == files
            for grid in (p for p in parts if isinstance(p, Grid)):
                assert grid.rows
                assert {len(row) for row in grid.rows} == {len(grid.header)}
            assert ("ot measured" in said) == (given in ({"why": "nothing was given"}, neither))
    (regret,) = {s["worst_regret"] for n, s in found["summary"].items() if n == "reach/simscore"}
    assert f"{regret:.1f}% at worst" in measured_section.findings(found)[0]
    assert "+20.0% (+10.0 to +30.0% over 3 rounds)" in " ".join(ablations_section.findings(both))


def test_chains_are_chosen_on_the_half_that_is_not_scored():
    pair, triple = Chain((SMALL, TARGET)), Chain((SMALL, MIDDLE, TARGET))
    candidates = [(pair, 1), (pair, 2), (Chain((LOOKUP, TARGET)), 1), (triple, 1), (triple, 2)]
    # Each half has favourites of its own; one draw after all prompts.
    first = [[2.0, 3.0, 9.0, 4.0, 5.0], [2.0, 3.0, 9.0, 8.0, 10.0]]
    second = [[7.0, 6.0, 9.0, 12.0, 11.0], [7.0, 6.0, 9.0, 12.0, 11.0]]
    found = ablations._without_middle(candidates, np.array([first, second]))
    assert [c["draft_length"] for c in found["triple"]] == [2, 1]
    assert [c["draft_length"] for c in found["own_pair"]] == [2, 1]
    # (5 + 12) over (3 + 7), and in the draw (10 + 12) over it.
    assert found["over_own_pair"] == found["over_best_pair"] == pytest.approx(70.0)
    assert found["over_own_pair_interval"] == pytest.approx([120.0, 120.0])
