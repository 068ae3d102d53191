"""What the steps of a replayed text emit (M2, M4b, M4c; M4 in plain_steps).

L = tokens of a text, S = its steps (forwards of the target), d = drafts submitted in a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import shown
from simspec.claims.simulator.cases import (
    LENGTHS,
    NETWORKS,
    OVER,
    PAIR,
    SHORT,
    SMALL_SETTINGS,
    UNIT,
    described,
    few,
    steps_of,
    tabulated,
)
from simspec.speculation.lengths import Static
from simspec.strategies.made_up_models import MIDDLE, TARGET, Setting
from simspec.strategies.scenarios import Scenario, made, replay, scenarios

# Replay needs pandas, which whoever only lists claims need not wait for.
if TYPE_CHECKING:
    from simspec.replay.trajectories import Trajectories

# M2


def _emits(
    of: Callable[[int, int], int],
    cut: bool = True,
    fault: Callable[[Trajectories], Trajectories] | None = None,
) -> Rule:
    """``of`` (submitted, accepted): what an uncut step is said to emit; ``fault`` spoils a replay."""

    def rule(scenario: Scenario) -> Outcome:
        runs = replay(scenario) if fault is None else fault(replay(scenario))
        for q, text in enumerate(made(scenario.setting).texts):
            left = len(text)
            steps = steps_of(runs, q, "submitted", "accepted", "emitted")
            for submitted, accepted, emitted in steps:
                said = min(of(submitted, accepted), left) if cut else of(submitted, accepted)
                if emitted != said:
                    return against(
                        described(scenario, q),
                        f"the target alone writes {len(text)} tokens; {left} are left before this step",
                        f"{submitted} submitted, {accepted} accepted: {emitted} emitted, not {said}",
                    )
                left -= emitted
            if left:
                return against(described(scenario, q), f"{left} of {len(text)} tokens are never emitted")
        return None

    return rule


def _without_last_steps(runs: Trajectories) -> Trajectories:
    """Requests that are taken for finished one step too early."""
    flat = runs.flat.copy()
    flat[np.arange(len(flat)), runs.active.sum(axis=1) - 1] = -1
    return replace(runs, flat=flat)


M2_STATEMENT = Statement(
    words=(
        "A request's steps emit its accepted drafts and one token more each, the last one cut at the text's "
        "end, and together as many tokens as the target writes alone"
    ),
    formula="emitted_s = min(accepted_s + 1, tokens left);  sum_s emitted_s = L",
    rule=_emits(lambda submitted, accepted: accepted + 1),
    over=OVER,
    domain=scenarios(settings=SMALL_SETTINGS, prices=st.just(UNIT)),
    every=tabulated(),
    examples=18,
)
M2 = Claim(
    id="M2",
    source="claims ledger, M2; arXiv 2211.17192 algorithm 1",
    statement=M2_STATEMENT,
    expected="holds",
    because=(
        "The target's word after its accepted drafts is the text's next token, since they are the text's "
        "own. Only an end of text among the accepted drafts leaves nothing to add; a text's length cannot "
        "cut, since at most one token less than the room is drafted."
    ),
    broken=(
        M2_STATEMENT.but("A step emits its accepted drafts", _emits(lambda submitted, accepted: accepted)),
        M2_STATEMENT.but(
            "A step emits its submitted drafts and one more",
            _emits(lambda submitted, accepted: submitted + 1),
        ),
        M2_STATEMENT.but(
            "The last step is not cut", _emits(lambda submitted, accepted: accepted + 1, cut=False)
        ),
        M2_STATEMENT.but(
            "The same where requests are taken for finished one step early",
            _emits(lambda submitted, accepted: accepted + 1, fault=_without_last_steps),
        ),
    ),
)

# M4b, M4c


def _emit_each(of: Callable[[Scenario], int]) -> Rule:
    """Every step emits ``of`` tokens, the last one what is left."""

    def rule(scenario: Scenario) -> Outcome:
        each, runs = of(scenario), replay(scenario)
        for q, text in enumerate(made(scenario.setting).texts):
            found = [n for (n,) in steps_of(runs, q, "emitted")]
            said = [min(each, len(text) - done) for done in range(0, len(text), each)] if each else []
            if found != said:
                return against(
                    described(scenario, q),
                    f"a text of {len(text)} tokens comes in steps of {shown(tuple(found))}",
                    f"expected {shown(tuple(said))}",
                )
        return None

    return rule


def _drafts(scenario: Scenario) -> int:
    rule = scenario.rule
    if not isinstance(rule, Static):
        raise ValueError(f"needs a static length, not {rule}")
    return min(rule.length, scenario.setting.block_length)


def _all_right(scenario: Scenario) -> int:
    own = len(scenario.chain.intermediates) if scenario.chain.semantics == "funnel-replace" else 0
    return _drafts(scenario) + own + 1


def _of_rate(rate: float, follows: tuple[str, ...] = (TARGET, MIDDLE), middle: float | None = None) -> Any:
    """Settings in which every drafter is right, or none ever."""
    return st.builds(
        Setting,
        seed=st.integers(0, 10_000),
        output_tokens=st.integers(1, 16),
        block_length=st.integers(1, 5),
        order=st.integers(1, 3),
        middle_rate=st.just(rate if middle is None else middle),
        small_rate=st.just(rate),
        small_follows=st.sampled_from(follows),
    )


M4B_STATEMENT = Statement(
    words=(
        "Where every model says what the target says, each step emits d + 1 tokens until the text ends, and "
        "one more for every intermediate that passes on a token of its own"
    ),
    formula="emitted = d + 1 + (intermediates under funnel-replace);  S = ceil(L / emitted)",
    rule=_emit_each(_all_right),
    over="random synthetic settings in which all models agree; chains of networks, draft lengths 0 to 5",
    domain=scenarios(settings=_of_rate(1.0), chains=NETWORKS, rules=LENGTHS, prices=st.just(UNIT)),
    examples=18,
)
M4B = Claim(
    id="M4b",
    source="claims ledger, M4; arXiv 2211.17192 eq. 1 at acceptance 1",
    statement=M4B_STATEMENT,
    expected="holds",
    because="All d drafts are the text's own, so is an intermediate's token after them; the target adds one.",
    broken=(
        M4B_STATEMENT.but(
            "Each step emits d tokens: the bonus is forgotten",
            _emit_each(_drafts),
            every=few(rules=SHORT[1:], middle_rate=1.0, small_rate=1.0),
        ),
        M4B_STATEMENT.but(
            "Each step emits d + 1 under every semantics",
            _emit_each(lambda scenario: _drafts(scenario) + 1),
            every=few(NETWORKS, SHORT[1:], middle_rate=1.0, small_rate=1.0),
        ),
    ),
)
M4C_STATEMENT = Statement(
    words="Where no other model ever says what the target says, every step emits one token",
    formula="emitted = 1;  S = L",
    rule=_emit_each(lambda scenario: 1),
    over="random synthetic settings in which no model agrees with the target; networks, draft lengths 0 to 5",
    domain=scenarios(settings=_of_rate(0.0, (TARGET,)), chains=NETWORKS, rules=LENGTHS, prices=st.just(UNIT)),
    examples=18,
)
M4C = Claim(
    id="M4c",
    source="claims ledger, M4",
    statement=M4C_STATEMENT,
    expected="holds",
    because="The first draft is refused, and what the target says there is the text's next token.",
    broken=(
        M4C_STATEMENT.but(
            "A step emits what it accepted: nothing",
            _emit_each(lambda scenario: 0),
            every=few(rules=SHORT[1:], middle_rate=0.0, small_rate=0.0, small_follows=TARGET),
        ),
        M4C_STATEMENT.but(
            "The same of a drafter that never agrees with its intermediate",
            M4C_STATEMENT.rule,
            every=few(rules=LENGTHS, middle_rate=0.0, small_rate=0.0, small_follows=MIDDLE),
            domain=scenarios(
                settings=_of_rate(0.0, (MIDDLE,), middle=0.6),
                chains=(PAIR,),
                rules=LENGTHS,
                prices=st.just(UNIT),
            ),
        ),
    ),
)

CLAIMS = (M2, M4B, M4C)
