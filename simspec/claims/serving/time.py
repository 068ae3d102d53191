"""Time in the serving engine: Little's law, work that waits, and who comes first (M6, M6b, M30, M31).

The cases are scenarios of small engines, lived through by the engine itself.
"""

from __future__ import annotations

from dataclasses import replace

from simspec.claims.base import UNMET, Claim, Outcome, Rule, Statement
from simspec.claims.serving.accounting import OVER
from simspec.claims.serving.laws import (
    Lived,
    Run,
    first_come_first_served,
    lived,
    never_idle_while_work_waits,
    no_slot_is_empty_while_somebody_waits,
    obeys,
    time_is_accounted_for,
)
from simspec.claims.serving.plain_engine import batch_after_batch, faulty, last_come_first
from simspec.strategies.serving import all_scenarios, impatient, scenarios
from simspec.strategies.small_engines import Scenario

# M6


def _finished_alone(scenario: Scenario) -> Lived:
    life = lived(scenario)
    return replace(life, requests=[row for row in life.requests if row["outcome"] == "finished"])


def _from_admission(scenario: Scenario) -> Lived:
    """Times in service, set against the number in the whole system."""
    life = lived(scenario)
    rows = [row for row in life.requests if row["admitted_at_ns"] is not None]
    return replace(life, requests=[row | {"arrived_at_ns": row["admitted_at_ns"]} for row in rows])


M6_STATEMENT = Statement(
    words=(
        "Little's law holds on every path, exactly: the number of requests in the system, averaged over "
        "time, is their rate of arrival times their mean time in the system, requests of every end counted"
    ),
    formula="L = lambda W:  integral of N(t) dt = sum_r (ended_r - arrived_r), in whole nanoseconds",
    rule=obeys(time_is_accounted_for),
    over=OVER,
    domain=scenarios(),
    every=all_scenarios,
    examples=50,
)
M6 = Claim(
    id="M6",
    source="claims ledger, M6; Little, A proof for the queuing formula L = lambda W (1961), on a path",
    statement=M6_STATEMENT,
    expected="holds",
    because=(
        "N(t) is a sum of indicators, one a request, each 1 from its arrival to its end; integrated, each "
        "gives its time in the system. With L = integral / T, lambda = requests / T and W = sum / requests "
        "this is L = lambda W over any window in which all that came also ended, which closing the books at "
        "the horizon sees to. The engine keeps the integral as requests come and go and the times in its "
        "table; that both are right to the nanosecond is what is tried."
    ),
    broken=(
        M6_STATEMENT.but(
            "The same with the times of finished requests alone",
            obeys(time_is_accounted_for, _finished_alone),
            every=impatient,
        ),
        M6_STATEMENT.but(
            "The same with times counted from admission, without the wait",
            obeys(time_is_accounted_for, _from_admission),
        ),
    ),
)

# M6b


