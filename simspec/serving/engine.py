"""The engine: one loop that admits, plans, prices, waits, and applies, step after step.

Continuous batching at the level of iterations: requests enter and leave between steps. They come from a
door and go back to it (:mod:`simspec.serving.door`). What a step does is decided in
:mod:`simspec.serving.scheduling`; what the target accepts of its drafts is asked only when its time is over
(:mod:`simspec.serving.applying`).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

from simpy import Environment, Interrupt
from simpy.events import Event

from simspec.serving.applying import apply
from simspec.serving.candidates import Several
from simspec.serving.clock import Pause, Signal, Stage
from simspec.serving.config import Serving
from simspec.serving.devices import Devices
from simspec.serving.recorder import Recorder
from simspec.serving.request import Outcome, Ticket
from simspec.serving.scheduling import Scheduler
from simspec.serving.step import Plan, Price
from simspec.serving.stepcost import StepCost
from simspec.serving.stride import Stride, stride


class Door(Protocol):
    """Where requests go when they leave an engine."""

    def close(self, ticket: Ticket, outcome: Outcome) -> None: ...

    def hand_over(self, ticket: Ticket) -> None: ...


class Engine:
    """One simulated engine in a SimPy environment whose time is whole nanoseconds.

    Args:
        seed: of the verdicts' luck.
        until: nanoseconds at which the simulation ends, if it does before all are served.
        number: of several.
        alone: nobody else decides anything: what comes at an instant comes before steps that end then.
        reads_only: hand requests over when their prompt is read.
        devices: where its drafters run, if not on its own device.

    Attributes:
        up: False while it has failed; ``fails_at``: when it will, in nanoseconds, None for never.
        step_began: when the step under way began, in nanoseconds; None between steps.
    """

    door: Door

    def __init__(
        self,
        env: Environment,
        serving: Serving,
        seed: int,
        recorder: Recorder,
        until: int | None = None,
        *,
        number: int = 0,
        alone: bool = True,
        reads_only: bool = False,
        devices: Devices | None = None,
    ):
        self.env, self.serving, self.seed, self.until = env, serving, seed, until
        self.recorder = recorder.of(number)
        self.number, self.reads_only, self._crowded = number, reads_only, not alone
        self.cost = StepCost(serving, devices)
        self._step, self._plan = Stage.STEP + number, Stage.PLAN + number
        self.fails_at: int | None = None
        self.come_back()

    def come_back(self) -> None:
        """Start, or start again: with nothing from before."""
        speculation = self.serving.speculation
        self.verdicts = verdicts = (
            None if speculation is None else speculation.open(self.serving.slots, self.seed)
        )
        if verdicts is None:
            self.scheduler = Scheduler(self.serving, None, self.cost)
        else:
            several = verdicts if isinstance(verdicts, Several) else None
            use, handed = (several.use, several.handed) if several else (None, None)
            self.scheduler = Scheduler(
                self.serving, verdicts.available, self.cost, verdicts.blocks, use, handed
            )
        self.up = True
        self.step_began: int | None = None
        self._wake: Signal | None = None
        self._answered = False
        self._process = self.env.process(self._run())

    def _run(self) -> Generator[Event, None, None]:
        try:
            yield from self._steps()
        except Interrupt:  # it has failed
            return

    def _steps(self) -> Generator[Event, None, None]:
        scheduler, recorder = self.scheduler, self.recorder
        yield Pause(self.env, 0, self._plan)  # processes begin ahead of all stages
        while True:
            while not scheduler.has_work:
                self._wake = Signal(self.env)
                yield self._wake
            now = int(self.env.now)
            for slot in scheduler.admit(now):
                self._seat(slot)
            plan = scheduler.plan()
            price = self.cost.price(plan, scheduler.batch, now)
            if several := self._stride(plan, price, now):
                yield Pause(self.env, several.ends[-1] - now, self._step)
                several.apply(scheduler, self.verdicts, recorder)
                self._end(scheduler.batch.finished())
            else:
                self.step_began = now
                yield Pause(self.env, price.total_ns, self._step)
                self.step_began = None
                done = apply(scheduler, self.verdicts, plan, recorder, now + price.total_ns)
                recorder.add(now, price, plan, done)
                if done.finished:
                    self._end(done.finished)
                if self.reads_only:
                    self._hand_over()
            # Clients who have their answer may send the next request right now, and others may decide too.
            if self._answered or self._crowded:
                self._answered = False
                yield Pause(self.env, 0, self._plan)

    def _stride(self, plan: Plan, price: Price, now: int) -> Stride | None:
        if plan.length or plan.chunks or not self.serving.stride or self.recorder.emissions:
            return None
        limits = [at for at in (self.until, self.fails_at) if at is not None]
        end = min(limits) if limits else None
        return stride(self.scheduler, self.cost, plan, price, now, self.env.peek(), end)

    def _seat(self, slot: int) -> None:
        if self.verdicts is not None:
            ticket = self.scheduler.batch.ticket(slot)
            request = ticket.request
            self.verdicts.seat(slot, request.request_id, ticket.produced, request.output_tokens)

    def _end(self, slots: list[int]) -> None:
        """Requests that have all their tokens leave; of several, the one with the lowest number first."""
        tickets = [self.scheduler.leave(slot) for slot in slots]
        for ticket in sorted(tickets, key=_number) if len(slots) > 1 else tickets:
            self._answered |= ticket.done is not None
            self.door.close(ticket, Outcome.FINISHED)

    def _hand_over(self) -> None:
        """Requests whose prompt is read leave for where they decode, the one with the lowest number first."""
        batch = self.scheduler.batch
        read = [slot for slot in self.scheduler.in_order() if slot not in batch.prefilling]
        for ticket in sorted(map(self.scheduler.leave, read), key=_number):
            if self.serving.speculation is None:
                ticket.lags = ()
            self.door.hand_over(ticket)

    # -- the door's side ----------------------------------------------------------------------------------

    @property
    def load(self) -> int:
        """Requests in it."""
        return len(self.scheduler.queue) + self.scheduler.batch.occupied

    def accept(self, ticket: Ticket) -> bool:
        """A request joins the queue, unless that is full or the request could never be served here."""
        scheduler, limit, request = self.scheduler, self.serving.queue_limit, ticket.request
        full = limit is not None and len(scheduler.queue) >= limit and not ticket.carried
        output = ticket.produced + 1 if self.reads_only else request.output_tokens
        if full or not scheduler.fits_alone(request.prompt_tokens, output):
            return False
        if ticket.carried and (scheduler.batch.several or len(ticket.lags) != len(scheduler.batch.lags)):
            # The drafters here have read nothing of it.
            ticket.lags = (request.prompt_tokens + ticket.produced,) * len(scheduler.batch.lags)
        scheduler.queue.append(ticket)
        ticket.replica, ticket.waits_in = self.number, scheduler.queue
        if self._wake is not None:
            self._wake.fire(self._plan)
            self._wake = None
        return True

    def fail(self) -> tuple[int | None, list[Ticket], list[Ticket]]:
        """Now: when the step under way began, and who was in the batch and in the queue."""
        self.up = False
        self._process.interrupt()
        return self.step_began, *self.empty()

    def empty(self) -> tuple[list[Ticket], list[Ticket]]:
        """Whoever is in the batch, in order of admission, and in the queue: none of them stays."""
        batch = [self.scheduler.leave(slot) for slot in self.scheduler.in_order()]
        queue = list(self.scheduler.queue)
        self.scheduler.queue.clear()
        return batch, queue


def _number(ticket: Ticket) -> int:
    return ticket.request.request_id
