"""How often a model's most probable token depends on what else is in the forward.

A recorded text is made one token a forward and checked several tokens a forward, alone or in a
batch. Where that changes the most probable token, what is recorded holds for one shape only.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache

from simspec.record.models import forward

Tokens = NDArray[np.int64]


@dataclass(frozen=True)
class Flips:
    """One network at one shape of forward, against one token of one row a forward.

    Attributes:
        rows, width: the shape: rows of the batch, new tokens of each.
        positions: tokens compared.
        flipped: of these, where the most probable token differs.
        worst_margin: the greatest gap, in logits, between the one-token forward's two best
            tokens where it flipped; 0 where none did.
        largest_change: the greatest change of any logit, over all positions.
    """

    rows: int
    width: int
    positions: int
    flipped: int
    worst_margin: float
    largest_change: float


def measure_flips(
    network: Any, texts: Sequence[Tokens], steps: int, shapes: Sequence[tuple[int, int]]
) -> list[Flips]:
    """Compare shapes of forwards along the last ``steps`` tokens of some texts.

    All that comes before those tokens is read once a text, the same for every shape, so that only
    the forwards under test differ; each shape then goes on from its own cache. Texts are read as
    they stand, whatever the network would have said.

    Args:
        texts: token ids, all of one length; a batch takes them in order, and a rest that does
            not fill a batch is left out.
        shapes: (rows, width) of the forwards to compare.
    """
    ids = torch.as_tensor(np.stack(texts), device=network.device)
    begin = ids.shape[1] - steps
    read = []
    for row in ids:
        cache = DynamicCache()
        forward(network, row[None, :begin], torch.arange(begin, device=ids.device)[None], cache, last=1)
        read.append(cache)
    single = torch.cat(
        [_logits(network, [cache], row[None], begin, 1) for cache, row in zip(read, ids, strict=True)]
    )
    best = single.topk(2, dim=-1)
    margin = best.values[..., 0] - best.values[..., 1]
    found = []
    for rows, width in shapes:
        positions, flipped, worst, change = 0, 0, 0.0, 0.0
        for first in range(0, len(ids) - rows + 1, rows):
            part = slice(first, first + rows)
            logits = _logits(network, read[part], ids[part], begin, width)
            off = logits.argmax(-1) != best.indices[part, :, 0]
            positions += off.numel()
            flipped += int(off.sum())
            worst = max(worst, float((margin[part] * off).max()))
            change = max(change, float((logits - single[part]).abs().max()))
        found.append(Flips(rows, width, positions, flipped, worst, change))
    return found


def greedy_tokens(network: Any, texts: Sequence[Tokens], steps: int) -> Tokens:
    """A network's most probable tokens along the last ``steps`` tokens, one token of one row a forward.

    Returns:
        token ids, shape (texts, steps).
    """
    made = []
    for text in texts:
        ids = torch.as_tensor(text, device=network.device)[None]
        begin = ids.shape[1] - steps
        cache = DynamicCache()
        forward(network, ids[:, :begin], torch.arange(begin, device=ids.device)[None], cache, last=1)
        made.append(_logits(network, [cache], ids, begin, 1)[0].argmax(-1).cpu().numpy())
    return np.stack(made)


def _logits(
    network: Any, read: Sequence[DynamicCache], ids: torch.Tensor, begin: int, width: int
) -> torch.Tensor:
    """Logits at the tokens from ``begin`` on, ``width`` a forward; shape (rows, steps, vocabulary)."""
    cache = _side_by_side(read)
    made = []
    for at in range(begin, ids.shape[1], width):
        tokens = ids[:, at : at + width]
        places = torch.arange(at, at + tokens.shape[1], device=ids.device)[None].expand(tokens.shape)
        made.append(forward(network, tokens, places, cache))
    return torch.cat(made, dim=1)


def _side_by_side(read: Sequence[DynamicCache]) -> DynamicCache:
    """The caches of several rows as one, none of them changed."""
    cache = copy.deepcopy(read[0])
    for i, layer in enumerate(cache.layers):
        parts: list[Any] = [one.layers[i] for one in read]
        layer.keys = torch.cat([p.keys for p in parts])  # type: ignore[union-attr]
        layer.values = torch.cat([p.values for p in parts])  # type: ignore[union-attr]
    return cache
