"""Checks of numbers given on the command line."""

from __future__ import annotations

from simspec.errors import BadInput


def draws_and_seed(draws: int, seed: int) -> None:
    """Refuse draws outside 0..100,000 and a negative seed."""
    if not 0 <= draws <= 100_000:
        raise BadInput(f"--draws {draws}", allowed="0 to 100000")
    if seed < 0:
        raise BadInput(f"--seed {seed}", allowed="0 or more")
