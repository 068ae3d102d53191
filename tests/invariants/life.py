"""A run to be judged: its tables as rows, what it was asked to do, and who was where and when."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

from simspec.claims.serving.laws import PARTS, Lived, Row
from simspec.scenario.config import ObjectivesPart
from simspec.serving.clock import nanoseconds
from simspec.serving.cluster import Cluster
from simspec.serving.config import Serving
from tests.invariants.case import Case


def end_of(step: Row) -> int:
    return int(step["started_at_ns"] + sum(step[part] for part in PARTS))


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
        steps: of all engines in the order of their ends, each with its place there as ``row``.
        requests, emissions, outages: rows of the tables, none where there is no table; emissions have the
            ``row`` of their step.
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
    emissions: list[Row]
    requests: list[Row]
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
        return list(map(end_of, self.steps))

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
        for row in sorted(rows, key=lambda row: row["row"]):
            step = self.steps[row["row"]]
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
        replica, end = step["replica"], self.ends[step["row"]]
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
                found[turn.step["row"]].append(turn)
        return found

    def had(self, request: Row, at: int) -> int:
        """Tokens of its answer that a request had got at an instant, those that failures threw away too."""
        ends, sums = self._growth[request["request_id"]]
        return sums[bisect_right(ends, at)]

    @cached_property
    def _growth(self) -> dict[int, tuple[list[int], list[int]]]:
        """Of each request: when its steps ended, and its tokens before the first of them and after each."""
        return {
            number: (
                [self.ends[turn.step["row"]] for turn in turns],
                list(accumulate((turn.row["emitted_tokens"] for turn in turns), initial=0)),
            )
            for number, turns in self.turns.items()
        }

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
