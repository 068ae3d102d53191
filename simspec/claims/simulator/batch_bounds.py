"""Mean tokens per step as a bound on the speedup of a lock-step batch (M21).

L = tokens of a text, S = its steps (forwards of the target).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import number
from simspec.claims.simulator.cases import DRAFTING, PAIR, SMALL_SETTINGS, counted, described, few, priced
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Static
from simspec.strategies.made_up_models import MIDDLE, TARGET, Setting
from simspec.strategies.scenarios import (
    Prices,
    Scenario,
    all_scenarios,
    in_batches,
    price,
    prices_of,
    replay,
    scenarios,
)

# Replay needs pandas, which whoever only lists claims need not wait for.
if TYPE_CHECKING:
    from simspec.replay.trajectories import Trajectories
    from simspec.traces.index import Ints


def column(runs: Trajectories, c: int) -> Trajectories:
    """The requests' cycle ``c`` alone."""
    names = ("flat", "context", "drafted", "lag", "submitted", "width", "accepted", "emitted")
    columns = {name: getattr(runs, name)[:, c : c + 1] for name in names}
    return replace(runs, middle=tuple(m[:, c : c + 1] for m in runs.middle), **columns)


def target_seconds(prices: Prices, runs: Trajectories, batch: Ints, c: int) -> int:
    """What the target's forward in cycle ``c`` of these requests takes."""
    read, before = runs.width[batch, c], runs.context[batch, c]
    return prices.base + prices.token * int(read.sum()) + prices.context * int(before.sum())


# Of (tokens, steps) of each request.
Bound = Callable[[list[tuple[int, int]]], Fraction]


def _pooled(counts: list[tuple[int, int]]) -> Fraction:
    return Fraction(sum(tokens for tokens, _ in counts), sum(steps for _, steps in counts))


def _greatest(counts: list[tuple[int, int]]) -> Fraction:
    return max(Fraction(tokens, steps) for tokens, steps in counts)


def _averaged(counts: list[tuple[int, int]]) -> Fraction:
    return sum((Fraction(tokens, steps) for tokens, steps in counts), Fraction(0)) / len(counts)


def _least(counts: list[tuple[int, int]]) -> Fraction:
    return min(Fraction(tokens, steps) for tokens, steps in counts)


def _batch_bound(bound: Bound, name: str) -> Rule:
    """A lock-step batch's speedup is at most ``bound``."""

    def rule(scenario: Scenario) -> Outcome:
        runs, bare = replay(scenario), replay(scenario.plain)
        batches = in_batches(scenario.setting.prompts, scenario.batch)
        fast, slow = price(scenario, runs, batches), price(scenario.plain, bare, batches)
        steps, tokens = runs.active.sum(axis=1), runs.emitted.sum(axis=1)
        for g, batch in enumerate(batches):
            speedup = Fraction(slow.seconds[g]) / Fraction(fast.seconds[g])
            counts = [(int(tokens[q]), int(steps[q])) for q in batch]
            if speedup > bound(counts):
                return against(
                    described(scenario, int(batch[0])),
                    priced(scenario),
                    *(
                        f"text {q} has {counted(length, 'token')} and takes {counted(cycles, 'step')}: "
                        f"{number(Fraction(length, cycles))} a step"
                        for q, (length, cycles) in zip(batch.tolist(), counts, strict=True)
                    ),
                    f"in lock-step they take plainly {_told(scenario.plain, bare, batch)}",
                    f"with drafts {_told(scenario, runs, batch)}",
                    f"speedup {_short(speedup)}; {name} is {number(bound(counts))}",
                )
        return None

    return rule


def _told(scenario: Scenario, runs: Trajectories, batch: Ints) -> str:
    """Seconds of each cycle of a batch, and of all."""
    parts, whole = [], Fraction(price(scenario, runs, batch[None]).seconds[0])
    for c in range(int(runs.active[batch].sum(axis=1).max())):
        taken = Fraction(price(scenario, column(runs, c), batch[None]).seconds[0])
        of = counted(int(runs.active[batch, c].sum()), "text")
        if scenario.prices is not None and scenario.chain.drafter is not None:
            of += f" (the target's forward {target_seconds(scenario.prices, runs, batch, c)} s)"
        parts.append(f"{_short(taken)} s for {of}")
    return f"{' + '.join(parts)}" + (f", together {_short(whole)} s" if len(parts) > 1 else "")


