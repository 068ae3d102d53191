"""The engine hands out KV blocks right: after every decision, to nobody more than is theirs (M32)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simspec.claims.base import UNMET, Claim, Outcome, Rule, Statement, against
from simspec.claims.serving.plain_engine import (
    Spoil,
    keeps_drafters_blocks,
    keeps_rejected_drafts,
    serve_plainly,
    supported,
)
from simspec.strategies.serving import all_scenarios, scarce_memory, scenarios
from simspec.strategies.small_engines import Scenario

# The engine needs pyarrow, which whoever only lists claims need not wait for.
if TYPE_CHECKING:
    from simspec.serving.scheduling import Scheduler


def _memory_is_right(when: str, scheduler: Scheduler) -> None:
    """Raise ValueError unless used + free = total and every slot holds what its text needs and may need."""
    batch = scheduler.batch
    reserved = scheduler.serving.memory.lookahead == "reserved"
    ahead = scheduler.serving.lookahead
    for which, pool in zip(("target", "drafter"), scheduler.pools, strict=False):
        held, context = pool.held.tolist(), batch.context.tolist()
        if sum(held) + pool.free != pool.total or pool.free < 0 or min(held) < 0:
            raise ValueError(
                f"after {when} the {which}'s blocks {held} and {pool.free} free are not {pool.total}"
            )
        for slot, ticket in enumerate(batch.tickets):
            # The last token of a text is read in the next step, and needs its place then.
            least = most = 0
            if ticket is not None and slot in batch.prefilling:
                most = ticket.request.prompt_tokens + ticket.produced
                least = most - (not batch.prefilling[slot])  # read to its end, it has got its last token
                most += ahead + 1 if reserved else 0
            elif ticket is not None:
                least = context[slot] - 1
                drafted = int(batch.drafted_now[slot]) if when == "planning" else 0
                most = context[slot] + (ahead + 1 if reserved else drafted)
            if not pool.blocks(least) <= held[slot] <= pool.blocks(most):
                raise ValueError(
                    f"after {when} slot {slot} holds {held[slot]} of the {which}'s blocks, of "
                    f"{pool.block_tokens} tokens each, for {least} tokens of text and {most} at most"
                )


def _in_the_engine(spoil: Spoil | None = None) -> Rule:
    """Memory is right after every decision, and all of it free in the end."""

    def rule(scenario: Scenario) -> Outcome:
        if not supported(scenario):
            return UNMET
        seen: list[Scheduler] = []

        def watch(when: str, scheduler: Scheduler) -> None:
            seen[:] = [scheduler]
            _memory_is_right(when, scheduler)

        try:
            serve_plainly(scenario, spoil, watch)
        except ValueError as wrong:  # from the watch, or from the engine itself, which misses blocks
            return against(str(scenario), str(wrong))
        left = [pool.used for scheduler in seen for pool in scheduler.pools]
        return against(str(scenario), f"all are served and {left} blocks are in use") if any(left) else None

    return rule


M32_STATEMENT = Statement(
    words=(
        "In the engine, after every admission, plan, step and departure: blocks used + free = total for the "
        "target and for the drafter; an empty slot holds none; a slot holds at least what its text needs, "
        "and no more than the draft that it may come to needs; and when all are served all blocks are free"
    ),
    formula="ceil(text / block) <= held <= ceil((text + lookahead) / block);  sum held + free = total",
    rule=_in_the_engine(),
    over=(
        "those of the scenarios of M1 that are open loops without limits on queue or time, step by step: "
        "memory without limit, and too small for all, under every way of looking ahead and preempting"
    ),
    domain=scenarios(open_loop=True),
    every=all_scenarios,
    examples=40,
)
M32 = Claim(
    id="M32",
    source="claims ledger, M3: the engine's own use of its pools",
    statement=M32_STATEMENT,
    expected="holds",
    because=(
        "Blocks change hands in four places: admission takes them for a whole text and, where lookahead is "
        "reserved, for the longest draft and the token after it; planning hands out what rows lack, and "
        "where that is more than is free rows lose their place and all they hold first; a step gives back "
        "what rejected drafts held where only what is used is held; and leaving, by end or preemption, "
        "releases the slot in every pool."
    ),
    broken=(
        M32_STATEMENT.but(
            "The same of an engine that frees the target's blocks alone when a request leaves",
            _in_the_engine(keeps_drafters_blocks),
            every=scarce_memory,
        ),
        M32_STATEMENT.but(
            "The same of an engine that gives back no blocks of rejected drafts",
            _in_the_engine(keeps_rejected_drafts),
            every=scarce_memory,
        ),
    ),
)

CLAIMS = (M32,)
