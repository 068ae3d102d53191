"""The same luck again: for the same scenario, and for whatever schedule comes to a place (M5d, M34)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from simspec.claims.base import UNMET, Claim, Outcome, Rule, Statement, against
from simspec.claims.serving.arriving import OneGenerator
from simspec.claims.serving.laws import first_difference, told
from simspec.strategies.serving import HALF, LUCKY, all_scenarios, draftings, scarce_memory, scenarios
from simspec.strategies.small_engines import Drafting, Scenario, Survival, serve

# The engine needs pyarrow, which whoever only lists claims need not wait for.
if TYPE_CHECKING:
    from simspec.serving.config import Serving


# M5d


def _again(other_seed: int = 0, shared: bool = False) -> Rule:
    """Served twice, another scenario in between, a scenario leaves the same tables."""

    def rule(scenario: Scenario) -> Outcome:
        serving = scenario.serving
        if shared and serving.speculation is not None:
            own = replace(serving.speculation, source=OneGenerator(0))
            serving = replace(serving, speculation=own)
        first = serve(scenario, emissions=True, serving=serving)
        serve(replace(scenario, seed=scenario.seed + 1, until=None))
        second = serve(replace(scenario, seed=scenario.seed + other_seed), emissions=True, serving=serving)
        for name in ("steps", "requests", "emissions"):
            one, other = getattr(first, name), getattr(second, name)
            if not one.equals(other):
                return against(str(scenario), f"{name}, first and again", first_difference(one, other))
        return None

    return rule


M5D_STATEMENT = Statement(
    words=(
        "The same scenario and seed leave the same tables of steps, requests and emissions, whatever was "
        "served before"
    ),
    formula="records(scenario, seed) = records(scenario, seed)",
    rule=_again(),
    over=(
        "two requests to a scarce memory with drafts accepted by chance; random scenarios of up to 12 "
        "requests under every option"
    ),
    domain=scenarios(),
    every=lambda level: (s for s in scarce_memory(level) if _by_chance(s)),
    examples=30,
)
M5D = Claim(
    id="M5d",
    source="claims ledger, M5: the serving engine (for numbers of workers a test compares files)",
    statement=M5D_STATEMENT,
    expected="holds",
    because=(
        "What a request is dealt is drawn from a stream of the seed and its own number; ties in time are "
        "decided by instant, stage and order; nothing outlives a simulation but prices, which are functions."
    ),
    broken=(
        M5D_STATEMENT.but("Another seed leaves the same tables", _again(other_seed=1)),
        M5D_STATEMENT.but(
            "The same of verdicts that are drawn from a generator as they come", _again(shared=True)
        ),
    ),
)


def _by_chance(scenario: Scenario) -> bool:
    drafting = scenario.setup.drafting
    return drafting is not None and drafting.acceptance == HALF


# M34


def _luck_is_in_the_place(serving: Callable[[Scenario], Serving] = lambda s: s.serving) -> Rule:
    """What a step accepts of its drafts is what it would alone, from the same place in the text."""

    def rule(scenario: Scenario) -> Outcome:
        engine = serving(scenario)
        if engine.speculation is None:
            return UNMET
        life = told(scenario, serve(scenario, emissions=True, serving=engine))
        sizes, written = dict(enumerate(scenario.sizes)), dict.fromkeys(range(len(scenario.sizes)), 0)
        for row in life.emissions:
            number, at = row["request_id"], written[row["request_id"]]
            written[number] += row["emitted_tokens"]
            if not row["drafted_tokens"]:
                continue
            alone = engine.speculation.source.open(1, scenario.seed)
            alone.seat(0, number, at, sizes[number][1])
            right = int(alone.accepted(np.array([row["drafted_tokens"]]))[0])
            if row["accepted_tokens"] != right:
                return against(
                    str(scenario),
                    f"step {row['step']}, place {at} of request {number}: of {row['drafted_tokens']} drafts "
                    f"{row['accepted_tokens']} are accepted; alone {right} would be",
                )
        return None

    return rule


def _by_mean(scenario: Scenario) -> Serving:
    """The same engine where every step accepts the mean, carried over in fractions."""
    drafting = scenario.setup.drafting
    if drafting is None:
        return scenario.serving
    mean = Survival((0.5, 0.25), mean=True)
    return replace(scenario.setup, drafting=Drafting(drafting.policy, mean)).serving()


M34_STATEMENT = Statement(
    words=(
        "Two schedules meet the same luck: of its drafts a step accepts what it would alone, seed, request "
        "and place in the text being the same, whatever the batch, the slot, preemption and the steps before"
    ),
    formula="accepted(step) = min(drafted, run(seed, request, place))",
    rule=_luck_is_in_the_place(),
    over=(
        "the enumerated scenarios of M1 that draft; random ones with acceptance by place and with recorded "
        "texts"
    ),
    domain=scenarios(drafting=draftings(acceptances=LUCKY)),
    every=all_scenarios,
    examples=30,
)
M34 = Claim(
    id="M34",
    source="common random numbers across schedules, as simspec.serving.verdicts promises",
    statement=M34_STATEMENT,
    expected="holds",
    because=(
        "A request's accepted runs are drawn for all places of its text at once, from a stream of the seed "
        "and its number, or read from a recorded text from a place that is drawn so; a step looks up the run "
        "at its place and cuts it to what was drafted. Luck that is drawn step by step, or carried over, "
        "would depend on the steps taken."
    ),
    broken=(
        M34_STATEMENT.but(
            "The same where every step accepts the mean, carried over in fractions",
            _luck_is_in_the_place(_by_mean),
            every=scarce_memory,
        ),
    ),
)

CLAIMS = (M5D, M34)
