"""Configured as textbook queues, the engine waits as the textbooks say (M7).

Two kinds of evidence. On every path, waits must follow Lindley's recursion to the nanosecond on one server,
and lie within bounds made of Kiefer and Wolfowitz's on several. And the means must be what theory gives:
null hypothesis, that the expected wait lies within the stated bounds; statistic, Student's t over ten
independent replications of 1,200 requests, each without its first 200, which met an empty system; a false
alarm, over draws of seeds, in one of 1,000 a test. The seeds are fixed, so a pass stays one. That either
would notice is shown by systems whose services take longer.
"""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from simspec.cost.models import AffineCost
from simspec.serving.arrivals import Poisson, Sizes, open_loop
from simspec.serving.config import Serving
from simspec.serving.pricing import Costs
from simspec.serving.simulate import Records, simulate
from simspec.streams import stream

FALSE_ALARM = 1e-3
SERVICE = 1e-3  # mean seconds of service


def per_token(base: float, token: float) -> Costs:
    """A target whose forwards cost ``base`` and ``token`` a token, and nothing else."""
    return Costs(AffineCost("made-up", "made up", "target", base, token, 0.0, 0.0, {}), "target")


def waits(records: Records) -> np.ndarray:
    """Nanoseconds from arrival to admission, in order of arrival."""
    table = records.requests.to_pandas().sort_values("request_id")
    return (table["admitted_at_ns"] - table["arrived_at_ns"]).to_numpy().astype(np.int64)


def fixed_service(load: float, count: int, seed: int, slower: float = 1.0) -> Records:
    """M/D/1: one slot, one token to read and none after it."""
    serving = Serving(per_token(SERVICE * slower, 0.0), slots=1)
    return simulate(serving, open_loop(Poisson(load / SERVICE), Sizes.alike(count, 1, 1), seed), seed)


def exponential_service(load: float, count: int, seed: int, slower: float = 1.0) -> Records:
    """M/M/1: prompts of exponential length, 10,000 tokens on average, so rounding is one part in 10,000."""
    prompts = 1 + stream(seed, "services").exponential(1e4, count).astype(np.int64)
    serving = Serving(per_token(0.0, SERVICE * slower / 1e4), slots=1)
    sizes = Sizes(prompts, np.ones(count, np.int64))
    return simulate(serving, open_loop(Poisson(load / SERVICE), sizes, seed), seed)


SERVERS, STEP = 4, 0.01  # a step takes this share of a service


def many_servers(load: float, count: int, seed: int, slower: float = 1.0) -> Records:
    """M/M/c: c slots that each emit a token a step, and answers of geometric length.

    Exponential services, rounded up to whole steps, are geometric.
    """
    step = SERVICE * STEP
    whole = np.ceil(stream(seed, "services").exponential(slower / STEP, count)).astype(np.int64)
    serving = Serving(per_token(step, 0.0), slots=SERVERS)
    sizes = Sizes(np.ones(count, np.int64), np.maximum(whole, 1))
    return simulate(serving, open_loop(Poisson(load * SERVERS / SERVICE), sizes, seed), seed)


@given(st.integers(0, 10_000), st.sampled_from([0.3, 0.9, 1.5]), st.booleans())
def test_one_server_follows_lindley_exactly(seed, load, exponential):
    records = (exponential_service if exponential else fixed_service)(load, 40, seed)
    table = records.requests.to_pandas().sort_values("request_id")
    arrived = table["arrived_at_ns"].tolist()
    service = (table["ended_at_ns"] - table["admitted_at_ns"].astype(np.int64)).tolist()
    wait, expected = 0, []
    for i in range(len(arrived)):
        if i:
            wait = max(0, wait + service[i - 1] - (arrived[i] - arrived[i - 1]))
        expected.append(wait)
    assert waits(records).tolist() == expected


