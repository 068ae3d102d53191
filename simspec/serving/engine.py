"""The engine: one loop that admits, plans, prices, waits, and applies, step after step.

Continuous batching at the level of iterations: requests enter and leave between steps. What a step does
is decided in :mod:`simspec.serving.scheduling`; what the target accepts of its drafts is asked only when
its time is over (:mod:`simspec.serving.applying`).
"""

from __future__ import annotations

from collections.abc import Generator

from simpy import Environment
from simpy.events import Event

from simspec.serving.applying import apply
from simspec.serving.candidates import Several
from simspec.serving.clock import Pause, Signal, Stage, nanoseconds
from simspec.serving.config import Serving
from simspec.serving.recorder import Recorder
from simspec.serving.request import NEVER, Outcome, Request, Ticket
from simspec.serving.scheduling import Scheduler
from simspec.serving.step import Plan, Price
from simspec.serving.stepcost import StepCost
from simspec.serving.stride import Stride, stride


class Engine:
    """One simulated engine in a SimPy environment whose time is whole nanoseconds.

    Args:
        seed: of the verdicts' luck.
        until: nanoseconds at which the simulation ends, if it does before all are served.
    """

    def __init__(
        self, env: Environment, serving: Serving, seed: int, recorder: Recorder, until: int | None = None
    ):
        self.env, self.serving, self.recorder, self.until = env, serving, recorder, until
        speculation = serving.speculation
        self.verdicts = verdicts = None if speculation is None else speculation.open(serving.slots, seed)
        self.cost = StepCost(serving)
        if verdicts is None:
            self.scheduler = Scheduler(serving, None, self.cost)
        else:
            use = verdicts.use if isinstance(verdicts, Several) else None
            self.scheduler = Scheduler(serving, verdicts.available, self.cost, verdicts.blocks, use)
        patience = serving.patience_seconds
        self.patience_ns = None if patience is None else nanoseconds(patience)
        self.steps = 0
        self._wake: Signal | None = None
        self._answered = False
        env.process(self._run())

    def _run(self) -> Generator[Event, None, None]:
        scheduler, recorder = self.scheduler, self.recorder
        while True:
            while not scheduler.has_work:
                self._wake = Signal(self.env)
                yield self._wake
            now = int(self.env.now)
            for slot in scheduler.admit(now):
                self._seat(slot)
            plan = scheduler.plan()
            price = self.cost.price(plan, scheduler.batch)
            if several := self._stride(plan, price, now):
                yield Pause(self.env, several.ends[-1] - now, Stage.STEP)
                several.apply(scheduler, self.verdicts, recorder, self.steps)
                self.steps += len(several.ends)
                self._end(scheduler.batch.finished())
            else:
                yield Pause(self.env, price.total_ns, Stage.STEP)
                done = apply(scheduler, self.verdicts, plan, recorder, self.steps, now + price.total_ns)
                recorder.add_step(self.steps, now, price, plan, done)
                self.steps += 1
                if done.finished:
                    self._end(done.finished)
            if self._answered:  # clients who have their answer may send the next request right now
                self._answered = False
                yield Pause(self.env, 0, Stage.PLAN)

    def _stride(self, plan: Plan, price: Price, now: int) -> Stride | None:
        if plan.length or plan.chunks or not self.serving.stride or self.recorder.emissions:
            return None
        return stride(self.scheduler, self.cost, plan, price, now, self.env.peek(), self.until)

    def _seat(self, slot: int) -> None:
        if self.verdicts is not None:
            ticket = self.scheduler.batch.ticket(slot)
            request = ticket.request
            self.verdicts.seat(slot, request.request_id, ticket.produced, request.output_tokens)

    def _end(self, slots: list[int]) -> None:
        """Requests that have all their tokens leave; of several, the one with the lowest number first."""
        tickets = [self.scheduler.leave(slot) for slot in slots]
        for ticket in sorted(tickets, key=_number) if len(slots) > 1 else tickets:
            self._close(ticket, Outcome.FINISHED)

    def _close(self, ticket: Ticket, outcome: Outcome) -> None:
        self.recorder.end(ticket, outcome, int(self.env.now))
        if ticket.done is not None:
            ticket.done.fire(Stage.ARRIVE)
            self._answered = True

    # -- the door -----------------------------------------------------------------------------------------

    def submit(self, request: Request, *, wait: bool = False) -> Signal | None:
        """A request comes now. With ``wait``, returns an event that fires when it has ended."""
        done = Signal(self.env) if wait else None
        ticket = Ticket(request, int(self.env.now), done)
        self.recorder.arrive(ticket.arrived_at)
        scheduler, limit = self.scheduler, self.serving.queue_limit
        full = limit is not None and len(scheduler.queue) >= limit
        if full or not scheduler.fits_alone(request.prompt_tokens, request.output_tokens):
            self._close(ticket, Outcome.REJECTED)
            return done
        scheduler.queue.append(ticket)
        if self.patience_ns is not None:
            gone = Pause(self.env, self.patience_ns, Stage.ARRIVE)
            gone.callbacks.append(lambda _: self._withdraw(ticket))
        if self._wake is not None:
            self._wake.fire(Stage.PLAN)
            self._wake = None
        return done

    def _withdraw(self, ticket: Ticket) -> None:
        if ticket.admitted_at == NEVER:
            self.scheduler.queue.remove(ticket)
            self._close(ticket, Outcome.TIMED_OUT)

    def stop(self) -> None:
        """The simulation is over: whoever is still here is recorded as unfinished."""
        held = [slot for slot, ticket in enumerate(self.scheduler.batch.tickets) if ticket is not None]
        here = [self.scheduler.leave(slot) for slot in held]
        for ticket in sorted([*here, *self.scheduler.queue], key=_number):
            self.recorder.end(ticket, Outcome.UNFINISHED, int(self.env.now))


def _number(ticket: Ticket) -> int:
    return ticket.request.request_id
