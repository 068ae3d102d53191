"""The dynamic program with lags: exact on tiny texts, and no scheduler beats it anywhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.compare.batches import draw_prompts
from simspec.compare.costs import open_cost
from simspec.compare.explain import explain
from simspec.compare.route_schedulers import SCHEDULERS, Tuned, priors
from simspec.compare.routing import RouteSettings, candidates_of
from simspec.cost.models import CostModel
from simspec.oracle.chains import least_seconds
from simspec.oracle.lagged import Follow, LaggedProgram
from simspec.oracle.myopic import MyopicHindsight
from simspec.replay.candidates import CandidateTable, tabulate
from simspec.replay.routed import route
from simspec.speculation.chains import Chain, all_chains
from simspec.speculation.routing import Candidate
from simspec.traces.index import load_trace
from tests.oracles.test_lockstep import AFFINE, measured
from tests.profiles import examples
from tests.reference import Price, Request, affine_price, cycle_seconds
from tests.toy import LOOKUP, MIDDLE, MODELS, SMALL, TARGET, Setting, Toy, settings_of

EVERY = Chain((LOOKUP, SMALL, MIDDLE, TARGET))
CANDIDATES: list[Candidate] = [
    (c, n) for c in all_chains(list(MODELS), TARGET, {LOOKUP}) for n in ((1, 2, 3) if c.drafter else (0,))
]
ROUNDING = 1.0 + 1e-9
TRACE = Path(__file__).parents[2] / "traces/smollm2-cpu"


@dataclass(frozen=True)
class Steps:
    """Seconds of a forward by model and width, rising or not; the last for all wider ones."""

    tables: dict[str, tuple[float, ...]]
    name = label = "made up"
    step_overhead_seconds = 0.25
    models = frozenset(MODELS)

    def one(self, model: str, rows: int, width: int, tokens: int, context: int, held: int) -> float:
        table = self.tables[model]
        return table[min(width, len(table)) - 1]

    def forward_seconds(self, model, shape):
        return np.vectorize(lambda w: self.one(model, 1, int(w), 0, 0, 0), otypes=[float])(shape.width)


def rising(data: st.DataObject, *, rising_only: bool) -> Steps:
    tables = {}
    for model in MODELS:
        steps = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=6), label=model)
        tables[model] = tuple(np.cumsum(steps).tolist() if rising_only else steps)
    return Steps(tables)


def least(toy: Toy, request: Request, candidates: list[Candidate], price: Price, overhead: float) -> float:
    """Every schedule of the candidates, one after another, with every model's cache."""
    if request.done:
        return 0.0
    best = math.inf
    for chain, length in candidates:
        after = request.copy()
        after.chain = chain
        drafted = min(length, len(after.block()[0]))
        spent = cycle_seconds(after.cycle(drafted, drafted), chain, price, overhead)
        best = min(best, spent + least(toy, after, candidates, price, overhead))
    return best


def three(data: st.DataObject) -> list[Candidate]:
    some = data.draw(st.lists(st.integers(0, len(CANDIDATES) - 1), min_size=1, max_size=3, unique=True))
    return [CANDIDATES[k] for k in some]


@given(settings_of(prompts=2, output_tokens=(1, 8), block_length=(3, 4)), st.data())
@examples(0.6)
def test_the_least_time_is_that_of_the_fastest_of_all_schedules(
    setting: Setting, data: st.DataObject
) -> None:
    toy = Toy(setting)
    trace = toy.trace()
    candidates = three(data)
    table = tabulate(trace, candidates)
    steps = rising(data, rising_only=True)
    for cost, price in ((steps, steps.one), (AFFINE, affine_price(AFFINE))):
        program = LaggedProgram(table, cost)
        for p in range(len(toy.prompts)):
            found = program.least(int(trace.offsets[p]))
            slow = least(toy, Request.begin(toy, EVERY, p), candidates, price, cost.step_overhead_seconds)
            assert found.seconds == pytest.approx(slow, rel=1e-9, abs=1e-12)


