"""Routed replay: one candidate for ever = lock-step replay; any other schedule = caches lived through."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.errors import BadInput
from simspec.replay import lockstep
from simspec.replay.candidates import tabulate
from simspec.replay.meter import Meter
from simspec.replay.prices import every_price
from simspec.replay.routed import Routed, route
from simspec.replay.trajectories import run
from simspec.speculation.chains import Chain, all_chains
from simspec.speculation.lengths import Static
from simspec.speculation.routing import Always, Candidate, OneByOne
from simspec.speculation.schedulers import Schedule, TakeTurns
from simspec.strategies.token_by_token import decode_scheduled
from simspec.traces.index import Trace
from tests.oracles.test_lockstep import AFFINE, measured
from tests.profiles import examples
from tests.reference import Price, Request, TwinCycle, affine_price
from tests.toy import LOOKUP, MIDDLE, MODELS, SMALL, TARGET, Setting, Toy, settings_of

CHAINS = all_chains(list(MODELS), TARGET, {LOOKUP})
CANDIDATES: list[Candidate] = [(c, n) for c in CHAINS for n in ((1, 3) if c.drafter else (0,))]


@dataclass(frozen=True)
class InOrder:
    """Candidates by cycle and decider, given beforehand."""

    order: tuple[tuple[int, ...], ...]
    evidence: str = "realised"

    def begin(self, pool, deciders):
        return {}

    def choose(self, pool, state, view):
        row = self.order[view.cycle % len(self.order)]
        return np.array([row[i % len(row)] for i in view.request])

    def observe(self, pool, state, seen):
        return state


def fitting(trace: Trace) -> list[Candidate]:
    depth = trace.manifest.block_length
    return [(c, n) for c, n in CANDIDATES if n <= depth]


@given(settings_of(output_tokens=(4, 16), block_length=(3, 7)), st.data())
@examples(0.4)
def test_one_candidate_for_ever_is_lockstep_to_the_last_bit(setting: Setting, data: st.DataObject) -> None:
    trace = Toy(setting).trace()
    table = tabulate(trace, fitting(trace))
    cost, _ = measured(trace)
    for size in (1, 8):
        request = st.lists(st.integers(0, len(trace.prompts) - 1), min_size=size, max_size=size)
        batches = np.array(data.draw(st.lists(request, min_size=1, max_size=3)))
        starts = trace.offsets[:-1][batches]
        for k, (chain, length) in enumerate(table.pool.candidates):
            runs = run(trace, chain, Static(length) if length else None, trace.offsets[:-1])
            wanted = lockstep.price(runs, batches, [cost, AFFINE], lookup=chain.drafter == LOOKUP)
            for priced, times in zip((cost, AFFINE), wanted, strict=True):
                for split in (False, True):
                    found = route(table, priced, Always(k), starts, split=split)
                    assert found.seconds.tolist() == times.seconds.tolist(), (str(chain), length, split)
                    assert found.tokens.tolist() == times.tokens.tolist()
                    assert not found.switches.any()
                    assert not found.catching_up.any()


def lived(toy: Toy, prompt: int, take: Callable[[int], Candidate]) -> list[tuple[Candidate, TwinCycle]]:
    """A text decoded token by token with every model's cache; ``take`` says which candidate by cycle."""
    found = []
    request = Request.begin(toy, Chain((LOOKUP, SMALL, MIDDLE, TARGET)), prompt)
    while not request.done:
        request.chain, length = take(len(found))
        drafted = min(length, len(request.block()[0]))
        found.append(((request.chain, length), request.cycle(drafted, drafted)))
    return found


