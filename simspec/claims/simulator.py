"""Of replay itself (M2, M4, M5, M8, M9, M10) and of what its figures may be read as (M20-M22).

Cases are scenarios of synthetic models (:mod:`simspec.strategies.traces`): deterministic and made up, so that
every count can be got again by running them token by token. L = tokens of a text, S = its steps (forwards of
the target), d = drafts submitted in a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import number, shown
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import (
    Decision,
    Floats,
    LengthRule,
    Prescribed,
    Static,
    View,
    expected_tokens,
)
from simspec.strategies.scenarios import (
    CHAINS,
    COUNTED,
    Prices,
    Scenario,
    all_scenarios,
    decode,
    in_batches,
    made,
    price,
    prices_of,
    recorded,
    replay,
    scenarios,
    with_other_future,
)
from simspec.strategies.traces import (
    EOS,
    LOOKUP,
    MIDDLE,
    SMALL,
    TARGET,
    Setting,
    Synthetic,
    Tabulated,
    settings_of,
)
from simspec.streams import stream

# Replay needs pandas, which whoever only lists claims need not wait for.
if TYPE_CHECKING:
    from simspec.replay.trajectories import Trajectories
    from simspec.traces.index import Ints, Trace

SMALL_SETTINGS = settings_of(prompts=3, output_tokens=(1, 12), block_length=(1, 5))
UNIT = Prices(base=1, lookup_eighths=1)
PAIR = Chain((SMALL, TARGET))
FUNNELS = tuple(c for c in CHAINS if not (c.semantics == "funnel-replace" and c.intermediates))
REPLACING = tuple(c for c in CHAINS if c.semantics == "funnel-replace" and c.intermediates)
DRAFTING = tuple(c for c in CHAINS if c.drafter is not None)
NETWORKS = tuple(c for c in DRAFTING if c.drafter != LOOKUP)
SHORT: tuple[LengthRule, ...] = (Static(0), Static(1), Static(2))
LENGTHS: tuple[LengthRule, ...] = tuple(Static(length) for length in range(6))


def _tabulated(
    chains: tuple[Chain, ...] = CHAINS,
    rules: tuple[LengthRule, ...] = SHORT,
    batches: tuple[int, ...] = (1,),
    middles: int = 9,
) -> Callable[[int], Iterator[Scenario]]:
    """All triples of next-token functions, or those with ``middles`` intermediates; with 1 at level 0."""
    tables = (Tabulated(1), Tabulated(middles), Tabulated(output_tokens=6, block_length=4))
    return lambda level: all_scenarios([tables[level]], chains, rules, (UNIT,), batches)


def _few(
    chains: tuple[Chain, ...] = (PAIR,), rules: tuple[LengthRule, ...] = SHORT, **changes: Any
) -> Callable[[int], Iterator[Scenario]]:
    """A few fixed scenarios, for variants that need to be caught by some case, not to be searched for one."""
    found = [Setting(seed, 2, 8, 4, 1, **changes) for seed in range(3)]
    return lambda level: all_scenarios(found, chains, rules, (Prices(4, 1),))


OVER = (
    "each chain and draft length 0 to 2 with all 729 targets, drafters and intermediates that look back on "
    "one of two tokens or an end of text, 3 tokens far (81 of them at the smallest budget, 6 tokens far at "
    "the largest); random synthetic scenarios"
)


def _asked(scenario: Scenario, prompt: int) -> str:
    setting = scenario.setting
    if isinstance(setting, Tabulated):
        told = ", ".join(f"{m}: 0 -> {f[0]}, 1 -> {f[1]}" for m, f in setting.models(prompt).items())
        return f"{scenario}; text of at most {setting.output_tokens}; {told} ({EOS} ends a text)"
    return f"{scenario}; prompt {prompt} of the synthetic models of {shown(setting)}"


def _steps(runs: Trajectories, request: int, *columns: str) -> list[tuple[int, ...]]:
    """These counts of each cycle of a request."""
    on = runs.active[request]
    return list(zip(*(getattr(runs, name)[request][on].tolist() for name in columns), strict=True))


# M2


def _emits(of: Callable[[int, int], int], cut: bool = True) -> Rule:
    """``of`` (submitted, accepted): what a step that is not cut is said to emit."""

    def rule(scenario: Scenario) -> Outcome:
        runs = replay(scenario)
        for q, text in enumerate(made(scenario.setting).texts):
            left = len(text)
            steps = _steps(runs, q, "submitted", "accepted", "emitted")
            for submitted, accepted, emitted in steps:
                said = min(of(submitted, accepted), left) if cut else of(submitted, accepted)
                if emitted != said:
                    return against(
                        _asked(scenario, q),
                        f"the target alone writes {len(text)} tokens; {left} are left before this step",
                        f"{submitted} submitted, {accepted} accepted: {emitted} emitted, not {said}",
                    )
                left -= emitted
            if left:
                return against(_asked(scenario, q), f"{left} of {len(text)} tokens are never emitted")
        return None

    return rule


M2_STATEMENT = Statement(
    words=(
        "A request's steps emit its accepted drafts and one token more each, the last one cut at the text's "
        "end, and together exactly the text that the target writes alone"
    ),
    formula="emitted_s = min(accepted_s + 1, tokens left);  sum_s emitted_s = L",
    rule=_emits(lambda submitted, accepted: accepted + 1),
    over=OVER,
    domain=scenarios(settings=SMALL_SETTINGS, prices=st.just(UNIT)),
    every=_tabulated(),
    examples=18,
)
M2 = Claim(
    id="M2",
    source="claims ledger, M2; Leviathan et al. (2211.17192) algorithm 1",
    statement=M2_STATEMENT,
    expected="holds",
    because=(
        "The target's word after its accepted drafts is the text's next token, since they are the text's "
        "own. Only an end of text among the accepted drafts leaves nothing to add; a text's length cannot "
        "cut, since at most one token less than the room is drafted."
    ),
    broken=(
        M2_STATEMENT.but("A step emits its accepted drafts", _emits(lambda submitted, accepted: accepted)),
        M2_STATEMENT.but(
            "A step emits its submitted drafts and one more",
            _emits(lambda submitted, accepted: submitted + 1),
        ),
        M2_STATEMENT.but(
            "The last step is not cut", _emits(lambda submitted, accepted: accepted + 1, cut=False)
        ),
    ),
)

# M4, M4b, M4c


def _same_as_plain(ask_lookup: bool) -> Rule:
    def rule(scenario: Scenario) -> Outcome:
        plain, prices = scenario.plain, scenario.prices or UNIT
        runs, bare = replay(scenario), replay(plain)
        synthetic = made(scenario.setting)
        for q in range(len(synthetic.prompts)):
            columns = ("context", "width", "emitted", "accepted", "drafted", "submitted")
            if _steps(runs, q, *columns) != _steps(bare, q, *columns):
                return against(_asked(scenario, q), f"steps {_steps(runs, q, *columns)}, not one token each")
        batches = in_batches(len(synthetic.prompts), scenario.batch)
        found, wanted = price(scenario, runs, batches), price(plain, bare, batches)
        for g, batch in enumerate(batches.tolist()):
            extra = Fraction(0)
            if ask_lookup and scenario.chain.drafter == LOOKUP:
                extra = sum((_asking(synthetic, batch, i, prices) for i in range(99)), Fraction(0))
            if Fraction(found.seconds[g]) != Fraction(wanted.seconds[g]) + extra:
                return against(
                    _asked(scenario, batch[0]),
                    f"requests {shown(batch)} in lock-step: plain decoding takes {wanted.seconds[g]:g} s",
                    f"with draft length 0 it is {found.seconds[g]:g} s; asking a look-up takes {extra}",
                )
        return None

    return rule


def _asking(synthetic: Synthetic, batch: list[int], step: int, prices: Prices) -> Fraction:
    """What asking the look-up of those requests that still run takes: one token each, at ``step``."""
    held = [len(synthetic.prompts[q]) + step for q in batch if step < len(synthetic.texts[q])]
    if not held:
        return Fraction(0)
    whole = prices.base + prices.token * len(held) + prices.context * sum(held)
    return Fraction(prices.lookup_eighths, 8) * whole


M4_STATEMENT = Statement(
    words=(
        "With draft length 0 every chain whose intermediates pass on only what they accepted is plain "
        "decoding, step by step and to the last second, but for asking a look-up once in every step"
    ),
    formula="seconds(d = 0) = seconds(target alone) + [drafter is a look-up] sum_s T_lookup(1)",
    rule=_same_as_plain(ask_lookup=True),
    over=OVER + "; funnel-truncate and pairs, draft length 0, batches of up to 3, exact affine costs",
    domain=scenarios(
        settings=SMALL_SETTINGS, chains=FUNNELS, rules=(Static(0),), prices=prices_of(), batch=3
    ),
    every=_tabulated(FUNNELS, (Static(0),), (1, 2)),
    examples=15,
)
M4 = Claim(
    id="M4",
    source="claims ledger, M4",
    statement=M4_STATEMENT,
    expected="holds",
    because=(
        "An empty block leaves the target's own step; a network that drafts nothing runs nothing, and an "
        "intermediate that is given nothing and adds nothing stays idle. A look-up has to be asked to be "
        "known to have nothing to say."
    ),
    broken=(
        M4_STATEMENT.but("Not even a look-up costs anything", _same_as_plain(ask_lookup=False)),
        M4_STATEMENT.but(
            "The same under funnel-replace, where an intermediate passes on a token of its own",
            _same_as_plain(ask_lookup=True),
            domain=scenarios(settings=SMALL_SETTINGS, chains=REPLACING, rules=(Static(0),), batch=2),
            every=_tabulated(REPLACING, (Static(0),)),
        ),
    ),
    first_look=(
        "True of pairs and of funnel-truncate only: under funnel-replace an intermediate adds its own token "
        "to an empty block, so that draft length 0 still drafts one token by way of the intermediate."
    ),
)


def _emit_each(of: Callable[[Scenario], int]) -> Rule:
    """Every step emits ``of`` tokens, the last one what is left."""

    def rule(scenario: Scenario) -> Outcome:
        each, runs = of(scenario), replay(scenario)
        for q, text in enumerate(made(scenario.setting).texts):
            found = [n for (n,) in _steps(runs, q, "emitted")]
            said = [min(each, len(text) - done) for done in range(0, len(text), each)] if each else []
            if found != said:
                return against(
                    _asked(scenario, q),
                    f"a text of {len(text)} tokens comes in steps of {shown(tuple(found))}",
                    f"expected {shown(tuple(said))}",
                )
        return None

    return rule


def _drafts(scenario: Scenario) -> int:
    rule = scenario.rule
    if not isinstance(rule, Static):
        raise ValueError(f"needs a static length, not {rule}")
    return min(rule.length, scenario.setting.block_length)


def _all_right(scenario: Scenario) -> int:
    own = len(scenario.chain.intermediates) if scenario.chain.semantics == "funnel-replace" else 0
    return _drafts(scenario) + own + 1


def _of_rate(rate: float, follows: tuple[str, ...] = (TARGET, MIDDLE), middle: float | None = None) -> Any:
    """Settings in which every drafter is right, or none ever."""
    return st.builds(
        Setting,
        seed=st.integers(0, 10_000),
        output_tokens=st.integers(1, 16),
        block_length=st.integers(1, 5),
        order=st.integers(1, 3),
        middle_rate=st.just(rate if middle is None else middle),
        small_rate=st.just(rate),
        small_follows=st.sampled_from(follows),
    )


M4B_STATEMENT = Statement(
    words=(
        "Where every model says what the target says, each step emits d + 1 tokens until the text ends, and "
        "one more for every intermediate that passes on a token of its own"
    ),
    formula="emitted = d + 1 + (intermediates under funnel-replace);  S = ceil(L / emitted)",
    rule=_emit_each(_all_right),
    over="random synthetic settings in which all models agree; chains of networks, draft lengths 0 to 5",
    domain=scenarios(settings=_of_rate(1.0), chains=NETWORKS, rules=LENGTHS, prices=st.just(UNIT)),
    examples=18,
)
M4B = Claim(
    id="M4b",
    source="claims ledger, M4; Leviathan et al. (2211.17192) eq. 1 at acceptance 1",
    statement=M4B_STATEMENT,
    expected="holds",
    because="All d drafts are the text's own, so is an intermediate's token after them; the target adds one.",
    broken=(
        M4B_STATEMENT.but(
            "Each step emits d tokens: the bonus is forgotten",
            _emit_each(_drafts),
            every=_few(rules=SHORT[1:], middle_rate=1.0, small_rate=1.0),
        ),
        M4B_STATEMENT.but(
            "Each step emits d + 1 under every semantics",
            _emit_each(lambda scenario: _drafts(scenario) + 1),
            every=_few(NETWORKS, SHORT[1:], middle_rate=1.0, small_rate=1.0),
        ),
    ),
)
M4C_STATEMENT = Statement(
    words="Where no other model ever says what the target says, every step emits one token",
    formula="emitted = 1;  S = L",
    rule=_emit_each(lambda scenario: 1),
    over="random synthetic settings in which no model agrees with the target; networks, draft lengths 0 to 5",
    domain=scenarios(settings=_of_rate(0.0, (TARGET,)), chains=NETWORKS, rules=LENGTHS, prices=st.just(UNIT)),
    examples=18,
)
M4C = Claim(
    id="M4c",
    source="claims ledger, M4",
    statement=M4C_STATEMENT,
    expected="holds",
    because="The first draft is refused, and what the target says there is the text's next token.",
    broken=(
        M4C_STATEMENT.but(
            "A step emits what it accepted: nothing",
            _emit_each(lambda scenario: 0),
            every=_few(rules=SHORT[1:], middle_rate=0.0, small_rate=0.0, small_follows=TARGET),
        ),
        M4C_STATEMENT.but(
            "The same of a drafter that never agrees with its intermediate",
            M4C_STATEMENT.rule,
            every=_few(rules=LENGTHS, middle_rate=0.0, small_rate=0.0, small_follows=MIDDLE),
            domain=scenarios(
                settings=_of_rate(0.0, (MIDDLE,), middle=0.6),
                chains=(PAIR,),
                rules=LENGTHS,
                prices=st.just(UNIT),
            ),
        ),
    ),
)

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

    def __init__(self) -> None:
        self.generator = stream(0, "lengths")

    def begin(self, requests: int) -> Floats:
        return np.zeros(requests)

    def decide(self, view: View, state: Floats) -> Decision:
        lengths = self.generator.integers(0, 4, len(view.limit))
        return Decision(lengths, lengths)

    def observe(self, state: Floats, decision: Decision, accepted: Ints) -> Floats:
        return state


COUNTS = ("flat", "context", "drafted", "lag", "submitted", "width", "accepted", "emitted")


def _same_bytes(other_seed: int = 0, rule: Callable[[], LengthRule] | None = None) -> Rule:
    """Everything made afresh twice is the same, and so is each request in any order and company."""

    def decide(case: Shuffled) -> Outcome:
        scenario, order = case.scenario, np.array(case.order)

        def again() -> Scenario:
            return scenario if rule is None else replace(scenario, rule=rule())

        first, second = Synthetic(scenario.setting), Synthetic(_seeded(scenario.setting, other_seed))
        tables, others = first.tables, second.tables
        differ = [name for name in tables if not tables[name].equals(others[name])]
        if differ:
            return against(_asked(scenario, 0), f"made twice, these tables differ: {shown(tuple(differ))}")
        whole, twice = replay(again(), trace=first.trace()), replay(again(), trace=second.trace())
        some = replay(again(), order)
        for at, q in enumerate(case.order):
            runs = [_steps(r, i, *COUNTS) for r, i in ((whole, q), (twice, q), (some, at))]
            if not runs[0] == runs[1] == runs[2]:
                return against(
                    _asked(scenario, q),
                    f"twice among all requests: drafts {_lengths(whole, q)} and {_lengths(twice, q)}",
                    f"among requests {shown(case.order)}: drafts {_lengths(some, at)}",
                )
        group = np.arange(len(order))[None]
        seconds = [
            price(scenario, whole, order[None]).seconds,
            price(scenario, twice, order[None, ::-1]).seconds,
            price(scenario, some, group).seconds,
        ]
        if len({s.tobytes() for s in seconds}) > 1:
            return against(
                _asked(scenario, 0), f"the batch {shown(case.order)} takes {shown(tuple(seconds))} s"
            )
        return None

    return decide


def _seeded(setting: Setting | Tabulated, more: int) -> Setting | Tabulated:
    return replace(setting, seed=setting.seed + more)


def _lengths(runs: Trajectories, request: int) -> str:
    return shown(tuple(n for (n,) in _steps(runs, request, "drafted")))


M5_STATEMENT = Statement(
    words=(
        "The same seed gives the same trace, cycles and seconds, byte for byte; and a request's cycles do "
        "not depend on the order in which prompts are given, nor on which others are there"
    ),
    rule=_same_bytes(),
    over=(
        "random synthetic scenarios with affine costs and with measured tables, their requests permuted and "
        "some left out"
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
        "request; a batch is priced by sums and maxima over its rows."
    ),
    broken=(
        M5_STATEMENT.but(
            "Another seed gives the same bytes",
            _same_bytes(other_seed=1),
            every=lambda level: (Shuffled(scenario, (0,)) for scenario in _few()(level)),
        ),
        M5_STATEMENT.but(
            "The same of a rule that draws its lengths from one generator for all requests",
            _same_bytes(rule=lambda: _SharedLuck()),
            every=lambda level: (Shuffled(scenario, (1,)) for scenario in _few(rules=(Static(1),))(level)),
            domain=shuffled(scenarios(settings=SMALL_SETTINGS, chains=(PAIR,), prices=prices_of())),
        ),
    ),
    first_look=(
        "It did not hold when first tried: with a measured table a batch's seconds differed in the last bit by "
        "which other requests were replayed beside it, since a longer one among them changed the order of "
        "summation. Cycles are now summed one by one."
    ),
)

# M8


def _as_lived(misread: Callable[[Trace, Scenario], Trace] | None = None) -> Rule:
    """Replay's counts are those of the models run token by token; ``misread`` spoils what replay is given."""

    def rule(scenario: Scenario) -> Outcome:
        from simspec.replay.pricing import two_level_seconds

        synthetic, trace = made(scenario.setting), recorded(scenario.setting)
        runs = replay(scenario, trace=None if misread is None else misread(trace, scenario))
        seconds = None
        if len(scenario.chain.levels) == 2 and scenario.prices is not None:
            seconds = two_level_seconds(trace, scenario.chain, scenario.prices.model(), scenario.batch)
        for q, text in enumerate(synthetic.texts):
            first = trace.offsets[q]
            told = None if seconds is None else seconds[first : first + len(text)]
            cycles = decode(scenario, q, told)
            written = [token for c in cycles for token in c.emitted]
            if written != text:
                return against(
                    _asked(scenario, q), f"the chain writes {shown(written)}, the target alone {shown(text)}"
                )
            found, right = _steps(runs, q, *COUNTED), [c.counts for c in cycles]
            if found != right:
                return against(
                    _asked(scenario, q),
                    f"the target's text is {shown(text)}",
                    f"replayed ({', '.join(COUNTED)}) by cycle: {shown(found)}",
                    f"token by token: {shown(right)}",
                )
        return None

    return rule


