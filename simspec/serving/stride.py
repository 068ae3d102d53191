"""Several steps at once, where nothing can change between them.

While the same rows decode, nobody drafts, no prompt is read, no request ends or can be admitted and
memory lasts, a step differs from the one before it only in its context, so all of them can be priced
in one go. The tables come out the same as step by step, which a test checks byte for byte.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.serving.recorder import Steps
from simspec.serving.scheduling import Scheduler
from simspec.serving.step import Plan, Price
from simspec.serving.stepcost import StepCost
from simspec.serving.verdicts import Verdicts

Ints = NDArray[np.int64]

# Fewer steps than this are not worth the arrays; more than that not worth their memory.
FEWEST, MOST = 4, 1024


@dataclass(frozen=True)
class Stride:
    """m steps that begin at ``began`` and end at ``ends``, all with the rows of ``plan``.

    Attributes:
        verify_ns: nanoseconds of each step's forward, shape (m,).
    """

    plan: Plan
    began: int
    ends: list[int]
    verify_ns: Ints
    overhead_ns: int

    def apply(self, scheduler: Scheduler, verdicts: Verdicts | None, recorder: Steps) -> None:
        """Move rows, memory, texts and tables to the end of the last step."""
        batch, count, rows = scheduler.batch, len(self.ends), self.plan.rows
        past = np.arange(count)
        starts = np.array([self.began, *self.ends[:-1]])
        blocks = [scheduler.blocks_during(pool, past) for pool in scheduler.pools]
        # Whoever came at the instant at which a step ends was there when the next one began.
        newcomers = len(scheduler.queue) - self.plan.queued
        came = [scheduler.queue[-n].queued_at for n in range(newcomers, 0, -1)]
        finished = np.zeros(count, np.int64)
        finished[-1] = np.count_nonzero(batch.room < count)
        recorder.add_many(
            count,
            started_at_ns=starts,
            verify_ns=self.verify_ns,
            overhead_ns=self.overhead_ns,
            queued_requests=self.plan.queued + np.searchsorted(came, starts, side="right"),
            decoding_requests=rows,
            emitted_tokens=rows,
            context_tokens=batch.context_tokens + rows * past,
            target_blocks=blocks[0],
            drafter_blocks=blocks[1] if scheduler.charges_drafter else 0,
            finished_requests=finished,
        )
        if verdicts is not None:
            for _ in range(count):
                verdicts.move(batch.decoding)
        scheduler.hold(count - 1)
        batch.advance_plainly(count)


def stride(
    scheduler: Scheduler,
    cost: StepCost,
    plan: Plan,
    price: Price,
    now: int,
    event_at: float,
    until: int | None,
) -> Stride | None:
    """The steps from ``now`` on that will be like the planned one, or None where those are few.

    Args:
        price: of the planned step.
        event_at: when something else happens next in the simulation: until then nobody arrives.
        until: when the simulation ends; only steps that end before it count.
    """
    serving, batch = scheduler.serving, scheduler.batch
    policy = None if serving.speculation is None else serving.speculation.policy
    if (
        not plan.rows
        or plan.length
        or plan.chunks
        or plan.preempted
        or plan.moved
        or not (policy is None or policy.rows_only)
    ):
        return None
    steps = min(batch.shortest + 1, MOST)
    # Who waits behind a full batch or a full memory goes on waiting; else whoever comes is admitted.
    admits = not scheduler.queue and batch.vacant
    if steps < FEWEST or (admits and event_at - now < FEWEST * price.total_ns):
        return None
    if serving.patience_seconds is not None or not scheduler.can_hold(steps - 1):
        return None
    past = np.arange(steps)
    verify = cost.pricer.decoding_ns(
        plan.rows, cost.longest(batch) + past, plan.context_tokens + plan.rows * past
    )
    ends = (now + np.cumsum(verify + price.overhead_ns)).tolist()
    if admits:
        steps = min(steps, bisect_left(ends, event_at) + 1)
    if until is not None:
        steps = min(steps, bisect_left(ends, until))
    if steps < 1:
        return None
    return Stride(plan, now, ends[:steps], verify[:steps], price.overhead_ns)
