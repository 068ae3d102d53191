"""The critic's experiment on real models: a chain under each semantics, and without its middle."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simspec.compare.critic import COUNTS, judge_rejection, summarise
from simspec.errors import BadInput
from simspec.experiments.files import write_json
from simspec.provenance import machine, versions
from simspec.record.decoded import Decoded, Settings
from simspec.record.executor import KeptPrompts, decode
from simspec.record.models import LoadedModels, load_models
from simspec.record.prompts import choose_prompts
from simspec.record.recipe import read_recipe
from simspec.record.session import encode_prompt
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Static
from simspec.speculation.schedulers import Schedule
from simspec.speculation.verify import Tokens

Progress = Callable[[str], None]


@dataclass(frozen=True)
class CriticSettings:
    """The experiment.

    Attributes:
        levels: drafter, intermediates, target.
        length: drafted tokens a cycle.
        shares: (batch size, prompts decoded at it), each prompt at one batch size.
        draws: bootstrap draws for intervals.
    """

    levels: tuple[str, ...]
    length: int
    shares: tuple[tuple[int, int], ...]
    draws: int
    seed: int

    def schedules(self) -> dict[str, Schedule]:
        """The target alone, the drafter and the target, and the chain in every semantics."""
        drafter, target = self.levels[0], self.levels[-1]
        collect = (self.length,) * (len(self.levels) - 2)
        rule = Static(self.length)
        return {
            "target": Schedule(Chain((target,))),
            "pair": Schedule(Chain((drafter, target)), rule),
            "funnel-truncate": Schedule(Chain(self.levels, "funnel-truncate"), rule),
            "funnel-replace": Schedule(Chain(self.levels, "funnel-replace"), rule),
            "nested": Schedule(Chain(self.levels, "nested", collect), rule),
            "early-emit": Schedule(Chain(self.levels, "early-emit"), rule),
        }


def run_critic(
    recipe_path: Path, out: Path, settings: CriticSettings, command: list[str], progress: Progress
) -> dict[str, Any]:
    """Decode the recipe's prompts under every configuration and write the result to ``out`` (JSON).

    Groups of one batch each are kept beside ``out`` as they finish, so a run that was stopped goes
    on. Within a group the configurations run one after another, the order turned by one each time.

    Raises:
        BadInput: when ``out`` exists, the recipe has too few prompts, or the groups found belong to
            another experiment.
    """
    recipe, recipe_hash = read_recipe(recipe_path)
    if out.exists():
        raise BadInput("exists", where=out, hint="move it away")
    texts = choose_prompts(recipe, recipe_path.parent)
    wanted = sum(count for _, count in settings.shares)
    if wanted > len(texts):
        raise BadInput(f"has {len(texts)} prompts", where=recipe_path, allowed=f"at least {wanted}")
    mark = hashlib.sha256(f"{recipe_hash} {settings}".encode()).hexdigest()
    shards = out.with_name(out.name + ".partial")
    shards.mkdir(parents=True, exist_ok=True)
    models = load_models(recipe, recipe_path.parent)
    models.check_behaviour()
    prompts = [encode_prompt(models, recipe, t)[0].cpu().numpy().astype(np.int32) for t in texts[:wanted]]
    groups: list[dict[str, Any]] = []
    at = 0
    for batch, count in settings.shares:
        for begin in range(at, at + count, batch):
            ids = list(range(begin, min(begin + batch, at + count)))
            path = shards / f"group-{batch:03d}-{begin:05d}.json"
            found = _found(path, mark)
            if found is None:
                asked = Settings(recipe.output_tokens, max(settings.length, 1))
                found = {
                    "mark": mark,
                    "batch": batch,
                    "requests": ids,
                    "runs": _group(models, [prompts[i] for i in ids], settings, asked, len(groups)),
                }
                write_json(path, found)
            groups.append(found)
            progress(f"batch {batch}: prompts {ids[0]} to {ids[-1]} of {wanted}")
        at += count
    document = {
        "format": "simspec critic 1",
        "command": command,
        "chain": list(settings.levels),
        "length": settings.length,
        "output_tokens": recipe.output_tokens,
        "prompts": sorted({f"{t.category}: {t.source}" for t in texts[:wanted]}),
        "device": recipe.device,
        "dtype": recipe.dtype,
        "machine": machine(),
        "versions": versions(("torch", "transformers", "numpy")),
        "models": models.described,
        "recipe_sha256": recipe_hash,
        "seed": settings.seed,
        **summarise(groups, settings.draws, settings.seed),
    }
    write_json(out, document)
    for path in shards.glob("group-*.json"):
        path.unlink()
    shards.rmdir()
    return document


def _group(
    models: LoadedModels, prompts: Sequence[Tokens], settings: CriticSettings, asked: Settings, turn: int
) -> dict[str, Any]:
    schedules = settings.schedules()
    names = list(schedules)
    # The target alone comes first, since all others are held to its text.
    kept: KeptPrompts = {}
    alone = decode(models, [schedules["target"]], prompts, asked, kept=kept)
    text = alone.texts
    runs = {"target": _counts(alone, text, judged=False)}
    for i in range(len(names) - 1):
        name = names[1 + (i + turn) % (len(names) - 1)]
        schedule = schedules[name]
        reference = text if schedule.chain.lossless else None
        done = decode(models, [schedule], prompts, asked, reference=reference, kept=kept)
        runs[name] = _counts(done, text, judged=schedule.chain.semantics.startswith("funnel"))
    return {name: runs[name] for name in names}


def _counts(done: Decoded, text: Sequence[Tokens], *, judged: bool) -> dict[str, Any]:
    """Seconds, and the counts of each request.

    Rejections are judged only where the whole drafted block passes the intermediates once and the
    text stays the target's: in funnels.
    """
    rows: dict[str, list[int]] = {key: [] for key in COUNTS}
    for r, cycles in enumerate(done.cycles):
        found = dict.fromkeys(COUNTS, 0)
        found["tokens"] = len(done.texts[r])
        found["passes"] = len(cycles)
        found["near_ties"] = sum(tie.request == r for tie in done.near_ties)
        found["identical"] = int(np.array_equal(done.texts[r], text[r]) and not found["near_ties"])
        for c in cycles:
            found["drafted"] += c.drafted
            found["accepted"] += c.accepted
            if judged:
                rejection = judge_rejection(c.block, c.survived, text[r][c.position :])
                if rejection.kind != "none":
                    found["rejected"] += 1
                    found[rejection.kind] += 1
                    found["lost_tokens"] += rejection.lost_tokens
        for key, value in found.items():
            rows[key].append(value)
    return {"seconds": done.seconds["total"], **rows}


def _found(path: Path, mark: str) -> dict[str, Any] | None:
    if not path.exists():
        return None
    held: dict[str, Any] = json.loads(path.read_text())
    if held.get("mark") != mark:
        raise BadInput("belongs to another experiment", where=path, hint="move the folder away")
    return held
