"""Laws of the serving simulator that hold for every scenario (M1, M2, M3, M6, M10 of the claims).

Each law is a function from records to a list of what breaks it, so that the same function can be shown
records that are broken on purpose: a law that lets those pass would say nothing.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simpy import Environment

from simspec.serving.arrivals import OpenLoop
from simspec.serving.config import Serving, Speculation
from simspec.serving.engine import Engine
from simspec.serving.policies import Fixed
from simspec.serving.pricing import Costs
from simspec.serving.recorder import EMISSIONS, REQUESTS, STEPS, Recorder
from simspec.serving.request import Request
from simspec.serving.simulate import Records, simulate
from simspec.serving.verdicts import Rates
from simspec.tables import check_table
from tests.unit.test_serving_scenarios import AFFINE, Scenario, affine, live, scenarios, step_ends

Law = Callable[[Records], list[str]]


def every_request_ends_once(records: Records) -> list[str]:
    """M1: requests in = finished + rejected + timed out + unfinished, in the counters and in the table."""
    found = []
    if records.arrived != sum(records.outcomes.values()):
        found.append(f"{records.arrived} came, {sum(records.outcomes.values())} ended")
    listed = Counter(records.requests["outcome"].to_pylist())
    if listed != {o.name.lower(): n for o, n in records.outcomes.items() if n}:
        found.append(f"table {listed}, counters {records.outcomes}")
    if sorted(records.requests["request_id"].to_pylist()) != list(range(records.arrived)):
        found.append("a request is missing from the table, or is there twice")
    return found


def tokens_are_accounted_for(records: Records) -> list[str]:
    """M2: a request's tokens are its steps' accepted drafts and one each, cut at its output length.

    A step here is a decoding pass, or the reading of its prompt, which gives a token without a draft.
    """
    assert records.emissions is not None
    found = []
    emissions = records.emissions.to_pandas()
    whole = emissions["accepted_tokens"] + 1
    if (emissions["emitted_tokens"] != whole).any():
        found.append("a row emitted something else than its accepted drafts and one token")
    per_request = emissions.groupby("request_id").sum()
    for row in records.requests.to_pylist():
        number = row["request_id"]
        own = per_request.loc[number] if number in per_request.index else Counter()
        for ours, theirs in (
            ("produced_tokens", "emitted_tokens"),
            ("drafted_tokens", "drafted_tokens"),
            ("accepted_tokens", "accepted_tokens"),
        ):
            if row[ours] != own[theirs]:
                found.append(f"request {number}: {ours} {row[ours]}, its steps say {own[theirs]}")
        if row["produced_tokens"] > row["output_tokens"]:
            found.append(f"request {number} got more than it asked for")
        if (row["outcome"] == "finished") != (row["produced_tokens"] == row["output_tokens"]):
            found.append(f"request {number} is {row['outcome']} with {row['produced_tokens']} tokens")
        readings = row["produced_tokens"] - row["passes"] - row["accepted_tokens"]
        if not (row["produced_tokens"] > 0) <= readings <= 1 + row["preemptions"]:
            found.append(f"request {number}: its prompt was read {readings} times")
    for column in ("emitted_tokens", "drafted_tokens", "accepted_tokens"):
        steps = sum(records.steps[column].to_pylist())
        if steps != int(emissions[column].sum()):
            found.append(f"steps say {steps} {column}")
    return found


def time_is_accounted_for(records: Records) -> list[str]:
    """M6, Little's law on the path: requests in the system, summed over time = their times in it, summed."""
    spent = sum(r["ended_at_ns"] - r["arrived_at_ns"] for r in records.requests.to_pylist())
    return (
        [] if spent == records.request_ns else [f"{spent} against {records.request_ns} request-nanoseconds"]
    )


def never_idle_while_work_waits(records: Records) -> list[str]:
    """M6: between two steps, before the first and after the last, nobody is there."""
    begins = [*records.steps["started_at_ns"].to_pylist(), None]
    ends = [0, *step_ends(records)]
    found = []
    for end, begin in zip(ends, begins, strict=True):
        if begin is None:  # after the last step, of which one that was cut off is no record
            if any(r["outcome"] == "unfinished" for r in records.requests.to_pylist()):
                continue
            begin = records.ended_at
        if begin < end:
            found.append(f"a step begins at {begin}, before the last ends at {end}")
        found += [
            f"request {r['request_id']} waits while the engine is idle from {end} to {begin}"
            for r in records.requests.to_pylist()
            if max(r["arrived_at_ns"], end) < min(r["ended_at_ns"], begin)
        ]
    return found


