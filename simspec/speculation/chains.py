"""Chains of models and what a cycle of one does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Semantics = Literal["funnel-truncate", "funnel-replace"]
SEMANTICS: tuple[Semantics, ...] = ("funnel-truncate", "funnel-replace")


@dataclass(frozen=True, order=True)
class Chain:
    """Models from the drafter up to the target; the target alone is plain decoding.

    Attributes:
        levels: model names, drafter first, target last.
        semantics: what an intermediate verifier passes upward. ``funnel-truncate``: what
            it accepted. ``funnel-replace``: that and its own token at the cut. The same
            thing for chains without an intermediate.
    """

    levels: tuple[str, ...]
    semantics: Semantics = "funnel-truncate"

    def __post_init__(self) -> None:
        if not self.levels:
            raise ValueError("a chain has at least its target")
        if len(set(self.levels)) != len(self.levels):
            raise ValueError(f"a chain names each model once, not {self.levels}")

    @property
    def target(self) -> str:
        return self.levels[-1]

    @property
    def drafter(self) -> str | None:
        """The model that drafts, or None for plain decoding."""
        return self.levels[0] if len(self.levels) > 1 else None

    @property
    def intermediates(self) -> tuple[str, ...]:
        return self.levels[1:-1]

    def __str__(self) -> str:
        return " > ".join(self.levels)


def all_chains(models: list[str], target: str, lookups: set[str], deepest: int = 3) -> list[Chain]:
    """Plain decoding, every pair and, up to ``deepest`` levels, every ordered triple.

    A look-up can only draft. Chains with an intermediate come once for each semantics.
    """
    drafters = [m for m in models if m != target]
    chains = [Chain((target,))]
    if deepest >= 2:
        chains += [Chain((d, target)) for d in drafters]
    if deepest >= 3:
        chains += [
            Chain((first, middle, target), semantics)
            for semantics in SEMANTICS
            for first in drafters
            for middle in drafters
            if middle != first and middle not in lookups
        ]
    return chains
