"""Where a warm-up ends, found from the run itself: MSER-5 (Simulation 69(6), 1997).

Observations are put together by fives. Of all beginnings that can be cut off, up to half of the run, that one
goes whose rest tells its own mean best: the least squared standard error, the sum of squares about the mean
over the square of the count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

TOGETHER = 5
# With fewer batches their standard error is no more than chance.
FEWEST = 10


@dataclass(frozen=True)
class Choice:
    """What is cut off.

    Attributes:
        observations: of which, so many; ``left_out`` from the first on.
        remark: why it is not to be trusted, if it is not.
    """

    observations: int
    left_out: int
    remark: str | None = None


def mser(values: Sequence[int]) -> Choice:
    """The beginning of a series of whole numbers to cut off; of several as good, the shortest."""
    count = len(values) // TOGETHER
    if count < FEWEST:
        return Choice(len(values), 0, f"fewer than {FEWEST * TOGETHER} observations: nothing is left out")
    sums = [sum(values[i : i + TOGETHER]) for i in range(0, count * TOGETHER, TOGETHER)]
    # Of the rest from each batch on. Python's whole numbers: squares of nanoseconds are beyond 64 bits, and a
    # series that does not change has no error at all.
    total = list(accumulate(reversed(sums)))[::-1]
    squares = list(accumulate(z * z for z in reversed(sums)))[::-1]
    errors = [
        (rest * squares[count - rest] - total[count - rest] ** 2) / rest**3
        for rest in range(count, count - count // 2 - 1, -1)
    ]
    cut = errors.index(min(errors))
    remark = "the run is too short: half of it is left out, and more might be" if cut == count // 2 else None
    return Choice(len(values), cut * TOGETHER, remark)


def waiting(arrived: Ints, left: Ints, until: int) -> tuple[list[int], int]:
    """The queue over time: how long requests waited in each of equal slices of [0, until), summed.

    Args:
        arrived, left: when each request began and ceased to wait, (N,), nanoseconds.

    Returns:
        request-nanoseconds of N slices, and the length of one.
    """
    count = len(arrived)
    width = until // count if count else 0
    if not width:
        return [], 0
    found = np.zeros(count, np.int64)
    for instants, sign in ((arrived, 1), (left, -1)):
        slices = instants // width
        instants, slices = instants[slices < count], slices[slices < count]
        # To the end of its own slice, and in all that come after.
        np.add.at(found, slices, sign * ((slices + 1) * width - instants))
        found[1:] += sign * width * np.cumsum(np.bincount(slices, minlength=count))[:-1]
    waited: list[int] = found.tolist()
    return waited, width
