"""The serving engine and a plain loop without SimPy live through the same scenarios, row by row."""

from __future__ import annotations

import dataclasses
from itertools import accumulate

from hypothesis import example, given
from hypothesis import strategies as st

from simspec.serving.config import Serving, Speculation
from simspec.serving.kvcache import Memory
from simspec.serving.policies import ByRows, Fixed, Goodput, OffAbove
from simspec.serving.pricing import Costs
from simspec.serving.stride import Stride
from simspec.serving.verdicts import Rates
from simspec.strategies.serving import scenarios
from simspec.strategies.small_engines import Scenario, made_up_cost, serve
from tests.reference_serving import Twin

SMALL = Costs(made_up_cost("device"), "target", "small")
TICKS = Costs(made_up_cost("ticks"), "target", "small")
SURE = Speculation(Fixed(2), Rates((1.0, 1.0)))


def twin(scenario: Scenario) -> Twin:
    """The twin, run."""
    asked = [(i, p, o) for i, (p, o) in enumerate(scenario.sizes)]
    return Twin(
        scenario.serving,
        scenario.seed,
        arrivals=[] if scenario.clients else list(zip(scenario.instants, asked, strict=True)),
        clients=scenario.clients,
        asked=asked,
        think=scenario.think_ns,
        until=scenario.until,
    ).run()


# A request that is withdrawn as it comes once left an engine that planned a step of nothing.
@example(Scenario(Serving(SMALL, 1, patience_seconds=0.0), 0, ((1, 1),), (0,)))
# Steps that draft nothing once held room for what the step before them had drafted.
@example(
    Scenario(
        Serving(
            SMALL,
            1,
            Speculation(Goodput(1, 0.0, 2.0, 1), Rates((0.0,))),
            Memory(1, None, None, "used"),
            mixed=False,
        ),
        0,
        ((1, 4),),
        (0,),
    )
)
# Two rows lose their place in one step.
@example(
    Scenario(
        Serving(SMALL, 4, None, Memory(1, 27), mixed=False, token_budget=1),
        0,
        ((1, 1), (1, 7), (7, 20), (1, 13), (1, 8), (5, 3), (1, 3)),
        (0,) * 7,
    )
)
# Blocks are counted for a step that only reads a prompt, whose request then ends and frees its own.
@example(
    Scenario(Serving(TICKS, 2, None, Memory(1, 30), mixed=False, stride=False), 0, ((3, 9), (2, 1)), (0, 10))
)
# A row that is swapped out after a full acceptance, when its drafter has two tokens to read.
@example(
    Scenario(
        Serving(TICKS, 2, SURE, Memory(1, 26, None, "reserved", "swap", 1e-9)),
        0,
        ((3, 16), (3, 16)),
        (0, 0),
    )
)
# Drafted tokens come out of the budget that a prompt is read from.
@example(Scenario(Serving(TICKS, 2, SURE, prefill="chunked", token_budget=6), 0, ((3, 20), (14, 3)), (0, 10)))
@given(scenarios())
def test_every_step_and_every_request(scenario):
    records, plain = serve(scenario), twin(scenario)
    assert records.steps.to_pylist() == plain.steps
    assert records.requests.to_pylist() == plain.requests


@st.composite
def long_answers(draw: st.DrawFn) -> Scenario:
    """Mostly plain decoding, answers long enough for many steps at once, and requests that come between."""
    count = draw(st.integers(1, 6))
    sizes = draw(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 60)), min_size=count, max_size=count))
    off = st.sampled_from([Fixed(0), OffAbove(2, 1, 1), ByRows(((1, 1, 3),))])
    speculation = draw(st.none() | st.builds(Speculation, off, st.just(Rates((0.5, 0.5, 0.5)))))
    costs = Costs(draw(st.sampled_from([made_up_cost("ticks"), made_up_cost("padded")])), "target", "small")
    memory = Memory(
        draw(st.integers(1, 4)),
        draw(st.none() | st.integers(80, 200)),
        None,
        draw(st.sampled_from(["reserved", "used"])),
    )
    gaps = draw(st.lists(st.integers(0, 200), min_size=count, max_size=count))
    return Scenario(
        Serving(costs, draw(st.integers(1, 4)), speculation, memory, mixed=draw(st.booleans())),
        draw(st.integers(0, 9)),
        tuple(sizes),
        tuple(accumulate(gaps)),
        clients=draw(st.sampled_from([0, 0, 0, 2])),
        think_ns=draw(st.integers(0, 50)),
        until=draw(st.none() | st.integers(1, 1000)),
    )


# With one slot a step of one row takes 6 ns and a prompt of 3 takes 8: the second comes as a step ends.
@example(Scenario(Serving(TICKS, 1), 0, ((3, 20), (3, 20)), (0, 38)))
@given(long_answers())
def test_long_answers(scenario):
    records, plain = serve(scenario), twin(scenario)
    assert records.steps.to_pylist() == plain.steps
    assert records.requests.to_pylist() == plain.requests


def test_long_answers_are_computed_many_steps_at_once(monkeypatch):
    together = []
    plainly = Stride.apply
    monkeypatch.setattr(Stride, "apply", lambda s, *a: (together.append(len(s.ends)), plainly(s, *a)))
    scenario = Scenario(Serving(SMALL, 2), 0, ((3, 50), (3, 50)), (0, 300_000_000))
    assert twin(scenario).steps == serve(scenario).steps.to_pylist()
    # One alone until the other comes in the midst of a step; both until the first ends; the other alone.
    assert len(together) == 3
    assert sum(together) > 70


@given(scenarios())
def test_several_steps_at_once_give_the_same_tables_as_step_by_step(scenario):
    at_once = serve(scenario)
    stepwise = serve(scenario, serving=dataclasses.replace(scenario.serving, stride=False))
    assert at_once.steps.equals(stepwise.steps)
    assert at_once.requests.equals(stepwise.requests)
    assert at_once.request_ns == stepwise.request_ns
