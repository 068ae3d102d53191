"""Attention whose result for a token does not depend on how many tokens share the forward.

Float32 kernels add in another order for one query than for several. That is noise of 1e-7, but
where activations are rounded to 8 bits next, noise on the edge between two integers becomes a
whole step. Summed in float64 and rounded to float32, it is gone but for about one value in 1e8.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from simspec.errors import BadInput

FLOAT64_SUMS = "float64-sums"


def offer_float64_sums() -> None:
    """Make ``attn_implementation="float64-sums"`` known to transformers."""
    AttentionInterface.register(FLOAT64_SUMS, attend)
    AttentionMaskInterface.register(FLOAT64_SUMS, sdpa_mask)


def attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Scaled dot-product attention in float64, in the form that transformers calls.

    Args:
        query: shape (rows, heads, new, size).
        key, value: shape (rows, key heads, slots, size).
        attention_mask: which slots may be seen, bool, shape (rows, 1, new, slots); None for causal
            order, or for one new token that sees all.

    Returns:
        shape (rows, new, heads, size), in the query's number format; and no weights.

    Raises:
        BadInput: when the model wants scores capped, biased or with sinks.
    """
    wanted = [name for name in ("softcap", "s_aux", "position_bias") if others.get(name) is not None]
    if wanted:
        raise BadInput(
            f"attention with {', '.join(wanted)} is not known to dtype 'int8-per-token'",
            where=type(module).__name__,
        )
    rows, heads, new, _ = query.shape
    key_heads, slots = key.shape[1:3]
    group = heads // key_heads
    if attention_mask is None and new > 1 and (module.is_causal if is_causal is None else is_causal):
        places = torch.arange(slots, device=query.device)
        attention_mask = (places <= places[:new, None])[None, None]
    if attention_mask is not None:
        attention_mask = attention_mask.expand(rows, 1, new, slots).repeat(1, 1, group, 1)
        if attention_mask.dtype != torch.bool:
            attention_mask = attention_mask.double()
    # The heads that share a key stand as further queries beside it, so that keys need no copies.
    made = torch.nn.functional.scaled_dot_product_attention(
        query.double().reshape(rows, key_heads, group * new, -1),
        key.double(),
        value.double(),
        attn_mask=attention_mask,
        scale=scaling,
    )
    made = made.reshape(rows, heads, new, -1).transpose(1, 2).contiguous()
    return made.to(query.dtype), None