def together(
    texts: list[list[tuple[Candidate, TwinCycle]]], price: Price, overhead: float, by_candidate: bool
) -> float:
    """Seconds of a batch, cycle by cycle: which rows share a forward, and how wide each is."""
    total = 0.0
    for c in range(max(map(len, texts))):
        total += overhead
        forwards: dict[tuple[object, ...], list[tuple[str, int, int]]] = defaultdict(list)
        for (chain, length), cycle in (text[c] for text in texts if c < len(text)):

            def add(
                key: tuple[object, ...],
                model: str,
                width: int,
                context: int = cycle.context,
                forwards: dict[tuple[object, ...], list[tuple[str, int, int]]] = forwards,
            ) -> None:
                forwards[key].append((model, width, context))

            drafter = chain.drafter
            group = ((chain, length) if by_candidate else drafter,)
            if drafter == LOOKUP:
                add((*group, "look-up"), drafter, max(cycle.drafted, 1))
            elif drafter is not None and cycle.drafted:
                add((*group, 1), drafter, cycle.lag)
                for step in range(2, cycle.drafted + 1):
                    add((*group, step), drafter, 1)
            for model, width in zip(chain.intermediates, cycle.middle, strict=True):
                if width:
                    add(("middle", model), model, width)
            add(("target",), TARGET, cycle.width)
        for rows in forwards.values():
            widths, held = [w for _, w, _ in rows], [h for *_, h in rows]
            total += price(rows[0][0], len(rows), max(widths), sum(widths), max(held), sum(held))
    return total


def assert_lived(table, found: Routed, texts: list[list[list[tuple[Candidate, TwinCycle]]]]) -> None:
    """Every count of every cycle of every request of every batch."""
    seen = defaultdict(list)
    for cycle in found.log:
        for g, batch in enumerate(cycle.batch):
            for b in np.flatnonzero(cycle.active[g]):
                names = ("candidate", "drafted", "lag", "middle", "width", "accepted", "emitted")
                counts = {n: int(getattr(cycle, n)[g, b]) for n in names}
                seen[int(batch), int(b)].append(counts)
    for g, batch in enumerate(texts):
        for b, text in enumerate(batch):
            wanted = [
                {
                    "candidate": table.pool.candidates.index(candidate),
                    "drafted": done.drafted,
                    "lag": done.lag,
                    "middle": sum(done.middle),
                    "width": done.width,
                    "accepted": done.accepted,
                    "emitted": len(done.emitted),
                }
                for candidate, done in text
            ]
            assert seen[g, b] == wanted


@given(settings_of(output_tokens=(4, 20), block_length=(3, 7)), st.data())
@examples(0.6)
def test_any_schedule_is_what_caches_live_through(setting: Setting, data: st.DataObject) -> None:
    toy = Toy(setting)
    trace = toy.trace()
    table = tabulate(trace, fitting(trace))
    cost, price = measured(trace)
    size, split = data.draw(st.integers(1, 4)), data.draw(st.booleans())
    by_candidate = split and data.draw(st.booleans())
    request = st.lists(st.integers(0, len(toy.prompts) - 1), min_size=size, max_size=size)
    batches = data.draw(st.lists(request, min_size=1, max_size=3))
    one = st.integers(0, len(table.pool.candidates) - 1)
    order = tuple(
        map(tuple, data.draw(st.lists(st.lists(one, min_size=1, max_size=3), min_size=1, max_size=6)))
    )
    starts = trace.offsets[:-1][np.array(batches)]

    def taken(decider: int) -> Callable[[int], Candidate]:
        def take(cycle: int) -> Candidate:
            row = order[cycle % len(order)]
            return table.pool.candidates[row[decider % len(row)]]

        return take

    texts = [
        [lived(toy, p, taken(g * size + b if split else g)) for b, p in enumerate(batch)]
        for g, batch in enumerate(batches)
    ]
    for priced, one_by_one in ((cost, price), (AFFINE, affine_price(AFFINE))):
        found = route(
            table,
            priced,
            InOrder(order),
            starts,
            split=split,
            drafts_together="candidate" if by_candidate else "drafter",
            keep=True,
        )
        assert_lived(table, found, texts)
        overhead = priced.step_overhead_seconds
        slow = [together(batch, one_by_one, overhead, by_candidate) for batch in texts]
        np.testing.assert_allclose(found.seconds, slow, rtol=1e-9)
        spent = sum(float(c.seconds.sum()) for c in found.log)
        assert spent == pytest.approx(float(found.seconds.sum()), rel=1e-9)