def mean_waits(system, load: float, replications: int, count: int, first: int, slower: float) -> np.ndarray:
    """Mean wait of each replication, in services, its first requests left out."""
    runs = (waits(system(load, count, 100 + r, slower))[first:] for r in range(replications))
    return np.array([run.mean() for run in runs]) / (SERVICE * 1e9)


def within(means: np.ndarray, low: float, high: float) -> bool:
    """Whether the replications leave room for an expected wait within the bounds."""
    slack = stats.t.ppf(1 - FALSE_ALARM / 2, len(means) - 1) * means.std(ddof=1) / math.sqrt(len(means))
    return bool(low - slack <= means.mean() <= high + slack)


def erlang_c_wait(load: float, servers: int) -> float:
    """Expected wait of M/M/c in services: Erlang's C over c (1 - load)."""
    offered = load * servers
    all_busy = offered**servers / math.factorial(servers) / (1 - load)
    some = sum(offered**k / math.factorial(k) for k in range(servers))
    return all_busy / (some + all_busy) / (servers * (1 - load))


def servers_wait(arrived: list[int], services: list[float]) -> list[float]:
    """Waits in nanoseconds, first come, first served, on so many servers (Kiefer and Wolfowitz)."""
    free, found = [0.0] * SERVERS, []
    for at, service in zip(arrived, services, strict=True):
        begin = max(at, free[0])
        found.append(begin - at)
        heapq.heapreplace(free, begin + service)
    return found


def outside(seed: int, load: float, slower: float) -> int:
    """Requests whose wait is out of its bounds.

    The engine's servers begin between steps only: with S a service and d a step, a request begins at most d
    after it has come and a server is free, and holds it for S rounded up to a step. So it waits no less than
    on servers with services S, and at most d longer than on servers with services S + 2d.
    """
    records = many_servers(load, 60, seed, slower)
    arrived = records.requests.to_pandas().sort_values("request_id")["arrived_at_ns"].tolist()
    services = (stream(seed, "services").exponential(1.0, 60) * SERVICE * 1e9).tolist()
    step = STEP * SERVICE * 1e9
    low, high = servers_wait(arrived, services), servers_wait(arrived, [s + 2 * step for s in services])
    bounds = zip(low, waits(records).tolist(), high, strict=True)
    return sum(not a - 1 <= wait <= b + step + 1 for a, wait, b in bounds)


@given(st.integers(0, 10_000), st.sampled_from([0.3, 0.9, 1.5]))
def test_many_servers_stay_within_their_bounds_on_every_path(seed, load):
    assert outside(seed, load, 1.0) == 0


def test_services_a_twentieth_longer_leave_the_bounds():
    assert outside(1, 0.9, 1.05) > 0


LOAD = 0.6
# The system, and bounds of its expected wait in services. On one server: Pollaczek and Khinchin's; prompts
# are rounded up by a token of 10,000. On several: Erlang's for the bounds of each path, where services S + 2d
# vary less than exponential ones of the same mean, and the wait is increasing and convex in the services.
LONGER = 1 + 2 * STEP
QUEUES = {
    "M/D/1": (fixed_service, LOAD / 2 / (1 - LOAD), LOAD / 2 / (1 - LOAD)),
    "M/M/1": (exponential_service, LOAD / (1 - LOAD), LOAD / (1 - LOAD) * 1.001),
    "M/M/4": (
        many_servers,
        erlang_c_wait(LOAD, SERVERS),
        erlang_c_wait(LOAD * LONGER, SERVERS) * LONGER + STEP,
    ),
}


@pytest.mark.parametrize("queue", QUEUES)
def test_mean_wait(queue):
    system, low, high = QUEUES[queue]
    assert within(mean_waits(system, LOAD, 10, 1200, 200, 1.0), low, high)


@pytest.mark.parametrize(("queue", "slower"), [("M/D/1", 1.2), ("M/M/1", 1.2), ("M/M/4", 1.5)])
def test_longer_services_are_noticed(queue, slower):
    system, low, high = QUEUES[queue]
    assert not within(mean_waits(system, LOAD, 10, 1200, 200, slower), low, high)
