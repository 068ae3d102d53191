"""Configured as a queue, the engine waits as one, on every path (M7).

Waits follow Lindley's recursion to the nanosecond on one server, and lie within bounds made of Kiefer and
Wolfowitz's on several.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, product

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import shown

# M7


@dataclass(frozen=True)
class Queue:
    """Requests at a queue of ``servers``, in nanoseconds: gaps before each arrival, and services.

    The services are ``services`` times ``unit_ns``.
    """

    servers: int
    unit_ns: int
    gaps: tuple[int, ...]
    services: tuple[int, ...]

    @property
    def arrived(self) -> list[int]:
        return list(accumulate(self.gaps))

    @property
    def service_ns(self) -> list[int]:
        return [n * self.unit_ns for n in self.services]


# Waits of each request in nanoseconds, in order of arrival.
Waits = Callable[[Queue], list[int]]


def engine_waits(queue: Queue) -> list[int]:
    """Waits to admission of the serving engine, configured as this queue.

    One server: one slot, prompts as long as services at ``unit_ns`` a token, and one token of output.
    Several: a slot each, steps of ``unit_ns``, and answers of as many tokens as services have units.
    """
    one = queue.servers == 1
    sizes = [(n, 1) if one else (1, n) for n in queue.services]
    base, token = (0, queue.unit_ns) if one else (queue.unit_ns, 0)
    return served(queue.servers, base * 1e-9, token * 1e-9, sizes, queue.arrived)


def served(
    slots: int, base: float, token: float, sizes: list[tuple[int, int]], arrived: list[int]
) -> list[int]:
    """Waits in an engine whose step takes ``base`` and ``token`` a token, in seconds, and nothing else."""
    from simspec.cost.models import AffineCost
    from simspec.serving.config import Serving
    from simspec.serving.pricing import Costs
    from simspec.strategies.small_engines import Scenario, serve

    cost = AffineCost("made-up", "made up", "target", base, token, 0.0, 0.0, {})
    engine = Serving(Costs(cost, "target"), slots, token_budget=1 << 40)
    requests = serve(Scenario(engine, 0, tuple(sizes), tuple(arrived))).requests
    columns = (requests[name].to_pylist() for name in ("request_id", "arrived_at_ns", "admitted_at_ns"))
    return [admitted - at for _, at, admitted in sorted(zip(*columns, strict=True))]


def lindley(queue: Queue) -> list[int]:
    """W_0 = 0, W_n = max(0, W_(n-1) + S_(n-1) - gap_n) (Lindley 1952)."""
    waits = [0]
    for service, gap in zip(queue.service_ns, queue.gaps[1:], strict=False):
        waits.append(max(0, waits[-1] + service - gap))
    return waits


def servers_wait(servers: int, arrived: list[int], services: list[int]) -> list[int]:
    """Waits, first come, first served, on so many servers (Kiefer and Wolfowitz 1955)."""
    free, found = [0] * servers, []
    for at, service in zip(arrived, services, strict=True):
        begin = max(at, free[0])
        found.append(begin - at)
        heapq.heapreplace(free, begin + service)
    return found


def _as_textbooks_say(waits: Waits, late: int = 1, kept: int = 1) -> Rule:
    """One server: Lindley's. Several: KW(S) <= wait <= KW(S + ``kept`` steps) + ``late`` steps."""

    def rule(queue: Queue) -> Outcome:
        found, arrived, services = waits(queue), queue.arrived, queue.service_ns
        told = (
            f"{queue.servers} servers; requests come at {shown(tuple(arrived))} ns and ask for "
            f"{shown(tuple(services))} ns",
            f"the engine has them wait {shown(tuple(found))} ns",
        )
        if queue.servers == 1:
            right = lindley(queue)
            return None if found == right else against(*told, f"Lindley's recursion: {shown(tuple(right))}")
        step = queue.unit_ns
        low = servers_wait(queue.servers, arrived, services)
        longer = [service + kept * step for service in services]
        high = [w + late * step for w in servers_wait(queue.servers, arrived, longer)]
        if all(a <= wait <= b for a, wait, b in zip(low, found, high, strict=True)):
            return None
        return against(*told, f"the bounds are {shown(tuple(low))} and {shown(tuple(high))}")

    return rule


