"""A run to be judged: its tables as rows, what it was asked to do, and who was where and when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from simspec.claims.serving.laws import PARTS, Lived, Row, first_difference, told
from simspec.errors import BadInput
from simspec.scenario.config import ObjectivesPart, WarmUpPart
from simspec.scenario.figures import measure
from simspec.serving.clock import nanoseconds
from simspec.serving.cluster import Cluster
from simspec.serving.config import Serving
from simspec.serving.recorder import EMISSIONS, OUTAGES, REQUESTS, STEPS
from simspec.serving.simulate import Records
from simspec.tables import check_table
from tests.invariants.case import Case


class Turn(NamedTuple):
    """What one request had of one step.

    Attributes:
        row: its row of emissions.
        before: tokens of its answer that it had when the step began.
        reads: whether its text was read, and it did not decode; None where the tables leave that open.
    """

    step: Row
    row: Row
    request: Row
    before: int
    reads: bool | None

    @property
    def text(self) -> int:
        """Tokens of its text when the step began."""
        return int(self.request["prompt_tokens"]) + self.before


class Stay(NamedTuple):
    """A request in an engine, from when it was placed there (or held for it) until it left, nanoseconds.

    ``entry``: it came to be read, and its first admission is the one here.
    """

    request: Row
    replica: int
    since: int
    until: int
    entry: bool

    def admitted(self, at: int) -> bool:
        """Whether it had been admitted at that instant, by a plan made then too; for entries."""
        admitted = self.request["admitted_at_ns"]
        return admitted is not None and admitted <= at


@dataclass(frozen=True)
class Life:
    """A run.

    Attributes:
        case: what was asked for.
        steps, requests, emissions, outages: rows of the tables, these without a row where there is no table.
        arrived, outcomes, request_ns, ended_at, drafters_ns: see :class:`simspec.serving.simulate.Records`.
        undeclared: what in the tables is not as their schema says.
        changed: what is otherwise in a second run without emissions, several steps at once.
        measured: its figures.
        without_emissions, late: inter-token latencies as made without emissions, and figures without the
            first third of the requests; None where nobody looked.
        objectives: on which the figures' goodput rests.
    """

    case: Case
    steps: list[Row]
    requests: list[Row]
    emissions: list[Row]
    outages: list[Row]
    arrived: int
    outcomes: dict[str, int]
    request_ns: int
    ended_at: int
    drafters_ns: int
    undeclared: list[str]
    changed: list[str]
    measured: dict[str, Any]
    without_emissions: dict[str, Any] | None
    late: dict[str, Any] | None
    objectives: ObjectivesPart

    @property
    def lived(self) -> Lived:
        """For the laws that claims share."""
        same = ("steps", "requests", "emissions", "arrived", "outcomes", "request_ns", "ended_at")
        return Lived(self.case, **{name: getattr(self, name) for name in same})  # type: ignore[arg-type]

    @cached_property
    def cluster(self) -> Cluster:
        return self.case.cluster

    @cached_property
    def ends(self) -> list[int]:
        """Instants at which steps end, by step."""
        return [row["started_at_ns"] + sum(row[part] for part in PARTS) for row in self.steps]

    def engine(self, step: Row) -> Serving:
        return self.cluster.engines[step["replica"]]

    @property
    def decoders(self) -> int:
        """Replicas that decode; those above only read prompts."""
        return len(self.cluster.replicas)

    @property
    def apart(self) -> bool:
        """Whether prompts are read by engines of their own."""
        return bool(self.cluster.prefill)

    @property
    def calm(self) -> bool:
        """No replica failed: where every request was is in the tables."""
        return not self.outages

    @property
    def fragile(self) -> bool:
        """Whether replicas can fail at all."""
        return bool(self.cluster.outages) or self.cluster.failures is not None

    @cached_property
    def patience_ns(self) -> int | None:
        patience = self.cluster.engines[0].patience_seconds
        return None if patience is None else nanoseconds(patience)

    @cached_property
    def by_number(self) -> dict[int, Row]:
        return {row["request_id"]: row for row in sorted(self.requests, key=lambda row: row["request_id"])}

    @cached_property
    def by_replica(self) -> dict[int, list[Row]]:
        """Steps of each engine."""
        found: dict[int, list[Row]] = {number: [] for number in range(len(self.cluster.engines))}
        for step in self.steps:
            found[step["replica"]].append(step)
        return found

    @cached_property
    def turns(self) -> dict[int, list[Turn]]:
        """Of each request, in the order of steps."""
        rows: dict[int, list[Row]] = defaultdict(list)
        for row in self.emissions:
            rows[row["request_id"]].append(row)
        return {number: self._turns(number, rows[number]) for number in self.by_number}

    def _turns(self, number: int, rows: list[Row]) -> list[Turn]:
        request, found = self.by_number[number], []
        before, begun, last = 0, False, None
        # Who has been swapped out need not read again, others may have.
        open_ended = request["preemptions"] and any(
            one.memory.preemption == "recompute" for one in self.cluster.engines
        )
        for row in sorted(rows, key=lambda row: row["step"]):
            step = self.steps[row["step"]]
            # Only who has lost its replica comes to those that read prompts a second time.
            again = step["replica"] >= self.decoders
            if last is not None and (again or self.failed_under(last, step["started_at_ns"])):
                begun = False
                before = 0 if self.cluster.on_failure == "restart" else before
            reads = True if not begun or step["replica"] >= self.decoders else None if open_ended else False
            found.append(Turn(step, row, request, before, reads))
            before, begun, last = before + row["emitted_tokens"], True, step
        return found

    def failed_under(self, step: Row, until: int) -> bool:
        """Whether the engine of a request's last step failed before ``until``, and the request had stayed."""
        replica, end = step["replica"], self.ends[step["step"]]
        return replica < self.decoders and any(
            out["replica"] == replica and end < out["failed_at_ns"] <= until for out in self.outages
        )

    def lost_all(self, request: Row) -> bool:
        """Whether a request's replica failed after its last step, and it had to begin again."""
        turns = self.turns[request["request_id"]]
        if self.cluster.on_failure != "restart" or not turns:
            return False
        last = turns[-1].step
        if last["replica"] >= self.decoders:  # where it was handed to is not in the tables
            return bool(request["restarts"]) and not request["produced_tokens"]
        return self.failed_under(last, request["ended_at_ns"])

    @cached_property
    def turns_of(self) -> list[list[Turn]]:
        """Of each step."""
        found: list[list[Turn]] = [[] for _ in self.steps]
        for turns in self.turns.values():
            for turn in turns:
                found[turn.step["step"]].append(turn)
        return found

    def had(self, request: Row, at: int) -> int:
        """Tokens of its answer that a request had at an instant, if its engine did not fail."""
        turns = self.turns[request["request_id"]]
        return sum(t.row["emitted_tokens"] for t in turns if self.ends[t.step["step"]] <= at)

    def transfer_ns(self, request: Row) -> int:
        """How long the cache of a request that has its first token takes to where it decodes."""
        cluster = self.cluster
        return nanoseconds(
            cluster.transfer_seconds + request["prompt_tokens"] * cluster.transfer_token_seconds
        )

    @cached_property
    def stays(self) -> dict[int, list[Stay]]:
        """Of each engine, in order of request numbers; of requests under which no replica failed."""
        found: dict[int, list[Stay]] = {number: [] for number in self.by_replica}
        for number, row in self.by_number.items():
            turns, last, first = self.turns[number], row["replica"], row["first_token_at_ns"]
            if row["restarts"]:
                continue
            came, over = row["arrived_at_ns"], row["ended_at_ns"]
            entry = turns[0].step["replica"] if self.apart and turns else last
            if entry is not None:
                left = first if self.apart and first is not None else over
                found[entry].append(Stay(row, entry, came, left, True))
            if self.apart and first is not None and last is not None and last < self.decoders:
                found[last].append(Stay(row, last, first + self.transfer_ns(row), over, False))
        return found


