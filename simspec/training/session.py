"""Training one drafter: texts, steps, checkpoints, and a folder that a recording can name."""

from __future__ import annotations

import csv
import hashlib
import itertools
import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from simspec.errors import BadInput
from simspec.record.loading import load_network
from simspec.record.models import LoadedModels, load_models
from simspec.record.reads_target import check_layers, states_width
from simspec.record.recipe import read_toml
from simspec.record.shards import going_on
from simspec.record.sources import find_source
from simspec.record.tokenizers import mask_token_id
from simspec.record.trimmed import TrimmedOutput
from simspec.training.batches import drawn_blocks, endless_batches, pack, usual_masks
from simspec.training.losses import loss, wanted
from simspec.training.measuring import DEPTHS, LENGTHS, measure
from simspec.training.network import Trained, frequent_ids
from simspec.training.recipe import BlockRecipe, TextsRecipe, TrainRecipe
from simspec.training.texts import Say, Text, make_texts

_LOSS = ("step", "seconds", "places", "rate", "loss")
_HELD_OUT = (
    "step",
    "category",
    "starts",
    "loss",
    *(f"accepted_{d}" for d in DEPTHS),
    *(f"emitted_{n}" for n in LENGTHS),
)
# Of the moments of the gradient; the second forgets sooner than usual, as such short runs ask for.
_BETAS = (0.9, 0.98)
_LARGEST_GRADIENT = 1.0
# Of the rate, for the matrix that states are read through: it has many inputs of order 1, and what it adds to
# is of order 0.1. At the whole rate a few steps drown the tokens.
_READING_RATE = 0.05


def train(recipe_path: Path, folder: Path, say: Say, clock: Callable[[], float] = time.perf_counter) -> Path:
    """Carry out a recipe; returns the drafter's folder, ``folder`` / its name.

    Texts go to ``folder`` too, where recipes of the same texts find them. A run that was stopped
    goes on from its last checkpoint, to the same weights as one that was not; the drafter's folder
    can be used from the first checkpoint on.

    Args:
        say: called with lines to show.
        clock: tells when a checkpoint is due, in seconds.

    Raises:
        BadInput: when the recipe, a prompt file or the target cannot be used, when the drafter's
            folder holds another recipe's, when no prompt is left, when the loss is no number any more, or
            when the disk or the memory is full.
    """
    recipe = read_toml(recipe_path, TrainRecipe)
    texts_path = recipe_path.parent / recipe.texts
    texts_recipe = read_toml(texts_path, TextsRecipe)
    run = folder / recipe.name
    identity = hashlib.sha256(msgspec.json.encode((recipe, texts_recipe))).hexdigest()
    _check_same(run, identity)
    models = load_models(texts_recipe.recording(recipe.threads), texts_path.parent)
    check_layers(models.networks[models.target], texts_recipe.states, f"{texts_path.name}: states")
    trained, held_out = make_texts(texts_recipe, texts_path.parent, folder, models, say)
    if not trained:
        raise BadInput(
            "no prompt is left to train on", where=texts_path, allowed="some neither kept nor held out"
        )
    network = begin_network(recipe, texts_recipe, folder, models, trained)
    run.mkdir(parents=True, exist_ok=True)
    with going_on(run, "training"):
        _Run(recipe, identity, run, network, models.tokenizer, trained, held_out, say, clock).go_on()
    return run


