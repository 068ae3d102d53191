"""What a device is seen to reach: arithmetic and memory traffic, by the plainest work there is.

For devices without a data sheet that says so, such as two cores of a shared server. The figures
are the best of a few tries: what the device can do, not what a model gets of it.
"""

from __future__ import annotations

import torch

from simspec.calibration.forwards import time_call

TRIES = 5
# Beyond any cache of a processor of today; an accelerator needs more to be kept busy.
READ_BYTES = {"cpu": 1 << 28, "accelerator": 1 << 31}
MATRIX = {"cpu": 1536, "accelerator": 8192}


def measure_peaks(device: str, dtype: str) -> dict[str, float]:
    """FLOP/s of a square matrix product in ``dtype``, and bytes/s of a sum over memory.

    Args:
        dtype: a floating format of torch.

    Returns:
        keys ``flops_per_second`` and ``bytes_per_second``.
    """
    kind = "cpu" if device == "cpu" else "accelerator"
    size = MATRIX[kind]
    # Not ones: some devices run faster on bits that do not change.
    left = torch.rand((size, size), device=device).to(getattr(torch, dtype))
    right = torch.rand((size, size), device=device).to(getattr(torch, dtype))
    # A sum in float32 whatever the number format: bytes are bytes.
    memory = torch.ones(READ_BYTES[kind] // 4, dtype=torch.float32, device=device)
    product = min(time_call(lambda: left @ right, device) for _ in range(TRIES))
    read = min(time_call(memory.sum, device) for _ in range(TRIES))
    return {
        "flops_per_second": 2 * size**3 / product,
        "bytes_per_second": memory.numel() * memory.element_size() / read,
    }