def _short(seconds: Fraction) -> str:
    """A fraction of few digits as such; one that a float stood for as a decimal."""
    return str(seconds) if seconds.denominator < 1000 else f"{float(seconds):.5g}"


EIGHTH = Fraction(1, 8)
FLAT = st.builds(Prices, st.integers(1, 9), st.integers(0, 3), small=st.just(EIGHTH), middle=st.just(EIGHTH))


def _two_texts(level: int) -> Iterator[Scenario]:
    """Two texts in lock-step, short ones first; a perfect drafter and one that is right at times."""
    sizes, seeds = (1, 2, 4), range(4 + 8 * level)
    return all_scenarios(
        (Setting(seed, 2, size, 2, 1, 1.0, 0.6, TARGET) for size in sizes for seed in seeds),
        (PAIR, Chain((MIDDLE, TARGET))),
        (Static(1), Static(2)),
        (Prices(1, small=EIGHTH, middle=EIGHTH),),
        (2,),
    )


M21_REPAIRED = Statement(
    words=(
        "The speedup of a lock-step batch is at most the greatest of its requests' own mean tokens per step, "
        "where a cycle takes at least a plain step of as many requests, and such a step takes no less for "
        "more requests"
    ),
    formula="T(batch, plain) / T(batch) <= max_r L_r / S_r",
    rule=_batch_bound(_greatest, "the greatest of these"),
    over=(
        "random synthetic scenarios of 1 to 4 requests in lock-step; affine costs without context, which are "
        "such"
    ),
    domain=scenarios(settings=SMALL_SETTINGS, chains=DRAFTING, prices=prices_of(context=False)),
    examples=20,
)
M21 = Claim(
    id="M21",
    source="M10 read for a lock-step batch",
    statement=Statement(
        words=(
            "In a lock-step batch, too, the speedup is at most the mean tokens per target step, pooled over "
            "the batch's requests"
        ),
        formula="T(batch, plain) / T(batch) <= sum_r L_r / sum_r S_r",
        rule=_batch_bound(_pooled, "pooled over all steps it"),
        over=(
            "two texts of at most 1, 2 and 4 tokens in lock-step, each of several seeds, a drafter that "
            "costs an eighth of the target; random synthetic scenarios of 1 to 4 requests with such drafters"
        ),
        domain=scenarios(settings=SMALL_SETTINGS, chains=DRAFTING, prices=FLAT),
        every=_two_texts,
        examples=60,
    ),
    expected="refuted",
    because=(
        "A lock-step batch lasts as long as its longest request. Where that one is drafted well and a short "
        "one badly, the batch gains what the long one gains, and the short one pulls the pooled mean down. "
        "Repaired: let m be the greatest L_r / S_r, a(c) the number of requests with more than c steps, and "
        "g(c) what a plain step of a(c) requests takes, which does not rise with c. A request that is not "
        "finished after t plain steps has t + 1 <= L_r <= m S_r, hence more than c(t) = ceil((t + 1) / m) - "
        "1 steps: the plain step after t takes at most g(c(t)). Of the t there are floor(C m) <= C m with "
        "c(t) < C. Abel summation: sum_t g(c(t)) = sum_(C >= 1) floor(C m) (g(C - 1) - g(C)) <= m sum_(C >= "
        "1) C (g(C - 1) - g(C)) = m sum_c g(c), and cycle c takes at least g(c)."
    ),
    pinned=Scenario(
        Setting(1, 2, 2, 2, 1, 1.0, 0.6, TARGET),
        Chain((MIDDLE, TARGET)),
        Static(1),
        Prices(1, small=EIGHTH, middle=EIGHTH),
        2,
    ),
    repaired=M21_REPAIRED,
    broken=(
        M21_REPAIRED.but(
            "It is at most the mean of the requests' own",
            _batch_bound(_averaged, "the mean of these"),
            every=_two_texts,
        ),
        M21_REPAIRED.but(
            "It is at most the least of the requests' own",
            _batch_bound(_least, "the least of these"),
            every=_two_texts,
        ),
        M21_REPAIRED.but(
            "The same of costs drawn at random, under which a wider or larger forward may take less",
            _batch_bound(_greatest, "the greatest of these"),
            domain=scenarios(settings=SMALL_SETTINGS, chains=DRAFTING, prices=st.none()),
            every=few(prices=None, batches=(2,)),
        ),
    ),
)

CLAIMS = (M21,)
