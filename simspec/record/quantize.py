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
    what else is in the forward: a cost curve, not a model.
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
        largest = weight.abs().amax(1).clamp_min(_LEAST)
        whole = (weight / largest[:, None]).mul_(127).round_()
        # Shape (inputs, outputs), an output's weights side by side: for one row more than twice as quick.
        plain = min(whole.shape) > 1
        self.register_buffer("weight", _laid_out(whole).t() if plain else _laid_out(whole.t()))
        # As a linear layer says it: for those who ask what it takes.
        self.out_features, self.in_features = weight.shape
        self.register_buffer("scale", largest / 127**2)  # a row's own largest is the other factor
        bias = getattr(linear, "bias", None)  # torch's own types forget that there may be none
        self.register_buffer("bias", None if bias is None else bias.detach().float())

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Shape (..., inputs) to (..., outputs), both float32."""
        rows = values.reshape(-1, values.shape[-1])
        largest = torch.linalg.vector_norm(rows, torch.inf, 1, keepdim=True).clamp_min_(_LEAST)
        whole = _laid_out((rows / largest).mul_(127).round_())
        made = (torch._int_mm(whole, self.weight) * self.scale).mul_(largest)
        if self.bias is not None:
            made += self.bias
        return made.reshape(*values.shape[:-1], made.shape[-1])


def _laid_out(values: torch.Tensor) -> torch.Tensor:
    """As int8, in fresh storage, row by row.

    ``contiguous()`` would not do: where a matrix has one row or one column it may leave strides
    that torch's integer kernel misreads.
    """
    return torch.empty_like(values, dtype=torch.int8, memory_format=torch.contiguous_format).copy_(values)
