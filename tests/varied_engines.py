"""The small engines of :mod:`simspec.strategies.choosers`, ready made, with graphs in every other of them."""

from __future__ import annotations

import dataclasses

from hypothesis import strategies as st

from simspec.serving.candidates import Candidate
from simspec.serving.config import Speculation
from simspec.serving.graphs import Graphs
from simspec.strategies.choosers import BLIND, SIGHTED, SWITCHING, UNSURE, sighted, stand_ins
from simspec.strategies.small_engines import Scenario, made_up_cost

SIZES = st.lists(st.integers(1, 24), max_size=4, unique=True).map(lambda sizes: tuple(sorted(sizes)))
GRAPHS = st.builds(
    lambda rows, tokens, factor, more: Graphs(rows, tokens, factor, more) if rows or tokens else None,
    SIZES,
    SIZES,
    st.sampled_from([1.0, 1.5, 3.0]),
    st.sampled_from([0.0, 5e-9]),
)


@st.composite
def speculations(draw: st.DrawFn) -> Speculation:
    """Every kind of policy with the sources that it may have."""
    kind = draw(st.sampled_from(["blind", "sighted", "sighted", "switching", "switching"]))
    remembered = draw(st.sampled_from([0.0, 0.5, 0.95]))
    if kind == "sighted":
        return Speculation(draw(SIGHTED), draw(sighted(1))[0].source(), remembered)
    if kind == "blind":
        acceptance = draw(UNSURE | sighted(1).map(lambda found: found[0]))
        return Speculation(draw(BLIND), acceptance.source(), remembered)
    sources = [one.source() for one in draw(sighted(3) | st.tuples(UNSURE, UNSURE))]
    cost = st.sampled_from(["ticks", "device", "padded"]).map(made_up_cost)
    others = [
        Candidate(draw(st.sampled_from(["small", "ngram"])), source, draw(cost), draw(st.booleans()))
        for source in sources[1:]
    ]
    return Speculation(draw(SWITCHING), sources[0], remembered, tuple(others))


@st.composite
def varied(draw: st.DrawFn) -> Scenario:
    """The small scenarios with these policies, and graphs in every other of them."""
    speculation = draw(speculations())
    scenario = draw(stand_ins(speculation.policy.longest))
    costs = dataclasses.replace(scenario.serving.costs, graphs=draw(st.none() | GRAPHS))
    serving = dataclasses.replace(scenario.serving, costs=costs, speculation=speculation)
    return dataclasses.replace(scenario, engine=serving)
