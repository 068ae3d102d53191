"""Drafters to choose among, each with its own luck on the same texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.errors import unknown_name
from simspec.serving.verdicts import Blocks, Source, Verdicts

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Candidate:
    """A further drafter.

    Attributes:
        drafter: its name in ``cost``.
        source: what the target accepts of its drafts. Sources of one trace put a request at one place of
            one text.
        cost: prices it, as ``drafter_cost`` does the drafter that is named in the costs.
        lookup: whether it is a look-up.
    """

    drafter: str
    source: Source
    cost: CostModel
    lookup: bool = False

    def __post_init__(self) -> None:
        if self.drafter not in self.cost.models:
            raise unknown_name("model", self.drafter, self.cost.models, where=self.cost.name)


class Several:
    """Verdicts on several drafters, of which one is in use; run state as :class:`Verdicts`."""

    def __init__(self, verdicts: Sequence[Verdicts]):
        self.verdicts, self.current = verdicts, verdicts[0]

    def use(self, drafter: int) -> None:
        """From now on, drafts are this one's."""
        self.current = self.verdicts[drafter]

    def seat(self, slot: int, request_id: int, produced: int, output_tokens: int) -> None:
        for one in self.verdicts:
            one.seat(slot, request_id, produced, output_tokens)

    def available(self) -> Ints:
        return self.current.available()

    def blocks(self) -> Blocks:
        return self.current.blocks()

    def accepted(self, drafted: Ints) -> Ints:
        return self.current.accepted(drafted)

    def move(self, emitted: Ints) -> None:
        for one in self.verdicts:
            one.move(emitted)
