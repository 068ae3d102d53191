"""A recipe's models, loaded from folders of tiny made-up networks and fitted to each other."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from simspec.errors import BadInput
from simspec.record.recipe import (
    BlockParallelRecipe,
    LayerSkipRecipe,
    LookupRecipe,
    ModelRecipe,
    Recipe,
    TargetRecipe,
)
from tests import tiny

pytestmark = pytest.mark.real_model  # torch and transformers; the weights are made up

TOKENS = len(tiny.WORDS) + len(tiny.SPECIAL)


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny layers on several threads mostly wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """``plain``; ``padded`` with 8 ids more than there are tokens; ``bare`` without a tokenizer."""
    root = tmp_path_factory.mktemp("models")
    padded = tiny.network(tiny.config(rows=TOKENS + 8), seed=2)
    tiny.folder(root / "plain", tiny.network(tiny.config()), tiny.tokenizer())
    tiny.folder(root / "padded", padded, tiny.tokenizer())
    tiny.folder(root / "bare", tiny.network(tiny.config()))
    return root


def load(folder: Path, source: str = "plain", drafters=(), **fields):
    from simspec.record.models import load_models

    recipe = Recipe(name="r", target=TargetRecipe(source), drafters=tuple(drafters), prompts=(), **fields)
    return load_models(recipe, folder)


def read(network, tokens, mask=None):
    import torch
    from transformers import DynamicCache

    from simspec.record.models import forward

    ids = torch.as_tensor(tokens)[None]
    return forward(network, ids, torch.arange(ids.shape[1])[None], DynamicCache(), mask)[0]


def test_folders_of_safetensors(models):
    loaded = load(models, drafters=[ModelRecipe("draft", "padded"), LookupRecipe("ngram")])
    assert list(loaded.networks) == ["target", "draft"]
    assert list(loaded.lookups) == ["ngram"]
    assert loaded.eos_ids == (TOKENS - 2,)
    assert loaded.described["target"]["source"] == "plain"
    assert "padded_ids" not in loaded.described["target"]
    loaded.check_behaviour()


def test_no_id_beyond_the_common_vocabulary_is_ever_drafted(models):
    """The larger network's logits there are made the greatest; they must not come out."""
    import torch
    from safetensors.torch import load_file, save_file

    folder = models / "loud"
    net = tiny.network(tiny.config(rows=TOKENS + 8), seed=2)
    tiny.folder(folder, net, tiny.tokenizer())
    weights = load_file(folder / "model.safetensors")
    quiet = weights["lm_head.weight"].clone()
    weights["lm_head.weight"] = torch.cat([quiet[:TOKENS], 100 * quiet[:8]])
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    text = [1, 5, 9, 2, 28]
    whole = load(models, "loud").networks["target"]
    assert int(read(whole, text).argmax(-1).max()) >= TOKENS  # or the test shows nothing
    loaded = load(models, drafters=[ModelRecipe("draft", "loud")])
    assert loaded.vocabulary == TOKENS
    assert loaded.described["draft"]["padded_ids"] == 8
    drafter = loaded.networks["draft"]
    assert read(drafter, text).shape == (len(text), TOKENS)
    assert torch.equal(read(drafter, text), read(whole, text)[:, :TOKENS])
    made = drafter.generate(torch.tensor([text]), do_sample=False, max_new_tokens=8)
    assert int(made.max()) < TOKENS


def test_random_weights_come_from_seed_and_name(models):
    import torch

    def weights(name: str = "draft", **fields):
        loaded = load(models, drafters=[ModelRecipe(name, "random:padded")], **fields)
        return loaded, next(loaded.networks[name].parameters())

    loaded, first = weights()
    assert loaded.described["draft"]["weights"] == "random"
    assert torch.equal(first, weights()[1])
    assert not torch.equal(first, weights("other")[1])
    assert not torch.equal(first, weights(seed=1)[1])
    with pytest.raises(BadInput, match="weights of draft are random"):
        loaded.check_behaviour()


def test_a_random_target_takes_its_folders_tokenizer_if_there_is_one(models):
    assert load(models, "random:plain").tokenizer.get_vocab() == tiny.tokenizer().get_vocab()
    bare = load(models, "random:bare", [ModelRecipe("draft", "random:bare/config.json")])
    assert bare.tokenizer is None
    assert bare.vocabulary == TOKENS
    assert read(bare.networks["draft"], [3, 4]).shape == (2, TOKENS)
    with pytest.raises(BadInput, match="latency only"):
        bare.check_behaviour()


def test_another_tokenizer_is_refused_before_weights_are_read(models):
    folder = models / "other"
    tiny.folder(folder, tiny.network(tiny.config()), tiny.tokenizer(words=tiny.WORDS[::-1]))
    (folder / "model.safetensors").write_bytes(b"no weights at all")
    with pytest.raises(BadInput, match="source of drafter draft = 'other': token ids differ"):
        load(models, drafters=[ModelRecipe("draft", "other")])


def test_weights_that_are_not_there_are_not_made_up(models):
    from safetensors.torch import load_file, save_file

    folder = tiny.folder(models / "holes", tiny.network(tiny.config()), tiny.tokenizer())
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.2.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BadInput, match=r"lacks 1 weights, first 'model\.layers\.2\.mlp\.up_proj\.weight'"):
        load(models, "holes")


