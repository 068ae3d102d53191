"""What the serving engine's tables must be beside what the claims M1 to M6 and M30 to M34 say of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pyarrow.compute as pc
import pytest
from hypothesis import given
from simpy import Environment

from simspec.claims.serving.laws import (
    LAWS,
    Law,
    Lived,
    Row,
    every_request_ends_once,
    first_come_first_served,
    instants_are_in_order,
    lived,
    never_idle_while_work_waits,
    no_slot_is_empty_while_somebody_waits,
    time_is_accounted_for,
    tokens_are_accounted_for,
    told,
)
from simspec.serving.cluster import Cluster
from simspec.serving.door import Door
from simspec.serving.engine import Engine
from simspec.serving.policies import Fixed
from simspec.serving.recorder import EMISSIONS, REQUESTS, STEPS, Recorder
from simspec.serving.request import Request
from simspec.strategies.serving import scenarios
from simspec.strategies.small_engines import Drafting, Scenario, Setup, Survival, serve
from simspec.tables import check_table


@given(scenarios())
def test_tables_and_the_order_of_instants(scenario):
    records = serve(scenario, emissions=True)
    assert instants_are_in_order(told(scenario, records)) == []
    check_table(STEPS, records.steps, "steps")
    ended = pc.equal(records.requests["outcome"], "finished")  # the others have instants that never came
    check_table(REQUESTS, records.requests.filter(ended), "requests")
    check_table(EMISSIONS, records.emissions, "emissions")


# -- the laws notice the slightest fault --------------------------------------------------------------------

# Four requests in two slots, two idle gaps, drafts accepted and refused.
BUSY = Scenario(
    Setup(2, Drafting(Fixed(3), Survival((0.6, 0.36, 0.216)))), 1, ((5, 9),) * 4, (0, 100, 200, 201)
)


def with_request(life: Lived, number: int, **values: object) -> Lived:
    rows = [row | values if row["request_id"] == number else row for row in life.requests]
    return dataclasses.replace(life, requests=rows)


def with_step(life: Lived, number: int, change: Callable[[Row], Row]) -> Lived:
    rows = [row | change(row) if row["step"] == number else row for row in life.steps]
    return dataclasses.replace(life, steps=rows)


def later(nanoseconds: int) -> Callable[[Row], Row]:
    return lambda row: {"started_at_ns": row["started_at_ns"] + nanoseconds}


BROKEN: dict[str, tuple[Law, Callable[[Lived], Lived]]] = {
    "a request lost": (
        every_request_ends_once,
        lambda life: dataclasses.replace(life, requests=life.requests[1:]),
    ),
    "a request twice": (every_request_ends_once, lambda life: with_request(life, 0, request_id=1)),
    "one more came": (
        every_request_ends_once,
        lambda life: dataclasses.replace(life, arrived=life.arrived + 1),
    ),
    "an end by another name": (
        every_request_ends_once,
        lambda life: with_request(life, 0, outcome="rejected"),
    ),
    "a token too few": (tokens_are_accounted_for, lambda life: with_request(life, 0, produced_tokens=8)),
    "a pass too many": (tokens_are_accounted_for, lambda life: with_request(life, 0, passes=9)),
    "a step's token lost": (
        tokens_are_accounted_for,
        lambda life: with_step(life, 1, lambda row: {"emitted_tokens": 0}),
    ),
    "an end too late": (
        time_is_accounted_for,
        lambda life: with_request(life, 0, ended_at_ns=life.by_number[0]["ended_at_ns"] + 1),
    ),
    "a nanosecond idle before a step": (
        never_idle_while_work_waits,
        lambda life: with_step(life, 1, later(1)),
    ),
    "a step before its time": (never_idle_while_work_waits, lambda life: with_step(life, 1, later(-1))),
    "a token before admission": (
        instants_are_in_order,
        lambda life: with_request(life, 1, first_token_at_ns=0),
    ),
    "admitted after who came later": (
        first_come_first_served,
        lambda life: with_request(life, 2, admitted_at_ns=life.by_number[3]["admitted_at_ns"] + 1),
    ),
    "kept waiting beside an empty slot": (
        no_slot_is_empty_while_somebody_waits,
        lambda life: with_request(life, 3, admitted_at_ns=life.by_number[3]["ended_at_ns"] - 1),
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_record_breaks_the_law(what):
    law, broken = BROKEN[what]
    life = lived(BUSY)
    assert law(life) == []
    assert law(broken(life)) != []


def test_every_law_is_shown_to_fail():
    assert {law for law, _ in BROKEN.values()} == {*LAWS, no_slot_is_empty_while_somebody_waits}


# -- memory -------------------------------------------------------------------------------------------------


@given(scenarios())
def test_blocks_add_up_after_every_event(scenario: Scenario):
    """What M32 says step by step, in the engine itself: with events, patience and several steps at once."""
    env = Environment()
    recorder = Recorder()
    engine = Engine(env, scenario.serving, scenario.seed, recorder)
    door = Door(env, Cluster((scenario.serving,)), [engine], recorder)

    def arrivals():
        for at, (i, (prompt, output)) in zip(scenario.instants, enumerate(scenario.sizes), strict=True):
            yield env.timeout(at - int(env.now))
            door.submit(Request(i, prompt, output))

    env.process(arrivals())
    while env.peek() < float("inf"):
        env.step()
        batch = engine.scheduler.batch
        for pool in engine.scheduler.pools:
            pool.check_integrity()
            empty = [slot for slot, ticket in enumerate(batch.tickets) if ticket is None]
            assert not pool.held[empty].any()
            assert (pool.held * pool.block_tokens >= batch.context - batch.decoding).all()
    assert all(pool.free == pool.total for pool in engine.scheduler.pools)
