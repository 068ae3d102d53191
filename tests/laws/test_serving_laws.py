"""KV blocks add up in the engine after every event. (Of its tables: tests/invariants_serving.py.)"""

from __future__ import annotations

from hypothesis import given
from simpy import Environment

from simspec.serving.cluster import Cluster
from simspec.serving.door import Door
from simspec.serving.engine import Engine
from simspec.serving.recorder import Recorder
from simspec.serving.request import Request
from simspec.strategies.serving import scenarios
from simspec.strategies.small_engines import Scenario


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
