"""Who drafts in a step and how much: the policy is asked, and what it answers is cut to what can be had."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from simspec.serving.batch import Batch
from simspec.serving.chain_verdicts import Handed
from simspec.serving.choosing import Routed
from simspec.serving.config import Speculation
from simspec.serving.policies import Policy, View
from simspec.serving.recent import Recent
from simspec.serving.row_policies import RowPolicy, RowView
from simspec.serving.stepcost import StepCost
from simspec.serving.switching import DrafterView, Switching
from simspec.serving.verdicts import Blocks, Seen
from simspec.speculation.lengths import Decision

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Blocks of a record that are weighed at once.
AT_ONCE = 4096


class Drafting:
    """The policy's state, and what it sees of the past.

    Args:
        available: how many tokens could be drafted in each slot; of verdicts there is nothing here.
        blocks: what the drafter knows of them, where the source has that.
        use: says which of several chains drafts from now on.
        handed: what goes up a chain that has intermediates.

    Attributes:
        drafter: who drafts, of several.
        drafted, submitted: tokens over all rows, as last settled; submitted to the target.
    """

    def __init__(
        self,
        speculation: Speculation,
        batch: Batch,
        cost: StepCost,
        available: Callable[[], Ints],
        blocks: Callable[[], Seen] | None = None,
        use: Callable[[int], None] | None = None,
        handed: Callable[[Ints, Ints], Handed] | None = None,
    ):
        self.batch, self.cost, self.available, self.blocks, self.use = batch, cost, available, blocks, use
        self.handed = handed
        self.remembered = speculation.remembered
        self.drafter = self.drafted = self.submitted = 0
        self._drafters = range(speculation.drafters)
        self._accepted = [0.0] * speculation.drafters
        self._tried = list(self._accepted)
        policy = speculation.policy
        self.settle: Callable[[int, int], int]
        self._rows: RowPolicy | None = None
        self._recent: Recent | None = None  # level by level, where that is looked at
        if isinstance(policy, Routed):
            self._routed, self.settle = policy, self._by_route
            self._recent = Recent(cost.chains.names, speculation.remembered, pooled=True)
            self._using: tuple[int, int] | None = None
            self._due = 0
        elif isinstance(policy, Switching):
            self._switching, self.settle = policy, self._among
            if any(len(names) > 2 for names in cost.chains.names):
                self._recent, self.settle = (
                    Recent(cost.chains.names, speculation.remembered),
                    self._among_chains,
                )
        elif isinstance(policy, RowPolicy):
            self._rows, self.settle = policy, self._each
            self._row_state = policy.begin(batch.slots)
            self._fresh = self._row_state.copy()
            self._nothing = np.zeros((batch.slots, policy.longest))
            self._whole = np.full(batch.slots, policy.longest)
            self._known: Floats | None = None
        else:
            self._policy, self.settle = policy, self._same
            self._state = policy.begin()

    # -- before a step ------------------------------------------------------------------------------------

    def _same(self, queued: int, free_blocks: int) -> int:
        """One length for all rows. Returns it; each row's own is in the batch then."""
        batch = self.batch
        view = View(
            batch.rows,
            queued,
            batch.context_tokens,
            free_blocks,
            self._accepted[0],
            self._tried[0],
            lambda longest: self.cost.seconds(batch, longest),
        )
        length, self._state = self._policy.length(view, self._state)
        self._carry_out(self._policy, length)
        return length

    def _each(self, queued: int, free_blocks: int) -> int:
        """A length for each row; returns the greatest that was asked for."""
        policy, batch, cost = self._rows, self.batch, self.cost
        assert policy is not None
        confidence, length, weighed = self._nothing, self._whole, None
        if policy.weighs_confidence:
            assert self.blocks is not None
            seen = self.blocks()
            confidence, length = seen.confidence[:, : policy.longest].astype(np.float64), seen.length
            if seen.record is not None and seen.place is not None:
                weighed = self._weighed(policy, seen.record).take(seen.place, axis=0)
        view = RowView(
            batch.decoding,
            confidence,
            length,
            lambda longest: cost.seconds(batch, longest),
            lambda drafted, widest, total: cost.verifying_seconds(batch, drafted, widest, total),
            weighed,
        )
        decision = policy.lengths(view, self._row_state)
        asked = np.minimum(decision.drafted, policy.longest)
        self.drafted, self.submitted = batch.draft_each(asked, decision.submitted, self.available())
        if batch.middles:
            self._hand_up()
        asked *= batch.decoding
        return int(asked[asked.argmax()])

    def _weighed(self, policy: RowPolicy, record: Blocks) -> Floats:
        """What the policy makes of all blocks of the record; only one is ever asked about."""
        if self._known is None:
            parts = []
            for begin in range(0, len(record.length), AT_ONCE):
                some = slice(begin, begin + AT_ONCE)
                sure = record.confidence[some, : policy.longest].astype(np.float64)
                parts.append(policy.weigh(sure, record.length[some]))
            self._known = np.concatenate(parts)
        return self._known

    def _among(self, queued: int, free_blocks: int) -> int:
        """One drafter of several, and one length for all rows."""
        policy, batch, cost = self._switching, self.batch, self.cost
        views = [
            DrafterView(
                self._accepted[i],
                self._tried[i],
                cost.seconds(batch, policy.longest, i),
                cost.catch_up_ns(batch.lags[i], batch, i) * 1e-9,
            )
            for i in self._drafters
        ]
        drafter, length = policy.choose(views, self.drafter)
        self._take(drafter)
        self._carry_out(policy, length)
        if not length:
            self._forget()
        return length

    def _among_chains(self, queued: int, free_blocks: int) -> int:
        """The same where one of them has intermediates."""
        policy, recent = self._switching, self._recent
        assert recent is not None
        views = []
        for i in self._drafters:
            counts = recent.counts(i)
            accepted, tried = counts[0]
            late = self.cost.chain_catch_up_ns(i, self.batch) * 1e-9
            if len(counts) > 1:
                chain = self.cost.view(i, self.batch, counts)
                views.append(DrafterView(accepted, tried, [chain.plain], late, chain))
            else:
                seconds = self.cost.seconds(self.batch, policy.longest, i)
                views.append(DrafterView(accepted, tried, seconds, late))
        drafter, length = policy.choose(views, self.drafter)
        return self._carry_out_chain(policy, drafter, length)

    def _by_route(self, queued: int, free_blocks: int) -> int:
        """One chain and one length, looked at anew now and then."""
        policy, recent = self._routed, self._recent
        assert recent is not None
        if not self._due:
            views = [self.cost.view(i, self.batch, recent.counts(i)) for i in self._drafters]
            self._using, self._due = policy.choose(views, self._using), policy.every
        self._due -= 1
        assert self._using is not None
        return self._carry_out_chain(policy, *self._using)

    def _carry_out_chain(self, policy: Switching | Routed, chain: int, length: int) -> int:
        self._take(chain)
        self._carry_out(policy, length)
        if not length and self._recent is not None:
            self._recent.forget()
        return length

    def _take(self, drafter: int) -> None:
        if drafter != self.drafter:
            self.drafter = drafter
            self.batch.use(drafter)
            assert self.use is not None
            self.use(drafter)

    def _hand_up(self) -> None:
        """What is submitted to a chain goes up to its target."""
        assert self.handed is not None
        batch = self.batch
        self.submitted = batch.hand_up(self.handed(batch.submitted_now, batch.room * batch.decoding))

    def _carry_out(self, policy: Policy | Switching | Routed, length: int) -> None:
        if not 0 <= length <= policy.longest:
            raise ValueError(f"{policy} answered {length}")
        if length:
            self.drafted = self.submitted = self.batch.draft(length, self.available())
            if self.batch.middles:
                self._hand_up()
        else:
            self.batch.draft_nothing()
            self.drafted = self.submitted = 0

    def count(self) -> None:
        """Somebody has lost its place since the lengths were settled."""
        self.drafted, self.submitted = int(self.batch.drafted_now.sum()), int(self.batch.submitted_now.sum())

    # -- after it -----------------------------------------------------------------------------------------

    def learn(self, accepted: int) -> None:
        """Move the recent acceptance by what this step's drafts were worth, and rows by their own."""
        batch = self.batch
        if self._recent is not None:
            self._recent.learn(self.drafter, batch)
            return
        refused = int(np.count_nonzero(batch.accepted_now < batch.submitted_now))
        if self.use is None:
            self._accepted[0] = self._accepted[0] * self.remembered + accepted
            self._tried[0] = self._tried[0] * self.remembered + accepted + refused
        else:
            self._forget()
            self._accepted[self.drafter] += accepted
            self._tried[self.drafter] += accepted + refused
        if self._rows is not None:
            submitted, kept = batch.submitted_now, batch.accepted_now
            if batch.middles:  # of the drafts, not of what intermediates made of them
                submitted, kept = batch.given[0], np.minimum(kept, batch.passed[-1])
            done = Decision(batch.drafted_now, submitted)
            self._row_state = self._rows.observe(self._row_state, done, kept)

    def leave(self, slot: int) -> None:
        """Whoever gets this slot next begins anew, even if it was here before."""
        if self._rows is not None:
            self._row_state[slot] = self._fresh[slot]

    def _forget(self) -> None:
        for i in self._drafters:
            self._accepted[i] *= self.remembered
            self._tried[i] *= self.remembered
