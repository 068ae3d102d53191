"""One forward of a network, and how its cache is rolled back."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import torch
from transformers import Cache, DynamicCache

from simspec.errors import BadInput
from simspec.record.attention import FLOAT64_SUMS
from simspec.record.reads_target import fused, reads_target


def forward(
    network: Any,
    tokens: torch.Tensor,
    positions: torch.Tensor,
    cache: Cache,
    mask: torch.Tensor | None = None,
    last: int = 0,
    states: torch.Tensor | None = None,
) -> torch.Tensor:
    """Logits for new tokens.

    Args:
        tokens: token ids, shape (rows, new).
        positions: their places in the text, shape (rows, new).
        cache: keys and values so far; the new ones are appended.
        mask: which slots each new token may see, bool, shape (rows, 1, new, slots);
            None for plain causal order.
        last: of how many of the last new tokens logits are wanted; 0 for all.
        states: for a network that reads the target's, those at the token before each new one, shape
            (rows, new, target's hidden); None for zeros.

    Returns:
        float32 logits, shape (rows, new or last, vocabulary).

    Raises:
        BadInput: when a mask is given and the network's attention takes none.
    """
    kind: type = type(network)
    known = _arguments(kind)
    # Code that comes with a model may be of a form that transformers has left.
    extra: dict[str, Any] = {"cache" if "cache" in known else "past_key_values": cache}
    if "logits_to_keep" in known:
        extra["logits_to_keep"] = last
    with torch.inference_mode():
        read: dict[str, Any] = {"input_ids": tokens}
        if reads_target(network):
            read = {"inputs_embeds": fused(network, tokens, states)}
        out = network(
            **read,
            attention_mask=None if mask is None else _mask_for(network, mask),
            position_ids=positions,
            use_cache=True,
            **extra,
        )
        logits: torch.Tensor = out.logits if "logits_to_keep" in known else out.logits[:, -last:]
        return logits.float()


def crop(cache: DynamicCache, slots: int) -> None:
    """Forget all but the first ``slots`` slots."""
    surplus = cache.get_seq_length() - slots
    if surplus > 0:
        cache.crop(-surplus)  # a negative number removes so many, in every version


def try_out(network: Any, vocabulary: int, where: str) -> None:
    """Run a network as recording and decoding will: with a cache, rolled back, and with a mask.

    Raises:
        BadInput: when it fails, or when what was rolled back still shows in its logits.
    """
    device = network.device
    tokens = torch.arange(3, device=device)[None] % vocabulary
    other = (tokens + vocabulary // 2) % vocabulary
    places = torch.arange(3, device=device)[None]
    cache = DynamicCache()
    try:
        forward(network, tokens[:, :1], places[:, :1], cache)
        first = forward(network, tokens[:, 1:], places[:, 1:], cache)
        crop(cache, 1)
        forward(network, other[:, 1:], places[:, 1:], cache)
        crop(cache, 1)
        again = forward(network, tokens[:, 1:], places[:, 1:], cache)
        if takes_masks(network):
            crop(cache, 1)
            seen = places <= places[0, 1:, None]
            forward(network, tokens[:, 1:], places[:, 1:], cache, seen[None, None])
    except BadInput:
        raise
    except Exception as error:  # kernels and code of any origin fail in ways of any kind
        raise BadInput(f"a trial forward failed: {error}", where=where) from error
    # Of a trimmed output layer's logits most are minus infinity.
    scale = float(first.nan_to_num(0.0, 0.0, 0.0).abs().max())
    # Loose: some devices do not add in the same order twice.
    if not torch.allclose(first, again, rtol=1e-2, atol=1e-2 * scale):
        raise BadInput(
            "cannot be rolled back: tokens that were taken back still show in its logits",
            where=where,
            allowed="models whose every layer is attention over a cache of keys and values",
        )


def takes_masks(network: Any) -> bool:
    """Whether a network's attention takes a mask that says of each token what it sees."""
    return network.config._attn_implementation in ("sdpa", "eager", FLOAT64_SUMS)


def _mask_for(network: Any, mask: torch.Tensor) -> torch.Tensor:
    if not takes_masks(network):
        raise BadInput(
            f"attention {network.config._attn_implementation!r} takes no masks",
            where="attention",
            allowed="sdpa, eager: recording and batches need masks",
        )
    if network.config._attn_implementation != "eager":
        return mask
    # Eager attention adds its mask to the scores: True and False would be 1 and 0.
    dtype = network.get_input_embeddings().weight.dtype
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, torch.finfo(dtype).min)


@functools.cache
def _arguments(kind: type) -> frozenset[str]:
    return frozenset(inspect.signature(kind.forward).parameters)  # type: ignore[attr-defined]
