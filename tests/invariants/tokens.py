"""Tokens: those of a step, of a request and of a row are the same ones."""

from __future__ import annotations

from itertools import pairwise

from tests.invariants.life import Life


def drafts_shrink_on_their_way(life: Life) -> list[str]:
    """Drafted >= submitted >= accepted >= 0: the target sees drafts alone, and accepts what it sees.

    Where intermediates add tokens of their own, they are submitted and accepted too, and drafted by nobody.
    """
    found = []
    adds = any(links.replace for one in life.cluster.engines for links in one.chains)
    for table, rows in (("step", life.steps), ("request", life.requests), ("emission", life.emissions)):
        for n, row in enumerate(rows):
            drafted, accepted = row["drafted_tokens"], row["accepted_tokens"]
            submitted = row.get("submitted_tokens", drafted)
            fewer = drafted < submitted and not adds
            none = submitted < accepted and not (adds and table != "step")
            if fewer or none or min(drafted, submitted, accepted) < 0:
                found.append(f"{table} {n}: {drafted} drafted, {submitted} submitted, {accepted} accepted")
    return found


def steps_are_the_sums_of_their_rows(life: Life) -> list[str]:
    """Emitted = rows + accepted + prompts read to their end, which are at most the prompts that were read."""
    found = []
    for step, turns in zip(life.steps, life.turns_of, strict=True):
        said = tuple(step[f"{name}_tokens"] for name in ("drafted", "accepted", "emitted"))
        rows = [turn.row for turn in turns]
        sums = tuple(
            sum(row[f"{name}_tokens"] for row in rows) for name in ("drafted", "accepted", "emitted")
        )
        read = len(turns) - step["decoding_requests"]
        if said != sums:
            found.append(f"step {step['row']}: (drafted, accepted, emitted) {said}, its rows say {sums}")
        if not 0 <= read <= step["prefilling_requests"]:
            found.append(f"step {step['row']}: {len(turns)} emit, {step['decoding_requests']} decode")
        if step["emitted_tokens"] != step["decoding_requests"] + step["accepted_tokens"] + read:
            found.append(f"step {step['row']}: {step['emitted_tokens']} emitted; {read} prompts ended")
        if (
            sum(turn.reads is True for turn in turns) > read
            or sum(turn.reads is False for turn in turns) > (step["decoding_requests"])
        ):
            found.append(f"step {step['row']}: not {read} of its rows can have been read")
    return found


def requests_are_the_sums_of_their_rows(life: Life) -> list[str]:
    """Produced, with what was thrown away, = readings + passes + accepted = what steps emitted for it."""
    found = []
    for number, row in life.by_number.items():
        turns = life.turns[number]
        names = ("emitted", "drafted", "accepted")
        sums = [sum(turn.row[f"{name}_tokens"] for turn in turns) for name in names]
        said = [
            row["produced_tokens"] + row["discarded_tokens"],
            row["drafted_tokens"],
            row["accepted_tokens"],
        ]
        if sums != said:
            found.append(f"request {number}: (emitted, drafted, accepted) {said}, its steps say {sums}")
        readings = len(turns) - row["passes"]
        least = sum(turn.reads is True for turn in turns)
        most = len(turns) - sum(turn.reads is False for turn in turns)
        if not least <= readings <= min(most, least + row["preemptions"]):
            found.append(f"request {number}: read {readings} times, with {row['preemptions']} preemptions")
        found += [
            f"request {number}: a row of {turn.row}"
            for turn in turns
            if turn.row["emitted_tokens"] != turn.row["accepted_tokens"] + 1
            or (turn.reads and turn.row["drafted_tokens"])
        ]
    return found


def passes_are_rows(life: Life) -> list[str]:
    """A row of a step is a pass of a request, so both tables have as many."""
    passes, rows = (
        sum(row[n] for row in t) for n, t in (("passes", life.requests), ("decoding_requests", life.steps))
    )
    return [] if passes == rows else [f"{passes} passes of requests, {rows} rows of steps"]


def texts_end_where_they_should(life: Life) -> list[str]:
    """No draft reaches past the answer's end less the target's own token, and no text past its length."""
    return [
        f"step {turn.step['row']}: request {number} has {turn.before} of {turn.request['output_tokens']} "
        f"tokens, drafts {turn.row['drafted_tokens']} and emits {turn.row['emitted_tokens']}"
        for number, turns in life.turns.items()
        for turn in turns
        if turn.before + max(turn.row["drafted_tokens"] + 1, turn.row["emitted_tokens"])
        > turn.request["output_tokens"]
    ]


