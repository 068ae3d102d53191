"""How long a forward takes over batch, new tokens and context.

The models of a cell take turns in an order drawn anew for every repetition, over models and
widths, so that each finds the caches as another left them and a slow stretch of the machine
falls on all alike. Contexts are one real prefill repeated over the batch: time does not depend
on the values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from transformers import DynamicCache

from simspec.errors import BadInput
from simspec.record.models import LoadedModels, crop, forward
from simspec.record.quantize import quantize_int8
from simspec.record.recipe import LatencyRecipe, Recipe
from simspec.speculation.drafters import PromptLookup
from simspec.streams import stream
from simspec.tables import LATENCY, Column, Table

# Not part of a trace: a recording that runs out of memory is refused, a profile says where it did.
MISSING = Table(
    "missing",
    (
        *(c for c in LATENCY.columns if c.name not in ("repetition", "seconds")),
        Column("reason", pa.string(), "text", "why these forwards were not timed"),
    ),
    key=("model", "device", "dtype", "batch", "new_tokens", "context"),
)


@dataclass(frozen=True)
class Timed:
    """A model to time: its network, and the names under which its rows go."""

    model: str
    dtype: str
    network: Any


@dataclass(frozen=True)
class TimedCell:
    """What one (context, batch) gave: rows of LATENCY, and of MISSING where memory ran out."""

    latency: pa.Table
    missing: pa.Table


def cells(grid: LatencyRecipe) -> Iterator[tuple[int, int]]:
    """(context, batch) pairs of the grid; each is one resumable shard."""
    for context in grid.contexts:
        for batch in grid.batches:
            yield context, batch


def timed_networks(models: LoadedModels, recipe: Recipe) -> list[Timed]:
    """The recipe's networks in its number format, and those that it wants in dynamic int8 too."""
    entries = [Timed(name, recipe.dtype, network) for name, network in models.networks.items()]
    return entries + [
        Timed(name, "int8-dynamic", quantize_int8(models.networks[name]))
        for name in (recipe.latency.int8 if recipe.latency else ())
        if name in models.networks
    ]


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
    """Latency rows for every model and every count of new tokens at one (context, batch).

    Raises:
        BadInput: when memory runs out.
    """
    cell = time_what_fits(
        timed, lookups, grid, context, batch, device=device, vocabulary=vocabulary, seed=seed
    )
    if cell.missing.num_rows:
        first = cell.missing.to_pylist()[0]
        raise BadInput(
            f"out of memory: {first['model']} at batch {batch}, context {context}, "
            f"{first['new_tokens']} new tokens",
            where="latency",
            hint="make the recipe's latency grid smaller",
        )
    return cell.latency


