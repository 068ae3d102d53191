"""Drafters made of the target without some of its layers."""

from __future__ import annotations

import copy
from typing import Any

import torch

from simspec.errors import BadInput


def skip_layers(network: Any, first: int, count: int) -> Any:
    """``network`` without layers ``first .. first + count - 1``; every weight stays shared.

    Works on any network whose layers are ``model.layers`` and whose attention, ``self_attn`` in
    each of them, finds its place in the cache by ``layer_idx``.

    Raises:
        BadInput: when there are not so many layers, or the network is not of that form.
    """
    where = type(network).__name__
    layers = getattr(getattr(network, "model", None), "layers", None)
    if not isinstance(layers, torch.nn.ModuleList):
        raise BadInput(
            "has no model.layers to skip some of", where=where, allowed="such as Llama, Qwen, Gemma"
        )
    strange = [
        i for i, layer in enumerate(layers) if not hasattr(getattr(layer, "self_attn", None), "layer_idx")
    ]
    if strange:
        raise BadInput(
            f"layer {strange[0]} has no self_attn.layer_idx: its place in the cache is unknown", where=where
        )
    if getattr(network.config, "num_kv_shared_layers", 0):
        raise BadInput("layers use the keys of other layers: none can be left out", where=where)
    if first + count > len(layers) or count >= len(layers):
        raise BadInput(
            f"cannot skip {count} layers from {first}",
            where=where,
            allowed=f"within {len(layers)} layers, not all",
        )
    kept = [i for i in range(len(layers)) if not first <= i < first + count]
    shorter = _shell(network)
    shorter.config = copy.deepcopy(network.config)
    shorter.config.num_hidden_layers = len(kept)
    if getattr(network.config, "layer_types", None):
        # What kind of attention each layer is; masks are made by it.
        shorter.config.layer_types = [network.config.layer_types[i] for i in kept]
    shorter.model = _shell(network.model)
    shorter.model.config = shorter.config
    shorter.model.layers = torch.nn.ModuleList(_placed(layers[i], place) for place, i in enumerate(kept))
    return shorter


def _placed(module: Any, place: int) -> Any:
    """A shell of a layer in which everything that carries a layer's number carries ``place``.

    What does not is shared as it is.
    """
    children = {name: _placed(child, place) for name, child in module.named_children()}
    numbered = isinstance(getattr(module, "layer_idx", None), int)
    if not numbered and all(children[name] is child for name, child in module.named_children()):
        return module
    shell = _shell(module)
    shell._modules.update(children)
    if numbered:
        shell.layer_idx = place
    return shell


def _shell(module: Any) -> Any:
    """A copy of the module object that shares its parameters and owns its list of children."""
    shell = copy.copy(module)
    shell._modules = dict(module._modules)
    return shell