def instants_are_in_order(records: Records) -> list[str]:
    """A request comes, is admitted, gets its first token and ends, in that order."""
    names = ("arrived_at_ns", "admitted_at_ns", "first_token_at_ns", "ended_at_ns")
    found = []
    for row in records.requests.to_pylist():
        known = [row[n] for n in names if row[n] is not None]
        if any(b < a for a, b in pairwise(known)) or known[-1] > records.ended_at:
            found.append(f"request {row['request_id']}: {known}")
    return found


LAWS: list[Law] = [
    every_request_ends_once,
    tokens_are_accounted_for,
    time_is_accounted_for,
    never_idle_while_work_waits,
    instants_are_in_order,
]


@given(scenarios())
def test_laws(scenario):
    records = live(scenario, emissions=True)
    assert {law.__name__: broken for law in LAWS if (broken := law(records))} == {}
    check_table(STEPS, records.steps, "steps")
    ended = pc.equal(records.requests["outcome"], "finished")  # the others have instants that never came
    check_table(REQUESTS, records.requests.filter(ended), "requests")
    check_table(EMISSIONS, records.emissions, "emissions")


# -- the laws can fail --------------------------------------------------------------------------------------


def busy() -> Records:
    """Four requests in two slots, two idle gaps, drafts accepted and refused."""
    serving = Serving(
        Costs(AFFINE["ticks"], "target", "small"), 2, Speculation(Fixed(3), Rates.independent(0.6, 3))
    )
    load = [(100 * n, Request(n, 5, 9)) for n in range(3)] + [(201, Request(3, 5, 9))]
    return simulate(serving, OpenLoop(load), 1, emissions=True)


def changed(table: pa.Table, row: int, **values: object) -> pa.Table:
    """A table with some cells of one row changed."""
    rows = table.to_pylist()
    rows[row] |= values
    return pa.Table.from_pylist(rows, schema=table.schema)