def time_what_fits(
    timed: list[Timed],
    lookups: Mapping[str, PromptLookup],
    grid: LatencyRecipe,
    context: int,
    batch: int,
    *,
    device: str,
    vocabulary: int,
    seed: int,
) -> TimedCell:
    """As :func:`time_cell`, but forwards that run out of memory are left out and named.

    Where a model runs out at some width, its wider forwards of the cell are not tried.
    """
    generator = stream(seed, "latency", context, batch)
    prefix = torch.as_tensor(generator.integers(0, vocabulary, (1, context)), device=device)
    repetitions = grid.repetitions if batch <= grid.many_up_to else grid.repetitions_above
    tokens = {
        new: torch.as_tensor(generator.integers(0, vocabulary, (batch, new)), device=device)
        for new in grid.new_tokens
    }
    rows: list[dict[str, object]] = []
    missing: dict[tuple[int, int], str] = {}
    caches: list[DynamicCache | None] = []
    for i, entry in enumerate(timed):
        caches.append(_context_or_none(entry.network, prefix, batch))
        if caches[-1] is None:
            missing |= {(i, new): "the context does not fit beside the other models" for new in tokens}
    names = list(lookups)
    turns = [(i, new) for i in range(len(timed) + len(names)) for new in tokens]
    for repetition in range(-1, repetitions):  # -1 warms up and is not kept
        for turn in generator.permutation(len(turns)):
            i, new = turns[turn]
            if (i, new) in missing:
                continue
            if i >= len(timed):
                name = names[i - len(timed)]
                row = _row(name, "cpu", "none", batch, new, context)
                seconds: float | None = _time_lookup(
                    lookups[name], generator, batch, new, context, vocabulary
                )
            else:
                entry, cache = timed[i], caches[i]
                assert cache is not None
                row = _row(entry.model, device, entry.dtype, batch, new, context)
                seconds = _seconds_or_none(entry.network, tokens[new], cache, context, device)
                if seconds is None:
                    missing |= {(i, wider): "out of memory" for wider in tokens if wider >= new}
                    # The forward may have grown some layers' caches and not others: build it anew.
                    caches[i] = cache = None
                    _release(device)
                    caches[i] = _context_or_none(entry.network, prefix, batch)
                    if caches[i] is None:
                        missing |= {(i, any_width): "out of memory" for any_width in tokens}
                    continue
            if repetition >= 0:
                rows.append({**row, "repetition": repetition, "seconds": seconds})
    gone = [
        {**_row(timed[i].model, device, timed[i].dtype, batch, new, context), "reason": reason}
        for (i, new), reason in sorted(missing.items())
    ]
    dropped = {tuple(g[c] for c in MISSING.key) for g in gone}
    kept = [r for r in rows if tuple(r[c] for c in MISSING.key) not in dropped]
    return TimedCell(
        pa.Table.from_pylist(kept, schema=LATENCY.schema), pa.Table.from_pylist(gone, schema=MISSING.schema)
    )


def clock_of(device: str) -> str:
    """How seconds are taken on a device, for the manifest."""
    if device.startswith("cuda"):
        return "CUDA events around the forward, the device idle before and after"
    return "monotonic clock around the forward, the device idle before and after"


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out: CUDA, Metal and the CPU allocator say it differently."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    said = str(error).lower()
    return any(words in said for words in ("out of memory", "can't allocate memory", "not enough memory"))


def _row(model: str, device: str, dtype: str, batch: int, new: int, context: int) -> dict[str, object]:
    values = (model, device, dtype, batch, new, context)
    return dict(zip(MISSING.key, values, strict=True))


def _context_or_none(network: Any, prefix: torch.Tensor, batch: int) -> DynamicCache | None:
    """The prefix in ``batch`` rows of a new cache; None where memory runs out."""
    cache = DynamicCache()
    fits = True
    try:
        forward(network, prefix, torch.arange(prefix.shape[1], device=prefix.device)[None], cache)
        if batch > 1:
            cache.batch_repeat_interleave(batch)
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        fits = False
    if fits:
        return cache
    del cache  # only here: the error held on to the forward's tensors until now
    _release(str(prefix.device))
    return None


def _seconds_or_none(
    network: Any, tokens: torch.Tensor, cache: DynamicCache, context: int, device: str
) -> float | None:
    try:
        return _time_forward(network, tokens, cache, context, device)
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
    return None


def _release(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
    elif device == "mps":
        torch.mps.empty_cache()


def _time_forward(
    network: Any, tokens: torch.Tensor, cache: DynamicCache, context: int, device: str
) -> float:
    new = tokens.shape[1]
    positions = (context + torch.arange(new, device=tokens.device))[None].expand(tokens.shape)
    seconds = time_call(lambda: forward(network, tokens, positions, cache), device)
    crop(cache, context)
    return seconds


def time_call(call: Callable[[], object], device: str) -> float:
    """Seconds of ``call`` on a device that is idle before it and has finished it."""
    if device.startswith("cuda"):
        with torch.cuda.device(device):
            begin = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize()
            begin.record()
            call()
            end.record()
            torch.cuda.synchronize()
            return float(begin.elapsed_time(end)) / 1000  # it tells milliseconds
    _settle(device)
    begun = time.perf_counter()
    call()
    _settle(device)
    return time.perf_counter() - begun


def _settle(device: str) -> None:
    """Wait for work already handed to an accelerator."""
    if device == "mps":
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
