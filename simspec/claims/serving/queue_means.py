"""Configured as textbook queues, the engine's mean waits are what the textbooks give (M7b)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from simspec.claims.base import Claim, Outcome, Rule, Statement, against
from simspec.claims.serving.queues import served
from simspec.streams import stream

SERVICE = 1e-3  # mean seconds of a service
FALSE_ALARM = 1e-3
SERVERS, STEP = 4, 0.02  # a step takes this share of a service
LONGER = 1 + 2 * STEP


@dataclass(frozen=True)
class Means:
    """Independent runs of one queue: their number, requests of each, and those left out at the beginning."""

    queue: str
    load: float
    runs: int
    requests: int
    left_out: int


# Arrivals at a rate, and the services' factor and the seed: a system gives the waits that come of them.
System = Callable[[list[int], int, float], list[int]]


def arrivals(rate: float, count: int, seed: int, variation: float) -> list[int]:
    """Instants with gaps of this variation: 1 for Poisson."""
    from simspec.serving.arrivals import Gamma, Poisson

    process = Poisson(rate) if variation == 1 else Gamma(rate, variation)
    found: list[int] = process.instants(count, seed).tolist()
    return found


def fixed_services(arrived: list[int], seed: int, slower: float) -> list[int]:
    """M/D/1: one slot, one token to read and none after it."""
    return served(1, SERVICE * slower, 0.0, [(1, 1)] * len(arrived), arrived)


def exponential_services(arrived: list[int], seed: int, slower: float) -> list[int]:
    """M/M/1: prompts of exponential length, 10,000 tokens on average, so rounding is one part in 10,000."""
    prompts = 1 + stream(seed, "services").exponential(1e4, len(arrived)).astype(np.int64)
    return served(1, 0.0, SERVICE * slower / 1e4, [(n, 1) for n in prompts.tolist()], arrived)


def many_servers(arrived: list[int], seed: int, slower: float) -> list[int]:
    """M/M/c: c slots that each emit a token a step; exponential services rounded up to whole steps."""
    drawn = stream(seed, "services").exponential(slower / STEP, len(arrived))
    sizes = [(1, max(n, 1)) for n in np.ceil(drawn).astype(np.int64).tolist()]
    return served(SERVERS, SERVICE * STEP, 0.0, sizes, arrived)


def erlang_c_wait(load: float, servers: int) -> float:
    """Expected wait of M/M/c in services: Erlang's C over c (1 - load)."""
    offered = load * servers
    all_busy = offered**servers / math.factorial(servers) / (1 - load)
    some = sum(offered**k / math.factorial(k) for k in range(servers))
    return all_busy / (some + all_busy) / (servers * (1 - load))


def expected_wait(queue: str, load: float) -> tuple[float, float]:
    """Bounds of the expected wait in services.

    On one server Pollaczek and Khinchin's value, prompts being rounded up by a token of 10,000. On several
    Erlang's for the bounds of every path: services are rounded up to a step, hold a slot for up to one more
    and may wait for one; and services S + 2d vary less than exponential ones of the same mean, in which the
    wait is increasing and convex.
    """
    if queue == "M/D/1":
        return load / 2 / (1 - load), load / 2 / (1 - load)
    if queue == "M/M/1":
        return load / (1 - load), load / (1 - load) * 1.001
    return erlang_c_wait(load, SERVERS), erlang_c_wait(load * LONGER, SERVERS) * LONGER + STEP


# A system and its servers.
SYSTEMS: dict[str, tuple[System, int]] = {
    "M/D/1": (fixed_services, 1),
    "M/M/1": (exponential_services, 1),
    "M/M/4": (many_servers, SERVERS),
}


@lru_cache(maxsize=16)
def mean_waits(case: Means, slower: float, variation: float) -> tuple[float, ...]:
    """The mean wait of each run, in services."""
    system, servers = SYSTEMS[case.queue]
    found = []
    for seed in range(100, 100 + case.runs):
        arrived = arrivals(case.load * servers / SERVICE, case.requests, seed, variation)
        waits = system(arrived, seed, slower)[case.left_out :]
        found.append(sum(waits) / len(waits) / (SERVICE * 1e9))
    return tuple(found)


