"""A drafter in training: some of a parent's layers, and an output layer over part of the vocabulary."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from simspec.errors import BadInput
from simspec.record import reads_target
from simspec.record.trimmed import FILE, FLAG, TrimmedOutput
from simspec.training.batches import Packed

# In the config.json of a drafter that fills in masked places: the id whose embedding is the mask's.
MASK = "trained_mask"


class Trained(torch.nn.Module):
    """The network, and what of it changes: layers, norm, output rows, the mask's embedding, and the matrix
    that the target's states are read through.

    The input table stays the target's: most of its rows would meet no token of the texts.
    """

    ids: torch.Tensor
    index: torch.Tensor

    def __init__(
        self,
        parent: Any,
        layers: tuple[int, ...],
        ids: torch.Tensor,
        mask: int | None,
        states: int = 0,
        read_layers: tuple[int, ...] = (),
    ) -> None:
        """Begin as some layers of ``parent``, in their order.

        Args:
            ids: the output vocabulary, rising, of ids that the parent's output layer has,
                shape (outputs,).
            mask: the mask token's id; None for a drafter that needs none.
            states: how many numbers the target's states have at a token; 0 for a drafter that reads none.
            read_layers: of the target, whose states those are.

        Raises:
            BadInput: when the parent has no such layers.
        """
        super().__init__()
        self.architecture = type(parent).__name__
        self.body = _shortened(parent, layers)
        table = parent.get_input_embeddings().weight.detach().float()
        head = parent.get_output_embeddings()
        if isinstance(head, TrimmedOutput):
            rows = head.linear.weight.detach()[torch.searchsorted(head.ids, ids)].float()
        else:
            rows = head.weight.detach()[ids].float()
        self.output = torch.nn.Linear(rows.shape[1], len(ids), bias=False)
        self.output.weight = torch.nn.Parameter(rows.clone())
        self.mask_token = mask
        # The mean of the table is nearer to what layers are used to than an id that no text holds; a parent
        # that fills in masks has learned it.
        learned = mask is not None and getattr(parent.config, MASK, None) == mask
        self.mask = (
            None if mask is None else torch.nn.Parameter(table[mask].clone() if learned else table.mean(0))
        )
        self.read_layers = read_layers
        self.reading: torch.nn.Linear | None = None
        if states:
            self.reading = torch.nn.Linear(states, table.shape[1], bias=False)
            same = reads_target.layers_read(parent) == read_layers
            begun = parent.from_target.weight if same else torch.zeros(())
            self.reading.weight = torch.nn.Parameter(
                begun.detach().float().expand(table.shape[1], states).clone()
            )
        index = torch.full((len(table),), -1)
        index[ids] = torch.arange(len(ids))
        self.register_buffer("ids", ids)
        self.register_buffer("index", index)

    def forward(self, packed: Packed) -> torch.Tensor:
        """Logits at the places that have something to say, shape (n, outputs)."""
        inputs = self.body.embed_tokens(packed.tokens)
        if self.mask is not None:
            # A text that holds the mask token itself reads as it will once its row is the mask's.
            masked = packed.masked | (packed.tokens == self.mask_token)
            inputs = torch.where(masked[..., None], self.mask, inputs)
        if self.reading is not None:
            states = self.reading(packed.states)
            inputs = torch.cat([inputs[:, : packed.widest] + states, inputs[:, packed.widest :]], dim=1)
        hidden = self.body(
            inputs_embeds=inputs,
            attention_mask=packed.seen,
            position_ids=packed.positions,
            use_cache=False,
        ).last_hidden_state
        logits: torch.Tensor = self.output(hidden[packed.row, packed.place])
        return logits

    def changing(self) -> dict[str, torch.nn.Parameter]:
        """What is trained, by name."""
        return {name: weight for name, weight in self.named_parameters() if weight.requires_grad}

    def export(self, folder: Path, tokenizer: Any) -> None:
        """Write what a recording's ``source`` can name; each file appears by one rename."""
        config = copy.deepcopy(self.body.config)
        config.architectures = [self.architecture]
        # Tied, so that nothing misses an output layer of full size before the trimmed one is put in.
        about = {**config.to_dict(), FLAG: True, "tie_word_embeddings": True, "dtype": "float32"}
        about.pop(reads_target.FLAG, None)
        weights = {f"model.{name}": value.detach() for name, value in self.body.state_dict().items()}
        if self.mask is not None:
            table = weights["model.embed_tokens.weight"].clone()
            table[self.mask_token] = self.mask.detach()
            weights["model.embed_tokens.weight"] = table
            about[MASK] = self.mask_token
        files = {FILE: {"ids": self.ids, "weight": self.output.weight.detach()}}
        if self.reading is not None:
            about[reads_target.FLAG] = list(self.read_layers)
            files[reads_target.FILE] = {"weight": self.reading.weight.detach()}
        partial = folder / "model.writing"
        for name, values in (files | {"model.safetensors": weights}).items():
            save_file({k: v.contiguous() for k, v in values.items()}, partial, metadata={"format": "pt"})
            partial.replace(folder / name)
        partial.write_text(json.dumps(about, indent=2) + "\n")
        partial.replace(folder / "config.json")
        if tokenizer is not None:
            tokenizer.save_pretrained(folder)


def _shortened(parent: Any, layers: tuple[int, ...]) -> Any:
    """A copy of what lies between a network's input table and its output layer, with some layers."""
    there = getattr(getattr(parent, "model", None), "layers", None)
    if not isinstance(there, torch.nn.ModuleList):
        raise BadInput("has no model.layers to begin from", where=type(parent).__name__)
    if not layers or max(layers) >= len(there):
        raise BadInput(
            f"layers {list(layers)} of a network of {len(there)}",
            where=type(parent).__name__,
            allowed=f"some of 0 to {len(there) - 1}",
        )
    config = copy.deepcopy(parent.config)
    config.num_hidden_layers = len(layers)
    if getattr(config, "layer_types", None):
        config.layer_types = [config.layer_types[i] for i in layers]
    if hasattr(config, "quantization_config"):
        del config.quantization_config  # of a GGUF file, whose weights are unpacked by now
    body = type(parent)(config).model.float()
    body.embed_tokens.load_state_dict(parent.model.embed_tokens.state_dict())
    body.norm.load_state_dict(parent.model.norm.state_dict())
    for place, i in enumerate(layers):
        body.layers[place].load_state_dict(there[i].state_dict())
    body.embed_tokens.weight.requires_grad_(False)
    return body


def frequent_ids(
    top_ids: NDArray[np.int32],
    top_log_probs: NDArray[np.float16],
    most: int,
    always: tuple[int, ...],
    among: torch.Tensor,
) -> torch.Tensor:
    """The ids that the target's distributions hold most of, rising, shape (n,).

    Args:
        top_ids, top_log_probs: at every place of the texts, shape (places, top).
        most: how many; 0 for all of ``among``.
        always: ids that are taken whatever they weigh, such as the end of a text.
        among: the ids that there are, rising.
    """
    share = np.zeros(int(among[-1]) + 1)
    weight = np.exp(top_log_probs.astype(np.float64))
    counted = np.bincount(top_ids.ravel(), weight.ravel())[: len(share)]
    share[: len(counted)] = counted
    share[list(always)] = np.inf
    # Stable, so that ids of equal weight enter by their numbers.
    order = torch.from_numpy(np.argsort(-share[among.numpy()], kind="stable"))
    return among[order[: most or None].sort().values]
