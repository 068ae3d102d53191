"""Clusters that go wrong in one thing each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from simspec.serving.devices import Devices
from simspec.serving.door import Door
from simspec.serving.engine import Engine
from simspec.serving.recorder import Recorder
from simspec.serving.request import Ticket
from simspec.serving.routing import Router
from tests.faulty_serving import Patch, wrapped


def numbers_steps_twice(patch: Patch) -> None:
    """An engine that comes back numbers its steps anew."""

    def come_back(rightly: Any, one: Engine) -> None:
        one.recorder.count = 0
        rightly(one)

    wrapped(patch, Engine, "come_back", come_back)


def forgets_whose_turn_it_is(patch: Patch) -> None:
    """Round-robin begins with the first each time."""

    def choose(rightly: Any, router: Router, *args: Any) -> int:
        router._turn = 0
        return rightly(router, *args)  # type: ignore[no-any-return]

    wrapped(patch, Router, "choose", choose)


def counts_the_queue_alone(patch: Patch) -> None:
    """Least-loaded does not see who is in the batch."""
    patch.setattr(Engine, "load", property(lambda self: len(self.scheduler.queue)))


def has_no_sessions(patch: Patch) -> None:
    """Every request is a session of its own."""
    wrapped(
        patch,
        Router,
        "choose",
        lambda rightly, router, r, up: rightly(router, r._replace(session=r.request_id), up),
    )


def forgets_what_it_threw_away(patch: Patch) -> None:
    """Tokens that a failure costs are not counted."""
    _starting_over(patch, lambda ticket, before: setattr(ticket, "discarded", 0))


def keeps_a_first_token(patch: Patch) -> None:
    """A request that has lost all of its answer keeps the instant of its first token."""
    _starting_over(patch, lambda ticket, before: setattr(ticket, "first_token_at", before))


def counts_restarts_twice(patch: Patch) -> None:
    """A failure counts as two."""
    _starting_over(patch, lambda ticket, before: setattr(ticket, "restarts", ticket.restarts + 1))


def _starting_over(patch: Patch, change: Callable[[Ticket, int], None]) -> None:
    def start_over(rightly: Any, ticket: Ticket, *, keep: bool) -> None:
        before = ticket.first_token_at
        rightly(ticket, keep=keep)
        change(ticket, before)

    wrapped(patch, Ticket, "start_over", start_over)


def tries_once_more(patch: Patch) -> None:
    """A request is lost one failure too late."""

    def fail(rightly: Any, door: Door, *args: Any) -> None:
        right, door.cluster = (
            door.cluster,
            dataclasses.replace(door.cluster, retries=door.cluster.retries + 1),
        )
        rightly(door, *args)
        door.cluster = right

    wrapped(patch, Door, "_fail", fail)


def fails_late(patch: Patch) -> None:
    """Steps go on for as long as a failed engine is told to be down, and less."""
    wrapped(
        patch,
        Recorder,
        "add_outage",
        lambda rightly, recorder, number, failed, *row: rightly(recorder, number, failed - 1, *row),
    )


def hands_over_in_no_time(patch: Patch) -> None:
    """A cache is there at once."""

    def hand_over(rightly: Any, door: Door, ticket: Ticket) -> None:
        right, door.cluster = (
            door.cluster,
            dataclasses.replace(door.cluster, transfer_seconds=0.0, transfer_token_seconds=0.0),
        )
        rightly(door, ticket)
        door.cluster = right

    wrapped(patch, Door, "hand_over", hand_over)


def reads_again_where_it_decodes(patch: Patch) -> None:
    """Whoever is handed over comes without its cache."""

    def bring(rightly: Any, door: Door, ticket: Ticket) -> None:
        ticket.carried = False
        rightly(door, ticket)

    wrapped(patch, Door, "_bring", bring)


def has_devices_without_end(patch: Patch) -> None:
    """Nobody waits for a drafter's device."""

    def serve(rightly: Any, devices: Devices, now: int, *work: int) -> Any:
        devices._free_at = [0] * len(devices._free_at)
        return rightly(devices, now, *work)

    wrapped(patch, Devices, "serve", serve)


def sends_one_way(patch: Patch) -> None:
    """The link to the drafter's device takes no time."""

    def serve(rightly: Any, devices: Devices, *work: int) -> Any:
        right, devices.link_ns = devices.link_ns, 0
        found = rightly(devices, *work)
        devices.link_ns = right
        return found

    wrapped(patch, Devices, "serve", serve)


# Each with the scenarios of the nightly search in which it matters.
FAULTS: dict[Callable[[Patch], None], str] = {
    numbers_steps_twice: "clusters",
    forgets_whose_turn_it_is: "clusters that stay up",
    counts_the_queue_alone: "clusters that stay up",
    has_no_sessions: "clusters that stay up",
    forgets_what_it_threw_away: "clusters",
    keeps_a_first_token: "clusters",
    counts_restarts_twice: "clusters",
    tries_once_more: "clusters",
    fails_late: "clusters",
    hands_over_in_no_time: "clusters",
    reads_again_where_it_decodes: "clusters",
    has_devices_without_end: "drafters apart",
    sends_one_way: "drafters apart",
}
