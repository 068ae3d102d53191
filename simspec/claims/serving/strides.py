"""Several steps at once make no difference (M5c)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, ClassVar

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Rule, Statement, against
from simspec.claims.serving.laws import first_difference
from simspec.serving.policies import Policy, View
from simspec.strategies.serving import SURE, long_answers, scenarios
from simspec.strategies.small_engines import Drafting, PriceList, Scenario, Setup, serve

# The engine needs pyarrow, which whoever only lists claims need not wait for.
if TYPE_CHECKING:
    from simspec.serving.config import Serving


@dataclass(frozen=True)
class ByContext:
    """Drafts once the rows' texts are so long together, and says that only the number of rows matters."""

    draft_tokens: int
    from_tokens: int
    rows_only: ClassVar[bool] = True

    @property
    def longest(self) -> int:
        return self.draft_tokens

    def begin(self) -> int:
        return 0

    def length(self, view: View, state: int) -> tuple[int, int]:
        return (self.draft_tokens if view.context_tokens >= self.from_tokens else 0), state


def _same_tables(policy: Policy | None = None) -> Rule:
    """Several steps at once leave the tables and counters that step by step does."""

    def rule(scenario: Scenario) -> Outcome:
        serving = scenario.serving
        if policy is not None:
            serving = _drafting_by(scenario, policy)
        at_once = serve(scenario, serving=replace(serving, stride=True))
        stepwise = serve(scenario, serving=replace(serving, stride=False))
        for name in ("steps", "requests"):
            found, right = getattr(at_once, name), getattr(stepwise, name)
            if not found.equals(right):
                return against(
                    str(scenario), f"{name}, at once and step by step", first_difference(found, right)
                )
        counted = [(r.request_ns, r.ended_at, r.arrived, r.outcomes) for r in (at_once, stepwise)]
        return (
            None
            if counted[0] == counted[1]
            else against(str(scenario), f"counted {counted[0]}, {counted[1]}")
        )

    return rule


def _drafting_by(scenario: Scenario, policy: Policy) -> Serving:
    return replace(scenario.setup, drafting=Drafting(policy, SURE)).serving()


def _long(level: int) -> Iterator[Scenario]:
    """One and two long answers, the second from the beginning on and at every instant of the first."""
    outputs, instants = (12, 20)[: 1 + level], range(0, (40, 120, 140)[level], (7, 3, 1)[level])
    kinds: tuple[PriceList, ...] = ("ticks", "padded")
    for prices, slots, output in product(kinds, (1, 2), outputs):
        engine = Setup(slots, prices=prices)
        yield Scenario(engine, 0, ((1, output),), (0,))
        for at in instants:
            yield Scenario(engine, 0, ((1, output), (2, output - 3)), (0, at))


M5C_STATEMENT = Statement(
    words=(
        "Computing several steps at once makes no difference: the tables of steps and requests, and all "
        "counters, are those of the engine that goes step by step"
    ),
    formula="records(stride) = records(no stride)",
    rule=_same_tables(),
    over=(
        "one and two long answers, the second coming at every third instant of the first (every seventh and "
        "every one at the smallest and the largest budget); random long answers, and random scenarios under "
        "every option"
    ),
    domain=st.one_of(long_answers(), scenarios()),
    every=_long,
    examples=40,
)
M5C = Claim(
    id="M5c",
    source="claims ledger, M5: simspec.serving.stride",
    statement=M5C_STATEMENT,
    expected="holds",
    because=(
        "Steps are taken together only while the same rows decode one token each, nobody can be admitted, no "
        "request ends before the last of them, memory lasts and the policy's answer depends on the number of "
        "rows alone: then each differs from the one before in its context only, which grows by a token a row."
    ),
    broken=(
        M5C_STATEMENT.but(
            "The same with a policy that looks at contexts and says that it does not",
            _same_tables(ByContext(1, 12)),
        ),
    ),
)


CLAIMS = (M5C,)
