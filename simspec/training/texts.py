"""The texts that a drafter is trained on: written by the target once, kept as shards."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from simspec.errors import BadInput
from simspec.record.models import LoadedModels
from simspec.record.session import encode_prompt
from simspec.record.shards import going_on
from simspec.streams import stream
from simspec.training.prompts import Asked, asked_texts
from simspec.training.recipe import TextsRecipe
from simspec.training.writing import Ints, write_texts

Say = Callable[[str], None]

# Batches that are made from one stretch of the texts, sorted by length against padding.
_SORTED_TOGETHER = 8


@dataclass(frozen=True)
class Text:
    """A prompt with the target's continuation.

    Attributes:
        tokens: prompt and continuation, shape (prompt_tokens + n,).
        top_ids, top_log_probs: of the distribution of each of the continuation's tokens, shape (n, top).
        draw: 0 for a greedy text.
    """

    tokens: Ints
    prompt_tokens: int
    top_ids: Ints
    top_log_probs: NDArray[np.float16]
    category: str
    key: str
    draw: int


def texts_folder(folder: Path, recipe: TextsRecipe, target_hash: str, asked: Sequence[Asked]) -> Path:
    """Where the texts of a recipe lie: named by all that they depend on, but for the machine."""
    digest = hashlib.sha256(msgspec.json.encode(recipe) + target_hash.encode())
    for one in asked:
        digest.update(f"{one.key} {one.draw} {one.prompt.text}\n".encode())
    return folder / f"{recipe.name}-{digest.hexdigest()[:12]}"


def make_texts(
    recipe: TextsRecipe, recipe_folder: Path, folder: Path, models: LoadedModels, say: Say
) -> tuple[list[Text], list[Text]]:
    """The texts to train on and the held-out ones; what is not there yet is written now.

    Raises:
        BadInput: when a prompt file cannot be used, or the disk or the memory is full; finished
            shards are kept.
    """
    asked = asked_texts(recipe, recipe_folder)
    target_hash = str(models.described[models.target]["sha256"])
    folder = texts_folder(folder, recipe, target_hash, asked)
    folder.mkdir(parents=True, exist_ok=True)
    trained: list[Text] = []
    held_out: list[Text] = []
    recording = recipe.recording()
    batches = _batches(asked, models, recipe)
    for number, batch in enumerate(batches):
        path = folder / f"{number:05d}.safetensors"
        if not path.exists():
            begun = time.perf_counter()
            with going_on(folder, "writing texts"):
                _write(path, batch, recipe, recording, models)
            say(f"texts: batch {number + 1} of {len(batches)}, {time.perf_counter() - begun:.0f} s")
        found = read_shard(path)
        for one, text in zip(batch, found, strict=True):
            (held_out if one.held_out else trained).append(text)
    return trained, held_out


def _batches(asked: Sequence[Asked], models: LoadedModels, recipe: TextsRecipe) -> list[list[Asked]]:
    """Held-out prompts apart from the others, each stretch of them sorted by length."""
    batches = []
    size = recipe.batch
    for held_out in (True, False):
        group = [one for one in asked if one.held_out == held_out]
        for begin in range(0, len(group), size * _SORTED_TOGETHER):
            stretch = group[begin : begin + size * _SORTED_TOGETHER]
            words = models.tokenizer([one.prompt.text for one in stretch], add_special_tokens=False)
            lengths = [len(ids) for ids in words["input_ids"]]
            order = sorted(range(len(stretch)), key=lambda i: (lengths[i], i))
            batches += [[stretch[i] for i in order[at : at + size]] for at in range(0, len(stretch), size)]
    return batches


def _write(
    path: Path, batch: Sequence[Asked], recipe: TextsRecipe, recording: Any, models: LoadedModels
) -> None:
    prompts = [
        encode_prompt(models, recording, one.prompt)[0].cpu().numpy().astype(np.int32) for one in batch
    ]
    luck = [stream(recipe.seed, "draw", one.key, one.draw) if one.draw else None for one in batch]
    written = write_texts(
        models.networks[models.target], prompts, luck, recipe.output_tokens, models.eos_ids, recipe.top
    )
    about = [{"category": one.prompt.category, "key": one.key, "draw": one.draw} for one in batch]
    partial = path.with_suffix(".writing")
    save_file(
        {
            "tokens": np.concatenate(
                [np.concatenate([p, w.tokens]) for p, w in zip(prompts, written, strict=True)]
            ),
            "prompt_tokens": np.array([len(p) for p in prompts], dtype=np.int32),
            "output_tokens": np.array([len(w.tokens) for w in written], dtype=np.int32),
            "top_ids": np.concatenate([w.top_ids for w in written]),
            "top_log_probs": np.concatenate([w.top_log_probs for w in written]),
        },
        partial,
        metadata={"texts": json.dumps(about)},
    )
    partial.replace(path)


def read_shard(path: Path) -> list[Text]:
    """The texts of one shard, in their order; raises :class:`BadInput` when it is no shard."""
    try:
        with safe_open(path, framework="numpy") as file:
            values = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
            about = json.loads(file.metadata()["texts"])
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise BadInput(
            f"is no shard: {error}", where=path, hint="delete it to have it written again"
        ) from error
    texts = []
    first = output = 0
    for one, prompt, n in zip(about, values["prompt_tokens"], values["output_tokens"], strict=True):
        texts.append(
            Text(
                tokens=values["tokens"][first : first + prompt + n],
                prompt_tokens=int(prompt),
                top_ids=values["top_ids"][output : output + n],
                top_log_probs=values["top_log_probs"][output : output + n],
                **one,
            )
        )
        first, output = first + prompt + n, output + n
    return texts
