"""Named random streams, so that two schedules meet the same luck.

Each name gets its own generator from one seed. Asking for more numbers from one
stream never moves another, so a change of schedule leaves the prompts, the
bootstrap draws and the arrivals as they were.
"""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, *name: str | int) -> np.random.Generator:
    """The generator called ``name`` under ``seed``.

    Args:
        seed: the run's seed, any non-negative integer.
        name: what the numbers are for, e.g. ``("bootstrap", "prompts")``.
    """
    if seed < 0:
        raise ValueError(f"seed must be non-negative, not {seed}")
    label = "\x1f".join(str(part) for part in name)
    digest = hashlib.sha256(label.encode()).digest()
    words = np.frombuffer(digest[:16], dtype=np.uint32)
    return np.random.default_rng(np.random.SeedSequence([seed, *(int(w) for w in words)]))
