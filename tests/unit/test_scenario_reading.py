"""A scenario's file is read strictly: each refusal names the key that is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from simspec.errors import BadInput
from simspec.scenario.build import build
from simspec.scenario.config import Scenario
from simspec.scenario.reading import read_scenario

ROOT = Path(__file__).parents[2]

# Made up: a device on which a step of one row takes 2 ms. No trace, so that nothing takes long.
COST = """
name = "made-up"
label = "made up for tests"
target = "target"
base_seconds = 1.5e-3
token_seconds = 1e-5
context_token_seconds = 1e-8
step_overhead_seconds = 5e-4
[ratios]
small = 0.1
"""
SMALL: dict[str, Any] = {
    "name": "small",
    "workload": {"kind": "poisson", "rate": 30.0, "requests": 60},
    "lengths": {"kind": "fixed", "prompt_tokens": 50, "output_tokens": 20},
    "engine": {"slots": 8},
    "cost": {"target": "cost.toml"},
    "speculation": {
        "drafter": "small",
        "policy": {"kind": "fixed", "draft_tokens": 3},
        "verdicts": {"kind": "rates", "survival": [0.8, 0.5, 0.3]},
    },
}


def written(folder: Path, **changes: Any) -> Path:
    """A small scenario's file; ``changes`` by section, a key set to None is left out."""
    document = {**SMALL}
    for name, value in changes.items():
        old, new = document.get(name), value
        if isinstance(old, dict) and isinstance(value, dict) and value.get("kind") in (None, old.get("kind")):
            new = {**old, **value}  # of another kind, it shares no keys
        document[name] = {k: v for k, v in new.items() if v is not None} if isinstance(new, dict) else new
    (folder / "cost.toml").write_text(COST)
    path = folder / "scenario.toml"
    path.write_text("".join(f"{k} = {_toml(v)}\n" for k, v in document.items() if v is not None))
    return path


def _toml(value: Any) -> str:
    """A value as TOML writes it, tables inline."""
    if isinstance(value, dict):
        inner = (f"{name} = {_toml(v)}" for name, v in value.items() if v is not None)
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    # JSON's words for all but NaN and infinity, which are Python's.
    return repr(value) if isinstance(value, float) else json.dumps(value)


def test_a_file_is_the_tree_that_it_says(tmp_path):
    found = read_scenario(written(tmp_path, seed=7, until_seconds=2.5)).scenario
    assert (found.seed, found.until_seconds, found.engine.slots) == (7, 2.5, 8)
    assert msgspec.convert(msgspec.to_builtins(found), Scenario) == found
    with pytest.raises(AttributeError):
        found.seed = 8  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"engine": {"slot": 8}}, ["[engine]", "unknown key 'slot'", "did you mean 'slots'"]),
        ({"sead": 3}, ["top level", "unknown key 'sead'", "did you mean 'seed'"]),
        ({"workload": {"requets": 3}}, ["[workload]", "did you mean 'requests'"]),
        ({"workload": {"kind": "poison"}}, ["workload.kind", "did you mean 'poisson'"]),
        ({"workload": {"kind": None}}, ["workload has no kind", "poisson"]),
        (
            {"speculation": {"policy": {"kind": "fixed", "draft_token": 3}}},
            ["[speculation.policy]", "did you mean 'draft_tokens'"],
        ),
        ({"engine": {"prefill": "chunk"}}, ["engine.prefill", "did you mean 'chunked'"]),
        ({"speculation": {"policy": {"kind": "by-rows", "table": []}}}, ["speculation.policy.table", "1"]),
        (
            {"speculation": None, "cluster": {"drafter_device": {}}},
            ["cluster.drafter_device", "nobody drafts"],
        ),
        ({"workload": {"rate": float("nan")}}, ["workload.rate is nan"]),
        ({"workload": {"rate": float("inf")}}, ["workload.rate is inf"]),
        ({"workload": {"rate": -1.0}}, ["workload.rate", "> 0"]),
        ({"workload": {"rate": "20"}}, ["workload.rate", "got `str`"]),
        ({"workload": {"requests": 2.5}}, ["workload.requests", "got `float`"]),
        ({"workload": {"requests": 0}}, ["workload.requests", ">= 1"]),
        ({"engine": {"slots": None}}, ["engine", "`slots`"]),
        ({"engine": {"patience_seconds": -1.0}}, ["engine.patience_seconds"]),
        ({"engine": {"overhead_seconds": float("nan")}}, ["engine.overhead_seconds is nan"]),
        ({"memory": {"block_swap_seconds": float("inf")}}, ["memory.block_swap_seconds is inf"]),
        ({"memory": {"target_blocks": 0}}, ["memory.target_blocks"]),
        (
            {"speculation": {"verdicts": {"kind": "rates", "survival": [0.5, float("nan")]}}},
            ["speculation.verdicts.survival[1] is nan"],
        ),
        (
            {"speculation": {"verdicts": {"kind": "rates", "survival": [1.5]}}},
            ["speculation.verdicts.survival", "<= 1"],
        ),
        ({"speculation": {"verdicts": None}}, ["speculation.verdicts: missing"]),
        ({"speculation": {"drafter": None}}, ["speculation.drafter: missing"]),
        ({"lengths": None}, ["lengths: missing"]),
        ({"lengths": {"kind": "fixed", "prompt_tokens": 0, "output_tokens": 1}}, ["lengths.prompt_tokens"]),
        ({"warm_up": {"seconds": 1.0, "requests": 3}}, ["warm_up.requests"]),
        ({"warm_up": {"requests": 3, "rule": "mser"}}, ["warm_up.rule", "requests is set too"]),
        ({"warm_up": {"of": "queue"}}, ["warm_up.of", "mser"]),
        ({"warm_up": {"rule": "mser5"}}, ["warm_up.rule", "mser5", "mser"]),
        ({"cool_down": {"seconds": 1.0, "drain": "leave-out"}}, ["cool_down.drain", "seconds is set too"]),
        ({"cool_down": {"seconds": 1.0, "requests": 3}}, ["cool_down.requests"]),
        ({"warm_up": {"seconds": 5.0}, "until_seconds": 4.0}, ["warm_up.seconds"]),
        ({"until_seconds": 0.0}, ["until_seconds"]),
        ({"objectives": {"ttft_seconds": -0.1}}, ["objectives.ttft_seconds"]),
        ({"seed": -1}, ["seed"]),
    ],
    ids=lambda x: str(x)[:60],
)
def test_refusals_name_the_key(tmp_path, changes, said):
    path = written(tmp_path, **changes)
    with pytest.raises(BadInput) as error:
        read_scenario(path)
    assert error.value.where.startswith(str(path))
    for words in said:
        assert words in str(error.value)


