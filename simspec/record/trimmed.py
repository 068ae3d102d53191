"""Output layers over a part of the vocabulary: most of a small model's cost is its output layer.

A folder of such a model says ``"trimmed_output": true`` in its config.json, and holds a file
``trimmed_output.safetensors`` beside its weights: ``ids``, the token ids in rising order, shape (n,),
and ``weight``, a row of the output layer for each, shape (n, hidden). Any other id has probability zero.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from simspec.errors import BadInput

FLAG = "trimmed_output"
FILE = f"{FLAG}.safetensors"


class TrimmedOutput(torch.nn.Module):
    """Logits over ``out_features`` ids, minus infinity at all that are not among ``ids``."""

    ids: torch.Tensor

    def __init__(self, ids: torch.Tensor, weight: torch.Tensor, out_features: int) -> None:
        super().__init__()
        self.out_features = out_features
        # A plain linear layer, so that what is done to a network's linear layers is done here too.
        self.linear = torch.nn.Linear(weight.shape[1], len(ids), bias=False, device="meta")
        self.linear.weight = torch.nn.Parameter(weight, requires_grad=False)
        self.register_buffer("ids", ids)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Shape (..., hidden) to (..., out_features)."""
        some: torch.Tensor = self.linear(hidden)
        logits = some.new_full((*some.shape[:-1], self.out_features), -torch.inf)
        logits[..., self.ids] = some
        return logits

    def first(self, vocabulary: int) -> TrimmedOutput:
        """The same for the ids below ``vocabulary``."""
        n = int((self.ids < vocabulary).sum())
        return TrimmedOutput(self.ids[:n], self.linear.weight.detach()[:n], vocabulary)


def trim_output(network: Any, folder: Path, where: str) -> None:
    """Give a network read from ``folder`` its trimmed output layer.

    Raises:
        BadInput: when the folder lacks it, or it does not fit the network.
    """
    try:
        found = load_file(folder / FILE)
        ids, weight = found["ids"].long(), found["weight"]
    except (OSError, KeyError, SafetensorError) as error:
        raise BadInput(f"says {FLAG}, but {FILE} cannot be read: {error}", where=where) from error
    table = network.get_input_embeddings().weight
    if ids.ndim != 1 or not len(ids) or weight.shape != (len(ids), table.shape[1]):
        raise BadInput(
            f"{FILE} has ids of shape {tuple(ids.shape)}, weight {tuple(weight.shape)}",
            where=where,
            allowed=f"(n,) and (n, {table.shape[1]})",
        )
    if int(ids[0]) < 0 or int(ids[-1]) >= len(table) or bool((ids.diff() <= 0).any()):
        raise BadInput(f"{FILE} has ids that are not rising", where=where, allowed=f"0 to {len(table) - 1}")
    network.set_output_embeddings(TrimmedOutput(ids, weight.to(table.dtype), len(table)))
