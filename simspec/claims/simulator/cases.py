"""Scenarios of synthetic models (:mod:`simspec.strategies.made_up_models`): the cases of claims on replay.

Deterministic and made up, so that every count can be got again by running the models token by token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from simspec.speculation.chains import Chain
from simspec.speculation.lengths import LengthRule, Static
from simspec.strategies.made_up_models import (
    EOS,
    LOOKUP,
    MIDDLE,
    SMALL,
    TARGET,
    Setting,
    Tabulated,
    settings_of,
)
from simspec.strategies.scenarios import CHAINS, Prices, Scenario, all_scenarios

# Replay needs pandas, which whoever only lists claims need not wait for.
if TYPE_CHECKING:
    from simspec.replay.trajectories import Trajectories

SMALL_SETTINGS = settings_of(prompts=3, output_tokens=(1, 12), block_length=(1, 5))
STEEP = Prices(base=4, token=1)
UNIT = Prices(base=1, lookup=Fraction(1, 8))
PAIR = Chain((SMALL, TARGET))
FUNNELS = tuple(c for c in CHAINS if not (c.semantics == "funnel-replace" and c.intermediates))
REPLACING = tuple(c for c in CHAINS if c.semantics == "funnel-replace" and c.intermediates)
DRAFTING = tuple(c for c in CHAINS if c.drafter is not None)
NETWORKS = tuple(c for c in DRAFTING if c.drafter != LOOKUP)
SHORT: tuple[LengthRule, ...] = (Static(0), Static(1), Static(2))
LENGTHS: tuple[LengthRule, ...] = tuple(Static(length) for length in range(6))


def tabulated(
    chains: tuple[Chain, ...] = CHAINS,
    rules: tuple[LengthRule, ...] = SHORT,
    batches: tuple[int, ...] = (1,),
    middles: int = 9,
) -> Callable[[int], Iterator[Scenario]]:
    """All triples of next-token functions, or those with ``middles`` intermediates; with 1 at level 0."""
    tables = (Tabulated(1), Tabulated(middles), Tabulated(output_tokens=6, block_length=4))
    return lambda level: all_scenarios([tables[level]], chains, rules, (UNIT,), batches)


def few(
    chains: tuple[Chain, ...] = (PAIR,),
    rules: tuple[LengthRule, ...] = SHORT,
    prices: Prices | None = STEEP,
    batches: tuple[int, ...] = (1,),
    **changes: Any,
) -> Callable[[int], Iterator[Scenario]]:
    """A few fixed scenarios, for variants that need to be caught by some case, not to be searched for one."""
    found = [Setting(seed, 2, 8, 4, 1, **changes) for seed in range(3)]
    return lambda level: all_scenarios(found, chains, rules, (prices,), batches)


OVER = (
    "each chain and draft length 0 to 2 with all 729 targets, drafters and intermediates that look back on "
    "one of two tokens or an end of text, 3 tokens far (81 of them at the smallest budget, 6 tokens far at "
    "the largest); random synthetic scenarios"
)


def described(scenario: Scenario, prompt: int) -> str:
    """The chain, its draft length, and the models in words."""
    setting = scenario.setting
    if isinstance(setting, Tabulated):
        told = ", ".join(f"{m}: 0 -> {f[0]}, 1 -> {f[1]}" for m, f in setting.models(prompt).items())
        return (
            f"{scenario}; models that look back on one token: {told} ({EOS} ends a text); prompt ends in 0, "
            f"text of at most {setting.output_tokens} tokens"
        )
    said = [_agrees(m, setting) for m in scenario.chain.levels if m in (SMALL, MIDDLE)]
    if SMALL in scenario.chain.levels and setting.small_follows == MIDDLE not in scenario.chain.levels:
        said.append(_agrees(MIDDLE, setting))
    return "; ".join(
        (
            str(scenario),
            *said,
            f"text {prompt} of synthetic models of seed {setting.seed}, whose target looks back on "
            f"{counted(setting.order, 'token')}; texts of at most {counted(setting.output_tokens, 'token')}, "
            f"blocks of at most {setting.block_length}",
        )
    )


def _agrees(model: str, setting: Setting) -> str:
    rate = setting.middle_rate if model == MIDDLE else setting.small_rate
    other = TARGET if model == MIDDLE else setting.small_follows
    often = {0.0: "never says", 1.0: "always says"}.get(rate, f"in {rate:.0%} of all places says")
    return f"{model} {often} what {other} says"


def counted(count: int, what: str) -> str:
    """A number of things, as in ``1 token`` and ``3 tokens``."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def priced(scenario: Scenario) -> str:
    """What forwards cost, in words."""
    prices = scenario.prices
    if prices is None:
        return "forwards take what a latency table of random numbers says"
    told = [f"a forward of {TARGET} takes {prices.base} s"]
    for each, what in ((prices.token, "token read"), (prices.context, "token before them")):
        told += [f"{each} s for each {what}"] if each else []
    shares = {LOOKUP: prices.lookup, SMALL: prices.small, MIDDLE: prices.middle}
    others = [
        f"one of {m} {shares[m]} of what {TARGET}'s would" for m in scenario.chain.levels if m in shares
    ]
    fixed = [f"every cycle {prices.overhead} s more"] if prices.overhead else []
    return "; ".join([" and ".join(told), *others, *fixed])


def steps_of(runs: Trajectories, request: int, *columns: str) -> list[tuple[int, ...]]:
    """These counts of each cycle of a request."""
    on = runs.active[request]
    return list(zip(*(getattr(runs, name)[request][on].tolist() for name in columns), strict=True))