LOG = {"kind": "log", "format": "azure", "path": "log.csv"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"workload": {**LOG, "format": "sharegpt"}, "lengths": None},
            "workload.format: a ShareGPT file has no",
        ),
        ({"workload": {**LOG, "time_scale": 2.0, "rate": 3.0}}, "workload.rate: time_scale is set too"),
        ({"workload": {**LOG, "format": "azur"}}, "did you mean 'azure'"),
        ({"workload": {**LOG, "path": "nowhere.csv"}}, "nowhere.csv: cannot be read"),
        (
            {"lengths": {"kind": "log", "format": "sharegpt", "path": "s.json"}},
            "lengths.characters_per_token: missing",
        ),
        (
            {
                "lengths": {
                    "kind": "log",
                    "format": "sharegpt",
                    "path": "s.json",
                    "characters_per_token": 4.0,
                    "tokenizer": "tokenizer.json",
                }
            },
            "lengths.characters_per_token: set together with",
        ),
        (
            {"lengths": {"kind": "log", "format": "azure", "path": "a.csv", "characters_per_token": 4.0}},
            "lengths.characters_per_token: means nothing for azure",
        ),
        ({"cost": {"target": "float32"}}, "cost.trace"),
        ({"cost": {"target": "nowhere.toml"}}, "nowhere.toml: cannot be read"),
        ({"cost": {"target_name": "targe"}}, "did you mean 'target'"),
        ({"speculation": {"drafter": "smal"}}, "did you mean 'small'"),
        (
            {"speculation": {"policy": {"kind": "fixed", "draft_tokens": 4}}},
            "[speculation.policy]: drafts of up to 4 tokens; allowed: at most 3",
        ),
        (
            {"speculation": {"policy": {"kind": "off-above", "draft_tokens": 2, "off_above": 4, "on_at": 5}}},
            "[speculation.policy]: on_at is 5",
        ),
        (
            {"speculation": {"verdicts": {"kind": "rates", "survival": [0.2, 0.4, 0.1]}}},
            "[speculation.verdicts]: acceptance by place",
        ),
        ({"speculation": {"verdicts": {"kind": "trace", "path": "nowhere"}}}, "nowhere"),
    ],
    ids=lambda x: x[:40] if isinstance(x, str) else "",
)
def test_what_does_not_fit_together_is_refused(tmp_path, changes, said):
    with pytest.raises(BadInput) as error:
        build(read_scenario(written(tmp_path, **changes)))
    assert said in str(error.value)


def test_paths_are_relative_to_the_scenario_and_not_to_the_current_folder(tmp_path, monkeypatch):
    inside = tmp_path / "scenarios"
    inside.mkdir()
    path = written(inside, cost={"target": "../costs/cost.toml"})
    (tmp_path / "costs").mkdir()
    (inside / "cost.toml").rename(tmp_path / "costs" / "cost.toml")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    built = build(read_scenario(Path("../scenarios/scenario.toml")))
    assert built.serving.costs.cost.name == "made-up"
    assert build(read_scenario(path.absolute())).inputs == built.inputs


def test_no_such_file_no_text_no_toml(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        read_scenario(tmp_path / "nowhere.toml")
    path = tmp_path / "bad.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="UTF-8"):
        read_scenario(path)
    path.write_text("name = ")
    with pytest.raises(BadInput, match=r"bad\.toml"):
        read_scenario(path)


def test_off_is_plain_decoding_and_fixed_nought_is_not(tmp_path):
    off = build(read_scenario(written(tmp_path, speculation={"policy": {"kind": "off"}})))
    assert off.serving.speculation is None
    nought = build(
        read_scenario(written(tmp_path, speculation={"policy": {"kind": "fixed", "draft_tokens": 0}}))
    )
    assert nought.serving.speculation is not None


@pytest.mark.parametrize("path", sorted((ROOT / "reports" / "serving").glob("*.toml")), ids=lambda p: p.stem)
def test_the_examples_are_read(path):
    assert read_scenario(path).scenario.name == path.stem
