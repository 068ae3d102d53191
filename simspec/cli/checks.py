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


def batch_shares(text: str) -> tuple[tuple[int, int], ...]:
    """``1:12,8:96`` as (batch, prompts)."""
    found = []
    for part in text.split(","):
        batch, colon, count = part.strip().partition(":")
        if not (colon and batch.isdigit() and count.isdigit() and 1 <= int(batch) <= 256 and int(count) >= 1):
            raise BadInput(f"--shares {text!r} holds {part!r}", allowed="batch:prompts, such as 1:12,8:96")
        found.append((int(batch), int(count)))
    if len({b for b, _ in found}) < len(found):
        raise BadInput(f"--shares {text!r} names a batch size twice")
    return tuple(found)
