"""Small serving scenarios to draw from, and proof that drawing reaches what is to be tested.

Costs, acceptance and loads are made up. The strategy is shared by the laws and by the twin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from simspec.cost.models import AffineCost, MeasuredCost
from simspec.serving.arrivals import ClosedLoop, OpenLoop
from simspec.serving.config import Serving, Speculation
from simspec.serving.kvcache import Memory
from simspec.serving.policies import ByRows, Fixed, Goodput, OffAbove
from simspec.serving.pricing import Costs
from simspec.serving.request import Outcome, Request
from simspec.serving.simulate import Records, simulate
from simspec.serving.verdicts import Mean, Rates, Recorded

T = TypeVar("T")


def affine(base: float, token: float, cached: float) -> AffineCost:
    """A target and drafters at made-up prices, in seconds."""
    return AffineCost(
        name="made-up",
        label="made up",
        target="target",
        base_seconds=base,
        token_seconds=token,
        context_token_seconds=cached,
        step_overhead_seconds=base / 4,
        ratios={"small": 0.25, "ngram": 0.0},
    )


# Steps of a few nanoseconds make instants meet; the other has the size of a real device's.
AFFINE = {"ticks": affine(4e-9, 1e-9, 0.0), "device": affine(5.9e-3, 2.1e-5, 3.9e-8)}


def _measured() -> MeasuredCost:
    rows = [
        (model, "made-up", "float32", batch, new, context, 0, scale * (4 + new * batch + context / 8) * 1e-9)
        for model, scale in (("target", 4), ("small", 1), ("ngram", 0))
        for batch in (1, 2, 4)
        for new in (1, 2, 8)
        for context in (8, 64)
    ]
    names = ["model", "device", "dtype", "batch", "new_tokens", "context", "repetition", "seconds"]
    return MeasuredCost(pd.DataFrame(rows, columns=names), "float32", "made-up", "made up")


PADDED = _measured()


@dataclass(frozen=True)
class Scenario:
    """An engine, what it is sent, and for how long."""

    serving: Serving
    seed: int
    sizes: tuple[tuple[int, int], ...]
    instants: tuple[int, ...]
    clients: int = 0
    think_ns: int = 0
    until: int | None = None


@st.composite
def recorded(draw: st.DrawFn) -> Recorded:
    """Texts with made-up verdicts."""
    texts = draw(st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=12), min_size=1, max_size=4))
    return Recorded.of_lengths([np.array(t) for t in texts], 4)


SURVIVALS = st.lists(st.floats(0, 1), min_size=5, max_size=5).map(lambda s: tuple(sorted(s, reverse=True)))
SOURCES = st.one_of(SURVIVALS.map(Rates), SURVIVALS.map(Mean), recorded())
POLICIES = st.one_of(
    st.builds(Fixed, st.integers(0, 5)),
    st.integers(0, 4).flatmap(
        lambda n: st.builds(OffAbove, st.integers(0, 5), st.just(n), st.integers(0, n))
    ),
    st.just(ByRows(((1, 1, 4), (2, 3, 2)))),
    st.builds(Goodput, st.integers(0, 5), st.floats(0, 1), st.just(2.0), st.integers(0, 3)),
)


def sometimes(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    """None in three cases of four: limits on queue and patience hide what happens without them."""
    return st.one_of(st.none(), st.none(), st.none(), strategy)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Small engines under every option, with loads that make them queue, run out of memory and stand idle."""
    tick = draw(st.booleans())
    cost = draw(st.sampled_from([AFFINE["ticks"], PADDED])) if tick else AFFINE["device"]
    second = st.integers(0, 60) if tick else st.integers(0, 40_000_000)
    lookup = draw(st.booleans())
    drafter = "ngram" if lookup else "small"
    costs = Costs(
        cost,
        "target",
        drafter,
        drafter_cost=draw(st.sampled_from([None, None, AFFINE["ticks"]])),
        lookup=lookup,
        idle_seconds=draw(st.sampled_from([0.0, 2e-9])),
        overhead_seconds=draw(st.sampled_from([None, 3e-9])),
    )
    count = draw(st.integers(1, 12))
    sizes = draw(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 24)), min_size=count, max_size=count))
    speculation = draw(st.one_of(st.none(), *[st.builds(Speculation, POLICIES, SOURCES)] * 3))
    ahead = speculation.policy.longest if speculation else 0
    block = draw(st.integers(1, 8))
    # Now and then too few blocks for the largest request, mostly enough for one or two.
    fair = -(-max(p + o + ahead for p, o in sizes) // block)
    blocks = sometimes(st.integers(1, fair)) | st.integers(fair, 3 * fair)
    lookahead = draw(st.sampled_from(["reserved", "used"]))
    serving = Serving(
        costs,
        slots=draw(st.integers(1, 5)),
        speculation=speculation,
        memory=Memory(
            block,
            draw(blocks),
            draw(blocks),
            lookahead,
            draw(st.sampled_from(["recompute", "swap"])),
            draw(st.sampled_from([0.0, 2e-9])),
        ),
        prefill=draw(st.sampled_from(["whole", "chunked"])),
        mixed=draw(st.booleans()),
        token_budget=draw(st.integers(1, 24)),
        queue_limit=draw(sometimes(st.integers(0, 3))),
        patience_seconds=draw(sometimes(second.map(lambda n: n * 1e-9))),
    )
    gaps = draw(st.lists(second | st.just(0), min_size=count, max_size=count))
    return Scenario(
        serving,
        draw(st.integers(0, 1000)),
        tuple(sizes),
        tuple(np.cumsum(gaps).tolist()),
        clients=draw(st.sampled_from([0, 0, 1, 3])),
        think_ns=draw(second),
        until=draw(sometimes(second.map(lambda n: 1 + 10 * n))),
    )


def live(scenario: Scenario, *, emissions: bool = False, serving: Serving | None = None) -> Records:
    """Serve a scenario, by another engine where one is given."""
    requests = [Request(i, p, o) for i, (p, o) in enumerate(scenario.sizes)]
    load: OpenLoop | ClosedLoop
    if scenario.clients:
        load = ClosedLoop(scenario.clients, requests, scenario.think_ns * 1e-9)
    else:
        load = OpenLoop(zip(scenario.instants, requests, strict=True))
    until = None if scenario.until is None else scenario.until * 1e-9
    return simulate(
        serving or scenario.serving, load, scenario.seed, until_seconds=until, emissions=emissions
    )


def total(records: Records, column: str) -> int:
    """Sum of a column of steps."""
    return sum(records.steps[column].to_pylist())


REACHED = {
    "preempts a row": lambda r: total(r, "preempted_requests") > 0,
    "swaps": lambda r: total(r, "swap_ns") > 0,
    "rejects": lambda r: r.outcomes[Outcome.REJECTED] > 0,
    "times out": lambda r: r.outcomes[Outcome.TIMED_OUT] > 0,
    "stops in the middle": lambda r: r.outcomes[Outcome.UNFINISHED] > 0,
    "accepts drafts": lambda r: total(r, "accepted_tokens") > 3,
    "refuses drafts": lambda r: total(r, "accepted_tokens") < total(r, "drafted_tokens") - 3,
    "drafts, then does not": lambda r: len(set(r.steps["draft_length_tokens"].to_pylist())) > 2,
    "reads prompts while others decode": lambda r: any(
        a and b
        for a, b in zip(
            r.steps["decoding_requests"].to_pylist(), r.steps["prefilling_requests"].to_pylist(), strict=True
        )
    ),
    "has the drafter's memory full": lambda r: max(r.steps["drafter_blocks"].to_pylist(), default=0) > 8,
    "stands idle": lambda r: any(a > b for a, b in zip(starts(r)[1:], step_ends(r), strict=False)),
}


def starts(records: Records) -> list[int]:
    """Instants at which steps begin."""
    found: list[int] = records.steps["started_at_ns"].to_pylist()
    return found


def step_ends(records: Records) -> list[int]:
    """Instants at which steps end."""
    parts = ("started_at_ns", "draft_ns", "verify_ns", "prefill_ns", "swap_ns", "overhead_ns")
    return [sum(values) for values in zip(*(records.steps[p].to_pylist() for p in parts), strict=True)]


@pytest.fixture(scope="module")
def reached() -> set[str]:
    """What 300 scenarios, the same in every run, come to."""
    found: set[str] = set()

    @settings(max_examples=300, derandomize=True, database=None, phases=[Phase.generate])
    @given(scenarios())
    def look(scenario: Scenario) -> None:
        records = live(scenario)
        found.update(what for what, happened in REACHED.items() if happened(records))

    look()
    return found


@pytest.mark.parametrize("what", REACHED)
def test_scenarios_reach(reached, what):
    assert what in reached
