"""Routers that learn what forwards take: what they are told, what they make of it, how they follow loads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given

from simspec.errors import BadInput
from simspec.replay.candidates import tabulate
from simspec.replay.evidence import Similarity
from simspec.replay.routed import route
from simspec.speculation.chains import Chain, all_chains
from simspec.speculation.predicting import predict
from simspec.speculation.routing import Always, Candidate, Clock, Pool, Seen, View
from simspec.speculation.schedulers_eq7 import SpecRouter
from simspec.theory.acceptance import emitted_tokens
from tests.oracles.test_lockstep import AFFINE
from tests.profiles import examples
from tests.toy import LOOKUP, MIDDLE, MODELS, SMALL, TARGET, Setting, Toy, settings_of

CANDIDATES: list[Candidate] = [
    (c, n) for c in all_chains(list(MODELS), TARGET, {LOOKUP}) for n in ((1, 3) if c.drafter else (0,))
]


@dataclass(frozen=True)
class InTurn:
    """All candidates, one after the other."""

    evidence: str = "realised"

    def begin(self, pool, deciders):
        return {}

    def choose(self, pool, state, view):
        return np.full(len(view.request), view.cycle % len(pool.candidates))

    def observe(self, pool, state, seen):
        return state


@dataclass(frozen=True)
class Overheard:
    """Another router; keeps what it is told and what it then remembers."""

    router: Any
    latency_weight: float
    told: list[Seen] = field(default_factory=list)
    states: list[dict] = field(default_factory=list)

    @property
    def evidence(self):
        return self.router.evidence

    def begin(self, pool, deciders):
        return self.router.begin(pool, deciders)

    def choose(self, pool, state, view):
        return self.router.choose(pool, state, view)

    def observe(self, pool, state, seen):
        self.told.append(seen)
        self.states.append(self.router.observe(pool, state, seen))
        return self.states[-1]


@given(settings_of(output_tokens=(6, 20), block_length=(3, 6)))
@examples(0.6)
def test_what_is_told_are_the_forwards_one_by_one(setting: Setting) -> None:
    """Every text in one batch; each forward's rows and widths once more from the log, and its price."""
    trace = Toy(setting).trace()
    table = tabulate(trace, CANDIDATES)
    heard = Overheard(InTurn(), 1.0)
    log = route(table, AFFINE, heard, trace.offsets[:-1][None], keep=True).log
    for cycle, seen in zip(log, heard.told, strict=True):
        chain, _ = table.pool.candidates[cycle.candidate[0, 0]]
        context = trace.context[cycle.flat[0]]
        on = cycle.active[0]
        forwards: list[tuple[str, np.ndarray]] = [(TARGET, cycle.width[0])]
        if chain.intermediates and cycle.middle[0].any():
            forwards.append((chain.intermediates[0], cycle.middle[0]))
        if chain.drafter == LOOKUP:
            forwards.append((LOOKUP, np.where(on, np.maximum(cycle.drafted[0], 1), 0)))
        elif chain.drafter:
            steps = range(int(cycle.drafted[0].max()))
            forwards += [(chain.drafter, cycle.drafted[0] > s if s else cycle.lag[0]) for s in steps]
        for i, model in enumerate(table.pool.names):
            widths = [np.asarray(w, dtype=int) for name, w in forwards if name == model]
            ratio = AFFINE.ratios.get(model, 1.0)
            seconds = sum(
                ratio * (0.02 + 1e-3 * w.sum() + 1e-4 * context[w > 0].sum(dtype=float)) for w in widths
            )
            assert seen.clock is not None
            assert seen.clock.forwards[0, i] == len(widths)
            assert seen.clock.width[0, i] == sum(w.max() for w in widths)
            assert seen.clock.seconds[0, i] == pytest.approx(seconds, abs=1e-12)
        assert seen.clock.seconds.sum() + AFFINE.step_overhead_seconds == pytest.approx(cycle.seconds[0])


def test_only_who_asks_is_told() -> None:
    trace = Toy(Setting()).trace()
    table = tabulate(trace, CANDIDATES)
    for weight in (0.0, 0.5):
        heard = Overheard(InTurn(), weight)
        route(table, AFFINE, heard, trace.offsets[:1][None])
        assert all((seen.clock is not None) == (weight > 0) for seen in heard.told)


def test_requests_that_choose_alone_hear_the_whole_batch() -> None:
    trace = Toy(Setting(prompts=3)).trace()
    heard = Overheard(InTurn(), 0.5)
    route(tabulate(trace, CANDIDATES), AFFINE, heard, trace.offsets[:-1][None], split=True)
    for seen in heard.told:
        assert len(seen.clock.seconds) == 3
        assert (seen.clock.seconds == seen.clock.seconds[0]).all()


