"""From logits to what a judge or a draft takes: most probable tokens, or distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from simspec.speculation.sampling import Sampling

Tokens = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Words:
    """What a model says at each of n places.

    Attributes:
        greedy: its most probable token, shape (n,).
        probs: its distribution as texts are drawn from it, shape (n, vocabulary); None when greedy.
        confidence: its greatest probability, shape (n,); None where nobody asked.
        margin: logit of the first minus logit of the second, shape (n,); None where nobody asked.
    """

    greedy: Tokens
    probs: Floats | None
    confidence: Floats | None
    margin: Floats | None

    def part(self, begin: int, end: int) -> Words:
        """Places ``begin .. end - 1``."""
        cut = slice(begin, end)
        return Words(
            self.greedy[cut],
            None if self.probs is None else self.probs[cut],
            None if self.confidence is None else self.confidence[cut],
            None if self.margin is None else self.margin[cut],
        )

    @property
    def for_judge(self) -> Any:
        """What :class:`GreedyJudge` and :class:`RejectionJudge` call words."""
        return self.greedy if self.probs is None else self.probs


def words_of(
    logits: torch.Tensor, sampling: Sampling | None, *, confidence: bool = False, margin: bool = False
) -> Words:
    """Words from logits of shape (n, vocabulary).

    A confidence is the greatest probability of what texts are drawn from; under greedy decoding,
    of the plain softmax.
    """
    top, token = logits.max(-1)
    probs = None if sampling is None else adjusted(logits, sampling)
    sure = None
    if confidence:
        sure = (top - logits.logsumexp(-1)).exp() if probs is None else probs.max(-1).values
    gap = None
    if margin:
        second = logits.topk(2, dim=-1).values[:, 1]
        gap = _floats(top - second)
    return Words(
        greedy=token.cpu().numpy().astype(np.int32),
        probs=None if probs is None else _floats(probs),
        confidence=None if sure is None else _floats(sure),
        margin=gap,
    )


def adjusted(logits: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """Distributions at a temperature, cut to the least set of tokens that holds ``top_p``.

    Tokens enter that set from the most probable on until it holds at least ``top_p``; ties are
    settled by token id. Shape (n, vocabulary), float64.
    """
    probs = (logits.double() / sampling.temperature).softmax(-1)
    if sampling.top_p < 1.0:
        ordered, index = probs.sort(dim=-1, descending=True, stable=True)
        before = ordered.cumsum(-1) - ordered
        ordered = ordered.masked_fill(before >= sampling.top_p, 0.0)
        probs = torch.zeros_like(probs).scatter(-1, index, ordered)
        probs = probs / probs.sum(-1, keepdim=True)
    return probs


def _floats(values: torch.Tensor) -> Floats:
    found: Floats = values.double().cpu().numpy()
    return found
