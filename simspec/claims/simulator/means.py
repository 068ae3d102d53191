"""What mean tokens per step are made of, and how they are averaged (M10, M22).

L = tokens of a text, S = its steps (forwards of the target).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise, product
from operator import ge, gt, le
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import number, shown
from simspec.claims.simulator.cases import DRAFTING, OVER, PAIR, SMALL_SETTINGS, UNIT, counted, tabulated
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


# Whether a step accepted its place j; None where it does not count.
Place = Callable[[Counted, int], bool | None]


def _place(step: Counted, j: int) -> bool:
    return step[1] >= j


def _place_if_submitted(step: Counted, j: int) -> bool | None:
    return step[1] >= j if step[2] >= j else None


def _place_from_end(step: Counted, j: int) -> bool:
    """Places counted from the block's last."""
    return step[1] > step[2] - j >= 0


def _rates_sum(of: Callable[[Trajectories], list[Counted]], place: Place = _place) -> Rule:
    """Mean emitted is 1 + the sum of the rates at which place j is accepted, and these do not rise with j."""

    def rule(scenario: Scenario) -> Outcome:
        steps = of(replay(scenario))
        if not steps:
            return UNMET
        deepest = max(submitted for _, _, submitted in steps)
        rates = []
        for j in range(1, deepest + 2):
            told = [yes for step in steps if (yes := place(step, j)) is not None]
            if told:
                rates.append(Fraction(sum(told), len(told)))
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
            _rates_sum(_uncut, _place_if_submitted),
        ),
        M10_STATEMENT.but(
            "The same of a pair with places counted from a block's end",
            _rates_sum(_uncut, _place_from_end),
            domain=None,
            every=tabulated((PAIR,)),
        ),
    ),
)


# M22


# (tokens, steps) of each request.
Requests = tuple[tuple[int, int], ...]


def _means(apart: int | None = None, agrees: Callable[[Fraction, Fraction], bool] = ge) -> Rule:
    """The mean of requests against the pooled mean, where texts differ by ``apart`` tokens at most."""

    def rule(case: Requests) -> Outcome:
        lengths = [tokens for tokens, _ in case]
        if apart is not None and max(lengths) - min(lengths) > apart:
            return UNMET
        own = [Fraction(tokens, steps) for tokens, steps in case]
        mean, pooled = (
            sum(own, Fraction(0)) / len(own),
            Fraction(sum(lengths), sum(steps for _, steps in case)),
        )
        if agrees(mean, pooled):
            return None
        return against(
            *(
                f"request {i}: {counted(tokens, 'token')} in {counted(steps, 'step')}"
                for i, (tokens, steps) in enumerate(case, 1)
            ),
            f"the mean of requests is ({' + '.join(map(str, own))}) / {len(own)} = {number(mean)}",
            f"over all steps it is ({' + '.join(map(str, lengths))}) / "
            f"({' + '.join(str(steps) for _, steps in case)}) = {number(pooled)}",
        )

    return rule


def _near(apart: int) -> st.SearchStrategy[Requests]:
    """Up to 6 requests whose texts differ by at most ``apart`` tokens, of at most 60."""
    one = st.tuples(st.integers(0, apart), st.integers(1, 60))
    return st.builds(
        lambda least, drawn: tuple((least + more, min(steps, least + more)) for more, steps in drawn),
        st.integers(1, 60 - apart),
        st.lists(one, min_size=1, max_size=6),
    )


def _request_counts(level: int) -> Iterator[Requests]:
    one = [(tokens, steps) for tokens in range(1, 6 + level) for steps in range(1, tokens + 1)]
    for size in range(1, 3 + (level > 1)):
        yield from product(one, repeat=size)


M22_STATEMENT = Statement(
    words="The mean of the requests' tokens per step is never below the figure pooled over all steps",
    formula="(1/R) sum_r L_r / S_r >= sum_r L_r / sum_r S_r",
    rule=_means(),
    over=(
        "all requests of up to 6 tokens (5 at the smallest budget, 7 and three of them at the largest), one "
        "and two of them; random ones of up to 6 requests of up to 60 tokens"
    ),
    domain=st.lists(
        st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))), min_size=1, max_size=6
    ).map(tuple),
    every=_request_counts,
)
M22_REPAIRED = M22_STATEMENT.but(
    "The mean of the requests' tokens per step is never below the figure pooled over all steps where no two "
    "texts differ by more than 1 token",
    _means(apart=1),
    formula="|L_r - L_s| <= 1 for all r, s  =>  (1/R) sum_r L_r / S_r >= sum_r L_r / sum_r S_r",
    over=M22_STATEMENT.over + "; those whose texts differ by at most 1 token",
    domain=_near(1),
)
M22 = Claim(
    id="M22",
    source="acceptance lengths in benchmarks: 6.36 as a mean of requests, 6.11 pooled (dflash issue 119)",
    statement=M22_STATEMENT,
    expected="refuted",
    because=(
        "The pooled figure weighs requests by their steps. Where long texts are drafted better than short "
        "ones the mean of requests lies below it, where they are drafted worse above. Time per token at a "
        "constant step follows the pooled one. Repaired: with m_r = L_r / S_r the mean less the pooled "
        "figure is the sum over pairs i < j of (S_i - S_j)(m_j - m_i), divided by R times all steps. Where "
        "texts differ by a token at most, more steps never mean more tokens per step: S_i >= S_j + 1 and m_i "
        "> m_j would give L_i S_j >= L_j S_i + 1 >= L_j S_j + L_j + 1, but L_i S_j <= L_j S_j + S_j and S_j "
        "<= L_j. So no pair counts against it."
    ),
    pinned=((1, 1), (3, 2)),
    repaired=M22_REPAIRED,
    broken=(
        M22_REPAIRED.but("The same where they differ by at most 2 tokens", _means(apart=2), domain=_near(2)),
        M22_REPAIRED.but("Where they differ by at most 1 token, it is never above it", _means(1, le)),
        M22_REPAIRED.but("Where they differ by at most 1 token, it is above it", _means(1, gt)),
    ),
)

CLAIMS = (M10, M22)
