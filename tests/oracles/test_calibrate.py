"""Calibration of a real, if tiny, network: killed, resumed, and short of memory.

The network has random weights: its times are real and mean nothing beyond this test.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simspec.compare.costs import whole_grid
from simspec.cost.models import MeasuredCost
from simspec.errors import BadInput
from simspec.traces.profile import read_profile

pytestmark = pytest.mark.real_model

RECIPE = """
name = "tiny"
seed = 3
threads = 1
prompts = []
[target]
source = "{model}"
[[drafters]]
kind = "prompt-lookup"
name = "ngram"
[[drafters]]
kind = "layer-skip"
name = "skip-1"
first = 0
count = 1
[latency]
batches = [1, 2]
new_tokens = [1, 3]
contexts = {contexts}
repetitions = {repetitions}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A network of two small layers with a tokenizer of 64 words, saved as transformers does."""
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    network = LlamaForCausalLM(LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, **sizes))
    network.save_pretrained(folder)
    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(64)}, unk_token="w0"))
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="w0", eos_token="w1").save_pretrained(folder)
    return folder


def recipe(folder: Path, model: Path, contexts: str = "[8]", repetitions: int = 2) -> Path:
    path = folder / "tiny.toml"
    path.write_text(RECIPE.format(model=model.as_posix(), contexts=contexts, repetitions=repetitions))
    return path


def calibrate(recipe: Path, out: Path) -> list[str]:
    """Calibrate in this process; returns the progress lines."""
    from simspec.calibration.session import calibrate as carry_out

    lines: list[str] = []
    carry_out(recipe, out, ["simspec", "calibrate"], lines.append)
    return lines


@pytest.fixture
def no_peaks(monkeypatch) -> None:
    """Made-up peaks, where a test does not look at them: measuring them takes longer than the test."""
    from simspec.calibration import session

    made_up = {"flops_per_second": 1e11, "bytes_per_second": 1e10}
    monkeypatch.setattr(session, "measure_peaks", lambda *_: made_up)


def test_a_run_that_is_killed_goes_on_where_it_was(model, tmp_path):
    # Enough repetitions that the run cannot end between two looks.
    path = recipe(tmp_path, model, contexts="[8, 16]", repetitions=80)
    command = [sys.executable, "-m", "simspec", "calibrate", str(path), "out"]
    shards = tmp_path / "out.partial"
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        give_up = time.monotonic() + 120
        while not list(shards.glob("latency-*[0-9]")):
            assert running.poll() is None, running.communicate()
            assert time.monotonic() < give_up
            time.sleep(0.02)
    finally:
        os.kill(running.pid, signal.SIGKILL)
        running.communicate()
    finished = {p.name for p in shards.glob("latency-*[0-9]")}
    assert not (tmp_path / "out").exists()
    assert 0 < len(finished) < 4
    kept = {name: (shards / name / "latency.parquet").read_bytes() for name in finished}
    (shards / "latency-00016-0009.writing").mkdir()  # what a kill in the middle of writing leaves

    lines = calibrate(path, tmp_path / "out")
    assert sum(line.endswith(": found") for line in lines) == len(finished)
    assert not shards.exists()
    profile, latency = read_profile(tmp_path / "out")
    assert kept
    cells = latency.groupby(["model", "batch", "new_tokens", "context"]).size()
    assert len(cells) == 3 * 2 * 2 * 2
    assert set(cells) == {80}
    assert (latency["seconds"] > 0).all()
    assert profile.missing == []
    assert {s.model for s in profile.spread} == {"target", "skip-1", "ngram"}
    assert profile.models["skip-1"].architecture["layers"] == 1
    assert profile.models["ngram"].weights == "none"
    assert {f["model"] for f in profile.fits["affine"]} == {"target", "skip-1", "ngram"}
    assert profile.fits["roofline"][0]["in_sample"]["points"] == 16

    with pytest.raises(BadInput, match="never overwritten"):
        calibrate(path, tmp_path / "out")


def test_order_is_drawn_from_the_seed_and_is_not_the_grids(model, tmp_path, no_peaks):
    lines = calibrate(recipe(tmp_path, model, contexts="[4, 5, 6, 7]", repetitions=1), tmp_path / "a")
    again = calibrate(recipe(tmp_path, model, contexts="[4, 5, 6, 7]", repetitions=1), tmp_path / "b")

    def cells(said: list[str]) -> list[str]:
        return [line.partition(": ")[2].rpartition(":")[0] for line in said]

    assert cells(lines) == cells(again)
    assert len(set(cells(lines))) == 8
    assert cells(lines) != sorted(cells(lines))


def test_shards_of_another_recipe_are_refused(model, tmp_path):
    path = recipe(tmp_path, model)
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial" / "recipe.sha256").write_text("0" * 64 + "\n")
    with pytest.raises(BadInput, match="another recipe or machine"):
        calibrate(path, tmp_path / "out")


def test_a_recipe_without_a_grid_is_refused(model, tmp_path):
    path = recipe(tmp_path, model)
    path.write_text(path.read_text().partition("[latency]")[0])
    with pytest.raises(BadInput, match=r"no part \[latency\]"):
        calibrate(path, tmp_path / "out")


def test_out_of_memory_leaves_a_note_and_the_rest(model, tmp_path, monkeypatch, no_peaks):
    import torch

    from simspec.calibration import forwards

    real = forwards.forward

    def short(network, tokens, positions, cache, *rest):
        # As the CPU's allocator says it. The target has two layers; its skip still fits.
        if tokens.numel() == 6 and network.config.num_hidden_layers == 2:
            real(network, tokens, positions, cache)  # the cache has grown when it happens
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")
        return real(network, tokens, positions, cache, *rest)

    monkeypatch.setattr(forwards, "forward", short)
    calibrate(recipe(tmp_path, model), tmp_path / "out")
    profile, latency = read_profile(tmp_path / "out")
    assert [(m.model, m.batch, m.new_tokens, m.context, m.reason) for m in profile.missing] == [
        ("target", 2, 3, 8, "out of memory")
    ]
    assert "1 forwards of the grid are missing" in profile.notes[-1]
    cells = latency.groupby(["model", "batch", "new_tokens"]).size()
    assert len(cells) == 3 * 2 * 2 - 1
    assert set(cells) == {2}
    whole, gone = whole_grid(latency)
    assert len(gone) == 1
    assert MeasuredCost(whole, "float32", "", "").models == {"target", "skip-1", "ngram"}

    def never(network, tokens, *rest):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(forwards, "forward", never)
    with pytest.raises(BadInput, match="out of memory: target at batch 1"):
        forwards.time_cell(*_cell_of(tmp_path / "tiny.toml"), 8, 1, device="cpu", vocabulary=64, seed=0)


def test_other_errors_are_not_taken_for_a_lack_of_memory(model, tmp_path, monkeypatch):
    from simspec.calibration import forwards

    def broken(*_):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(forwards, "forward", broken)
    with pytest.raises(RuntimeError, match="mat1"):
        calibrate(recipe(tmp_path, model), tmp_path / "out")


def test_caches_are_as_long_as_before_after_every_forward(model, tmp_path, monkeypatch, no_peaks):
    from simspec.calibration import forwards

    real, seen = forwards.forward, set()

    def watched(network, tokens, positions, cache, *rest):
        seen.add((cache.get_seq_length(), int(positions.min())))
        return real(network, tokens, positions, cache, *rest)

    monkeypatch.setattr(forwards, "forward", watched)
    calibrate(recipe(tmp_path, model), tmp_path / "out")
    assert seen == {(0, 0), (8, 8)}  # a prefill of nothing, then always the context


def test_the_command_prints_its_fits(model, tmp_path, monkeypatch, capsys):
    from simspec.cli import main

    recipe(tmp_path, model, contexts="[8, 16]")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["calibrate", "tiny.toml", "out", "--json"])
    printed = capsys.readouterr()
    assert stop.value.code == 0, printed.err
    found = json.loads(printed.out)
    assert found["rows"] == 3 * 2 * 2 * 2 * 2
    assert set(found["peaks"]) == {"flops_per_second", "bytes_per_second"}
    assert set(found["fits"]) == {"affine", "roofline", "roofline_of_peaks"}
    assert "cell 1 of 4" in printed.err


def _cell_of(path: Path):
    from simspec.calibration.forwards import timed_networks
    from simspec.record.models import load_models
    from simspec.record.recipe import read_recipe

    recipe = read_recipe(path)[0]
    models = load_models(recipe)
    return timed_networks(models, recipe), models.lookups, recipe.latency
