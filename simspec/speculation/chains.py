"""Chains of models and what a cycle of one does."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Literal

Semantics = Literal["funnel-truncate", "funnel-replace", "nested", "early-emit", "none"]

# What a record along the target's text can replay exactly: nested chains would need blocks of inner
# rounds, and early-emit leaves the target's text.
SEMANTICS: tuple[Semantics, ...] = ("funnel-truncate", "funnel-replace")

# What the decoder of real models can do with a chain that has an intermediate.
DECODED_SEMANTICS: tuple[Semantics, ...] = ("funnel-truncate", "funnel-replace", "nested", "early-emit")


@dataclass(frozen=True, order=True)
class Chain:
    """Models from the drafter up to the target; the target alone is plain decoding.

    Attributes:
        levels: model names, drafter first, target last.
        semantics: what an intermediate verifier passes upward. ``funnel-truncate``: what
            it accepted. ``funnel-replace``: that and its own token at the cut.
            ``nested``: rounds of everything below it until it has collected enough tokens
            of its own. ``early-emit``: what it accepted, which the target then does not
            check: it only adds its own token after it, so the text is no longer the target's.
            All the same thing for chains without an intermediate, where ``none`` may be said.
        collect: for nested chains, how many tokens each intermediate collects before the
            level above it reads them, in the order of the levels.
    """

    levels: tuple[str, ...]
    semantics: Semantics = "funnel-truncate"
    collect: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.levels:
            raise ValueError("a chain has at least its target")
        if len(set(self.levels)) != len(self.levels):
            raise ValueError(f"a chain names each model once, not {self.levels}")
        if self.intermediates and self.semantics == "none":
            raise ValueError(f"{self} has an intermediate, so its semantics must be said")
        wanted = len(self.intermediates) if self.semantics == "nested" else 0
        if len(self.collect) != wanted or any(n < 1 for n in self.collect):
            raise ValueError(
                f"{self} ({self.semantics}) needs {wanted} counts of tokens to collect, each at least 1, "
                f"not {self.collect}"
            )

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

    @property
    def lossless(self) -> bool:
        """Whether the text is the target's own, whatever the other models say."""
        return self.semantics != "early-emit" or not self.intermediates

    def __str__(self) -> str:
        return " > ".join(self.levels)


def all_chains(models: list[str], target: str, lookups: set[str], deepest: int = 3) -> list[Chain]:
    """Plain decoding, every pair and, up to ``deepest`` levels, every order of more models.

    A look-up can only draft. Chains with an intermediate come once for each semantics
    that can be replayed, which with several of them is the first alone.
    """
    drafters = [m for m in models if m != target]
    chains = [Chain((target,))]
    if deepest >= 2:
        chains += [Chain((d, target)) for d in drafters]
    for levels in range(3, deepest + 1):
        chains += [
            Chain((*below, target), semantics)
            for semantics in (SEMANTICS if levels == 3 else SEMANTICS[:1])
            for below in permutations(drafters, levels - 1)
            if not lookups & set(below[1:])
        ]
    return chains
