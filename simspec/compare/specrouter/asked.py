"""What a study is asked to cover."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """Batch sizes, draft lengths, bootstrap draws of prompts, their seed; ``jobs`` changes no result."""

    batches: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    lengths: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    draws: int = 100
    seed: int = 0
    jobs: int = 1
