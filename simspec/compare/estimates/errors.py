"""How far estimated acceptance is from what comes of the drafts: by task, along the block, along the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.compare.estimates.realised import Tries, tries
from simspec.compare.estimates.similarity import Pair
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# First positions of the stretches that a text is cut into.
STRETCHES = (0, 16, 32, 64)


@dataclass(frozen=True)
class CellError:
    """One source in one cell, over all pairs weighted by drafts tried there.

    Attributes:
        by: "task", "position" (in the block, from 1) or "time" (place in the text).
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
    mine = np.isin(trace.prompt, prompts)
    counted = tries(trace, longest)
    found = []
    for by, cell, accept in _cells(trace, mine, longest):
        counts = {pair: accept(t) for pair, t in counted.items()}
        kept = [pair for pair, (_, tried) in counts.items() if tried]
        good, tried = np.array([counts[p] for p in kept], dtype=np.float64).reshape(-1, 2).T
        if not len(kept):
            continue
        for source, rates in estimates.items():
            gap = np.array([rates[p] for p in kept]) - good / tried
            found.append(
                CellError(
                    source=source,
                    by=by,
                    cell=cell,
                    tried=int(tried.sum()),
                    accepted_share=float(good.sum() / tried.sum()),
                    bias=float(gap @ tried / tried.sum()),
                    absolute=float(np.abs(gap) @ tried / tried.sum()),
                )
            )
    return found


def as_json(found: Sequence[CellError]) -> list[dict[str, Any]]:
    return [asdict(cell) for cell in found]


def _cells(trace: Trace, mine: Flags, longest: int) -> Iterator[tuple[str, str, Any]]:
    """What a cell is called, and what counts drafts accepted and tried in it."""

    def among(starts: Flags) -> Any:
        return lambda t: (int(t.accepted[starts].sum()), int(t.tried[starts].sum()))

    def at(place: int) -> Any:
        def count(t: Tries) -> tuple[int, int]:
            good = int((t.accepted[mine] >= place).sum())
            return good, good + int((t.refused[mine] & (t.accepted[mine] == place - 1)).sum())

        return count

    task = trace.prompts["category"].to_numpy()[trace.prompt]
    for name in dict.fromkeys(task[mine]):
        yield "task", str(name), among(mine & (task == name))
    for place in range(1, longest + 1):
        yield "position", str(place), at(place)
    for low, high in zip(STRETCHES, (*STRETCHES[1:], None), strict=True):
        inside = mine & (trace.position >= low) & (trace.position < (high or np.inf))
        yield "time", f"{low}-{high - 1}" if high else f"{low}-", among(inside)
