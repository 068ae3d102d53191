"""Decode with a real chain of models, one request, greedily, one cycle at a time.

The cycle's rules are :func:`simspec.speculation.cycle.run_cycle`; here are only the caches.
Every forward's width is logged, so that replay can be held against it. It is the plain
reference for one request, not a fast decoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache

from simspec.record.models import LoadedModels, crop, forward
from simspec.speculation.chains import Chain
from simspec.speculation.cycle import Verifier, run_cycle
from simspec.speculation.lengths import Decision, LengthRule, View

Tokens = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DecodedCycle:
    """What one cycle of real models did, in the terms of replay's trajectories.

    ``margin`` is the least gap between the two best logits that any greedy choice of the
    cycle was made by: below floating point's noise, another forward may choose otherwise.
    """

    drafted: int
    lag: int
    submitted: int
    middle: tuple[int, ...]
    width: int
    accepted: int
    emitted: int
    margin: float


def decode(
    models: LoadedModels,
    chain: Chain,
    rule: LengthRule | None,
    prompt: torch.Tensor,
    output_tokens: int,
    block_length: int,
    seconds: Floats | None = None,
) -> tuple[Tokens, list[DecodedCycle]]:
    """The text of one prompt and the cycles that made it.

    Args:
        prompt: token ids, shape (1, prompt tokens).
        output_tokens: the most tokens of text.
        block_length: the most tokens that are drafted at once.
        seconds: what a cycle costs at each position and length, shape (positions, D + 1), for
            rules that weigh it.
    """
    levels = {m: _Level(models.networks[m], prompt) for m in chain.levels if m in models.networks}
    text = np.empty(0, dtype=np.int32)
    before = prompt[0].cpu().numpy().astype(np.int32)
    state = rule.begin(1) if rule else np.zeros(1)
    cycles: list[DecodedCycle] = []
    while len(text) < output_tokens and not (len(text) and int(text[-1]) in models.eos_ids):
        room = output_tokens - len(text)
        for level in levels.values():
            level.margin = float("inf")
        priced = np.ones((1, block_length + 1)) if seconds is None else seconds[[len(text)]]
        block, decision, lag = _draft(
            models, chain, rule, levels, before, text, min(block_length, room - 1), state, priced
        )
        submitted = block[: int(decision.submitted[0])]
        widths = dict.fromkeys(chain.levels, 0)

        def verifier(name: str, text: Tokens = text, widths: dict[str, int] = widths) -> Verifier:
            def greedy(tokens: Tokens) -> Tokens:
                widths[name], words, _ = levels[name].read(np.concatenate([text, tokens]), len(tokens) + 1)
                return words

            return greedy

        verifiers = [verifier(m) for m in chain.levels[1:]] or [verifier(chain.target)]
        cycle = run_cycle(submitted, verifiers, chain.semantics, room, models.eos_ids)
        emitted = cycle.emitted[: output_tokens - len(text)]
        for name, level in levels.items():
            # Back to the accepted drafts: what the drafter and the intermediates read of the block.
            level.roll_back(len(text) + (cycle.accepted if name == chain.target else cycle.kept))
        if rule and chain.drafter:
            carried = Decision(np.array([int(decision.drafted[0])]), np.array([len(submitted)]))
            state = rule.observe(state, carried, np.array([cycle.kept]))
        text = np.concatenate([text, emitted])
        cycles.append(
            DecodedCycle(
                drafted=len(block),
                lag=lag,
                submitted=len(submitted),
                middle=tuple(widths[m] for m in chain.intermediates),
                width=widths[chain.target],
                accepted=cycle.accepted,
                emitted=len(emitted),
                margin=min(level.margin for level in levels.values()),
            )
        )
    return text, cycles


def _draft(
    models: LoadedModels,
    chain: Chain,
    rule: LengthRule | None,
    levels: dict[str, _Level],
    before: Tokens,
    text: Tokens,
    most: int,
    state: Floats,
    seconds: Floats,
) -> tuple[Tokens, Decision, int]:
    """Block, decision as carried out, and the width of the drafter's first forward."""
    nothing = Decision(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    if chain.drafter is None or rule is None:
        return np.empty(0, dtype=np.int32), nothing, 0
    depth = seconds.shape[1] - 1
    confidence = np.zeros((1, depth))
    limit = np.array([most])
    if chain.drafter in models.lookups:
        block = models.lookups[chain.drafter].draft(np.concatenate([before, text]), most)
        block = block[: _until_end(block, models.eos_ids)]
        confidence[0, : len(block)] = 1.0
        limit = np.array([len(block)])
        decision = rule.decide(View(confidence, limit, seconds), state)
        drafted = np.minimum(decision.drafted, limit)
        return block[: int(drafted[0])], Decision(drafted, np.minimum(decision.submitted, drafted)), 0
    level = levels[chain.drafter]
    block, lag = np.empty(0, dtype=np.int32), 0
    while True:
        # A rule's decision does not depend on what it does not draft, so it can be asked again
        # after every token, with the rest unknown.
        decision = rule.decide(View(confidence, limit, seconds), state)
        drafted = np.minimum(decision.drafted, limit)
        if len(block) >= int(drafted[0]):
            return block, Decision(drafted, np.minimum(decision.submitted, drafted)), lag
        width, words, probs = level.read(np.concatenate([text, block]), 1)
        lag = lag or width
        confidence[0, len(block)] = probs[0]
        block = np.append(block, words[0]).astype(np.int32)
        if int(words[0]) in models.eos_ids:
            limit = np.array([len(block)])


def _until_end(block: Tokens, eos: tuple[int, ...]) -> int:
    ends = np.flatnonzero(np.isin(block, eos))
    return int(ends[0]) + 1 if len(ends) else len(block)


class _Level:
    """One model and the cache of what it has read: the prompt but its last token, then text."""

    def __init__(self, network: Any, prompt: torch.Tensor):
        self.network = network
        self.prompt = prompt
        self.cache = DynamicCache()
        self.read_tokens = prompt.shape[1] - 1
        self.margin = float("inf")
        if self.read_tokens:
            positions = torch.arange(self.read_tokens, device=prompt.device)[None]
            forward(network, prompt[:, :-1], positions, self.cache)

    def read(self, text: Tokens, last: int) -> tuple[int, Tokens, NDArray[np.float32]]:
        """Read what is new; the width, and the greedy tokens and their probabilities at the end."""
        device = self.prompt.device
        whole = torch.cat([self.prompt[0], torch.as_tensor(text, device=device).long()])
        new = whole[self.read_tokens :]
        positions = torch.arange(self.read_tokens, len(whole), device=device)[None]
        logits = forward(self.network, new[None], positions, self.cache)[0, -last:]
        self.read_tokens = len(whole)
        top = logits.topk(2, dim=-1)
        self.margin = min(self.margin, float((top.values[:, 0] - top.values[:, 1]).min()))
        probs = logits.softmax(-1).max(-1).values
        words = top.indices[:, 0].cpu().numpy().astype(np.int32)
        return len(new), words, probs.cpu().numpy()

    def roll_back(self, text_tokens: int) -> None:
        """Keep at most the prompt and the first ``text_tokens`` tokens of text."""
        keep = min(self.read_tokens, self.prompt.shape[1] + text_tokens)
        crop(self.cache, keep)
        self.read_tokens = keep
