"""Who drafts in a step and how much: the policy is asked, and what it answers is cut to what can be had."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from simspec.serving.batch import Batch
from simspec.serving.config import Speculation
from simspec.serving.policies import Policy, View
from simspec.serving.row_policies import RowPolicy, RowView
from simspec.serving.stepcost import StepCost
from simspec.serving.switching import DrafterView, Switching
from simspec.serving.verdicts import Blocks
from simspec.speculation.lengths import Decision

Ints = NDArray[np.int64]


class Drafting:
    """The policy's state, and what it sees of the past.

    Args:
        available: how many tokens could be drafted in each slot; of verdicts there is nothing here.
        blocks: what the drafter knows of them, where the source has that.
        use: says which of several drafters drafts from now on.

    Attributes:
        drafter: who drafts, of several.
        drafted, submitted: tokens over all rows, as last settled.
    """

    def __init__(
        self,
        speculation: Speculation,
        batch: Batch,
        cost: StepCost,
        available: Callable[[], Ints],
        blocks: Callable[[], Blocks] | None = None,
        use: Callable[[int], None] | None = None,
    ):
        self.batch, self.cost, self.available, self.blocks, self.use = batch, cost, available, blocks, use
        self.remembered = speculation.remembered
        self.drafter = self.drafted = self.submitted = 0
        self._drafters = range(speculation.drafters)
        self._accepted = [0.0] * speculation.drafters
        self._tried = list(self._accepted)
        policy = speculation.policy
        self.settle: Callable[[int, int], int]
        self._rows: RowPolicy | None = None
        if isinstance(policy, Switching):
            self._switching, self.settle = policy, self._among
        elif isinstance(policy, RowPolicy):
            self._rows, self.settle = policy, self._each
            self._row_state = policy.begin(batch.slots)
            self._fresh = self._row_state.copy()
            self._nothing = np.zeros((batch.slots, policy.longest))
            self._whole = np.full(batch.slots, policy.longest)
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
        confidence, length = self._nothing, self._whole
        if policy.weighs_confidence:
            assert self.blocks is not None
            seen = self.blocks()
            confidence = seen.confidence[:, : policy.longest].astype(np.float64)
            length = seen.length
        view = RowView(
            batch.decoding,
            confidence,
            length,
            lambda longest: cost.seconds(batch, longest),
            lambda drafted, widest, total: cost.verifying_seconds(batch, drafted, widest, total),
        )
        decision = policy.lengths(view, self._row_state)
        asked = np.minimum(decision.drafted, policy.longest)
        self.drafted, self.submitted = batch.draft_each(asked, decision.submitted, self.available())
        return int(np.maximum.reduce(asked * batch.decoding))

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
        if drafter != self.drafter:
            self.drafter = drafter
            batch.use(drafter)
            assert self.use is not None
            self.use(drafter)
        self._carry_out(policy, length)
        if not length:
            self._forget()
        return length

    def _carry_out(self, policy: Policy | Switching, length: int) -> None:
        if not 0 <= length <= policy.longest:
            raise ValueError(f"{policy} answered {length}")
        if length:
            self.drafted = self.submitted = self.batch.draft(length, self.available())
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
        refused = int(np.count_nonzero(batch.accepted_now < batch.submitted_now))
        if self.use is None:
            self._accepted[0] = self._accepted[0] * self.remembered + accepted
            self._tried[0] = self._tried[0] * self.remembered + accepted + refused
        else:
            self._forget()
            self._accepted[self.drafter] += accepted
            self._tried[self.drafter] += accepted + refused
        if self._rows is not None:
            done = Decision(batch.drafted_now, batch.submitted_now)
            self._row_state = self._rows.observe(self._row_state, done, batch.accepted_now)

    def leave(self, slot: int) -> None:
        """Whoever gets this slot next begins anew, even if it was here before."""
        if self._rows is not None:
            self._row_state[slot] = self._fresh[slot]

    def _forget(self) -> None:
        for i in self._drafters:
            self._accepted[i] *= self.remembered
            self._tried[i] *= self.remembered
