"""Draft length 0 is plain decoding, or is not (M4)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from simspec.claims.base import Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import number, shown
from simspec.claims.simulator.cases import (
    FUNNELS,
    OVER,
    PAIR,
    SMALL_SETTINGS,
    UNIT,
    described,
    few,
    priced,
    steps_of,
    tabulated,
)
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Static
from simspec.strategies.made_up_models import LOOKUP, MIDDLE, SMALL, TARGET, Setting
from simspec.strategies.scenarios import (
    Prices,
    Scenario,
    in_batches,
    made,
    price,
    prices_of,
    replay,
    scenarios,
)

# Replay needs pandas, which whoever only lists claims need not wait for.
if TYPE_CHECKING:
    from simspec.replay.trajectories import Trajectories
    from simspec.strategies.traces import Synthetic

COLUMNS = ("context", "width", "emitted", "accepted", "drafted", "submitted")


def _same_as_plain(ask_lookup: bool = True) -> Rule:
    """The same steps, and the same seconds but for asking a look-up."""

    def rule(scenario: Scenario) -> Outcome:
        plain, prices = scenario.plain, scenario.prices or UNIT
        runs, bare = replay(scenario), replay(plain)
        synthetic = made(scenario.setting)
        for q, text in enumerate(synthetic.texts):
            if steps_of(runs, q, *COLUMNS) != steps_of(bare, q, *COLUMNS):
                replacing = scenario.chain.semantics == "funnel-replace" and scenario.chain.intermediates
                own = "an intermediate adds its own token to what it accepts of a block, here to an empty one"
                return against(
                    described(scenario, q),
                    f"the target's text is {shown(text)}",
                    f"plain decoding: {_told(bare, q)}",
                    *([own] if replacing else []),
                    f"this chain: {_told(runs, q)}",
                )
        batches = in_batches(len(synthetic.prompts), scenario.batch)
        found, wanted = price(scenario, runs, batches), price(plain, bare, batches)
        for g, batch in enumerate(batches.tolist()):
            extra = Fraction(0)
            if ask_lookup and scenario.chain.drafter == LOOKUP:
                steps = range(scenario.setting.output_tokens)
                extra = sum((_asking(synthetic, batch, i, prices) for i in steps), Fraction(0))
            if Fraction(found.seconds[g]) != Fraction(wanted.seconds[g]) + extra:
                return against(
                    described(scenario, batch[0]),
                    priced(scenario),
                    f"texts {shown(batch)} in lock-step: plain decoding takes {wanted.seconds[g]:g} s",
                    f"with draft length 0 it is {found.seconds[g]:g} s, of which asking a look-up takes "
                    f"{number(extra)} s",
                )
        return None

    return rule


def _told(runs: Trajectories, request: int) -> str:
    steps = steps_of(runs, request, "drafted", "width", "accepted", "emitted")
    return "; ".join(
        f"step {i} drafts {drafted}, the target reads {width}, accepts {accepted}, {emitted} emitted"
        for i, (drafted, width, accepted, emitted) in enumerate(steps, 1)
    )


def _asking(synthetic: Synthetic, batch: list[int], step: int, prices: Prices) -> Fraction:
    """What asking the look-up of those requests that still run takes: one token each, at ``step``."""
    held = [len(synthetic.prompts[q]) + step for q in batch if step < len(synthetic.texts[q])]
    if not held:
        return Fraction(0)
    return prices.lookup * (prices.base + prices.token * len(held) + prices.context * sum(held))


NOTHING = (Static(0),)
PINNED = Scenario(
    Setting(seed=0, prompts=1, output_tokens=2, block_length=1, order=1, middle_rate=1.0, small_rate=1.0),
    Chain((SMALL, MIDDLE, TARGET), "funnel-replace"),
    Static(0),
    UNIT,
)
M4_REPAIRED = Statement(
    words=(
        "With draft length 0 every chain whose intermediates pass on only what they accepted is plain "
        "decoding, step by step and to the last second, but for asking a look-up once in every step"
    ),
    formula="seconds(d = 0) = seconds(target alone) + [drafter is a look-up] sum_s T_lookup(1)",
    rule=_same_as_plain(),
    over=OVER + "; pairs and funnel-truncate, draft length 0, batches of up to 3, exact affine costs",
    domain=scenarios(settings=SMALL_SETTINGS, chains=FUNNELS, rules=NOTHING, prices=prices_of(), batch=3),
    every=tabulated(FUNNELS, NOTHING, (1, 2)),
    examples=15,
)
M4 = Claim(
    id="M4",
    source="claims ledger, M4",
    statement=M4_REPAIRED.but(
        "With draft length 0 every chain is plain decoding, step by step and to the last second, but for "
        "asking a look-up once in every step",
        _same_as_plain(),
        over=OVER + "; chains of every semantics, draft length 0, batches of up to 3, exact affine costs",
        domain=scenarios(settings=SMALL_SETTINGS, rules=NOTHING, prices=prices_of(), batch=3),
        every=tabulated(rules=NOTHING, batches=(1, 2)),
    ),
    expected="refuted",
    because=(
        "Under funnel-replace an intermediate passes on a token of its own after what it accepted, and so "
        "after nothing: the target is given a draft though none was drafted. Repaired: an empty block leaves "
        "the target's own step; a network that drafts nothing runs nothing, and an intermediate that is "
        "given nothing and adds nothing stays idle. A look-up has to be asked to be known to have nothing to "
        "say."
    ),
    pinned=PINNED,
    repaired=M4_REPAIRED,
    broken=(
        M4_REPAIRED.but("Not even a look-up costs anything", _same_as_plain(ask_lookup=False)),
        M4_REPAIRED.but(
            "Draft length 1 is plain decoding, too, where no draft is ever right and drafts cost nothing",
            _same_as_plain(),
            over="a few synthetic settings at prices under which only the steps tell the difference",
            domain=None,
            every=few(
                (PAIR,), (Static(1),), Prices(4, small=Fraction(0)), small_rate=0.0, small_follows=TARGET
            ),
        ),
    ),
    first_look=("It was taken to hold of every chain. It does of pairs and of funnel-truncate only."),
)

CLAIMS = (M4,)
