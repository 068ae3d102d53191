"""Which prompts are trained on: none that a recording may use, however it is worded around."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from simspec.record.prompts import PromptText, choose_prompts, fitting_prompts
from simspec.streams import stream
from simspec.training.recipe import CollectionRecipe, TextsRecipe


@dataclass(frozen=True)
class Asked:
    """One text to be written.

    Attributes:
        key: a hash of the prompt's own words.
        held_out: whether progress is measured on it, rather than trained on it.
        draw: 0 for the greedy text, n for the n-th that is drawn.
        opens: whether the prompt is only the beginning of one.
    """

    prompt: PromptText
    key: str
    held_out: bool
    draw: int
    opens: bool = False


def key_of(text: str) -> str:
    """SHA-256 of a text's words, without regard to case and blanks."""
    return hashlib.sha256(" ".join(text.lower().split()).encode()).hexdigest()


def kept_keys(recipe: TextsRecipe, folder: Path) -> set[str]:
    """Keys of the prompts that are kept for recordings."""
    # Bare of what is put in front, so that other words in front do not hide a prompt.
    bare = tuple(msgspec.structs.replace(part, before="") for part in recipe.kept)
    recording = msgspec.structs.replace(recipe.recording(), prompts=bare)
    return {key_of(prompt.text) for prompt in choose_prompts(recording, folder)}


def asked_texts(recipe: TextsRecipe, folder: Path) -> list[Asked]:
    """The texts to write: the held-out ones first, the others in an order drawn by the seed."""
    taken = kept_keys(recipe, folder)
    found = [
        [(key_of(p.text.removeprefix(part.before)), p) for p in fitting_prompts(part, folder)]
        for part in recipe.collections
    ]
    held: list[Asked] = []
    for number, part in enumerate(recipe.collections):
        free = _shuffled(recipe, ("held-out", number), [(k, p) for k, p in found[number] if k not in taken])
        held += [Asked(p, k, True, 0) for k, p in free[: part.held_out]]
        taken |= {k for k, _ in free[: part.held_out]}
    wanted: list[Asked] = []
    for number, part in enumerate(recipe.collections):
        free = _shuffled(recipe, ("trained", number), [(k, p) for k, p in found[number] if k not in taken])
        for k, p in free[: part.count]:
            begun = _begun(p, part)
            wanted += [Asked(begun, k, False, draw, part.words > 0) for draw in _draws(part)]
    order = stream(recipe.seed, "order").permutation(len(wanted))
    return held + [wanted[i] for i in order]


def _draws(part: CollectionRecipe) -> range:
    """The greedy text is the first; what is only begun has none."""
    return range(1, 1 + part.texts) if part.words else range(part.texts)


def _begun(prompt: PromptText, part: CollectionRecipe) -> PromptText:
    """The first words of a prompt, what is put in front of it beside them."""
    if not part.words:
        return prompt
    found = re.match(rf"\s*(\S+(?:\s+\S+){{0,{part.words - 1}}})", prompt.text.removeprefix(part.before))
    return replace(prompt, text=part.before + (found.group(1) if found else ""))


def _shuffled(
    recipe: TextsRecipe, name: tuple[str, int], found: Iterable[tuple[str, PromptText]]
) -> list[tuple[str, PromptText]]:
    """Each prompt once, in an order of its own."""
    once = list({key: (key, prompt) for key, prompt in found}.values())
    return [once[i] for i in stream(recipe.seed, *name).permutation(len(once))]
