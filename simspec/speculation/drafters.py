"""Drafters that need no model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int32]


@dataclass(frozen=True)
class PromptLookup:
    """Draft what followed the last time the text's ending was seen.

    The longest suffix of at most ``max_ngram`` and at least ``min_ngram`` tokens that
    occurs earlier is taken, at its most recent place; the tokens after it are the
    block. The block is empty where there is no such place.
    """

    max_ngram: int = 3
    min_ngram: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.min_ngram <= self.max_ngram:
            raise ValueError(f"need 1 <= min_ngram <= max_ngram, not {self.min_ngram} and {self.max_ngram}")

    def draft(self, text: Tokens, length: int) -> Tokens:
        """The block after ``text`` (1-D token ids), of at most ``length`` tokens."""
        for size in range(min(self.max_ngram, len(text) - 1), self.min_ngram - 1, -1):
            suffix = text[-size:]
            windows = np.lib.stride_tricks.sliding_window_view(text[:-1], size)
            places = np.flatnonzero((windows == suffix).all(axis=1))
            if len(places):
                start = int(places[-1]) + size
                return text[start : start + length].astype(np.int32)
        return np.empty(0, dtype=np.int32)
