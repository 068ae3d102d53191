"""``simspec validate`` on networks that are made up: what is measured, kept, and gone on with."""

from __future__ import annotations

import json

import numpy as np
import pytest

from simspec.cli import main
from simspec.compare.validated import read_validation
from simspec.cost.shape import uniform
from simspec.errors import BadInput
from simspec.traces.index import load_trace
from tests import recorded

pytestmark = pytest.mark.real_model  # torch and transformers; the weights are made up

ARGUMENTS = ["--rounds", "2", "--shares", "1:2,2:2", "--decoded", "2", "--lengths", "1-3", "--near", "2"]
ARGUMENTS += ["--output-tokens", "10"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The arguments of a validation, its document, and the trace."""
    import torch

    from simspec.record.session import record

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    folder = recorded.networks(tmp_path_factory.mktemp("tiny"))
    recipe = recorded.recipe(folder, output_tokens=16, block_length=6)
    record(recipe, folder / "trace", ["test"])
    arguments = ["validate", str(folder / "trace"), str(recipe), *ARGUMENTS]
    out = folder / "validation.json"
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--out", str(out)])
    assert ended.value.code == 0  # 1 where a cycle is not the replayed one
    assert not out.with_name("validation.json.partial").exists()
    yield arguments, json.loads(out.read_text()), load_trace(folder / "trace")
    torch.set_num_threads(before)


def test_every_configuration_decodes_the_same_batches(run):
    _, document, trace = run
    assert [e["same_text_as_target"] for e in document["engines"]] == [True] * 3
    same = document["same_prompts"]["all"]
    assert {c["batch"] for c in same} == {1, 2}
    decoded = {row for units in document["decoded"].values() for unit in units for row in unit}
    assert len(decoded) == 2
    assert not decoded & set(document["fitted"])
    assert len(document["decoded"]["1"]) == 4
    assert len(document["decoded"]["2"]) == 2
    for c in same:
        units = document["decoded"][str(c["batch"])]
        assert len(c["unit_seconds"]) == len(units)
        # Texts are the target's own, whoever drafts.
        size = np.minimum(trace.prompts["output_tokens"].to_numpy(), 10)
        assert c["unit_tokens"] == [int(size[unit].sum()) for unit in units]
        assert c["measured"] == pytest.approx(sum(c["unit_seconds"]) / sum(c["unit_tokens"]))
        assert c["priced_by_slots"] > 0.0
    chains = [tuple(c["chain"]) for c in same if c["batch"] == 1]
    assert {("target",), ("near", "target"), ("ngram", "target"), ("ngram", "near", "target")} <= set(chains)
    assert {("causal", "target"), ("full", "target")} <= set(chains)


def test_the_document_is_a_cost_at_every_count_of_rows(run):
    _, document, trace = run
    validation = read_validation(document, trace)
    cost = validation.cost(trace)
    assert cost.models == {"near", "ngram", "causal", "full", "target", "first-1"}
    (target,) = [m for m in validation.forwards if m.model == "target"]
    assert (target.rows, target.repetitions) == ([1, 2], 3)
    at = uniform(np.array([2]), np.array([target.widths[1]]), np.array([target.contexts[0]]))
    beside = validation.overhead_seconds
    expected = target.seconds[0][1][1] + beside.forward + 2 * target.widths[1] * beside.word + 2 * beside.row
    assert cost.forward_seconds("target", at)[0] == pytest.approx(expected)
    with pytest.raises(BadInput, match="forwards"):
        read_validation({k: v for k, v in document.items() if k != "forwards"}, trace)
    with pytest.raises(BadInput, match="ffff"):
        read_validation({**document, "behaviour_sha256": "ffff"}, trace)


def test_a_stopped_run_goes_on_with_what_it_has(run, tmp_path, monkeypatch):
    from simspec.experiments import measuring

    arguments, document, _ = run
    out = tmp_path / "v.json"
    real, calls = measuring.decode, []

    def stops(*given, **named):
        calls.append(1)
        if len(calls) == 7:
            raise KeyboardInterrupt
        return real(*given, **named)

    monkeypatch.setattr(measuring, "decode", stops)
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--out", str(out)])
    assert ended.value.code == 130
    pieces = tmp_path / "v.json.partial"
    before = {p.name: p.read_bytes() for p in pieces.iterdir()}
    assert sum(name.startswith("unit-") for name in before) == 6
    # Another measurement does not go on with them.
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--seed", "1", "--out", str(out)])
    assert ended.value.code == 2
    kept = {}
    write = measuring.Pieces.make

    def watched(self, name, build):
        found = write(self, name, build)
        kept[name] = (self.folder / f"{name}.json").read_bytes()
        return found

    monkeypatch.setattr(measuring.Pieces, "make", watched)
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--out", str(out)])
    assert ended.value.code == 0
    assert all(
        kept[name.removesuffix(".json")] == held for name, held in before.items() if name != "mark.json"
    )
    assert json.loads(out.read_text())["decoded"] == document["decoded"]
