"""Serving engines that go wrong in one thing each; what clusters do wrong is in tests/faulty_clusters.py."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simspec.serving import applying, engine, simulate
from simspec.serving.batch import Batch
from simspec.serving.door import Door
from simspec.serving.drafting import Drafting
from simspec.serving.engine import Engine
from simspec.serving.kvcache import Pool
from simspec.serving.recorder import Recorder
from simspec.serving.request import Ticket
from simspec.serving.scheduling import Scheduler
from simspec.serving.stepcost import StepCost
from simspec.serving.verdicts import _Drawn, _Texts

Patch = pytest.MonkeyPatch


def wrapped(patch: Patch, owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Put ``around(rightly, *args)`` where a function was."""
    rightly = getattr(owner, name)
    patch.setattr(owner, name, lambda *args, **more: around(rightly, *args, **more))


def keeps_a_block(patch: Patch) -> None:
    """Whoever leaves keeps its last block, if it had several."""

    def release(rightly: Any, pool: Pool, slot: int) -> None:
        kept = int(pool.held[slot]) > 1
        rightly(pool, slot)
        pool.free -= kept

    wrapped(patch, Pool, "release", release)


def keeps_rejected_drafts(patch: Patch) -> None:
    """Blocks of rejected drafts are not given back, where they should be."""
    patch.setattr(Scheduler, "give_back", lambda self: None)


def forgets_a_drafters_block(patch: Patch) -> None:
    """A block of the drafter's is lost with whoever leaves."""

    def leave(rightly: Any, scheduler: Scheduler, slot: int) -> Ticket:
        ticket: Ticket = rightly(scheduler, slot)
        for pool in scheduler.pools[1:]:
            pool.free -= 1
        return ticket

    wrapped(patch, Scheduler, "leave", leave)


def _done(patch: Patch, change: Callable[[Any], dict[str, Any]]) -> None:
    def apply(rightly: Any, *args: Any) -> Any:
        done = rightly(*args)
        return done._replace(**change(done))

    wrapped(patch, engine, "apply", apply)


def tells_a_token_too_many(patch: Patch) -> None:
    """Steps tell of one token more than was emitted."""
    _done(patch, lambda done: {"emitted": done.emitted + 1})


def tells_an_accepted_draft_too_few(patch: Patch) -> None:
    """Steps tell of one accepted draft less."""
    _done(patch, lambda done: {"accepted": max(done.accepted - 1, 0)})


def tells_prompts_twice(patch: Patch) -> None:
    """What is read of prompts is told twice."""
    _done(patch, lambda done: {"read": 2 * done.read})


def forgets_patience(patch: Patch) -> None:
    """Nobody is withdrawn."""
    patch.setattr(Door, "_withdraw", lambda self, ticket: None)


def has_a_longer_queue(patch: Patch) -> None:
    """A queue takes one more than its limit."""

    def accept(rightly: Any, one: Engine, ticket: Ticket) -> bool:
        right = one.serving
        if right.queue_limit is not None:
            one.serving = dataclasses.replace(right, queue_limit=right.queue_limit + 1)
        taken: bool = rightly(one, ticket)
        one.serving = right
        return taken

    wrapped(patch, Engine, "accept", accept)


def rejects_too_much(patch: Patch) -> None:
    """A request needs a token more than it does, to be let in."""
    wrapped(patch, Scheduler, "fits_alone", lambda rightly, s, prompt, output: rightly(s, prompt, output + 1))


def reads_beyond_the_budget(patch: Patch) -> None:
    """Rows that decode do not count."""
    wrapped(patch, Scheduler, "_chunks", lambda rightly, s, budget: rightly(s, s.serving.token_budget))


def serves_the_last_first(patch: Patch) -> None:
    """The newest is admitted first."""

    def admit(rightly: Any, scheduler: Scheduler, now: int) -> list[int]:
        if scheduler.queue and scheduler.batch.vacant:
            scheduler.queue.rotate(1)
        return rightly(scheduler, now)  # type: ignore[no-any-return]

    wrapped(patch, Scheduler, "admit", admit)


def serves_batch_after_batch(patch: Patch) -> None:
    """Nobody is admitted before all have ended."""
    wrapped(patch, Scheduler, "admit", lambda rightly, s, now: [] if s.batch.occupied else rightly(s, now))


def preempts_the_oldest(patch: Patch) -> None:
    """Who was admitted first loses its place."""
    patch.setattr(
        Batch, "youngest", lambda self: min((t.admission, s) for s, t in enumerate(self.tickets) if t)[1]
    )


def loses_the_preempted(patch: Patch) -> None:
    """Whoever loses its place is not put back into the queue."""

    def plan(rightly: Any, scheduler: Scheduler) -> Any:
        planned = rightly(scheduler)
        for _ in range(planned.preempted):
            scheduler.queue.popleft()
        return planned

    wrapped(patch, Scheduler, "plan", plan)


def swaps_in_for_nothing(patch: Patch) -> None:
    """To come back from the host takes no time."""

    def move(rightly: Any, scheduler: Scheduler, ticket: Ticket) -> None:
        moved = scheduler._moved
        rightly(scheduler, ticket)
        scheduler._moved = scheduler._moved if ticket.swapped else moved

    wrapped(patch, Scheduler, "_move", move)


