"""Small engines whose rows choose for themselves, that choose among drafters, or that run graphs.

Everything in them is made up. Built on the scenarios of :mod:`simspec.strategies.serving`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from hypothesis import strategies as st

from simspec.serving.candidates import Candidate
from simspec.serving.config import Speculation
from simspec.serving.graphs import Graphs
from simspec.serving.policies import ByRowsAndContext, Fixed, Goodput
from simspec.serving.row_policies import ByRule, Joint
from simspec.serving.switching import Switching
from simspec.serving.verdicts import Blocks, Mean, Rates, Recorded
from simspec.speculation.lengths import G4, ExactMarginal, LibraSpec, Static
from simspec.strategies.serving import SURVIVALS, scenarios
from simspec.strategies.small_engines import Drafting, Scenario, Survival, made_up_cost

LONGEST = 5
# Few values, so that survivals are equal now and then; 0 is a token that its drafter rounds away.
CONFIDENCE = st.sampled_from([0.0, 0.25, 0.5, 0.75, 0.9, 1.0])
DEEP = st.integers(1, LONGEST)
Position = tuple[int, int, tuple[float, ...]]


@st.composite
def positions(draw: st.DrawFn) -> Position:
    """(block length, leading tokens that are right, confidences) at one place of a text."""
    length = draw(st.integers(0, LONGEST))
    sure = draw(st.tuples(*[CONFIDENCE] * length))
    return length, draw(st.integers(0, length)), sure


@st.composite
def records(draw: st.DrawFn, drafters: int) -> list[Recorded]:
    """Records of several drafters on the same texts, with confidences."""
    sizes = draw(st.lists(st.integers(1, 10), min_size=1, max_size=3))
    left = np.concatenate([np.arange(n)[::-1] for n in sizes])
    found = []
    for _ in range(drafters):
        at = draw(st.lists(positions(), min_size=len(left), max_size=len(left)))
        confidence = np.zeros((len(at), LONGEST), np.float32)
        for i, (length, _, sure) in enumerate(at):
            confidence[i, :length] = sure
        length = np.array([n for n, _, _ in at])
        available = np.minimum(length, left)
        matched = np.minimum([m for _, m, _ in at], available)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        found.append(Recorded(offsets, matched, available, Blocks(confidence, length)))
    return found


UNSURE = st.one_of(SURVIVALS.map(Rates), SURVIVALS.map(Mean))
BLIND = st.one_of(
    st.builds(lambda n: ByRule(Static(n), n), st.integers(0, LONGEST)),
    st.builds(
        lambda first, up, down: ByRule(G4(first, up, down, LONGEST), LONGEST),
        DEEP,
        st.integers(0, 2),
        st.integers(0, 2),
    ),
    st.just(ByRowsAndContext(((1, 1, 0, 99, 4), (2, 3, 0, 12, 2), (2, 9, 13, 20, 1)))),
    st.builds(Goodput, DEEP, st.floats(0, 1), st.just(2.0), st.integers(0, 3)),
)
SIGHTED = st.one_of(
    st.builds(lambda n: ByRule(ExactMarginal(n), n), DEEP),
    st.builds(
        lambda alpha, block, longest: ByRule(LibraSpec(alpha, block, longest), LONGEST),
        st.floats(0.5, 3),
        st.integers(1, 3),
        st.integers(1, 4),
    ),
    st.builds(Joint, DEEP, st.booleans()),
)
SWITCHING = st.builds(
    Switching,
    st.integers(0, LONGEST),
    st.sampled_from([0.0, 0.05, 0.5]),
    st.sampled_from([1, 32]),
    st.floats(0, 1),
    st.sampled_from([0.5, 5.0]),
)
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
        return Speculation(draw(SIGHTED), draw(records(1))[0], remembered)
    if kind == "blind":
        source = draw(UNSURE | records(1).map(lambda found: found[0]))
        return Speculation(draw(BLIND), source, remembered)
    sources: list[Any] = draw(records(3) | st.lists(UNSURE, min_size=2, max_size=2))
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
    stand_in = Drafting(Fixed(speculation.policy.longest), Survival((0.5,) * LONGEST))
    scenario: Scenario = draw(scenarios(st.just(stand_in)))
    costs = dataclasses.replace(scenario.serving.costs, graphs=draw(st.none() | GRAPHS))
    serving = dataclasses.replace(scenario.serving, costs=costs, speculation=speculation)
    return dataclasses.replace(scenario, engine=serving)