def _verdicts_along_text(trace: Trace, scenario: Scenario) -> Trace:
    """An intermediate's verdict read from where it agrees with the text, not with the block."""
    drafters = {}
    for name, index in trace.drafters.items():
        agreed = {}
        for model in index.agreed:
            ends = trace.offsets[trace.prompt + 1]
            runs = [_run_of(trace.owns[model][at:end]) for at, end in enumerate(ends)]
            agreed[model] = np.minimum(np.array(runs), index.length)
        drafters[name] = replace(index, agreed=agreed)
    return replace(trace, drafters=drafters)


def _run_of(flags: Any) -> int:
    """How many leading ones are true."""
    return len(flags) if flags.all() else int(np.argmin(flags))


def _blocks_never_end(trace: Trace, scenario: Scenario) -> Trace:
    """Blocks that go on past an end of text that they draft."""
    depth = scenario.setting.block_length
    drafters = {m: replace(i, length=np.full_like(i.length, depth)) for m, i in trace.drafters.items()}
    return replace(trace, drafters=drafters)


M8_STATEMENT = Statement(
    words=(
        "Replaying a trace gives, cycle by cycle, the drafted, submitted, verified, accepted and emitted "
        "counts of the models run token by token; and the text is the target's own"
    ),
    formula="replay(record(models), schedule) = counts of decoding with (models, schedule)",
    rule=_as_lived(),
    over=OVER + "; of the tabulated models 243 at the default budget and draft length 2",
    domain=scenarios(settings=SMALL_SETTINGS, prices=prices_of(context=False), batch=1),
    every=_tabulated(rules=(Static(2),), middles=3),
    examples=15,
)
M8 = Claim(
    id="M8",
    source="claims ledger, M8",
    statement=M8_STATEMENT,
    expected="holds",
    because=(
        "Under greedy decoding the text before every cycle is the target's own, so what happens in it is a "
        "function of its place in the text, and a trace holds that for every place. Blocks stored once serve "
        "every start before them at which the drafter follows the text, since it is a function of the tokens "
        "before. The other side runs the made-up models through simspec.speculation.cycle and sees no trace."
    ),
    broken=(
        M8_STATEMENT.but(
            "The same with intermediates' verdicts read along the text in place of the block",
            _as_lived(_verdicts_along_text),
        ),
        M8_STATEMENT.but("The same with blocks that go on past an end of text", _as_lived(_blocks_never_end)),
    ),
)

