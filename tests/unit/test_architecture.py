"""Sizes of models, and what a forward computes and moves, counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from simspec.cost import presets
from simspec.cost.architecture import FORMATS, Architecture, Formats, formats_of, forward_work, read_config
from simspec.cost.shape import StepShape, uniform
from simspec.errors import BadInput

SMALL = Architecture(
    layers=2, hidden=4, intermediate=8, heads=2, kv_heads=1, head_dim=2, vocabulary=10, tied=False
)

# As the publishers state them. Qwen3 has norms of queries and keys and Qwen2.5 has biases, which are not
# counted: 36 layers x 256, and 28 layers x (28 + 2 x 4) x 128.
PARAMETERS = {
    "llama-68m": 68_030_208,
    "llama-160m": 162_417_408,
    "SmolLM2-135M": 134_515_008,
    "TinyLlama-1.1B": 1_100_048_384,
    "Llama-2-7b": 6_738_415_616,
    "Llama-3.1-8B": 8_030_261_248,
    "Qwen2.5-7B": 7_615_616_512 - 28 * (28 + 2 * 4) * 128,
    "Qwen3-4B": 4_022_468_096 - 36 * 256,
    "Qwen3-8B": 8_190_735_360 - 36 * 256,
}


def one(rows: int, width: int, context: int) -> StepShape:
    return uniform(np.array([rows]), np.array([width]), np.array([context]))


def test_presets_have_the_parameters_that_their_publishers_state():
    assert {n: a.parameters for n, a in presets.architectures().items()} == PARAMETERS


def test_weights_of_a_small_model():
    # Queries 4 x 4, keys and values 4 x 2 each, output 4 x 4; feed-forward three times 4 x 8.
    assert SMALL.layer_weights == 16 + 8 + 8 + 16 + 3 * 32
    # Two layers, embedding and head of 40 each, five norms of 4.
    assert SMALL.parameters == 2 * 144 + 2 * 40 + 5 * 4


def test_a_forward_of_a_small_model():
    # 3 rows, 2 new tokens each, 5 cached: 6 tokens, 15 cached.
    work = forward_work(
        SMALL, Formats(weight_bytes=1, activation_bytes=2, kv_bytes=4), one(3, 2, 5), packed=True
    )
    # A multiply-add for each of 2 x 144 weights and 6 tokens.
    assert work.linear.flops[0] == 2 * 288 * 6
    # Weights once, 1 byte. Then 2 bytes for what passes each token and layer: queries, keys and values
    # 4 in and 8 out; output 4 in and 4 out; gate and up 4 in and 16 out; down 8 in and 4 out. Then the
    # embedding: 4 numbers read at 1 byte and written at 2 for each token.
    assert work.linear.moved_bytes[0] == 288 + 2 * 6 * 2 * (12 + 8 + 20 + 12) + 6 * 4 * 3
    # The first new token of a row sees 5 + 1, the second 5 + 2: 13 pairs a row. Scores and their use: 2 heads
    # of 2 numbers, a multiply-add each.
    assert work.attention.flops[0] == 2 * (3 * 13) * 2 * (2 * 2) * 2
    # Keys and values: 1 head of 2 numbers, twice, 4 bytes, 2 layers. 15 read, 6 written and read. Queries
    # read and outputs written: 4 numbers each, 2 bytes.
    assert work.attention.moved_bytes[0] == 2 * 4 * 4 * (15 + 12) + 2 * 6 * 8 * 2
    assert work.cache_bytes[0] == 2 * 4 * 4 * 15
    assert work.head.flops[0] == 2 * 40 * 6
    assert work.head.moved_bytes[0] == 40 + 6 * (4 + 10) * 2


def test_padded_rows_are_all_as_wide_as_the_widest():
    ragged = StepShape(*(np.array([n]) for n in (3, 4, 7, 10, 21)))  # 3 rows, 7 tokens, the widest 4
    padded = forward_work(SMALL, FORMATS["float32"], ragged, packed=False)
    full = forward_work(SMALL, FORMATS["float32"], one(3, 4, 10), packed=True)
    assert [p.flops for p in padded.parts] == [p.flops for p in full.parts]
    packed = forward_work(SMALL, FORMATS["float32"], ragged, packed=True)
    assert packed.linear.flops[0] == 2 * 288 * 7
    assert packed.cache_bytes[0] < padded.cache_bytes[0]


CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 4,
    "intermediate_size": 8,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 10,
}


def config(tmp_path: Path, **changes: object) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({k: v for k, v in {**CONFIG, **changes}.items() if v != "gone"}))
    return path


def test_a_config_file(tmp_path):
    assert read_config(config(tmp_path)) == SMALL
    assert read_config(config(tmp_path, tie_word_embeddings=True, head_dim=16)).head_dim == 16
    assert read_config(config(tmp_path, num_key_value_heads="gone")).kv_heads == 2


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model_type": "gpt2"}, "model_type"),
        ({"model_type": "gone"}, "model_type"),
        ({"hidden_size": "gone"}, "hidden_size"),
        ({"num_hidden_layers": 0}, "layers"),
        ({"num_attention_heads": 0}, "division"),
        ({"vocab_size": "many"}, "vocabulary"),
        ({"tie_word_embeddings": 3}, "tied"),
    ],
)
def test_a_config_that_is_refused(tmp_path, changes, told):
    with pytest.raises(BadInput, match=told) as caught:
        read_config(config(tmp_path, **changes))
    assert "config.json" in str(caught.value)


def test_a_config_that_cannot_be_read(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        read_config(tmp_path / "config.json")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(BadInput, match="not JSON"):
        read_config(tmp_path / "config.json")
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(BadInput, match="object"):
        read_config(tmp_path / "config.json")


def test_names_that_are_not_known():
    with pytest.raises(BadInput, match="did you mean 'Qwen3-8B'"):
        presets.architecture("Qwen3-8b")
    with pytest.raises(BadInput, match="did you mean 'h100-sxm'"):
        presets.device("h100sxm")
    with pytest.raises(BadInput, match="float32"):
        formats_of("int3")
