"""Mean tokens per step as a bound on the speedup (M10b, M20, M21).

L = tokens of a text, S = its steps (forwards of the target).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import number, shown
from simspec.claims.simulator.cases import DRAFTING, PAIR, SMALL_SETTINGS, described, few, steps_of
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


def _times(scenario: Scenario, request: int) -> tuple[list[Fraction], list[Fraction]]:
    """Seconds of each cycle of a request alone, and of each step of its plain decoding."""
    found = []
    for one in (scenario, scenario.plain):
        runs = replay(one, np.array([request]))
        cycles = [_column(runs, c) for c in range(runs.flat.shape[1])]
        found.append([Fraction(price(one, cycle, np.array([[0]])).seconds[0]) for cycle in cycles])
    return found[0], found[1]


def _column(runs: Trajectories, c: int) -> Trajectories:
    names = ("flat", "context", "drafted", "lag", "submitted", "width", "accepted", "emitted")
    columns = {name: getattr(runs, name)[:, c : c + 1] for name in names}
    return replace(runs, middle=tuple(m[:, c : c + 1] for m in runs.middle), **columns)


def _at_most_mean(met: Callable[[list[Fraction], list[Fraction], list[int]], bool], less: int = 0) -> Rule:
    """Speedup <= L / S - ``less`` where ``met`` (cycles, plain steps, places where cycles begin)."""

    def rule(scenario: Scenario) -> Outcome:
        said: Outcome = UNMET
        for q in range(scenario.setting.prompts):
            cycles, plain = _times(scenario, q)
            emitted = [n for (n,) in steps_of(replay(scenario), q, "emitted")]
            begins = [sum(emitted[:c]) for c in range(len(emitted))]
            if not met(cycles, plain, begins):
                continue
            said, speedup, mean = None, sum(plain) / sum(cycles), Fraction(len(plain), len(cycles)) - less
            if speedup > mean:
                return against(
                    described(scenario, q),
                    f"prices: {shown(scenario.prices)}",
                    f"{len(plain)} plain steps take {shown(tuple(plain))} s, together {sum(plain)}",
                    f"{len(cycles)} cycles emit {shown(tuple(emitted))} and take {shown(tuple(cycles))} s, "
                    f"together {sum(cycles)}",
                    f"speedup {number(speedup)}, mean tokens a step {number(mean + less)}",
                )
        return said

    return rule


M10B_STATEMENT = Statement(
    words=(
        "For a request alone, with a cost that does not depend on context, the speedup is at most the mean "
        "number of tokens emitted per step"
    ),
    formula="T_cycle >= T(1) for all cycles  =>  L T(1) / sum T_cycle <= L / S",
    rule=_at_most_mean(lambda cycles, plain, begins: min(cycles) >= max(plain)),
    over="random synthetic scenarios with affine costs without context, one request at a time",
    domain=scenarios(settings=SMALL_SETTINGS, chains=DRAFTING, prices=prices_of(context=False), batch=1),
    examples=18,
)
M10B = Claim(
    id="M10b",
    source="claims ledger, M10",
    statement=M10B_STATEMENT,
    expected="holds",
    because="S cycles of at least T(1) each take at least S T(1).",
    broken=(
        M10B_STATEMENT.but(
            "It is at most the mean number of accepted drafts",
            _at_most_mean(lambda cycles, plain, begins: True, less=1),
            every=few(),
        ),
    ),
)

# M20

DEARER = st.builds(Prices, st.integers(1, 9), context=st.just(1), middle_eighths=st.just(0))
M20 = Claim(
    id="M20",
    source="M10 read with a cost that grows with context, as measured tables do",
    statement=Statement(
        words=(
            "The speedup is at most the mean tokens per step wherever every cycle takes at least as long as "
            "a plain step at the place where it begins"
        ),
        formula="T_cycle(t) >= T(1, t)  =>  sum_t T(1, t) / sum T_cycle <= L / S",
        rule=_at_most_mean(
            lambda cycles, plain, begins: all(c >= plain[t] for c, t in zip(cycles, begins, strict=True))
        ),
        over="random synthetic scenarios with costs that grow with context, one request at a time",
        domain=scenarios(settings=SMALL_SETTINGS, chains=DRAFTING, prices=DEARER, batch=1),
        every=lambda level: all_scenarios(
            (Setting(seed, 1, size, 1, 1, 1.0, 1.0) for size in (1, 2, 3) for seed in range(2 + level)),
            (Chain((MIDDLE, TARGET)),),
            (Static(1),),
            (Prices(1, context=1, middle_eighths=0),),
        ),
        examples=20,
    ),
    expected="refuted",
    because=(
        "A cycle reads its context once, at its beginning, where plain decoding reads a longer one for every "
        "token: with a cost that grows with context the k tokens of a cycle cost plain decoding more than k "
        "steps at the cycle's place. The excess is a few tokens of context a cycle, so small beside a long "
        "prompt; but mean tokens per step is then no bound."
    ),
    pinned=Scenario(
        Setting(0, 1, 2, 1, 1, 1.0, 1.0),
        Chain((MIDDLE, TARGET)),
        Static(1),
        Prices(1, context=1, middle_eighths=0),
    ),
    repaired=Statement(
        words=(
            "The speedup is at most the mean tokens per step wherever every cycle takes at least as long as "
            "the mean plain step of its request"
        ),
        formula="T_cycle >= (1/L) sum_t T(1, t)  =>  sum_t T(1, t) / sum T_cycle <= L / S",
        rule=_at_most_mean(lambda cycles, plain, begins: min(cycles) * len(plain) >= sum(plain)),
        over="the same, those that meet it",
        domain=scenarios(settings=SMALL_SETTINGS, chains=DRAFTING, prices=prices_of(), batch=1),
        examples=20,
    ),
)

# M21


def _batch_bound(own: bool) -> Rule:
    """Lock-step speedup against the pooled tokens per step, or against the best request's own."""

    def rule(scenario: Scenario) -> Outcome:
        runs, bare = replay(scenario), replay(scenario.plain)
        batches = in_batches(scenario.setting.prompts, scenario.batch)
        fast, slow = price(scenario, runs, batches), price(scenario.plain, bare, batches)
        steps, tokens = runs.active.sum(axis=1), runs.emitted.sum(axis=1)
        for g, batch in enumerate(batches):
            speedup = Fraction(slow.seconds[g]) / Fraction(fast.seconds[g])
            means = [Fraction(int(tokens[q]), int(steps[q])) for q in batch]
            pooled = Fraction(int(tokens[batch].sum()), int(steps[batch].sum()))
            if speedup > (max(means) if own else pooled):
                return against(
                    described(scenario, int(batch[0])),
                    f"requests {shown(batch)}: {shown(tokens[batch])} tokens in {shown(steps[batch])} steps",
                    f"in lock-step they take {fast.seconds[g]:g} s, plainly {slow.seconds[g]:g} s",
                    f"speedup {number(speedup)}; pooled tokens per step {number(pooled)}, of each request "
                    f"{shown(tuple(means))}",
                )
        return None

    return rule


