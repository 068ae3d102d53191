"""The narrower assumptions about verdicts that others make, fitted to a record that can be replayed.

What a serving engine's counters would say of the record is all that these know: acceptance by place in the
block, one rate, or one mean. All three emit as many tokens a pass on average as replay does at that
draft length; they differ in how these are spread over requests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from simspec.errors import BadInput
from simspec.serving.verdicts import Mean, Rates, Recorded, Source

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Fitted:
    """What counters say of a record, decoded with blocks of ``length`` drafts.

    Attributes:
        survival: share of passes in which the first j + 1 drafts were all accepted, ``length`` numbers. A
            pass without a draft counts as one that accepts none.
        drafted_share: tokens drafted over those that would be if every pass drafted ``length``.
    """

    length: int
    survival: tuple[float, ...]
    drafted_share: float

    @property
    def emitted_per_pass(self) -> float:
        return 1 + sum(self.survival)

    @property
    def rate(self) -> float:
        """The one rate of independent drafts that emits as many tokens a pass: a + .. + a^length."""
        wanted = sum(self.survival)
        if wanted <= 0:
            return 0.0
        if wanted >= self.length:
            return 1.0
        powers = np.arange(1, self.length + 1)
        return float(brentq(lambda a: float((a**powers).sum()) - wanted, 0.0, 1.0, xtol=1e-12))

    def sources(self, replay: Recorded) -> dict[str, Source]:
        """Replay and the three assumptions, by name."""
        return {
            "replay": replay,
            "rates": Rates(self.survival),
            "iid": Rates.independent(self.rate, self.length),
            "mean": Mean(self.survival),
        }


def fit(record: Recorded, length: int) -> Fitted:
    """Decode every text of a record with fixed blocks, begun at each of its positions, once round the text.

    Every position begins one request, as the serving engine draws them. Requests on a longer text
    have more passes here than one answer of some length would; each is weighed by 1 / text length, so that
    all requests count with the same number of tokens.

    Raises:
        BadInput: without a draft there is nothing to fit.
    """
    if length < 1:
        raise BadInput("a policy that drafts nothing tells nothing of acceptance", allowed="at least 1 draft")
    sizes = np.diff(record.offsets)
    text = np.repeat(np.arange(len(sizes)), sizes)
    begins, size = record.offsets[text], sizes[text]
    position = np.arange(len(text)) - begins
    left = size.copy()
    counts = np.zeros(length + 1)
    drafted = 0.0
    while len(left):
        flat = begins + position
        asked = np.minimum(record.available[flat], length)
        accepted = np.minimum(record.matched[flat], asked)
        counts += np.bincount(accepted, weights=1 / size, minlength=length + 1)
        drafted += float((asked / size).sum())
        position = (position + accepted + 1) % size
        left = left - accepted - 1
        going = left > 0
        begins, size, position, left = begins[going], size[going], position[going], left[going]
    passes = float(counts.sum())
    # Passes that accepted at least j + 1 drafts; summed from the end, so that none is below the next.
    reached = np.cumsum(counts[::-1])[::-1][1:]
    survival = tuple(min(float(n) / passes, 1.0) for n in reached)
    return Fitted(length, survival, drafted / (passes * length))
