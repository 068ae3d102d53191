"""``simspec masks`` on networks that are made up: the same texts, and caches kept as each way says."""

from __future__ import annotations

import json

import pytest

from simspec.cli import main
from tests import recorded

pytestmark = pytest.mark.real_model  # torch and transformers; the weights are made up

ARGUMENTS = ["--chains", "near,target;ngram,near,target", "--length", "5", "--rounds", "2"]
ARGUMENTS += ["--cells", "1:40:0,3:40:0,4:20:60"]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield recorded.recipe(recorded.networks(tmp_path_factory.mktemp("tiny")), output_tokens=40)
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def document(recipe):
    out = recipe.parent / "masks.json"
    with pytest.raises(SystemExit) as ended:
        main(["masks", str(recipe), str(out), *ARGUMENTS])
    assert ended.value.code == 0
    assert not out.with_name("masks.json.partial").exists()
    return json.loads(out.read_text())


def test_all_ways_write_the_same_texts_in_the_same_cycles(document):
    assert len(document["cells"]) == 6
    for cell in document["cells"]:
        assert len(cell["rounds"]) == 2
        for found in cell["rounds"]:
            assert found["equal"]
            assert len(found["prompt_tokens"]) == cell["batch"]
            assert min(found["prompt_tokens"]) >= cell["context"]
            ways = found["ways"]
            assert len({(w["tokens"], w["cycles"]) for w in ways.values()}) == 1
            for way in ways.values():
                parts = way["forward"] + way["choosing"] + way["packing"] + way["rest"]
                assert parts == pytest.approx(way["seconds_per_token"])


def test_moving_wastes_no_slot_and_never_packing_wastes_most(document):
    (cell,) = [c for c in document["cells"] if c["context"] and len(c["chain"]) == 2]
    for found in cell["rounds"]:
        ways = found["ways"]
        assert ways["never"]["packed"] == 0
        assert ways["move"]["packed"] > ways["mask"]["packed"]
        assert ways["move"]["slots_over_tokens"] == pytest.approx(1.0)
        assert ways["never"]["slots_over_tokens"] > 1.005
        assert ways["never"]["slots_over_tokens"] >= ways["mask"]["slots_over_tokens"]


def test_one_row_needs_no_packing_in_any_way(document):
    for cell in document["cells"]:
        if cell["batch"] == 1:
            assert all(w["packed"] == 0 for found in cell["rounds"] for w in found["ways"].values())


def test_a_stopped_run_goes_on(recipe, tmp_path, monkeypatch):
    from simspec.experiments import masks

    out = tmp_path / "m.json"
    arguments = ["masks", str(recipe), str(out), *ARGUMENTS[:-1], "1:8:0,2:8:0"]
    real, calls = masks.decode, []

    def stops(*given, **named):
        calls.append(1)
        if len(calls) == 11:
            raise KeyboardInterrupt
        return real(*given, **named)

    monkeypatch.setattr(masks, "decode", stops)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 130
    before = {p: p.read_bytes() for p in out.with_name("m.json.partial").iterdir()}
    assert len(before) == 3  # a mark and two rounds
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    # Eight rounds of four decodings each; two were kept, one had begun.
    assert len(calls) == 11 + 4 * 6
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2  # it exists
