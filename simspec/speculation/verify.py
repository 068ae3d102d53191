"""How much of a drafted block a verifier lets through."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def accepted_prefix(drafted: NDArray[np.int32], greedy: NDArray[np.int32]) -> int:
    """Accepted drafts of one block under greedy verification.

    Args:
        drafted: token ids of the block, shape (n,).
        greedy: the verifier's most probable token at each place of the block and
            perhaps past its end, shape (at least n,); a shorter array is allowed when
            it ends at the first disagreement.

    Returns:
        how many leading tokens agree, 0..n.
    """
    n = min(len(drafted), len(greedy))
    differ = np.flatnonzero(drafted[:n] != greedy[:n])
    return int(differ[0]) if len(differ) else n
