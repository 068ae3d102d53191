"""Checks of numbers given on the command line."""

from __future__ import annotations

import os

from simspec.errors import BadInput


def draws_and_seed(draws: int, seed: int) -> None:
    """Refuse draws outside 0..100,000 and a negative seed."""
    if not 0 <= draws <= 100_000:
        raise BadInput(f"--draws {draws}", allowed="0 to 100000")
    if seed < 0:
        raise BadInput(f"--seed {seed}", allowed="0 or more")


def processes(jobs: int) -> int:
    """``jobs``, or one for each core that this process may use where it is 0."""
    if not 0 <= jobs <= 1024:
        raise BadInput(f"--jobs {jobs}", allowed="0 to 1024")
    if jobs:
        return jobs
    # Not every system can say which cores are ours.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
