"""Scenarios: a synthetic trace with everything that it takes to replay it.

A scenario is data alone and can be printed; :func:`replay` and :func:`price` do what it says, and
:func:`simspec.strategies.token_by_token.decode` does it without a trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st

from simspec.speculation.chains import Chain, all_chains
from simspec.speculation.lengths import G4, ExactMarginal, LengthRule, LibraSpec, Static
from simspec.strategies.made_up_models import (
    LOOKUP,
    MIDDLE,
    MODELS,
    SMALL,
    TARGET,
    Setting,
    Tabulated,
    settings_of,
)
from simspec.strategies.traces import Synthetic
from simspec.streams import stream

# Replay and cost models need pandas: loaded where a scenario is replayed.
if TYPE_CHECKING:
    from simspec.cost.models import CostModel
    from simspec.replay.lockstep import BatchTimes
    from simspec.replay.trajectories import Trajectories
    from simspec.traces.index import Ints, Trace

# Every chain of the made-up models that replay can decide: plain decoding, pairs, triples under both
# semantics, and one of four levels.
CHAINS: tuple[Chain, ...] = (
    *all_chains(list(MODELS), TARGET, {LOOKUP}),
    Chain((LOOKUP, SMALL, MIDDLE, TARGET)),
)

RULES: tuple[LengthRule, ...] = (
    Static(0),
    Static(1),
    Static(2),
    Static(5),
    Static(40),
    G4(first=2, longest=6),
    LibraSpec(alpha=2.2, block=2, longest=6),
    LibraSpec(alpha=1.8, block=16, longest=24),
    ExactMarginal(longest=6),
)


@dataclass(frozen=True)
class Prices:
    """An affine cost in whole seconds and binary fractions of them, which floats add up exactly.

    A forward of the target takes ``base + token * tokens + context * cached tokens`` seconds; one of another
    model takes ``lookup``, ``small`` or ``middle`` of that. ``overhead`` is the time of each cycle beside
    its forwards.
    """

    base: int
    token: int = 0
    context: int = 0
    overhead: int = 0
    lookup: Fraction = Fraction(0)
    small: Fraction = Fraction(1, 8)
    middle: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        for share in (self.lookup, self.small, self.middle):
            if share.denominator & (share.denominator - 1):
                raise ValueError(f"{share} of a forward is not exact in floats: use 1/2, 1/4, 1/8, ...")

    def model(self) -> CostModel:
        """As a cost model that replay takes."""
        from simspec.cost.models import AffineCost

        return AffineCost(
            name="made-up",
            label="made up, in whole seconds",
            target=TARGET,
            base_seconds=self.base,
            token_seconds=self.token,
            context_token_seconds=self.context,
            step_overhead_seconds=self.overhead,
            ratios={LOOKUP: float(self.lookup), SMALL: float(self.small), MIDDLE: float(self.middle)},
        )


@dataclass(frozen=True)
class Scenario:
    """What is replayed, how, and at what price.

    Attributes:
        rule: how long drafts are; None for plain decoding alone.
        prices: None for the trace's own latency table, which is noise.
        batch: requests that run in lock-step.
    """

    setting: Setting | Tabulated
    chain: Chain
    rule: LengthRule | None = None
    prices: Prices | None = None
    batch: int = 1

    def __post_init__(self) -> None:
        if (self.chain.drafter is None) != (self.rule is None):
            raise ValueError(f"{self.chain} with the length rule {self.rule}: a chain that drafts needs one")
        if self.batch < 1:
            raise ValueError(f"batch must be at least 1, not {self.batch}")

    def __str__(self) -> str:
        how = "plainly" if self.rule is None else f"with {self.rule}"
        if isinstance(self.rule, Static):
            how = f"with draft length {self.rule.length}"
        semantics = f" ({self.chain.semantics})" if self.chain.intermediates else ""
        return f"{self.chain}{semantics} {how}"

    @property
    def plain(self) -> Scenario:
        """The same requests decoded plainly."""
        return Scenario(self.setting, Chain((TARGET,)), None, self.prices, self.batch)


@lru_cache(maxsize=512)
def made(setting: Setting | Tabulated) -> Synthetic:
    """The models of a setting; kept, so do not change what it returns."""
    return Synthetic(setting)


@lru_cache(maxsize=512)
def recorded(setting: Setting | Tabulated) -> Trace:
    """Their trace, indexed; kept, so do not change what it returns."""
    return made(setting).trace()


def cost_of(scenario: Scenario) -> CostModel:
    """What its forwards cost."""
    from simspec.cost.models import MeasuredCost

    if scenario.prices is not None:
        return scenario.prices.model()
    return MeasuredCost(recorded(scenario.setting).latency, "float32", "noise", "synthetic")


def replay(scenario: Scenario, requests: Ints | None = None, trace: Trace | None = None) -> Trajectories:
    """Its cycles.

    Args:
        requests: which prompts, in which order; all of them once if None.
        trace: another record than the setting's own.
    """
    from simspec.replay.pricing import two_level_seconds
    from simspec.replay.trajectories import run

    trace = recorded(scenario.setting) if trace is None else trace
    start = trace.offsets[:-1] if requests is None else trace.offsets[requests]
    seconds = None
    if scenario.rule is not None and len(scenario.chain.levels) == 2:
        seconds = two_level_seconds(trace, scenario.chain, cost_of(scenario), scenario.batch)
    return run(trace, scenario.chain, scenario.rule, start, seconds)


def in_batches(requests: int, batch: int) -> Ints:
    """Requests 0, 1, 2, ... in batches of ``batch``, the last filled up from the first on: (G, batch)."""
    groups = -(-requests // batch)
    found: Ints = (np.arange(groups * batch) % requests).reshape(groups, batch)
    return found


def price(scenario: Scenario, runs: Trajectories, batches: Ints) -> BatchTimes:
    """What batches of these runs take, in lock-step."""
    from simspec.replay import lockstep

    cost = cost_of(scenario)
    return lockstep.price(runs, batches, [cost], lookup=scenario.chain.drafter == LOOKUP)[0]


def prices_of(*, context: bool = True) -> st.SearchStrategy[Prices]:
    """Flat, steep, with and without overhead; drafters from free to as dear as the target."""
    shares = st.sampled_from([Fraction(0), Fraction(1, 8), Fraction(1, 2), Fraction(1)])
    return st.builds(
        Prices,
        base=st.integers(1, 40),
        token=st.integers(0, 6),
        context=st.integers(0, 1 if context else 0),
        overhead=st.integers(0, 5),
        lookup=st.sampled_from([Fraction(0), Fraction(1, 8)]),
        small=shares,
        middle=shares,
    )


def scenarios(
    *,
    settings: st.SearchStrategy[Setting] | None = None,
    chains: Iterable[Chain] = CHAINS,
    rules: Iterable[LengthRule] = RULES,
    prices: st.SearchStrategy[Prices | None] | None = None,
    batch: int = 4,
) -> st.SearchStrategy[Scenario]:
    """Scenarios of the given parts; by default any of this module's, priced exactly or by noise."""
    chosen, some = tuple(chains), st.sampled_from(tuple(rules))
    return st.builds(
        _scenario,
        settings_of(output_tokens=(1, 16), block_length=(1, 6)) if settings is None else settings,
        st.sampled_from(chosen),
        some,
        st.one_of(prices_of(), st.none()) if prices is None else prices,
        st.integers(1, batch),
    )


