"""Nothing is lost and nothing is twice: requests and their tokens (M1, M2b).

The cases are scenarios of small engines, lived through by the engine itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from simspec.claims.base import Claim, Statement
from simspec.claims.serving.laws import (
    Lived,
    Row,
    every_request_ends_once,
    lived,
    obeys,
    tokens_are_accounted_for,
)
from simspec.claims.serving.plain_engine import faulty, loses_preempted
from simspec.strategies.serving import all_scenarios, impatient, scarce_memory, scenarios
from simspec.strategies.small_engines import Scenario

OVER = (
    "all open loops of one and two requests (at the largest budget three), outputs of 1 to 3 tokens, 1 and 2 "
    "slots, drafts of 0 to 2; some that come together with too little memory, queue, patience or time, or "
    "from clients; random scenarios of up to 12 requests under every option, open and closed"
)


def changed(rows: list[Row], change: Callable[[Row], Row]) -> list[Row]:
    """Rows, each with some values changed."""
    return [row | change(row) for row in rows]


# M1


def _gives_up_silently(scenario: Scenario) -> Lived:
    """The engine, but those who are withdrawn or rejected leave without a word."""
    life = lived(scenario)
    told = ("finished", "unfinished")
    return replace(
        life,
        requests=[row for row in life.requests if row["outcome"] in told],
        outcomes={name: n for name, n in life.outcomes.items() if name in told},
    )


M1_STATEMENT = Statement(
    words=(
        "Every request that comes ends once: requests in = finished + rejected + timed out + unfinished at "
        "the horizon, in the engine's counters and in its table of requests"
    ),
    formula="{requests whose instant lies before the end} = {requests in the table}, each once",
    rule=obeys(every_request_ends_once),
    over=OVER,
    domain=scenarios(),
    every=all_scenarios,
    examples=50,
)
M1 = Claim(
    id="M1",
    source="claims ledger, M1",
    statement=M1_STATEMENT,
    expected="holds",
    because=(
        "A request is in one place at a time: waiting, in a slot, or over. It is closed where it is taken "
        "out of its place: at the door, by its patience, after its last token, or at the end of the "
        "simulation. A preempted one goes back to the queue, so it leaves no place without coming into "
        "another. Who came is known beforehand, from the instants."
    ),
    broken=(
        M1_STATEMENT.but(
            "The same of an engine that does not put preempted requests back",
            obeys(every_request_ends_once, faulty(loses_preempted)),
            domain=scenarios(open_loop=True),
            every=scarce_memory,
        ),
        M1_STATEMENT.but(
            "The same where requests in = finished + unfinished",
            obeys(every_request_ends_once, _gives_up_silently),
            every=impatient,
        ),
    ),
)

# M2b


def _counts_passes(scenario: Scenario) -> Lived:
    """A request is charged a pass for the reading of its prompt, too."""
    life = lived(scenario)
    return replace(life, requests=changed(life.requests, _one_pass_more))


def _one_pass_more(row: Row) -> Row:
    return {"passes": row["passes"] + (row["produced_tokens"] > 0)}


def _no_bonus(scenario: Scenario) -> Lived:
    """Where every draft is accepted nothing is emitted after them."""
    life = lived(scenario)
    return replace(life, emissions=changed(life.emissions, _drafts_alone))


def _drafts_alone(row: Row) -> Row:
    full = row["drafted_tokens"] and row["accepted_tokens"] == row["drafted_tokens"]
    return {"emitted_tokens": row["emitted_tokens"] - bool(full)}


M2B_STATEMENT = Statement(
    words=(
        "Under load, preempted or not, a request's tokens are its steps' accepted drafts and one each, at "
        "most as many as it asked for and exactly as many if it finished; requests, steps and emissions give "
        "the same sums"
    ),
    formula="produced_r = sum over its steps of (accepted + 1) <= output_r, equal iff finished",
    rule=obeys(tokens_are_accounted_for),
    over=OVER,
    domain=scenarios(),
    every=all_scenarios,
    examples=50,
)
M2B = Claim(
    id="M2b",
    source="claims ledger, M2: the serving engine",
    statement=M2B_STATEMENT,
    expected="holds",
    because=(
        "A pass over a row emits the drafts that the target accepts and its own next token; reading a "
        "prompt, or a text again after preemption, emits one. A row drafts at most what its text has room "
        "for beside that token, so its end cuts drafts before they are made and no accepted one is thrown "
        "away. The engine keeps the sums by slot, the tables by step and by row."
    ),
    broken=(
        M2B_STATEMENT.but(
            "The same where the reading of a prompt is counted as a pass too",
            obeys(tokens_are_accounted_for, _counts_passes),
        ),
        M2B_STATEMENT.but(
            "The same without the token after a full acceptance", obeys(tokens_are_accounted_for, _no_bonus)
        ),
    ),
)

CLAIMS = (M1, M2B)
