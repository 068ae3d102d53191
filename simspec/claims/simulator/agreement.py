"""Replay agrees with running the models, and length rules see nothing that they predict (M8, M9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import shown
from simspec.claims.simulator.cases import DRAFTING, OVER, SMALL_SETTINGS, described, few, steps_of, tabulated
from simspec.speculation.lengths import (
    Decision,
    Floats,
    LengthRule,
    Prescribed,
    Static,
    View,
    expected_tokens,
)
from simspec.strategies.scenarios import (
    Scenario,
    made,
    prices_of,
    recorded,
    replay,
    scenarios,
    with_other_future,
)
from simspec.strategies.token_by_token import COUNTED, decode

# Replay needs pandas, which whoever only lists claims need not wait for.
if TYPE_CHECKING:
    from simspec.replay.trajectories import Trajectories
    from simspec.traces.index import Ints, Trace


# M8


def _as_lived(misread: Callable[[Trace, Scenario], Trace] | None = None) -> Rule:
    """Replay's counts are those of the models run token by token; ``misread`` spoils what replay is given."""

    def rule(scenario: Scenario) -> Outcome:
        from simspec.replay.pricing import two_level_seconds

        synthetic, trace = made(scenario.setting), recorded(scenario.setting)
        runs = replay(scenario, trace=None if misread is None else misread(trace, scenario))
        seconds = None
        if len(scenario.chain.levels) == 2 and scenario.prices is not None:
            seconds = two_level_seconds(trace, scenario.chain, scenario.prices.model(), scenario.batch)
        for q, text in enumerate(synthetic.texts):
            first = trace.offsets[q]
            told = None if seconds is None else seconds[first : first + len(text)]
            cycles = decode(scenario, q, told)
            written = [token for c in cycles for token in c.emitted]
            if written != text:
                return against(
                    described(scenario, q),
                    f"the chain writes {shown(written)}, the target alone {shown(text)}",
                )
            found, right = steps_of(runs, q, *COUNTED), [c.counts for c in cycles]
            if found != right:
                return against(
                    described(scenario, q),
                    f"the target's text is {shown(text)}",
                    f"replayed ({', '.join(COUNTED)}) by cycle: {shown(found)}",
                    f"token by token: {shown(right)}",
                )
        return None

    return rule


def _verdicts_along_text(trace: Trace, scenario: Scenario) -> Trace:
    """An intermediate's verdict read from where it agrees with the text, not with the block."""
    drafters = {}
    for name, index in trace.drafters.items():
        agreed = {}
        for model in index.agreed:
            ends = trace.offsets[trace.prompt + 1]
            runs = [_run_of(trace.owns[model][at:end]) for at, end in enumerate(ends)]
            agreed[model] = np.minimum(np.array(runs), index.length)
        drafters[name] = replace(index, agreed=agreed)
    return replace(trace, drafters=drafters)


def _run_of(flags: Any) -> int:
    """How many leading ones are true."""
    return len(flags) if flags.all() else int(np.argmin(flags))


def _blocks_never_end(trace: Trace, scenario: Scenario) -> Trace:
    """Blocks that go on past an end of text that they draft."""
    depth = scenario.setting.block_length
    drafters = {m: replace(i, length=np.full_like(i.length, depth)) for m, i in trace.drafters.items()}
    return replace(trace, drafters=drafters)


M8_STATEMENT = Statement(
    words=(
        "Replaying a trace gives, cycle by cycle, the drafted, submitted, verified, accepted and emitted "
        "counts of the models run token by token; and the text is the target's own"
    ),
    formula="replay(record(models), schedule) = counts of decoding with (models, schedule)",
    rule=_as_lived(),
    over=OVER + "; of the tabulated models 243 at the default budget and draft length 2",
    domain=scenarios(settings=SMALL_SETTINGS, prices=prices_of(context=False), batch=1),
    every=tabulated(rules=(Static(2),), middles=3),
    examples=15,
)
M8 = Claim(
    id="M8",
    source="claims ledger, M8",
    statement=M8_STATEMENT,
    expected="holds",
    because=(
        "Under greedy decoding the text before every cycle is the target's own, so what happens in it is a "
        "function of its place in the text, and a trace holds that for every place. Blocks stored once serve "
        "every start before them at which the drafter follows the text, since it is a function of the tokens "
        "before. The other side runs the made-up models through simspec.speculation.cycle and sees no trace."
    ),
    broken=(
        M8_STATEMENT.but(
            "The same with intermediates' verdicts read along the text in place of the block",
            _as_lived(_verdicts_along_text),
        ),
        M8_STATEMENT.but("The same with blocks that go on past an end of text", _as_lived(_blocks_never_end)),
    ),
)

# M9


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
        for name in ("flat", "drafted", "submitted"):
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
        "position. Chain schedulers are given the past alone, and replay has none: they are not tried here."
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
    ),
)

CLAIMS = (M8, M9)
