"""A whole recording: resumable shard by shard, then written as one trace."""

from __future__ import annotations

import datetime
import hashlib
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import torch

from simspec.calibration.forwards import Timed, cells, time_cell, timed_networks
from simspec.errors import BadInput
from simspec.provenance import machine, versions
from simspec.record.budget import Budget
from simspec.record.models import LoadedModels, load_models
from simspec.record.prompts import PromptText, choose_prompts
from simspec.record.recipe import Recipe, read_recipe
from simspec.record.shards import Progress, Shards, going_on
from simspec.record.tabulate import record_prompt
from simspec.speculation.sampling import Sampling
from simspec.tables import CHOICES, PROMPTS, TRACE_TABLES
from simspec.traces.files import write_trace
from simspec.traces.manifest import Manifest, ModelEntry, SamplingEntry

UNITS = {
    "time": "seconds",
    "length": "tokens",
    "probability": "0 to 1",
    "margin": "logits",
    "entropy": "nats",
}


def record(recipe_path: Path, folder: Path, command: list[str], progress: Progress | None = None) -> Manifest:
    """Carry out a recipe and write the trace to ``folder``; ``progress`` is called with lines to show.

    Shards go to ``folder`` + ``.partial``; a run that was killed goes on from there. What a
    shard holds depends on the recipe alone, so a resumed recording has the same behaviour
    (unless memory ran out on the way: see :class:`~simspec.record.budget.Budget`).

    Raises:
        BadInput: when the recipe, a model or a prompt file cannot be used, when ``folder``
            exists, when the shards found belong to another recipe, or when the disk or the
            memory is full; finished shards are kept whatever stops the run.
    """
    recipe, recipe_hash = read_recipe(recipe_path)
    if folder.exists():
        raise BadInput("exists", where=folder, hint="a recording is never overwritten: move it away")
    texts = choose_prompts(recipe, recipe_path.parent)
    models = load_models(recipe, recipe_path.parent)
    models.check_behaviour()
    if recipe.alternatives > models.vocabulary:
        raise BadInput(
            f"field 'alternatives': {recipe.alternatives}",
            where=recipe_path,
            allowed=f"at most the vocabulary, {models.vocabulary}",
        )
    budget = Budget(say=progress)
    prompts = [encode_prompt(models, recipe, text) for text in texts]
    # Only now: what was refused above leaves nothing behind that a mended recipe would stumble over.
    kinds = (*TRACE_TABLES, CHOICES) if recipe.alternatives else TRACE_TABLES
    shards = Shards(folder.with_name(folder.name + ".partial"), recipe_hash, kinds, progress)

    for index, (text, prompt) in enumerate(zip(texts, prompts, strict=True)):
        shards.make(
            f"prompt-{index:04d}",
            lambda i=index, x=text, p=prompt: _prompt_shard(  # type: ignore[misc]
                models, recipe, i, x, p, budget
            ),
            f"prompt {index + 1} of {len(texts)} ({text.category})",
        )
    if recipe.latency:
        timed = timed_networks(models, recipe)
        # Masked places are tokens like others: a block's forward is timed as one of as many tokens.
        timed += [Timed(name, recipe.dtype, kind.network) for name, kind in models.blocks.items()]
        for context, batch in cells(recipe.latency):
            shards.make(
                f"latency-{context:05d}-{batch:04d}",
                lambda c=context, b=batch: {  # type: ignore[misc]
                    "latency": time_cell(
                        timed,
                        models.lookups,
                        recipe.latency,
                        c,
                        b,
                        device=recipe.device,
                        vocabulary=models.vocabulary,
                        seed=recipe.seed,
                    )
                },
                f"latency at context {context}, batch {batch}",
            )
    tables = shards.tables()
    manifest = Manifest(
        format=1,
        name=recipe.name,
        origin="measured",
        created=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        command=command,
        recipe=msgspec.to_builtins(recipe),
        recipe_sha256=recipe_hash,
        target=models.target,
        models={
            name: ModelEntry(kind=about["kind"], about={k: v for k, v in about.items() if k != "kind"})  # type: ignore[arg-type]
            for name, about in models.described.items()
        },
        tokenizer_sha256=models.tokenizer_hash,
        vocabulary=models.vocabulary,
        eos_tokens=list(models.eos_ids),
        output_tokens=recipe.output_tokens,
        block_length=recipe.block_length,
        context_limit=recipe.context_limit,
        seed=recipe.seed,
        sampling=_sampling_entry(recipe),
        device=recipe.device,
        dtype=recipe.dtype,
        machine={**machine(), "threads": torch.get_num_threads()},
        versions=versions(("torch", "transformers", "gguf", "numpy", "pyarrow")),
        units=UNITS,
        near_ties={} if recipe.sampling else _near_ties(tables, models.target),
        recording_seconds=_recording_seconds(shards.seconds()),
        behaviour_sha256="0" * 64,
        tables={},
        alternatives=recipe.alternatives,
    )
    with going_on(shards.folder, "writing the trace"):
        done = write_trace(folder, manifest, tables)
    shards.remove()
    return done