# M9


@dataclass(frozen=True)
class Peek:
    """A scenario, one cycle of one of its requests, and how what it may not see is changed."""

    scenario: Scenario
    request: int
    cycle: int
    luck: int


def peeks(some: st.SearchStrategy[Scenario]) -> st.SearchStrategy[Peek]:
    return st.builds(Peek, some, st.integers(0, 2), st.integers(0, 5), st.integers(0, 10**6))


def _blind(rule: Callable[[Trace, Scenario], LengthRule | Prescribed | None]) -> Rule:
    """The decision of a cycle stays when verdicts from there on, and drafts that it leaves, are changed."""

    def decide(case: Peek) -> Outcome:
        scenario = case.scenario
        trace, drafter = recorded(scenario.setting), scenario.chain.drafter
        request = case.request % scenario.setting.prompts
        before = _run(scenario, trace, rule, request)
        count = int(before.active[0].sum())
        c = case.cycle % count
        at, drafted = int(before.flat[0, c]), int(before.drafted[0, c])
        if drafter is None:
            return UNMET
        changed = with_other_future(trace, drafter, at, drafted, case.luck)
        after = _run(scenario, changed, rule, request)
        seen = slice(0, c + 1)
        for name in ("flat", "drafted", "submitted"):
            was, now = getattr(before, name)[0, seen], getattr(after, name)[0, seen]
            if was.tolist() != now.tolist():
                index, other = trace.drafters[drafter], changed.drafters[drafter]
                return against(
                    _asked(scenario, request),
                    f"in cycle {c} it drafts {drafted}; until there nothing is changed",
                    f"confidences {shown(index.confidence[at])} become {shown(other.confidence[at])}",
                    f"of {index.length[at]} drafts {index.matched[at]} would be accepted; "
                    f"changed, of {other.length[at]} {other.matched[at]}",
                    f"{name} by cycle was {shown(was)} and is {shown(now)}",
                )
        return None

    return decide


