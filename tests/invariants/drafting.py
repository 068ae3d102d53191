"""Drafts: their lengths, and who makes them."""

from __future__ import annotations

from simspec.serving.chain_verdicts import LevelRates
from simspec.serving.choosing import Routed
from simspec.serving.policies import ByRows, Fixed, OffAbove
from simspec.serving.row_policies import ByRule, Joint
from simspec.serving.switching import Switching
from simspec.serving.verdicts import Mean, Rates
from tests.invariants.life import Life


def lengths_are_the_policys(life: Life) -> list[str]:
    """No step asks for more than its policy may, none without rows, and no row drafts more than was asked."""
    found = []
    for step, turns in zip(life.steps, life.turns_of, strict=True):
        length, rows, drafted = (
            step[n] for n in ("draft_length_tokens", "decoding_requests", "drafted_tokens")
        )
        most = max((turn.row["drafted_tokens"] for turn in turns), default=0)
        spec = life.engine(step).speculation
        wrong = {
            "more than the longest": spec is None or length > spec.policy.longest if length else False,
            "a length for nobody": length > 0 and not rows and not step["preempted_requests"],
            "a row that drafts more": most > length,
            "drafts of nobody": not rows and (drafted or step["accepted_tokens"] or step["context_tokens"]),
        }
        found += [f"step {step['row']}: {what} in {step}" for what, broken in wrong.items() if broken]
    return found


def rows_submit_what_they_draft(life: Life) -> list[str]:
    """Only policies that choose row by row hold drafts back, and intermediates those that they refuse."""
    return [
        f"step {step['row']}: of {step['drafted_tokens']} drafts {step['submitted_tokens']} are submitted"
        for step in life.steps
        if step["drafted_tokens"] != step["submitted_tokens"]
        and not isinstance(getattr(life.engine(step).speculation, "policy", None), ByRule | Joint)
        and not any(links.middles for links in life.engine(step).chains)
    ]


def a_policy_by_rows_is_carried_out(life: Life) -> list[str]:
    """What depends on the number of rows alone can be read off the table, unless rows were lost meanwhile."""
    found = []
    for number, steps in life.by_replica.items():
        policy = getattr(life.cluster.engines[number].speculation, "policy", None)
        if not isinstance(policy, Fixed | OffAbove | ByRows) or not life.calm:
            continue
        state = policy.begin()
        for step in steps:
            if step["preempted_requests"]:
                break
            rows = step["decoding_requests"]
            if not rows:
                continue
            if isinstance(policy, Fixed):
                right = policy.draft_tokens
            elif isinstance(policy, ByRows):
                right = next((n for low, high, n in policy.table if low <= rows <= high), 0)
            else:
                state = int(rows <= (policy.off_above if state else policy.on_at))
                right = policy.draft_tokens * state
            if step["draft_length_tokens"] != right:
                found.append(
                    f"step {step['row']}: {rows} rows, length {step['draft_length_tokens']}, not {right}"
                )
    return found


def rows_draft_all_that_they_can(life: Life) -> list[str]:
    """With one length for all, a row drafts as much: less only where its answer or the source ends."""
    found = []
    for step, turns in zip(life.steps, life.turns_of, strict=True):
        speculation = life.engine(step).speculation
        if speculation is None or isinstance(speculation.policy, ByRule | Joint | Switching | Routed):
            continue
        source = speculation.source
        if not isinstance(source, Rates | Mean | LevelRates):
            continue
        most = source.longest if isinstance(source, LevelRates) else len(source.survival)
        depth = min(step["draft_length_tokens"], most)
        found += [
            f"step {step['row']}: request {turn.request['request_id']} drafts {turn.row['drafted_tokens']}"
            for turn in turns
            if turn.reads is False
            and turn.row["drafted_tokens"] != min(depth, turn.request["output_tokens"] - turn.before - 1)
        ]
    return found


def drafters_are_those_there_are(life: Life) -> list[str]:
    """A drafter takes over in a step that drafts, and is one of those that there are."""
    found = []
    for number, steps in life.by_replica.items():
        speculation = life.cluster.engines[number].speculation
        count, last = 1 if speculation is None else speculation.drafters, 0
        for step in steps:
            drafter = step["drafter"]
            changed = drafter != last and not step["draft_length_tokens"] and life.calm
            if not 0 <= drafter < count or changed:
                found.append(f"step {step['row']}: drafter {drafter} after {last}, of {count}")
            last = drafter
    return found


LAWS = (
    lengths_are_the_policys,
    rows_submit_what_they_draft,
    a_policy_by_rows_is_carried_out,
    rows_draft_all_that_they_can,
    drafters_are_those_there_are,
)