def means_are_right(
    slower: float = 1.0,
    variation: float = 1.0,
    bounds: Callable[[str, float], tuple[float, float]] = expected_wait,
) -> Rule:
    """Whether the runs leave room for an expected wait within the bounds.

    Args:
        slower: a factor on the engine's services, which the bounds do not know.
        variation: of the gaps between arrivals, likewise.
    """

    def rule(case: Means) -> Outcome:
        from scipy.special import stdtrit

        means = np.array(mean_waits(case, slower, variation))
        low, high = bounds(case.queue, case.load)
        mean, error = float(means.mean()), float(means.std(ddof=1)) / math.sqrt(case.runs)
        slack = float(stdtrit(case.runs - 1, 1 - FALSE_ALARM / 2)) * error
        if low - slack <= mean <= high + slack:
            return None
        return against(
            f"{case.queue} at a load of {case.load}: {case.runs} runs of {case.requests} requests",
            f"mean wait {mean:.4g} services, standard error {error:.2g}",
            f"expected {low:.4g} to {high:.4g}, with Student's t give or take {slack:.2g}",
        )

    return rule


def all_means(level: int) -> Iterator[Means]:
    """Every queue at a load of .6, at level 2 also of .8; longer runs at higher levels.

    Half as many requests at several servers, whose every service takes many steps.
    """
    most = (150, 500, 4000)[level]
    for load in (0.6, 0.8) if level == 2 else (0.6,):
        for queue, (_, servers) in SYSTEMS.items():
            count = most if servers == 1 else most // 2
            yield Means(queue, load, 10, count, count // 6)


M7B_STATEMENT = Statement(
    words=(
        "Means over long runs, too: configured as M/D/1, M/M/1 and M/M/4 the engine's mean wait is what "
        "Pollaczek and Khinchin's and Erlang's formulas give, for M/M/4 within bounds that its steps cause"
    ),
    formula="E W = rho S / (2 (1 - rho)),  rho S / (1 - rho),  C(c, rho) S / (c (1 - rho))",
    rule=means_are_right(),
    over=(
        "each of the three queues at a load of .6 (.8, too, at the largest budget): null, the expected wait "
        "lies within the bounds; statistic, Student's t over 10 independent runs of 150, 500 or 4,000 "
        "requests by budget (half of that for M/M/4), each without its first sixth; a false alarm, over "
        "draws of seeds, in one of 1,000 a queue; the seeds are fixed, so a verdict stays one"
    ),
    every=all_means,
)
M7B = Claim(
    id="M7b",
    source="claims ledger, M7; Pollaczek (1930), Khinchin (1932), Erlang (1917)",
    statement=M7B_STATEMENT,
    expected="holds",
    exact=False,
    because=(
        "Poisson arrivals from one stream, services from another, and waits that follow M7 on every path are "
        "these queues, but for rounding: prompts to one token of 10,000, services of M/M/4 to steps of a "
        "fiftieth. A test of means sees only faults larger than its error, which M7 has not; it is here for "
        "what M7 cannot see, the arrivals. At the default budget M/D/1 and M/M/1 notice services a fifth "
        "longer; M/M/4 needs 500 requests to notice gaps that vary twice as much."
    ),
    broken=(
        M7B_STATEMENT.but(
            "The same of an engine whose services take a fifth longer", means_are_right(slower=1.2)
        ),
        M7B_STATEMENT.but(
            "The same of arrivals at the same rate whose gaps vary twice as much",
            means_are_right(variation=2),
        ),
        M7B_STATEMENT.but(
            "M/D/1 waits as long as M/M/1 does, since the mean service is the same",
            means_are_right(bounds=lambda queue, load: (load / (1 - load), load / (1 - load))),
        ),
    ),
)

CLAIMS = (M7B,)