def _run(
    scenario: Scenario,
    trace: Trace,
    rule: Callable[[Trace, Scenario], LengthRule | Prescribed | None],
    request: int,
) -> Trajectories:
    from simspec.replay.pricing import two_level_seconds
    from simspec.replay.trajectories import run

    seconds = None
    if len(scenario.chain.levels) == 2 and scenario.prices is not None:
        seconds = two_level_seconds(trace, scenario.chain, scenario.prices.model(), scenario.batch)
    start = trace.offsets[[request]]
    return run(trace, scenario.chain, rule(trace, scenario), start, seconds)


def _own_rule(trace: Trace, scenario: Scenario) -> LengthRule | None:
    return scenario.rule


def _hindsight(trace: Trace, scenario: Scenario) -> Prescribed:
    """As many as will be accepted."""
    return Prescribed(trace.drafters[scenario.chain.drafter or ""].matched)


class _FullScan:
    """The best length over the whole block, of which only that many are said to be drafted."""

    sampling_safe: ClassVar[bool] = False

    def begin(self, requests: int) -> Floats:
        return np.zeros(requests)

    def decide(self, view: View, state: Floats) -> Decision:
        best = (expected_tokens(view.confidence) / view.seconds).argmax(axis=1)
        return Decision(best, best)

    def observe(self, state: Floats, decision: Decision, accepted: Ints) -> Floats:
        return state


