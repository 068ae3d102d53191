"""Scenarios for the search: those of the other tests, and larger ones, in one strategy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from simspec.serving.arrivals import Gamma, Poisson
from simspec.serving.cluster import Cluster
from simspec.serving.config import Serving
from simspec.serving.kvcache import Memory
from simspec.serving.policies import Fixed
from simspec.strategies.choosers import LONGEST
from simspec.strategies.clusters import Fleet, cluster_scenarios, drafters_apart
from simspec.strategies.serving import NEVER, SURE, draftings, long_answers, scenarios, sometimes
from simspec.strategies.small_engines import Drafting, Setup, Survival
from tests.invariants.case import Case
from tests.varied_chains import chained
from tests.varied_engines import GRAPHS, speculations, varied


@st.composite
def varied_clusters(draw: st.DrawFn) -> Case:
    """Clusters whose engines choose row by row or among drafters, or run graphs; some decode plainly."""
    speculation = draw(speculations())
    stand_in = Drafting(Fixed(speculation.policy.longest), Survival((0.5,) * LONGEST))
    case = Case.of(draw(cluster_scenarios(scenarios(st.just(stand_in)))))
    graphs = draw(st.none() | GRAPHS)

    def changed(one: Serving) -> Serving:
        costs = dataclasses.replace(one.costs, graphs=graphs)
        drafts = speculation if one.speculation is not None else None
        return dataclasses.replace(one, costs=costs, speculation=drafts)

    return _changed(case, changed)


def _changed(case: Case, change: Callable[[Serving], Serving]) -> Case:
    """The same with other engines."""
    engines = {name: tuple(map(change, getattr(case.cluster, name))) for name in ("replicas", "prefill")}
    return dataclasses.replace(case, served=dataclasses.replace(case.cluster, **engines))


@st.composite
def chained_clusters(draw: st.DrawFn) -> Case:
    """Clusters whose engines have chains, or choose among several."""
    chain: Serving = draw(chained()).serving
    assert chain.speculation is not None
    stand_in = Drafting(Fixed(chain.speculation.policy.longest), Survival((0.5,) * LONGEST))
    case = Case.of(draw(cluster_scenarios(scenarios(st.just(stand_in)))))

    def changed(one: Serving) -> Serving:
        drafts = chain.speculation if one.speculation is not None else None
        memory = dataclasses.replace(one.memory, middle_blocks=chain.memory.middle_blocks)
        return dataclasses.replace(one, costs=chain.costs, speculation=drafts, memory=memory)

    return _changed(case, changed)


@st.composite
def crowds(draw: st.DrawFn) -> Case:
    """Tens of requests of tens of tokens, whose sizes and instants are drawn from one seed."""
    number, count = draw(st.integers(0, 10_000)), draw(st.integers(15, 50))
    random = np.random.default_rng(number)
    sizes = tuple(map(tuple, random.integers(1, (60, 40), (count, 2), endpoint=True).tolist()))
    tick = draw(st.booleans())
    rate = draw(st.sampled_from((0.2, 1.0, 5.0))) * (1e7 if tick else 3.0)
    process = draw(st.sampled_from((Poisson(rate), Gamma(rate, 0.3), Gamma(rate, 3.0))))
    how = draw(st.one_of(st.none(), draftings(), draftings(), draftings()))
    block = draw(st.sampled_from((4, 16)))
    least = -(-(100 + (how.policy.longest if how else 0)) // block)
    blocks: st.SearchStrategy[Any] = st.one_of(st.none(), *[st.integers(least, 2 * least)] * 2)
    memory = Memory(
        block,
        draw(blocks),
        draw(blocks),
        draw(st.sampled_from(("reserved", "used"))),
        draw(st.sampled_from(("recompute", "swap"))),
        1e-9,
    )
    engine = Setup(
        draw(st.integers(2, 16)),
        how,
        "ticks" if tick else "device",
        memory=memory,
        prefill=draw(st.sampled_from(("whole", "chunked"))),
        mixed=draw(st.booleans()),
        token_budget=draw(st.sampled_from((8, 32, 128))),
        queue_limit=draw(sometimes(st.integers(2, 12))),
        patience_ns=draw(sometimes(st.integers(1, 100).map(lambda n: n * (20 if tick else 10**7)))),
    )
    served: Serving | Cluster = engine.serving()
    replicas = draw(st.sampled_from((1, 1, 2, 3)))
    if replicas > 1:
        served = Cluster((served,) * replicas, draw(st.sampled_from(("round-robin", "least-loaded"))))
    return Case(
        served,
        number,
        sizes,
        tuple(process.instants(count, number).tolist()),
        draw(st.sampled_from((0, 0, 0, 4))),
        draw(st.sampled_from((0, 50))),
    )


@st.composite
def scarce(draw: st.DrawFn) -> Case:
    """A few requests that come at once to a memory for one or two of them, so that they go and come back."""
    count = draw(st.integers(2, 6))
    sizes = draw(st.lists(st.tuples(st.integers(1, 9), st.integers(4, 24)), min_size=count, max_size=count))
    certain = draftings(acceptances=st.sampled_from((SURE, NEVER)))
    how = draw(st.one_of(st.none(), draftings(), certain))
    block = draw(st.integers(1, 3))
    least = -(-(max(map(sum, sizes)) + (how.policy.longest if how else 0)) // block)
    memory = Memory(
        block,
        draw(st.integers(least, least + least // 2)),
        draw(st.none() | st.integers(least, 2 * least)),
        draw(st.sampled_from(("reserved", "used"))),
        draw(st.sampled_from(("recompute", "swap", "swap"))),
        1e-9,
    )
    served: Serving | Cluster = Setup(
        draw(st.integers(2, 5)),
        how,
        memory=memory,
        prefill=draw(st.sampled_from(("whole", "chunked"))),
        mixed=draw(st.booleans()),
        token_budget=draw(st.integers(8, 24)),
    ).serving()
    replicas, prefill = draw(st.sampled_from(((1, 0), (1, 0), (2, 0), (1, 1))))
    if replicas + prefill > 1:
        served = Cluster((served,) * replicas, prefill=(served,) * prefill, transfer_seconds=2e-9)
    gaps = draw(st.lists(st.sampled_from((0, 0, 5)), min_size=count, max_size=count))
    return Case(served, draw(st.integers(0, 99)), tuple(sizes), tuple(accumulate(gaps)))


def stays_up(fleet: Fleet) -> Fleet:
    """The same without failures."""
    return dataclasses.replace(fleet, outages=(), failures=None)


FAMILIES: dict[str, st.SearchStrategy[Case]] = {
    "small": scenarios().map(Case.of),
    "varied": varied().map(Case.of),
    "long answers": long_answers().map(Case.of),
    "scarce memory": scarce(),
    "clusters": cluster_scenarios().map(Case.of),
    "clusters that stay up": cluster_scenarios(change=stays_up).map(Case.of),
    "varied clusters": varied_clusters(),
    "drafters apart": cluster_scenarios(scenarios(draftings()), drafters_apart).map(Case.of),
    "chains": chained().map(Case.of),
    "chains in clusters": chained_clusters(),
    "crowds": crowds(),
}
FUZZED = st.one_of(*FAMILIES.values())


@lru_cache
def drawn(family: str, count: int) -> tuple[Case, ...]:
    """The first scenarios of a family, the same in every run."""
    found: list[Case] = []

    @seed(7)
    @settings(
        max_examples=count, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck)
    )
    @given(FAMILIES[family])
    def draw(case: Case) -> None:
        found.append(case)

    draw()
    return tuple(found)
