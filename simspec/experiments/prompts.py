"""A record's prompts once more, as tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simspec.errors import BadInput
from simspec.record.models import LoadedModels
from simspec.record.prompts import PromptText, choose_prompts
from simspec.record.recipe import Recipe
from simspec.record.session import encode_prompt
from simspec.speculation.verify import Tokens
from simspec.traces.index import Trace


def recorded_prompts(
    trace: Trace, models: LoadedModels, recipe: Recipe, folder: Path, longest: int
) -> tuple[NDArray[np.int64], list[Tokens]]:
    """Rows of recorded prompts of at most ``longest`` tokens, categories in turn; and their tokens.

    Raises:
        BadInput: when a prompt file has changed.
    """
    recorded = choose_prompts(recipe, folder)
    ids = [encode(models, recipe, text) for text in recorded]
    hashes = [hashlib.sha256(p.astype("<i4").tobytes()).hexdigest() for p in ids]
    if hashes != trace.prompts["prompt_hash"].tolist():
        raise BadInput(
            "its prompts are not the recorded ones", where=folder, hint="a prompt file has changed"
        )
    able = [i for i, p in enumerate(ids) if len(p) <= longest]
    rows = _in_turn(able, [recorded[i].category for i in able])
    return np.array(rows, dtype=np.int64), [ids[i] for i in rows]


def _in_turn(items: Sequence[int], categories: Sequence[str]) -> list[int]:
    """Items in an order that takes one of each category in turn."""
    place: dict[str, int] = {}
    keys = []
    for item, category in zip(items, categories, strict=True):
        place[category] = place.get(category, 0) + 1
        keys.append((place[category], category, item))
    return [item for *_, item in sorted(keys)]


def encode(models: LoadedModels, recipe: Recipe, text: PromptText) -> Tokens:
    """A prompt under the chat template, shape (tokens,)."""
    return encode_prompt(models, recipe, text)[0].cpu().numpy().astype(np.int32)
