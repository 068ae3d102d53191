"""Replay agrees with running the models, cycle by cycle (M8), with M9 and M9b from beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from simspec.claims.base import Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import shown
from simspec.claims.simulator.cases import OVER, SMALL_SETTINGS, described, steps_of, tabulated
from simspec.speculation.lengths import Floats, Static
from simspec.strategies.made_up_models import LOOKUP
from simspec.strategies.scenarios import Scenario, made, prices_of, recorded, replay, scenarios
from simspec.strategies.token_by_token import COUNTED, Lived, decode

# Replay needs pandas, which whoever only lists claims need not wait for.
if TYPE_CHECKING:
    from simspec.traces.index import Trace


# M8


def _as_lived(
    misread: Callable[[Trace, Scenario], Trace] | None = None,
    lived: Callable[[Scenario, int, Floats | None], list[Lived]] = decode,
) -> Rule:
    """Replay's counts are those of the models run token by token, and these write the target's text.

    ``misread`` spoils what replay is given, ``lived`` what is decoded.
    """

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
            cycles = lived(scenario, q, told)
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


def _wrong_later(trace: Trace, scenario: Scenario) -> Trace:
    """Nothing is accepted from a text's second place on."""
    first = trace.position == 0
    drafters = {
        m: replace(
            i, matched=np.where(first, i.matched, 0), agreed={v: a * first for v, a in i.agreed.items()}
        )
        for m, i in trace.drafters.items()
    }
    return replace(trace, drafters=drafters)


def _ends_in_draft(scenario: Scenario, prompt: int, seconds: Floats | None) -> list[Lived]:
    """Decoding whose very last token is the lowest network's own, whatever the target says."""
    cycles = decode(scenario, prompt, seconds)
    lowest = next(m for m in scenario.chain.levels if m != LOOKUP)
    synthetic, text = made(scenario.setting), [token for c in cycles for token in c.emitted]
    last = synthetic.next_token(lowest, [*synthetic.prompts[prompt], *text[:-1]])
    return [*cycles[:-1], replace(cycles[-1], emitted=(*cycles[-1].emitted[:-1], last))]


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
        "counts of the models run token by token; and these write the text that the target writes alone"
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
        M8_STATEMENT.but(
            "The same where replay accepts nothing from a text's second token on", _as_lived(_wrong_later)
        ),
        M8_STATEMENT.but(
            "The same where the last token written is the lowest network's", _as_lived(lived=_ends_in_draft)
        ),
    ),
)

CLAIMS = (M8,)
