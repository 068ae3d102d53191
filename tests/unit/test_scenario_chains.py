"""Chains with intermediates as a scenario's file says them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from simspec.errors import BadInput
from simspec.scenario.build import build
from simspec.scenario.paired import assumptions
from simspec.scenario.reading import read_scenario
from simspec.scenario.run import run
from simspec.serving.chain_verdicts import LevelRates, RecordedChain
from simspec.serving.choosing import Routed
from simspec.serving.policies import Fixed
from simspec.sweep.policies import policies
from simspec.traces.index import load_trace
from tests.unit.test_scenario_reading import ROOT, written

TRACE = {"kind": "trace", "path": str(ROOT / "traces" / "smollm2-cpu")}
LOADED = cache(load_trace)
H100 = str(ROOT / "calibrate" / "h100-llama-3.1-8b.toml")
FIXED = {"kind": "fixed", "draft_tokens": 3}
ROUTED = {"kind": "routed", "lengths": [0, 3]}


@pytest.fixture(autouse=True)
def _read_once(monkeypatch):
    """The committed trace is read once for all of these."""
    monkeypatch.setattr("simspec.scenario.build.load_trace", LOADED)


def replayed(folder: Path, policy: dict[str, Any], above: list[str], **more: Any) -> Path:
    """A small scenario that replays a chain of the committed trace at the published cost."""
    memory = more.pop("memory", {})
    told = {"policy": policy, "drafter": "skip-10", "intermediates": above, "verdicts": TRACE, **more}
    return written(folder, cost={"target": H100}, speculation=told, memory=memory)


@pytest.mark.parametrize("semantics", [None, "funnel-truncate", "funnel-replace"])
def test_one_chain(tmp_path, semantics):
    memory = {"middle_blocks": {"skip-2": 500}}
    path = replayed(tmp_path, FIXED, ["skip-2"], semantics=semantics, memory=memory)
    built = build(read_scenario(path))
    speculation = built.serving.speculation
    assert speculation is not None
    assert (speculation.policy, speculation.intermediates) == (Fixed(3), ("skip-2",))
    assert isinstance(speculation.source, RecordedChain)
    assert speculation.source.replace == (semantics == "funnel-replace")
    assert built.serving.memory.middle_blocks == (("skip-2", 500),)
    found = run(built, 0).figures
    assert found["requests"]["finished"] == 60
    assert found["utilisation"]["middle"] > 0.02
    with pytest.raises(BadInput, match="there are intermediates"):
        assumptions(built)


def test_chains_to_choose_among_share_their_models(tmp_path):
    others = [{"drafter": "skip-2"}, {"drafter": "ngram", "intermediates": ["skip-6", "skip-2"]}]
    policy = {**ROUTED, "every": 4, "variant": "funnel"}
    built = build(read_scenario(replayed(tmp_path, policy, ["skip-2"], others=others)))
    speculation = built.serving.speculation
    assert speculation is not None
    assert speculation.policy == Routed((0, 3), 4, variant="funnel")
    # Of skip-10 > skip-2, skip-2, and ngram > skip-6 > skip-2.
    assert [(c.drafter, c.middles) for c in built.serving.chains] == [(0, (1,)), (1, ()), (2, (3, 1))]
    assert run(built, 0).figures["requests"]["finished"] == 60


def test_made_up_levels_say_so(tmp_path):
    levels = {"kind": "levels", "rates": [0.6, 0.9], "longest": 3}
    told = {"policy": FIXED, "drafter": "skip-10", "intermediates": ["skip-6"], "verdicts": levels}
    built = build(read_scenario(written(tmp_path, cost={"target": H100}, speculation=told)))
    assert built.serving.speculation is not None
    assert built.serving.speculation.source == LevelRates((0.6, 0.9), 3)
    assert any("made up" in words for words in built.approximations)


MADE_UP = {"kind": "levels", "rates": [0.6, 0.9], "longest": 3}


@pytest.mark.parametrize(
    ("above", "more", "said"),
    [
        (["skip-10"], {}, "speculation.intermediates: ['skip-10'] above 'skip-10'; each model once"),
        (["skip-2", "skip-2"], {}, "speculation.intermediates: ['skip-2', 'skip-2'] above"),
        ([], {"semantics": "funnel-replace"}, "speculation.semantics: means nothing without intermediates"),
        (["skip-2"], {"semantics": "funnel"}, "unknown speculation.semantics 'funnel'"),
        (["skip-2"], {"semantics": "nested"}, "unknown speculation.semantics 'nested'"),
        (["skip-6", "skip-2"], {"semantics": "funnel-replace"}, "funnel-replace with 2 intermediates"),
        (["skip-2"], {"verdicts": {"kind": "iid", "rate": 0.5, "longest": 3}}, "are the target's alone"),
        (["a", "b"], {"verdicts": MADE_UP}, "2 of them, and the verdicts have 2 rates"),
        ([], {"verdicts": MADE_UP}, "speculation.intermediates: 0 of them"),
        (["skip-2"], {"policy": {"kind": "goodput", "longest": 3}}, "this kind weighs what a drafter"),
        (["skip-2"], {"policy": {"kind": "joint", "longest": 3}}, "kind weighs what a drafter and a target"),
        (["skip-2"], {"policy": {"kind": "routed"}}, "speculation.policy"),
        (["skip-2"], {"policy": {"kind": "routed", "lengths": []}}, "[speculation.policy]: lengths []"),
        (["skip-2"], {"policy": {**ROUTED, "variant": "product"}}, "unknown speculation.policy.variant"),
        (["skip-3"], {}, "[speculation.verdicts]: "),
        (["target"], {}, "[speculation.verdicts]: 'target' is the target, and no intermediate"),
        (["ngram"], {}, "[speculation.verdicts]: 'ngram' cannot verify drafts below the target"),
        (["skip-2"], {"memory": {"middle_blocks": {"skip-6": 9}}}, "[engine]: middle_blocks: unknown"),
        (["skip-2"], {"memory": {"middle_blocks": {"skip-2": 0}}}, "memory.middle_blocks"),
        (
            ["skip-2"],
            {"policy": ROUTED, "others": [{"drafter": "ngram", "semantics": "funnel-truncate"}]},
            "speculation.others[0].semantics: means nothing",
        ),
        (
            ["skip-2"],
            {"policy": ROUTED, "others": [{"drafter": "ngram", "intermediates": ["ngram"]}]},
            "speculation.others[0].intermediates: ['ngram'] above 'ngram'",
        ),
        (["skip-2"], {"others": [{"drafter": "ngram"}]}, "kinds switching and routed, and no other"),
    ],
    ids=lambda x: x[-40:] if isinstance(x, str) else "",
)
def test_refusals_name_the_key(tmp_path, above, more, said):
    with pytest.raises(BadInput) as error:
        build(read_scenario(replayed(tmp_path, more.pop("policy", FIXED), above, **more)))
    assert said in str(error.value)


def test_a_sweep_calls_chains_by_their_models(tmp_path):
    reads = []
    for name, above, semantics in (
        ("one", ["skip-2"], None),
        ("two", ["skip-2"], "funnel-replace"),
        ("three", None, None),
    ):
        path = replayed(tmp_path, FIXED, above, semantics=semantics)
        reads.append(read_scenario(path.rename(tmp_path / f"{name}.toml")))
    assert list(policies(reads, ["{kind = 'routed', lengths = [2]}"])) == [
        "off",
        "skip-10 > skip-2, fixed draft_tokens=3",
        "skip-10 > skip-2 (funnel-replace), fixed draft_tokens=3",
        "skip-10, fixed draft_tokens=3",
        "skip-10 > skip-2, routed lengths=[2]",
    ]


def test_the_example_chooses_between_pairs_and_a_triple():
    read = read_scenario(ROOT / "reports" / "serving" / "chains-h100.toml")
    built = build(read)
    chains = built.serving.chains
    assert [len(c.middles) for c in chains] == [1, 0, 0, 0]
    assert [c.replace for c in chains] == [True, False, False, False]
    assert run(built, 1, until_seconds=12).figures["draft"]["accepted_tokens"] > 0
