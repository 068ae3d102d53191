"""What a scheduler took at one batch size, on all prompts and on draws of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simspec.traces.index import Ints

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Score:
    """One scheduler at one batch size, row 0 being all prompts once; sums over both halves.

    Attributes:
        seconds, tokens: by draw, (draws + 1,).
        decisions, switches: of row 0; a switch is to another chain.
        catching_up: share of row 0's seconds.
        taken: how often each candidate was, over all draws, (K,).
    """

    seconds: Floats
    tokens: Floats
    decisions: int = 0
    switches: int = 0
    catching_up: float = 0.0
    taken: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def per_token(self) -> Floats:
        return np.asarray(self.seconds / self.tokens)

    def plus(self, other: Score) -> Score:
        both = self.seconds[0] + other.seconds[0]
        late = self.catching_up * self.seconds[0] + other.catching_up * other.seconds[0]
        return Score(
            self.seconds + other.seconds,
            self.tokens + other.tokens,
            self.decisions + other.decisions,
            self.switches + other.switches,
            float(late / both),
            self.taken + other.taken,
        )
