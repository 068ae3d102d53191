"""How long forwards take in the pattern in which a chain runs them.

The executor's own levels are timed: the same cache, masks and bookkeeping, drafters and target
taking turns, each verifying forward after single-token ones of another model. Isolated medians of
one model alone miss what models do to each other's caches.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from simspec.record.level import Level, Packing
from simspec.speculation.drafters import PromptLookup
from simspec.speculation.verify import Tokens
from simspec.streams import stream
from simspec.tables import LATENCY

# Rows of a batch are up to so many tokens, less one, shorter than the longest.
UNLIKE = 3


@dataclass(frozen=True)
class PatternGrid:
    """Which forwards to time; every model at every one of them, and at every count of rows in them.

    Rows are not interpolated: three take longer than the mean of two and four, where kernels are made for
    whole groups of rows, and some rows of a batch longer than a batch of so many, since their entries are
    gathered first.

    Attributes:
        batches: sizes of batches that are held; forwards of all rows and of fewer are timed, down to what the
            batch below holds.
    """

    batches: tuple[int, ...] = (1, 2, 4, 8)
    widths: tuple[int, ...] = (1, 2, 3, 4, 5, 7, 9)
    contexts: tuple[int, ...] = (64, 232)

    def rows_of(self, batch: int) -> list[int]:
        """Counts of rows that are timed in a batch of ``batch``."""
        return list(range(1 + max((b for b in self.batches if b < batch), default=0), batch + 1))


class PatternTimer:
    """Levels that hold their contexts, timed again and again over a longer run.

    Calling :meth:`round` before, between and after other measurements puts their common slow
    stretches into both.
    """

    def __init__(
        self,
        networks: Mapping[str, Any],
        lookups: Mapping[str, PromptLookup],
        grid: PatternGrid,
        *,
        device: str,
        dtype: str,
        vocabulary: int,
        seed: int,
    ) -> None:
        """Read the contexts: random tokens, as time does not depend on the values.

        Args:
            networks: drafters first, the target last: the order of a cycle.
        """
        self.lookups, self.grid, self.device, self.dtype = lookups, grid, device, dtype
        self.vocabulary, self.seed = vocabulary, seed
        self.rounds = 0
        self.rows: list[tuple[str, str, str, int, int, int, int, float]] = []
        self.levels: dict[tuple[int, int], dict[str, Level]] = {}
        self.texts: dict[tuple[int, int], list[Tokens]] = {}
        for context in grid.contexts:
            for batch in grid.batches:
                generator = stream(seed, "pattern", context, batch)
                # Rows of a real batch differ in length, so its forwards carry a mask that rows all
                # alike would not need, and attention with a mask is slower.
                texts = [_tokens(generator, context - row % UNLIKE, vocabulary) for row in range(batch)]
                held = {}
                for name, network in networks.items():
                    held[name] = Level(name, network, Packing())
                    held[name].join(batch)
                    held[name].read(range(batch), texts, [0] * batch)
                self.levels[context, batch], self.texts[context, batch] = held, texts

    def round(self) -> None:
        """Every forward of the grid once, cells in an order drawn anew."""
        generator = stream(self.seed, "pattern", "round", self.rounds)
        cells = list(self.levels)
        for c in generator.permutation(len(cells)):
            context, batch = cells[int(c)]
            shapes = [(rows, width) for rows in self.grid.rows_of(batch) for width in self.grid.widths]
            for s in generator.permutation(len(shapes)):
                self._cell(generator, context, batch, *shapes[int(s)])
        self.rounds += 1

    def _cell(self, generator: np.random.Generator, context: int, batch: int, rows: int, width: int) -> None:
        """Forwards of the first ``rows`` requests of a batch, ``width`` tokens each."""
        texts = self.texts[context, batch]
        longer = [np.concatenate([t, _tokens(generator, width, self.vocabulary)]) for t in texts[:rows]]
        for name, level in self.levels[context, batch].items():
            level.read(range(rows), longer, [width] * rows)
            seconds = level.log[-1].seconds
            level.roll_back(np.array([len(t) for t in texts], dtype=np.int64))
            level.settle()
            level.log.clear()
            self._keep(name, self.device, self.dtype, rows, width, context, seconds)
        for name, lookup in self.lookups.items():
            begun = time.perf_counter()
            for text in texts[:rows]:
                lookup.draft(text, width)
            self._keep(name, "cpu", "none", rows, width, context, time.perf_counter() - begun)

    def _keep(
        self, model: str, device: str, dtype: str, rows: int, width: int, context: int, seconds: float
    ) -> None:
        self.rows.append((model, device, dtype, rows, width, context, self.rounds, seconds))

    def latency(self) -> pd.DataFrame:
        """What was timed so far, as a latency table."""
        return pd.DataFrame(self.rows, columns=LATENCY.schema.names)


def _tokens(generator: np.random.Generator, count: int, vocabulary: int) -> Tokens:
    return generator.integers(0, vocabulary, count).astype(np.int32)
