"""Small engines with chains of up to four levels: one of them, or several to choose from.

Everything in them is made up. Built on the scenarios of :mod:`simspec.strategies.serving`.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from hypothesis import strategies as st

from simspec.cost.models import CostModel, MeasuredCost
from simspec.serving.candidates import Candidate
from simspec.serving.chain_verdicts import LevelRates, RecordedChain
from simspec.serving.choosing import Routed
from simspec.serving.config import Speculation
from simspec.serving.policies import ByRowsAndContext, Fixed, OffAbove
from simspec.serving.row_policies import ByRule
from simspec.serving.verdicts import Blocks, Rates, Recorded
from simspec.speculation.lengths import G4, Static
from simspec.strategies.choosers import DEEP, LONGEST, SWITCHING, stand_ins
from simspec.strategies.small_engines import NANO, PriceList, Scenario, affine
from tests.varied_engines import GRAPHS

RATIOS = {"small": 0.25, "ngram": 0.0, "middle": 0.5, "upper": 0.75}
# (intermediates, whether they replace) of a chain.
SHAPES = [(0, False), (1, False), (1, True), (2, False)]


@cache
def cost_of(prices: PriceList) -> CostModel:
    """As :func:`simspec.strategies.small_engines.made_up_cost`, with models for intermediates."""
    if prices != "padded":
        base = affine(4e-9, 1e-9, 0.0) if prices == "ticks" else affine(5.9e-3, 2.1e-5, 3.9e-8)
        return msgspec.structs.replace(base, ratios=RATIOS)
    names = ["model", "device", "dtype", "batch", "new_tokens", "context", "repetition", "seconds"]
    rows = [
        (model, "made-up", "float32", batch, new, context, 0, 4 * ratio * (4 + new * batch + context / 8))
        for model, ratio in {**RATIOS, "target": 1.0}.items()
        for batch in (1, 2, 4)
        for new in (1, 2, 8)
        for context in (8, 64)
    ]
    table = pd.DataFrame(rows, columns=names)
    table["seconds"] *= NANO
    return MeasuredCost(table, "float32", "made-up", "made up")


@st.composite
def recorded(draw: st.DrawFn, shapes: list[tuple[int, bool]]) -> list[Recorded | RecordedChain]:
    """Records of several chains on the same texts."""
    sizes = draw(st.lists(st.integers(1, 10), min_size=1, max_size=3))
    left = np.concatenate([np.arange(n)[::-1] for n in sizes])
    offsets, count = np.concatenate([[0], np.cumsum(sizes)]), len(left)

    def numbers(most: int, least: int = 0) -> np.ndarray:
        return np.array(draw(st.lists(st.integers(least, most), min_size=count, max_size=count)))

    found: list[Recorded | RecordedChain] = []
    for middles, replace in shapes:
        length = numbers(LONGEST)
        available = np.minimum(length, left)
        blocks = Blocks(np.zeros((count, LONGEST), np.float32), length)
        drafts = Recorded(offsets, np.minimum(numbers(LONGEST), available), available, blocks)
        agreed = tuple(np.minimum(numbers(LONGEST), length) for _ in range(middles))
        ended = np.where(numbers(3) == 0, length, -1)
        chain = RecordedChain(drafts, agreed, ended, numbers(1) > 0, replace) if middles else None
        found.append(chain or drafts)
    return found


RATE = st.sampled_from([0.0, 0.3, 0.6, 0.9, 1.0])


@st.composite
def drawn(draw: st.DrawFn, shapes: list[tuple[int, bool]]) -> list[Rates | LevelRates]:
    """Made-up rates, level by level."""
    found: list[Rates | LevelRates] = []
    for middles, replace in shapes:
        rates = draw(st.lists(RATE, min_size=middles + 1, max_size=middles + 1))
        chain = LevelRates(tuple(rates), LONGEST, replace) if middles else None
        found.append(chain or Rates.independent(rates[0], LONGEST))
    return found


STATIC = st.one_of(
    st.builds(Fixed, DEEP),
    st.builds(OffAbove, DEEP, st.just(2), st.integers(0, 2)),
    st.just(ByRowsAndContext(((1, 1, 0, 99, 4), (2, 3, 0, 12, 2), (2, 9, 13, 20, 1)))),
    st.builds(lambda n: ByRule(Static(n), n), DEEP),
    st.builds(lambda first, up: ByRule(G4(first, up, 1, LONGEST), LONGEST), DEEP, st.integers(0, 2)),
)
ROUTED = st.builds(
    Routed,
    st.lists(st.integers(0, LONGEST), min_size=1, max_size=3, unique=True).map(tuple),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.05, 0.5]),
    st.sampled_from(["reach", "reach-wide", "funnel", "exact"]),
    st.floats(0, 1),
    st.sampled_from([0.5, 5.0]),
)


@st.composite
def chained(draw: st.DrawFn) -> Scenario:
    """A chain, or several to choose from, under every option of the engine, memory of intermediates too."""
    kind = draw(st.sampled_from(["static", "static", "routed", "routed", "switching"]))
    count = 1 if kind == "static" else draw(st.integers(1 if kind == "routed" else 2, 3))
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=count, max_size=count))
    if kind == "static" and not shapes[0][0]:
        shapes = [(1, draw(st.booleans()))]
    sources: list[Any] = draw(st.one_of(recorded(shapes), drawn(shapes)))
    policy = draw({"static": STATIC, "routed": ROUTED, "switching": SWITCHING}[kind])
    scenario = draw(stand_ins(policy.longest))
    cost = cost_of(draw(st.sampled_from(["ticks", "device", "padded"])))
    costs = dataclasses.replace(
        scenario.serving.costs,
        cost=cost,
        drafter_cost=draw(st.sampled_from([None, None, cost_of("ticks")])),
        graphs=draw(st.none() | st.none() | GRAPHS),
    )

    def above(drafter: str, middles: int) -> tuple[str, ...]:
        """Models may drift from one place in one chain to another in the next."""
        names = [name for name in ("small", "middle", "upper") if name != drafter]
        return tuple(draw(st.permutations(names))[:middles])

    assert costs.drafter is not None
    first = above(costs.drafter, shapes[0][0])
    others = []
    for (middles, _), source in zip(shapes[1:], sources[1:], strict=True):
        drafter = draw(st.sampled_from(["small", "ngram"]))
        own = draw(st.sampled_from([cost, cost_of("ticks")]))
        others.append(Candidate(drafter, source, own, draw(st.booleans()), above(drafter, middles)))
    remembered = draw(st.sampled_from([0.0, 0.5, 0.95]))
    speculation = Speculation(policy, sources[0], remembered, tuple(others), first)
    memory = scenario.serving.memory
    if memory.target_blocks is not None:
        named = sorted({name for chain in (first, *(o.intermediates for o in others)) for name in chain})
        blocks = tuple((name, memory.target_blocks + draw(st.integers(-2, 2))) for name in named[:1])
        memory = dataclasses.replace(memory, middle_blocks=tuple((n, max(b, 1)) for n, b in blocks))
    serving = dataclasses.replace(scenario.serving, costs=costs, speculation=speculation, memory=memory)
    return dataclasses.replace(scenario, engine=serving)
