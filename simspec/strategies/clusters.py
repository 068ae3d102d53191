"""Small random clusters as data: engines of :mod:`simspec.strategies.small_engines`, a router, and outages.

Everything in them is made up. Steps take a few nanoseconds in most of them, so that instants meet. A
scenario is data alone and can be printed; :func:`serve_cluster` does what it says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from simspec.strategies.serving import scenarios
from simspec.strategies.small_engines import NANO, Scenario, Setup

# The engine itself needs pyarrow: loaded where a scenario is served.
if TYPE_CHECKING:
    from simspec.serving.cluster import Cluster, OnFailure, Routing
    from simspec.serving.simulate import Records

ROUTINGS: tuple[Routing, ...] = ("round-robin", "least-loaded", "session-affine")
ON_FAILURE: tuple[OnFailure, ...] = ("restart", "resume", "lost")


@dataclass(frozen=True)
class Fleet:
    """A cluster as data; durations in nanoseconds, fields as in :class:`~simspec.serving.cluster.Cluster`.

    Attributes:
        outages: (replica, when it fails, for how long).
        failures: mean times up and down, or None.
        devices, link_ns: drafters' own devices; 0 for none.
    """

    replicas: tuple[Setup, ...] = (Setup(),)
    routing: Routing = "round-robin"
    prefill: tuple[Setup, ...] = ()
    transfer_ns: int = 0
    transfer_token_ns: int = 0
    outages: tuple[tuple[int, int, int], ...] = ()
    failures: tuple[int, int] | None = None
    on_failure: OnFailure = "restart"
    retries: int = 3
    devices: int = 0
    link_ns: int = 0

    def __str__(self) -> str:
        usual, told = Fleet(), []
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name in ("replicas", "prefill"):
                told += [f"{n} {f.name} [{one}]" for one, n in Counter(value).items()]
            elif value != getattr(usual, f.name):
                told.append(f"{f.name} {value}")
        return "; ".join(told)

    @property
    def engines(self) -> tuple[Setup, ...]:
        """All of them, in the order of their numbers."""
        return self.replicas + self.prefill

    def cluster(self) -> Cluster:
        """The cluster's parameters."""
        from simspec.serving.cluster import Cluster, DrafterDevice, Failures, Outage

        return Cluster(
            tuple(one.serving() for one in self.replicas),
            routing=self.routing,
            prefill=tuple(one.serving() for one in self.prefill),
            transfer_seconds=self.transfer_ns * NANO,
            transfer_token_seconds=self.transfer_token_ns * NANO,
            outages=tuple(Outage(n, at * NANO, length * NANO) for n, at, length in self.outages),
            failures=None if self.failures is None else Failures(*(n * NANO for n in self.failures)),
            on_failure=self.on_failure,
            retries=self.retries,
            drafter_device=DrafterDevice(self.devices, self.link_ns * NANO) if self.devices else None,
        )


@dataclass(frozen=True)
class ClusterScenario:
    """A cluster and what it is sent.

    Attributes:
        load: the requests, and until when; its engine is not looked at.
        sessions: of each request, -1 for none; empty where no request has one.
    """

    fleet: Fleet
    load: Scenario
    sessions: tuple[int, ...] = field(default=())

    def on(self, fleet: Fleet) -> ClusterScenario:
        """The same requests to another cluster."""
        return replace(self, fleet=fleet)

    @property
    def asked(self) -> list[tuple[int, int, int, int]]:
        """Number, prompt tokens, output tokens and session of each request."""
        sessions = self.sessions or (-1,) * len(self.load.sizes)
        return [(i, p, o, s) for i, ((p, o), s) in enumerate(zip(self.load.sizes, sessions, strict=True))]

    def __str__(self) -> str:
        sent = str(self.load).removesuffix(str(self.load.engine))
        return f"{sent}sessions {self.sessions or 'none'}; {self.fleet}"


