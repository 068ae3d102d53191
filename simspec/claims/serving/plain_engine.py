"""The engine's loop without events, for open loops: to stop after every decision, and to go wrong on purpose.

It makes the decisions of :class:`simspec.serving.engine.Engine` by the same scheduler, and a test holds its
tables against the engine's. A scheduler that is spoiled, put in here, makes a faulty engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from simspec.claims.serving.laws import Lived, Run, told
from simspec.strategies.small_engines import Scenario

if TYPE_CHECKING:
    from simspec.serving.request import Ticket
    from simspec.serving.scheduling import Scheduler
    from simspec.serving.step import Plan

# Makes a scheduler go wrong.
Spoil = Callable[["Scheduler"], None]
# Hears which decision it is after, and the scheduler.
Watch = Callable[[str, "Scheduler"], None]


def supported(scenario: Scenario) -> bool:
    """Whether this loop can serve it: an open loop without limits on the queue or on time."""
    serving = scenario.serving
    limits = (serving.queue_limit, serving.patience_seconds, scenario.until)
    return not scenario.clients and limits == (None, None, None)


def serve_plainly(scenario: Scenario, spoil: Spoil | None = None, watch: Watch | None = None) -> Lived:
    """Serve an open loop step by step; raises ValueError for anything else."""
    from simspec.serving.applying import apply
    from simspec.serving.recorder import Recorder
    from simspec.serving.request import Outcome, Request, Ticket
    from simspec.serving.scheduling import Scheduler
    from simspec.serving.simulate import Records
    from simspec.serving.stepcost import StepCost

    if not supported(scenario):
        raise ValueError(f"no open loop without limits: {scenario}")
    serving, recorder, cost = scenario.serving, Recorder(emissions=True), StepCost(scenario.serving)
    steps, told_by = recorder.of(0), serving.speculation
    verdicts = None if told_by is None else told_by.source.open(serving.slots, scenario.seed)
    scheduler = Scheduler(serving, None if verdicts is None else verdicts.available, cost)
    if spoil is not None:
        spoil(scheduler)
    asked = [Request(i, *size) for i, size in enumerate(scenario.sizes)]
    coming = list(zip(scenario.instants, asked, strict=True))

    def see(when: str) -> None:
        if watch is not None:
            watch(when, scheduler)

    def come(now: int) -> None:
        """Whoever comes until now, at that instant too."""
        while coming and coming[0][0] <= now:
            at, request = coming.pop(0)
            recorder.arrive(at)
            ticket = Ticket(request, at)
            if scheduler.fits_alone(request.prompt_tokens, request.output_tokens):
                ticket.replica = 0
                scheduler.queue.append(ticket)
            else:
                recorder.end(ticket, Outcome.REJECTED, at)

    now = 0
    while coming or scheduler.has_work:
        if not scheduler.has_work:
            now = coming[0][0]
            come(now)
            continue
        for slot in scheduler.admit(now):
            ticket = scheduler.batch.ticket(slot)
            if verdicts is not None:
                verdicts.seat(slot, ticket.request.request_id, ticket.produced, ticket.request.output_tokens)
        see("admission")
        plan = scheduler.plan()
        see("planning")
        began, price = now, cost.price(plan, scheduler.batch)
        now += price.total_ns
        come(now)
        done = apply(scheduler, verdicts, plan, steps, now)
        steps.add(began, price, plan, done)
        see("the step")
        for ticket in sorted(map(scheduler.leave, done.finished), key=_number):
            recorder.end(ticket, Outcome.FINISHED, now)
        see("leaving")
    tables, ended = recorder.close(), recorder.outcomes
    kept = (tables["steps"], tables["requests"], tables["emissions"], None)
    return told(scenario, Records(*kept, recorder.changed_at, recorder.arrived, ended, recorder.request_ns))


def faulty(spoil: Spoil) -> Run:
    """An engine whose scheduler is spoiled, for the scenarios that this loop can serve."""
    return lambda scenario: serve_plainly(scenario, spoil) if supported(scenario) else None


def _number(ticket: Ticket) -> int:
    return ticket.request.request_id


# Faults. Each replaces something of one scheduler.


def last_come_first(scheduler: Scheduler) -> None:
    """Admits the newest of those who wait."""
    rightly = scheduler.admit

    def admit(now: int) -> list[int]:
        if scheduler.queue and scheduler.batch.vacant:
            scheduler.queue.rotate(1)
        return rightly(now)

    scheduler.admit = admit  # type: ignore[method-assign]


def batch_after_batch(scheduler: Scheduler) -> None:
    """Static batching: admits nobody before the whole batch has ended."""
    rightly = scheduler.admit
    scheduler.admit = lambda now: [] if scheduler.batch.occupied else rightly(now)  # type: ignore[method-assign]


def loses_preempted(scheduler: Scheduler) -> None:
    """Whoever loses its place is not put back into the queue."""
    rightly = scheduler.plan

    def plan() -> Plan:
        planned = rightly()
        for _ in range(planned.preempted):
            scheduler.queue.popleft()
        return planned

    scheduler.plan = plan  # type: ignore[method-assign]


def keeps_drafters_blocks(scheduler: Scheduler) -> None:
    """Whoever leaves frees the target's blocks alone."""

    def leave(slot: int) -> Ticket:
        scheduler.pools[0].release(slot)
        return scheduler.batch.leave(slot)

    scheduler.leave = leave  # type: ignore[method-assign]


def keeps_rejected_drafts(scheduler: Scheduler) -> None:
    """Blocks of rejected drafts are not given back, where they should be."""
    scheduler.give_back = lambda: None  # type: ignore[method-assign]
