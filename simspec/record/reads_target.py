"""Drafters that see what the target thought: its last hidden state at every token it has read.

A folder of such a drafter says ``"reads_target": true`` in its config.json, and holds a file
``reads_target.safetensors`` beside its weights: ``weight``, shape (own hidden size, target's hidden size).
What it reads at a token is the token's embedding plus that matrix times the target's state at the token
before, from which the target chose this one. (EAGLE and DFlash see the target's states too, each in a way of
its own; this one is ours.) So every token of a text comes with a state, the target's own last one included;
drafted tokens and masked places come with none, which is a state of zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from simspec.errors import BadInput

FLAG = "reads_target"
FILE = f"{FLAG}.safetensors"

# The attribute of a network that holds the matrix, as a linear layer: what is done to those is done to it.
_NAME = "from_target"


def reads_target(network: Any) -> bool:
    """Whether a network reads the target's states."""
    return hasattr(network, _NAME)


def let_read(network: Any, weight: torch.Tensor) -> None:
    """Have a network read the target's states through ``weight``, shape (own hidden, target's hidden)."""
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    layer.weight = torch.nn.Parameter(weight, requires_grad=False)
    setattr(network, _NAME, layer)


def load_reading(network: Any, folder: Path, where: str) -> None:
    """Give a network read from ``folder`` its matrix.

    Raises:
        BadInput: when the folder lacks it, or it does not fit the network.
    """
    try:
        weight = load_file(folder / FILE)["weight"]
    except (OSError, KeyError, SafetensorError) as error:
        raise BadInput(f"says {FLAG}, but {FILE} cannot be read: {error}", where=where) from error
    table = network.get_input_embeddings().weight
    if weight.ndim != 2 or weight.shape[0] != table.shape[1]:
        raise BadInput(
            f"{FILE} has a weight of shape {tuple(weight.shape)}",
            where=where,
            allowed=f"({table.shape[1]}, the target's hidden size)",
        )
    let_read(network, weight.to(table.dtype))


def check_reads(network: Any, target: Any, where: str) -> None:
    """Refuse a drafter that reads states of another size than the target's."""
    if reads_target(network):
        own, size = network.from_target.in_features, target.get_input_embeddings().weight.shape[1]
        if own != size:
            raise BadInput(
                f"reads states of {own} numbers, the target's have {size}",
                where=where,
                allowed="a drafter trained for this target",
            )


def fused(network: Any, tokens: torch.Tensor, states: torch.Tensor | None) -> torch.Tensor:
    """What such a network reads, shape (rows, new, own hidden).

    Args:
        tokens: shape (rows, new).
        states: the target's at the token before each, shape (rows, new, target's hidden); None for none at
            all, which takes as long.
    """
    read: torch.Tensor = network.get_input_embeddings()(tokens)
    layer = network.from_target
    if states is None:
        states = read.new_zeros(*tokens.shape, layer.in_features)
    fed: torch.Tensor = layer(states.to(read.dtype))
    return read + fed


@contextmanager
def states_of(network: Any, wanted: bool) -> Iterator[list[torch.Tensor]]:
    """The last hidden states of every forward of ``network`` inside, each of shape (rows, new, hidden), if
    they are ``wanted``."""
    held: list[torch.Tensor] = []
    if not wanted:
        yield held
        return
    hook = network.base_model.register_forward_hook(lambda _m, _i, out: held.append(out[0]))
    try:
        yield held
    finally:
        hook.remove()


def shifted(states: torch.Tensor) -> torch.Tensor:
    """States at the token before each of a whole text's, the first one's being zeros; shape as given."""
    return torch.cat([torch.zeros_like(states[:, :1]), states[:, :-1]], dim=1)