def _looks_now_and_then(scenario: Scenario) -> Lived:
    """An engine that looks for work every 10 ns: who comes in between is seen at the next look."""
    seen = replace(scenario, instants=tuple(-(-at // 10) * 10 for at in scenario.instants))
    life = lived(seen)
    rows = [row | {"arrived_at_ns": scenario.instants[row["request_id"]]} for row in life.requests]
    return replace(life, scenario=scenario, requests=rows)


def _gathers_two(scenario: Scenario) -> Lived:
    """An engine that begins with two requests: the first waits for the second."""
    late = (*scenario.instants[1:2], *scenario.instants[1:])
    life = lived(replace(scenario, instants=late or scenario.instants))
    rows = [row | {"arrived_at_ns": scenario.instants[row["request_id"]]} for row in life.requests]
    return replace(life, scenario=scenario, requests=rows)


M6B_STATEMENT = Statement(
    words=(
        "The engine is never idle while work waits: between two steps, before the first and after the last, "
        "nobody is in the system; and no step begins before the one ahead of it ends"
    ),
    formula="a step ends at e, the next begins at b >= e  =>  b = e or N(t) = 0 for e <= t < b",
    rule=obeys(never_idle_while_work_waits),
    over=OVER,
    domain=scenarios(),
    every=all_scenarios,
    examples=50,
)
M6B = Claim(
    id="M6b",
    source="claims ledger, M6",
    statement=M6B_STATEMENT,
    expected="holds",
    because=(
        "The loop begins a step at the instant at which the last one ends unless nobody waits and no slot is "
        "held, and then the next arrival wakes it at once. A step with somebody there always has something "
        "to do: a request alone in memory always fits, since those that never would are rejected at the "
        "door, so the head of the queue is admitted wherever no slot is held."
    ),
    broken=(
        M6B_STATEMENT.but(
            "The same of an engine that looks for work every 10 ns",
            obeys(never_idle_while_work_waits, _looks_now_and_then),
            domain=scenarios(open_loop=True),
        ),
        M6B_STATEMENT.but(
            "The same of an engine that waits for a second request before it begins",
            obeys(never_idle_while_work_waits, _gathers_two),
            domain=scenarios(open_loop=True),
        ),
    ),
)

# M30

M30_STATEMENT = Statement(
    words=(
        "First come, first served: whoever is admitted finds nobody waiting who came before and has not been "
        "admitted yet, whatever the memory, preemption and policy"
    ),
    formula="i before j, j admitted  =>  admitted_i <= admitted_j, or i was rejected or withdrawn by then",
    rule=obeys(first_come_first_served),
    over=OVER,
    domain=scenarios(),
    every=all_scenarios,
    examples=50,
)
M30 = Claim(
    id="M30",
    source="the serving engine's admission, as in vLLM's default scheduling policy",
    statement=M30_STATEMENT,
    expected="holds",
    because=(
        "New requests join the queue at its end and the head alone is admitted; where it does not fit nobody "
        "behind it is tried. Preempted ones come back at the front: they have been admitted before, and of "
        "several the one admitted first is put there last."
    ),
    broken=(
        M30_STATEMENT.but(
            "The same of an engine that admits the newest first",
            obeys(first_come_first_served, faulty(last_come_first)),
            domain=scenarios(open_loop=True),
        ),
    ),
)

# M31


def _slots_are_used(run: Run = lived) -> Rule:
    """No slot is empty while somebody waits, where memory sets no limit."""
    held = obeys(no_slot_is_empty_while_somebody_waits, run)

    def rule(scenario: Scenario) -> Outcome:
        memory = scenario.serving.memory
        limited = (memory.target_blocks, memory.drafter_blocks) != (None, None)
        return UNMET if limited else held(scenario)

    return rule


M31_STATEMENT = Statement(
    words=(
        "Continuous batching: where memory sets no limit, no slot is empty in a step while a request waits "
        "that came before the step began"
    ),
    formula="at the beginning of every step: waiting > 0  =>  slots held = slots",
    rule=_slots_are_used(),
    over=OVER + "; those without a limit on memory",
    domain=scenarios(memory=False),
    every=all_scenarios,
    examples=50,
)
M31 = Claim(
    id="M31",
    source="iteration-level scheduling (Orca, OSDI 2022), as the engine's loop claims to do it",
    statement=M31_STATEMENT,
    expected="holds",
    because=(
        "Admission comes before every step and goes on until the queue or the slots are exhausted; memory "
        "is the one other thing that stops it. Slots of requests that end are free before the next step. "
        "Several steps are computed at once only where no slot is free or nobody waits, up to the next "
        "arrival."
    ),
    broken=(
        M31_STATEMENT.but(
            "The same of static batching, which admits when the whole batch has ended",
            _slots_are_used(faulty(batch_after_batch)),
            every=lambda level: all_scenarios(max(level, 1)),
            domain=scenarios(open_loop=True, memory=False),
        ),
    ),
)

CLAIMS = (M6, M6B, M30, M31)