def told(pool: Pool, took: dict[str, tuple[int, float]]) -> Seen:
    """A cycle in which models ran so often and took so long together; nothing of acceptance."""
    one, none = np.ones(1, dtype=np.int64), np.zeros((1, len(pool.names) ** 2))
    forwards, seconds = np.zeros((2, 1, len(pool.names)))
    for model, (times, spent) in took.items():
        forwards[0, pool.names.index(model)], seconds[0, pool.names.index(model)] = times, spent
    clock = Clock(forwards, seconds, forwards)
    return Seen(0 * one, one, one, np.ones(1), one, one, np.ones((1, 2)), none, none, clock)


def test_times_by_hand() -> None:
    """Weight 1/2. Target: 4, then 2: 3. Small: 3 forwards of 2, then 2 of 4: 2 + (1 - 1/4) 2 = 3.5."""
    pool = tabulate(Toy(Setting()).trace(), CANDIDATES).pool
    router = SpecRouter(prior=(0.5,), weight=0.0, latency_weight=0.5)
    state = router.begin(pool, 1)
    state = router.observe(pool, state, told(pool, {TARGET: (1, 4.0), SMALL: (3, 6.0)}))
    small, target, middle = (pool.names.index(m) for m in (SMALL, TARGET, MIDDLE))
    assert state["took"][0, [target, small]].tolist() == [4.0, 2.0]
    state = router.observe(pool, state, told(pool, {TARGET: (1, 2.0), SMALL: (2, 8.0)}))
    assert state["took"][0, [target, small]].tolist() == [3.0, 3.5]
    assert np.isnan(state["took"][0, middle])

    def seconds(model: int, width: np.ndarray) -> np.ndarray:
        return np.broadcast_to(10.0 * (model == middle) + 0.25 * np.asarray(width), (1, np.size(width)))

    one = np.ones(1, dtype=np.int64)
    view = View(1, 0 * one, one, np.ones(1), np.ones((1, len(pool.names)), dtype=np.int64), one, seconds, 0.5)
    found = router.scores(pool, state, view)[0]
    pair, triple = Chain((SMALL, TARGET)), Chain((MIDDLE, TARGET))
    # The target with the cycle's overhead; the middle model, never seen, at its one-token time.
    assert found[pool.candidates.index((Chain((TARGET,)), 0))] == pytest.approx(3.5)
    wanted = (3 * 3.5 + 3.5) / float(emitted_tokens(0.5, 3))
    assert found[pool.candidates.index((pair, 3))] == pytest.approx(wanted)
    wanted = (3 * 10.25 + 3.5) / float(emitted_tokens(0.5, 3))
    assert found[pool.candidates.index((triple, 3))] == pytest.approx(wanted)
    # Without learning, the profile and nothing else.
    plain = SpecRouter(prior=(0.5,), weight=0.0)
    assert (
        plain.scores(pool, state | {"took": None}, view) == predict(pool, "reach", state["alpha"], view)
    ).all()


FLAT = msgspec.structs.replace(AFFINE, token_seconds=0.0, context_token_seconds=0.0)


@given(settings_of(output_tokens=(6, 20), block_length=(3, 6)))
@examples(0.6)
def test_times_that_never_vary_are_the_profile(setting: Setting) -> None:
    trace = Toy(setting).trace()
    table, similarity = tabulate(trace, CANDIDATES), Similarity.of(trace)
    starts = trace.offsets[:-1][None]
    for variant in ("reach", "funnel"):
        for weight in (0.05, 1.0):
            logs = [
                route(
                    table,
                    FLAT,
                    SpecRouter(variant=variant, evidence="simscore", weight=0.3, latency_weight=w),
                    starts,
                    similarity=similarity,
                    keep=True,
                ).log
                for w in (0.0, weight)
            ]
            assert all((a.candidate == b.candidate).all() for a, b in zip(*logs, strict=True))


@pytest.mark.parametrize("weight", [0.1, 0.5])
def test_a_load_that_falls_in_mid_batch_is_followed(weight: float) -> None:
    """Plain decoding; a row costs 1 ms. Three texts of 4 tokens and a longer one: 4 cycles of 4 rows, then 1.

    T falls from 4 ms to 1 ms as (1 - w)^n says, n forwards after the others have ended.
    """
    trace = Toy(Setting(seed=2, prompts=1, output_tokens=16, block_length=4)).trace()
    table = tabulate(trace, [(Chain((TARGET,)), 0)])
    per_row = msgspec.structs.replace(AFFINE, base_seconds=0.0, context_token_seconds=0.0)
    heard = Overheard(SpecRouter(latency_weight=weight), weight)
    length = len(trace.tokens)
    found = route(table, per_row, heard, np.array([[0, length - 4, length - 4, length - 4]]))
    assert found.cycles.tolist() == [length]
    assert length >= 8
    took = np.array([s["took"][0, table.pool.names.index(TARGET)] for s in heard.states])
    n = np.arange(length) - 3
    np.testing.assert_allclose(1000 * took, 1.0 + 3.0 * (1 - weight) ** np.maximum(n, 0))


def test_a_weight_out_of_range_is_refused() -> None:
    for wrong in (-0.1, 1.5):
        with pytest.raises(BadInput, match="latency_weight"):
            SpecRouter(latency_weight=wrong)
    assert not hasattr(Always(0), "latency_weight")
