"""Replay of sampled texts in distribution against tiny made-up networks that sample for real."""

from __future__ import annotations

import pytest

from simspec.speculation.lengths import Static
from simspec.speculation.lengths_thresholds import WeakToken
from simspec.traces.reader import read_tables
from tests import recorded

pytestmark = pytest.mark.real_model  # torch and transformers; the weights are made up

RECIPE = """
name = "tiny"
seed = 5
output_tokens = 32
block_length = 6
context_limit = 128
sampling = {temperature = 1.3}
[target]
source = "target"
[[drafters]]
kind = "model"
name = "near"
source = "near"
[[prompts]]
category = "made-up"
file = "many.jsonl"
field = "text"
id_field = "line"
count = 60
"""


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    import torch

    from simspec.experiments.sampled import compare_sampled
    from simspec.record.models import load_models
    from simspec.record.prompts import choose_prompts
    from simspec.record.recipe import read_recipe
    from simspec.record.session import encode_prompt, record

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    folder = recorded.networks(tmp_path_factory.mktemp("tiny"))
    # The same few prompts again and again: each time another text.
    (folder / "many.jsonl").write_text((folder / "prompts.jsonl").read_text() * 12)
    path = folder / "tiny.toml"
    path.write_text(RECIPE)
    record(path, folder / "trace", ["test"])
    recipe = read_recipe(path)[0]
    models = load_models(recipe, folder)
    prompts = [encode_prompt(models, recipe, text)[0].numpy() for text in choose_prompts(recipe, folder)]
    rules = {"1": Static(1), "3": Static(3), "6": Static(6), "weak": WeakToken(0.5)}
    read = read_tables(folder / "trace")
    yield compare_sampled(models, read, prompts, "near", rules, seeds=2, lucks=4)
    torch.set_num_threads(before)


@pytest.mark.parametrize("rule", ["1", "3", "6", "weak"])
@pytest.mark.parametrize("figure", ["emitted", "drafted", "submitted"])
def test_tokens_a_cycle_are_those_of_real_sampling(compared, rule, figure):
    found = compared[rule][figure]
    low, high = found["off_interval"]
    half = (high - low) / 2  # two standard errors
    assert abs(found["off"]) <= 2 * half + 0.1
    assert half < 12  # or it would pass whatever came out


def test_longer_drafts_emit_more(compared):
    emitted = [compared[rule]["emitted"]["measured"] for rule in ("1", "3", "6")]
    assert emitted[0] * 1.2 < emitted[1] < emitted[2]
