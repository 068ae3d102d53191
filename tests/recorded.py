"""Recordings of tiny made-up networks, for tests of the recorder. They say nothing of any model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests import tiny

# So few tokens that drafts of networks that know nothing of each other are often right.
LETTERS = tuple("abcde")
END, MASK = len(LETTERS), len(LETTERS) + 1
PROMPTS = ("abcab", "ccbda", "deadbeadcab", "bb", "eabdce")

RECIPE = """
name = "tiny"
seed = 5
output_tokens = {output_tokens}
block_length = {block_length}
context_limit = 128
{more}
[target]
source = "target"
[[drafters]]
kind = "model"
name = "near"
source = "near"
[[drafters]]
kind = "prompt-lookup"
name = "ngram"
[[drafters]]
kind = "block-parallel"
name = "causal"
source = "near"
mask_token = "<mask>"
block = 3
within = "causal"
[[drafters]]
kind = "block-parallel"
name = "full"
source = "target"
mask_token = "<mask>"
block = 4
within = "full"
[[prompts]]
category = "made-up"
file = "prompts.jsonl"
field = "text"
id_field = "line"
count = {prompts}
"""


def networks(folder: Path) -> Path:
    """A target, a network whose weights are near to its own, and prompts."""
    import torch

    tokens = tiny.tokenizer(words=LETTERS)
    tokens.chat_template = "{{ messages[0]['content'] }}"
    made = tiny.config(rows=len(LETTERS) + 2, num_hidden_layers=2, eos_token_id=END, pad_token_id=END)
    target, near = tiny.network(made, seed=1), tiny.network(made, seed=1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for weight in near.parameters():
            weight += 0.03 * torch.randn(weight.shape, generator=generator)
    tiny.folder(folder / "target", target, tokens)
    tiny.folder(folder / "near", near, tokens)
    lines = [json.dumps({"text": text}) for text in PROMPTS]
    (folder / "prompts.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def reading(folder: Path) -> str:
    """A network that reads two of the target's layers, in ``folder``; a recipe's lines for it, twice over."""
    import shutil

    import torch
    from safetensors.torch import save_file

    from simspec.record.reads_target import FILE, FLAG

    shutil.copytree(folder / "near", folder / "reading")
    about = json.loads((folder / "near" / "config.json").read_text())
    (folder / "reading" / "config.json").write_text(json.dumps({**about, FLAG: [0, 1]}))
    generator = torch.Generator().manual_seed(9)
    size = about["hidden_size"]
    # Of the size of the embeddings, so that what it drafts hangs on the states.
    save_file({"weight": 0.05 * torch.randn(size, 2 * size, generator=generator)}, folder / "reading" / FILE)
    return "".join(
        f"""
[[drafters]]
kind = "block-parallel"
name = "reading-{within}"
source = "reading"
mask_token = "<mask>"
block = 3
within = "{within}"
"""
        for within in ("causal", "full")
    )


def recipe(
    folder: Path,
    name: str = "tiny.toml",
    *,
    output_tokens: int = 24,
    block_length: int = 10,
    end: str = "",
    **fields: Any,
) -> Path:
    """A recipe over those networks: so many ``prompts``, ``more`` lines in it and some at its ``end``."""
    values = {"prompts": len(PROMPTS), "more": "", **fields}
    path = folder / name
    path.write_text(RECIPE.format(output_tokens=output_tokens, block_length=block_length, **values) + end)
    return path