Law = Callable[[Life], list[str]]


def live(case: Case, *, thorough: bool = True) -> Life:
    """Run it twice, and look; without ``thorough``, not at everything about schemas and figures."""
    records, again = case.serve(emissions=True), case.serve()
    rows = told(case, records)  # type: ignore[arg-type]
    ttft = [r["first_token_at_ns"] - r["arrived_at_ns"] for r in rows.requests if r["first_token_at_ns"]]
    objectives = ObjectivesPart(ttft_seconds=(sum(ttft) / len(ttft) if ttft else 1) * 1e-9, tpot_seconds=9e-9)
    measured = measure(records, case.cluster, objectives, WarmUpPart())
    late = without = None
    if thorough:
        late = measure(records, case.cluster, objectives, WarmUpPart(requests=len(case.sizes) // 3))
        without = measure(again, case.cluster, objectives, WarmUpPart())["itl_seconds"]
    return Life(
        case,
        rows.steps,
        rows.requests,
        rows.emissions,
        [] if records.outages is None else records.outages.to_pylist(),
        rows.arrived,
        rows.outcomes,
        rows.request_ns,
        rows.ended_at,
        records.drafters_ns,
        undeclared(records) if thorough else [],
        differences(records, again),
        measured,
        without,
        late,
        objectives,
    )


def undeclared(records: Records) -> list[str]:
    """What is not as the schemas say; instants that never came are left out."""
    found = []
    for table in (STEPS, REQUESTS, EMISSIONS, OUTAGES):
        data = getattr(records, table.name)
        if data is None:
            continue
        try:
            check_table(table, data, table.name)
        except BadInput as wrong:
            found.append(str(wrong))
    return found


def differences(one: Records, other: Records) -> list[str]:
    """Between two runs of the same scenario, in tables and counters."""
    found = []
    for name in ("steps", "requests", "outages"):
        tables = getattr(one, name), getattr(other, name)
        if None not in tables and not tables[0].equals(tables[1]):
            found.append(f"{name}, step by step and at once: {first_difference(*tables)}")
    counted = [(r.request_ns, r.ended_at, r.arrived, r.outcomes, r.drafters_ns) for r in (one, other)]
    if counted[0] != counted[1]:
        found.append(f"counted {counted[0]} step by step, {counted[1]} at once")
    return found