def begin_network(
    recipe: TrainRecipe, texts_recipe: TextsRecipe, folder: Path, models: LoadedModels, texts: list[Text]
) -> Trained:
    """What a recipe's training begins as.

    Args:
        folder: where the drafter lies that it may begin as.
        texts: whose most frequent tokens the output vocabulary is taken from.

    Raises:
        BadInput: when that drafter cannot be used, or states are read that the texts do not hold.
    """
    drafter = recipe.drafter
    target: Any = models.networks[models.target]
    parent = target
    if recipe.begin:
        source = find_source(recipe.begin, f"recipe {recipe.name}: begin", folder=folder)
        # As it was trained, in whatever format the target wrote its texts.
        whole = msgspec.structs.replace(texts_recipe.recording(), dtype="float32")
        parent = load_network(source, whole, recipe.begin)[0]
        rows, wanted_rows = (len(n.get_input_embeddings().weight) for n in (parent, target))
        if rows != wanted_rows:
            raise BadInput(
                f"begin {recipe.begin!r} has a table of {rows} tokens, the target {wanted_rows}",
                where=f"recipe {recipe.name}",
                allowed="a drafter of the same target",
            )
    head = parent.get_output_embeddings()
    ids = frequent_ids(
        np.concatenate([t.top_ids for t in texts]),
        np.concatenate([t.top_log_probs for t in texts]),
        drafter.output_ids,
        models.eos_ids,
        head.ids if isinstance(head, TrimmedOutput) else torch.arange(models.vocabulary),
    )
    mask = None
    if isinstance(drafter, BlockRecipe):
        mask = mask_token_id(drafter.mask_token, models.tokenizer, f"recipe {recipe.name}: mask_token")
    read = drafter.reads_target if isinstance(drafter, BlockRecipe) else ()
    if missing := set(read) - set(texts_recipe.states):
        raise BadInput(
            f"the texts hold no states of layers {sorted(missing)}",
            where=f"recipe {recipe.name}: reads_target",
            allowed=f"some of {list(texts_recipe.states)}",
        )
    return Trained(parent, drafter.layers, ids, mask, states_width(target, read), read)


def _check_same(run: Path, identity: str) -> None:
    path = run / "checkpoint.safetensors"
    if not path.exists():
        return
    try:
        with safe_open(path, framework="pt") as file:
            found = (file.metadata() or {}).get("recipe")
    except SafetensorError as error:
        raise BadInput(
            f"is no checkpoint: {error}", where=path, hint="move it away to begin again"
        ) from error
    if found != identity:
        raise BadInput(
            "holds a drafter of another recipe",
            where=run,
            hint="finish it with its own recipe, or move the folder away",
        )


