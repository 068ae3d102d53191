"""Tokens that leave a text, read many at a time.

A *branch* sees the text before it and itself, by the mask, and nothing else; so a hundred
branches run side by side in one forward without copying the prompt's keys and values (the mask
that tree verification uses).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from simspec.record.budget import Budget
from simspec.record.models import forward
from simspec.record.observe import Along, Ints, Read, words_after


@dataclass(frozen=True)
class Branch:
    """Tokens that follow the text's first ``start`` tokens.

    Attributes:
        tokens: in causal order, shape (n,).
        open_tail: how many of the last tokens see each other whole, besides all before them:
            the masked places of a block-parallel drafter.
    """

    start: int
    tokens: Ints
    open_tail: int = 0


def read_branches(along: Along, branches: Sequence[Branch], budget: Budget) -> Iterator[tuple[int, Read]]:
    """What a model says after each token of each branch.

    A branch that another one begins with is not read again: neighbouring blocks often leave
    the text at the same place and in the same way.

    Yields:
        (branch index, words after each of its tokens), each index once, in no stated order.

    Raises:
        RuntimeError, MemoryError: when memory does not suffice for a single branch.
    """
    longest, served = _distinct(branches)
    at = 0
    while at < len(longest):
        size, end = 0, at
        while end < len(longest):
            more = len(branches[longest[end]].tokens)
            if size and size + more > budget.tokens:
                break
            size, end = size + more, end + 1
        group = [branches[i] for i in longest[at:end]]
        try:
            read = _read_group(along, group)
        except (RuntimeError, MemoryError) as error:
            along.forget()
            budget.shrink(error, size if end - at > 1 else 0)
            continue
        first = 0
        for i, branch in zip(longest[at:end], group, strict=True):
            for index in served[i]:
                yield index, read.part(first, first + len(branches[index].tokens))
            first += len(branch.tokens)
        at = end


def _distinct(branches: Sequence[Branch]) -> tuple[list[int], dict[int, list[int]]]:
    """The branches to read, and which ones each of them answers for."""
    keys = [(b.start, b.open_tail, tuple(b.tokens.tolist())) for b in branches]
    order = sorted(range(len(branches)), key=lambda i: (keys[i], i), reverse=True)
    served: dict[int, list[int]] = {}
    owner = -1
    for index in order:
        start, tail, tokens = keys[index]
        shared = owner >= 0 and keys[owner][:2] == (start, tail)
        if shared and tail:
            shared = keys[owner][2] == tokens
        elif shared:
            shared = keys[owner][2][: len(tokens)] == tokens
        if not shared:
            owner = index
            served[owner] = []
        served[owner].append(index)
    longest = sorted(served)
    for indices in served.values():
        indices.sort()
    return longest, served


def _read_group(along: Along, group: Sequence[Branch]) -> Read:
    device = along.log_probs.device
    lengths = np.array([len(b.tokens) for b in group])
    owner = np.repeat(np.arange(len(group)), lengths)
    depth = np.concatenate([np.arange(n) for n in lengths])
    start = along.prompt_tokens + np.array([b.start for b in group])[owner]
    mask = np.concatenate(
        [np.arange(along.slots)[None] < start[:, None], _own(group, lengths, owner, depth)], axis=1
    )
    logits = forward(
        along.network,
        torch.as_tensor(np.concatenate([b.tokens for b in group]), device=device)[None].long(),
        torch.as_tensor(start + depth, device=device)[None],
        along.cache,
        torch.as_tensor(mask, device=device)[None, None],
    )[0]
    along.forget()
    return words_after(logits, along.sampling)


def _own(
    group: Sequence[Branch], lengths: NDArray[np.int64], owner: NDArray[np.int64], depth: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which tokens of the group each of them sees, shape (tokens, tokens)."""
    same = owner[:, None] == owner[None]
    closed = lengths - np.array([b.open_tail for b in group])
    in_tail = depth >= closed[owner]
    seen: NDArray[np.bool_] = same & ((depth[None] <= depth[:, None]) | (in_tail[:, None] & in_tail[None]))
    return seen
