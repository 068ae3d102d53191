"""What happened, as two tables: steps and requests. Figures are made from them afterwards.

Instants and durations are whole nanoseconds of simulated time. Rows are kept as they come and turned
into Arrow tables in pieces, which go to Parquet files at once where a folder is given: memory then
holds no more than the requests that are in the engine and one piece of each table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from simspec.serving.batch import Batch
from simspec.serving.request import NEVER, Outcome, Ticket
from simspec.serving.step import Done, Plan, Price
from simspec.tables import Column, Table

Ints = NDArray[np.int64]

PIECE = 1 << 14


def _count(name: str, unit: str, meaning: str, *, nullable: bool = False) -> Column:
    return Column(name, pa.int64(), unit, meaning, 0, nullable=nullable)


STEPS = Table(
    "steps",
    (
        _count("replica", "index", "the engine, of several"),
        _count("step", "index", "the engine's step, numbered from 0"),
        _count("started_at_ns", "nanoseconds", "when it began"),
        _count("draft_ns", "nanoseconds", "forwards of the drafter, its reading of prompts included"),
        _count("middle_ns", "nanoseconds", "forwards of intermediates, their reading of prompts included"),
        _count("verify_ns", "nanoseconds", "the target's forward over the rows that decode"),
        _count("prefill_ns", "nanoseconds", "what that forward took longer for the prompts in it"),
        _count("swap_ns", "nanoseconds", "moving KV blocks to the host and back"),
        _count("wait_ns", "nanoseconds", "waiting for the drafter's own device, and for the link to it"),
        _count("overhead_ns", "nanoseconds", "fixed time of the step"),
        _count("queued_requests", "requests", "that waited when it began, after admission"),
        _count("decoding_requests", "requests", "rows that decoded"),
        _count("prefilling_requests", "requests", "whose prompt was read"),
        _count("drafter", "index", "which chain drafts, of several, numbered from 0"),
        _count("draft_length_tokens", "tokens", "draft length asked for; of those of rows, the greatest"),
        _count("drafted_tokens", "tokens", "drafted over all rows"),
        _count("submitted_tokens", "tokens", "of these, and of intermediates' own, given to the target"),
        _count("accepted_tokens", "tokens", "of these, accepted by the target"),
        _count("emitted_tokens", "tokens", "added to texts, the first tokens of prompts read included"),
        _count("prefill_tokens", "tokens", "of prompts, read by the target"),
        _count("context_tokens", "tokens", "text of the rows that decoded, as the step began"),
        _count("target_blocks", "blocks", "KV blocks of the target in use during the step"),
        _count("drafter_blocks", "blocks", "KV blocks of the drafter in use during the step"),
        _count("preempted_requests", "requests", "that lost their place as the step was planned"),
        _count("finished_requests", "requests", "that had all their tokens when it ended"),
    ),
    key=("replica", "step"),
)

REQUESTS = Table(
    "requests",
    (
        _count("request_id", "index", "the request"),
        Column(
            "outcome", pa.string(), "name", "how it ended", choices=tuple(o.name.lower() for o in Outcome)
        ),
        _count("replica", "index", "the engine that had it, or had it last", nullable=True),
        _count("session", "index", "whose conversation it belongs to", nullable=True),
        _count("arrived_at_ns", "nanoseconds", "when it came"),
        _count("admitted_at_ns", "nanoseconds", "when it first got a place in the batch", nullable=True),
        _count("first_token_at_ns", "nanoseconds", "when its first token was out", nullable=True),
        _count("ended_at_ns", "nanoseconds", "when it was over, or the end of the simulation"),
        _count("prompt_tokens", "tokens", "length of its prompt"),
        _count("output_tokens", "tokens", "length of the answer it was to get"),
        _count("produced_tokens", "tokens", "what it got of it"),
        _count("passes", "steps", "decoding passes of the target over it"),
        _count("drafted_tokens", "tokens", "drafted for it"),
        _count("accepted_tokens", "tokens", "of these, accepted"),
        _count("preemptions", "times", "that it lost its place"),
        _count("restarts", "times", "that its replica failed under it"),
        _count("discarded_tokens", "tokens", "that it had got and that were thrown away then"),
    ),
    key=("request_id",),
)

OUTAGES = Table(
    "outages",
    (
        _count("replica", "index", "the engine that failed"),
        _count("failed_at_ns", "nanoseconds", "when"),
        _count("back_at_ns", "nanoseconds", "when it is back; that may be after the end of the simulation"),
        _count("step_began_at_ns", "nanoseconds", "when the step began that was lost", nullable=True),
        _count("batch_requests", "requests", "that had a place in its batch"),
        _count("queued_requests", "requests", "that waited there"),
    ),
    key=("replica", "failed_at_ns"),
)

EMISSIONS = Table(
    "emissions",
    (
        _count("replica", "index", "the engine"),
        _count("step", "index", "its step"),
        _count("request_id", "index", "a request that emitted in it"),
        _count("emitted_tokens", "tokens", "that it emitted"),
        _count("drafted_tokens", "tokens", "that were drafted for it"),
        _count("accepted_tokens", "tokens", "of these, accepted"),
    ),
    key=("replica", "step", "request_id"),
)

_PLACE = {column.name: place for place, column in enumerate(STEPS.columns)}
_OUTCOMES = pa.array([o.name.lower() for o in Outcome])


class Recorder:
    """Collects rows; with a folder, writes them to Parquet files there as they come.

    Attributes:
        outcomes: requests that ended, by outcome.
        request_ns: sum over time of the requests in the system, in request-nanoseconds.
        inside: requests that have come and have not ended; ``changed_at``: when one last came or ended.
    """

    def __init__(self, folder: Path | None = None, *, emissions: bool = False, outages: bool = False):
        self.outcomes = dict.fromkeys(Outcome, 0)
        self.request_ns = self.arrived = 0
        self.inside = self.changed_at = 0
        self._steps = _Rows(STEPS, folder)
        self._requests = _Rows(REQUESTS, folder)
        self._emissions = _Rows(EMISSIONS, folder) if emissions else None
        self._outages = _Rows(OUTAGES, folder) if outages else None

    def arrive(self, now: int) -> None:
        """A request comes."""
        self.arrived += 1
        self._count_until(now)
        self.inside += 1

    def end(self, ticket: Ticket, outcome: Outcome, now: int) -> None:
        """A request is over."""
        self._count_until(now)
        self.inside -= 1
        self.outcomes[outcome] += 1
        request = ticket.request
        self._requests.add(
            (
                request.request_id,
                outcome,
                ticket.replica,
                request.session,
                ticket.arrived_at,
                ticket.admitted_at,
                ticket.first_token_at,
                now,
                request.prompt_tokens,
                request.output_tokens,
                ticket.produced,
                ticket.passes,
                ticket.drafted,
                ticket.accepted,
                ticket.preemptions,
                ticket.restarts,
                ticket.discarded,
            )
        )

    def of(self, replica: int) -> Steps:
        """What an engine writes its steps to."""
        return Steps(replica, self._steps, self._emissions)

    def add_outage(self, *row: int | None) -> None:
        """An engine has failed; in the order of :data:`OUTAGES`."""
        assert self._outages is not None
        self._outages.add(tuple(NEVER if value is None else value for value in row))

    def close(self) -> dict[str, pa.Table]:
        """Write what is left. Returns the tables by name, empty where they went to files."""
        kept = (self._steps, self._requests, self._emissions, self._outages)
        return {rows.table.name: rows.close() for rows in kept if rows is not None}

    def _count_until(self, now: int) -> None:
        self.request_ns += self.inside * (now - self.changed_at)
        self.changed_at = now


class Steps:
    """The steps of one engine; ``count`` of them so far. ``emissions``: whether they are kept too."""

    def __init__(self, replica: int, steps: _Rows, emissions: _Rows | None):
        self.replica, self._steps, self._emissions = replica, steps, emissions
        self.emissions, self.count = emissions is not None, 0

    def add(self, started_at: int, price: Price, plan: Plan, done: Done) -> None:
        """A step that is over; in the order of :data:`STEPS`."""
        self._steps.add(
            (
                self.replica,
                self.count,
                started_at,
                *price,
                plan.queued,
                plan.rows,
                len(plan.chunks),
                plan.drafter,
                plan.length,
                plan.drafted,
                plan.submitted,
                done.accepted,
                done.emitted,
                done.read,
                plan.context_tokens,
                *plan.blocks,
                plan.preempted,
                len(done.finished),
            )
        )
        self.count += 1

    def add_many(self, count: int, **columns: Ints | int) -> None:
        """Several steps at once: columns by name, one number where all are alike; 0 where left out."""
        rows = np.zeros((count, len(STEPS.columns)), np.int64)
        rows[:, 0], rows[:, 1] = self.replica, np.arange(self.count, self.count + count)
        self.count += count
        for name, values in columns.items():
            rows[:, _PLACE[name]] = values
        self._steps.add_many(rows)

    def emit(self, batch: Batch, emitted: Ints) -> None:
        """What rows that decode emitted in the coming step, (C,); the other slots have 0."""
        assert self._emissions is not None
        rows = np.stack([emitted, batch.drafted_now, emitted - batch.decoding], axis=1)
        for slot in np.flatnonzero(emitted).tolist():
            request_id = batch.ticket(slot).request.request_id
            self._emissions.add((self.replica, self.count, request_id, *rows[slot].tolist()))

    def emit_first(self, ticket: Ticket) -> None:
        """A prompt's reading gave a token in the coming step."""
        assert self._emissions is not None
        self._emissions.add((self.replica, self.count, ticket.request.request_id, 1, 0, 0))


