"""Folders of drafters that read the target's states: what is refused, and where."""

from __future__ import annotations

import json
import shutil

import pytest

from simspec.errors import BadInput
from tests import recorded

pytestmark = pytest.mark.real_model  # torch and transformers; the weights are made up


@pytest.fixture
def folder(tmp_path):
    root = recorded.networks(tmp_path)
    recorded.reading(root)
    return root


def load(folder, kind="block-parallel", dtype="float32"):
    from simspec.record.models import load_models
    from simspec.record.recipe import BlockParallelRecipe, ModelRecipe, Recipe, TargetRecipe

    drafter = (
        BlockParallelRecipe("reading", "reading", recorded.MASK, 3, "causal")
        if kind == "block-parallel"
        else ModelRecipe("reading", "reading")
    )
    return load_models(Recipe("r", TargetRecipe("target"), (drafter,), (), dtype=dtype), folder)


def matrix(folder, weight):
    from safetensors.torch import save_file

    from simspec.record.reads_target import FILE

    save_file(weight, folder / "reading" / FILE)


def test_the_manifest_says_that_it_reads_the_target(folder):
    models = load(folder)
    assert models.blocks["reading"].reads_target
    assert models.described["reading"]["reads_target"] is True


@pytest.mark.parametrize("dtype", ["int8-per-token", "bfloat16"])
def test_it_drafts_in_other_number_formats(folder, dtype):
    """Its matrix is a linear layer, quantised as such; without states it reads zeros of the right width."""
    import torch
    from transformers import DynamicCache

    from simspec.record.running import forward

    models = load(folder, dtype=dtype)
    network = models.blocks["reading"].network
    tokens, places = torch.tensor([[0, 2, 1]]), torch.arange(3)[None]
    width = 2 * network.get_input_embeddings().weight.shape[1]
    blind, zeros, seen = (
        forward(network, tokens, places, DynamicCache(), states=states)
        for states in (None, torch.zeros(1, 3, width), torch.ones(1, 3, width))
    )
    assert torch.equal(blind, zeros)
    assert not torch.equal(blind, seen)


def test_it_cannot_draft_one_token_after_another(folder):
    with pytest.raises(BadInput, match=r"reads the target's states.*block-parallel"):
        load(folder, "model")


def test_files_that_do_not_fit_are_refused(folder):
    import torch

    from simspec.record.reads_target import FILE

    size = json.loads((folder / "reading" / "config.json").read_text())["hidden_size"]
    matrix(folder, {"weight": torch.zeros(size, 2 * size + 2)})
    with pytest.raises(BadInput, match=f"states of {size + 1} numbers, the target's have {size}"):
        load(folder)
    for rows, columns in ((size + 1, 2 * size), (size, 2 * size + 1)):
        matrix(folder, {"weight": torch.zeros(rows, columns)})
        with pytest.raises(BadInput, match=rf"shape \({rows}, {columns}\)"):
            load(folder)
    matrix(folder, {"other": torch.zeros(size, size)})
    with pytest.raises(BadInput, match=f"{FILE} cannot be read"):
        load(folder)
    (folder / "reading" / FILE).write_bytes(b"no tensors")
    with pytest.raises(BadInput, match=f"{FILE} cannot be read"):
        load(folder)
    (folder / "reading" / FILE).unlink()
    with pytest.raises(BadInput, match=f"{FILE} cannot be read"):
        load(folder)


@pytest.mark.parametrize("layers", [True, [-1], ["1"], [0.5], 1])
def test_what_is_no_list_of_layers_is_refused(folder, layers):
    say_layers(folder, "reading", layers)
    with pytest.raises(BadInput, match=r"config.json.*reads_target"):
        load(folder)


def test_layers_that_the_target_has_not_are_refused(folder):
    say_layers(folder, "reading", [0, 2])
    with pytest.raises(BadInput, match=r"layers \[0, 2\] of a target of 2"):
        load(folder)


def test_drafters_that_read_different_layers_are_refused(folder):
    from simspec.record.models import load_models
    from simspec.record.recipe import BlockParallelRecipe, Recipe, TargetRecipe

    shutil.copytree(folder / "reading", folder / "other")
    say_layers(folder, "other", [1, 0])
    drafters = tuple(BlockParallelRecipe(n, n, recorded.MASK, 3, "causal") for n in ("reading", "other"))
    with pytest.raises(BadInput, match=r"layers \[0, 1\] and \[1, 0\]"):
        load_models(Recipe("r", TargetRecipe("target"), drafters, ()), folder)


def say_layers(folder, name, layers):
    path = folder / name / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "reads_target": layers}))
