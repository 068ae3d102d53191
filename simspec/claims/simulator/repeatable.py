"""Replay gives the same again, in any order and company (M5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import shown
from simspec.claims.simulator.cases import PAIR, SMALL_SETTINGS, described, few, steps_of
from simspec.speculation.lengths import Decision, Floats, LengthRule, Static, View
from simspec.strategies.made_up_models import Setting, Tabulated
from simspec.strategies.scenarios import Scenario, price, prices_of, replay, scenarios
from simspec.strategies.traces import Synthetic
from simspec.streams import stream

# Replay needs pandas, which whoever only lists claims need not wait for.
if TYPE_CHECKING:
    from simspec.replay.trajectories import Trajectories
    from simspec.traces.index import Ints


# M5


@dataclass(frozen=True)
class Shuffled:
    """A scenario, and its requests in another order and company: indices of prompts, some left out."""

    scenario: Scenario
    order: tuple[int, ...]


@st.composite
def shuffled(draw: st.DrawFn, some: st.SearchStrategy[Scenario]) -> Shuffled:
    scenario = draw(some)
    order = draw(st.permutations(range(scenario.setting.prompts)))
    return Shuffled(scenario, tuple(order[: draw(st.integers(1, len(order)))]))


class _SharedLuck:
    """Draws each length from one generator for all requests, in the order in which they come."""

    sampling_safe: ClassVar[bool] = True

    def __init__(self) -> None:
        self.generator = stream(0, "lengths")

    def begin(self, requests: int) -> Floats:
        return np.zeros(requests)

    def decide(self, view: View, state: Floats) -> Decision:
        lengths = self.generator.integers(0, 4, len(view.limit))
        return Decision(lengths, lengths)

    def observe(self, state: Floats, decision: Decision, accepted: Ints) -> Floats:
        return state


COUNTS = ("flat", "context", "drafted", "lag", "submitted", "width", "accepted", "emitted")


def _same_bytes(other_seed: int = 0, rule: Callable[[], LengthRule] | None = None) -> Rule:
    """Everything made afresh twice is the same, and so is each request in any order and company."""

    def decide(case: Shuffled) -> Outcome:
        scenario, order = case.scenario, np.array(case.order)

        def again() -> Scenario:
            return scenario if rule is None else replace(scenario, rule=rule())

        first, second = Synthetic(scenario.setting), Synthetic(_seeded(scenario.setting, other_seed))
        tables, others = first.tables, second.tables
        differ = [name for name in tables if not tables[name].equals(others[name])]
        if differ:
            return against(described(scenario, 0), f"made twice, these tables differ: {shown(tuple(differ))}")
        whole, twice = replay(again(), trace=first.trace()), replay(again(), trace=second.trace())
        some = replay(again(), order)
        for at, q in enumerate(case.order):
            runs = [steps_of(r, i, *COUNTS) for r, i in ((whole, q), (twice, q), (some, at))]
            if not runs[0] == runs[1] == runs[2]:
                return against(
                    described(scenario, q),
                    f"twice among all requests: drafts {_lengths(whole, q)} and {_lengths(twice, q)}",
                    f"among requests {shown(case.order)}: drafts {_lengths(some, at)}",
                )
        group = np.arange(len(order))[None]
        seconds = [
            price(scenario, whole, order[None]).seconds,
            price(scenario, twice, order[None, ::-1]).seconds,
            price(scenario, some, group).seconds,
        ]
        if len({s.tobytes() for s in seconds}) > 1:
            return against(
                described(scenario, 0), f"the batch {shown(case.order)} takes {shown(tuple(seconds))} s"
            )
        return None

    return decide


def _seeded(setting: Setting | Tabulated, more: int) -> Setting | Tabulated:
    return replace(setting, seed=setting.seed + more)


def _lengths(runs: Trajectories, request: int) -> str:
    return shown(tuple(n for (n,) in steps_of(runs, request, "drafted")))


M5_STATEMENT = Statement(
    words=(
        "The same seed gives the same trace, cycles and seconds, byte for byte; and a request's cycles do "
        "not depend on the order in which prompts are given, nor on which others are there"
    ),
    rule=_same_bytes(),
    over=(
        "random synthetic scenarios with affine costs and with measured tables, their requests permuted and "
        "some left out"
    ),
    domain=shuffled(scenarios(settings=SMALL_SETTINGS)),
    examples=12,
)
M5 = Claim(
    id="M5",
    source="claims ledger, M5: replay and lock-step pricing",
    statement=M5_STATEMENT,
    expected="holds",
    because=(
        "Models and prompts are functions of the seed and of their own names; rules keep one state a "
        "request; a batch is priced by sums and maxima over its rows."
    ),
    broken=(
        M5_STATEMENT.but(
            "Another seed gives the same bytes",
            _same_bytes(other_seed=1),
            every=lambda level: (Shuffled(scenario, (0,)) for scenario in few()(level)),
        ),
        M5_STATEMENT.but(
            "The same of a rule that draws its lengths from one generator for all requests",
            _same_bytes(rule=lambda: _SharedLuck()),
            every=lambda level: (Shuffled(scenario, (1,)) for scenario in few(rules=(Static(1),))(level)),
            domain=shuffled(scenarios(settings=SMALL_SETTINGS, chains=(PAIR,), prices=prices_of())),
        ),
    ),
    first_look=(
        "It did not hold when first tried: with a measured table a batch's seconds differed in the last bit "
        "by which other requests were replayed beside it, since a longer one among them changed the order "
        "of summation. Cycles are now summed one by one."
    ),
)

CLAIMS = (M5,)