class _Rows:
    """Rows of one table, in pieces."""

    def __init__(self, table: Table, folder: Path | None):
        self.table = table
        self.rows: list[tuple[int, ...]] = []
        self.pieces: list[pa.Table] = []
        self.arrays: list[Ints] = []
        self.waiting = 0
        self.writer = (
            None if folder is None else pq.ParquetWriter(folder / f"{table.name}.parquet", table.schema)
        )

    def add(self, row: tuple[int, ...]) -> None:
        self.rows.append(row)
        if len(self.rows) >= PIECE:
            self._gather()

    def add_many(self, rows: Ints) -> None:
        self._gather()
        self.arrays.append(rows)
        self.waiting += len(rows)

    def _gather(self) -> None:
        if self.rows:
            self.arrays.append(np.array(self.rows, np.int64))
            self.waiting += len(self.rows)
            self.rows.clear()
        # Pieces are cut at the same rows however these came, so that files have the same bytes.
        while self.waiting >= PIECE:
            together = np.concatenate(self.arrays)
            self._put(together[:PIECE])
            self.arrays, self.waiting = [together[PIECE:]], len(together) - PIECE

    def _put(self, rows: Ints) -> None:
        piece = self._arrow(rows)
        if self.writer is None:
            self.pieces.append(piece)
        else:
            self.writer.write_table(piece)

    def _arrow(self, rows: Ints) -> pa.Table:
        columns: list[Any] = []
        for column, values in zip(self.table.columns, rows.T, strict=True):
            if column.choices:
                columns.append(_OUTCOMES.take(pa.array(values)))
            else:
                columns.append(pa.array(values, mask=values == NEVER if column.nullable else None))
        return pa.table(columns, schema=self.table.schema)

    def close(self) -> pa.Table:
        self._gather()
        if self.waiting:
            self._put(np.concatenate(self.arrays))
        if self.writer is not None:
            self.writer.close()
        return pa.concat_tables(self.pieces) if self.pieces else self.table.schema.empty_table()
