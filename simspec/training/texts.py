"""The texts that a drafter is trained on: written by the target once, kept as shards."""

from __future__ import annotations

import functools
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

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
        states: where those of some of the target's layers lie, the first of this text's there, and which
            layers; None where none were stored.
    """

    tokens: Ints
    prompt_tokens: int
    top_ids: Ints
    top_log_probs: NDArray[np.float16]
    category: str
    key: str
    draw: int
    states: tuple[Path, int, tuple[int, ...]] | None = None

    def read_states(self, layers: Sequence[int]) -> torch.Tensor:
        """The target's states at the token before each token of the text, shape (n, layers * hidden)."""
        assert self.states is not None
        path, first, stored = self.states
        found: torch.Tensor = _opened(path).get_slice("states")[first : first + len(self.tokens)]
        each = found.view(len(found), len(stored), -1)
        return each[:, [stored.index(i) for i in layers]].flatten(1)


@functools.cache
def _opened(path: Path) -> Any:
    # Mapped: no more is read than a text's own part.
    return safe_open(path, framework="pt")


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
        found = read_shard(path, recipe.states)
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
        _beginning(models, one.prompt.text)
        if one.opens
        else encode_prompt(models, recording, one.prompt)[0].cpu().numpy().astype(np.int32)
        for one in batch
    ]
    luck = [stream(recipe.seed, "draw", one.key, one.draw) if one.draw else None for one in batch]
    written = write_texts(
        models.networks[models.target],
        prompts,
        luck,
        recipe.output_tokens,
        models.eos_ids,
        recipe.top,
        # The end of the user's words, and that of the answer.
        turns=[2 if one.opens else 1 for one in batch],
        temperature=recipe.temperature,
        layers=recipe.states,
    )
    about = [{"category": one.prompt.category, "key": one.key, "draw": one.draw} for one in batch]
    partial = path.with_suffix(".writing")
    values = {
        "tokens": np.concatenate(
            [np.concatenate([p, w.tokens]) for p, w in zip(prompts, written, strict=True)]
        ),
        "prompt_tokens": np.array([len(p) for p in prompts], dtype=np.int32),
        "output_tokens": np.array([len(w.tokens) for w in written], dtype=np.int32),
        "top_ids": np.concatenate([w.top_ids for w in written]),
        "top_log_probs": np.concatenate([w.top_log_probs for w in written]),
    }
    tensors = {name: torch.from_numpy(value) for name, value in values.items()}
    if recipe.states:
        tensors["states"] = torch.cat([w.states for w in written])
    save_file(tensors, partial, metadata={"texts": json.dumps(about)})
    partial.replace(path)


def _beginning(models: LoadedModels, text: str) -> Ints:
    """The chat template up to the end of what the user has said so far."""
    whole = models.tokenizer.apply_chat_template([{"role": "user", "content": text}], tokenize=False)
    at = whole.rfind(text)
    if at < 0:
        raise BadInput(
            "the chat template does not hold the user's words as they are",
            where=models.target,
            hint="leave out collections with words",
        )
    ids = models.tokenizer(whole[: at + len(text)], add_special_tokens=False)["input_ids"]
    return np.array(ids, dtype=np.int32)


def read_shard(path: Path, states: tuple[int, ...] = ()) -> list[Text]:
    """The texts of one shard, in their order, with the states of such layers if there are any.

    Raises:
        BadInput: when it is no shard.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            values = {name: file.get_tensor(name) for name in set(file.keys()) - {"states"}}
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
                states=(path, int(first), states) if states else None,
                **one,
            )
        )
        first, output = first + prompt + n, output + n
    return texts
