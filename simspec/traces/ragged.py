"""List columns as padded arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def lengths(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Items in each row of a list column, shape (rows,)."""
    offsets: NDArray[np.int32] = _plain(column).offsets.to_numpy()
    return np.diff(offsets).astype(np.int64)


def pad(column: pa.ChunkedArray, width: int, fill: float) -> NDArray[Any]:
    """A list column as an array of shape (rows, width), cut or filled with ``fill``."""
    plain = _plain(column)
    offsets = plain.offsets.to_numpy()
    values = plain.values.to_numpy(zero_copy_only=False)
    size = np.diff(offsets)
    out = np.full((len(size), width), fill, dtype=values.dtype)
    inside = np.arange(width)[None] < size[:, None]
    out[inside] = values[(offsets[:-1, None] + np.arange(width)[None])[inside]]
    return out


def _plain(column: pa.ChunkedArray) -> Any:
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], type=column.type)
    return array
