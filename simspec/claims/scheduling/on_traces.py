"""The bound that a report gives on a trace, against schedules lived through with real caches (S10c)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.cost.shape import StepShape
from simspec.speculation.chains import Chain
from simspec.speculation.cycle import run_cycle
from simspec.strategies.made_up_models import EOS, LOOKUP, MIDDLE, SMALL, TARGET, Setting, settings_of
from simspec.strategies.traces import Synthetic

# The index of a trace needs pandas and pyarrow: loaded where a trace is made.
if TYPE_CHECKING:
    from simspec.traces.index import Trace

PLAIN, LOOKED_UP = Chain((TARGET,)), Chain((LOOKUP, TARGET))
PAIRS = tuple((Chain((m, TARGET)), n) for m in (SMALL, MIDDLE) for n in (1, 3))
TRIPLES = tuple(
    (Chain((SMALL, MIDDLE, TARGET), semantics), 2) for semantics in ("funnel-truncate", "funnel-replace")
)
SCHEMES = ((PLAIN, 0), (LOOKED_UP, 2), *PAIRS, *TRIPLES)
# Schemes without a model that could lag: the target always runs, and a look-up keeps no cache.
NEVER_LAG = 2


@dataclass(frozen=True)
class Prices:
    """Whole seconds of a forward over 1, 2, ... tokens, the last for all wider ones too; a cost model.

    Attributes:
        wider: every model but the target and the look-up is charged for so many tokens more.
    """

    target: tuple[int, ...]
    middle: tuple[int, ...]
    small: tuple[int, ...]
    ngram: tuple[int, ...]
    wider: int = 0

    name = label = "made up"
    step_overhead_seconds = 0.0
    models = frozenset((TARGET, MIDDLE, SMALL, LOOKUP))

    def one(self, model: str, width: int) -> int:
        table: tuple[int, ...] = getattr(self, model)
        return table[min(width + (self.wider if model in (SMALL, MIDDLE) else 0), len(table)) - 1]

    def forward_seconds(self, model: str, shape: StepShape) -> NDArray[np.float64]:
        return np.asarray(np.vectorize(partial(self.one, model), otypes=[np.float64])(shape.width))


@dataclass(frozen=True)
class OnTrace:
    """Made-up models with their trace, prices, and which of ``SCHEMES`` a scheduler may take."""

    setting: Setting
    prices: Prices
    schemes: tuple[int, ...]


@lru_cache(maxsize=512)
def _recorded(setting: Setting) -> tuple[Synthetic, Trace]:
    models = Synthetic(setting)
    return models, models.trace()


def _lived(
    models: Synthetic, prices: Prices, history: list[int], room: int, read: dict[str, int], scheme: int
) -> tuple[int, list[int], dict[str, int]]:
    """A cycle token by token: its seconds, the tokens that it adds, and what each cache then holds."""
    chain, length = SCHEMES[scheme]
    drafter, spent, read = chain.drafter, 0, dict(read)
    block: list[int] = []
    if drafter is not None:
        most = min(length, room - 1, models.setting.block_length)
        block = models.draft(drafter, history, most)[0][:most]
        if drafter == LOOKUP:
            spent += prices.one(LOOKUP, max(len(block), 1))
        elif block:
            spent += prices.one(drafter, len(history) - read[drafter])
            spent += sum(prices.one(drafter, 1) for _ in block[1:])
            # The last draft is never read by the model that drafted it.
            read[drafter] = len(history) + len(block) - 1

    def verifier(model: str) -> Any:
        def words(given: NDArray[np.int32]) -> NDArray[np.int32]:
            nonlocal spent
            spent += prices.one(model, len(history) + len(given) - read[model])
            read[model] = len(history) + len(given)
            return models.greedy(model, history, given.tolist())

        return words

    verifiers = [verifier(m) for m in (chain.levels[1:] or chain.levels)]
    done = run_cycle(np.array(block, dtype=np.int32), verifiers, chain.semantics, room, [EOS])
    for model in read:
        right = done.accepted if model == TARGET else done.kept
        read[model] = min(read[model], len(history) + right)
    return spent, done.emitted.tolist(), read


def least(models: Synthetic, prices: Prices, prompt: int, schemes: tuple[int, ...]) -> int:
    """Least seconds over all schedules, each lived through; what two have in common is lived once."""
    known: dict[tuple[int, tuple[int, ...]], int] = {}
    begin, text = models.prompts[prompt], models.texts[prompt]

    def rest(produced: int, read: dict[str, int]) -> int:
        if produced == len(text):
            return 0
        history = [*begin, *text[:produced]]
        key = (produced, tuple(read.values()))
        if key not in known:
            room, ways = models.setting.output_tokens - produced, []
            for scheme in schemes:
                spent, added, after = _lived(models, prices, history, room, read, scheme)
                ways.append(spent + rest(produced + len(added), after))
            known[key] = min(ways)
        return known[key]

    return rest(0, dict.fromkeys((TARGET, MIDDLE, SMALL), len(begin) - 1))


def _bounded(case: OnTrace, wider: int = 0, attained: bool = False) -> Outcome:
    """Args:
    wider: tokens that the bound charges every model too many.
    attained: takes it that the bound is attained whatever lags.
    """
    from simspec.oracle.chains import least_seconds

    models, trace = _recorded(case.setting)
    p = case.prices
    charged = Prices(p.target, p.middle, p.small, p.ngram, wider)
    bounds = least_seconds(trace, [SCHEMES[k] for k in case.schemes], charged).tolist()
    exact = attained or max(case.schemes) < NEVER_LAG
    for prompt, bound in enumerate(bounds):
        true = least(models, case.prices, prompt, case.schemes)
        if bound > true or (exact and bound < true):
            named = ", ".join(f"{SCHEMES[k][0]} with {SCHEMES[k][1]} drafts" for k in case.schemes)
            return against(
                f"a text of {len(models.texts[prompt])} tokens; schemes: {named}",
                f"the bound is {bound:g} s, the fastest of all schedules takes {true} s",
            )
    return None


RISING = Prices((9, 10, 11, 12), (4, 5, 6, 7), (1, 2, 3, 4), (1,))
UNEVEN = Prices((8, 12, 9, 9), (6, 3, 7, 2), (3, 1, 4, 1), (2, 1))
CHOICES = ((0, 1), (0, 2, 3), (0, 4, 6), (1, 5, 7), (0, 3, 5, 6))


def _cases(level: int) -> Iterator[OnTrace]:
    for size, seed, rate in product((1, 4, 7)[: 2 + level], range(1 + level // 2), (0.6, 1.0)):
        setting = Setting(seed, 2, size, 3, 1, rate, rate, MIDDLE)
        for prices, schemes in product((RISING, UNEVEN), CHOICES):
            yield OnTrace(setting, prices, schemes)


_TABLE = st.lists(st.integers(0, 9), min_size=1, max_size=5).map(tuple)
_RANDOM = st.builds(
    OnTrace,
    settings_of(prompts=2, output_tokens=(1, 7), block_length=(1, 4)),
    st.builds(Prices, _TABLE, _TABLE, _TABLE, _TABLE),
    st.sets(st.integers(0, len(SCHEMES) - 1), min_size=1, max_size=4).map(lambda s: tuple(sorted(s))),
)
S10C_STATEMENT = Statement(
    words=(
        "The bound over chains that a report gives on a trace is never above the least time of any schedule, "
        "whose caches really lag and are caught up on; where no model can lag it is that time"
    ),
    formula="min over cycles with each first forward at its cheapest width <= min over schedules of sum T",
    rule=_bounded,
    over=(
        "made-up models of 2 prompts with texts of up to 7 tokens, prices that rise with width and ones that "
        "do not, 5 sets of plain decoding, a look-up, pairs and chains of three under both funnels; random "
        "models, prices and sets of up to 4. Whole seconds, which floats hold exactly"
    ),
    domain=_RANDOM,
    every=_cases,
    examples=20,
)
S10C = Claim(
    id="S10c",
    source="the bound of simspec.oracle.chains for adaptive schedulers such as SpecRouter's (2505.07680)",
    statement=S10C_STATEMENT,
    expected="holds",
    because=(
        "It is the program of S10b with the lags left out of the state: a cycle's first forward of each "
        "drafter or intermediate is charged at the cheapest width it could have, one token (for an "
        "intermediate its block and one) or more, so no cycle is charged too much, and the cheapest way "
        "through them is a lower bound. "
        "Switches are free. The target always runs and a look-up has no cache, so of these nothing is left "
        "out."
    ),
    broken=(
        S10C_STATEMENT.but("... with every model charged for one token more", partial(_bounded, wider=1)),
        S10C_STATEMENT.but("... and is that time whatever lags", partial(_bounded, attained=True)),
    ),
)

CLAIMS = (S10C,)
