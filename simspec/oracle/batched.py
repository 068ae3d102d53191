"""The bound on any schedule of a batch in lock-step: programs of single requests at their shares of forwards.

Theorem. Let S be some k requests of a batch, s a share of at most k rows (:mod:`simspec.cost.shares`), and
L(i) the least time of request i alone, over all schedules of the candidates, with every forward priced by
s and every cycle at overhead / k. Then the batch takes at least the sum of L(i) over S, whatever chooses
the candidates: one for the batch or one a request, knowing the past or the future.

Proof. Fix what the batch did. Request i went through cycles of candidates of its own, each with forwards
whose widths hang on i's own past alone; so these cycles are a schedule of i alone, which at shares takes L(i)
at least. Every forward F of the batch is in the cycles of the requests that are its rows, and by (1)
takes no less than the shares of those of S in it; every cycle's overhead is no less than overhead / k for
each of S that is in it, since these are k at most. Summing over forwards and cycles gives the batch's time on
one side and at least the sum of L(i) on the other.

Every S counts, so the greatest bound is that of the k requests with the greatest L, for the best k: few rows
where a forward costs the same for one as for all, and the batch goes on until its longest request ends. It
need not be reached: one candidate for all, unequal lengths of texts and padding cost what no share has.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.cost.shares import share
from simspec.oracle.lagged import LaggedProgram
from simspec.replay.candidates import CandidateTable
from simspec.traces.index import Ints

Floats = NDArray[np.float64]


def sizes(batch: int) -> list[int]:
    """The sizes of S that are tried for a batch: one request, half of them, all of them."""
    return sorted({1, max(batch // 2, 1), batch})


def least_at_shares(table: CandidateTable, cost: CostModel, rows: int, starts: Ints) -> Floats:
    """L(i) of the requests that begin at flat positions ``starts``, shape as theirs."""
    program = LaggedProgram(table, share(cost, rows))
    return np.array([program.least(int(start)).seconds for start in starts])


def bound_seconds(least: Mapping[int, Floats], requests: Ints) -> Floats:
    """The greatest of the bounds on each batch, (G,).

    Args:
        least: L of all requests, by size of S.
        requests: those of each batch, as indices of ``least``'s arrays, (G, B).
    """
    found = []
    for rows in sizes(requests.shape[1]):
        longest = np.sort(least[rows][requests], axis=1)[:, ::-1]
        found.append(longest[:, :rows].sum(axis=1))
    return np.asarray(np.max(found, axis=0))
