"""No length rule sees what it predicts (M9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import shown
from simspec.claims.simulator.cases import DRAFTING, SMALL_SETTINGS, described, few
from simspec.speculation.lengths import (
    Decision,
    Floats,
    LengthRule,
    Prescribed,
    Static,
    View,
    expected_tokens,
)
from simspec.strategies.scenarios import Scenario, prices_of, recorded, scenarios, with_other_future

# Replay needs pandas, which whoever only lists claims need not wait for.
if TYPE_CHECKING:
    from simspec.replay.trajectories import Trajectories
    from simspec.traces.index import Ints, Trace


@dataclass(frozen=True)
class Peek:
    """A scenario, one cycle of one of its requests, and how what it may not see is changed."""

    scenario: Scenario
    request: int
    cycle: int
    luck: int


def peeks(some: st.SearchStrategy[Scenario]) -> st.SearchStrategy[Peek]:
    return st.builds(Peek, some, st.integers(0, 2), st.integers(0, 5), st.integers(0, 10**6))


def _blind(rule: Callable[[Trace, Scenario], LengthRule | Prescribed | None]) -> Rule:
    """The decision of a cycle stays when verdicts from there on, and drafts that it leaves, are changed."""

    def decide(case: Peek) -> Outcome:
        scenario = case.scenario
        trace, drafter = recorded(scenario.setting), scenario.chain.drafter
        request = case.request % scenario.setting.prompts
        before = _run(scenario, trace, rule, request)
        count = int(before.active[0].sum())
        c = case.cycle % count
        at, drafted = int(before.flat[0, c]), int(before.drafted[0, c])
        if drafter is None:
            return UNMET
        changed = with_other_future(trace, drafter, at, drafted, case.luck)
        after = _run(scenario, changed, rule, request)
        seen = slice(0, c + 1)
        for name in ("drafted", "submitted"):
            was, now = getattr(before, name)[0, seen], getattr(after, name)[0, seen]
            if was.tolist() != now.tolist():
                index, other = trace.drafters[drafter], changed.drafters[drafter]
                return against(
                    described(scenario, request),
                    f"in cycle {c} it drafts {drafted}; until there nothing is changed",
                    f"confidences {shown(index.confidence[at])} become {shown(other.confidence[at])}",
                    f"of {index.length[at]} drafts {index.matched[at]} would be accepted; "
                    f"changed, of {other.length[at]} {other.matched[at]}",
                    f"{name} by cycle was {shown(was)} and is {shown(now)}",
                )
        return None

    return decide


def _run(
    scenario: Scenario,
    trace: Trace,
    rule: Callable[[Trace, Scenario], LengthRule | Prescribed | None],
    request: int,
) -> Trajectories:
    from simspec.replay.pricing import two_level_seconds
    from simspec.replay.trajectories import run

    seconds = None
    if len(scenario.chain.levels) == 2 and scenario.prices is not None:
        seconds = two_level_seconds(trace, scenario.chain, scenario.prices.model(), scenario.batch)
    start = trace.offsets[[request]]
    return run(trace, scenario.chain, rule(trace, scenario), start, seconds)


def _own_rule(trace: Trace, scenario: Scenario) -> LengthRule | None:
    return scenario.rule


def _hindsight(trace: Trace, scenario: Scenario) -> Prescribed:
    """As many as will be accepted."""
    return Prescribed(trace.drafters[scenario.chain.drafter or ""].matched)


def _later_hindsight(trace: Trace, scenario: Scenario) -> Prescribed:
    """One at first, and as many as will be accepted from the second cycle on."""
    matched = trace.drafters[scenario.chain.drafter or ""].matched
    return Prescribed(np.where(trace.position == 0, 1, matched))


class _FullScan:
    """The best length over the whole block, of which only that many are said to be drafted."""

    sampling_safe: ClassVar[bool] = False

    def begin(self, requests: int) -> Floats:
        return np.zeros(requests)

    def decide(self, view: View, state: Floats) -> Decision:
        best = (expected_tokens(view.confidence) / view.seconds).argmax(axis=1)
        return Decision(best, best)

    def observe(self, state: Floats, decision: Decision, accepted: Ints) -> Floats:
        return state


class _StopsBeforeEnd(_FullScan):
    """One token less than the drafter could draft, known beforehand."""

    def decide(self, view: View, state: Floats) -> Decision:
        lengths = np.maximum(view.limit - 1, 0)
        return Decision(lengths, lengths)


def _sure_of_third(view: View) -> Ints:
    """1 where the drafter would give its third token more than half, (Q,)."""
    sure: Ints = (view.confidence[:, 2:3] > 0.5).sum(axis=1)
    return sure


class _SubmitsByWhatItLeaves(_FullScan):
    """Drafts two tokens, and submits both where the drafter would be sure of a third."""

    def decide(self, view: View, state: Floats) -> Decision:
        two = np.full(len(view.limit), 2)
        return Decision(two, 1 + _sure_of_third(view))


class _DraftsByWhatItLeaves(_FullScan):
    """Submits one token, and drafts a second one where the drafter would not be sure of a third."""

    def decide(self, view: View, state: Floats) -> Decision:
        return Decision(2 - _sure_of_third(view), np.full(len(view.limit), 1))


def _few_peeks(level: int) -> Iterator[Peek]:
    for scenario, c, luck in product(few(rules=(Static(1),))(level), range(2), range(4)):
        yield Peek(scenario, 0, c, luck)


M9_DOMAIN = peeks(
    scenarios(settings=SMALL_SETTINGS, chains=DRAFTING, prices=prices_of(context=False), batch=1)
)
M9_STATEMENT = Statement(
    words=(
        "No length rule sees what it predicts: change every verdict from a cycle on, and all drafts that the "
        "cycle does not draft, and its decision stays"
    ),
    formula="decision_c is a function of (drafts of cycle c that are drafted, outcomes of cycles before c)",
    rule=_blind(_own_rule),
    over="random synthetic scenarios of every chain and rule; in a random cycle the unseen is redrawn",
    domain=M9_DOMAIN,
    examples=40,
)
M9 = Claim(
    id="M9",
    source="claims ledger, M9",
    statement=M9_STATEMENT,
    expected="holds",
    because=(
        "A rule is given confidences, a limit and costs. It is told of verdicts after the cycle; confidences "
        "and the limit are there for the whole block, so that a rule does not look past its own drafts is a "
        "promise, and this holds them to it. Oracles are told apart by their type: they prescribe by "
        "position. Chain schedulers are M9b's, policies under load M9c's."
    ),
    broken=(
        M9_STATEMENT.but("The same of hindsight, were it a rule", _blind(_hindsight), every=_few_peeks),
        M9_STATEMENT.but(
            "The same of a scan over the whole block that owns up to its best prefix",
            _blind(lambda trace, scenario: _FullScan()),
            every=_few_peeks,
        ),
        M9_STATEMENT.but(
            "The same of a rule that stops one token before the drafter would have ended",
            _blind(lambda trace, scenario: _StopsBeforeEnd()),
            every=_few_peeks,
        ),
        M9_STATEMENT.but(
            "The same of hindsight from a text's second cycle on", _blind(_later_hindsight), every=_few_peeks
        ),
        M9_STATEMENT.but(
            "The same of a rule that submits by how sure the drafter is of what it does not draft",
            _blind(lambda trace, scenario: _SubmitsByWhatItLeaves()),
            every=_few_peeks,
        ),
        M9_STATEMENT.but(
            "The same of a rule that drafts by how sure the drafter is of what it does not draft",
            _blind(lambda trace, scenario: _DraftsByWhatItLeaves()),
            every=_few_peeks,
        ),
    ),
)

CLAIMS = (M9,)