@given(settings_of(prompts=2, output_tokens=(1, 7), block_length=(3, 4)), st.data())
@examples(0.4)
def test_where_wider_can_be_cheaper_it_is_a_lower_bound(setting: Setting, data: st.DataObject) -> None:
    toy = Toy(setting)
    trace = toy.trace()
    candidates = three(data)
    steps = rising(data, rising_only=False)
    program = LaggedProgram(tabulate(trace, candidates), steps)
    for p in range(len(toy.prompts)):
        slow = least(toy, Request.begin(toy, EVERY, p), candidates, steps.one, steps.step_overhead_seconds)
        assert program.least(int(trace.offsets[p])).seconds <= slow * ROUNDING


@given(settings_of(output_tokens=(4, 24), block_length=(3, 6)))
@examples(0.6)
def test_its_schedule_takes_the_time_it_says_and_beats_the_bound_without_lags(setting: Setting) -> None:
    trace = Toy(setting).trace()
    table = tabulate(trace, CANDIDATES)
    program = LaggedProgram(table, AFFINE)
    free = least_seconds(trace, CANDIDATES, AFFINE)
    for p, start in enumerate(trace.offsets[:-1]):
        found = program.least(int(start))
        laid_down = np.zeros(len(trace.tokens), dtype=np.int64)
        laid_down[start + np.array(found.positions)] = found.candidates
        done = route(table, AFFINE, Follow(laid_down), np.array([[start]]))
        assert done.seconds[0] == pytest.approx(found.seconds, rel=1e-9)
        assert done.cycles[0] == len(found.candidates)
        assert free[p] <= found.seconds * ROUNDING


def routers(table: CandidateTable, cost: CostModel, longest: int) -> dict:
    """All schedulers; the teaching prompts are the scored ones, which can only help them."""
    seconds = np.linspace(1.0, 2.0, len(table.pool.candidates))
    known = priors(table, draw_prompts(table.trace, 0, 0), longest)
    tuned = Tuned(table, cost, seconds, seconds[::-1], known)
    found = {name: factory(tuned) for name, factory in SCHEDULERS.items()}
    return {name: router for name, router in found.items() if router is not None}


@given(settings_of(output_tokens=(4, 20), block_length=(3, 6)))
@examples(0.3)
def test_no_scheduler_beats_it(setting: Setting) -> None:
    trace = Toy(setting).trace()
    table = tabulate(trace, CANDIDATES)
    noisy, _ = measured(trace)
    for cost in (noisy, AFFINE):
        program = LaggedProgram(table, cost)
        bound = np.array([program.least(int(start)).seconds for start in trace.offsets[:-1]])
        for name, router in routers(table, cost, 3).items():
            found = route(table, cost, router, trace.offsets[:-1][:, None]).seconds
            assert (bound <= found * ROUNDING).all(), name


@pytest.fixture(scope="module")
def recorded():
    trace = load_trace(TRACE)
    cost = open_cost(trace, str(TRACE.parents[1] / "calibrate/h100-llama-3.1-8b.toml"))
    settings = RouteSettings(batches=(1,), lengths=(1, 2, 4, 8))
    return trace, cost, settings, tabulate(trace, candidates_of(trace, cost, settings))


def test_on_the_committed_trace_no_scheduler_beats_it_and_hindsight_is_not_always_best(recorded) -> None:
    trace, cost, _, table = recorded
    program = LaggedProgram(table, cost)
    starts = trace.offsets[:-1]
    bound = np.array([program.least(int(start)).seconds for start in starts])
    for name, router in routers(table, cost, 8).items():
        found = route(table, cost, router, starts[:, None]).seconds
        assert (bound <= found * ROUNDING).all(), name
    myopic = route(table, cost, MyopicHindsight(table, cost), starts[:, None]).seconds
    # Knowing what comes is not enough: the best of every cycle is not the best of the text (claim S10).
    assert (myopic > 1.005 * bound).any()


def test_what_the_cycles_lost_is_what_the_text_took_over_the_least(recorded) -> None:
    trace, cost, settings, table = recorded
    program = LaggedProgram(table, cost)
    for name in ("funnel-switch", "dytc"):
        cycles = explain(trace, cost, settings, 17, name)
        took = sum(c.seconds for c in cycles)
        best = program.least(int(trace.offsets[17])).seconds
        assert all(c.lost >= -1e-9 for c in cycles)
        assert took - best == pytest.approx(sum(c.lost for c in cycles), rel=1e-6)
        assert sum(c.emitted for c in cycles) == trace.remaining[trace.offsets[17]]