def has_first_tokens_early(patch: Patch) -> None:
    """A first token is out a nanosecond before its step ends."""
    wrapped(patch, applying, "_first_token", lambda rightly, *args: rightly(*args[:-1], args[-1] - 1))


def forgets_a_pass(patch: Patch) -> None:
    """A request that leaves is told one pass less."""

    def leave(rightly: Any, batch: Batch, slot: int) -> Ticket:
        ticket: Ticket = rightly(batch, slot)
        ticket.passes = max(ticket.passes - 1, 0)
        return ticket

    wrapped(patch, Batch, "leave", leave)


def drafts_past_the_end(patch: Patch) -> None:
    """A row drafts one token more than there is room for."""

    def draft(rightly: Any, batch: Batch, length: int, available: Any) -> int:
        batch.room += batch.decoding
        drafted: int = rightly(batch, length, available)
        batch.room -= batch.decoding
        return drafted

    wrapped(patch, Batch, "draft", draft)


def ends_a_token_early(patch: Patch) -> None:
    """A request is done with one token to go."""
    patch.setattr(Batch, "finished", lambda self: np.flatnonzero(self.room < 1).tolist())


def sees_no_arrivals(patch: Patch) -> None:
    """Several steps at once go past arrivals that would have been admitted."""
    wrapped(patch, engine, "stride", lambda rightly, *args: rightly(*args[:-2], float("inf"), args[-1]))


def counts_who_comes_at_once(patch: Patch) -> None:
    """The number in the system is raised before the time until then is counted."""

    def arrive(recorder: Recorder, now: int) -> None:
        recorder.arrived += 1
        recorder.inside += 1
        recorder._count_until(now)

    patch.setattr(Recorder, "arrive", arrive)


def accepts_all(patch: Patch) -> None:
    """Whatever is drafted is right."""
    for kind in (_Drawn, _Texts):
        patch.setattr(kind, "accepted", lambda self, drafted: drafted.copy())


def is_luckier_in_other_slots(patch: Patch) -> None:
    """What is accepted depends on the slot."""
    wrapped(
        patch,
        _Texts,
        "accepted",
        lambda rightly, texts, drafted: np.roll(rightly(texts, drafted), 1) * (drafted > 0),
    )


def reads_beside_decoding(patch: Patch) -> None:
    """Prompts are read beside decoding, always."""

    def plan(rightly: Any, scheduler: Scheduler) -> Any:
        right, scheduler.serving = scheduler.serving, dataclasses.replace(scheduler.serving, mixed=True)
        planned = rightly(scheduler)
        scheduler.serving = right
        return planned

    wrapped(patch, Scheduler, "plan", plan)


def is_idle_for_nothing(patch: Patch) -> None:
    """A step that drafts nothing costs no more for that."""

    def price(rightly: Any, cost: StepCost, plan: Any, *args: Any) -> Any:
        found = rightly(cost, plan, *args)
        return found._replace(overhead_ns=min(found.overhead_ns, cost.pricer.overhead_ns))

    wrapped(patch, StepCost, "price", price)


def thinks_longer(patch: Patch) -> None:
    """Clients think for a nanosecond more than they do."""
    wrapped(patch, simulate, "nanoseconds", lambda rightly, s, name="": rightly(s, name) + (not name))


def drafts_one_less(patch: Patch) -> None:
    """Rows draft one token less than the policy says."""
    wrapped(
        patch, Batch, "draft", lambda rightly, batch, length, left: rightly(batch, max(length - 1, 0), left)
    )


def submits_all(patch: Patch) -> None:
    """What rows hold back is told as submitted, and nothing as drafted beyond it."""

    def settle(rightly: Any, drafting: Drafting, *args: Any) -> int:
        length: int = rightly(drafting, *args)
        drafting.drafted = drafting.submitted
        return length

    wrapped(patch, Drafting, "_each", settle)


# Each with the scenarios of the nightly search in which it matters.
FAULTS: dict[Callable[[Patch], None], str] = {
    keeps_a_block: "small",
    keeps_rejected_drafts: "varied",
    forgets_a_drafters_block: "small",
    tells_a_token_too_many: "small",
    tells_an_accepted_draft_too_few: "small",
    tells_prompts_twice: "small",
    forgets_patience: "small",
    has_a_longer_queue: "small",
    rejects_too_much: "small",
    reads_beyond_the_budget: "crowds",
    serves_the_last_first: "small",
    serves_batch_after_batch: "small",
    preempts_the_oldest: "scarce memory",
    loses_the_preempted: "scarce memory",
    swaps_in_for_nothing: "scarce memory",
    has_first_tokens_early: "small",
    forgets_a_pass: "small",
    drafts_past_the_end: "small",
    ends_a_token_early: "small",
    sees_no_arrivals: "long answers",
    counts_who_comes_at_once: "small",
    accepts_all: "small",
    is_luckier_in_other_slots: "scarce memory",
    reads_beside_decoding: "small",
    is_idle_for_nothing: "small",
    thinks_longer: "small",
    drafts_one_less: "small",
    submits_all: "varied",
}
