"""How a text is drawn from a model's distribution."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sampling:
    """Draw tokens at a temperature, from the least set of tokens that holds ``top_p`` of the probability.

    Every model of a chain is sharpened and cut alike, and what comes out is what drafts are
    drawn from and verified against. Greedy decoding is no sampling, not a temperature of 0.
    """

    temperature: float = 1.0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.temperature < float("inf"):
            raise ValueError(f"temperature must be above 0 and finite, not {self.temperature}")
        if not 0.0 < self.top_p <= 1.0:
            raise ValueError(f"top_p must be above 0 and at most 1, not {self.top_p}")
