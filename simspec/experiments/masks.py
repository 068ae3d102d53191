"""Marking rejected cache entries against moving them away: the same decoding, its caches packed otherwise."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from simspec.errors import BadInput
from simspec.experiments.files import Pieces, remove_pieces, write_json
from simspec.experiments.prompts import encode
from simspec.provenance import machine, versions
from simspec.record.decoded import Decoded, Settings
from simspec.record.executor import KeptPrompts, decode
from simspec.record.level import Packing
from simspec.record.models import LoadedModels, load_models
from simspec.record.prompts import choose_prompts
from simspec.record.recipe import read_recipe
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Static
from simspec.speculation.schedulers import Schedule
from simspec.speculation.verify import Tokens
from simspec.streams import stream

Progress = Callable[[str], None]

# How a batch's caches are kept in order after a cycle.
WAYS = {
    # Rejected entries are marked; caches are packed when a good part of them is waste.
    "mask": Packing(),
    # No entry that is not a token of its row stays where another row's could be: packed in every cycle that
    # leaves the longest row any waste.
    "move": Packing(0.0, 0),
    # As printed (arXiv 2505.07680): marked, cut by what the whole batch has rolled back, never packed.
    "never": Packing(0.0, 1 << 30),
}


@dataclass(frozen=True)
class Cell:
    """Texts of ``output_tokens`` at a batch size, prompts lengthened to at least ``context`` tokens."""

    batch: int
    output_tokens: int
    context: int


@dataclass(frozen=True)
class MasksSettings:
    """The measurement: chains (levels from the drafter up), drafted tokens a cycle, cells, rounds."""

    chains: tuple[tuple[str, ...], ...]
    length: int
    cells: tuple[Cell, ...]
    rounds: int
    seed: int


def run_masks(
    recipe_path: Path, out: Path, settings: MasksSettings, command: list[str], progress: Progress
) -> dict[str, Any]:
    """Decode the recipe's prompts in every way of :data:`WAYS` and write what they took to ``out`` (JSON).

    In every round each cell decodes other prompts, in all ways one after another, in an order drawn anew.
    Finished ones are kept beside ``out``, so a run that was stopped goes on.

    Raises:
        BadInput: when ``out`` exists, the recipe has too few prompts, or the pieces found belong to another
            measurement.
    """
    recipe, recipe_hash = read_recipe(recipe_path)
    if out.exists():
        raise BadInput("exists", where=out, hint="move it away")
    texts = choose_prompts(recipe, recipe_path.parent)
    largest = max(cell.batch for cell in settings.cells)
    if largest > len(texts):
        raise BadInput(f"has {len(texts)} prompts", where=recipe_path, allowed=f"at least {largest}")
    about = (recipe_hash, settings, machine(), versions(("torch",)))
    pieces = Pieces(out.with_name(out.name + ".partial"), hashlib.sha256(repr(about).encode()).hexdigest())
    models = load_models(recipe, recipe_path.parent)
    models.check_behaviour()
    prompts = [encode(models, recipe, text) for text in texts]
    found = []
    for levels in settings.chains:
        schedule = Schedule(Chain(levels, "funnel-replace"), Static(settings.length))
        for c, cell in enumerate(settings.cells):
            rounds = []
            for turn in range(settings.rounds):
                name = f"{'-'.join(levels)}-{c:03d}-{turn:03d}"
                progress(f"{' > '.join(levels)}, {cell}: round {turn + 1} of {settings.rounds}")

                def build(
                    name: str = name, schedule: Schedule = schedule, cell: Cell = cell
                ) -> dict[str, Any]:
                    generator = stream(settings.seed, "masks", name)
                    return _round(models, schedule, _drawn(prompts, cell, generator), cell, generator)

                rounds.append(pieces.make(name, build))
            found.append(
                {
                    "chain": list(levels),
                    "draft_length": settings.length,
                    "batch": cell.batch,
                    "output_tokens": cell.output_tokens,
                    "context": cell.context,
                    "rounds": rounds,
                }
            )
    document = {
        "format": "simspec masks 1",
        "command": command,
        "ways": {name: {"slack": way.slack, "floor": way.floor} for name, way in WAYS.items()},
        "device": recipe.device,
        "dtype": recipe.dtype,
        "machine": machine(),
        "versions": versions(("torch", "transformers", "numpy")),
        "models": models.described,
        "recipe_sha256": recipe_hash,
        "seed": settings.seed,
        "cells": found,
    }
    write_json(out, document)
    remove_pieces(pieces.folder)
    return document


def _drawn(prompts: Sequence[Tokens], cell: Cell, generator: np.random.Generator) -> list[Tokens]:
    """A batch of prompts, each behind as many others, whole, as make it long enough."""
    found = []
    for i in generator.permutation(len(prompts)).tolist()[: cell.batch]:
        text = prompts[i]
        while len(text) < cell.context:
            text = np.concatenate([prompts[int(generator.integers(len(prompts)))], text])
        found.append(text)
    return found


def _round(
    models: LoadedModels,
    schedule: Schedule,
    prompts: Sequence[Tokens],
    cell: Cell,
    generator: np.random.Generator,
) -> dict[str, Any]:
    """One batch in every way: ``prompt_tokens``, whether the texts are ``equal``, and a way's figures."""
    length = getattr(schedule.rule, "length", 1)
    asked = Settings(cell.output_tokens, length)
    kept: KeptPrompts = {}
    ways = list(WAYS)
    # Unmeasured: the prompts are read and kept, and no way is the first to touch new memory.
    decode(models, [schedule], prompts, replace(asked, output_tokens=2), kept=kept)
    done = {}
    for w in generator.permutation(len(ways)).tolist():
        packing = WAYS[ways[w]]
        done[ways[w]] = decode(models, [schedule], prompts, replace(asked, packing=packing), kept=kept)
    texts = [d.texts for d in done.values()]
    equal = all(np.array_equal(a, b) for other in texts[1:] for a, b in zip(texts[0], other, strict=True))
    return {
        "prompt_tokens": [len(p) for p in prompts],
        "equal": equal,
        "ways": {name: _figures(done[name], models.target) for name in ways},
    }


def _figures(done: Decoded, target: str) -> dict[str, Any]:
    """Seconds a token by part, how often caches were packed, and slots of the target's over its tokens."""
    tokens = sum(len(t) for t in done.texts)
    ran = [f for f in done.forwards if f.cycle >= 0 and f.model == target]
    total = done.seconds["total"]
    parts = {k: done.seconds[k] / tokens for k in ("forward", "choosing", "packing")}
    return {
        "tokens": tokens,
        "seconds_per_token": total / tokens,
        **parts,
        "rest": total / tokens - sum(parts.values()),
        "cycles": 1 + max(f.cycle for f in ran),
        "packed": done.packed,
        "slots_over_tokens": sum(f.slots for f in ran) / sum(f.context for f in ran),
    }
