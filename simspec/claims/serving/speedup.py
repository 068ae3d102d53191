"""What tokens per pass bound of a speedup under load, and what they do not (M10d, M33)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, product

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import number, shown
from simspec.claims.serving.laws import Lived, Row, lived
from simspec.serving.policies import Fixed
from simspec.strategies.serving import HALF, SURE, SURVIVALS
from simspec.strategies.small_engines import Drafting, Scenario, Setup, Survival


def _time_in_system(life: Lived) -> int:
    return sum(row["ended_at_ns"] - row["arrived_at_ns"] for row in life.requests)


def _decoding_time(life: Lived) -> int:
    return sum(_step_ns(row) for row in life.steps if row["decoding_requests"] and not row["prefill_tokens"])


def _step_ns(row: Row) -> int:
    return int(row["draft_ns"] + row["verify_ns"] + row["overhead_ns"])


def _at_most_tokens_a_pass(spent: Callable[[Lived], int], less: int = 0) -> Rule:
    """Speedup of a time <= tokens per pass - ``less``, where no pass is cheaper than a plain step."""

    def rule(scenario: Scenario) -> Outcome:
        if scenario.setup.slots > 1 or scenario.setup.drafting is None:
            return UNMET
        fast, plain = lived(scenario), lived(scenario.on(replace(scenario.setup, drafting=None)))
        costs = [[_step_ns(row) for row in life.steps if row["decoding_requests"]] for life in (fast, plain)]
        if not costs[0] or min(costs[0]) < max(costs[1]):
            return UNMET
        passes = sum(row["passes"] for row in fast.requests)
        tokens = passes + sum(row["accepted_tokens"] for row in fast.requests)
        mean, speedup = Fraction(tokens, passes) - less, Fraction(spent(plain), spent(fast))
        if speedup <= mean:
            return None
        return against(
            str(scenario),
            *(
                f"{how}: steps that decode take {shown(tuple(steps[:8]))} ns, requests end at "
                f"{shown(tuple(row['ended_at_ns'] for row in life.by_number))} ns"
                for how, steps, life in zip(("with drafts", "plainly"), costs, (fast, plain), strict=True)
            ),
            f"{spent(plain)} ns against {spent(fast)} ns: speedup {number(speedup)}",
            f"{tokens} tokens in {passes} passes: {number(mean + less)} a pass",
        )

    return rule


def as_fast_as_served(level: int) -> Iterator[Scenario]:
    """1 to 4 requests (6 at level 2) that come just as fast as a drafting engine of one slot serves them."""
    for count in range(1, 7 if level == 2 else 5):
        for length, output in product((1, 2), range(2, 5)):
            engine = Setup(1, Drafting(Fixed(length), SURE), lookup=True)
            alone = lived(Scenario(engine, 0, ((1, output),), (0,))).ended_at
            yield Scenario(engine, 0, ((1, output),) * count, tuple(alone * i for i in range(count)))


@st.composite
def one_slot(draw: st.DrawFn) -> Scenario:
    """One slot, prices without context, a look-up, any load."""
    drafting = Drafting(
        Fixed(draw(st.integers(1, 5))), draw(st.one_of(SURVIVALS.map(Survival), st.just(HALF)))
    )
    sizes = draw(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 20)), min_size=1, max_size=6))
    gaps = draw(st.lists(st.integers(0, 120), min_size=len(sizes), max_size=len(sizes)))
    engine = Setup(1, drafting, lookup=True)
    return Scenario(engine, draw(st.integers(0, 99)), tuple(sizes), tuple(accumulate(gaps)))


OVER_ONE_SLOT = (
    "engines of one slot at prices without context and a drafter that costs nothing: 1 to 4 requests that "
    "come as fast as they are served with drafts (6 at the largest budget); random loads of up to 6 requests"
)
M10D_STATEMENT = Statement(
    words=(
        "With one slot, at any load, the time that the engine spends on decoding falls at most by the mean "
        "number of tokens per pass, where no pass takes less than a plain step"
    ),
    formula="T_pass >= T(1)  =>  sum T(1) / sum T_pass <= tokens / passes",
    rule=_at_most_tokens_a_pass(_decoding_time),
    over=OVER_ONE_SLOT,
    domain=one_slot(),
    every=as_fast_as_served,
    examples=60,
)
M10D = Claim(
    id="M10d",
    source="claims ledger, M10: the serving engine",
    statement=M10D_STATEMENT,
    expected="holds",
    because=(
        "Plain decoding takes T(1) for each of the tokens that passes emit, and speculation at least T(1) "
        "for each pass. With one slot a step decodes one row or reads a prompt, never both."
    ),
    broken=(
        M10D_STATEMENT.but(
            "It falls at most by the mean number of accepted drafts",
            _at_most_tokens_a_pass(_decoding_time, less=1),
        ),
    ),
)

M33 = Claim(
    id="M33",
    source="M10 read for latency under load, as benchmarks of served speedups invite",
    statement=Statement(
        words=(
            "Under load, too, requests' mean time in the system falls at most by the mean number of tokens "
            "per pass, where no pass takes less than a plain step"
        ),
        formula="T_pass >= T(1)  =>  W(plain) / W(with drafts) <= tokens / passes",
        rule=_at_most_tokens_a_pass(_time_in_system),
        over=OVER_ONE_SLOT,
        domain=one_slot(),
        every=as_fast_as_served,
        examples=60,
    ),
    expected="refuted",
    because=(
        "A request waits for those before it, and waits grow faster than services: an engine that is just "
        "fast enough with drafts lets nobody wait, and without them the queue grows by the same time with "
        "every request, so the ratio has no bound (at fixed services, n requests wait (n - 1)/2 times the "
        "difference on average). Tokens per pass bound the work, not the wait; a speedup in latency that was "
        "measured under load says as much about the load as about the drafter."
    ),
    pinned=Scenario(
        Setup(1, Drafting(Fixed(1), SURE), lookup=True), 0, ((1, 4), (1, 4), (1, 4)), (0, 19, 38)
    ),
    repaired=M10D_STATEMENT.but(
        "The time that the engine spends on decoding falls at most by it, at any load", M10D_STATEMENT.rule
    ),
)

CLAIMS = (M10D, M33)