def serve_cluster(
    scenario: ClusterScenario, *, emissions: bool = False, cluster: Cluster | None = None
) -> Records:
    """Serve a scenario, by another cluster where one is given."""
    from simspec.serving.arrivals import ClosedLoop, OpenLoop
    from simspec.serving.request import Request
    from simspec.serving.simulate import simulate

    load, requests = scenario.load, [Request(*one) for one in scenario.asked]
    sent: OpenLoop | ClosedLoop
    if load.clients:
        sent = ClosedLoop(load.clients, requests, load.think_ns * NANO)
    else:
        sent = OpenLoop(zip(load.instants, requests, strict=True))
    until = None if load.until is None else load.until * NANO
    cluster = cluster or scenario.fleet.cluster()
    return simulate(cluster, sent, load.seed, until_seconds=until, emissions=emissions)


# Random ones.

Change = Callable[[Fleet], Fleet]


@st.composite
def fleets(draw: st.DrawFn, first: Setup) -> Fleet:
    """Clusters of engines like one, or of several kinds, whose requests are as patient and as lucky."""
    time = 1 if first.prices != "device" else 10**6
    if first.patience_ns is not None:  # long enough to live through a failure, or not
        first = replace(first, patience_ns=first.patience_ns * draw(st.sampled_from((1, 4))))
    others = st.one_of(st.just(first), st.just(first), scenarios().map(lambda s: _like(s.setup, first)))
    decode, reading = draw(st.integers(1, 3)), draw(st.sampled_from((0, 0, 1, 2)))
    engines = [first, *(draw(others) for _ in range(decode + reading - 1))]
    kind = draw(st.sampled_from(("none", "listed", "listed", "chance")))
    chance = st.tuples(st.integers(20, 200), st.integers(1, 60))
    routing: Routing = draw(st.sampled_from(ROUTINGS))
    fleet = Fleet(
        tuple(engines[:decode]),
        routing,
        tuple(engines[decode:]),
        time * draw(st.sampled_from((0, 0, 1, 7, 30))),
        time * draw(st.sampled_from((0, 0, 1, 2))),
        draw(_outages(len(engines), time)) if kind == "listed" else (),
        draw(chance.map(lambda pair: (pair[0] * time, pair[1] * time))) if kind == "chance" else None,
        draw(st.sampled_from(ON_FAILURE)),
        draw(st.integers(0, 3)),
        draw(st.sampled_from((0, 0, 1, 2))),
        time * draw(st.sampled_from((0, 1, 5))),
    )
    return drafters_apart(fleet) if draw(st.integers(0, 2)) == 2 else fleet


def drafters_apart(fleet: Fleet) -> Fleet:
    """The same with drafters that take time, on devices of their own."""
    replicas, prefill = (
        tuple(replace(one, lookup=False) for one in part) for part in (fleet.replicas, fleet.prefill)
    )
    return replace(fleet, replicas=replicas, prefill=prefill, devices=fleet.devices or 1)


def _like(other: Setup, first: Setup) -> Setup:
    drafting = other.drafting
    if drafting is not None and first.drafting is not None:
        drafting = replace(drafting, acceptance=first.drafting.acceptance)
    return replace(other, drafting=drafting, patience_ns=first.patience_ns)


@st.composite
def _outages(draw: st.DrawFn, engines: int, time: int) -> tuple[tuple[int, int, int], ...]:
    """Of each engine one after the other; a replica may fail as it comes back, and as others do."""
    one = st.tuples(
        st.integers(0, engines - 1), st.one_of(st.just(0), st.integers(0, 150)), st.integers(1, 90)
    )
    back, found = [0] * engines, []
    for number, gap, length in draw(st.lists(one, min_size=1, max_size=5)):
        found.append((number, back[number] + gap * time, length * time))
        back[number] += (gap + length) * time
    return tuple(found)


@st.composite
def cluster_scenarios(
    draw: st.DrawFn, loads: st.SearchStrategy[Scenario] | None = None, change: Change | None = None
) -> ClusterScenario:
    """Small clusters under every option, sent ``loads`` for one of their engines; ``change`` narrows them."""
    load: Scenario = draw(scenarios() if loads is None else loads)
    some = st.tuples(*[st.sampled_from((-1, 0, 0, 1, 2, 3))] * len(load.sizes))
    fleet: Fleet = draw(fleets(load.setup))
    return ClusterScenario(change(fleet) if change else fleet, load, draw(st.just(()) | some))
