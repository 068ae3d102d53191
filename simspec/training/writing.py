"""A target's texts, many at once, with its most probable tokens at every place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from simspec.record.running import forward
from simspec.record.slot_cache import SlotCache
from simspec.record.words import adjusted
from simspec.speculation.sampling import Sampling
from simspec.speculation.verify import draw

Ints = NDArray[np.int32]

_AS_IT_IS = Sampling(1.0, 1.0)


@dataclass(frozen=True)
class Written:
    """One text.

    Attributes:
        tokens: shape (n,), the end of the text included where it came.
        top_ids, top_log_probs: of what each token was chosen from, the most probable first,
            shape (n, top).
    """

    tokens: Ints
    top_ids: Ints
    top_log_probs: NDArray[np.float16]


def write_texts(
    network: Any,
    prompts: Sequence[Ints],
    luck: Sequence[np.random.Generator | None],
    length: int,
    eos_tokens: Sequence[int],
    top: int,
) -> list[Written]:
    """Continue prompts side by side, by at most ``length`` tokens each.

    Args:
        prompts: token ids of each, one dimension.
        luck: what each text is drawn by at temperature 1; None for a greedy one.
    """
    device = network.device
    widest = max(map(len, prompts))
    tokens = torch.zeros((len(prompts), widest), dtype=torch.long, device=device)
    seen = torch.zeros((len(prompts), widest), dtype=torch.bool, device=device)
    for row, prompt in enumerate(prompts):
        # Padded on the left, so that all go on at the same slot.
        tokens[row, widest - len(prompt) :] = torch.as_tensor(prompt, device=device)
        seen[row, widest - len(prompt) :] = True
    places = (seen.cumsum(-1) - 1).clamp_min(0)
    causal = torch.ones((widest, widest), dtype=torch.bool, device=device).tril()
    # A padding place sees itself: a row of a mask without any place would be no softmax.
    own = torch.eye(widest, dtype=torch.bool, device=device)
    mask = ((causal & seen[:, None]) | own)[:, None]

    # Written in place: appending to tensors would copy all of them for every token.
    cache = SlotCache(int(network.config.num_hidden_layers), len(prompts))
    here = list(range(len(prompts)))
    found: list[list[tuple[int, Ints, NDArray[np.float16]]]] = [[] for _ in prompts]
    for count in range(1, length + 1):
        cache.place(seen.shape[1] - tokens.shape[1], seen.shape[1], None)
        log_probs = forward(network, tokens, places, cache, mask, last=1)[:, -1].log_softmax(-1)
        best = log_probs.topk(min(top, log_probs.shape[-1]), dim=-1)
        ids = best.indices.cpu().numpy().astype(np.int32)
        shares = best.values.cpu().numpy().astype(np.float16)
        chosen = []
        for i, row in enumerate(here):
            generator = luck[row]
            token = int(ids[i, 0])
            if generator is not None:
                token = draw(adjusted(log_probs[i : i + 1], _AS_IT_IS)[0].cpu().numpy(), generator.random())
            found[row].append((token, ids[i], shares[i]))
            chosen.append(token)
        stay = [i for i, token in enumerate(chosen) if token not in eos_tokens]
        if not stay or count == length:
            break
        if len(stay) < len(here):
            rows = torch.tensor(stay, device=device)
            cache.take_rows(rows)
            seen, places = seen[rows], places[rows]
            here = [here[i] for i in stay]
        tokens = torch.tensor([[chosen[i]] for i in stay], device=device)
        places = places[:, -1:] + 1
        seen = torch.cat([seen, torch.ones_like(seen[:, :1])], dim=1)
        mask = seen[:, None, None]
    return [
        Written(
            np.array([token for token, _, _ in text], dtype=np.int32),
            np.stack([ids for _, ids, _ in text]),
            np.stack([shares for _, _, shares in text]),
        )
        for text in found
    ]
