"""What a decoder-only transformer is made of, and what one forward of it computes and moves.

Counted for the common kind: grouped-query attention, a gated feed-forward of three matrices,
no mixture of experts, full attention. A multiply-add is two FLOPs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from simspec.cost.shape import StepShape
from simspec.errors import BadInput, unknown_name

Floats = NDArray[np.float64]
Count = Annotated[int, Meta(ge=1, le=10_000_000)]
Bytes = Annotated[float, Meta(gt=0, le=8)]

# Types of config.json whose blocks are counted rightly here.
KNOWN_TYPES = ("llama", "mistral", "qwen2", "qwen3")


class Architecture(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes of a decoder-only transformer.

    Attributes:
        hidden: width of the residual stream.
        intermediate: width of the feed-forward.
        heads, kv_heads, head_dim: attention heads, those of keys and values, width of each.
        vocabulary: tokens that the head tells apart.
        tied: whether the embedding table is the head; it changes the memory, not a forward's time.
    """

    layers: Count
    hidden: Count
    intermediate: Count
    heads: Count
    kv_heads: Count
    head_dim: Count
    vocabulary: Count
    tied: bool

    @property
    def layer_weights(self) -> int:
        """Weights of one layer's seven matrices."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        return attention + 3 * self.hidden * self.intermediate

    @property
    def head_weights(self) -> int:
        return self.hidden * self.vocabulary

    @property
    def parameters(self) -> int:
        """All of them but biases and norms of queries and keys, which some models have."""
        norms = (2 * self.layers + 1) * self.hidden
        return self.layers * self.layer_weights + (1 if self.tied else 2) * self.head_weights + norms


class Formats(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes of one number: of a weight, scales included, of an activation, of a cached key or value."""

    weight_bytes: Bytes
    activation_bytes: Bytes
    kv_bytes: Bytes


FORMATS = {
    "float32": Formats(4, 4, 4),
    "bfloat16": Formats(2, 2, 2),
    "float16": Formats(2, 2, 2),
    # Weights of every linear layer in a byte; activations are quantised on the way in.
    "int8-dynamic": Formats(1, 4, 4),
    "int8-per-token": Formats(1, 4, 4),
}


def formats_of(dtype: str, *, where: object = "") -> Formats:
    """Sizes of a number format; raises :class:`BadInput` when it is not known."""
    if dtype not in FORMATS:
        raise unknown_name("dtype", dtype, FORMATS, where=where)
    return FORMATS[dtype]


@dataclass(frozen=True)
class Work:
    """What a part of some forwards computes and moves, one entry a forward."""

    flops: Floats
    moved_bytes: Floats


@dataclass(frozen=True)
class ForwardWork:
    """A forward's parts. Each runs to its end before the next begins, so that times add up.

    Attributes:
        linear: the layers' matrices. Their weights are read once, whatever the rows.
        attention: scores and their use. The cache is read once, new keys and values written and read.
        head: logits of every new token.
        cache_bytes: the part of attention's traffic that is keys and values cached before.
    """

    linear: Work
    attention: Work
    head: Work
    cache_bytes: Floats

    @property
    def parts(self) -> tuple[Work, ...]:
        return self.linear, self.attention, self.head


def forward_work(made: Architecture, formats: Formats, shape: StepShape, *, packed: bool) -> ForwardWork:
    """Count forwards of ``made``.

    Norms, residuals, rotations and activation functions are taken as fused into their
    neighbours, and attention as never storing its scores; real kernels do more.

    Args:
        packed: count the new tokens and cached tokens that are there; otherwise every row is
            padded to the widest and the longest. Packed rows of unequal widths and contexts are
            counted as if all were alike, for a shape does not say which is which.
    """
    rows = np.asarray(shape.rows, dtype=np.float64)
    tokens = np.asarray(shape.tokens if packed else shape.rows * shape.width, dtype=np.float64)
    cached = np.asarray(shape.context_tokens if packed else shape.rows * shape.context, dtype=np.float64)
    width, context = tokens / rows, cached / rows
    query, key = made.heads * made.head_dim, made.kv_heads * made.head_dim

    # In and out of: queries, keys and values; output; gate and up; down.
    passed = 4 * made.hidden + 2 * query + 2 * key + 3 * made.intermediate
    linear = Work(
        flops=2.0 * made.layers * made.layer_weights * tokens,
        moved_bytes=made.layers * made.layer_weights * formats.weight_bytes
        + made.layers * passed * formats.activation_bytes * tokens
        # The embedding: a table's row for each token, and the residual stream that it starts.
        + made.hidden * (formats.weight_bytes + formats.activation_bytes) * tokens,
    )
    # A new token sees the cache, the new tokens before it, and itself.
    pairs = rows * (width * context + width * (width + 1) / 2)
    cache_bytes = made.layers * 2 * key * formats.kv_bytes * cached
    attention = Work(
        flops=4.0 * made.layers * query * pairs,
        moved_bytes=cache_bytes
        + made.layers * 2 * key * formats.kv_bytes * 2 * tokens
        + made.layers * 2 * query * formats.activation_bytes * tokens,
    )
    head = Work(
        flops=2.0 * made.head_weights * tokens,
        moved_bytes=made.head_weights * formats.weight_bytes
        + (made.hidden + made.vocabulary) * formats.activation_bytes * tokens,
    )
    return ForwardWork(linear, attention, head, cache_bytes)


def read_config(path: Path) -> Architecture:
    """The architecture in a Hugging Face ``config.json``.

    Raises:
        BadInput: when the file is missing, is no JSON, or says something that is not counted here.
    """
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=path) from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BadInput(f"is not JSON: {error}", where=path) from error
    if not isinstance(config, dict):
        raise BadInput("is not a JSON object", where=path)
    return architecture_of(config, where=path)


def architecture_of(config: dict[str, Any], *, where: object) -> Architecture:
    """The architecture that a Hugging Face config states.

    Raises:
        BadInput: naming the field that is missing or that is not counted here.
    """
    kind = config.get("model_type")
    if kind not in KNOWN_TYPES:
        raise BadInput(f"field 'model_type' is {kind!r}", where=where, allowed=", ".join(KNOWN_TYPES))
    try:
        heads, hidden = config["num_attention_heads"], config["hidden_size"]
        kv_heads = config.get("num_key_value_heads")
        head_dim = config.get("head_dim")
        found = {
            "layers": config["num_hidden_layers"],
            "hidden": hidden,
            "intermediate": config["intermediate_size"],
            "heads": heads,
            "kv_heads": heads if kv_heads is None else kv_heads,
            "head_dim": hidden // heads if head_dim is None else head_dim,
            "vocabulary": config["vocab_size"],
            "tied": config.get("tie_word_embeddings", False),
        }
        return msgspec.convert(found, Architecture)
    except KeyError as error:
        raise BadInput(f"has no field {error}", where=where) from error
    except (TypeError, ZeroDivisionError, msgspec.ValidationError) as error:
        raise BadInput(str(error), where=where) from error
