"""Plain loops for the slow twins: an agenda in a list, who comes when, and what is written down of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.reference_serving_prices import Row

CHANGE, ARRIVE, STEP, PLAN = 1, 2, 3, 4

Asked = tuple[int, ...]  # request_id, prompt tokens, output tokens, and a session where there are any


class Door:
    """What comes in and goes out; who serves it is added below.

    Args:
        arrivals: (nanoseconds, request) of an open loop.
        clients: or so many clients with ``think`` nanoseconds between the requests of ``asked``. A request
            without session belongs to its client.
        patience: nanoseconds that a request waits for its first place in a batch.
    """

    def __init__(
        self,
        arrivals: list[tuple[int, Asked]],
        clients: int,
        asked: list[Asked],
        think: int,
        until: int | None,
        patience: float | None,
    ):
        self.arrivals, self.asked, self.think, self.until = list(arrivals), list(asked), think, until
        self.clients = clients
        self.patience = None if patience is None else int(patience * 1e9 + 0.5)
        self.now = self.sequence = self.arrived = 0
        self.agenda: list[tuple[int, int, int, int, Callable[[], None]]] = []
        self.here: list[Row] = []
        self.steps: list[dict[str, object]] = []
        self.requests: list[dict[str, object]] = []
        self.emissions: list[dict[str, object]] = []
        if clients:
            for number in range(clients):
                self.at(0, ARRIVE, partial(self.next_of_client, number))
        else:
            self.next_arrival()

    def place(self, row: Row) -> None:
        raise NotImplementedError

    # -- the agenda ---------------------------------------------------------------------------------------

    def at(self, instant: int, stage: int, what: Callable[[], None], number: int = 0) -> None:
        """``number``: of the replica whose step it is: at one instant they go in that order."""
        self.agenda.append((instant, stage, number, self.sequence, what))
        self.sequence += 1

    def run(self) -> None:
        while self.agenda:
            event = min(self.agenda, key=lambda e: e[:4])
            if self.until is not None and event[0] >= self.until:
                break
            self.agenda.remove(event)
            self.now = event[0]
            event[4]()
        if self.until is not None:
            self.now = self.until
        for row in sorted(self.here, key=lambda r: r.request_id):
            self.close(row, "unfinished")

    # -- who comes ----------------------------------------------------------------------------------------

    @property
    def nobody_comes(self) -> bool:
        """All requests are over and no more will come; of clients one knows when they have asked for more."""
        return not (self.here or self.arrivals or self.clients)

    def next_arrival(self) -> None:
        if self.arrivals:
            self.at(self.arrivals[0][0], ARRIVE, self.arrive)

    def arrive(self) -> None:
        while self.arrivals and self.arrivals[0][0] == self.now:
            self.submit(self.arrivals.pop(0)[1])
        self.next_arrival()

    def next_of_client(self, number: int) -> None:
        if self.asked:
            self.submit(self.asked.pop(0), number)
        else:
            self.clients -= 1

    def submit(self, asked: Asked, client: int | None = None) -> None:
        number, prompt, output, *session = asked
        row = Row(number, prompt, output, self.now, *session, client=client)
        if row.session < 0 and client is not None:
            row.session = client
        self.arrived += 1
        self.here.append(row)
        if self.patience is not None:
            self.at(self.now + self.patience, ARRIVE, lambda: self.expire(row))
        self.place(row)

    # -- who goes -----------------------------------------------------------------------------------------

    def expire(self, row: Row) -> None:
        if row in self.here and row.admitted is None:
            row.queue.remove(row)
            self.close(row, "timed_out")

    def close(self, row: Row, outcome: str) -> None:
        self.here.remove(row)
        self.requests.append(
            {
                "request_id": row.request_id,
                "outcome": outcome,
                "replica": row.replica,
                "session": None if row.session < 0 else row.session,
                "arrived_at_ns": row.arrived,
                "admitted_at_ns": row.admitted,
                "first_token_at_ns": row.first,
                "ended_at_ns": self.now,
                "prompt_tokens": row.prompt,
                "output_tokens": row.output,
                "produced_tokens": row.produced,
                "discarded_tokens": row.discarded,
                "passes": row.passes,
                "drafted_tokens": row.drafted,
                "accepted_tokens": row.accepted,
                "preemptions": row.preemptions,
                "restarts": row.restarts,
            }
        )
        if row.client is not None and outcome != "unfinished":
            again = partial(self.next_of_client, row.client)
            later = (lambda: self.at(self.now + self.think, ARRIVE, again)) if self.think else again
            self.at(self.now, ARRIVE, later)
