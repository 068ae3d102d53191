"""Seconds from a roofline by hand, and the file that states one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simspec.cost import presets
from simspec.cost.architecture import Architecture, Formats, forward_work
from simspec.cost.files import read_cost
from simspec.cost.roofline import (
    BANDWIDTH_EFFICIENCY,
    COMPUTE_EFFICIENCY,
    Rates,
    RooflineCost,
    roofline_seconds,
)
from simspec.cost.shape import uniform
from simspec.errors import BadInput

SMALL = Architecture(
    layers=2, hidden=4, intermediate=8, heads=2, kv_heads=1, head_dim=2, vocabulary=10, tied=False
)
FORMATS = Formats(weight_bytes=1, activation_bytes=2, kv_bytes=4)
SHAPE = uniform(np.array([3]), np.array([2]), np.array([5]))
# Counted in test_architecture.py: FLOPs and bytes of linear layers, attention, head.
FLOPS = (3456, 1248, 480)
BYTES = (288 + 24 * 52 + 72, 864 + 192, 208)


def at(rates: Rates) -> float:
    return float(roofline_seconds(rates, SMALL, FORMATS, SHAPE, packed=True)[0])


def test_each_part_takes_its_longer_side():
    assert at(Rates(1.0, 1e12)) == pytest.approx(sum(FLOPS), rel=1e-9)
    assert at(Rates(1e12, 1.0)) == pytest.approx(sum(BYTES), rel=1e-9)
    # At 2 FLOP a byte: linear 3456/2 = 1728 > 1608; attention 624 < 1056; head 240 > 208.
    assert at(Rates(2.0, 1.0)) == pytest.approx(1728 + 1056 + 240)


def test_overheads_and_passes_over_the_cache():
    plain = at(Rates(1e12, 1.0))
    assert at(Rates(1e12, 1.0, layer_overhead_seconds=7.0)) == pytest.approx(plain + 14)
    assert at(Rates(1e12, 1.0, forward_overhead_seconds=7.0)) == pytest.approx(plain + 7)
    # 480 bytes of the traffic are keys and values cached before.
    assert at(Rates(1e12, 1.0, cache_passes=3.0)) == pytest.approx(plain + 2 * 480)


def test_device_presets():
    for name, device in presets.devices().items():
        assert device.source, name
        for dtype, peak in device.flops_per_second.items():
            rates = device.rates(dtype)
            assert rates.flops_per_second == device.compute_efficiency * peak
            assert rates.bytes_per_second == device.bandwidth_efficiency * device.bytes_per_second
    h100 = presets.device("h100-sxm")
    assert (h100.compute_efficiency, h100.bandwidth_efficiency) == (COMPUTE_EFFICIENCY, BANDWIDTH_EFFICIENCY)
    with pytest.raises(BadInput, match=r"'bfloat16'; allowed: float16, float32"):
        presets.device("m2-max-38").rates("bfloat16")


def test_a_large_model_at_batch_1_is_its_weights_over_the_bandwidth():
    made, h100 = presets.architecture("Llama-3.1-8B"), presets.device("h100-sxm")
    shape = uniform(np.array([1]), np.array([1]), np.array([0]))
    work = forward_work(made, Formats(2, 2, 2), shape, packed=True)
    read = 2 * (made.parameters - made.head_weights)  # every matrix but the embedding
    assert sum(p.moved_bytes[0] for p in work.parts) == pytest.approx(read, rel=1e-3)
    found = roofline_seconds(h100.rates("bfloat16"), made, Formats(2, 2, 2), shape, packed=True)[0]
    assert found == pytest.approx(read / (0.8 * 3.35e12), rel=1e-3)


FILE = """
kind = "roofline"
name = "made-up"
device = "h100-sxm"
dtype = "bfloat16"
step_overhead_seconds = 0.001
layer_overhead_seconds = 1e-5
weight_bytes = 1.0
[architectures]
target = "Llama-3.1-8B"
middle = "config.json"
[lookup_seconds]
ngram = 0.25
[architectures.small]
layers = 2
hidden = 4
intermediate = 8
heads = 2
kv_heads = 1
head_dim = 2
vocabulary = 10
tied = false
"""
CONFIG = """{"model_type": "qwen3", "num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 16,
"num_attention_heads": 2, "vocab_size": 10}"""


def written(tmp_path: Path, text: str = FILE) -> Path:
    (tmp_path / "config.json").write_text(CONFIG)
    path = tmp_path / "roofline.toml"
    path.write_text(text)
    return path


def test_a_roofline_file(tmp_path):
    found = read_cost(written(tmp_path))
    assert isinstance(found, RooflineCost)
    assert found.models == {"target", "middle", "small", "ngram"}
    assert found.step_overhead_seconds == 0.001
    assert found.formats == Formats(1.0, 2, 2)
    assert found.architectures["small"] == SMALL
    assert found.architectures["middle"].kv_heads == 2
    assert found.rates.layer_overhead_seconds == 1e-5
    assert found.forward_seconds("ngram", SHAPE)[0] == 0.75
    expected = roofline_seconds(found.rates, SMALL, found.formats, SHAPE, packed=True)
    assert found.forward_seconds("small", SHAPE) == pytest.approx(expected)
    for word in ("h100-sxm", "NVIDIA", "assumed", "no framework", "not measured"):
        assert word in found.label


def test_a_roofline_file_with_a_device_of_its_own(tmp_path):
    own = FILE.replace('device = "h100-sxm"\n', "").replace(
        "[architectures]",
        '[device]\nsource = "made up"\nbytes_per_second = 1e9\nflops_per_second = { bfloat16 = 2e9 }\n'
        "compute_efficiency = 0.5\n[architectures]",
    )
    found = read_cost(written(tmp_path, own))
    assert found.rates == Rates(1e9, BANDWIDTH_EFFICIENCY * 1e9, 1e-5)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('device = "h100-sxm"', 'device = "h100"', "h100-sxm"),
        ('device = "h100-sxm"', "device = 3", "device"),
        ('dtype = "bfloat16"', 'dtype = "int4"', "int4"),
        ('kind = "roofline"', 'kind = "cliff"', "cliff"),
        ('"Llama-3.1-8B"', '"Llama-3.1-9B"', "Llama-3.1-8B"),
        ('"config.json"', '"none.json"', "none.json"),
        ("weight_bytes = 1.0", "weight_bytes = 0.0", "weight_bytes"),
        ("weight_bytes = 1.0", "compute_efficiency = 1.5", "compute_efficiency"),
        ("weight_bytes = 1.0", "weight_bites = 1.0", "weight_bites"),
        ("ngram = 0.25", "ngram = nan", "lookup_seconds"),
        ("ngram = 0.25", "target = 0.25", "target"),
        ("layers = 2", "layers = -2", "layers"),
        ("0.001", "soon", "line"),
    ],
)
def test_a_roofline_file_that_is_refused(tmp_path, old, new, told):
    assert old in FILE
    with pytest.raises(BadInput) as caught:
        read_cost(written(tmp_path, FILE.replace(old, new)))
    assert told in str(caught.value)
    assert "roofline.toml" in str(caught.value) or told == "none.json"


def test_a_file_without_a_kind_is_an_affine_profile(tmp_path):
    found = read_cost(Path(__file__).parents[2] / "calibrate" / "h100-llama-3.1-8b.toml")
    assert found.name == "h100-published"
    with pytest.raises(BadInput, match="cannot be read"):
        read_cost(tmp_path / "none.toml")
