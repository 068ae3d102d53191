"""A record's prompts once more, and others of the same kind that it does not hold."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from simspec.errors import BadInput
from simspec.record.models import LoadedModels
from simspec.record.prompts import PromptText, choose_prompts
from simspec.record.recipe import Recipe
from simspec.record.session import encode_prompt
from simspec.speculation.verify import Tokens
from simspec.traces.index import Trace


def known_and_fresh(
    trace: Trace, models: LoadedModels, recipe: Recipe, folder: Path, *, wanted: int, fresh: int, longest: int
) -> tuple[NDArray[np.int64], list[Tokens], list[Tokens]]:
    """Rows of recorded prompts, categories in turn; those prompts; and ``fresh`` others.

    Args:
        wanted: how many recorded ones there must be.
        longest: prompts of more tokens are left out.

    Raises:
        BadInput: when a prompt file has changed, or too few prompts are short enough.
    """
    recorded = choose_prompts(recipe, folder)
    ids = [_encoded(models, recipe, text) for text in recorded]
    hashes = [hashlib.sha256(p.astype("<i4").tobytes()).hexdigest() for p in ids]
    if hashes != trace.prompts["prompt_hash"].tolist():
        raise BadInput(
            "its prompts are not the recorded ones", where=folder, hint="a prompt file has changed"
        )
    able = [i for i, p in enumerate(ids) if len(p) <= longest]
    rows = _in_turn(able, [recorded[i].category for i in able])
    if len(rows) < wanted:
        raise BadInput(
            f"holds {len(rows)} prompts of at most {longest} tokens",
            where=trace.folder,
            allowed=f"at least {wanted}",
        )
    held = {(t.source, t.source_id) for t in recorded}
    # Drawn under another seed; what the record holds is left out.
    more = msgspec.structs.replace(
        recipe,
        seed=recipe.seed + 1,
        prompts=tuple(msgspec.structs.replace(p, count=4 * p.count) for p in recipe.prompts),
    )
    texts: list[PromptText] = [t for t in choose_prompts(more, folder) if (t.source, t.source_id) not in held]
    order = _in_turn(list(range(len(texts))), [t.category for t in texts])
    others: list[Tokens] = []
    for i in order:
        prompt = _encoded(models, recipe, texts[i])
        if len(prompt) <= longest and len(others) < fresh:
            others.append(prompt)
    if len(others) < fresh:
        raise BadInput(f"only {len(others)} fresh prompts are short enough", where=folder)
    return np.array(rows), [ids[i] for i in rows], others


def _in_turn(items: Sequence[int], categories: Sequence[str]) -> list[int]:
    """Items in an order that takes one of each category in turn."""
    place: dict[str, int] = {}
    keys = []
    for item, category in zip(items, categories, strict=True):
        place[category] = place.get(category, 0) + 1
        keys.append((place[category], category, item))
    return [item for *_, item in sorted(keys)]


def _encoded(models: LoadedModels, recipe: Recipe, text: PromptText) -> Tokens:
    return encode_prompt(models, recipe, text)[0].cpu().numpy().astype(np.int32)
