"""The load at which a gain changes sign, with an interval over replications.

Between two loads a gain is interpolated linearly, replication by replication. The interval holds every load
at which the gain's own 95% interval (Student's, over replications) holds zero: a test turned round, as
Fieller does for a ratio. Nothing is resampled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from simspec.scenario.paired import over_replications

Floats = NDArray[np.float64]

Verdict = Literal["stops paying", "starts paying", "pays", "does not pay", "undecided"]


@dataclass(frozen=True)
class Crossover:
    """What a gain does along the loads.

    Attributes:
        verdict: ``pays`` or ``does not pay`` where all signs that are told from zero agree;
            ``undecided`` where none is.
        load: where the mean gain is zero, interpolated; None unless it changes sign.
        low, high: 95% interval of that load; None for one replication.
        before, after: the nearest loads on either side at which the sign is told from zero.
        told: all loads at which it is.
    """

    verdict: Verdict
    load: float | None = None
    low: float | None = None
    high: float | None = None
    before: float | None = None
    after: float | None = None
    told: tuple[float, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def crossover(loads: Sequence[float], gains: Sequence[Sequence[float | None]]) -> Crossover:
    """Where the gain first changes sign.

    Only signs that are told from zero count: a mean gain that flickers around zero by luck changes none. With
    one replication every sign counts.

    Args:
        loads: rising, (L,).
        gains: one row a load, one number a replication, (L, R); above 0 where speculation pays. Loads with a
            gain that is undefined are passed over.
    """
    known = [i for i, row in enumerate(gains) if row and None not in row]
    x = np.array([loads[i] for i in known], np.float64)
    y = np.array([gains[i] for i in known], np.float64)
    signs = [_sign(row) for row in y]
    told = [i for i, sign in enumerate(signs) if sign]
    turns = [(i, j) for i, j in pairwise(told) if signs[i] != signs[j]]
    where = tuple(float(x[i]) for i in told)
    if not told:
        return Crossover("undecided")
    if not turns:
        return Crossover("pays" if signs[told[0]] > 0 else "does not pay", told=where)
    i, j = turns[0]
    load = _zero(x[i : j + 1], y[i : j + 1].mean(axis=1))
    low, high = _interval(x[i : j + 1], y[i : j + 1], load) if y.shape[1] > 1 else (None, None)
    verdict: Verdict = "stops paying" if signs[i] > 0 else "starts paying"
    return Crossover(verdict, load, low, high, float(x[i]), float(x[j]), where)


def _sign(row: Floats) -> int:
    """1 or -1 where a gain's interval leaves out zero; its own sign where there is no interval."""
    found = over_replications(row.tolist())
    assert found.value is not None
    low, high = (found.value if end is None else end for end in (found.low, found.high))
    return int(low > 0) - int(high < 0)


def _zero(x: Floats, mean: Floats) -> float:
    """The first zero of a line through points whose first and last have unlike signs."""
    k = int(np.flatnonzero(np.sign(mean) != np.sign(mean[0]))[0])
    return float(x[k - 1] + (x[k] - x[k - 1]) * mean[k - 1] / (mean[k - 1] - mean[k]))


def _interval(x: Floats, y: Floats, load: float) -> tuple[float, float]:
    """First and last load at which the interpolated gain's interval holds zero.

    At a share w of the way between two loads the gain of replication r is a + w d, so that the interval
    ends at zero where R mean(a + w d)^2 = t^2 var(a + w d): a quadratic in w.
    """
    many = y.shape[1]
    t = float(stats.t.ppf(0.975, many - 1))
    ends = [load]
    for k in range(len(x) - 1):
        a, d = y[k], y[k + 1] - y[k]
        (var_a, both), (_, var_d) = np.cov(a, d)
        square = many * d.mean() ** 2 - t**2 * var_d
        linear = 2 * (many * a.mean() * d.mean() - t**2 * both)
        fixed = many * a.mean() ** 2 - t**2 * var_a
        roots = np.roots([square, linear, fixed])
        shares = roots[np.isreal(roots)].real
        ends += [float(x[k] + w * (x[k + 1] - x[k])) for w in shares if 0 <= w <= 1]
    return min(ends), max(ends)
