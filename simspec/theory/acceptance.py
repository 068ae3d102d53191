"""Expected tokens of a cycle under independent acceptance.

alpha = acceptance rate, gamma = draft length (Leviathan et al., arXiv 2211.17192).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def emitted_tokens(alpha: ArrayLike, gamma: ArrayLike) -> Floats:
    """E(alpha, gamma) = (1 - alpha^(gamma+1)) / (1 - alpha), the bonus token included.

    Assumes independent acceptance with one rate. Shapes broadcast.
    """
    a, g = np.asarray(alpha, dtype=np.float64), np.asarray(gamma, dtype=np.float64)
    sure = a >= 1.0
    safe = np.where(sure, 0.0, a)
    return np.where(sure, g + 1.0, (1.0 - safe ** (g + 1.0)) / (1.0 - safe))


def surviving_tokens(alpha: ArrayLike, n: ArrayLike) -> Floats:
    """S(alpha, n) = alpha (1 - alpha^n) / (1 - alpha): expected accepted drafts of n."""
    return emitted_tokens(alpha, n) - 1.0
