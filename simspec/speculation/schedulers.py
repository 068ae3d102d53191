"""Which chain a request's next cycle takes.

A scheduler is its frozen parameters. It sees what the request has done so far and picks one of
the schedules that the decoder was given; it never sees a verdict that is still to come.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from simspec.speculation.chains import Chain
from simspec.speculation.lengths import LengthRule


@dataclass(frozen=True)
class Schedule:
    """A chain and how long its drafts are; a chain that drafts needs a rule."""

    chain: Chain
    rule: LengthRule | None = None

    def __post_init__(self) -> None:
        if self.chain.drafter is not None and self.rule is None:
            raise ValueError(f"{self.chain} drafts, so it needs a length rule")


@dataclass(frozen=True)
class Past:
    """What a request has done: ``chosen``, ``submitted`` and ``kept`` have an entry for each cycle.

    ``chosen`` are indices of schedules. The lists are the decoder's own: read, do not change.
    """

    request: int
    emitted_tokens: int
    chosen: list[int] = field(default_factory=list)
    submitted: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)


class ChainScheduler(Protocol):
    def choose(self, past: Past, schedules: int) -> int:
        """Which of ``schedules`` schedules the next cycle takes."""


@dataclass(frozen=True)
class Fixed:
    """Always the first schedule."""

    def choose(self, past: Past, schedules: int) -> int:
        return 0


@dataclass(frozen=True)
class TakeTurns:
    """Each schedule for ``every`` cycles in turn, each request beginning at another: for tests of
    what a switch does to caches, and a baseline for schedulers that think."""

    every: int = 1

    def choose(self, past: Past, schedules: int) -> int:
        return (past.request + len(past.chosen) // self.every) % schedules
