"""The shape of one forward: all that a cost model may look at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True)
class StepShape:
    """Forwards described by arrays that broadcast together, one entry a forward.

    Attributes:
        rows: requests in the forward.
        width: new tokens of the widest row; a padded forward computes rows * width.
        tokens: new tokens over all rows; a packed forward computes only these.
        context: tokens in the cache of the longest row.
        context_tokens: tokens in the caches of all rows.
    """

    rows: Numbers
    width: Numbers
    tokens: Numbers
    context: Numbers
    context_tokens: Numbers


def uniform(rows: Numbers, width: Numbers, context: Numbers) -> StepShape:
    """Rows that are all alike."""
    return StepShape(rows, width, rows * width, context, rows * context)