class _Run:
    """The state of one training, from its last checkpoint on."""

    def __init__(
        self,
        recipe: TrainRecipe,
        identity: str,
        folder: Path,
        network: Trained,
        tokenizer: Any,
        texts: list[Text],
        held_out: list[Text],
        say: Say,
        clock: Callable[[], float],
    ) -> None:
        self.recipe, self.identity, self.folder = recipe, identity, folder
        self.network, self.tokenizer = network, tokenizer
        self.texts, self.held_out, self.say, self.clock = texts, held_out, say, clock
        self.block = recipe.drafter if isinstance(recipe.drafter, BlockRecipe) else None
        self.weights = network.changing()
        reading = {id(w) for w in network.reading.parameters()} if network.reading else set()
        groups = [
            {"params": [w for w in self.weights.values() if (id(w) in reading) == slow], "share": share}
            for slow, share in ((False, 1.0), (True, _READING_RATE))
        ]
        self.optimiser = torch.optim.AdamW(
            groups, lr=recipe.rate, betas=_BETAS, weight_decay=recipe.weight_decay, fused=True
        )
        self.step = 0
        self.seconds = 0.0

    def go_on(self) -> None:
        """Train until the recipe's last step."""
        path = self.folder / "checkpoint.safetensors"
        if path.exists():
            self._load(path)
            self.say(f"{self.recipe.name}: goes on after step {self.step}")
        _cut(self.folder / "loss.csv", _LOSS, self.step)
        _cut(self.folder / "held-out.csv", _HELD_OUT, self.step)
        if not self.step:
            self._measure()
        begun = saved = self.clock()
        for batch in self._batches():
            lost, places = self._advance(batch)
            if not math.isfinite(lost):
                raise BadInput(
                    f"the loss is {lost} at step {self.step}",
                    where=f"recipe {self.recipe.name}",
                    hint=f"choose a rate below {self.recipe.rate:g}; the last checkpoint is kept",
                )
            now = self.clock()
            self.seconds, begun = self.seconds + now - begun, now
            last = self.step == self.recipe.steps
            _append(self.folder / "loss.csv", [self.step, f"{self.seconds:.1f}", places, self._rate(), lost])
            if self.step % self.recipe.measure_every == 0 or last:
                self.say(f"{self.recipe.name}: step {self.step} of {self.recipe.steps}, loss {lost:.3f}")
                self._measure()
                begun = self.clock()  # measuring is no training
            if last or self.clock() - saved >= 60 * self.recipe.save_minutes:
                self._save()
                begun = saved = self.clock()

    def _batches(self) -> Iterator[list[int]]:
        lengths = [len(t.tokens) for t in self.texts]
        extra = usual_masks(self.block) if self.block else 0
        every = endless_batches(lengths, self.recipe.batch_tokens, extra, self.recipe.seed)
        return itertools.islice(every, self.step, self.recipe.steps)

    def _advance(self, batch: list[int]) -> tuple[float, int]:
        """One step; returns its loss and how many places it read."""
        texts = [self.texts[i] for i in batch]
        blocks = drawn_blocks(texts, self.block, self.recipe.seed, self.step) if self.block else []
        packed = pack(texts, self.block, blocks)
        self.step += 1
        for group in self.optimiser.param_groups:
            group["lr"] = self._rate() * group["share"]
        low = self.recipe.dtype != "float32"
        with torch.autocast("cpu", dtype=torch.bfloat16) if low else nullcontext():
            logits = self.network(packed)
        lost = loss(logits, wanted(texts, packed, self.network.index), self.recipe.hard)
        self.optimiser.zero_grad(set_to_none=True)
        lost.backward()
        torch.nn.utils.clip_grad_norm_(self.weights.values(), _LARGEST_GRADIENT)
        self.optimiser.step()
        return float(lost.detach()), packed.tokens.numel()

    def _rate(self) -> float:
        """The learning rate of the step that is being made."""
        share = self.step / self.recipe.steps
        warm = self.recipe.warm
        if share < warm:
            return self.recipe.rate * share / warm
        falling = 0.5 * (1 + math.cos(math.pi * (share - warm) / (1 - warm)))
        return self.recipe.rate * (0.1 + 0.9 * falling)

    def _measure(self) -> None:
        for m in measure(self.network, self.held_out, self.block) if self.held_out else []:
            _append(
                self.folder / "held-out.csv",
                [self.step, m.category, m.starts, *(f"{x:.4f}" for x in (m.loss, *m.accepted, *m.emitted))],
            )
            accepted = ", ".join(f"{x:.3f}" for x in m.accepted)
            emitted = ", ".join(f"{x:.2f}" for x in m.emitted)
            self.say(
                f"  held out, {m.category}: loss {m.loss:.3f}; accepted at {DEPTHS}: {accepted}; "
                f"emitted at {LENGTHS}: {emitted}"
            )

    def _save(self) -> None:
        """The checkpoint, then the drafter for use; each file appears by one rename."""
        held = {f"weight.{name}": weight.detach() for name, weight in self.weights.items()}
        for name, weight in self.weights.items():
            state = self.optimiser.state[weight]
            held |= {f"{key}.{name}": state[key] for key in ("exp_avg", "exp_avg_sq", "step")}
        partial = self.folder / "checkpoint.writing"
        about = {"recipe": self.identity, "step": str(self.step), "seconds": repr(self.seconds)}
        save_file(held | {"ids": self.network.ids}, partial, metadata=about)
        partial.replace(self.folder / "checkpoint.safetensors")
        self.network.export(self.folder, self.tokenizer)

    def _load(self, path: Path) -> None:
        with safe_open(path, framework="pt") as file:
            about = file.metadata()
            held = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        self.step, self.seconds = int(about["step"]), float(about["seconds"])
        if not torch.equal(held["ids"], self.network.ids):
            raise BadInput("was made with another output vocabulary", where=path)
        with torch.no_grad():
            for name, weight in self.weights.items():
                weight.copy_(held[f"weight.{name}"])
                self.optimiser.state[weight] = {
                    key: held[f"{key}.{name}"] for key in ("exp_avg", "exp_avg_sq", "step")
                }


def _cut(path: Path, header: tuple[str, ...], step: int) -> None:
    """Begin a CSV file, or leave out of it what came after a step: that is made again."""
    rows: list[list[str]] = []
    if path.exists():
        with path.open(newline="") as file:
            rows = [
                row for row in list(csv.reader(file))[1:] if len(row) == len(header) and int(row[0]) <= step
            ]
    partial = path.with_suffix(".writing")
    with partial.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    partial.replace(path)


def _append(path: Path, row: list[object]) -> None:
    with path.open("a", newline="") as file:
        csv.writer(file).writerow(row)