def encode_prompt(models: LoadedModels, recipe: Recipe, prompt: PromptText) -> torch.Tensor:
    """Token ids of a prompt under the chat template, cut so that the text fits the context.

    The cut falls on the user's words, from their end, never on the template.
    """
    room = recipe.context_limit - recipe.output_tokens
    words = models.tokenizer(prompt.text, add_special_tokens=False)["input_ids"]
    keep = len(words)
    while True:
        text = models.tokenizer.decode(words[:keep])
        encoded = models.tokenizer.apply_chat_template(
            [{"role": "user", "content": text}],
            add_generation_prompt=True,
            return_tensors="pt",
            return_dict=True,
        )["input_ids"]
        over = encoded.shape[1] - room
        if over <= 0:
            return torch.as_tensor(encoded).to(recipe.device)
        keep -= over
        if keep < 1:
            raise BadInput(
                f"the chat template alone does not fit {room} tokens",
                where=recipe.name,
                hint="raise context_limit or lower output_tokens",
            )


def _prompt_shard(
    models: LoadedModels, recipe: Recipe, index: int, text: PromptText, prompt: torch.Tensor, budget: Budget
) -> dict[str, pa.Table]:
    drawn = recipe.sampling
    tables, finish = record_prompt(
        models,
        index,
        prompt,
        recipe.output_tokens,
        recipe.block_length,
        None if drawn is None else Sampling(drawn.temperature, drawn.top_p),
        recipe.seed,
        budget,
        recipe.alternatives,
    )
    ids = prompt[0].cpu().numpy().astype("<i4")
    row = {
        "prompt_id": index,
        "category": text.category,
        "source": text.source,
        "source_id": text.source_id,
        "prompt_hash": hashlib.sha256(ids.tobytes()).hexdigest(),
        "prompt_tokens": len(ids),
        "output_tokens": tables["texts"].num_rows,
        "finish": finish,
    }
    return {"prompts": pa.Table.from_pylist([row], schema=PROMPTS.schema), **tables}


def _sampling_entry(recipe: Recipe) -> SamplingEntry | None:
    drawn = recipe.sampling
    return None if drawn is None else SamplingEntry(drawn.temperature, drawn.top_p)


def _near_ties(tables: dict[str, pa.Table], target: str) -> dict[str, float]:
    along = tables["along"].to_pandas()
    along = along[along["model"] == target]
    texts = tables["texts"].to_pandas()
    both = along.merge(texts, on=["prompt_id", "position"])
    off = both[both["greedy_token"] != both["token"]]
    worst = float(off["top2_margin"].max()) if len(off) else 0.0
    return {"count": float(len(off)), "positions": float(len(both)), "worst_margin": worst}


def _recording_seconds(by_shard: dict[str, float]) -> dict[str, float]:
    totals = {"behaviour": 0.0, "latency": 0.0}
    for name, seconds in by_shard.items():
        totals["latency" if name.startswith("latency") else "behaviour"] += seconds
    return {kind: float(np.round(value, 1)) for kind, value in totals.items()}
