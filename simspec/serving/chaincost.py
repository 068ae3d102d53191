"""What intermediates of a chain cost: one forward each over the rows that have something to verify.

Conventions of :mod:`simspec.replay.lockstep`: a forward is as wide as what its model has not read of the
text and what it is given, at the context that the step begins with. Under funnel-truncate a model that is
given nothing of a row stays idle there and falls behind; under funnel-replace it always reads, since it adds
a token.

With one chain, intermediates read every prompt when the target does, in forwards of their own. Where several
chains are there to choose among, none does: who has missed more than a full acceptance leaves reads that in
the same forward or, where that is cheaper (where rows are padded, say), in one of its own before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simspec.serving.batch import Batch
from simspec.serving.choosing import ChainView
from simspec.serving.config import Serving
from simspec.serving.graphs import Price
from simspec.serving.pricing import Pricer

Ints = NDArray[np.int64]

# A full acceptance leaves a drafter two tokens to read: its last draft, and the target's token after it.
KEEPS_UP = 2


def catch_up(price_ns: Price, lag: Ints, batch: Batch) -> int:
    """Nanoseconds to read what was missed of rows, ``lag`` tokens each, all but the last."""
    behind = lag > KEEPS_UP
    rows = int(np.count_nonzero(behind))
    if not rows:
        return 0
    missed, read = (lag - 1) * behind, (batch.context - lag) * behind
    width, tokens, longest, context = (
        int(of.reduce(counts)) for counts in (missed, read) for of in (np.maximum, np.add)
    )
    return price_ns(rows, width, tokens, longest, context)


class ChainCost:
    """Prices what lies between drafter and target, and tells policies what chains cost.

    Attributes:
        links: which models each chain uses; ``names``: their names, the target's last.
    """

    def __init__(self, serving: Serving, pricer: Pricer):
        self.pricer = pricer
        self.links = serving.chains
        candidates = serving.candidates
        self.names = [(one.drafter, *one.intermediates, serving.costs.target) for one in candidates]
        self._middles = [[pricer.middle(m) for m in one.intermediates] for one in candidates]

    def verifying(self, chain: int, batch: Batch) -> int:
        """Forwards of the intermediates of a chain that is in use."""
        replace, spent = self.links[chain].replace, 0
        for price_ns, row, given in zip(self._middles[chain], batch.middles, batch.given, strict=False):
            runs = batch.decoding > 0 if replace else given > 0
            lag = batch.lags[row] * runs
            whole = self._forward(price_ns, runs, lag + given, batch)
            late = catch_up(price_ns, lag, batch) if batch.several else 0
            if late:
                apart = np.where(lag > KEEPS_UP, 1, lag) + given
                whole = min(whole, late + self._forward(price_ns, runs, apart, batch))
            spent += whole
        return spent

    def _forward(self, price_ns: Price, runs: NDArray[np.bool_], width: Ints, batch: Batch) -> int:
        rows = int(np.count_nonzero(runs))
        if not rows:
            return 0
        held, padded = batch.context * runs, self.pricer.padded
        widest, longest = (int(width.max()), int(held.max())) if padded else (1, 0)
        return price_ns(rows, widest, int(width.sum()), longest, int(held.sum()))

    def reading(self, *prompts: int) -> int:
        """The intermediates of the only chain read prompts, as one forward's shape each."""
        return sum(price_ns(*prompts) for price_ns in self._middles[0])

    def catch_up_ns(self, chain: int, batch: Batch) -> int:
        """What the intermediates of a chain take to read what they have missed."""
        rows = self.links[chain].middles
        return sum(
            catch_up(price_ns, batch.lags[row], batch)
            for price_ns, row in zip(self._middles[chain], rows, strict=True)
        )

    def view(
        self, chain: int, batch: Batch, longest: int, plain: float, counts: Sequence[tuple[float, float]]
    ) -> ChainView:
        """A chain as policies weigh it: rows alike, none behind.

        Args:
            longest: context of the longest row, where a cost looks at that.
            plain: seconds of a step without drafts.
        """
        pricer, rows, tokens = self.pricer, batch.rows, batch.context_tokens
        draft_ns, lookup = pricer.drafters[chain]
        verifiers = [*self._middles[chain], pricer.target_ns]

        def drafting(n: int) -> float:
            if lookup:
                return draft_ns(rows, n, rows * n, longest, tokens) * 1e-9
            return n * draft_ns(rows, 1, rows, longest, tokens) * 1e-9

        def verify(level: int, width: float) -> float:
            shape = rows, math.ceil(width), int(rows * width + 0.5), longest, tokens
            spent = verifiers[level - 2](*shape)
            return (spent + pricer.overhead_ns if level > len(verifiers) else spent) * 1e-9

        return ChainView(counts, plain, drafting, verify, self.links[chain].replace)
