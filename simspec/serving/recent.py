"""What levels of chains have lately accepted of what was handed to them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from simspec.serving.batch import Batch


class Recent:
    """Counts of accepted and tried tokens, older steps counting less.

    Args:
        chains: names of each chain's models, from the drafter to the target.
        remembered: how much of what was counted a step leaves.
        pooled: whether all steps in which one model hands tokens to another count together, whichever chain
            they stand in; else each chain has counts of its own.
    """

    def __init__(self, chains: Sequence[Sequence[str]], remembered: float, *, pooled: bool = False):
        places: dict[tuple[object, ...], int] = {}
        self._places = [
            [
                places.setdefault((lower, upper) if pooled else (chain, level), len(places))
                for level, (lower, upper) in enumerate(pairwise(names))
            ]
            for chain, names in enumerate(chains)
        ]
        self.remembered = remembered
        self._accepted = [0.0] * len(places)
        self._tried = [0.0] * len(places)

    def counts(self, chain: int) -> list[tuple[float, float]]:
        """(accepted, tried) of what each level of a chain handed to the next, the drafter's first."""
        return [(self._accepted[place], self._tried[place]) for place in self._places[chain]]

    def forget(self) -> None:
        """A step has passed."""
        self._accepted = [n * self.remembered for n in self._accepted]
        self._tried = [n * self.remembered for n in self._tried]

    def learn(self, chain: int, batch: Batch) -> None:
        """A step has passed in which a chain drafted and every row moved on."""
        self.forget()
        places, accepted = self._places[chain], batch.accepted_now
        given = batch.given if batch.middles else (batch.submitted_now,)
        passed = (*batch.passed, accepted) if batch.middles else (accepted,)
        for place, offered, taken in zip(places, given, passed, strict=True):
            good = int(np.add.reduce(taken))
            self._accepted[place] += good
            self._tried[place] += good + int(np.count_nonzero(taken < offered))
        # Who might have drafted and had nothing to draft.
        might = batch.decoding * (batch.room + accepted + 1) > 0
        self._tried[places[0]] += int(np.count_nonzero(might & (batch.drafted_now == 0)))
