"""From the recipe's files to token ids."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simspec.errors import BadInput
from simspec.record.recipe import PromptRecipe, Recipe
from simspec.streams import stream


@dataclass(frozen=True)
class PromptText:
    """One prompt as text, with where it came from."""

    category: str
    source: str
    source_id: str
    text: str


def choose_prompts(recipe: Recipe, folder: Path) -> list[PromptText]:
    """The recipe's prompts, drawn by its seed; file paths are relative to ``folder``."""
    chosen = []
    for part in recipe.prompts:
        found = fitting_prompts(part, folder)
        if len(found) < part.count:
            raise BadInput(
                f"has {len(found)} prompts that fit category {part.category!r}",
                where=folder / part.file,
                allowed=f"at least {part.count}",
            )
        generator = stream(recipe.seed, "prompts", part.category)
        chosen += [found[i] for i in sorted(generator.permutation(len(found))[: part.count].tolist())]
    return chosen


def fitting_prompts(part: PromptRecipe, folder: Path) -> list[PromptText]:
    """All prompts of a file that fit a part of a recipe, in the file's order."""
    path = folder / part.file
    return [
        PromptText(
            category=part.category,
            source=path.name,
            source_id=str(_field(row, part.id_field, path)),
            text=part.before + str(_field(row, part.field, path)),
        )
        for row in _rows(path)
        if _kept(row, part)
    ]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file):
                if not line.strip():
                    continue
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise BadInput("is not a JSON object", where=f"{path}:{number + 1}")
                # A collection without names of its own is counted by its lines.
                yield {"line": number + 1, **row}
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror or error}", where=path) from error
    except (UnicodeDecodeError, json.JSONDecodeError, EOFError) as error:
        raise BadInput(f"is not JSON lines: {error}", where=path) from error


def _kept(row: dict[str, Any], part: PromptRecipe) -> bool:
    return all(str(row.get(field)) in allowed for field, allowed in part.where.items())


def _field(row: dict[str, Any], path_of_keys: str, file: Path) -> Any:
    value: Any = row
    for key in path_of_keys.split("."):
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise BadInput(f"line {row['line']} has no field {path_of_keys!r}", where=file) from error
    return value