BROKEN: dict[str, tuple[Law, Callable[[Records], Records]]] = {
    "a request lost": (
        every_request_ends_once,
        lambda r: dataclasses.replace(r, requests=r.requests.slice(1)),
    ),
    "a request twice": (
        every_request_ends_once,
        lambda r: dataclasses.replace(r, requests=changed(r.requests, 0, request_id=1)),
    ),
    "one more came": (every_request_ends_once, lambda r: dataclasses.replace(r, arrived=r.arrived + 1)),
    "a token too few": (
        tokens_are_accounted_for,
        lambda r: dataclasses.replace(r, requests=changed(r.requests, 0, produced_tokens=8)),
    ),
    "a pass too many": (
        tokens_are_accounted_for,
        lambda r: dataclasses.replace(r, requests=changed(r.requests, 0, passes=9)),
    ),
    "a step's token lost": (
        tokens_are_accounted_for,
        lambda r: dataclasses.replace(r, steps=changed(r.steps, 1, emitted_tokens=0)),
    ),
    "an end too late": (
        time_is_accounted_for,
        lambda r: dataclasses.replace(
            r, requests=changed(r.requests, 0, ended_at_ns=r.requests["ended_at_ns"][0].as_py() + 1)
        ),
    ),
    "a nanosecond idle before a step": (
        never_idle_while_work_waits,
        lambda r: dataclasses.replace(
            r, steps=changed(r.steps, 1, started_at_ns=r.steps["started_at_ns"][1].as_py() + 1)
        ),
    ),
    "a step before its time": (
        never_idle_while_work_waits,
        lambda r: dataclasses.replace(
            r, steps=changed(r.steps, 1, started_at_ns=r.steps["started_at_ns"][1].as_py() - 1)
        ),
    ),
    "a token before admission": (
        instants_are_in_order,
        lambda r: dataclasses.replace(r, requests=changed(r.requests, 1, first_token_at_ns=0)),
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_record_breaks_the_law(what):
    law, broken = BROKEN[what]
    records = busy()
    assert law(records) == []
    assert law(broken(records)) != []


# -- memory -------------------------------------------------------------------------------------------------


@given(scenarios())
def test_blocks_add_up_after_every_event(scenario: Scenario):
    """M3: used + free = total, nobody holds blocks without a slot, and rows hold what their text needs."""
    env = Environment()
    engine = Engine(env, scenario.serving, scenario.seed, Recorder())

    def arrivals():
        for at, (i, (prompt, output)) in zip(scenario.instants, enumerate(scenario.sizes), strict=True):
            yield env.timeout(at - int(env.now))
            engine.submit(Request(i, prompt, output))

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


# -- tokens of a step ---------------------------------------------------------------------------------------


def per_step(survival: tuple[float, ...], seed: int, requests: int = 6) -> tuple[Records, pd.DataFrame]:
    """Records of a fixed length, and the row-steps that the end of a text did not cut."""
    length = len(survival)
    serving = Serving(
        Costs(AFFINE["device"], "target", "small"), 4, Speculation(Fixed(length), Rates(survival))
    )
    load = [(n * 1_000_000, Request(n, 7, 30)) for n in range(requests)]
    records = simulate(serving, OpenLoop(load), seed, emissions=True)
    rows = records.emissions.to_pandas()
    return records, rows[rows["drafted_tokens"] == length]


SURVIVAL = st.lists(st.floats(0, 1), min_size=1, max_size=6).map(lambda s: tuple(sorted(s, reverse=True)))


@given(SURVIVAL, st.integers(0, 99))
def test_mean_tokens_a_step_is_one_and_the_rates_by_place(survival, seed):
    """M10, exactly, over steps that no end of text cut; and the rates never rise."""
    _, rows = per_step(survival, seed)
    count = len(rows)
    rates = [Fraction(int((rows["accepted_tokens"] >= j + 1).sum()), count) for j in range(len(survival))]
    assert Fraction(int(rows["emitted_tokens"].sum()), count) == 1 + sum(rates)
    assert all(b <= a for a, b in pairwise(rates))


@given(SURVIVAL, st.integers(0, 99), st.integers(1, 60))
def test_speedup_of_a_lone_request_is_at_most_its_tokens_a_step(survival, seed, output):
    """M10: without queueing, where no cycle is cheaper than a plain step. In whole nanoseconds."""
    cost = affine(4e-3, 1e-5, 1e-8)
    costs = Costs(cost, "target", "small")
    load = [(0, Request(0, 7, output))]
    spec = Speculation(Fixed(len(survival)), Rates(survival))
    plain = simulate(Serving(costs, 1), OpenLoop(load), seed)
    fast = simulate(Serving(costs, 1, spec), OpenLoop(load), seed)

    def decoding_ns(records: Records) -> int:
        names = ("draft_ns", "verify_ns", "overhead_ns")
        steps = [r for r in records.steps.to_pylist() if r["decoding_requests"]]
        return sum(r[n] for r in steps for n in names)

    passes = fast.requests["passes"][0].as_py()
    assert decoding_ns(plain) * passes <= decoding_ns(fast) * (output - 1)


@given(st.integers(0, 5), st.integers(1, 40), st.integers(0, 99))
def test_sure_acceptance_emits_all_and_one_and_none_emits_one(length, output, seed):
    """M4: acceptance 1 emits d + 1 a step until the text ends, acceptance 0 emits 1."""
    costs = Costs(AFFINE["device"], "target", "small")
    for rate in (0.0, 1.0):
        source = Rates.independent(rate, length)
        serving = Serving(costs, 2, Speculation(Fixed(length), source))
        load = [(0, Request(0, 3, output)), (5, Request(1, 9, output))]
        for row in simulate(serving, OpenLoop(load), seed).requests.to_pylist():
            a_step = length + 1 if rate else 1
            assert row["passes"] == -(-(output - 1) // a_step)
            assert row["accepted_tokens"] == (output - 1 - row["passes"] if rate else 0)


@given(scenarios(), st.sampled_from([0.0, 3e-9]))
def test_draft_length_0_is_plain_decoding_but_for_its_stated_cost(scenario, idle):
    """M4: with a look-up, which reads no prompts. All requests at once, so that time changes no decision."""
    base = dataclasses.replace(scenario.serving, patience_seconds=None)
    costs = dataclasses.replace(
        base.costs, drafter="ngram", drafter_cost=None, lookup=True, idle_seconds=idle
    )
    nothing = Speculation(Fixed(0), Rates(()))
    plain = dataclasses.replace(base, costs=costs, speculation=None)
    off = dataclasses.replace(base, costs=costs, speculation=nothing)
    memory = dataclasses.replace(base.memory, drafter_blocks=None)
    plain, off = (dataclasses.replace(s, memory=memory) for s in (plain, off))
    together = dataclasses.replace(scenario, instants=(0,) * len(scenario.sizes), clients=0, until=None)
    first, second = live(together, serving=plain), live(together, serving=off)
    extra = int(idle * 1e9 + 0.5)
    later = 0
    for a, b in zip(first.steps.to_pylist(), second.steps.to_pylist(), strict=True):
        assert b["started_at_ns"] - a["started_at_ns"] == later
        more = extra if a["decoding_requests"] else 0
        assert b["overhead_ns"] - a["overhead_ns"] == more
        later += more
        assert {**a, "started_at_ns": 0, "overhead_ns": 0} == {**b, "started_at_ns": 0, "overhead_ns": 0}
    if not idle:
        assert first.requests.equals(second.requests)
