"""What a step does to rows, texts and memory once its time is over. Only here are verdicts asked."""

from __future__ import annotations

from simspec.serving.candidates import Several
from simspec.serving.recorder import Steps
from simspec.serving.request import NEVER
from simspec.serving.scheduling import Scheduler
from simspec.serving.step import Done, Plan
from simspec.serving.verdicts import Verdicts


def apply(scheduler: Scheduler, verdicts: Verdicts | None, plan: Plan, recorder: Steps, now: int) -> Done:
    """Bring about what was planned, as of the instant ``now`` at which the step ends."""
    accepted, emitted, finished = _decode(scheduler, verdicts, plan, recorder) if plan.rows else (0, 0, [])
    read = 0
    for slot, tokens, _ in plan.chunks:
        read += tokens
        if scheduler.batch.read(slot, tokens):
            emitted += 1
            if _first_token(scheduler, verdicts, slot, recorder, now):
                finished.append(slot)
    return Done(accepted, emitted, read, finished)


def _decode(
    scheduler: Scheduler, verdicts: Verdicts | None, plan: Plan, recorder: Steps
) -> tuple[int, int, list[int]]:
    batch = scheduler.batch
    # An intermediate that adds tokens of its own does so where nothing is drafted, too.
    if verdicts is not None and (plan.drafted or (batch.replaces and plan.length)):
        if batch.middles and isinstance(verdicts, Several):
            emitted = batch.advance(verdicts.settled(batch.given, batch.passed))
        else:
            emitted = batch.advance(verdicts.accepted(batch.submitted_now))
        accepted = batch.accepted_sum
        if scheduler.drafting is not None:
            scheduler.drafting.learn(accepted)
    else:
        emitted = batch.decoding
        accepted = 0
        batch.advance_plainly()
    if recorder.emissions:
        recorder.emit(batch, emitted)
    if verdicts is not None:
        verdicts.move(emitted)
    scheduler.give_back()
    return accepted, plan.rows + accepted, batch.finished()


def _first_token(
    scheduler: Scheduler, verdicts: Verdicts | None, slot: int, recorder: Steps, now: int
) -> bool:
    """A prompt is read, and its forward gives a token; whether that was the request's last."""
    ticket = scheduler.batch.ticket(slot)
    ticket.produced += 1
    if ticket.first_token_at == NEVER:
        ticket.first_token_at = now
    if recorder.emissions:
        recorder.emit_first(ticket)
    request = ticket.request
    if ticket.produced == request.output_tokens:
        return True
    scheduler.batch.begin(slot)
    if verdicts is not None:
        verdicts.seat(slot, request.request_id, ticket.produced, request.output_tokens)
    return False
