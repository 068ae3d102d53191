"""How far estimated acceptance is from what comes of the drafts: by task, along the block, along the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.compare.estimates.realised import tries
from simspec.compare.estimates.similarity import Pair
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]

# First positions of the stretches that a text is cut into.
STRETCHES = (0, 16, 32, 64)


@dataclass(frozen=True)
class Cell:
    """Drafts of every (drafter, verifier) on each prompt in one cell.

    Attributes:
        by: "task", "position" (in the block, from 1) or "time" (place in the text).
        good, tried: drafts accepted and tried, (pairs, P).
    """

    by: str
    name: str
    good: Floats
    tried: Floats

    def gaps(self, estimates: Floats, counts: Floats) -> Floats:
        """Sums over pairs of (estimate - accepted share) * tried, of its absolute value, of good and tried.

        Args:
            estimates: (draws, pairs).
            counts: how often each draw has each prompt, (draws, P).

        Returns:
            shape (4, draws).
        """
        good, tried = counts @ self.good.T, counts @ self.tried.T
        gap = estimates * tried - good
        return np.stack([v.sum(axis=1) for v in (gap, np.abs(gap), good, tried)])


@dataclass(frozen=True)
class CellError:
    """One source in one cell, over all pairs weighted by drafts tried there.

    Attributes:
        by, cell: as in :class:`Cell`.
        tried: drafts tried.
        accepted_share: share of them accepted.
        bias: mean of estimate - accepted share of its pair.
        absolute: mean of the absolute values of the same.
    """

    source: str
    by: str
    cell: str
    tried: int
    accepted_share: float
    bias: float
    absolute: float


def errors(
    trace: Trace, estimates: Mapping[str, Mapping[Pair, float]], prompts: Sequence[int] | Ints, longest: int
) -> list[CellError]:
    """Hold estimates by source and (drafter, verifier) against the blocks of ``prompts``.

    An estimate is one number for a pair, so its error in a cell shows what one number cannot say. Fit
    the estimates on other prompts, or ``realised`` is held against itself.

    Args:
        longest: drafts of a block that are counted.
    """
    counts = np.isin(np.arange(len(trace.prompts)), prompts).astype(np.float64)[None]
    pairs = list(tries(trace, 1))
    found = []
    for cell in cells(trace, longest):
        if not (counts @ cell.tried.T).any():
            continue
        for source, rates in estimates.items():
            sums = cell.gaps(np.array([[rates[p] for p in pairs]]), counts)[:, 0]
            gap, absolute, good, tried = (float(s) for s in sums)
            found.append(
                CellError(
                    source=source,
                    by=cell.by,
                    cell=cell.name,
                    tried=int(tried),
                    accepted_share=good / tried,
                    bias=gap / tried,
                    absolute=absolute / tried,
                )
            )
    return found


def as_json(found: Sequence[CellError]) -> list[dict[str, Any]]:
    return [asdict(cell) for cell in found]


def cells(trace: Trace, longest: int) -> Iterator[Cell]:
    """Every cell; pairs in the order of :func:`~simspec.compare.estimates.realised.tries`.

    Args:
        longest: drafts of a block that are counted.
    """
    counted = list(tries(trace, longest).values())
    accepted, refused = np.stack([t.accepted for t in counted]), np.stack([t.refused for t in counted])
    tried = np.stack([t.tried for t in counted])
    starts = trace.offsets[:-1]

    def among(by: str, name: str, good: NDArray[Any], tried: NDArray[Any]) -> Cell:
        # No text is empty.
        sums = (np.add.reduceat(v.astype(np.float64), starts, axis=1) for v in (good, tried))
        return Cell(by, name, *sums)

    task = trace.prompts["category"].to_numpy()[trace.prompt]
    for name in dict.fromkeys(task):
        inside = task == name
        yield among("task", str(name), accepted * inside, tried * inside)
    for place in range(1, longest + 1):
        good = accepted >= place
        yield among("position", str(place), good, good | (refused & (accepted == place - 1)))
    for low, high in zip(STRETCHES, (*STRETCHES[1:], None), strict=True):
        inside = (trace.position >= low) & (trace.position < (high or np.inf))
        yield among("time", f"{low}-{high - 1}" if high else f"{low}-", accepted * inside, tried * inside)
