"""How long a forward takes over batch, new tokens and context.

The models of a recording take turns at every cell of the grid, as they do in a
chain, so that each finds the caches as another left them. Contexts are one real
prefill repeated over the batch: time does not depend on the values.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from transformers import DynamicCache

from simspec.record.models import crop, forward
from simspec.record.recipe import LatencyRecipe
from simspec.speculation.drafters import PromptLookup
from simspec.streams import stream
from simspec.tables import LATENCY


@dataclass(frozen=True)
class Timed:
    """A model to time: its network, and the names under which its rows go."""

    model: str
    dtype: str
    network: Any


def cells(grid: LatencyRecipe) -> Iterator[tuple[int, int]]:
    """(context, batch) pairs of the grid; each is one resumable shard."""
    for context in grid.contexts:
        for batch in grid.batches:
            yield context, batch


def time_cell(
    timed: list[Timed],
    lookups: Mapping[str, PromptLookup],
    grid: LatencyRecipe,
    context: int,
    batch: int,
    *,
    device: str,
    vocabulary: int,
    seed: int,
) -> pa.Table:
    """Latency rows for every model and every count of new tokens at one (context, batch)."""
    generator = stream(seed, "latency", context, batch)
    prefix = torch.as_tensor(generator.integers(0, vocabulary, (1, context)), device=device)
    repetitions = grid.repetitions if batch <= grid.many_up_to else grid.repetitions_above
    rows: list[tuple[str, str, str, int, int, int, int, float]] = []
    caches = [_context(entry.network, prefix, batch) for entry in timed]
    for new in grid.new_tokens:
        tokens = torch.as_tensor(generator.integers(0, vocabulary, (batch, new)), device=device)
        positions = (context + torch.arange(new, device=device))[None].expand(batch, new)
        for repetition in range(-1, repetitions):  # -1 warms up and is not kept
            for entry, cache in zip(timed, caches, strict=True):
                seconds = _time_forward(entry.network, tokens, positions, cache, context, device)
                if repetition >= 0:
                    rows.append((entry.model, device, entry.dtype, batch, new, context, repetition, seconds))
            for name, lookup in lookups.items():
                seconds = _time_lookup(lookup, generator, batch, new, context, vocabulary)
                if repetition >= 0:
                    rows.append((name, "cpu", "none", batch, new, context, repetition, seconds))
    return pa.Table.from_pylist(
        [dict(zip(LATENCY.schema.names, row, strict=True)) for row in rows], schema=LATENCY.schema
    )


def _context(network: Any, prefix: torch.Tensor, batch: int) -> DynamicCache:
    cache = DynamicCache()
    forward(network, prefix, torch.arange(prefix.shape[1], device=prefix.device)[None], cache)
    if batch > 1:
        cache.batch_repeat_interleave(batch)
    return cache


def _time_forward(
    network: Any,
    tokens: torch.Tensor,
    positions: torch.Tensor,
    cache: DynamicCache,
    context: int,
    device: str,
) -> float:
    _settle(device)
    begun = time.perf_counter()
    forward(network, tokens, positions, cache)
    _settle(device)
    seconds = time.perf_counter() - begun
    crop(cache, context)
    return seconds


def _settle(device: str) -> None:
    """Wait for work already handed to an accelerator."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
    elif device == "mps":
        torch.mps.synchronize()


def _time_lookup(
    lookup: PromptLookup,
    generator: np.random.Generator,
    batch: int,
    new: int,
    context: int,
    vocabulary: int,
) -> float:
    texts = generator.integers(0, vocabulary, (batch, context)).astype(np.int32)
    texts[:, -2:] = texts[:, :2]  # so that there is something to find, at the far end
    begun = time.perf_counter()
    for text in texts:
        lookup.draft(text, new)
    return time.perf_counter() - begun