def requests_are_in_one_place_at_a_time(life: Life) -> list[str]:
    """Steps of one request do not overlap, and lie between its admission and its end."""
    found = []
    for number, turns in life.turns.items():
        row = life.by_number[number]
        spans = [(t.step["started_at_ns"], life.ends[t.step["row"]]) for t in turns]
        if spans and (spans[0][0] < row["admitted_at_ns"] or spans[-1][1] > row["ended_at_ns"]):
            found.append(f"request {number} emits in {spans}, which it is not there for")
        found += [f"request {number} is in two steps, {a} and {b}" for a, b in pairwise(spans) if b[0] < a[1]]
    return found


def instants_are_those_of_steps(life: Life) -> list[str]:
    """A request is admitted as a step begins, and its first token and its end come as one ends."""
    found = []
    begins = {step["started_at_ns"] for step in life.steps}
    begins |= {out["step_began_at_ns"] for out in life.outages}
    for number, row in life.by_number.items():
        turns = life.turns[number]
        first, admitted = row["first_token_at_ns"], row["admitted_at_ns"]
        since = [turn for turn in turns if turn.before == 0][-1:]
        if first is not None and (not since or first != life.ends[since[0].step["row"]]):
            found.append(f"request {number}: its first token came at {first}, by no step of its own")
        if row["outcome"] == "finished" and row["ended_at_ns"] != life.ends[turns[-1].step["row"]]:
            found.append(f"request {number} ends at {row['ended_at_ns']}, by no step of its own")
        # The step that was under way at the end is in no table.
        cut = row["outcome"] == "unfinished"
        if admitted is not None and admitted not in begins and not cut:
            found.append(f"request {number} is admitted at {admitted}, when no step begins")
    for step, turns in zip(life.steps, life.turns_of, strict=True):
        last_of = [
            t
            for t in turns
            if t.request["outcome"] == "finished" and life.turns[t.request["request_id"]][-1] is t
        ]
        if step["finished_requests"] != len(last_of):
            found.append(f"step {step['row']} ends {step['finished_requests']}, requests say {len(last_of)}")
    return found


def context_is_the_rows_texts(life: Life) -> list[str]:
    """What a step's price rests on: the texts of rows that decode, as long as they were when it began."""
    found = []
    for step, turns in zip(life.steps, life.turns_of, strict=True):
        least = sum(turn.text for turn in turns if turn.reads is False)
        most = sum(turn.text for turn in turns if turn.reads is not True)
        if not least <= step["context_tokens"] <= most:
            found.append(f"step {step['row']}: context {step['context_tokens']}, texts {least} to {most}")
    return found


def prompts_are_read_once(life: Life) -> list[str]:
    """Whoever has a token has had its prompt read, once; only a lost place or a failure makes it twice."""
    found = []
    for step in life.steps:
        tokens, prompts = step["prefill_tokens"], step["prefilling_requests"]
        if not prompts <= tokens or (tokens and not prompts):
            found.append(f"step {step['row']}: {tokens} tokens of {prompts} prompts are read")
    read = sum(step["prefill_tokens"] for step in life.steps)
    least = sum(t.text for turns in life.turns.values() for t in turns if t.reads)
    most = sum(
        (row["prompt_tokens"] + row["output_tokens"]) * (row["preemptions"] + row["restarts"])
        + row["prompt_tokens"] * (row["admitted_at_ns"] is not None)
        for row in life.requests
    )
    if not least <= read <= most:
        found.append(f"{read} tokens of prompts are read, between {least} and {most} should be")
    if not any(row["preemptions"] or row["outcome"] in ("unfinished", "lost") for row in life.requests) and (
        life.calm and read != least
    ):
        found.append(f"{read} tokens of prompts are read, nobody lost a place, and the prompts have {least}")
    return found


def failures_throw_away_what_was_produced(life: Life) -> list[str]:
    """Discarded are the tokens that a request had when its replica failed; none if it resumes or is lost."""
    found = []
    for number, row in life.by_number.items():
        turns = life.turns[number]
        had = 0
        for turn, then in zip(turns, [*turns[1:], None], strict=False):
            again = life.lost_all(row) if then is None else then.before == 0
            had += again * (turn.before + turn.row["emitted_tokens"])
        if row["discarded_tokens"] != had:
            found.append(f"request {number}: {row['discarded_tokens']} tokens discarded, it had {had}")
    return found


LAWS = (
    drafts_shrink_on_their_way,
    steps_are_the_sums_of_their_rows,
    requests_are_the_sums_of_their_rows,
    passes_are_rows,
    texts_end_where_they_should,
    requests_are_in_one_place_at_a_time,
    instants_are_those_of_steps,
    context_is_the_rows_texts,
    prompts_are_read_once,
    failures_throw_away_what_was_produced,
)
