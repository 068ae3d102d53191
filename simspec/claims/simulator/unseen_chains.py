"""No chain scheduler sees what it predicts (M9b)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import shown
from simspec.claims.simulator.cases import PAIR
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Static
from simspec.speculation.schedulers import ChainScheduler, Fixed, Past, Schedule, TakeTurns
from simspec.strategies.made_up_models import (
    LOOKUP,
    MIDDLE,
    SMALL,
    TARGET,
    MadeUpModels,
    OtherFuture,
    Setting,
    settings_of,
)
from simspec.strategies.scenarios import CHAINS, RULES, made
from simspec.strategies.token_by_token import decode_scheduled


@dataclass(frozen=True)
class StayWhileRight:
    """The last cycle's schedule if all that it submitted was kept, else the next one."""

    def choose(self, past: Past, schedules: int) -> int:
        if not past.chosen:
            return past.request % schedules
        return (past.chosen[-1] + (past.kept[-1] < past.submitted[-1])) % schedules


SCHEDULERS: tuple[ChainScheduler, ...] = (Fixed(), TakeTurns(1), TakeTurns(2), StayWhileRight())


@dataclass(frozen=True)
class Turn:
    """A text decoded by turns, one cycle of it, and how the models are changed from there on."""

    setting: Setting
    schedules: tuple[Schedule, ...]
    scheduler: ChainScheduler
    request: int
    cycle: int
    luck: int


def turns() -> st.SearchStrategy[Turn]:
    """Of two and three schedules, any chains and rules among them."""
    drafting = st.builds(Schedule, st.sampled_from([c for c in CHAINS if c.drafter]), st.sampled_from(RULES))
    one = st.one_of(drafting, st.just(Schedule(Chain((TARGET,)))))
    return st.builds(
        Turn,
        settings_of(prompts=3, output_tokens=(1, 12), block_length=(1, 5)),
        st.lists(one, min_size=2, max_size=3).map(tuple),
        st.sampled_from(SCHEDULERS),
        st.integers(0, 2),
        st.integers(0, 5),
        st.integers(0, 10**6),
    )


def few_turns(level: int) -> Iterator[Turn]:
    """Two schedules, the first two cycles of a few texts."""
    schedules = (Schedule(PAIR, Static(1)), Schedule(Chain((LOOKUP, SMALL, MIDDLE, TARGET)), Static(3)))
    for seed, scheduler, c, luck in product(range(3), SCHEDULERS, range(2), range(2)):
        yield Turn(Setting(seed, 2, 8, 4, 1), schedules, scheduler, 1, c, luck)


Made = Callable[[ChainScheduler, MadeUpModels], ChainScheduler]


def _blind(given: Made = lambda scheduler, models: scheduler) -> Rule:
    """The choices up to a cycle stay when models answer otherwise from its beginning on.

    ``given`` makes the scheduler, of one that sees the past alone and of the models.
    """

    def decide(case: Turn) -> Outcome:
        models, q = made(case.setting), case.request % case.setting.prompts
        before = decode_scheduled(models, q, case.schedules, given(case.scheduler, models))
        c = case.cycle % len(before)
        since = [*models.prompts[q], *(token for one in before[:c] for token in one.emitted)]
        other = OtherFuture(case.setting, since, case.luck)
        after = decode_scheduled(other, q, case.schedules, given(case.scheduler, other))
        was, now = (tuple(one.chosen for one in cycles[: c + 1]) for cycles in (before, after))
        if was == now:
            return None
        return against(
            f"{shown(case.setting)}, text {q}; schedules {'; '.join(str(s.chain) for s in case.schedules)}",
            f"before cycle {c + 1} the text is {shown(tuple(since[len(models.prompts[q]) :]))}; the models "
            f"would go on to {shown(tuple(models.texts[q]))}, or otherwise to {shown(tuple(other.texts[q]))}",
            f"schedules chosen by cycle: {shown(was)}, or otherwise {shown(now)}",
        )

    return decide


@dataclass(frozen=True)
class _KnowsNextToken:
    """Picks by the token that comes next, from a cycle on."""

    models: MadeUpModels
    since: int

    def choose(self, past: Past, schedules: int) -> int:
        if len(past.chosen) < self.since:
            return 0
        return self.models.texts[past.request][past.emitted_tokens] % schedules


M9B_STATEMENT = Statement(
    words=(
        "No chain scheduler sees what it predicts: let every model but a look-up answer otherwise from the "
        "beginning of a cycle on, and the chain that the cycle takes stays"
    ),
    formula="choice_c is a function of the outcomes of cycles before c",
    rule=_blind(),
    over=(
        "a fixed schedule, turns by one and by two cycles, and staying with a schedule while its drafts are "
        "right: over two schedules in the first two cycles of texts of 3 seeds, and over random synthetic "
        "settings with 2 or 3 schedules of every chain and rule"
    ),
    domain=turns(),
    every=few_turns,
    examples=40,
)
M9B = Claim(
    id="M9b",
    source="claims ledger, M9; the schedulers that decoding of real models takes",
    statement=M9B_STATEMENT,
    expected="holds",
    because=(
        "A scheduler is handed what its request has done: choices, submitted and kept drafts of earlier "
        "cycles, and tokens emitted. Both sides run the models token by token. The changed models agree with "
        "the others on every history that does not begin with the text before the cycle, so that all earlier "
        "cycles go as before."
    ),
    broken=(
        M9B_STATEMENT.but(
            "The same of a scheduler that picks by the text's next token",
            _blind(lambda scheduler, models: _KnowsNextToken(models, 0)),
        ),
        M9B_STATEMENT.but(
            "The same of one that does so from the second cycle on",
            _blind(lambda scheduler, models: _KnowsNextToken(models, 1)),
        ),
    ),
)

CLAIMS = (M9B,)
