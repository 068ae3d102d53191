"""What a step costs: its forwards, one by one, from the rows of the batch.

Conventions of :mod:`simspec.replay.lockstep`: every forward of a step is priced at the context that the
step begins with; a drafter's first forward reads the text that it has not read, so it is two wide after
a full acceptance and wider after steps that drafted nothing; a look-up is asked once a step. With
speculation on, a drafter that is not a look-up reads every prompt when the target does.

Where several drafters are there to choose among, none reads prompts beside the target. The one that drafts
first catches up: rows of which it has missed more than a full acceptance leaves are read by a forward of
their own, all but the last token, at the context that it had read. Intermediates are in
:mod:`simspec.serving.chaincost`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simspec.cost.shape import StepShape
from simspec.serving.batch import Batch
from simspec.serving.chaincost import KEEPS_UP, ChainCost, catch_up
from simspec.serving.choosing import ChainView
from simspec.serving.clock import nanoseconds
from simspec.serving.config import Serving
from simspec.serving.devices import Devices
from simspec.serving.pricing import Drafter, Pricer
from simspec.serving.step import Chunk, Plan, Price

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class StepCost:
    """Prices plans. Holds nothing but prices already asked for."""

    def __init__(self, serving: Serving, devices: Devices | None = None):
        """``devices``: where drafters run, if not on the target's device."""
        speculation = serving.speculation
        self.speculating = speculation is not None
        self.devices = devices
        self.pricer = Pricer(serving.costs, () if speculation is None else speculation.others)
        self.chains = ChainCost(serving, self.pricer)
        self.swap_ns = nanoseconds(serving.memory.block_swap_seconds)
        # Whether a look-up has to be made before anybody knows how much is drafted.
        self._always = speculation is not None and getattr(speculation.policy, "weighs_confidence", False)

    def price(self, plan: Plan, batch: Batch, now: int = 0) -> Price:
        """What the planned step costs, if it begins ``now``.

        A forward over rows that decode and prompts at once is priced as one; ``prefill_ns`` is what it
        takes longer for the prompts. (It may take less where it leaves a graph that was mostly padding, or
        by the noise of a measured table; all of it is then ``verify_ns``.)
        """
        pricer, rows = self.pricer, plan.rows
        draft = middle = verify = prefill = reading = wait = 0
        overhead = pricer.overhead_ns
        width = tokens = longest = 0
        if rows:
            width, tokens, longest = 1, rows + plan.submitted, self.longest(batch)
            if self.speculating:
                draft = self._drafting(plan, batch, longest)
                overhead += 0 if plan.drafted else pricer.idle_ns
                if batch.middles and plan.length:
                    middle = self.chains.verifying(plan.drafter, batch)
            if pricer.padded and plan.submitted:
                width += int(np.maximum.reduce(batch.submitted_now))
            verify = pricer.target_ns(rows, width, tokens, longest, plan.context_tokens)
        if plan.chunks:
            more, most, new, far, read = _sums(plan.chunks)
            together = rows + more, max(width, most), tokens + new, max(longest, far)
            whole = pricer.target_ns(*together, plan.context_tokens + read)
            verify = min(verify, whole)
            prefill = whole - verify
            if self.speculating and not batch.several:
                if not pricer.drafters[0].lookup:
                    reading = pricer.drafters[0].price_ns(more, most, new, far, read)
                if batch.middles:
                    middle += self.chains.reading(more, most, new, far, read)
        if self.devices is None:
            draft += reading
        else:
            draft, wait = self.devices.serve(now, draft, reading, middle + verify + prefill)
        return Price(draft, middle, verify, prefill, plan.moved * self.swap_ns, wait, overhead)

    def longest(self, batch: Batch) -> int:
        """Context of the longest row, where a cost looks at that."""
        return int(np.maximum.reduce(batch.context)) if self.pricer.padded else 0

    # -- as policies weigh it: rows alike, none behind ----------------------------------------------------

    def seconds(self, batch: Batch, longest: int, drafter: int = 0) -> list[float]:
        """A step of the batch at draft lengths 0..longest."""
        pricer, rows, tokens = self.pricer, batch.rows, batch.context_tokens
        context, target, spent = self.longest(batch), pricer.target_ns, pricer.overhead_ns
        price_ns, lookup = pricer.drafters[drafter]
        forward = 0 if lookup or not longest else price_ns(rows, 1, rows, context, tokens)
        found = [(spent + pricer.idle_ns + target(rows, 1, rows, context, tokens)) * 1e-9]
        for n in range(1, longest + 1):
            drafting = price_ns(rows, n, rows * n, context, tokens) if lookup else n * forward
            verifying = target(rows, n + 1, rows * (n + 1), context, tokens)
            found.append((spent + drafting + verifying) * 1e-9)
        return found

    def verifying_seconds(self, batch: Batch, drafted: int, widest: Ints, total: Ints) -> Floats:
        """A step in which every row drafts ``drafted``, by how many drafts are submitted, (m,).

        Args:
            widest: by the row that submits most, (m,).
            total: by all rows, (m,).
        """
        rows, tokens, context = batch.rows, batch.context_tokens, self.longest(batch)
        price_ns, lookup = self.pricer.drafters[0]
        width = drafted if lookup else 1
        drafting = price_ns(rows, width, rows * width, context, tokens) * (1 if lookup else drafted)
        shape = StepShape(np.asarray(rows), widest + 1, total + rows, np.asarray(context), np.asarray(tokens))
        spent = self.pricer.overhead_ns + drafting
        return np.asarray((self.pricer.target_many_ns(shape) + spent) * 1e-9)

    def catch_up_ns(self, lag: Ints, batch: Batch, drafter: int) -> int:
        """What a drafter takes to read what it has missed of rows, ``lag`` tokens each, all but the last."""
        price_ns, lookup = self.pricer.drafters[drafter]
        return 0 if lookup else catch_up(price_ns, lag, batch)

    def chain_catch_up_ns(self, chain: int, batch: Batch) -> int:
        """What the models of a chain take to read what they have missed."""
        row = self.chains.links[chain].drafter
        return self.catch_up_ns(batch.lags[row], batch, chain) + self.chains.catch_up_ns(chain, batch)

    def view(self, chain: int, batch: Batch, counts: Sequence[tuple[float, float]]) -> ChainView:
        """A chain, of whose levels so much is known, for policies that choose among them."""
        (plain,) = self.seconds(batch, 0, chain)
        return self.chains.view(chain, batch, self.longest(batch), plain, counts)

    # -- as it is -----------------------------------------------------------------------------------------

    def _drafting(self, plan: Plan, batch: Batch, longest: int) -> int:
        drafter, drafted = self.pricer.drafters[plan.drafter], batch.drafted_now
        if drafter.lookup:
            if not plan.length and not self._always:
                return 0
            asked = np.maximum(drafted, batch.decoding)
            width = int(np.maximum.reduce(asked)) if self.pricer.padded else 1
            total = int(np.add.reduce(asked))
            return drafter.price_ns(plan.rows, width, total, longest, plan.context_tokens)
        if not plan.drafted:
            return 0
        if not batch.several:
            return self._forwards(drafter, batch, batch.lag)
        lag = batch.lag * (drafted > 0)
        late = self.catch_up_ns(lag, batch, plan.drafter)
        return late + self._forwards(drafter, batch, np.where(lag > KEEPS_UP, 1, lag))

    def _forwards(self, drafter: Drafter, batch: Batch, lag: Ints) -> int:
        """The drafter's forwards, one for each place in the block."""
        drafted, price_ns = batch.drafted_now, drafter.price_ns
        # Sums over the rows whose last forward is the j-th, of whole numbers: exact in float64.
        last, context = np.bincount(drafted).tolist(), np.bincount(drafted, batch.context).tolist()
        unread, width, far = np.bincount(drafted, lag).tolist(), 1, [0] * len(last)
        if self.pricer.padded:
            width, most = int(np.maximum.reduce(lag * (drafted > 0))), np.zeros(len(last), np.int64)
            np.maximum.at(most, drafted, batch.context)
            far = most.tolist()
        spent = rows = context_tokens = longest = 0
        for j in range(len(last) - 1, 0, -1):
            rows, context_tokens, longest = rows + last[j], context_tokens + context[j], max(longest, far[j])
            wide, new = (1, rows) if j > 1 else (width, int(sum(unread[1:])))
            spent += price_ns(rows, wide, new, longest, int(context_tokens))
        return spent


def _sums(chunks: list[Chunk]) -> tuple[int, int, int, int, int]:
    """Prompts to read as one forward's rows, width, tokens, context, and context tokens."""
    if len(chunks) == 1:
        ((_, tokens, read),) = chunks
        return 1, tokens, tokens, read, read
    new, before = [c.tokens for c in chunks], [c.read for c in chunks]
    return len(chunks), max(new), sum(new), max(before), sum(before)
