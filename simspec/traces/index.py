"""A trace as arrays over flat start positions, ready for replay.

Prompt p's position t is flat position ``offsets[p] + t``. From every flat position
the record knows, for each drafter, how far its block follows the text and how far
every other model follows the block (:mod:`simspec.traces.drafters`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simspec.errors import unknown_name
from simspec.traces.checked import Tables
from simspec.traces.choices import with_choices
from simspec.traces.drafters import Base, DrafterIndex, drafters_of
from simspec.traces.manifest import Manifest
from simspec.traces.reader import read_tables

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Trace:
    """A trace indexed for replay.

    Attributes:
        offsets: first flat position of each prompt, with the total at the end, shape (P + 1,).
        remaining: tokens of text from each flat position to its end, shape (N,).
        position: place of each flat position in its text, shape (N,).
        prompt: prompt of each flat position, shape (N,).
        context: tokens before each flat position, prompt included, shape (N,).
        owns: for each model that can verify, whether its most probable token is the text's, (N,).
        drafters: every model but the target; none of them where :func:`outline` made this.
    """

    folder: Path
    manifest: Manifest
    prompts: pd.DataFrame
    latency: pd.DataFrame
    pairs: pd.DataFrame
    tokens: Ints
    offsets: Ints
    remaining: Ints
    position: Ints
    prompt: Ints
    context: Ints
    owns: dict[str, NDArray[np.bool_]]
    drafters: dict[str, DrafterIndex]

    @property
    def target(self) -> str:
        return self.manifest.target

    @property
    def verifiers(self) -> list[str]:
        """Models that can read a block, the target first."""
        return [m for m, e in self.manifest.models.items() if e.kind == "autoregressive"]

    def is_lookup(self, model: str) -> bool:
        """Whether a model drafts its whole block in one call that no cache serves."""
        return self.manifest.models[model].kind == "prompt-lookup"

    def tokens_a_forward(self, model: str) -> int:
        """Tokens that one forward of a drafter gives: 1 unless it is block-parallel."""
        return self.manifest.models[model].tokens_a_forward

    def require(self, model: str) -> None:
        """Refuse a name that the trace does not know."""
        if model not in self.manifest.models:
            raise unknown_name("model", model, self.manifest.models, where=self.folder)

    def shortened(self, output_tokens: int) -> Trace:
        """The same record as if every text had been asked for at most ``output_tokens`` tokens.

        Positions past that are still there, and nothing may start from them.
        """
        left = np.maximum(output_tokens - self.position, 0)
        manifest = msgspec.structs.replace(
            self.manifest, output_tokens=min(output_tokens, self.manifest.output_tokens)
        )
        return replace(self, manifest=manifest, remaining=np.minimum(self.remaining, left))

    @property
    def inputs(self) -> dict[str, str]:
        """What an output made from this trace depends on, for its provenance."""
        return {
            f"{self.manifest.name}/behaviour": self.manifest.behaviour_sha256,
            f"{self.manifest.name}/latency": self.manifest.tables["latency"].sha256,
        }


def load_trace(folder: Path) -> Trace:
    """Read, check and index the trace in ``folder`` for replay.

    Raises:
        BadInput: when something in it does not hold, or its texts are sampled.
    """
    return index_tables(read_tables(folder))


def outline(read: Tables) -> Trace:
    """A trace without its blocks, of sampled texts too: enough to look at, not to replay."""
    return _index(read, blocks=False)


def index_tables(read: Tables) -> Trace:
    """Index checked tables for replay; raises :class:`~simspec.errors.BadInput` for sampled texts."""
    read.manifest.refuse_sampled(read.folder)
    return _index(read, blocks=True)


def _index(read: Tables, *, blocks: bool) -> Trace:
    manifest, prompts = read.manifest, read.frame("prompts")
    size = prompts["output_tokens"].to_numpy().astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(size)])
    prompt = np.repeat(np.arange(len(size)), size)
    position = np.arange(offsets[-1]) - offsets[prompt]
    tokens = read.frame("texts")["token"].to_numpy().astype(np.int64)
    verifiers = [m for m, e in manifest.models.items() if e.kind == "autoregressive"]

    along = read.frame("along")
    along["flat"] = offsets[along["prompt_id"]] + along["position"]
    greedy, top1, entropy = {}, {}, {}
    for model in verifiers:
        rows = along[along["model"] == model].sort_values("flat")
        greedy[model] = rows["greedy_token"].to_numpy().astype(np.int64)
        top1[model] = rows["top1_prob"].to_numpy()
        entropy[model] = rows["entropy"].to_numpy()
    owns = {m: greedy[m] == tokens for m in verifiers}
    owns[manifest.target] = np.ones(len(tokens), dtype=bool)  # the text is the target's own

    base = Base(manifest, offsets, prompt, position, size, tokens, owns, top1, entropy)
    drafters = with_choices(base, read, drafters_of(base, read)) if blocks else {}
    return Trace(
        folder=read.folder,
        manifest=manifest,
        prompts=prompts,
        latency=read.frame("latency"),
        pairs=read.frame("pairs"),
        tokens=tokens,
        offsets=offsets,
        remaining=size[prompt] - position,
        position=position,
        prompt=prompt,
        context=prompts["prompt_tokens"].to_numpy().astype(np.int64)[prompt] + position,
        owns=owns,
        drafters=drafters,
    )
