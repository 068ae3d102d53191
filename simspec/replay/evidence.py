"""What a cycle tells a router of acceptance: verdicts of the chain that ran, or how near models are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.replay.candidates import CandidateTable
from simspec.speculation.routing import Clock, Evidence, Seen
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Similarity:
    """1 - TV of each ordered pair of models, summed along the flat positions, shape (pairs, N + 1).

    Where a look-up has no token, nothing overlaps.
    """

    upto: Floats

    @classmethod
    def of(cls, trace: Trace) -> Similarity:
        names = list(trace.manifest.models)
        overlap = np.zeros((len(names) ** 2, len(trace.tokens) + 1))
        flat = trace.offsets[trace.pairs["prompt_id"].to_numpy()] + trace.pairs["position"].to_numpy()
        near = 1.0 - trace.pairs["tv"].to_numpy().astype(np.float64)
        a, b = (
            trace.pairs[c].map({n: i for i, n in enumerate(names)}).to_numpy() for c in ("model_a", "model_b")
        )
        overlap[a * len(names) + b, flat + 1] = overlap[b * len(names) + a, flat + 1] = near
        return cls(np.cumsum(overlap, axis=1))

    def between(self, pair: Ints, begin: Ints, tokens: Ints) -> Floats:
        """Sums over ``tokens`` positions from ``begin``."""
        found: Floats = self.upto[pair, begin + tokens] - self.upto[pair, begin]
        return found


def seen_of(
    table: CandidateTable,
    evidence: Evidence,
    similarity: Similarity | None,
    which: Ints,
    at: Ints,
    active: Bools,
    each: int,
    seconds: Floats,
    clock: Clock | None = None,
) -> Seen:
    """What one cycle did, by decider.

    Args:
        which, at, active: candidate and flat position of every request, and whether it runs, (G, B).
        each: requests of a decider.
        seconds, clock: of each decider's batch, shape (D,) and (D, models).
    """
    which, at, active = which.reshape(-1, each), at.reshape(-1, each), active.reshape(-1, each)

    def summed(values: NDArray[Any]) -> Ints:
        return np.asarray(np.where(active, values, 0).sum(axis=1), dtype=np.int64)

    chosen = which[:, 0]
    drafted = table.drafted[which, at]
    asked = (drafted > 0) | ((table.pool.drafter[chosen] >= 0)[:, None] & table.refused[which, at])
    right = (table.kept[which, at] > 0) & (drafted > 0)
    if evidence == "simscore-all":
        assert similarity is not None
        good, tried = _of_all(table, similarity, which, at, active)
    else:
        good, tried = _of_chain(table, similarity if evidence == "simscore" else None, which, at, active)
    return Seen(
        chosen=chosen,
        rows=active.sum(axis=1),
        tokens=summed(table.emitted[which, at]),
        seconds=seconds,
        submitted=summed(drafted),
        kept=summed(table.kept[which, at]),
        first=np.stack([summed(right), summed(asked)], axis=1),
        good=good,
        tried=tried,
        clock=clock,
    )


def _of_all(
    table: CandidateTable, similarity: Similarity, which: Ints, at: Ints, active: Bools
) -> tuple[Floats, Floats]:
    """Similarity of every pair whose upper model can verify, along the emitted tokens; (D, pairs) each."""
    names = table.pool.names
    emitted = np.where(active, table.emitted[which, at], 0).astype(np.int64)
    good, tried = np.zeros((2, len(which), len(names) ** 2))
    for pair in range(len(names) ** 2):
        lower, upper = divmod(pair, len(names))
        if lower != upper and names[upper] not in table.pool.lookups:
            tried[:, pair] = emitted.sum(axis=1)
            good[:, pair] = similarity.between(np.full_like(at, pair), at, emitted).sum(axis=1)
    return good, tried


def _of_chain(
    table: CandidateTable, similarity: Similarity | None, which: Ints, at: Ints, active: Bools
) -> tuple[Floats, Floats]:
    """Verdicts (or similarity) of neighbours in the chain that ran, at the places that both looked at.

    Those are the accepted tokens of what the upper one was given and the first refused one; a drafter
    that finds nothing counts as refused once. Shapes (D, pairs).
    """
    pool, names = table.pool, len(table.pool.names)
    drafter, middle = pool.drafter[which[:, 0]], pool.middle[which[:, 0]]
    target = np.full_like(drafter, pool.names.index(pool.target))
    remaining = table.trace.remaining[at]
    good, tried = np.zeros((2, len(which), names**2))

    def look(lower: Ints, upper: Ints, block: Ints, accepted: Ints, refused: Bools) -> None:
        rows = np.flatnonzero(lower >= 0)
        accepted = np.minimum(accepted, block)
        looked = np.where(refused, 1, np.minimum(accepted + (accepted < block), remaining))
        looked = np.where(active, looked, 0)[rows]
        pair = (lower * names + upper)[rows]
        if similarity is None:
            near = np.where(looked > 0, accepted[rows], 0).astype(np.float64)
        else:
            # Past what was emitted a block has left the text, and the record what models say along it.
            looked = np.minimum(looked, emitted[rows])
            near = similarity.between(np.broadcast_to(pair[:, None], looked.shape), at[rows], looked)
        good[rows, pair] += near.sum(axis=1)
        tried[rows, pair] += looked.sum(axis=1)

    def cells(column: NDArray[np.int16]) -> Ints:
        return column[which, at].astype(np.int64)

    above, emitted = np.where(middle >= 0, middle, target), cells(table.emitted)
    look(drafter, above, cells(table.drafted), cells(table.verified), table.refused[which, at])
    look(middle, target, cells(table.offered), cells(table.accepted), np.zeros(at.shape, dtype=bool))
    return good, tried
