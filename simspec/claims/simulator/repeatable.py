"""Replay gives the same again, in any order and company (M5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import shown
from simspec.claims.simulator.cases import PAIR, SMALL_SETTINGS, described, few, steps_of
from simspec.speculation.lengths import Decision, Floats, LengthRule, Static, View
from simspec.strategies.made_up_models import TARGET, Setting, Tabulated
from simspec.strategies.scenarios import Prices, Scenario, price, prices_of, replay, scenarios
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

    def __init__(self, seed: int) -> None:
        self.generator = stream(seed, "lengths")

    def begin(self, requests: int) -> Floats:
        return np.zeros(requests)

    def decide(self, view: View, state: Floats) -> Decision:
        lengths = self.generator.integers(0, 4, len(view.limit))
        return Decision(lengths, lengths)

    def observe(self, state: Floats, decision: Decision, accepted: Ints) -> Floats:
        return state


class _OtherNoise(Synthetic):
    """Latencies from another seed each time a trace is made."""

    def _latency(self) -> list[dict[str, Any]]:
        return Synthetic(replace(self.setting, seed=self.setting.seed + 1))._latency()


COUNTS = ("flat", "context", "drafted", "lag", "submitted", "width", "accepted", "emitted")


Priced = Callable[[Scenario, "Trajectories", "Ints"], Any]


def _seconds(scenario: Scenario, runs: Trajectories, batches: Ints) -> Any:
    return price(scenario, runs, batches).seconds


def _padded_seconds(scenario: Scenario, runs: Trajectories, batches: Ints) -> Any:
    """Charges every batch for each column of the arrays that it lies in."""
    return price(scenario, runs, batches).seconds + 0.5 * runs.flat.shape[1]


def _seconds_of_first(scenario: Scenario, runs: Trajectories, batches: Ints) -> Any:
    """Takes a batch for one of its first request."""
    return price(scenario, runs, batches[:, :1]).seconds


def _same_bytes(
    again: Callable[[Setting | Tabulated], Synthetic] = Synthetic,
    rule: Callable[[int], LengthRule] | None = None,
    seconds: Priced = _seconds,
) -> Rule:
    """Everything made afresh twice is the same, and so is each request in any order and company.

    Args:
        again: makes the models the second time.
        rule: makes the length rule of each of the three replays, in place of the scenario's.
        seconds: prices batches.
    """

    def decide(case: Shuffled) -> Outcome:
        scenario, order = case.scenario, np.array(case.order)

        def ruled(time: int) -> Scenario:
            return scenario if rule is None else replace(scenario, rule=rule(time))

        first, second = Synthetic(scenario.setting), again(scenario.setting)
        tables, others = first.tables, second.tables
        differ = [name for name in tables if not tables[name].equals(others[name])]
        if differ:
            return against(described(scenario, 0), f"made twice, these tables differ: {shown(tuple(differ))}")
        trace = first.trace()
        whole, twice = replay(ruled(0), trace=trace), replay(ruled(1), trace=second.trace())
        some = replay(ruled(2), order, trace)
        for at, q in enumerate(case.order):
            runs = [steps_of(r, i, *COUNTS) for r, i in ((whole, q), (twice, q), (some, at))]
            if not runs[0] == runs[1] == runs[2]:
                return against(
                    described(scenario, q),
                    f"twice among all requests: drafts {_lengths(whole, q)} and {_lengths(twice, q)}",
                    f"among requests {shown(case.order)}: drafts {_lengths(some, at)}",
                )
        group = np.arange(len(order))[None]
        took = [
            seconds(scenario, whole, order[None]),
            seconds(scenario, twice, order[None, ::-1]),
            seconds(scenario, some, group),
        ]
        if len({s.tobytes() for s in took}) > 1:
            return against(
                described(scenario, 0),
                f"texts {shown(case.order)} in lock-step take {float(took[0][0])!r} s, in reverse order "
                f"{float(took[1][0])!r} s, and replayed without the others {float(took[2][0])!r} s",
            )
        return None

    return decide


def _lengths(runs: Trajectories, request: int) -> str:
    return shown(tuple(n for (n,) in steps_of(runs, request, "drafted")))


def _few(scenarios_of: Callable[[int], Iterator[Scenario]], *orders: tuple[int, ...]) -> Any:
    """Fixed scenarios of two requests, in these orders."""
    return lambda level: (Shuffled(one, order) for one, order in product(scenarios_of(level), orders))


# Nothing but the cycles' own counts tells how many drafts there were.
UNTOLD = few(
    rules=(Static(1),),
    prices=Prices(4, small=Fraction(0)),
    middle_rate=0.0,
    small_rate=0.0,
    small_follows=TARGET,
)
M5_STATEMENT = Statement(
    words=(
        "The same seed gives the same trace, cycles and seconds, byte for byte, as often as they are made; "
        "and a request's cycles and a batch's seconds do not depend on the order in which prompts are given, "
        "nor on which others are replayed beside them"
    ),
    formula="made(seed) = made(seed);  cycles(r) and seconds(batch) are the same for any order and company",
    rule=_same_bytes(),
    over=(
        "random synthetic scenarios with affine costs and with measured tables, their requests permuted and "
        "some left out, in one process (that ranking gives the same in one and in two is a test, "
        "tests/claims/test_workers.py)"
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
        "request; a batch is priced by sums of whole numbers and maxima over its rows, and its cycles are "
        "summed one by one."
    ),
    broken=(
        M5_STATEMENT.but(
            "Another seed gives the same bytes",
            _same_bytes(lambda setting: Synthetic(replace(setting, seed=setting.seed + 1))),
            every=_few(few(), (0,)),
        ),
        M5_STATEMENT.but(
            "The same where latencies are drawn afresh for each trace, which exact prices do not show",
            _same_bytes(_OtherNoise),
            domain=None,
            every=_few(few(), (0,)),
        ),
        M5_STATEMENT.but(
            "The same of a rule that draws its lengths from one generator for all requests",
            _same_bytes(rule=lambda time: _SharedLuck(0)),
            every=_few(few(rules=(Static(1),)), (1,)),
            domain=shuffled(scenarios(settings=SMALL_SETTINGS, chains=(PAIR,), prices=prices_of())),
        ),
        M5_STATEMENT.but(
            "The same of it where no draft is ever right and drafts cost nothing",
            _same_bytes(rule=lambda time: _SharedLuck(0)),
            domain=None,
            every=_few(UNTOLD, (1,)),
        ),
        M5_STATEMENT.but(
            "The same of a rule that draws other lengths the second time, where nothing is right or costs",
            _same_bytes(rule=lambda time: _SharedLuck(time % 2)),
            domain=None,
            every=_few(UNTOLD, (0, 1)),
        ),
        M5_STATEMENT.but(
            "The same where a batch is charged for the cycles of the longest text replayed beside it",
            _same_bytes(seconds=_padded_seconds),
            domain=None,
            every=_few(few(rules=(Static(2),)), (0,), (1,)),
        ),
        M5_STATEMENT.but(
            "The same where a batch takes what its first request takes",
            _same_bytes(seconds=_seconds_of_first),
            domain=None,
            every=_few(few(rules=(Static(1),)), (0, 1)),
        ),
    ),
    first_look=(
        "It did not hold when first tried: with a measured table a batch's seconds differed in the last bit "
        "by which other requests were replayed beside it, since a longer one among them changed the order "
        "of summation. Cycles are now summed one by one."
    ),
)

CLAIMS = (M5,)
