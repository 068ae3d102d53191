"""Per-cycle hindsight over chains: the candidate of most tokens a second in this cycle alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.replay.candidates import CandidateTable
from simspec.replay.prices import every_price
from simspec.speculation.routing import Evidence, Pool, Seen, State, View
from simspec.traces.index import Ints


@dataclass(frozen=True)
class MyopicHindsight:
    """argmax of emitted tokens over seconds, lags and all, knowing every verdict. One choice a batch.

    Best for each cycle alone: another schedule can be faster overall (claim S10), so it is no bound.
    """

    table: CandidateTable
    cost: CostModel
    evidence: Evidence = "realised"

    def foresee(self, at: Ints, active: NDArray[np.bool_], lag: Ints) -> Ints:
        """The candidate of each batch, (G,); arguments as for :func:`every_price`."""
        seconds = every_price(self.table, self.cost, at, active, lag)
        tokens = np.where(active, self.table.emitted[:, at], 0).sum(axis=2)
        return np.asarray((tokens / seconds.T).argmax(axis=0))

    def begin(self, pool: Pool, deciders: int) -> State:
        return {}

    def choose(self, pool: Pool, state: State, view: View) -> Ints:
        raise NotImplementedError("hindsight is asked through foresee")

    def observe(self, pool: Pool, state: State, seen: Seen) -> State:
        return state