@given(settings_of(output_tokens=(4, 16), block_length=(3, 6)), st.integers(1, 3))
@examples(0.6)
def test_turns_of_a_decoders_scheduler(setting: Setting, every: int) -> None:
    """The scheduler itself, asked as the decoder of real models asks it."""
    toy = Toy(setting)
    trace = toy.trace()
    table = tabulate(trace, fitting(trace)[::3])
    schedules = [Schedule(c, Static(n) if n else None) for c, n in table.pool.candidates]
    prompts = len(toy.prompts)
    router = OneByOne(TakeTurns(every))
    found = route(table, AFFINE, router, trace.offsets[:-1][None], split=True, keep=True)
    for p in range(prompts):
        wanted = [(c.chosen, *c.counts) for c in decode_scheduled(toy, p, schedules, TakeTurns(every))]
        mine = [
            tuple(
                int(getattr(c, n)[0, p])
                for n in ("candidate", "drafted", "drafted", "width", "accepted", "emitted")
            )
            for c in found.log
            if c.active[0, p]
        ]
        assert mine == wanted


def test_a_model_that_was_idle_reads_what_it_missed() -> None:
    """By hand: two plain cycles, then a pair. The drafter has missed two tokens; one it reads anyway."""
    setting = Setting(seed=2, prompts=1, output_tokens=8, block_length=4, middle_rate=1.0, small_rate=1.0)
    trace = Toy(setting).trace()
    table = tabulate(trace, [(Chain((TARGET,)), 0), (Chain((SMALL, TARGET)), 2)])
    found = route(table, AFFINE, InOrder(((0,), (0,), (1,), (1,))), trace.offsets[:1][None], keep=True)
    assert [int(c.lag[0, 0]) for c in found.log] == [0, 0, 3, 2]
    # Two tokens more in one forward of the small model, at a tenth of the target's price a token.
    assert found.catching_up[0] == pytest.approx(2 * 0.1 * AFFINE.token_seconds)
    assert found.switches.tolist() == [1]
    assert found.decisions.tolist() == [len(found.log)]


@given(settings_of(output_tokens=(4, 16), block_length=(3, 7)), st.data())
@examples(0.4)
def test_every_price_is_what_the_cycle_would_cost(setting: Setting, data: st.DataObject) -> None:
    trace = Toy(setting).trace()
    table = tabulate(trace, fitting(trace))
    cost, _ = measured(trace)
    count, size = len(table.pool.candidates), data.draw(st.integers(1, 3))
    at = np.array(data.draw(st.lists(st.integers(0, len(trace.tokens) - 1), min_size=size, max_size=size)))
    lag = np.array(data.draw(st.lists(st.integers(1, 5), min_size=4 * size, max_size=4 * size)))
    lag = lag.reshape(1, size, 4)
    for priced in (cost, AFFINE):
        found = every_price(table, priced, at[None], np.ones((1, size), dtype=bool), lag)
        for k in range(count):
            meter = Meter(table, priced, 1, False, "drafter")
            cycle = meter.charge(
                np.zeros(1, dtype=np.int64),
                np.full((1, size), k),
                at[None],
                np.ones((1, size), dtype=bool),
                lag,
                np.zeros_like(lag),
            )
            assert found[0, k] == pytest.approx(cycle.seconds[0], rel=1e-12)


def test_candidates_that_cannot_be_routed_are_refused() -> None:
    trace = Toy(Setting()).trace()
    with pytest.raises(BadInput, match="at most one intermediate"):
        tabulate(trace, [(Chain((LOOKUP, SMALL, MIDDLE, TARGET)), 2)])
    for candidate in ((Chain((SMALL, TARGET)), 0), (Chain((TARGET,)), 2), (Chain((SMALL, TARGET)), 99)):
        with pytest.raises(BadInput, match="drafts of"):
            tabulate(trace, [candidate])
    with pytest.raises(BadInput, match="at least one chain"):
        tabulate(trace, [])
    with pytest.raises(BadInput, match="unknown model"):
        tabulate(trace, [(Chain(("smal", TARGET)), 2)])
