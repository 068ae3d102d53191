"""How far a drafter's distributions are from the target's, of which only the greatest entries are kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from simspec.training.batches import Packed
from simspec.training.texts import Text

# Of what float16 log probabilities can tell from nothing.
_LEAST = 1e-6


def wanted(texts: Sequence[Text], packed: Packed, index: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """What the target says where a drafter speaks.

    Args:
        index: place of each token id in the drafter's output, -1 where it has none, shape (vocabulary,).

    Returns:
        the text's tokens, shape (n,), and the target's most probable ones, shape (n, top), as places
        in the drafter's output or -1; and their probabilities, 0 at -1, shape (n, top).
    """
    pairs = list(zip(packed.text.tolist(), packed.output.tolist(), strict=True))
    token = torch.from_numpy(np.array([texts[t].tokens[texts[t].prompt_tokens + o] for t, o in pairs]))
    ids = torch.from_numpy(np.stack([texts[t].top_ids[o] for t, o in pairs]))
    log_probs = torch.from_numpy(np.stack([texts[t].top_log_probs[o] for t, o in pairs]))
    top = index[ids.long()]
    return index[token.long()], top, log_probs.float().exp() * (top >= 0)


def divergence(log_q: torch.Tensor, top: torch.Tensor, probs: torch.Tensor) -> torch.Tensor:
    """Kullback-Leibler divergence of a drafter from the target, shape (n,), in nats.

    All tokens beside the target's most probable ones count as one: it is the divergence of
    what is left when they are told apart no further, never more than the whole.

    Args:
        log_q: the drafter's log probabilities, shape (n, outputs).
        top, probs: of :func:`wanted`.
    """
    known = log_q.gather(1, top.clamp_min(0))
    rest_p = (1 - probs.sum(1)).clamp_min(_LEAST)
    rest_q = (1 - (known.exp() * (top >= 0)).sum(1)).clamp_min(_LEAST)
    among = (probs * (probs.clamp_min(_LEAST).log() - known)).sum(1)
    return among + rest_p * (rest_p.log() - rest_q.log())


def loss(
    logits: torch.Tensor,
    target: tuple[torch.Tensor, ...],
    hard: float,
) -> torch.Tensor:
    """The mean over places.

    Args:
        logits: shape (n, outputs).
        target: of :func:`wanted`.
        hard: weight of the text's own token against the target's distribution.
    """
    token, top, probs = target
    log_q = logits.float().log_softmax(-1)
    each = (1 - hard) * divergence(log_q, top, probs)
    if hard:
        missed = -log_q.gather(1, token.clamp_min(0)[:, None])[:, 0]
        each = each + hard * missed * (token >= 0)
    return each.mean()
