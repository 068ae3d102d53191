"""Texts side by side in one forward, with masked blocks behind them where a drafter fills those in.

A row holds a text, padding, and then its masked blocks. Text sees the text before it; a masked place
sees the text up to its block's start and, by ``within``, masks of its own block. So one forward reads
a text once and trains many blocks, each of which sees what it would see alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from simspec.streams import stream
from simspec.training.recipe import BlockRecipe
from simspec.training.texts import Text

# Batches that are made from one stretch of an epoch, sorted by length against padding.
_SORTED_TOGETHER = 16


@dataclass(frozen=True)
class Packed:
    """One forward.

    Attributes:
        tokens: shape (rows, places), of any value at masked places.
        masked: which places hold a mask, bool, shape (rows, places).
        positions: places in the text, shape (rows, places).
        seen: what each place sees, bool, shape (rows, 1, places, places).
        row, place: of the places that have something to say, shape (n,).
        text, output: which text's continuation they speak of, and which token of it, shape (n,).
        depth: how many masks stand between what is known and each of them, 0 at text, shape (n,).
        widest: places of text, and of padding behind it, in each row; masked blocks come after them.
        states: the target's at the token before each place of text, float32, shape (rows, widest,
            layers * hidden); None for a drafter that reads none.
    """

    tokens: torch.Tensor
    masked: torch.Tensor
    positions: torch.Tensor
    seen: torch.Tensor
    row: torch.Tensor
    place: torch.Tensor
    text: NDArray[np.int64]
    output: NDArray[np.int64]
    depth: NDArray[np.int64]
    widest: int
    states: torch.Tensor | None = None


@dataclass(frozen=True)
class Blocks:
    """Where the masked blocks of one text begin, and how long they are.

    Attributes:
        starts: how many tokens of the text's continuation each follows, shape (blocks,).
        masks: masked places of each, shape (blocks,).
    """

    starts: NDArray[np.int64]
    masks: NDArray[np.int64]


def endless_batches(lengths: Sequence[int], batch_tokens: int, extra: int, seed: int) -> Iterator[list[int]]:
    """Batches of texts, epoch after epoch; the n-th one depends on the arguments alone.

    Args:
        lengths: of the texts in tokens.
        batch_tokens: the most places of a batch, padding included (a longer text goes alone).
        extra: places that each row has beside its text.
    """
    epoch = 0
    while True:
        generator = stream(seed, "epoch", epoch)
        order = generator.permutation(len(lengths))
        typical = max(1, batch_tokens // (int(np.mean(lengths)) + extra))
        for begin in range(0, len(order), typical * _SORTED_TOGETHER):
            stretch = order[begin : begin + typical * _SORTED_TOGETHER]
            batches: list[list[int]] = [[]]
            for index in sorted(stretch.tolist(), key=lambda i: (lengths[i], i)):
                # Rising lengths: this text is the longest so far.
                if batches[-1] and (len(batches[-1]) + 1) * (lengths[index] + extra) > batch_tokens:
                    batches.append([])
                batches[-1].append(index)
            for i in generator.permutation(len(batches)):
                yield batches[i]
        epoch += 1


def pack(texts: Sequence[Text], drafter: BlockRecipe | None, blocks: Sequence[Blocks]) -> Packed:
    """Texts as rows of one forward.

    Args:
        drafter: what fills in masked places; None for one that reads text only.
        blocks: of each text; ignored without a ``drafter``.
    """
    widest = max(len(t.tokens) for t in texts)
    places = widest + (max(int(b.masks.sum()) for b in blocks) if drafter else 0)
    tokens = np.zeros((len(texts), places), dtype=np.int64)
    positions = np.tile(np.arange(places), (len(texts), 1))
    masked = np.zeros((len(texts), places), dtype=bool)
    seen = np.zeros((len(texts), places, places), dtype=bool)
    # Padding sees itself and what is before it, which keeps it out of the way.
    seen[:, :widest, :widest] = np.tri(widest, dtype=bool)
    said: list[NDArray[np.int64]] = []
    for r, text in enumerate(texts):
        tokens[r, : len(text.tokens)] = text.tokens
        n = len(text.top_ids)
        output = np.arange(n)
        said.append(np.stack([np.full(n, r), text.prompt_tokens - 1 + output, output, np.zeros_like(output)]))
        # Masks too many say nothing; they see themselves.
        masked[r, widest:] = True
        seen[r, widest:, widest:] = np.eye(places - widest, dtype=bool)
        if drafter is None:
            continue
        first = widest
        for start, masks in zip(blocks[r].starts.tolist(), blocks[r].masks.tolist(), strict=True):
            inside = slice(first, first + masks)
            seen[r, inside, inside] = np.tri(masks, dtype=bool) if drafter.within == "causal" else True
            known = text.prompt_tokens + start
            seen[r, inside, :known] = True
            positions[r, inside] = known + np.arange(masks)
            output = start + 1 + np.arange(masks)
            block = np.stack([np.full(masks, r), first + np.arange(masks), output, 1 + np.arange(masks)])
            said.append(block[:, output < n])
            first += masks
    row, place, output, depth = np.concatenate(said, axis=1)
    return Packed(
        tokens=torch.from_numpy(tokens),
        masked=torch.from_numpy(masked),
        positions=torch.from_numpy(positions),
        seen=torch.from_numpy(seen)[:, None],
        row=torch.from_numpy(row),
        place=torch.from_numpy(place),
        text=row,
        output=output,
        depth=depth,
        widest=widest,
        states=_states(texts, widest, drafter.reads_target) if drafter and drafter.reads_target else None,
    )


def _states(texts: Sequence[Text], widest: int, layers: Sequence[int]) -> torch.Tensor:
    found = [text.read_states(layers) for text in texts]
    states = torch.zeros((len(texts), widest, found[0].shape[1]))
    for r, own in enumerate(found):
        states[r, : len(own)] = own
    return states


def drawn_blocks(texts: Sequence[Text], drafter: BlockRecipe, seed: int, step: int) -> list[Blocks]:
    """The masked blocks of a training step: from anywhere before a text's last token, each going on from mask
    to mask with the chance of ``exp(-1 / fading)``."""
    generator = stream(seed, "blocks", step)
    found = []
    for text in texts:
        starts = np.sort(generator.permutation(max(1, len(text.top_ids) - 1))[: drafter.blocks])
        masks = generator.geometric(-np.expm1(-1 / drafter.fading), len(starts))
        found.append(Blocks(starts.astype(np.int64), np.minimum(masks, drafter.block - 1)))
    return found


def usual_masks(drafter: BlockRecipe) -> int:
    """Masked places that a text's blocks have on the whole, about: their expectation, rounded up."""
    goes_on = np.exp(-np.arange(drafter.block - 1) / drafter.fading)
    return int(np.ceil(drafter.blocks * goes_on.sum()))
