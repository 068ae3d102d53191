"""A network without some layers equals one that was built without them and given the same weights."""

from __future__ import annotations

import pytest

from simspec.errors import BadInput
from tests import tiny

pytestmark = pytest.mark.real_model  # torch and transformers; the weights are made up

EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "head_dim": 8}

KINDS = {
    "Llama": {},
    "Mistral": {"sliding_window": 4},
    "Qwen2": {},
    "Qwen3": {"head_dim": 8},
    "Qwen3Moe": EXPERTS,
    "Gemma2": {"head_dim": 8, "sliding_window": 4},  # every other layer sees a window only
    "Gemma3": {"head_dim": 8, "sliding_window": 4},  # all but every sixth
    "Phi3": {},
    "Olmo2": {},
    "SmolLM3": {},  # every fourth layer without positions
}


def made(kind: str, **changes):
    from transformers import AutoConfig, AutoModelForCausalLM

    sizes = {**tiny.SIZES, "num_hidden_layers": 7, "vocab_size": 97, **KINDS[kind], **changes}
    name = {"Gemma3": "gemma3_text", "Qwen3Moe": "qwen3_moe"}.get(kind, kind.lower())
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **sizes)).eval()


@pytest.mark.parametrize("kind", KINDS)
def test_skipping_equals_building_without(kind):
    import torch
    from transformers import DynamicCache

    from simspec.record.running import forward
    from simspec.record.skips import skip_layers

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(5)
    first, count = 1, 2
    whole = made(kind)
    kept = [i for i in range(7) if not first <= i < first + count]
    lists = {
        name: [value[i] for i in kept]
        for name, value in whole.config.to_dict().items()
        if isinstance(value, list) and len(value) == 7  # one entry a layer
    }
    built = made(kind, num_hidden_layers=len(kept), **lists)
    place = {str(old): str(new) for new, old in enumerate(kept)}
    weights = {}
    for name, value in whole.state_dict().items():
        words = name.split(".")
        if words[:2] == ["model", "layers"]:
            if words[2] not in place:
                continue
            words[2] = place[words[2]]
        weights[".".join(words)] = value
    built.load_state_dict(weights)

    tokens = torch.randint(0, 97, (2, 14))
    places = torch.arange(14)[None].expand(2, 14)

    def read(network):
        cache = DynamicCache()
        steps = [slice(0, 9), slice(9, 10), slice(10, 14)]
        logits = [forward(network, tokens[:, s], places[:, s], cache) for s in steps]
        return torch.cat(logits, dim=1), len(cache.layers)

    ours, layers = read(skip_layers(whole, first, count))
    theirs, _ = read(built)
    uncut, _ = read(whole)
    torch.set_num_threads(threads)
    assert torch.equal(ours, theirs)
    assert layers == len(kept)  # no place of the cache is left empty
    assert not torch.allclose(ours, uncut)
    assert len(whole.model.layers) == 7


@pytest.mark.parametrize("kind", ["GPT2", "GPTNeoX"])
def test_another_form_of_network_is_refused(kind):
    from transformers import AutoModelForCausalLM

    from simspec.record.skips import skip_layers

    sizes = {key: value for key, value in tiny.SIZES.items() if key != "num_key_value_heads"}
    import transformers

    config = getattr(transformers, f"{kind}Config")(vocab_size=97, **sizes)
    with pytest.raises(BadInput, match=f"{kind}.*model.layers"):
        skip_layers(AutoModelForCausalLM.from_config(config), 0, 1)


@pytest.mark.parametrize(("first", "count"), [(0, 4), (3, 2), (4, 1)])
def test_layers_that_are_not_there_are_refused(first, count):
    from simspec.record.skips import skip_layers

    with pytest.raises(BadInput, match=f"{count} layers from {first}"):
        skip_layers(tiny.network(tiny.config()), first, count)
