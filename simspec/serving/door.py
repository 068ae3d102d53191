"""The door of a cluster: where requests come in, wait while nobody can take them, and are counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence

from simpy import Environment
from simpy.events import Event

from simspec.errors import BadInput
from simspec.serving.clock import NANOSECONDS, Pause, Signal, Stage, nanoseconds
from simspec.serving.cluster import Cluster
from simspec.serving.engine import Engine
from simspec.serving.recorder import Recorder
from simspec.serving.request import NEVER, Outcome, Request, Ticket
from simspec.serving.routing import Router

# Failures by chance have no end of their own, and who fails sooner than a step takes serves nobody.
MOST_OUTAGES = 100_000


class Pool:
    """Engines that do the same work.

    Attributes:
        held: who waits because none of them is up.
    """

    def __init__(self, engines: Sequence[Engine], router: Router):
        self.engines, self.router = engines, router
        self.held: deque[Ticket] = deque()

    def choose(self, ticket: Ticket) -> Engine | None:
        """Where a request goes; None while nobody is up."""
        if len(self.engines) == 1:
            return self.engines[0] if self.engines[0].up else None
        up = [engine for engine in self.engines if engine.up]
        return up[self.router.choose(ticket.request, up)] if up else None


class Door:
    """Where requests come from, for engines, and where engines are, for requests.

    Args:
        engines: all of them, in the order of their numbers; their door is set here.

    Attributes:
        sources: processes that may still send requests.
        outages: so far.
    """

    def __init__(self, env: Environment, cluster: Cluster, engines: Sequence[Engine], recorder: Recorder):
        self.env, self.cluster, self.engines, self.recorder = env, cluster, engines, recorder
        decoding = len(cluster.replicas)
        self.decode = Pool(engines[:decoding], Router(cluster.routing))
        self.entry = Pool(engines[decoding:], Router(cluster.routing)) if cluster.prefill else self.decode
        self.sources = self.outages = 0
        patience = engines[0].serving.patience_seconds
        self._patience_ns = None if patience is None else nanoseconds(patience)
        self._carried: dict[Ticket, None] = {}
        for engine in engines:
            engine.door = self

    @property
    def over(self) -> bool:
        """Whether all that came has ended, and no more will come."""
        return not self.sources and not self.recorder.inside

    # -- requests -----------------------------------------------------------------------------------------

    def submit(self, request: Request, *, wait: bool = False) -> Signal | None:
        """A request comes now. With ``wait``, returns an event that fires when it has ended."""
        done = Signal(self.env) if wait else None
        ticket = Ticket(request, int(self.env.now), done)
        self.recorder.arrive(ticket.arrived_at)
        self._place(ticket, self.entry)
        if self._patience_ns is not None and not ticket.ended:
            gone = Pause(self.env, self._patience_ns, Stage.ARRIVE)
            gone.callbacks.append(lambda _: self._withdraw(ticket))
        return done

    def close(self, ticket: Ticket, outcome: Outcome) -> None:
        """A request is over."""
        ticket.ended = True
        self.recorder.end(ticket, outcome, int(self.env.now))
        if ticket.done is not None:
            ticket.done.fire(Stage.ARRIVE)

    def _place(self, ticket: Ticket, pool: Pool) -> None:
        engine = pool.choose(ticket)
        ticket.queued_at = int(self.env.now)
        if engine is None:
            pool.held.append(ticket)
            ticket.waits_in = pool.held
        elif not engine.accept(ticket):
            self.close(ticket, Outcome.REJECTED)

    def _withdraw(self, ticket: Ticket) -> None:
        if ticket.admitted_at == NEVER and not ticket.ended:
            assert ticket.waits_in is not None
            ticket.waits_in.remove(ticket)
            self.close(ticket, Outcome.TIMED_OUT)

    # -- from one engine to another -----------------------------------------------------------------------

    def hand_over(self, ticket: Ticket) -> None:
        """Its prompt is read; its KV cache goes to a replica, which is chosen when it is there."""
        cluster = self.cluster
        tokens = ticket.request.prompt_tokens + ticket.produced - 1
        took = nanoseconds(cluster.transfer_seconds + tokens * cluster.transfer_token_seconds)
        ticket.carried = True
        self._carried[ticket] = None
        there = Pause(self.env, took, Stage.ARRIVE)
        there.callbacks.append(lambda _: self._bring(ticket))

    def _bring(self, ticket: Ticket) -> None:
        del self._carried[ticket]
        self._place(ticket, self.decode)

    # -- failures -----------------------------------------------------------------------------------------

    def watch(self, engine: Engine, outages: Iterator[tuple[int, int]]) -> Generator[Event, None, None]:
        """A process in which an engine fails and comes back, at instants that lie in order.

        Raises:
            BadInput: when there are more outages than :data:`MOST_OUTAGES`.
        """
        for failed, back in outages:
            engine.fails_at = failed
            yield Pause(self.env, failed - int(self.env.now), Stage.CHANGE)
            engine.fails_at = None
            if self.over:
                return
            self._fail(engine, failed, back)
            yield Pause(self.env, back - failed, Stage.CHANGE)
            engine.come_back()
            for pool in (self.entry, self.decode):
                waiting, pool.held = pool.held, deque()
                for ticket in waiting:
                    self._place(ticket, pool)

    def _fail(self, engine: Engine, failed: int, back: int) -> None:
        self.outages += 1
        if self.outages > MOST_OUTAGES:
            raise BadInput(
                f"cluster: more than {MOST_OUTAGES:,} outages by {failed / NANOSECONDS:g} s",
                hint="set failures.mean_up_seconds or mean_down_seconds higher, or until_seconds",
            )
        began, in_batch, in_queue = engine.fail()
        self.recorder.add_outage(engine.number, failed, back, began, len(in_batch), len(in_queue))
        cluster = self.cluster
        for ticket in (*in_batch, *in_queue):
            if cluster.on_failure != "lost":
                ticket.start_over(keep=cluster.on_failure == "resume")
            if cluster.on_failure == "lost" or ticket.restarts > cluster.retries:
                self.close(ticket, Outcome.LOST)
            else:
                self._place(ticket, self.entry)

    def stop(self) -> None:
        """The simulation is over: whoever is still here is recorded as unfinished."""
        here = [*self._carried, *self.entry.held]
        here += self.decode.held if self.decode is not self.entry else []
        here += [ticket for engine in self.engines for part in engine.empty() for ticket in part]
        for ticket in sorted(here, key=lambda ticket: ticket.request.request_id):
            self.recorder.end(ticket, Outcome.UNFINISHED, int(self.env.now))