def test_broken_weights_are_refused(models):
    folder = tiny.folder(models / "broken", tiny.network(tiny.config()), tiny.tokenizer())
    (folder / "model.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(BadInput, match="'broken'"):
        load(models, "broken")


CODE = """
from pathlib import Path
from transformers import LlamaConfig, LlamaForCausalLM
Path(__file__).with_name("ran").touch()
class OwnConfig(LlamaConfig):
    model_type = "simspec_test_own"
class OwnForCausalLM(LlamaForCausalLM):
    config_class = OwnConfig
"""


def test_code_that_comes_with_a_model_runs_only_where_the_recipe_says_so(models, tmp_path, monkeypatch):
    from transformers import dynamic_module_utils

    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.syspath_prepend(tmp_path / "modules")
    folder = tiny.folder(models / "own", tiny.network(tiny.config()), tiny.tokenizer())
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "simspec_test_own",
        "architectures": ["OwnForCausalLM"],
        "auto_map": {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnForCausalLM"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(CODE)
    with pytest.raises(BadInput, match="trust_remote_code = true"):
        load(models, "own")
    assert not list(tmp_path.rglob("ran"))
    about = load(models, "own", trust_remote_code=True).described["target"]
    assert (about["architecture"], about["remote_code"]) == ("OwnForCausalLM", True)
    assert list(tmp_path.rglob("ran"))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"device": "gpu"}, "device: 'gpu' is no device; allowed: cpu, cuda, cuda:N, mps"),
        ({"device": "cuda:4096"}, "device: 'cuda:4096' is not to be had"),
        ({"attention": "sdp"}, "did you mean 'sdpa'"),
        ({"attention": "kernels-community/flash-attn"}, "unknown implementation"),
        ({"attention": "flash_attention_2"}, "allowed: bfloat16 or float16 on cuda"),
        ({"attention": "sdpa", "dtype": "int8-per-token"}, "brings its own"),
    ],
)
def test_what_is_not_to_be_had_is_refused_by_field(models, fields, said):
    with pytest.raises(BadInput) as refused:
        load(models, **fields)
    assert said in str(refused.value)


def test_a_model_with_a_running_state_is_refused(models):
    folder = models / "state"
    folder.mkdir()
    tiny.config(kind="Mamba", state_size=4).save_pretrained(folder)
    with pytest.raises(BadInput, match="rolled back"):
        load(models, "random:state")


def test_eager_attention_takes_the_same_masks(models):
    """Eager attention adds its mask to the scores, so that a mask of True and False would do nothing."""
    import torch

    text = [1, 5, 9, 2, 28]
    seen = torch.ones(len(text), len(text), dtype=torch.bool).tril()
    seen[3:, 1] = False
    quick = read(load(models).networks["target"], text, seen[None, None])
    eager = read(load(models, attention="eager").networks["target"], text, seen[None, None])
    assert torch.allclose(quick, eager, atol=1e-4)
    assert not torch.allclose(quick, read(load(models).networks["target"], text), atol=1e-2)


def test_a_window_shorter_than_the_context_is_for_latency_only(models):
    folder = models / "window"
    tiny.folder(folder, tiny.network(tiny.config(kind="Mistral", sliding_window=64)), tiny.tokenizer())
    load(models, "window", context_limit=64, output_tokens=8).check_behaviour()
    with pytest.raises(BadInput, match="sees 64 tokens back"):
        load(models, "window", context_limit=65, output_tokens=8).check_behaviour()


def test_block_parallel_drafters(models):
    loaded = load(
        models,
        drafters=[
            BlockParallelRecipe("own", "padded", "<mask>", 4, "full"),
            BlockParallelRecipe("shared", "target", 5, 3, "causal"),
        ],
    )
    own, shared = loaded.blocks["own"], loaded.blocks["shared"]
    assert (own.mask_token, own.block, own.within) == (TOKENS - 1, 4, "full")
    assert (shared.mask_token, shared.block, shared.within) == (5, 3, "causal")
    assert shared.network is loaded.networks["target"]
    assert list(loaded.networks) == ["target"]
    assert own.network.get_output_embeddings().out_features == TOKENS
    about = loaded.described["own"]
    assert (about["kind"], about["mask_token"], about["padded_ids"]) == ("block-parallel", TOKENS - 1, 8)
    assert loaded.described["shared"]["parent"] == "target"
    with pytest.raises(BadInput, match=r"mask_token of big: 40 is no token id.*0 to 39"):
        load(models, drafters=[BlockParallelRecipe("big", "padded", 40, 4, "full")])


def test_a_mask_of_the_drafters_own_is_no_difference(models):
    folder = models / "masked"
    more = tiny.tokenizer(special=("<end>", "<mask>", "<hole>"))
    tiny.folder(folder, tiny.network(tiny.config(rows=TOKENS + 8)), more)
    loaded = load(models, drafters=[BlockParallelRecipe("b", "masked", "<hole>", 4, "full")])
    assert loaded.blocks["b"].mask_token == TOKENS
    assert loaded.vocabulary == TOKENS  # the mask can be read, never drafted
    with pytest.raises(BadInput, match=f"id {TOKENS}: '<hole>' here"):
        load(models, drafters=[ModelRecipe("b", "masked")])


def test_layers_are_skipped_in_whatever_form_the_weights_are(models):
    for dtype in ("float32", "bfloat16", "int8-dynamic", "int8-per-token"):
        loaded = load(models, drafters=[LayerSkipRecipe("skip", 1, 2)], dtype=dtype)
        target, shorter = loaded.networks["target"], loaded.networks["skip"]
        assert shorter.model.layers[1].mlp.up_proj is target.model.layers[3].mlp.up_proj
        assert len(shorter.model.layers) == 2
        assert np.isfinite(read(shorter, [1, 2, 3]).numpy()).all()


def test_int8_per_token_is_refused_where_it_would_not_hold(models):
    for kind, more in (("GPT2", {}), ("Mixtral", {"num_local_experts": 2})):
        folder = models / kind
        folder.mkdir()
        tiny.config(kind=kind, **more).save_pretrained(folder)
        with pytest.raises(BadInput, match="leaves as they are"):
            load(models, f"random:{kind}", dtype="int8-per-token")
