"""What a drafter would have put beside each token of its blocks: what drafted trees are made of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.traces import ragged
from simspec.traces.checked import Tables
from simspec.traces.drafters import NEVER, Base, Choices, DrafterIndex, _next_true, _Stored

Ints = NDArray[np.int64]


def with_choices(base: Base, read: Tables, drafters: dict[str, DrafterIndex]) -> dict[str, DrafterIndex]:
    """The drafters with their choices, where the trace tells them.

    A trace with table ``choices`` tells those of every drafter but look-ups. Any other trace tells the two
    best of autoregressive ones: the margin of the two best logits gives the second's probability, and the
    rank of the text's token along the text says whether it is the second. Sampled texts have none.
    """
    if base.manifest.sampling is not None:
        return drafters
    found = {}
    for model, index in drafters.items():
        kind = base.manifest.models[model].kind
        choices = None
        if kind == "autoregressive":
            choices = _shared(base, read, model, index)
        elif kind == "block-parallel" and base.manifest.alternatives:
            choices = _stored_everywhere(base, read, model, index)
        found[model] = replace(index, choices=choices)
    return found


def _told(read: Tables, model: str, depth: int) -> tuple[Any, NDArray[np.float32], NDArray[np.int32]]:
    """Rows of table ``choices``: their keys, probabilities (rows, D, K) and ranks (rows, D)."""
    stored = _Stored(read, "choices")
    rows, k = stored.rows(drafter=model), read.manifest.alternatives
    table = stored.table.take(rows)
    confidence = ragged.pad(table.column("confidence"), depth * k, 0.0).astype(np.float32)
    ranks = ragged.pad(table.column("text_rank"), depth, NEVER).astype(np.int32)
    return stored.keys.iloc[rows], confidence.reshape(len(rows), depth, k), ranks


def _shared(base: Base, read: Tables, model: str, index: DrafterIndex) -> Choices:
    """Blocks that are the text's tokens until a place where they are not, and stored from there on."""
    depth, many = base.manifest.block_length, len(base.tokens)
    slot = base.offsets[:-1] + np.arange(len(base.size))
    slots = many + len(base.size)

    def placed(keys: Any, column: str = "start") -> Ints:
        return np.asarray(slot[keys["prompt_id"]] + keys[column].to_numpy(), dtype=np.int64)

    along = read.frame("along")
    along = along[along["model"] == model]
    here = placed(along, "position")
    rank = np.full(slots, NEVER, dtype=np.int32)
    # A tie with the drafter's own token counts for nothing in text_rank.
    text = base.tokens[base.offsets[along["prompt_id"]] + along["position"].to_numpy()]
    rank[here] = np.maximum(along["text_rank"].to_numpy(), along["greedy_token"].to_numpy() != text)
    if base.manifest.alternatives:
        keys, words, ranks = _told(read, model, depth)
        rank[placed(keys)] = ranks[:, 0]
        blocks = np.zeros((slots, *words.shape[1:]), dtype=np.float32)
        blocks[placed(keys)] = words
    else:
        stored = _Stored(read, "blocks")
        rows = stored.rows(drafter=model)
        table = stored.table.take(rows)
        top, margin = (ragged.pad(table.column(c), depth, 0.0) for c in ("top1_prob", "top2_margin"))
        blocks = np.zeros((slots, depth, 2), dtype=np.float32)
        blocks[here, 0] = _two(along["top1_prob"].to_numpy(), along["top2_margin"].to_numpy())
        blocks[placed(stored.keys.iloc[rows])] = _two(top, margin)
    leaves = rank > 0
    ends = slot + base.size
    # A text that ends itself has nothing after it.
    leaves[ends] &= blocks[ends].any(axis=(1, 2))
    at = slot[base.prompt] + base.position
    next_leaving = _next_true(leaves, ends)[at]
    until = np.where(next_leaving >= 0, next_leaving - at, base.size[base.prompt] - base.position)
    confidence = np.zeros((many, depth, blocks.shape[2]), dtype=np.float32)
    text_rank = np.full((many, depth), NEVER, dtype=np.int32)
    for j in range(depth):
        on_text, inside = j < until, (j >= until) & (next_leaving >= 0)
        confidence[on_text, j] = blocks[at[on_text] + j, 0]
        confidence[inside, j] = blocks[next_leaving[inside], j - until[inside]]
        text_rank[on_text, j] = 0
        first = inside & (j == until)
        text_rank[first, j] = rank[next_leaving[first]]
    return _cut(confidence, text_rank, index, 1)


def _two(top: NDArray[Any], margin: NDArray[Any]) -> NDArray[np.float32]:
    """Probabilities of the two most probable tokens, (..., 2); logits differ as log probabilities do."""
    first = top.astype(np.float32)
    return np.stack([first, first * np.exp(-margin.astype(np.float32))], axis=-1)


def _stored_everywhere(base: Base, read: Tables, model: str, index: DrafterIndex) -> Choices:
    keys, words, ranks = _told(read, model, base.manifest.block_length)
    order = np.argsort(base.offsets[keys["prompt_id"]] + keys["start"].to_numpy())
    return _cut(words[order], ranks[order], index, base.manifest.models[model].tokens_a_forward)


def _cut(
    confidence: NDArray[np.float32], text_rank: NDArray[np.int32], index: DrafterIndex, at_once: int
) -> Choices:
    beyond = np.arange(confidence.shape[1]) >= index.length[:, None]
    confidence[beyond] = 0.0
    text_rank[beyond] = NEVER
    return Choices(confidence, text_rank, at_once)
