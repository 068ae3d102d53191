"""The study of sampling on made-up traces: what it says, refuses and leaves out. SYNTHETIC, all of it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from simspec.cli import main
from simspec.compare.asked import Asked
from simspec.compare.costs import open_cost
from simspec.compare.libraspec.sampling import LUCKS, beside, chances, mean_study, stand_ins, study
from simspec.compare.narrowed import narrowed
from simspec.errors import BadInput
from simspec.replay.sampled import load_any
from simspec.replay.trajectories import run
from simspec.report.libraspec.sampling import OURS, findings, parts
from simspec.report.parts import Grid, Picture
from simspec.report.style import drawing
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Static
from simspec.strategies.made_up_models import Setting
from simspec.strategies.traces import Synthetic
from simspec.traces.reader import read_tables
from tests.drawn import Drawn, models

ASKED = Asked(batches=(1, 4), draws=4, seed=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    p, q = models(4, tokens=6, end=0.02, spread=0.2)
    drawn = Drawn(p, q, prompts=5, output_tokens=12, block_length=6)
    return drawn.write(tmp_path_factory.mktemp("drawn") / "trace")


@pytest.fixture(scope="module")
def greedy():
    return Synthetic(Setting(seed=3, prompts=5, output_tokens=16, block_length=8)).trace()


@pytest.fixture(scope="module")
def found(greedy, folder):
    return study(greedy, [open_cost(greedy, "float32")], ASKED, lambda line: None, sampled=load_any(folder))


def test_what_it_says(found):
    assert json.loads(json.dumps(found)) == found
    assert "libraspec" in found["refused"]
    assert OURS in found["safe"]
    about = found["sampled"]
    assert (about["tokens"], about["depth"], about["same_prompts"]) == (12, 6, False)
    (cost,) = found["costs"].values()
    assert list(cost["batches"]) == ["1", "4"]
    for sides in cost["batches"].values():
        assert not set(found["refused"]) & set(sides["sampled"]["rules"])
        assert set(found["refused"]) < set(sides["greedy"]["rules"])
        assert sides["sampled"]["fastest"] == sides["sampled"]["fastest_safe"]
        assert sides["sampled"]["lost"] == 0.0 <= sides["greedy"]["lost"]
        assert sides["sampled"]["rules"]["static-0"]["speedup"] == pytest.approx(1.0)
    bound = cost["batches"]["1"]["sampled"]["bound"]
    for rule in cost["batches"]["1"]["sampled"]["rules"].values():
        assert rule["speedup"] <= bound["speedup"] * (1 + 1e-9)


def test_it_does_not_depend_on_processes(found, greedy, folder):
    costs = [open_cost(greedy, "float32")]
    again = study(greedy, costs, replace(ASKED, jobs=2), lambda line: None, sampled=load_any(folder, 9))
    assert again == found


def test_without_a_sampled_trace(greedy):
    found = study(greedy, [], ASKED, lambda line: None)
    assert (found["sampled"], found["costs"]) == (None, {})
    assert "No sampled trace was given" in findings(found)[-1]
    with pytest.raises(BadInput, match="texts are greedy"):
        study(greedy, [], ASKED, lambda line: None, sampled=greedy)


def test_its_page(found, tmp_path):
    with drawing():
        made = list(parts(found, tmp_path, "SYNTHETIC"))
    pictures = [part for part in made if isinstance(part, Picture)]
    assert {p.file for p in pictures} == {f.name for f in tmp_path.iterdir()}
    assert all("SYNTHETIC" in p.caption and "in distribution" in p.caption for p in pictures)
    assert all(len(row) == len(g.header) for g in made if isinstance(g, Grid) for row in g.rows)
    said = " ".join(findings(found))
    mine = found["costs"]["float32"]["batches"]["1"]["sampled"]["rules"][OURS]
    assert f"{mine['over_static']:.1f}" in said
    assert "after a refused draft the recorded text goes on" in said


def test_chances_are_overlaps_on_average(folder):
    found = chances(read_tables(folder), ["small"], Asked(draws=200))["small"]
    low, high = found["difference_interval"]
    assert low < found["difference"] < high
    assert low - 0.05 < 0 < high + 0.05
    assert 0.5 < found["overlap"] < 1
    assert found["difference"] == pytest.approx(found["text"] - found["overlap"])


def test_blocks_that_stand_in_for_others(folder):
    """Counted once more, row by row."""
    read = read_tables(folder)
    trace = load_any(folder, 5)
    words = {
        (v["prompt_id"], v["start"]): v["drafted_prob"][0]
        for v in read.tables["verdicts"].to_pylist()
        if (v["drafter"], v["verifier"]) == ("small", "target")
    }
    sure = [
        words[b["prompt_id"], b["start"]] >= b["confidence"][0] * 0.999
        for b in read.tables["blocks"].to_pylist()
        if b["drafter"] == "small"
        and trace.drafters["small"].matched[trace.offsets[b["prompt_id"]] + b["start"]] == 0
    ]
    assert stand_ins(read, trace, "small") == pytest.approx(np.mean(sure))
    assert 0 < np.mean(sure) < 1


def test_a_mean_over_lucks_is_of_seconds_draw_by_draw(greedy, folder):
    from simspec.compare.length_runs import LengthSettings
    from simspec.compare.lengths import study_lengths

    cost = open_cost(greedy, "float32")
    each = [
        study_lengths(
            load_any(folder, s),
            "small",
            cost,
            LengthSettings(draws=3),
            {"static-0": Static(0), "a": Static(3)},
        )
        for s in range(LUCKS)
    ]
    mean = mean_study(each)
    for name in ("a", "static-0"):
        own = [s.rules[name].seconds_per_token for s in each]
        np.testing.assert_allclose(mean.rules[name].seconds_per_token, np.mean(own, axis=0))
    assert np.ptp([s.rules["a"].seconds_per_token[0] for s in each]) > 0
    np.testing.assert_allclose(mean.bound, np.mean([s.bound for s in each], axis=0))


def test_a_narrowed_record_replays_as_the_whole_does(greedy):
    chosen = np.array([1, 3, 4])
    part = narrowed(greedy, chosen, 16, 8)
    chain = Chain(("small", "target"))
    whole = run(greedy, chain, Static(4), greedy.offsets[chosen])
    own = run(part, chain, Static(4), part.offsets[:-1])
    for name in ("accepted", "emitted", "submitted", "context"):
        np.testing.assert_array_equal(getattr(own, name), getattr(whole, name))
    short = narrowed(greedy, chosen, 10, 3)
    assert short.remaining.max() <= 10
    runs = run(short, chain, Static(8), short.offsets[:-1])
    assert runs.submitted.max() == 3
    assert (runs.emitted.sum(axis=1) == short.prompts["output_tokens"]).all()


def test_the_same_prompts_are_found_by_their_hashes(greedy):
    few = narrowed(greedy, np.array([0, 2]), 12, 5)
    part, same = beside(greedy, few)
    assert same
    assert part.prompts["prompt_hash"].tolist() == few.prompts["prompt_hash"].tolist()
    assert (part.manifest.output_tokens, part.manifest.block_length) == (12, 5)
    np.testing.assert_array_equal(part.tokens, few.tokens)


def test_lengths_on_a_sampled_trace(folder, capsys):
    def said(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(["lengths", str(folder), "--drafter", "small", "--batch", "2", "--draws", "3", *words])
        out = capsys.readouterr()
        return stop.value.code, out.out, out.err

    code, out, _ = said("--rules", "svip,long-run-as-drafted", "--json")
    assert code == 0
    document = json.loads(out)
    assert document["sampling"]["temperature"] == 1.0
    assert "recorded text goes on" in document["sampling"]["replay"]
    assert {"svip", "long-run-as-drafted"} < set(document["batches"]["2"]["rules"])
    code, out, _ = said()
    assert code == 0
    assert "temperature 1, top_p 1" in out
    assert "exact-marginal" in out
    assert "dspark" not in out
    for name in ("libraspec", "long-run"):
        code, _, err = said("--rules", name)
        assert code == 2
        assert f"rule {name} cannot be used with rejection sampling" in " ".join(err.split())
