"""Laws of the serving engine's tables, shared by claims and tests.

A law is a function from what became of a scenario to a list of what breaks it, so that the same function
can be shown tables that are wrong on purpose: a law that lets those pass would say nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from simspec.claims.base import UNMET, Outcome, Rule, against
from simspec.claims.plain import shown
from simspec.serving.step import Price
from simspec.strategies.small_engines import Scenario, Setup, serve

# The engine needs pyarrow, which whoever only lists claims need not wait for.
if TYPE_CHECKING:
    from simspec.serving.simulate import Records

# A row of a table by column.
Row = dict[str, Any]
PARTS = Price._fields


@dataclass(frozen=True)
class Lived:
    """What became of a scenario: the tables of :mod:`simspec.serving.recorder` as rows.

    Attributes:
        arrived, outcomes, request_ns, ended_at: as counted while it ran; see
            :class:`~simspec.serving.simulate.Records`.
    """

    scenario: Scenario
    steps: list[Row]
    requests: list[Row]
    emissions: list[Row]
    arrived: int
    outcomes: dict[str, int]
    request_ns: int
    ended_at: int

    @property
    def by_number(self) -> list[Row]:
        """Rows of requests in the order in which they were sent."""
        return sorted(self.requests, key=lambda row: int(row["request_id"]))


Law = Callable[[Lived], list[str]]
# None for a scenario that it cannot live through.
Run = Callable[[Scenario], Lived | None]


def told(scenario: Scenario, records: Records) -> Lived:
    """The records of a scenario, of its emissions too, as rows."""
    assert records.emissions is not None
    return Lived(
        scenario,
        records.steps.to_pylist(),
        records.requests.to_pylist(),
        records.emissions.to_pylist(),
        records.arrived,
        {outcome.name.lower(): n for outcome, n in records.outcomes.items()},
        records.request_ns,
        records.ended_at,
    )


def lived(scenario: Scenario) -> Lived:
    """Serve it. Kept where it can be, so do not change what it returns."""
    return _kept(scenario) if isinstance(scenario.engine, Setup) else _served(scenario)


def _served(scenario: Scenario) -> Lived:
    return told(scenario, serve(scenario, emissions=True))


# Several claims look at the same small scenarios.
_kept = lru_cache(maxsize=512)(_served)


def obeys(law: Law, run: Run = lived) -> Rule:
    """The rule that a scenario, lived through by ``run``, does not break a law."""

    def rule(scenario: Scenario) -> Outcome:
        life = run(scenario)
        if life is None:
            return UNMET
        broken = law(life)
        return against(str(scenario), *broken[:4]) if broken else None

    return rule


def step_ends(life: Lived) -> list[int]:
    """Instants at which steps end."""
    return [row["started_at_ns"] + sum(row[part] for part in PARTS) for row in life.steps]


def first_difference(found: Any, other: Any) -> str:
    """Where two Arrow tables of the same columns first differ."""
    pairs = zip(found.to_pylist(), other.to_pylist(), strict=False)
    for row, (a, b) in enumerate(pairs):
        if a != b:
            return f"row {row}: {shown({name: (a[name], b[name]) for name in a if a[name] != b[name]})}"
    return f"{found.num_rows} rows and {other.num_rows}"


# The laws.


def every_request_ends_once(life: Lived) -> list[str]:
    """Requests in = finished + rejected + timed out + unfinished, in the counters and in the table.

    Requests in are those whose instant lies before the end; in a closed loop that is stopped, however many
    have been sent, without a gap.
    """
    scenario, found = life.scenario, []
    ids = sorted(row["request_id"] for row in life.requests)
    came = list(range(life.arrived if scenario.clients and scenario.until else len(scenario.sizes)))
    if not scenario.clients and scenario.until is not None:
        came = [i for i, at in enumerate(scenario.instants) if at < scenario.until]
    if ids != came:
        found.append(f"requests {came} came, the table has {ids}")
    if life.arrived != len(came) or life.arrived != sum(life.outcomes.values()):
        found.append(f"{len(came)} came, {life.arrived} were counted in and out {life.outcomes}")
    listed = Counter(row["outcome"] for row in life.requests)
    if listed != {name: n for name, n in life.outcomes.items() if n}:
        found.append(f"ended by the table {dict(listed)}, by the counters {life.outcomes}")
    return found


def tokens_are_accounted_for(life: Lived) -> list[str]:
    """A request's tokens are its steps' accepted drafts and one each, and never more than it asked for.

    A step here is a decoding pass, or the reading of its prompt, which gives a token without a draft.
    """
    found: list[str] = []
    sums: dict[int, Counter[str]] = {}
    # A column of emissions, and of requests.
    names = {name: name for name in ("drafted_tokens", "accepted_tokens")}
    names["emitted_tokens"] = "produced_tokens"
    for row in life.emissions:
        if row["emitted_tokens"] != row["accepted_tokens"] + 1:
            found.append(
                f"step {row['step']}: {row['emitted_tokens']} emitted, {row['accepted_tokens']} accepted"
            )
        sums.setdefault(row["request_id"], Counter()).update({name: row[name] for name in names})
    for row in life.by_number:
        number, own = row["request_id"], sums.get(row["request_id"], Counter())
        for theirs, ours in names.items():
            if row[ours] != own[theirs]:
                found.append(f"request {number}: {ours} {row[ours]}, its steps say {own[theirs]}")
        produced, output = row["produced_tokens"], row["output_tokens"]
        if produced > output or (row["outcome"] == "finished") != (produced == output):
            found.append(f"request {number} is {row['outcome']} with {produced} of {output} tokens")
        readings = produced - row["passes"] - row["accepted_tokens"]
        if not (produced > 0) <= readings <= 1 + row["preemptions"]:
            found.append(f"request {number}: its prompt was read {readings} times")
    for name in names:
        by_steps, by_rows = (sum(row[name] for row in rows) for rows in (life.steps, life.emissions))
        if by_steps != by_rows:
            found.append(f"the table of steps says {by_steps} {name}, that of emissions {by_rows}")
    return found


def time_is_accounted_for(life: Lived) -> list[str]:
    """Little's law on the path: requests in the system summed over time = their times in it, summed."""
    spent = sum(row["ended_at_ns"] - row["arrived_at_ns"] for row in life.requests)
    if spent == life.request_ns:
        return []
    return [
        f"times in the system (ns): {[row['ended_at_ns'] - row['arrived_at_ns'] for row in life.by_number]}",
        f"their sum is {spent}; the number in the system, summed as it changed, {life.request_ns}",
    ]


