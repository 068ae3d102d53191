"""What a laboratory's study is, and what it is asked to cover."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """Batch sizes, draft lengths, bootstrap draws of prompts, their seed; ``jobs`` changes no result."""

    batches: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    lengths: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    draws: int = 100
    seed: int = 0
    jobs: int = 1


@dataclass(frozen=True)
class Study:
    """``run(trace, costs, asked, say, **extras)`` gives plain data.

    Attributes:
        takes: extras that it is given by keyword (a document of an experiment, another trace), None where
            there is none.
    """

    run: Callable[..., dict[str, Any]]
    takes: tuple[str, ...] = ()
