"""What a drafter in training would have accepted on texts that it has not seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from simspec.training.batches import Blocks, pack
from simspec.training.losses import loss, wanted
from simspec.training.network import Trained
from simspec.training.recipe import BlockRecipe
from simspec.training.texts import Text

DEPTHS = (1, 2, 4, 8, 16)
LENGTHS = (4, 8, 16)

# Of a block-parallel drafter, blocks from every so many tokens: each costs as many places as it has masks.
STRIDE = 4
_BLOCKS_AT_ONCE = 32


@dataclass(frozen=True)
class Measured:
    """Figures over the texts of one category, or over all.

    Attributes:
        starts: places that blocks were drafted from.
        loss: that of training, a mean over texts (and, of a block-parallel drafter, over portions of each).
        accepted: share of blocks whose first d tokens are the text's own, for d of :data:`DEPTHS`.
        emitted: tokens of text a target's pass gives, for drafts of a length of :data:`LENGTHS`.
    """

    category: str
    starts: int
    loss: float
    accepted: tuple[float, ...]
    emitted: tuple[float, ...]


def measure(network: Trained, texts: Sequence[Text], drafter: BlockRecipe | None) -> list[Measured]:
    """Over all texts, and over each category's; under greedy decoding, in float32."""
    found: list[tuple[str, float, NDArray[np.float64]]] = []
    for text in texts:
        agreed, lost = _agreed(network, text, drafter)
        found.append((text.category, lost, agreed))
    categories = sorted({category for category, _, _ in found})
    return [_figures(name, [f for f in found if name in ("all", f[0])]) for name in ["all", *categories]]


def _figures(name: str, found: Sequence[tuple[str, float, NDArray[np.float64]]]) -> Measured:
    agreed = np.concatenate([a for _, _, a in found])
    # A place beyond the text's end is unknown (nan), and stays so in the product.
    runs = np.cumprod(agreed, axis=1)
    known = (~np.isnan(runs)).sum(axis=0)
    accepted = np.where(known > 0, np.nansum(runs, axis=0) / np.maximum(known, 1), np.nan)
    deep = [float(accepted[d - 1]) if d <= len(accepted) else float("nan") for d in DEPTHS]
    whole = [float(1 + accepted[:n].sum()) if n <= len(accepted) else float("nan") for n in LENGTHS]
    return Measured(name, len(agreed), float(np.mean([x for _, x, _ in found])), tuple(deep), tuple(whole))


def _agreed(network: Trained, text: Text, drafter: BlockRecipe | None) -> tuple[NDArray[np.float64], float]:
    """Whether each token of a block from each start is the text's own, nan beyond its end."""
    n = len(text.top_ids)
    if drafter is None:
        right, lost = _right(network, text, None, np.empty(0, dtype=np.int64))
        along = np.concatenate([right[:, 0], np.full(max(LENGTHS), np.nan)])
        return np.lib.stride_tricks.sliding_window_view(along, max(LENGTHS))[:n], lost
    starts = np.arange(0, n, STRIDE)
    rows, losses = [], []
    for some in _portions(starts):
        right, lost = _right(network, text, drafter, some)
        rows.append(right[some])
        losses.append(lost)
    return np.concatenate(rows), float(np.mean(losses))


def _portions(starts: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for begin in range(0, len(starts), _BLOCKS_AT_ONCE):
        yield starts[begin : begin + _BLOCKS_AT_ONCE]


def _right(
    network: Trained, text: Text, drafter: BlockRecipe | None, starts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], float]:
    """Row t, column j: whether token t + j is right in a block from t; nan where that was not read."""
    whole = np.full(len(starts), drafter.block - 1 if drafter else 0)
    packed = pack([text], drafter, [Blocks(starts, whole)])
    with torch.inference_mode():
        logits = network(packed)
    target = wanted([text], packed, network.index)
    lost = loss(logits, target, hard=0.0)
    right = np.full((len(text.top_ids), drafter.block if drafter else 1), np.nan)
    # Compared as token ids: a text's token that the output vocabulary lacks is never right.
    right[packed.output - packed.depth, packed.depth] = (logits.argmax(-1) == target[0]).numpy()
    return right, float(lost)
