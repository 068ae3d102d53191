"""Luck of many requests from one stream: to make one for each would take longer than all of their steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simspec.streams import stream

# How far apart requests begin: what :meth:`numpy.random.PCG64.jumped` jumps, 2**128 over the golden ratio.
_JUMP = 210306068529402873165736369884012333109
_PERIOD = 1 << 128


class Luck:
    """What requests draw depends on the seed and on their number alone."""

    def __init__(self, seed: int):
        self._random = stream(seed, "acceptance", "drawn")
        bits = self._random.bit_generator
        assert isinstance(bits, np.random.PCG64)
        self._bits, self._at = bits, 0

    def draws(self, request_id: int, count: int) -> NDArray[np.float64]:
        """A request's first ``count`` numbers between 0 and 1."""
        begin = request_id * _JUMP
        self._bits.advance((begin - self._at) % _PERIOD)
        self._at = begin + count
        return self._random.random(count)
