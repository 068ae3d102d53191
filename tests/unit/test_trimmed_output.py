"""Output layers over a part of the vocabulary: tiny made-up networks."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from simspec.errors import BadInput
from tests import tiny

pytestmark = pytest.mark.real_model  # torch and transformers; the weights are made up

TOKENS = len(tiny.WORDS) + len(tiny.SPECIAL)
KEPT = (0, 3, 4, 9, 20, TOKENS - 2, TOKENS + 3)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """``target``, and ``trimmed``: the same network with 8 padding ids, told some ids apart."""
    import torch
    from safetensors.torch import save_file

    root = tmp_path_factory.mktemp("trimmed")
    tiny.folder(root / "target", tiny.network(tiny.config()), tiny.tokenizer())
    net = tiny.network(tiny.config(rows=TOKENS + 8, tie_word_embeddings=True), seed=2)
    folder = tiny.folder(root / "trimmed", net, tiny.tokenizer())
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "trimmed_output": True}))
    ids = torch.tensor(KEPT)
    weight = net.get_input_embeddings().weight.detach()[ids].contiguous()
    save_file({"ids": ids, "weight": weight}, folder / "trimmed_output.safetensors")
    return root


def load(root, source: str = "trimmed", **fields):
    from simspec.record.models import load_models
    from simspec.record.recipe import ModelRecipe, Recipe, TargetRecipe

    return load_models(Recipe("r", TargetRecipe("target"), (ModelRecipe("d", source),), (), **fields), root)


def test_logits_are_the_whole_layers_at_its_ids_and_nothing_elsewhere(root):
    import torch
    from transformers import AutoModelForCausalLM, DynamicCache

    from simspec.record.models import forward

    loaded = load(root)
    about = loaded.described["d"]
    assert (about["output_ids"], about["padded_ids"], loaded.vocabulary) == (len(KEPT), 8, TOKENS)
    text = torch.tensor([[1, 5, 9, 2, 28]])
    logits = forward(loaded.networks["d"], text, torch.arange(5)[None], DynamicCache())[0]
    with torch.inference_mode():
        whole = AutoModelForCausalLM.from_pretrained(root / "trimmed")(text).logits[0]
    ids = [i for i in KEPT if i < TOKENS]  # the padding id is no token of the target
    torch.testing.assert_close(logits[:, ids], whole[:, ids])
    assert logits.shape == (5, TOKENS)
    assert int(logits.isfinite().sum()) == 5 * len(ids)
    assert set(logits.argmax(-1).tolist()) <= set(ids)


def test_words_of_a_trimmed_output_are_distributions(root):
    import torch
    from transformers import DynamicCache

    from simspec.record.models import forward
    from simspec.record.words import words_of
    from simspec.speculation.sampling import Sampling

    network = load(root).networks["d"]
    logits = forward(network, torch.tensor([[1, 5, 9]]), torch.arange(3)[None], DynamicCache())[0]
    for sampling in (Sampling(1.0, 1.0), Sampling(0.7, 0.9)):
        probs = words_of(logits, sampling).probs
        np.testing.assert_allclose(probs.sum(-1), 1)
        assert (probs[:, [i for i in range(TOKENS) if i not in KEPT]] == 0).all()


def test_the_smaller_layer_is_in_8_bits_where_the_others_are(root):
    from simspec.record.quantize import PerTokenLinear

    head = load(root, dtype="int8-per-token").networks["d"].get_output_embeddings()
    assert isinstance(head.linear, PerTokenLinear)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda v: {"ids": v["ids"]}, "cannot be read"),
        (lambda v: {**v, "ids": v["ids"].flip(0)}, "not rising"),
        (lambda v: {**v, "ids": v["ids"] + TOKENS}, "not rising"),
        (lambda v: {**v, "ids": v["ids"] - 1}, "not rising"),
        (lambda v: {**v, "ids": v["ids"][:-1].clone()}, "has ids of shape"),
        (None, "cannot be read"),
    ],
    ids=["no weight", "falling", "beyond the table", "negative", "too few", "no file"],
)
def test_a_broken_output_layer_is_refused(root, change, said):
    from safetensors.torch import load_file, save_file

    folder = root / "broken"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root / "trimmed", folder)
    file = folder / "trimmed_output.safetensors"
    values = load_file(file)
    file.unlink()
    if change is not None:
        save_file({k: v.contiguous() for k, v in change(values).items()}, file)
    with pytest.raises(BadInput, match=said) as refused:
        load(root, "broken")
    assert "broken" in str(refused.value)
