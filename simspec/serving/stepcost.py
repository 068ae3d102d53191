"""What a step costs: its forwards, one by one, from the rows of the batch.

Conventions of :mod:`simspec.replay.lockstep`: every forward of a step is priced at the context that the
step begins with; a drafter's first forward reads the text that it has not read, so it is two wide after
a full acceptance and wider after steps that drafted nothing; a look-up is asked once a step. With
speculation on, a drafter that is not a look-up reads every prompt when the target does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simspec.serving.batch import Batch
from simspec.serving.clock import nanoseconds
from simspec.serving.config import Serving
from simspec.serving.pricing import Pricer
from simspec.serving.step import Chunk, Plan, Price

Ints = NDArray[np.int64]


class StepCost:
    """Prices plans. Holds nothing but buffers and prices already asked for."""

    def __init__(self, serving: Serving):
        self.costs, self.speculating = serving.costs, serving.speculation is not None
        self.pricer = Pricer(serving.costs)
        self.swap_ns = nanoseconds(serving.memory.block_swap_seconds)
        self._lengths = np.arange(1, serving.lookahead + 1)[:, None]
        self._drafts = np.zeros((serving.lookahead, serving.slots))
        self._weights = np.ones((3, serving.slots))

    def price(self, plan: Plan, batch: Batch) -> Price:
        """What the planned step costs.

        A forward over rows that decode and prompts at once is priced as one; ``prefill_ns`` is what it
        takes longer for the prompts.
        """
        pricer, rows = self.pricer, plan.rows
        draft = verify = prefill = 0
        overhead = pricer.overhead_ns
        width = tokens = longest = 0
        if rows:
            width, tokens, longest = 1, rows + plan.drafted, self.longest(batch)
            if plan.length and (plan.drafted or self.costs.lookup):
                draft = self._drafting(plan, batch, longest)
                width += int(np.maximum.reduce(batch.drafted_now)) if pricer.padded else 0
            if self.speculating and not plan.drafted:
                overhead += pricer.idle_ns
            verify = pricer.target_ns(rows, width, tokens, longest, plan.context_tokens)
        if plan.chunks:
            more, most, new, far, read = _sums(plan.chunks)
            together = rows + more, max(width, most), tokens + new, max(longest, far)
            prefill = pricer.target_ns(*together, plan.context_tokens + read) - verify
            if self.speculating and not self.costs.lookup:
                draft += pricer.drafter_ns(more, most, new, far, read)
        return Price(draft, verify, prefill, plan.moved * self.swap_ns, overhead)

    def longest(self, batch: Batch) -> int:
        """Context of the longest row, where a cost looks at that."""
        return int(np.maximum.reduce(batch.context)) if self.pricer.padded else 0

    def seconds(self, batch: Batch, longest: int) -> list[float]:
        """A step of the batch at draft lengths 0..longest, as policies weigh it: rows alike, none behind."""
        pricer, rows, tokens = self.pricer, batch.rows, batch.context_tokens
        context, lookup = self.longest(batch), self.costs.lookup
        target, drafter, spent = pricer.target_ns, pricer.drafter_ns, pricer.overhead_ns
        forward = 0 if lookup or not longest else drafter(rows, 1, rows, context, tokens)
        found = [(spent + pricer.idle_ns + target(rows, 1, rows, context, tokens)) * 1e-9]
        for n in range(1, longest + 1):
            drafting = drafter(rows, n, rows * n, context, tokens) if lookup else n * forward
            verifying = target(rows, n + 1, rows * (n + 1), context, tokens)
            found.append((spent + drafting + verifying) * 1e-9)
        return found

    def _drafting(self, plan: Plan, batch: Batch, longest: int) -> int:
        pricer, length, drafted = self.pricer, plan.length, batch.drafted_now
        if self.costs.lookup:
            asked = np.maximum(drafted, batch.decoding)
            width = int(np.maximum.reduce(asked)) if pricer.padded else 1
            return pricer.drafter_ns(
                plan.rows, width, int(np.add.reduce(asked)), longest, plan.context_tokens
            )
        # A row for each forward: which slots are in it. Sums of whole numbers are exact in float64.
        inside = np.greater_equal(drafted, self._lengths[:length], out=self._drafts[:length])
        self._weights[1], self._weights[2] = batch.context, batch.lag
        sums = (inside @ self._weights.T).tolist()
        contexts = (inside * batch.context).max(axis=1).tolist() if pricer.padded else [0] * length
        width = int((inside[0] * batch.lag).max()) if pricer.padded else 1
        spent = 0
        for j, (rows, context_tokens, lag) in enumerate(sums):
            if not rows:
                break
            new = rows if j else lag
            spent += pricer.drafter_ns(int(rows), width, int(new), int(contexts[j]), int(context_tokens))
            width = 1
        return spent


def _sums(chunks: list[Chunk]) -> tuple[int, int, int, int, int]:
    """Prompts to read as one forward's rows, width, tokens, context, and context tokens."""
    if len(chunks) == 1:
        ((_, tokens, read),) = chunks
        return 1, tokens, tokens, read, read
    new, before = [c.tokens for c in chunks], [c.read for c in chunks]
    return len(chunks), max(new), sum(new), max(before), sum(before)
