"""Chains with intermediates, and choices among them: the engine and the plain loop agree, row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from simspec.serving.candidates import Candidate
from simspec.serving.chain_verdicts import RecordedChain
from simspec.serving.choosing import Routed
from simspec.serving.config import Serving, Speculation
from simspec.serving.kvcache import Memory
from simspec.serving.pricing import Costs
from simspec.serving.simulate import Records
from simspec.serving.switching import Switching
from simspec.serving.verdicts import Recorded
from simspec.strategies.clusters import ClusterScenario, fleets
from simspec.strategies.small_engines import Scenario, Setup, serve
from tests.oracles.test_cluster_against_twin import agree
from tests.oracles.test_serving_choices_against_twin import changes, column, twin
from tests.varied_chains import chained, cost_of


def halves(policy: Routed | Switching, memory: Memory, *, replace: bool) -> Scenario:
    """A pair knows the first half of a text, a triple the second; the pair's drafter stands in the triple."""
    first, left = np.arange(40) < 20, np.minimum(3, np.arange(40)[::-1])
    offsets, never, all_of_it = np.array([0, 40]), np.full(40, -1), (np.full(40, 3),)
    pair, drafts = (Recorded(offsets, np.minimum(3 * mine, left), left) for mine in (first, ~first))
    chain = RecordedChain(drafts, all_of_it, never, ~first, replace)
    costs = Costs(cost_of("ticks"), "target", "small")
    others = (Candidate("ngram", chain, costs.cost, True, ("small",)),)
    serving = Serving(costs, 2, Speculation(policy, pair, 0.8, others), memory)
    return Scenario(serving, 3, ((5, 60), (3, 70), (4, 50)), (0, 0, 40))


SWITCHING = Switching(3, 0.0, 1000, prior=0.9, prior_drafts=2.0)
ROUTED = Routed((1, 3), 3, 0.0, "funnel", 0.5, 2.0)
SWAPPING = Memory(1, 100, None, "used", "swap", 1e-9, (("small", 90),))
CHOICES = [
    halves(policy, memory, replace=replace)
    for policy in (SWITCHING, ROUTED)
    for memory in (Memory(), SWAPPING)
    for replace in (False, True)
]


@pytest.mark.parametrize("scenario", CHOICES, ids=range(len(CHOICES)))
def test_going_and_coming_back(scenario):
    """Each chain is left and taken up again, rows are swapped out meanwhile, every level's lag with them."""
    records, plain = serve(scenario), twin(scenario)
    assert records.steps.to_pylist() == plain.steps
    assert changes(column(records, "drafter")) > 1
    assert sum(column(records, "accepted_tokens")) > 20
    assert (sum(column(records, "swap_ns")) > 0) == bool(scenario.serving.memory.middle_blocks)


@given(chained())
def test_every_step_and_every_request(scenario):
    records, plain = serve(scenario), twin(scenario)
    assert records.steps.to_pylist() == plain.steps
    assert records.requests.to_pylist() == plain.requests


@given(st.lists(chained(), min_size=1, max_size=3), st.data())
def test_in_a_cluster(several, data):
    """Each engine its own chains. What models of a prefill replica have read counts where one chain is."""
    first = several[0]
    engines = [replace(one.serving, patience_seconds=first.serving.patience_seconds) for one in several]
    count = data.draw(st.integers(1, len(engines)))
    # Replicas fail as often as their steps are long.
    slow = any(one.serving.costs.cost is cost_of("device") for one in several)
    fleet = data.draw(fleets(Setup(prices="device" if slow else "ticks")))
    # Prompts are read by an engine like one that decodes in every other case: all models have read them.
    prefill = data.draw(st.sampled_from([engines[count:], engines[:1]]))
    outages = tuple(one for one in fleet.outages if one[0] < count + len(prefill))
    setups = (Setup(),) * (count + len(prefill))
    same = replace(fleet, replicas=setups, prefill=(), outages=outages).cluster()
    cluster = replace(same, replicas=tuple(engines[:count]), prefill=tuple(prefill))
    agree(ClusterScenario(fleet, first), False, cluster)


# -- what the scenarios reach --------------------------------------------------------------------------------


def deep(scenario: Scenario) -> list[int]:
    """Intermediates of each chain."""
    return [len(links.middles) for links in scenario.serving.chains]


def replaces(scenario: Scenario) -> bool:
    return any(links.replace for links in scenario.serving.chains)


def policy(scenario: Scenario) -> object:
    return scenario.serving.speculation.policy


REACHED: dict[str, Callable[[Scenario, Records], bool]] = {
    "an intermediate passes on less than it is given": lambda s, r: (
        not replaces(s) and sum(column(r, "submitted_tokens")) < sum(column(r, "drafted_tokens"))
    ),
    "an intermediate adds a token, and nothing is drafted": lambda s, r: any(
        given and not drafted
        for given, drafted in zip(column(r, "submitted_tokens"), column(r, "drafted_tokens"), strict=True)
    ),
    "more is accepted than drafted": lambda s, r: any(
        taken > drafted
        for taken, drafted in zip(column(r, "accepted_tokens"), column(r, "drafted_tokens"), strict=True)
    ),
    "a level is idle in a step that drafts": lambda s, r: any(
        n and not ns for n, ns in zip(column(r, "drafted_tokens"), column(r, "middle_ns"), strict=True)
    ),
    "two intermediates": lambda s, r: max(deep(s)) > 1 and sum(column(r, "middle_ns")) > 0,
    "a row is preempted": lambda s, r: sum(column(r, "preempted_requests")) > 0,
    "rows are swapped": lambda s, r: sum(column(r, "swap_ns")) > 0,
    "prompts are read by an intermediate": lambda s, r: any(
        ns and not rows
        for ns, rows in zip(column(r, "middle_ns"), column(r, "decoding_requests"), strict=True)
    ),
    "routed from a chain to another": lambda s, r: (
        isinstance(policy(s), Routed) and changes(column(r, "drafter")) > 0
    ),
    "routed to plain decoding and back": lambda s, r: (
        isinstance(policy(s), Routed) and changes([n > 0 for n in column(r, "draft_length_tokens")]) > 2
    ),
    "switched between chains": lambda s, r: (
        isinstance(policy(s), Switching) and max(deep(s)) > 0 and changes(column(r, "drafter")) > 0
    ),
    "an intermediate in one chain drafts in another": lambda s, r: any(
        links.drafter in other.middles for links in s.serving.chains for other in s.serving.chains
    ),
}


@pytest.fixture(scope="module")
def reached() -> set[str]:
    """What 1,000 scenarios at most come to.

    Which ones are drawn hangs on the modules that are loaded, since Hypothesis takes constants from them:
    once 400 were enough in some runs and missed one in another.
    """
    found: set[str] = set()

    @settings(max_examples=1000, derandomize=True, database=None, phases=[Phase.generate])
    @given(chained())
    def look(scenario: Scenario) -> None:
        if len(found) == len(REACHED):
            return
        records = serve(scenario)
        found.update(what for what, happened in REACHED.items() if happened(scenario, records))

    look()
    return found


@pytest.mark.parametrize("what", REACHED)
def test_scenarios_reach(reached, what):
    assert what in reached