class _StopsBeforeEnd(_FullScan):
    """One token less than the drafter could draft, known beforehand."""

    def decide(self, view: View, state: Floats) -> Decision:
        lengths = np.maximum(view.limit - 1, 0)
        return Decision(lengths, lengths)


def _few_peeks(level: int) -> Iterator[Peek]:
    for scenario, c, luck in product(_few(rules=(Static(1),))(level), range(2), range(4)):
        yield Peek(scenario, 0, c, luck)


M9_DOMAIN = peeks(
    scenarios(settings=SMALL_SETTINGS, chains=DRAFTING, prices=prices_of(context=False), batch=1)
)
M9_STATEMENT = Statement(
    words=(
        "No length rule sees what it predicts: change every verdict from a cycle on, and all drafts that the "
        "cycle does not draft, and its decision stays"
    ),
    formula="decision_c is a function of (drafts of cycle c that are drafted, outcomes of cycles before c)",
    rule=_blind(_own_rule),
    over="random synthetic scenarios of every chain and rule; in a random cycle the unseen is redrawn",
    domain=M9_DOMAIN,
    examples=40,
)
M9 = Claim(
    id="M9",
    source="claims ledger, M9",
    statement=M9_STATEMENT,
    expected="holds",
    because=(
        "A rule is given confidences, a limit and costs. It is told of verdicts after the cycle; confidences "
        "and the limit are there for the whole block, so that a rule does not look past its own drafts is a "
        "promise, and this holds them to it. Oracles are told apart by their type: they prescribe by "
        "position. Chain schedulers are given the past alone, and replay has none: they are not tried here."
    ),
    broken=(
        M9_STATEMENT.but("The same of hindsight, were it a rule", _blind(_hindsight), every=_few_peeks),
        M9_STATEMENT.but(
            "The same of a scan over the whole block that owns up to its best prefix",
            _blind(lambda trace, scenario: _FullScan()),
            every=_few_peeks,
        ),
        M9_STATEMENT.but(
            "The same of a rule that stops one token before the drafter would have ended",
            _blind(lambda trace, scenario: _StopsBeforeEnd()),
            every=_few_peeks,
        ),
    ),
)

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
    every=_tabulated(DRAFTING),
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
            emitted = [n for (n,) in _steps(replay(scenario), q, "emitted")]
            begins = [sum(emitted[:c]) for c in range(len(emitted))]
            if not met(cycles, plain, begins):
                continue
            said, speedup, mean = None, sum(plain) / sum(cycles), Fraction(len(plain), len(cycles)) - less
            if speedup > mean:
                return against(
                    _asked(scenario, q),
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
            every=_few(),
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
                    _asked(scenario, int(batch[0])),
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

CLAIMS = (M2, M4, M4B, M4C, M5, M8, M9, M10, M10B, M20, M21, M22)
