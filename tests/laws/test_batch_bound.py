"""The bound on batches: under every schedule of tiny batches, reached where it can be, never beaten."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.cost.architecture import FORMATS, Architecture
from simspec.cost.models import CostModel
from simspec.cost.roofline import Rates, RooflineCost
from simspec.cost.shape import StepShape, uniform
from simspec.cost.shares import share
from simspec.oracle.batched import bound_seconds, least_at_shares, sizes
from simspec.oracle.lagged import LaggedProgram
from simspec.replay.candidates import CandidateTable, tabulate
from simspec.replay.routed import route
from simspec.speculation.chains import Chain
from simspec.speculation.routing import Candidate
from simspec.traces.index import Trace
from tests.laws.test_lagged_program import CANDIDATES, routers
from tests.oracles.test_lockstep import AFFINE, measured
from tests.oracles.test_routed_replay import together
from tests.profiles import examples
from tests.reference import Price, Request, TwinCycle
from tests.toy import LOOKUP, MIDDLE, MODELS, SMALL, TARGET, Setting, Toy, settings_of

ROUNDING = 1.0 + 1e-9
EVERY = Chain((LOOKUP, SMALL, MIDDLE, TARGET))
TINY = Architecture(
    layers=2, hidden=8, intermediate=16, heads=2, kv_heads=1, head_dim=4, vocabulary=50, tied=False
)


def roofline(*, packed: bool) -> RooflineCost:
    """Made up so that a forward of a few tokens turns from traffic to arithmetic."""
    bigger = msgspec.structs.replace(TINY, layers=6)
    return RooflineCost(
        name="roofline",
        label="made up",
        rates=Rates(2e9, 3e9, layer_overhead_seconds=1e-7, forward_overhead_seconds=2e-7, cache_passes=3),
        formats=FORMATS["bfloat16"],
        architectures={SMALL: TINY, MIDDLE: msgspec.structs.replace(TINY, layers=3), TARGET: bigger},
        lookup_seconds={LOOKUP: 1e-8},
        packed=packed,
        step_overhead_seconds=1e-6,
    )


def costs(trace: Trace) -> list[CostModel]:
    return [measured(trace)[0], AFFINE, roofline(packed=True), roofline(packed=False)]


def one(cost: CostModel) -> Price:
    def price(model: str, *shape: int) -> float:
        return float(cost.forward_seconds(model, StepShape(*(np.array([n]) for n in shape)))[0])

    return price


@given(settings_of(), st.data())
@examples(2.0)
def test_shares_of_a_forward_never_exceed_it(setting: Setting, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 90)), min_size=1, max_size=9))
    chosen = data.draw(st.integers(1, len(rows)))
    allowed = data.draw(st.integers(chosen, 12))
    width, held = np.array(rows).T
    for cost in costs(Toy(setting).trace()):
        for model in MODELS:
            whole = one(cost)(model, len(rows), width.max(), width.sum(), held.max(), held.sum())
            alone = uniform(np.ones(chosen, dtype=np.int64), width[:chosen], held[:chosen])
            assert share(cost, allowed).forward_seconds(model, alone).sum() <= whole * ROUNDING, cost.name


def test_a_measured_table_needs_its_envelope() -> None:
    """Division alone would not do: noise makes some wider, longer or fuller forwards the cheaper ones."""
    cost = measured(Toy(Setting()).trace())[0]
    alike = uniform(np.ones(8, dtype=np.int64), np.arange(1, 9), np.full(8, 30))
    divided = cost.forward_seconds(SMALL, uniform(np.full(8, 4), np.arange(1, 9), np.full(8, 30))) / 4
    found = share(cost, 4).forward_seconds(SMALL, alike)
    assert (found <= divided * ROUNDING).all()
    assert (found < 0.9 * divided).any()


def test_a_cost_of_unknown_kind_is_refused() -> None:
    @dataclass(frozen=True)
    class Other:
        name = label = "other"
        step_overhead_seconds = 0.0
        models = frozenset(MODELS)

        def forward_seconds(self, model, shape):
            return np.ones(np.shape(shape.rows))

    with pytest.raises(TypeError, match="Other"):
        share(Other(), 2)


def schedules(request: Request, candidates: list[Candidate]) -> list[list[tuple[Candidate, TwinCycle]]]:
    """Every way to decode a request, with real caches."""
    if request.done:
        return [[]]
    found = []
    for candidate in candidates:
        after = request.copy()
        after.chain, length = candidate
        drafted = min(length, len(after.block()[0]))
        done = after.cycle(drafted, drafted)
        found += [[(candidate, done), *rest] for rest in schedules(after, candidates)]
    return found


def least_together(toy: Toy, batch: list[int], candidates: list[Candidate], cost: CostModel) -> float:
    """The fastest of all ways to decode a batch, each request with candidates of its own."""
    every = [schedules(Request.begin(toy, EVERY, p), candidates) for p in batch]
    return min(
        together(list(texts), one(cost), cost.step_overhead_seconds, by_candidate=False)
        for texts in product(*every)
    )


def bound(table: CandidateTable, cost: CostModel, batch: list[int]) -> float:
    starts = table.trace.offsets[:-1]
    least = {k: least_at_shares(table, cost, k, starts) for k in sizes(len(batch))}
    return float(bound_seconds(least, np.array([batch]))[0])


def two(data: st.DataObject) -> list[Candidate]:
    some = data.draw(st.lists(st.integers(0, len(CANDIDATES) - 1), min_size=1, max_size=2, unique=True))
    return [CANDIDATES[k] for k in some]


@given(settings_of(prompts=3, output_tokens=(1, 4), block_length=(3, 4)), st.data())
@examples(0.2)
def test_it_bounds_every_schedule_of_a_tiny_batch(setting: Setting, data: st.DataObject) -> None:
    toy = Toy(setting)
    batch = data.draw(st.lists(st.integers(0, len(toy.prompts) - 1), min_size=2, max_size=2))
    candidates = two(data)
    table = tabulate(toy.trace(), candidates)
    for cost in costs(table.trace):
        assert bound(table, cost, batch) <= least_together(toy, batch, candidates, cost) * ROUNDING


@given(settings_of(prompts=2, output_tokens=(1, 4), block_length=(3, 4)), st.data())
@examples(0.2)
def test_it_is_reached_by_copies_of_one_request_and_where_nothing_is_shared(
    setting: Setting, data: st.DataObject
) -> None:
    toy = Toy(setting)
    candidates = two(data)
    table = tabulate(toy.trace(), candidates)
    for cost in (AFFINE, roofline(packed=False)):
        assert bound(table, cost, [0, 0]) == pytest.approx(least_together(toy, [0, 0], candidates, cost))
    alone = msgspec.structs.replace(AFFINE, base_seconds=0.0, step_overhead_seconds=0.0)
    batch = [0, len(toy.prompts) - 1]
    assert bound(table, alone, batch) == pytest.approx(least_together(toy, batch, candidates, alone))


@dataclass(frozen=True)
class Random:
    """A candidate at random for every decider and cycle."""

    seed: int
    evidence: str = "realised"

    def begin(self, pool, deciders):
        return {}

    def choose(self, pool, state, view):
        generator = np.random.default_rng((self.seed, view.cycle))
        return generator.integers(0, len(pool.candidates), len(view.rows))

    def observe(self, pool, state, seen):
        return state


@given(settings_of(output_tokens=(4, 16), block_length=(3, 6)), st.data())
@examples(0.3)
def test_no_router_beats_it(setting: Setting, data: st.DataObject) -> None:
    trace = Toy(setting).trace()
    table = tabulate(trace, CANDIDATES)
    size = data.draw(st.integers(2, 6))
    request = st.lists(st.integers(0, len(trace.prompts) - 1), min_size=size, max_size=size)
    batches = np.array(data.draw(st.lists(request, min_size=1, max_size=3)))
    seed = data.draw(st.integers(0, 9))
    for cost in costs(trace):
        least = {k: least_at_shares(table, cost, k, trace.offsets[:-1]) for k in sizes(size)}
        bounds = bound_seconds(least, batches)
        for name, router in {"random": Random(seed), **routers(table, cost, 3)}.items():
            for split in (False, True) if not hasattr(router, "foresee") else (False,):
                found = route(table, cost, router, trace.offsets[:-1][batches], split=split).seconds
                assert (bounds <= found * ROUNDING).all(), (name, cost.name, split)


def test_for_one_request_it_is_the_program() -> None:
    table = tabulate(Toy(Setting(prompts=2, output_tokens=12)).trace(), CANDIDATES)
    for cost in (AFFINE, roofline(packed=False)):
        program = LaggedProgram(table, cost)
        for p, start in enumerate(table.trace.offsets[:-1]):
            assert bound(table, cost, [p]) == pytest.approx(program.least(int(start)).seconds)