FLAT = st.builds(
    Prices, st.integers(1, 9), st.integers(0, 3), small_eighths=st.just(0), middle_eighths=st.just(0)
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
        rule=_batch_bound(own=False),
        over="random synthetic scenarios of 1 to 4 requests in lock-step; costs without context",
        domain=scenarios(settings=SMALL_SETTINGS, chains=DRAFTING, prices=FLAT),
        every=lambda level: all_scenarios(
            (
                Setting(seed, 2, size, 2, 1, 1.0, 0.6, TARGET)
                for size in (1, 2, 4)
                for seed in range(4 + 8 * level)
            ),
            (PAIR, Chain((MIDDLE, TARGET))),
            (Static(1), Static(2)),
            (Prices(1, small_eighths=0, middle_eighths=0),),
            (2,),
        ),
        examples=60,
    ),
    expected="refuted",
    because=(
        "A lock-step batch lasts as long as its longest request. Where that one is drafted well and a short "
        "one badly, the batch gains what the long one gains, and the short one pulls the pooled mean down."
    ),
    pinned=Scenario(
        Setting(1, 2, 2, 2, 1, 1.0, 0.6, TARGET),
        Chain((MIDDLE, TARGET)),
        Static(1),
        Prices(1, small_eighths=0, middle_eighths=0),
        2,
    ),
    repaired=Statement(
        words=(
            "The speedup of a lock-step batch is at most the greatest of its requests' own mean tokens per "
            "step, where a cycle takes at least a plain step of as many requests, and that does not fall "
            "with requests"
        ),
        formula="T(batch, plain) / T(batch) <= max_r L_r / S_r",
        rule=_batch_bound(own=True),
        over="random synthetic scenarios of 1 to 4 requests in lock-step; costs without context",
        domain=scenarios(settings=SMALL_SETTINGS, chains=DRAFTING, prices=prices_of(context=False)),
        examples=20,
    ),
)

CLAIMS = (M10B, M20, M21)
