"""What each model says along the target's text and along blocks that leave it.

Everything for one prompt shares one row of cache a model. A block that leaves the
text is a *branch*: its tokens see the text before it and each other, by the mask,
and nothing else; so a hundred branches run side by side in one forward without
copying the prompt's keys and values (the mask that tree verification uses).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache

from simspec.record.models import crop, forward

Ints = NDArray[np.int32]

# Branch tokens read in one forward. More is faster until the logits fill memory:
# 512 rows of a vocabulary of 49,152 in float32 are 100 MB.
BRANCH_TOKENS_AT_ONCE = 512


@dataclass(frozen=True)
class Along:
    """One model along the text: logits at positions 0..L, and the cache that made them.

    ``log_probs`` has shape (L + 1, vocabulary); row t is the model's distribution of
    token t given the prompt and tokens 0..t-1.
    """

    network: Any
    log_probs: torch.Tensor
    margin: torch.Tensor
    cache: DynamicCache
    prompt_tokens: int
    slots: int


@dataclass(frozen=True)
class Branch:
    """Tokens that follow the text's first ``start`` tokens."""

    start: int
    tokens: Ints


@dataclass(frozen=True)
class Summary:
    """Figures of distributions, one entry a row: what the trace keeps of them."""

    greedy_token: Ints
    top1_prob: NDArray[np.float32]
    top2_margin: NDArray[np.float32]
    entropy: NDArray[np.float32]


def decode_greedy(network: Any, prompt: torch.Tensor, length: int) -> Ints:
    """The target's own greedy text, by transformers' own ``generate``, one row.

    Args:
        prompt: token ids, shape (1, prompt tokens).
        length: the most tokens to produce; fewer when it ends itself.
    """
    with torch.inference_mode():
        out = network.generate(
            input_ids=prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=length,
            do_sample=False,
        )
    return np.asarray(out[0, prompt.shape[1] :].cpu().numpy(), dtype=np.int32)


def read_along(network: Any, prompt: torch.Tensor, text: Ints) -> Along:
    """One forward over prompt and text."""
    device = prompt.device
    tokens = torch.cat([prompt, torch.as_tensor(text, device=device)[None].long()], dim=1)
    slots = tokens.shape[1]
    cache = DynamicCache()
    logits = forward(network, tokens, torch.arange(slots, device=device)[None], cache)
    rows = logits[0, prompt.shape[1] - 1 :]
    return Along(
        network=network,
        log_probs=rows.log_softmax(-1),
        margin=_margin(rows),
        cache=cache,
        prompt_tokens=prompt.shape[1],
        slots=slots,
    )


def summarise(log_probs: torch.Tensor, margin: torch.Tensor) -> Summary:
    """The kept figures of distributions given as log probabilities, shape (rows, vocabulary)."""
    top, token = log_probs.max(-1)
    probs = log_probs.exp()
    # 0 * -inf is not a number; a token of probability zero adds nothing.
    entropy = -(probs * log_probs.clamp_min(-1e4)).sum(-1)
    return Summary(
        greedy_token=token.cpu().numpy().astype(np.int32),
        top1_prob=top.exp().clamp(0, 1).cpu().numpy(),
        top2_margin=margin.cpu().numpy(),
        entropy=entropy.clamp_min(0).cpu().numpy(),
    )


@dataclass(frozen=True)
class Rollouts:
    """Blocks drafted by one model; row r starts at ``starts[r]``.

    ``tokens`` has shape (R, D); ``log_probs`` (R, D, vocabulary) are the distributions
    that they were the most probable tokens of; ``margin`` is (R, D).
    """

    starts: NDArray[np.int64]
    tokens: Ints
    log_probs: torch.Tensor
    margin: torch.Tensor


def roll_out(along: Along, starts: NDArray[np.int64], length: int) -> Rollouts:
    """Draft ``length`` tokens greedily after the text's first t tokens, for every t in ``starts``."""
    rows = len(starts)
    device = along.log_probs.device
    log_probs = [along.log_probs[starts]]
    margin = [along.margin[starts]]
    tokens = [log_probs[0].argmax(-1)]
    start = torch.as_tensor(starts, device=device) + along.prompt_tokens
    on_text = torch.arange(along.slots, device=device)[None] < start[:, None]
    own = torch.eye(rows, dtype=torch.bool, device=device)
    for depth in range(1, length):
        mask = torch.cat([on_text, *([own] * depth)], dim=1)
        logits = forward(
            along.network, tokens[-1][None], (start + depth - 1)[None], along.cache, mask[None, None]
        )[0]
        log_probs.append(logits.log_softmax(-1))
        margin.append(_margin(logits))
        tokens.append(logits.argmax(-1))
    crop(along.cache, along.slots)
    return Rollouts(
        starts=starts,
        tokens=torch.stack(tokens, 1).cpu().numpy().astype(np.int32),
        log_probs=torch.stack(log_probs, 1),
        margin=torch.stack(margin, 1),
    )


def read_branches(
    along: Along, branches: Sequence[Branch]
) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """What a model says after each token of each branch.

    Yields:
        (branch index, log probabilities of shape (tokens of the branch, vocabulary),
        margins of shape (tokens of the branch,)), in order.
    """
    group: list[int] = []
    size = 0
    for index, branch in enumerate(branches):
        if group and size + len(branch.tokens) > BRANCH_TOKENS_AT_ONCE:
            yield from _read_group(along, branches, group)
            group, size = [], 0
        group.append(index)
        size += len(branch.tokens)
    if group:
        yield from _read_group(along, branches, group)


def _read_group(
    along: Along, branches: Sequence[Branch], group: list[int]
) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    device = along.log_probs.device
    lengths = [len(branches[i].tokens) for i in group]
    owner = np.repeat(np.arange(len(group)), lengths)
    depth = np.concatenate([np.arange(n) for n in lengths])
    start = along.prompt_tokens + np.array([branches[i].start for i in group])[owner]
    on_text = np.arange(along.slots)[None] < start[:, None]
    own = (owner[:, None] == owner[None]) & (depth[None] <= depth[:, None])
    mask = torch.as_tensor(np.concatenate([on_text, own], axis=1), device=device)
    tokens = np.concatenate([branches[i].tokens for i in group])
    logits = forward(
        along.network,
        torch.as_tensor(tokens, device=device)[None].long(),
        torch.as_tensor(start + depth, device=device)[None],
        along.cache,
        mask[None, None],
    )[0]
    crop(along.cache, along.slots)
    log_probs, margin = logits.log_softmax(-1), _margin(logits)
    at = 0
    for index, length in zip(group, lengths, strict=True):
        yield index, log_probs[at : at + length], margin[at : at + length]
        at += length


def _margin(logits: torch.Tensor) -> torch.Tensor:
    top = logits.topk(2, dim=-1).values
    return top[..., 0] - top[..., 1]
