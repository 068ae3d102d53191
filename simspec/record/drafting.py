"""The drafting phase of a lock-step batch: blocks from look-ups, networks and block-parallel drafters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simspec.record.level import Level
from simspec.record.models import LoadedModels
from simspec.record.words import words_of
from simspec.speculation.lengths import Decision, LengthRule, View
from simspec.speculation.sampling import Sampling
from simspec.speculation.verify import NOTHING, Block, Tokens, draw

Floats = NDArray[np.float64]


@dataclass
class Drafting:
    """One request that waits for a block.

    Attributes:
        row: its row in the caches.
        text: prompt and all that the block comes after.
        most: tokens that may be drafted.
        prices: what a cycle costs at each length, shape (D + 1,), for rules that weigh it.
        state: the rule's state.
        generator: its own luck.
        block: what has been drafted.
        submitted: tokens to hand up.
        lag: width of the drafter's first forward, 0 if it had none.
        confidence: of each drafted token, shape (D,); 0 where none was drafted.
        ended: whether the block ends the text or the drafter has no more.
    """

    row: int
    text: Tokens
    most: int
    prices: Floats
    state: float
    generator: np.random.Generator
    block: Block = NOTHING
    submitted: int = 0
    lag: int = 0
    confidence: Floats = field(default_factory=lambda: np.empty(0))
    ended: bool = False


def draft(
    models: LoadedModels,
    drafter: str,
    level: Level | None,
    rule: LengthRule,
    waiting: Sequence[Drafting],
    sampling: Sampling | None,
) -> None:
    """Fill in the blocks of requests that share a drafter and a rule.

    A rule's decision does not depend on what it does not draft, so it is asked again after every
    forward, with the rest unknown; requests that want no more sit the next forward out.
    """
    depth = max(len(w.prices) for w in waiting) - 1
    for one in waiting:
        one.confidence = np.zeros(depth)
        if level is None:
            tokens = models.lookups[drafter].draft(one.text, one.most)
            one.block = Block(_until_end(tokens, models.eos_ids))
            one.confidence[: len(one.block)] = 1.0
            one.ended = True
    while True:
        decision = _decide(rule, waiting)
        wanting = [
            one
            for one, wanted in zip(waiting, decision.drafted, strict=True)
            if len(one.block) < int(wanted) and not one.ended
        ]
        if level is None or not wanting:
            break
        if drafter in models.blocks:
            _draft_block(models, drafter, level, wanting, sampling)
        else:
            _draft_token(models, level, wanting, sampling)
    for one, drafted, submitted in zip(waiting, decision.drafted, decision.submitted, strict=True):
        one.block = one.block.first(int(drafted))
        one.submitted = min(int(submitted), len(one.block))


def _decide(rule: LengthRule, waiting: Sequence[Drafting]) -> Decision:
    limit = np.array([len(w.block) if w.ended else w.most for w in waiting], dtype=np.int64)
    view = View(np.stack([w.confidence for w in waiting]), limit, np.stack([w.prices for w in waiting]))
    decision = rule.decide(view, np.array([w.state for w in waiting]))
    drafted = np.minimum(decision.drafted, limit)
    return Decision(drafted, np.minimum(decision.submitted, drafted))


def _draft_token(
    models: LoadedModels, level: Level, wanting: Sequence[Drafting], sampling: Sampling | None
) -> None:
    texts = [np.concatenate([w.text, w.block.tokens]) for w in wanting]
    logits, widths = level.read([w.row for w in wanting], texts, [1] * len(wanting))
    words = words_of(logits, sampling, confidence=True)
    assert words.confidence is not None
    for i, one in enumerate(wanting):
        one.lag = one.lag or int(widths[i])
        _extend(one, words.greedy[i], words.probs, i, words.confidence[i], models.eos_ids)


def _draft_block(
    models: LoadedModels, drafter: str, level: Level, wanting: Sequence[Drafting], sampling: Sampling | None
) -> None:
    """One forward over what is new and masked places: a token for each of them."""
    kind = models.blocks[drafter]
    texts = [np.concatenate([w.text, w.block.tokens]) for w in wanting]
    logits, widths = level.read(
        [w.row for w in wanting],
        texts,
        [1] * len(wanting),
        padding=(kind.mask_token, kind.block - 1),
        see_all=kind.within == "full",
    )
    words = words_of(logits, sampling, confidence=True)
    assert words.confidence is not None
    for i, one in enumerate(wanting):
        one.lag = one.lag or int(widths[i])
        for place in range(i * kind.block, (i + 1) * kind.block):
            if not one.ended and len(one.block) < one.most:
                _extend(one, words.greedy[place], words.probs, place, words.confidence[place], models.eos_ids)


def _extend(
    one: Drafting,
    greedy: np.int32,
    probs: Floats | None,
    place: int,
    confidence: np.float64,
    eos_tokens: Sequence[int],
) -> None:
    token = int(greedy) if probs is None else draw(probs[place], one.generator.random())
    one.confidence[len(one.block)] = confidence
    row = None if probs is None else probs[place : place + 1]
    one.block = one.block.then(Block(np.array([token], dtype=np.int32), row))
    one.ended = token in eos_tokens


def _until_end(tokens: Tokens, eos_tokens: Sequence[int]) -> Tokens:
    ends = np.flatnonzero(np.isin(tokens, eos_tokens))
    return tokens[: int(ends[0]) + 1] if len(ends) else tokens