def never_idle_while_work_waits(life: Lived) -> list[str]:
    """Between two steps, before the first and after the last, nobody is there; and steps do not overlap."""
    begins: list[int] = [row["started_at_ns"] for row in life.steps]
    ends = [0, *step_ends(life)]
    # After the last step, of which one that was cut off by the end is no record.
    if not any(row["outcome"] == "unfinished" for row in life.requests):
        begins.append(life.ended_at)
    found = []
    for end, begin in zip(ends, begins, strict=False):
        if begin < end:
            found.append(f"a step begins at {begin}, before the last ends at {end}")
        found += [
            f"request {row['request_id']}, which comes at {row['arrived_at_ns']}, waits while the engine is "
            f"idle from {end} to {begin}"
            for row in life.requests
            if max(row["arrived_at_ns"], end) < min(row["ended_at_ns"], begin)
        ]
    return found


def instants_are_in_order(life: Lived) -> list[str]:
    """A request comes, is admitted, gets its first token and ends, in that order."""
    names = ("arrived_at_ns", "admitted_at_ns", "first_token_at_ns", "ended_at_ns")
    found = []
    for row in life.by_number:
        known = [row[name] for name in names if row[name] is not None]
        if any(b < a for a, b in pairwise(known)) or known[-1] > life.ended_at:
            found.append(f"request {row['request_id']}: {known}")
    return found


def first_come_first_served(life: Lived) -> list[str]:
    """Whoever is admitted finds nobody waiting who came before and has never been admitted."""
    found = []
    queued = [row for row in life.by_number if row["outcome"] != "rejected"]
    for place, later in enumerate(queued):
        at = later["admitted_at_ns"]
        if at is None:
            continue
        found += [
            f"request {later['request_id']} is admitted at {at} ahead of request {row['request_id']}, which "
            f"came at {row['arrived_at_ns']}"
            for row in queued[:place]
            if at < (row["ended_at_ns"] if row["admitted_at_ns"] is None else row["admitted_at_ns"])
        ]
    return found


def no_slot_is_empty_while_somebody_waits(life: Lived) -> list[str]:
    """Where memory has no limit: when a step begins and requests wait, every slot is held.

    Who waits and who holds a slot is counted from the table of requests. Who comes at the instant at which a
    step begins may have come after it was planned: it counts only where it has been admitted by then.
    """
    found = []
    slots = life.scenario.serving.slots
    for step in life.steps:
        at = step["started_at_ns"]
        held = waiting = 0
        for row in life.requests:
            admitted = row["admitted_at_ns"]
            if row["outcome"] == "rejected" or row["ended_at_ns"] <= at:
                continue
            if admitted is not None and admitted <= at:
                held += 1
            elif row["arrived_at_ns"] < at:
                waiting += 1
        if held > slots or (waiting and held < slots):
            found.append(f"at {at} ns {waiting} wait and {held} of {slots} slots are held")
    return found


LAWS: tuple[Law, ...] = (
    every_request_ends_once,
    tokens_are_accounted_for,
    time_is_accounted_for,
    never_idle_while_work_waits,
    instants_are_in_order,
    first_come_first_served,
)
"""Those that hold for every scenario."""
