"""What the tables of a cluster must be, whoever served whom and whoever failed."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given

from simspec.claims.serving.laws import PARTS
from simspec.serving.policies import Fixed
from simspec.strategies.clusters import ClusterScenario, Fleet, cluster_scenarios, serve_cluster
from simspec.strategies.small_engines import Drafting, Scenario, Setup, Survival

Row = dict[str, Any]


@dataclass(frozen=True)
class Life:
    """What became of a scenario: the tables as rows, and what was counted while it ran."""

    scenario: ClusterScenario
    steps: list[Row]
    requests: list[Row]
    emissions: list[Row]
    outages: list[Row]
    arrived: int
    outcomes: dict[str, int]
    request_ns: int

    @property
    def fleet(self) -> Fleet:
        return self.scenario.fleet


def lived(scenario: ClusterScenario) -> Life:
    records = serve_cluster(scenario, emissions=True)
    assert records.emissions is not None
    return Life(
        scenario,
        records.steps.to_pylist(),
        sorted(records.requests.to_pylist(), key=lambda row: row["request_id"]),
        records.emissions.to_pylist(),
        [] if records.outages is None else records.outages.to_pylist(),
        records.arrived,
        {outcome.name.lower(): n for outcome, n in records.outcomes.items() if n},
        records.request_ns,
    )


def end(step: Row) -> int:
    return int(step["started_at_ns"] + sum(step[part] for part in PARTS))


def of(rows: list[Row], number: int) -> list[Row]:
    return [row for row in rows if row["replica"] == number]


# -- in one run ---------------------------------------------------------------------------------------------


def requests_end_once(life: Life) -> list[str]:
    """Whoever came before the end is in the table once, under one outcome."""
    load, ids = life.scenario.load, [row["request_id"] for row in life.requests]
    came = list(range(life.arrived if load.clients and load.until else len(load.sizes)))
    if not load.clients and load.until is not None:
        came = [i for i, at in enumerate(load.instants) if at < load.until]
    listed = Counter(row["outcome"] for row in life.requests)
    same = ids == came and life.arrived == len(came) and listed == life.outcomes
    return [] if same else [f"{came} came, {life.arrived} counted; {ids} end, {life.outcomes} counted"]


def tokens_are_kept_or_thrown_away(life: Life) -> list[str]:
    """What steps emit for a request is what it has in the end, and what it lost; pass by pass."""
    names = ("emitted_tokens", "drafted_tokens", "accepted_tokens")
    sums: dict[int, Counter[str]] = {row["request_id"]: Counter() for row in life.requests}
    for row in life.emissions:
        sums[row["request_id"]].update({name: row[name] for name in names})
    found = []
    for row in life.requests:
        own, got = sums[row["request_id"]], row["produced_tokens"] + row["discarded_tokens"]
        said = (got, row["drafted_tokens"], row["accepted_tokens"])
        readings = got - row["passes"] - row["accepted_tokens"]
        all_of_it = (row["outcome"] == "finished") == (row["produced_tokens"] == row["output_tokens"])
        lives = 1 + row["preemptions"] + row["restarts"]
        if said != tuple(own[n] for n in names) or not 0 <= readings <= lives or not all_of_it:
            found.append(f"{row}: its steps say {own}, it was read {readings} times")
    by_steps, by_rows = ([sum(row[n] for row in t) for n in names] for t in (life.steps, life.emissions))
    return found if by_steps == by_rows else [*found, f"steps say {by_steps}, emissions {by_rows}"]


def littles_law(life: Life) -> list[str]:
    """The number of requests in the cluster, summed over time, is their times in it, summed."""
    spent = sum(row["ended_at_ns"] - row["arrived_at_ns"] for row in life.requests)
    return [] if spent == life.request_ns else [f"{spent} spent, {life.request_ns} counted"]


def causes_come_first(life: Life) -> list[str]:
    """A request comes, is admitted, has its first token, and ends; and its steps come one after the other."""
    found, steps = [], {(row["replica"], row["step"]): row for row in life.steps}
    names = ("arrived_at_ns", "admitted_at_ns", "first_token_at_ns", "ended_at_ns")
    for row in life.requests:
        own = [steps[e["replica"], e["step"]] for e in life.emissions if e["request_id"] == row["request_id"]]
        spans = sorted((step["started_at_ns"], end(step)) for step in own)
        known = [row[name] for name in names if row[name] is not None]
        instants = [row["arrived_at_ns"], *(at for span in spans for at in span), row["ended_at_ns"]]
        late = row["outcome"] == "finished" and spans[-1][1] != row["ended_at_ns"]
        if late or any(b < a for a, b in [*pairwise(known), *pairwise(instants)]):
            found.append(f"{row}: in steps {spans}")
    return found


def one_step_at_a_time(life: Life) -> list[str]:
    """Steps of a replica do not overlap, nor do they overlap its outages, which keep their last instant."""
    found = []
    for number in range(len(life.fleet.engines)):
        steps, outages = of(life.steps, number), of(life.outages, number)
        found += [f"{a} and {b} overlap" for a, b in pairwise(steps) if b["started_at_ns"] < end(a)]
        found += [f"{a} and {b} overlap" for a, b in pairwise(outages) if b["failed_at_ns"] < a["back_at_ns"]]
        found += [
            f"step {step} during {out}"
            for out in outages
            for step in steps
            if not (end(step) < out["failed_at_ns"] or step["started_at_ns"] >= out["back_at_ns"])
        ]
        if [step["step"] for step in steps] != list(range(len(steps))):
            found.append(f"steps of {number} are not numbered in order")
    return found


def devices_serve_so_many_at_once(life: Life) -> list[str]:
    """Drafts begin when the device is free and last as long as they do; prompts are read there besides."""
    changes = []
    for step in life.steps:
        if step["drafted_tokens"]:
            begin = step["started_at_ns"] + step["wait_ns"] - 2 * life.fleet.link_ns
            changes += [(begin, 1), (begin + step["draft_ns"], -1)]
    busy, most = 0, 0
    for _, change in sorted(changes):
        busy += change
        most = max(most, busy)
    return [f"{most} steps at once"] if life.fleet.devices and most > life.fleet.devices else []


def losses_are_of_failures(life: Life) -> list[str]:
    """A request is lost when its replica fails, at once or after so many retries, and no sooner."""
    fleet, found = life.fleet, []
    failures = {out["failed_at_ns"] for out in life.outages}
    for row in life.requests:
        lost, times = row["outcome"] == "lost", row["restarts"]
        most = 0 if fleet.on_failure == "lost" else fleet.retries + lost
        wrong = times > most or (lost and (row["ended_at_ns"] not in failures or times < most))
        if wrong or (row["discarded_tokens"] and fleet.on_failure != "restart"):
            found.append(f"{row}")
    hit = sum(out["batch_requests"] + out["queued_requests"] for out in life.outages)
    if hit != sum(row["restarts"] + (fleet.on_failure == "lost" == row["outcome"]) for row in life.requests):
        found.append(f"{hit} were in replicas that failed")
    return found


LAWS: tuple[Callable[[Life], list[str]], ...] = (
    requests_end_once,
    tokens_are_kept_or_thrown_away,
    littles_law,
    causes_come_first,
    one_step_at_a_time,
    devices_serve_so_many_at_once,
    losses_are_of_failures,
)


@given(cluster_scenarios())
def test_tables(scenario):
    life = lived(scenario)
    assert [(law.__name__, broken) for law in LAWS if (broken := law(life))] == []


# Two replicas draft on one device; one of them fails in a step and then while it has nobody.
SURE = Setup(2, Drafting(Fixed(2), Survival((1.0, 0.5))))
BUSY = ClusterScenario(
    Fleet((SURE, SURE), outages=((0, 30, 9), (1, 900, 5)), devices=1, link_ns=1),
    Scenario(SURE, 1, ((5, 9),) * 6, (0, 0, 0, 20, 20, 910)),
)


def changed(table: str, place: int, **more: int | str) -> Callable[[Life], Life]:
    """A life in which a row of a table is otherwise by so much, or has another value."""

    def change(life: Life) -> Life:
        rows = [dict(row) for row in getattr(life, table)]
        for name, value in more.items():
            rows[place][name] = value if isinstance(value, str) else rows[place][name] + value
        return dataclasses.replace(life, **{table: rows})

    return change


BROKEN = {
    requests_end_once: changed("requests", 0, outcome="lost"),
    tokens_are_kept_or_thrown_away: changed("requests", 0, discarded_tokens=1),
    littles_law: changed("requests", 2, ended_at_ns=1),
    causes_come_first: changed("requests", 2, ended_at_ns=-1),
    one_step_at_a_time: changed("outages", 0, failed_at_ns=-30),
    devices_serve_so_many_at_once: lambda life: dataclasses.replace(
        life, steps=[step | {"draft_ns": step["draft_ns"] + 20} for step in life.steps]
    ),
    losses_are_of_failures: changed("requests", 0, restarts=1),
}


@pytest.mark.parametrize("law", LAWS)
def test_a_broken_record_breaks_the_law(law):
    life = lived(BUSY)
    assert len(life.outages) == 2
    assert law(life) == []
    assert law(BROKEN[law](life)) != []
