"""A target's texts, many at once, with its most probable tokens at every place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from simspec.record.reads_target import shifted, states_of
from simspec.record.running import forward
from simspec.record.slot_cache import SlotCache

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Written:
    """One text.

    Attributes:
        tokens: shape (n,), the end of the text included where it came.
        top_ids, top_log_probs: of what each token was chosen from, the most probable first,
            shape (n, top).
        states: of the layers asked for, at the token before each one of prompt and text, shape
            (prompt tokens + n, layers * hidden).
    """

    tokens: Ints
    top_ids: Ints
    top_log_probs: NDArray[np.float16]
    states: torch.Tensor


def write_texts(
    network: Any,
    prompts: Sequence[Ints],
    luck: Sequence[np.random.Generator | None],
    length: int,
    eos_tokens: Sequence[int],
    top: int,
    *,
    turns: Sequence[int] | None = None,
    temperature: float = 1.0,
    layers: Sequence[int] = (),
) -> list[Written]:
    """Continue prompts side by side, by at most ``length`` tokens each.

    Args:
        prompts: token ids of each, one dimension.
        luck: what each text is drawn by; None for a greedy one.
        turns: how many ends each text goes on to; one where that is not said.
        temperature: of the texts that are drawn.
        layers: of the network, whose states are wanted.
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
    left = [1] * len(prompts) if turns is None else list(turns)
    found: list[list[tuple[int, Ints, NDArray[np.float16]]]] = [[] for _ in prompts]
    thought: list[list[torch.Tensor]] = [[] for _ in prompts]
    for count in range(1, length + 1):
        cache.place(seen.shape[1] - tokens.shape[1], seen.shape[1], None)
        with states_of(network, layers) as states:
            log_probs = forward(network, tokens, places, cache, mask, last=1)[:, -1].log_softmax(-1)
        best = log_probs.topk(min(top, log_probs.shape[-1]), dim=-1)
        ids = best.indices.cpu().numpy().astype(np.int32)
        shares = best.values.cpu().numpy().astype(np.float16)
        chosen = _choose(log_probs, best, [luck[row] for row in here], temperature)
        for i, row in enumerate(here):
            found[row].append((chosen[i], ids[i], shares[i]))
            left[row] -= chosen[i] in eos_tokens
            if layers:
                fresh = len(prompts[row]) if count == 1 else 1
                thought[row].append(states[0][i, -fresh:].cpu())
        stay = [i for i, row in enumerate(here) if left[row] > 0]
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
            _before_each(thought[row]),
        )
        for row, text in enumerate(found)
    ]


def _before_each(thought: Sequence[torch.Tensor]) -> torch.Tensor:
    """States at the token before each of a text's, the last of which was never read."""
    if not thought:
        return torch.zeros((0, 0))
    whole = torch.cat([*thought, torch.zeros_like(thought[0][:1])])
    return shifted(whole[None])[0]


def _choose(
    log_probs: torch.Tensor,
    best: Any,
    luck: Sequence[np.random.Generator | None],
    temperature: float,
) -> list[int]:
    """The most probable token of each row, or one that its luck draws.

    The most probable ones are laid out first, then all others by their numbers, so that most draws look
    at no more than those.
    """
    drawn = np.array([i for i, generator in enumerate(luck) if generator is not None], dtype=np.int64)
    chosen: list[int] = best.indices[:, 0].tolist()
    if not len(drawn):
        return chosen
    rows = torch.from_numpy(drawn).to(log_probs.device)
    scaled = log_probs[rows] / temperature
    total = scaled.logsumexp(-1, keepdim=True)
    known = (best.values[rows] / temperature - total).double().exp().cumsum(-1).cpu().numpy()
    for k, i in enumerate(drawn.tolist()):
        generator = luck[i]
        assert generator is not None
        point = generator.random()
        at = int(np.searchsorted(known[k], point, side="right"))
        if at < known.shape[1]:
            chosen[i] = int(best.indices[i, at])
            continue
        rest = (scaled[k] - total[k]).double().exp()
        rest[best.indices[i]] = 0.0
        along = known[k, -1] + rest.cumsum(-1).cpu().numpy()
        # Rounding may leave the whole a little below 1.
        last = int(np.searchsorted(along, along[-1], side="left"))
        chosen[i] = min(int(np.searchsorted(along, point, side="right")), last)
    return chosen