def _slower(queue: Queue) -> list[int]:
    """An engine that charges a twentieth more for every service."""
    longer = queue.unit_ns + -(-queue.unit_ns // 20)
    return engine_waits(Queue(queue.servers, longer, queue.gaps, queue.services))


def _newest_first(queue: Queue) -> list[int]:
    """Servers that take the newest of those who wait."""
    free, waits = [0] * queue.servers, [0] * len(queue.gaps)
    waiting: list[int] = []
    coming = list(enumerate(queue.arrived))
    while coming or waiting:
        begin = max(free[0], 0 if waiting else coming[0][1])
        while coming and coming[0][1] <= begin:
            waiting.append(coming.pop(0)[0])
        last = waiting.pop()
        waits[last] = begin - queue.arrived[last]
        heapq.heapreplace(free, begin + queue.service_ns[last])
    return waits


def _batch_by_batch(queue: Queue) -> list[int]:
    """Servers that begin together, when all of them are free."""
    waits: list[int] = []
    free = 0
    arrived, services = queue.arrived, queue.service_ns
    while len(waits) < len(arrived):
        n = len(waits)
        begin = max(free, arrived[n])
        batch = [i for i in range(n, min(n + queue.servers, len(arrived))) if arrived[i] <= begin]
        waits += [begin - arrived[i] for i in batch]
        free = begin + max(services[i] for i in batch)
    return waits


def all_queues(level: int) -> Iterator[Queue]:
    """At 1 and 2 servers up to 3 requests (4 at level 2), gaps of 0 to 2.5 units, services of 1 to 3."""
    gaps = ((0, 5, 25), (0, 5, 10, 25), (0, 5, 10, 15, 25))[level]
    for count in range(1, (3, 3, 4)[level] + 1):
        for servers in (1, 2):
            for services in product(range(1, 4 if level else 3), repeat=count):
                for apart in product(gaps, repeat=count - 1):
                    yield Queue(servers, 10, (0, *apart), services)


@st.composite
def queues(draw: st.DrawFn) -> Queue:
    """Up to 30 requests at one to five servers, idle and overloaded."""
    servers, unit, count = draw(st.integers(1, 5)), draw(st.integers(1, 1000)), draw(st.integers(1, 30))
    longest = draw(st.sampled_from((1, 3, 20)))
    services = draw(st.lists(st.integers(1, longest), min_size=count, max_size=count))
    apart = st.integers(0, max(1, unit * draw(st.sampled_from((1, longest, 2 * longest))) // servers))
    return Queue(servers, unit, tuple(draw(st.lists(apart, min_size=count, max_size=count))), tuple(services))


M7_STATEMENT = Statement(
    words=(
        "Configured as a queue, the engine waits as one on every path: with one slot the waits follow "
        "Lindley's recursion to the nanosecond; with c slots and steps of d, a request waits no less than at "
        "c servers first come, first served, and at most d longer than at c servers whose services are d "
        "longer"
    ),
    formula=("c = 1: W_n = max(0, W_(n-1) + S_(n-1) - gap_n);  c > 1: KW(S)_n <= W_n <= KW(S + d)_n + d"),
    rule=_as_textbooks_say(engine_waits),
    over=(
        "all queues of 1 and 2 servers and up to 3 requests (4 at the largest budget), services of 1 to 3 "
        "steps, gaps of 0 to 2.5 steps in halves; random ones of up to 5 servers and 30 requests"
    ),
    domain=queues(),
    every=all_queues,
    examples=100,
)
M7 = Claim(
    id="M7",
    source="claims ledger, M7; Lindley (1952), Kiefer and Wolfowitz (1955)",
    statement=M7_STATEMENT,
    expected="holds",
    because=(
        "One slot: whoever comes to an idle engine is served at once, else when the one before is done, "
        "which is the recursion. Several: a service is a whole number of steps, S = n d. A slot that is "
        "freed at the end of a step is filled at that instant if anybody waits; who comes in the midst of a "
        "step and finds a slot free waits for its end, less than d. So with F_n the instant from which on a "
        "slot is free of those who came before n, begins B_n satisfy max(A_n, F_n) <= B_n <= max(A_n, F_n) + "
        "d. By induction B_n is no earlier than at servers with services S; and if B_j <= b_j + d for all "
        "before n, b being the begins with services S + d, then B_j + S_j <= b_j + S_j + d, the ends there, "
        "so F_n <= f_n and B_n <= b_n + d."
    ),
    broken=(
        M7_STATEMENT.but(
            "The same of an engine that charges services a twentieth longer", _as_textbooks_say(_slower)
        ),
        M7_STATEMENT.but(
            "The same of servers that take the newest of those who wait", _as_textbooks_say(_newest_first)
        ),
        M7_STATEMENT.but(
            "The same of a batch that admits when all of it has ended", _as_textbooks_say(_batch_by_batch)
        ),
        M7_STATEMENT.but(
            "The same without the step that a request may wait for before it begins",
            _as_textbooks_say(engine_waits, late=0, kept=0),
        ),
    ),
)

CLAIMS = (M7,)
