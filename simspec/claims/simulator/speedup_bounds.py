"""Mean tokens per step as a bound on a request's speedup (M10b, M20; M21 in batch_bounds).

L = tokens of a text, S = its steps (forwards of the target).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import number
from simspec.claims.simulator.batch_bounds import column, target_seconds
from simspec.claims.simulator.cases import (
    DRAFTING,
    SMALL_SETTINGS,
    counted,
    described,
    few,
    priced,
    steps_of,
)
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Static
from simspec.strategies.made_up_models import MIDDLE, TARGET, Setting
from simspec.strategies.scenarios import (
    Prices,
    Scenario,
    all_scenarios,
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
        cycles = [column(runs, c) for c in range(runs.flat.shape[1])]
        found.append([Fraction(price(one, cycle, np.array([[0]])).seconds[0]) for cycle in cycles])
    return found[0], found[1]


# Seconds of cycles and of plain steps, and the places in the text at which cycles begin.
Met = Callable[[list[Fraction], list[Fraction], list[int]], bool]
# Of a text's tokens and its steps.
Bound = Callable[[int, int], Fraction]


def _mean(tokens: int, steps: int) -> Fraction:
    return Fraction(tokens, steps)


def _at_most(bound: Bound, met: Met) -> Rule:
    """Speedup <= ``bound`` where ``met``."""

    def rule(scenario: Scenario) -> Outcome:
        said: Outcome = UNMET
        runs = replay(scenario)
        for q in range(scenario.setting.prompts):
            cycles, plain = _times(scenario, q)
            steps = steps_of(runs, q, "context", "drafted", "emitted")
            begins = [sum(emitted for *_, emitted in steps[:c]) for c in range(len(steps))]
            if not met(cycles, plain, begins):
                continue
            said, speedup, most = None, sum(plain) / sum(cycles), bound(len(plain), len(cycles))
            if speedup > most:
                return against(
                    described(scenario, q),
                    priced(scenario),
                    f"decoding {counted(len(plain), 'token')} plainly takes {_sum(plain)} s",
                    *(
                        f"cycle {c + 1}: {context} tokens before it, {drafted} drafted, {emitted} emitted; "
                        f"it takes {taken} s{_of_which(scenario, runs, q, c)}, and the plain step at its "
                        f"place {plain[begins[c]]} s"
                        for c, ((context, drafted, emitted), taken) in enumerate(
                            zip(steps, cycles, strict=True)
                        )
                    ),
                    f"all cycles take {_sum(cycles)} s",
                    f"speedup {sum(plain)} / ({sum(cycles)}) = {number(speedup)}; tokens per step "
                    f"{len(plain)} / {len(cycles)} = {number(_mean(len(plain), len(cycles)))}"
                    + ("" if most == _mean(len(plain), len(cycles)) else f"; the bound is {number(most)}"),
                )
        return said

    return rule


def _of_which(scenario: Scenario, runs: Trajectories, request: int, c: int) -> str:
    if scenario.prices is None:
        return ""
    own = target_seconds(scenario.prices, runs, np.array([request]), c)
    return f", of which the target's forward {own} s"


def _sum(parts: list[Fraction]) -> str:
    """A sum with its terms, where there are several."""
    told = " + ".join(map(str, parts))
    return told if len(parts) == 1 else f"{told} = {sum(parts)}"


# M10b


def _never_faster(cycles: list[Fraction], plain: list[Fraction], begins: list[int]) -> bool:
    return min(cycles) >= max(plain)


def _not_faster_at_begin(cycles: list[Fraction], plain: list[Fraction], begins: list[int]) -> bool:
    return all(c >= plain[t] for c, t in zip(cycles, begins, strict=True))


def _not_faster_than_mean(cycles: list[Fraction], plain: list[Fraction], begins: list[int]) -> bool:
    return min(cycles) * len(plain) >= sum(plain)


def _not_faster_than_least(cycles: list[Fraction], plain: list[Fraction], begins: list[int]) -> bool:
    return min(cycles) >= min(plain)


def _one_step_more(tokens: int, steps: int) -> Fraction:
    return Fraction(tokens, steps + 1)


def _short_growing(level: int) -> Iterator[Scenario]:
    """Texts of 1 to 3 tokens, a perfect drafter of one token, a cost that grows with context."""
    return all_scenarios(
        (Setting(seed, 1, size, 1, 1, 1.0, 1.0) for size in (1, 2, 3) for seed in range(4 + level)),
        (Chain((MIDDLE, TARGET)),),
        (Static(1),),
        (GROWING,),
    )


GROWING = Prices(1, context=1, middle=Fraction(1, 32))
CHEAP = st.sampled_from([Fraction(1, 64), Fraction(1, 32), Fraction(1, 16)])
DEARER = st.builds(Prices, st.integers(1, 9), context=st.just(1), lookup=CHEAP, small=CHEAP, middle=CHEAP)
M10B_STATEMENT = Statement(
    words=(
        "For a request alone of which no cycle is shorter than any of its plain steps, the speedup is at "
        "most the mean number of tokens emitted per step"
    ),
    formula="T_cycle >= T(1) for all cycles and plain steps  =>  sum T(1) / sum T_cycle <= L / S",
    rule=_at_most(_mean, _never_faster),
    over=(
        "random synthetic scenarios with affine costs without context, under which every cycle takes at "
        "least a plain step; one request at a time"
    ),
    domain=scenarios(settings=SMALL_SETTINGS, chains=DRAFTING, prices=prices_of(context=False), batch=1),
    examples=18,
)
M10B = Claim(
    id="M10b",
    source="claims ledger, M10",
    statement=M10B_STATEMENT,
    expected="holds",
    because="S cycles of at least T(1) each take at least S T(1), and L plain steps at most L T(1).",
    broken=(
        M10B_STATEMENT.but(
            "It is at most the mean number of accepted drafts",
            _at_most(lambda tokens, steps: _mean(tokens, steps) - 1, _never_faster),
            every=few(),
        ),
        M10B_STATEMENT.but(
            "It is at most the mean over one step more, the prompt's",
            _at_most(_one_step_more, _never_faster),
            every=few(),
        ),
        M10B_STATEMENT.but(
            "The same where no cycle is shorter than the plain step at the place where it begins",
            _at_most(_mean, _not_faster_at_begin),
            every=_short_growing,
        ),
    ),
)

# M20

M20_REPAIRED = Statement(
    words=(
        "The speedup is at most the mean tokens per step wherever every cycle takes at least as long as the "
        "mean plain step of its request"
    ),
    formula="T_cycle >= (1/L) sum_t T(1, t)  =>  sum_t T(1, t) / sum T_cycle <= L / S",
    rule=_at_most(_mean, _not_faster_than_mean),
    over="random synthetic scenarios with affine costs, with and without context, that meet it",
    domain=scenarios(settings=SMALL_SETTINGS, chains=DRAFTING, prices=prices_of(), batch=1),
    examples=20,
)
M20 = Claim(
    id="M20",
    source="M10 read with a cost that grows with context, as measured tables do",
    statement=Statement(
        words=(
            "The speedup is at most the mean tokens per step wherever every cycle takes at least as long as "
            "a plain step at the place where it begins"
        ),
        formula="T_cycle(t) >= T(1, t)  =>  sum_t T(1, t) / sum T_cycle <= L / S",
        rule=_at_most(_mean, _not_faster_at_begin),
        over=(
            "texts of 1 to 3 tokens of 4 seeds and more, drafted one by one; random synthetic scenarios with "
            "costs that grow with context; one request at a time"
        ),
        domain=scenarios(settings=SMALL_SETTINGS, chains=DRAFTING, prices=DEARER, batch=1),
        every=_short_growing,
        examples=20,
    ),
    expected="refuted",
    because=(
        "A cycle reads its context once, at its beginning, where plain decoding reads a longer one for every "
        "token: with a cost that grows with context the k tokens of a cycle cost plain decoding more than k "
        "steps at the cycle's place. The excess is a few tokens of context a cycle, so small beside a long "
        "prompt; but mean tokens per step is then no bound. Repaired: S cycles of at least the mean plain "
        "step take at least S / L of what all L plain steps take."
    ),
    pinned=Scenario(Setting(0, 1, 2, 1, 1, 1.0, 1.0), Chain((MIDDLE, TARGET)), Static(1), GROWING),
    repaired=M20_REPAIRED,
    broken=(
        M20_REPAIRED.but(
            "The same where every cycle takes at least as long as the shortest plain step",
            _at_most(_mean, _not_faster_than_least),
            every=_short_growing,
        ),
        M20_REPAIRED.but(
            "It is at most the mean over one step more, the prompt's",
            _at_most(_one_step_more, _not_faster_than_mean),
            every=few(),
        ),
    ),
)

CLAIMS = (M10B, M20)
