"""Drafters that see what the target thought: states of some of its layers at every token it has read.

A folder of such a drafter says ``"reads_target": [layers]`` in its config.json, and holds a file
``reads_target.safetensors`` beside its weights: ``weight``, shape (own hidden size, layers * target's hidden
size). The state of a layer is what leaves it (0 is the first one's), divided by its root mean square: deep
layers speak louder than early ones. What the drafter reads at a token is the token's embedding plus that
matrix times the target's states at the token before, from which the target chose this one. (EAGLE-3 and
DFlash see several layers of the target too, each in a way of its own; this one is ours.) So every token of a
text comes with states, the target's own last one included; drafted tokens and masked places come with none,
which is a state of zeros.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
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


def layers_read(network: Any) -> tuple[int, ...]:
    """Which of the target's layers a network reads the states of; none if it reads no states."""
    return tuple(getattr(network.config, FLAG, None) or ()) if reads_target(network) else ()


def let_read(network: Any, weight: torch.Tensor, layers: Sequence[int]) -> None:
    """Have a network read states of the target's ``layers`` through ``weight``, shape (own hidden,
    layers * target's hidden)."""
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    layer.weight = torch.nn.Parameter(weight, requires_grad=False)
    setattr(network, _NAME, layer)
    setattr(network.config, FLAG, list(layers))


def load_reading(network: Any, folder: Path, where: str) -> None:
    """Give a network read from ``folder`` its matrix.

    Raises:
        BadInput: when the folder lacks it, it does not fit the network, or no layers are named.
    """
    layers = getattr(network.config, FLAG)
    if not isinstance(layers, list) or not layers or not all(type(i) is int and i >= 0 for i in layers):
        raise BadInput(
            f"{FLAG} is {layers!r}", where=f"{where}: config.json", allowed="a list of the target's layers"
        )
    try:
        weight = load_file(folder / FILE)["weight"]
    except (OSError, KeyError, SafetensorError) as error:
        raise BadInput(f"says {FLAG}, but {FILE} cannot be read: {error}", where=where) from error
    table = network.get_input_embeddings().weight
    if weight.ndim != 2 or weight.shape[0] != table.shape[1] or weight.shape[1] % len(layers):
        raise BadInput(
            f"{FILE} has a weight of shape {tuple(weight.shape)}",
            where=where,
            allowed=f"({table.shape[1]}, {len(layers)} times the target's hidden size)",
        )
    let_read(network, weight.to(table.dtype), layers)


def check_reads(network: Any, target: Any, where: str) -> None:
    """Refuse a drafter that reads states of another size than the target's, or of layers it has not."""
    if not reads_target(network):
        return
    layers = layers_read(network)
    own, size = network.from_target.in_features // len(layers), states_width(target, layers[:1])
    if own != size:
        raise BadInput(
            f"reads states of {own} numbers, the target's have {size}",
            where=where,
            allowed="a drafter trained for this target",
        )
    check_layers(target, layers, where)


def check_layers(target: Any, layers: Sequence[int], where: str) -> None:
    """Refuse layers that a target has not."""
    there = _layers_of(target, where) if layers else ()
    if any(i >= len(there) for i in layers):
        raise BadInput(
            f"layers {list(layers)} of a target of {len(there)}",
            where=where,
            allowed=f"some of 0 to {len(there) - 1}",
        )


def same_layers(networks: Iterable[Any], where: str) -> tuple[int, ...]:
    """The target's layers that drafters read; refused where two read different ones."""
    read = sorted({layers_read(network) for network in networks} - {()})
    if len(read) > 1:
        raise BadInput(
            f"drafters read layers {' and '.join(str(list(r)) for r in read)} of the target",
            where=where,
            allowed="drafters that read the same layers",
        )
    return read[0] if read else ()


def states_width(target: Any, layers: Sequence[int]) -> int:
    """How many numbers the states of so many layers have at a token."""
    return len(layers) * int(target.get_input_embeddings().weight.shape[1])


def fused(network: Any, tokens: torch.Tensor, states: torch.Tensor | None) -> torch.Tensor:
    """What such a network reads, shape (rows, new, own hidden).

    Args:
        tokens: shape (rows, new).
        states: the target's at the token before each, shape (rows, new, layers * target's hidden); None for
            none at all, which takes as long.
    """
    read: torch.Tensor = network.get_input_embeddings()(tokens)
    layer = network.from_target
    if states is None:
        states = read.new_zeros(*tokens.shape, layer.in_features)
    fed: torch.Tensor = layer(states.to(read.dtype))
    return read + fed


@contextmanager
def states_of(network: Any, layers: Sequence[int]) -> Iterator[list[torch.Tensor]]:
    """The states of ``layers`` in every forward of ``network`` inside, each of shape (rows, new, layers *
    hidden); nothing is kept where no layer is named."""
    held: list[torch.Tensor] = []
    if not layers:
        yield held
        return
    there = _layers_of(network, type(network).__name__)
    found: dict[int, torch.Tensor] = {}

    def keep(i: int) -> Any:
        return lambda _m, _i, out: found.__setitem__(i, _scaled(out[0] if isinstance(out, tuple) else out))

    def gather(*_: Any) -> None:
        held.append(torch.cat([found[i] for i in layers], dim=-1))

    with ExitStack() as hooks:
        for i in layers:
            hooks.callback(there[i].register_forward_hook(keep(i)).remove)
        hooks.callback(network.base_model.register_forward_hook(gather).remove)
        yield held


def shifted(states: torch.Tensor) -> torch.Tensor:
    """States at the token before each of a whole text's, the first one's being zeros; shape as given."""
    return torch.cat([torch.zeros_like(states[:, :1]), states[:, :-1]], dim=1)


def _scaled(states: torch.Tensor) -> torch.Tensor:
    wide = states.float()
    return (wide * wide.square().mean(-1, keepdim=True).add(1e-6).rsqrt()).to(states.dtype)


def _layers_of(target: Any, where: str) -> Any:
    there = getattr(target.base_model, "layers", None)
    if not isinstance(there, torch.nn.ModuleList):
        raise BadInput("has no layers whose states could be read", where=where)
    return there
