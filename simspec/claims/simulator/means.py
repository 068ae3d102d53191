"""What mean tokens per step are made of, and how they are averaged (M10, M22).

L = tokens of a text, S = its steps (forwards of the target).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise, product
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import number, shown
from simspec.claims.simulator.cases import DRAFTING, OVER, SMALL_SETTINGS, UNIT, tabulated
from simspec.strategies.scenarios import Scenario, replay, scenarios

# Replay needs pandas, which whoever only lists claims need not wait for.
if TYPE_CHECKING:
    from simspec.replay.trajectories import Trajectories


# M10, M10b


# Emitted, accepted and submitted tokens of a step.
Counted = tuple[int, int, int]


def _all_steps(runs: Trajectories) -> list[Counted]:
    on = runs.active
    return list(zip(*(c[on].tolist() for c in (runs.emitted, runs.accepted, runs.submitted)), strict=True))


def _uncut(runs: Trajectories) -> list[Counted]:
    """Those that their text's end does not cut."""
    return [step for step in _all_steps(runs) if step[0] == step[1] + 1]


def _rates_sum(of: Callable[[Trajectories], list[Counted]], among_submitted: bool = False) -> Rule:
    """Mean emitted is 1 + the sum of the rates at which place j is accepted, and these do not rise with j."""

    def rule(scenario: Scenario) -> Outcome:
        steps = of(replay(scenario))
        if not steps:
            return UNMET
        deepest = max(submitted for _, _, submitted in steps)
        rates = []
        for j in range(1, deepest + 2):
            asked = [one for one in steps if one[2] >= j or not among_submitted]
            if asked:
                rates.append(Fraction(sum(accepted >= j for _, accepted, _ in asked), len(asked)))
        mean = Fraction(sum(emitted for emitted, _, _ in steps), len(steps))
        if mean == 1 + sum(rates) and all(a >= b for a, b in pairwise(rates)):
            return None
        return against(
            str(scenario),
            f"{len(steps)} steps (emitted, accepted, submitted): {shown(tuple(steps[:12]))}",
            f"mean emitted {number(mean)}; rates by place {shown(tuple(rates))}: 1 + their sum is "
            f"{number(1 + sum(rates, Fraction(0)))}",
        )

    return rule


M10_STATEMENT = Statement(
    words=(
        "Mean emitted tokens per target step = 1 + the sum over places of the share of steps in which that "
        "place was accepted, over steps that no text's end cuts; and these shares never rise from place to "
        "place"
    ),
    formula="mean emitted = 1 + sum_j r_j,  r_j = (steps with accepted >= j) / steps;  r_1 >= r_2 >= ...",
    rule=_rates_sum(_uncut),
    over=OVER + "; every length rule",
    domain=scenarios(settings=SMALL_SETTINGS, chains=DRAFTING, prices=st.just(UNIT), batch=1),
    every=tabulated(DRAFTING),
    examples=18,
)
M10 = Claim(
    id="M10",
    source="claims ledger, M10; vLLM's per-position acceptance rates",
    statement=M10_STATEMENT,
    expected="holds",
    because=(
        "A count is the sum of its tails: accepted = sum_j [accepted >= j], and an uncut step emits one "
        "more. Place j + 1 is accepted only where place j is."
    ),
    broken=(
        M10_STATEMENT.but(
            "The same over all steps, those that an end of text cuts included", _rates_sum(_all_steps)
        ),
        M10_STATEMENT.but(
            "The same with each place's rate taken among the steps that submitted that many",
            _rates_sum(_uncut, among_submitted=True),
        ),
    ),
)


# M22


def _means(alike: bool) -> Rule:
    def rule(case: tuple[tuple[int, int], ...]) -> Outcome:
        if alike and len({tokens for tokens, _ in case}) > 1:
            return UNMET
        own = [Fraction(tokens, steps) for tokens, steps in case]
        mean, pooled = sum(own) / len(own), Fraction(sum(t for t, _ in case), sum(s for _, s in case))
        if mean >= pooled:
            return None
        return against(
            f"(tokens, steps) of each request: {shown(case)}; tokens per step {shown(tuple(own))}",
            f"their mean is {number(mean)}; pooled over all steps it is {number(pooled)}",
        )

    return rule


def _request_counts(level: int) -> Iterator[tuple[tuple[int, int], ...]]:
    one = [(tokens, steps) for tokens in range(1, 6 + level) for steps in range(1, tokens + 1)]
    for size in range(1, 3 + (level > 1)):
        yield from product(one, repeat=size)


M22_STATEMENT = Statement(
    words="The mean of the requests' tokens per step is never below the figure pooled over all steps",
    formula="(1/R) sum_r L_r / S_r >= sum_r L_r / sum_r S_r",
    rule=_means(alike=False),
    over="all requests of 1 to 5 tokens, one and two of them; random ones of up to 6 requests of 60 tokens",
    domain=st.lists(
        st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))), min_size=1, max_size=6
    ).map(tuple),
    every=_request_counts,
)
M22 = Claim(
    id="M22",
    source="acceptance lengths in benchmarks: 6.36 as a mean of requests, 6.11 pooled (dflash issue 119)",
    statement=M22_STATEMENT,
    expected="refuted",
    because=(
        "The pooled figure weighs requests by their steps. Where long texts are drafted better than short "
        "ones the mean of requests lies below it, where they are drafted worse above. Time per token at a "
        "constant step follows the pooled one."
    ),
    pinned=((1, 1), (3, 2)),
    repaired=M22_STATEMENT.but(
        "It is never below it where all texts are equally long",
        _means(alike=True),
        domain=st.tuples(st.integers(1, 60), st.lists(st.integers(1, 60), min_size=1, max_size=6)).map(
            lambda told: tuple((told[0], min(steps, told[0])) for steps in told[1])
        ),
    ),
)

CLAIMS = (M10, M22)
