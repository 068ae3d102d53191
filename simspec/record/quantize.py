"""Linear layers in 8-bit integers, on the CPU: torch's dynamic kind, and one that scales by token."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch

# Far below any activation: a row of zeros keeps a scale that can be divided by.
_LEAST = 1e-30


def quantize_int8(network: Any) -> Any:
    """A copy of ``network`` with torch's dynamic int8 in every linear layer, for latency only.

    It scales activations over the whole tensor, so that a token's logits depend on
    what else is in the forward: a cost curve, not a model (DESIGN.md).
    """
    return _dynamic(copy.deepcopy(network))


def quantize_in_place(network: Any, dtype: str) -> int:
    """Turn a float32 network's linear layers into ``dtype``; returns how many there are.

    Args:
        dtype: ``int8-dynamic`` or ``int8-per-token``.
    """
    linear = [name for name, module in network.named_modules() if isinstance(module, torch.nn.Linear)]
    if dtype == "int8-dynamic":
        _dynamic(network)
    else:
        assert dtype == "int8-per-token", dtype
        for name in linear:
            network.set_submodule(name, PerTokenLinear(network.get_submodule(name)))
    return len(linear)


def _dynamic(network: Any) -> Any:
    from torch.ao.quantization import quantize_dynamic

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch marks this interface as leaving; it is what we measure
        return quantize_dynamic(network, {torch.nn.Linear}, dtype=torch.qint8, inplace=True)


class PerTokenLinear(torch.nn.Module):
    """A linear layer in 8-bit integers whose every row comes out the same beside any other rows.

    Weights are rounded to -127..127 with one scale an output; each row of the input with the
    scale of its own largest magnitude. Products are summed in 32-bit integers, so that neither
    the order of the sum nor the other rows can change a row. Weights are rounded to nearest:
    no calibration data, no smoothing of outliers.
    """

    weight: torch.Tensor
    scale: torch.Tensor
    bias: torch.Tensor | None

    def __init__(self, linear: torch.nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach().float()
        scale = weight.abs().amax(1).clamp_min(_LEAST) / 127
        # Held as (inputs, outputs): torch's kernel is quicker so from two rows on.
        # Copied into fresh storage: a single input or output leaves strides that torch calls contiguous
        # and its integer kernel misreads.
        held = torch.empty(weight.shape[::-1], dtype=torch.int8, device=weight.device)
        held.copy_((weight / scale[:, None]).round().t())
        self.register_buffer("weight", held)
        self.register_buffer("scale", scale)
        bias = getattr(linear, "bias", None)  # torch's own types forget that there may be none
        self.register_buffer("bias", None if bias is None else bias.detach().float())

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Shape (..., inputs) to (..., outputs), both float32."""
        rows = values.reshape(-1, values.shape[-1])
        scale = rows.abs().amax(1, keepdim=True).clamp_min(_LEAST) / 127
        sums = torch._int_mm((rows / scale).round().to(torch.int8), self.weight)
        made = sums.to(torch.float32).mul_(self.scale).mul_(scale)
        if self.bias is not None:
            made += self.bias
        return made.reshape(*values.shape[:-1], made.shape[-1])
