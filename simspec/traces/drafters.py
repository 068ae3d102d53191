"""A drafter's blocks from every flat position of a trace.

Blocks that were stored once for many starts are put back here: from a start where the drafter
agrees with the text, its block is the text up to the next place where it does not, and then the
block stored there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simspec.traces import ragged
from simspec.traces.checked import Tables
from simspec.traces.manifest import Manifest

Ints = NDArray[np.int64]


# A rank that no tree reaches: the text has ended, or the block has left it and cannot come back.
NEVER = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Choices:
    """A drafter's K most probable tokens at each place of its blocks, from every flat position.

    Attributes:
        confidence: their probabilities, the drafted token's first, (N, D, K), 0 past a block's end.
        text_rank: which of them is the text's token, counted from 0, (N, D); K or more for none of them. Of
            an autoregressive drafter :data:`NEVER` after the first place that is not 0: its later words hang
            on a token that the target refused.
        at_once: places of a block whose words do not hang on the tokens drafted at the places before, from
            the first on: what one forward of a block-parallel drafter gives; 1 for an autoregressive one.
    """

    confidence: NDArray[np.float32]
    text_rank: NDArray[np.int32]
    at_once: int


@dataclass(frozen=True)
class DrafterIndex:
    """A drafter's blocks from every flat position; N positions, blocks of at most D.

    Attributes:
        length: tokens in the block, shape (N,). A block ends with the first end-of-text
            token that the drafter drafts.
        ended: whether its last token ends the text, shape (N,).
        confidence: its probability of each drafted token, shape (N, D), 0 past the end.
        matched: leading tokens that are the text's own, shape (N,): what the target accepts.
        agreed: for each other model, leading tokens that are its most probable ones, (N,).
        entropy: of the distribution that each token was taken from, nats, (N, D), 0 past the end; None where
            it was not recorded.
        choices: what trees are made of; None where the trace does not tell.
    """

    length: Ints
    ended: NDArray[np.bool_]
    confidence: NDArray[np.float32]
    matched: Ints
    agreed: dict[str, Ints]
    entropy: NDArray[np.float32] | None = None
    choices: Choices | None = None


@dataclass(frozen=True)
class Base:
    """What the blocks of every drafter are laid beside; fields as in :class:`simspec.traces.index.Trace`.

    Attributes:
        size: tokens of each text, shape (P,).
        top1, entropy: for each model that can verify, its greatest probability, and its entropy, (N,).
    """

    manifest: Manifest
    offsets: Ints
    prompt: Ints
    position: Ints
    size: Ints
    tokens: Ints
    owns: dict[str, NDArray[np.bool_]]
    top1: dict[str, NDArray[np.float32]]
    entropy: dict[str, NDArray[np.float32]]


class _Stored:
    """Rows of a block table, by drafter (and verifier)."""

    def __init__(self, read: Tables, name: str):
        self.table = read.tables[name]
        columns = [c for c in ("prompt_id", "start", "drafter", "verifier") if c in self.table.column_names]
        self.keys = self.table.select(columns).to_pandas()

    def rows(self, **names: str) -> Ints:
        keep = np.ones(len(self.keys), dtype=bool)
        for column, value in names.items():
            keep &= (self.keys[column] == value).to_numpy()
        return np.flatnonzero(keep)


def drafters_of(base: Base, read: Tables) -> dict[str, DrafterIndex]:
    blocks, verdicts = _Stored(read, "blocks"), _Stored(read, "verdicts")
    drafters = {}
    for model, entry in base.manifest.models.items():
        if model == base.manifest.target:
            continue
        build = _shared if entry.kind == "autoregressive" else _stored_everywhere
        drafters[model] = build(base, model, blocks, verdicts)
    return drafters


def _shared(base: Base, model: str, blocks: _Stored, verdicts: _Stored) -> DrafterIndex:
    depth = base.manifest.block_length
    rows = blocks.rows(drafter=model)
    keys = blocks.keys.iloc[rows]
    # Stored starts may lie one past a text's end; one extra slot a prompt holds them.
    slot = base.offsets[:-1] + np.arange(len(base.size))
    where = slot[keys["prompt_id"]] + keys["start"].to_numpy()
    ends = slot + base.size
    total = int(ends[-1]) + 1
    row_at = np.full(total, -1, dtype=np.int64)
    row_at[where] = np.arange(len(rows))
    next_stored = _next_true(row_at >= 0, ends)
    here = slot[base.prompt] + base.position
    reached = next_stored[here]
    stored_here = reached >= 0
    # Tokens of text before the stored block takes over; a text that ends itself has none after.
    agree_until = np.where(stored_here, reached - here, base.size[base.prompt] - base.position)
    row = np.where(stored_here, row_at[np.maximum(reached, 0)], 0)

    table = blocks.table.take(rows)
    tokens = ragged.pad(table.column("tokens"), depth, -1)
    stored = [ragged.pad(table.column(name), depth, 0.0) for name in ("confidence", "entropy")]
    if not len(rows):
        tokens, stored = np.full((1, depth), -1), [np.zeros((1, depth), dtype=np.float32)] * 2
    ends_at = _first_true(np.isin(tokens, base.manifest.eos_tokens)) + 1

    confidence, entropy = (np.zeros((len(here), depth), dtype=np.float32) for _ in stored)
    flat = np.arange(len(here))
    for j in range(depth):
        on_text, place = j < agree_until, np.maximum(j - agree_until, 0)
        along = np.minimum(flat + j, len(flat) - 1)
        for out, of_text, of_block in zip(
            (confidence, entropy), (base.top1[model], base.entropy[model]), stored, strict=True
        ):
            beyond = np.where(stored_here, of_block[row, place], 0.0)
            out[:, j] = np.where(on_text, of_text[along], beyond)
    length = np.where(stored_here, np.minimum(depth, agree_until + ends_at[row]), agree_until)
    # The text's own end of text is a draft like any other.
    ended = np.where(
        stored_here,
        (ends_at[row] <= depth) & (agree_until + ends_at[row] <= depth),
        agree_until <= depth,
    )
    length = np.minimum(length, depth)
    confidence[np.arange(depth) >= length[:, None]] = 0.0
    entropy[np.arange(depth) >= length[:, None]] = 0.0

    agreed = {}
    for verifier in base.owns:
        if verifier in (model, base.manifest.target):
            continue
        chosen = verdicts.rows(drafter=model, verifier=verifier)
        after = _agreement(verdicts, chosen, keys, tokens, depth)
        until = _next_true(~base.owns[verifier], base.offsets[1:] - 1) - flat
        until = np.where(until < 0, base.size[base.prompt] - base.position, until)
        follows = np.where(until < agree_until, until, agree_until + np.where(stored_here, after[row], 0))
        agreed[verifier] = np.minimum(follows, length)
    return DrafterIndex(
        length=length,
        ended=ended,
        confidence=confidence,
        matched=np.minimum(agree_until, length),
        agreed=agreed,
        entropy=entropy,
    )


def _stored_everywhere(base: Base, model: str, blocks: _Stored, verdicts: _Stored) -> DrafterIndex:
    depth = base.manifest.block_length
    rows = blocks.rows(drafter=model)
    keys = blocks.keys.iloc[rows]
    order = np.argsort(base.offsets[keys["prompt_id"]] + keys["start"].to_numpy())
    rows = rows[order]
    keys = blocks.keys.iloc[rows]
    table = blocks.table.take(rows)
    tokens = ragged.pad(table.column("tokens"), depth, -1)
    size = np.minimum(ragged.lengths(table.column("tokens")), depth)
    ends_at = _first_true(np.isin(tokens, base.manifest.eos_tokens)) + 1
    length, ended = np.minimum(size, ends_at), ends_at <= size
    confidence = ragged.pad(table.column("confidence"), depth, 0.0)
    entropy = ragged.pad(table.column("entropy"), depth, 0.0).astype(np.float32)
    for out in (confidence, entropy):
        out[np.arange(depth) >= length[:, None]] = 0.0

    flat = np.arange(len(base.tokens))
    ahead = flat[:, None] + np.arange(depth)[None]
    last = base.offsets[base.prompt + 1][:, None]
    text = np.where(ahead < last, base.tokens[np.minimum(ahead, len(flat) - 1)], -2)
    matched = np.minimum(_first_true(tokens != text), length)
    agreed = {}
    for verifier in base.owns:
        if verifier == base.manifest.target:
            continue
        chosen = verdicts.rows(drafter=model, verifier=verifier)
        agreed[verifier] = np.minimum(_agreement(verdicts, chosen, keys, tokens, depth), length)
    return DrafterIndex(
        length=length, ended=ended, confidence=confidence, matched=matched, agreed=agreed, entropy=entropy
    )


def _agreement(
    verdicts: _Stored, chosen: Ints, keys: pd.DataFrame, tokens: NDArray[np.int64], depth: int
) -> Ints:
    """Leading tokens of each stored block that are a verifier's own, in the order of ``keys``."""
    found = verdicts.keys.iloc[chosen][["prompt_id", "start"]].reset_index(drop=True)
    found["at"] = np.arange(len(found))
    joined = keys[["prompt_id", "start"]].merge(found, on=["prompt_id", "start"], how="left")
    greedy = ragged.pad(verdicts.table.take(chosen).column("greedy_token"), depth, -3)
    at = joined["at"].fillna(-1).to_numpy().astype(np.int64)
    if not len(at):
        return np.zeros(1, dtype=np.int64)
    if not len(greedy):  # only empty blocks: nothing was verified
        return np.zeros(len(at), dtype=np.int64)
    return np.where(at >= 0, _first_true(greedy[np.maximum(at, 0)] != tokens), 0)


def _first_true(flags: NDArray[np.bool_]) -> Ints:
    """Index of the first True in each row, or the row's width."""
    width = flags.shape[1]
    found: Ints = np.where(flags.any(axis=1), flags.argmax(axis=1), width).astype(np.int64)
    return found


def _next_true(flags: NDArray[np.bool_], ends: Ints) -> Ints:
    """At each slot, the next slot at or after it that is True within its prompt, or -1."""
    index = np.where(flags, np.arange(len(flags)), len(flags))
    following: Ints = np.minimum.accumulate(index[::-1])[::-1]
    limit = ends[np.searchsorted(ends, np.arange(len(flags)))]
    found: Ints = np.where(following <= limit, following, -1)
    return found
