"""Which prompts estimates are fitted on, and which they are scored on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simspec.compare.batches import Draws, draw_prompts
from simspec.errors import BadInput
from simspec.traces.index import Ints, Trace

ALL = "all"


@dataclass(frozen=True)
class Part:
    """Estimates are made from the draws of ``fit`` and held against the replay of the draws of ``score``.

    Attributes:
        task: the category that all its prompts are of, or "all".
        fold: 1 and 2 where one half is fitted on and the other scored, 0 where both are all prompts.
    """

    task: str
    fold: int
    fit: Draws
    score: Draws

    @property
    def name(self) -> str:
        return self.task if not self.fold else f"{self.task}, half {self.fold}"


def halves(trace: Trace) -> tuple[Ints, Ints]:
    """Two disjoint halves of the prompts, every category in both; prompts alike are on one side.

    Distinct prompts of a category go to either side in turn, by the order of their hashes.
    """
    sides: tuple[list[int], list[int]] = ([], [])
    for _, rows in trace.prompts.groupby("category", sort=False):
        for i, (_, same) in enumerate(sorted(rows.groupby("prompt_hash").groups.items())):
            sides[i % 2].extend(int(p) for p in same)
    # The same prompt may have been recorded under two categories.
    hashes = trace.prompts["prompt_hash"].to_numpy()
    first = np.array(sorted(sides[0]), dtype=np.int64)
    second = np.array(sorted(p for p in sides[1] if hashes[p] not in set(hashes[first])), dtype=np.int64)
    return first, second


def parts(trace: Trace, draws: int, seed: int, *, split: bool = False, by_task: bool = False) -> list[Part]:
    """All prompts, and each task by itself if asked for; both ways round if split.

    Raises:
        BadInput: when a task has too few prompts to be split.
    """
    category = trace.prompts["category"].to_numpy()
    tasks = [ALL, *dict.fromkeys(category)] if by_task else [ALL]
    everything = np.arange(len(trace.prompts))
    sides = halves(trace) if split else (everything,)
    found = []
    for task in tasks:
        chosen = [side[(category[side] == task) | (task == ALL)] for side in sides]
        if any(not len(side) for side in chosen):
            raise BadInput(
                f"{task!r} has too few prompts to be split", where=trace.folder, allowed="at least two"
            )
        drawn = [draw_prompts(trace, draws, seed, side) for side in chosen]
        if split:
            found += [Part(str(task), k + 1, drawn[k], drawn[1 - k]) for k in (0, 1)]
        else:
            found.append(Part(str(task), 0, drawn[0], drawn[0]))
    return found