def all_scenarios(
    settings: Iterable[Setting | Tabulated],
    chains: Iterable[Chain] = CHAINS,
    rules: Iterable[LengthRule] = RULES,
    prices: Iterable[Prices | None] = (Prices(4, 1),),
    batches: Iterable[int] = (1,),
) -> Iterator[Scenario]:
    """Every combination, settings outermost; plain decoding comes once, whatever the rules."""
    chains, rules, prices, batches = tuple(chains), tuple(rules), tuple(prices), tuple(batches)
    for setting, chain in product(settings, chains):
        for rule in rules if chain.drafter is not None else rules[:1]:
            for priced, batch in product(prices, batches):
                yield _scenario(setting, chain, rule, priced, batch)


def _scenario(
    setting: Setting | Tabulated, chain: Chain, rule: LengthRule, prices: Prices | None, batch: int
) -> Scenario:
    return Scenario(setting, chain, None if chain.drafter is None else rule, prices, batch)


def with_other_future(trace: Trace, drafter: str, at: int, drafted: int, luck: int) -> Trace:
    """Another record with the same past, for tests of what a rule looks at.

    From flat position ``at`` on all verdicts are redrawn, and all drafts of ``drafter`` but the first
    ``drafted`` at ``at`` itself. Only what replay looks at is changed, so the result is no trace that models
    could have left.

    Args:
        luck: seed of what is drawn.
    """
    generator = stream(luck, "unseen")
    index = trace.drafters[drafter]
    depth, later = index.confidence.shape[1], np.arange(len(trace.tokens)) >= at
    length = np.where(later, generator.integers(0, depth + 1, len(later)), index.length)
    # Where the block ends is seen by whoever drafts all of it, and by nobody else.
    whole = index.length[at] <= drafted
    length[at] = index.length[at] if whole else generator.integers(drafted, depth + 1)
    confidence = index.confidence.copy()
    confidence[later] = generator.random((int(later.sum()), depth))
    confidence[at, :drafted] = index.confidence[at, :drafted]
    confidence[np.arange(depth)[None] >= length[:, None]] = 0.0

    def verdicts(known: Ints) -> Ints:
        return np.where(later, generator.integers(0, length + 1), known)

    other = replace(
        index,
        length=length,
        confidence=confidence,
        matched=verdicts(index.matched),
        agreed={model: verdicts(known) for model, known in index.agreed.items()},
    )
    owns = {m: np.where(later, generator.random(len(later)) < 0.5, own) for m, own in trace.owns.items()}
    return replace(trace, drafters={**trace.drafters, drafter: other}, owns=owns)
