"""Synthetic traces and scenarios: that they cover what they promise, and say that they are made up."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from simspec.speculation.chains import Chain
from simspec.speculation.lengths import G4, Static
from simspec.speculation.schedulers import Fixed, Schedule, TakeTurns
from simspec.strategies.made_up_models import (
    EOS,
    FUNCTIONS,
    LOOKUP,
    MIDDLE,
    MODELS,
    SMALL,
    TARGET,
    VOCABULARY,
    OtherFuture,
    Setting,
    Tabulated,
    all_settings,
    settings_of,
)
from simspec.strategies.scenarios import (
    CHAINS,
    RULES,
    Prices,
    Scenario,
    all_scenarios,
    in_batches,
    price,
    recorded,
    replay,
    scenarios,
    with_other_future,
)
from simspec.strategies.token_by_token import COUNTED, decode, decode_scheduled
from simspec.strategies.traces import Synthetic, synthetic_traces
from tests.profiles import examples

MANY = Setting(seed=3, prompts=60, output_tokens=20, block_length=4)
# Whether there is one, not the smallest one.
SEARCH = settings(max_examples=2000, deadline=None, database=None, phases=[Phase.generate])


def places(synthetic: Synthetic) -> list[tuple[list[int], int]]:
    """What came before each token of each text, and the token."""
    return [
        ([*prompt, *text[:t]], token)
        for prompt, text in zip(synthetic.prompts, synthetic.texts, strict=True)
        for t, token in enumerate(text)
    ]


def right(synthetic: Synthetic, model: str) -> np.ndarray:
    """Whether ``model`` says the text's token, at each place."""
    return np.array([synthetic.next_token(model, seen) == token for seen, token in places(synthetic)])


# Models.


@pytest.mark.parametrize("follows", [TARGET, MIDDLE])
def test_a_rate_of_one_is_always_right_and_of_zero_never(follows: str) -> None:
    perfect = Synthetic(replace(MANY, middle_rate=1.0, small_rate=1.0, small_follows=follows))
    assert right(perfect, MIDDLE).all()
    assert right(perfect, SMALL).all()
    worthless = Synthetic(replace(MANY, middle_rate=0.0, small_rate=0.0, small_follows=TARGET))
    assert not right(worthless, MIDDLE).any()
    assert not right(worthless, SMALL).any()


def test_a_rate_is_the_share_of_agreement() -> None:
    """Over 60 texts; four standard errors either way."""
    synthetic = Synthetic(replace(MANY, middle_rate=0.7))
    found = right(synthetic, MIDDLE)
    assert abs(found.mean() - 0.7) < 4 * np.sqrt(0.21 / len(found))


def test_levels_that_follow_one_another_are_right_together() -> None:
    gaps = {}
    for follows in (MIDDLE, TARGET):
        synthetic = Synthetic(replace(MANY, middle_rate=0.6, small_rate=0.6, small_follows=follows))
        middle, small = right(synthetic, MIDDLE), right(synthetic, SMALL)
        gaps[follows] = small[middle].mean() - small[~middle].mean()
    # Following the middle: .6 where it is right, 1 in 47 where it is not. Following the target: independent.
    assert gaps[MIDDLE] > 0.4
    assert abs(gaps[TARGET]) < 0.2


def test_models_are_functions_of_the_seed() -> None:
    first, again, other = (Synthetic(replace(MANY, prompts=3, seed=s)).tables for s in (3, 3, 4))
    assert all(first[name].equals(again[name]) for name in first)
    assert not first["texts"].equals(other["texts"])


def test_all_models_that_look_back_on_one_of_two_tokens() -> None:
    setting = Tabulated()
    triples = {tuple(setting.models(p).values()) for p in range(setting.prompts)}
    assert triples == set(product(FUNCTIONS, repeat=3))
    assert len(triples) == setting.prompts == 729
    synthetic = Synthetic(setting)
    for p, prompt in enumerate(synthetic.prompts):
        for model, last in product((TARGET, SMALL, MIDDLE), (0, 1)):
            assert synthetic.next_token(model, [*prompt, last]) == setting.models(p)[model][last]
    assert {text[-1] == EOS for text in synthetic.texts} == {True, False}
    assert {len(text) for text in synthetic.texts} == {1, 2, 3}


# What the strategy covers.

WANTED = {
    "a perfect drafter": lambda s: s.small_rate == 1.0 and s.small_follows == TARGET,
    "a worthless drafter": lambda s: s.small_rate == 0.0 and s.small_follows == TARGET,
    "levels that follow one another": lambda s: s.small_follows == MIDDLE and 0 < s.middle_rate < 1,
    "one prompt": lambda s: s.prompts == 1,
    "blocks longer than texts": lambda s: s.block_length > s.output_tokens,
    "a text ended by an end of text": lambda s: any(t[-1] == EOS for t in Synthetic(s).texts),
    "a text ended by its length": lambda s: any(t[-1] != EOS for t in Synthetic(s).texts),
    "an empty block of a look-up": lambda s: any(not b for b in lookups(s)),
    "a full block of a look-up": lambda s: any(len(b) == s.block_length for b in lookups(s)),
    "a look-up whose block is right": lambda s: any(b and b[0] == t for b, (_, t) in looked_up(s)),
}


def looked_up(setting: Setting) -> list[tuple[list[int], tuple[list[int], int]]]:
    synthetic = Synthetic(setting)
    return [(synthetic.draft(LOOKUP, p[0], setting.block_length)[0], p) for p in places(synthetic)]


def lookups(setting: Setting) -> list[list[int]]:
    return [block for block, _ in looked_up(setting)]


@pytest.mark.parametrize("what", WANTED)
def test_drawn_settings_cover(what: str) -> None:
    find(settings_of(), WANTED[what], settings=SEARCH)


@pytest.mark.parametrize("what", sorted(set(WANTED) - {"one prompt", "blocks longer than texts"}))
def test_enumerated_settings_cover(what: str) -> None:
    assert any(WANTED[what](setting) for setting in all_settings(seeds=2))


def test_enumerated_settings_come_short_ones_first_and_once() -> None:
    found = list(all_settings(seeds=2))
    assert len(set(found)) == len(found)
    sizes = [setting.output_tokens for setting in found]
    assert sizes == sorted(sizes)


@given(settings_of(prompts=2, output_tokens=(5, 6), block_length=(2, 3)))
def test_bounds_are_kept(setting: Setting) -> None:
    assert setting.prompts <= 2
    assert 5 <= setting.output_tokens <= 6
    assert 2 <= setting.block_length <= 3


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"prompts": 0}, "prompts must be at least 1"),
        ({"output_tokens": 0}, "output_tokens"),
        ({"block_length": 0}, "block_length"),
        ({"order": 0}, "order"),
        ({"middle_rate": 1.1}, "middle_rate must be from 0 to 1"),
        ({"small_rate": float("nan")}, "small_rate"),
        ({"small_follows": LOOKUP}, "follows target or middle"),
    ],
)
def test_impossible_settings_are_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        replace(MANY, **changes)


def test_more_middles_than_functions_are_refused() -> None:
    with pytest.raises(ValueError, match="from 1 to 9"):
        Tabulated(10)


# Traces.


@given(synthetic_traces(prompts=2, output_tokens=(1, 8), block_length=(1, 4)))
@examples(0.4)
def test_a_drawn_trace_indexes_and_is_called_synthetic(synthetic: Synthetic) -> None:
    trace = synthetic.trace()
    assert trace.manifest.origin == "synthetic"
    assert trace.tokens.tolist() == [token for text in synthetic.texts for token in text]
    assert set(trace.drafters) == set(MODELS) - {TARGET}


@pytest.mark.parametrize("setting", [MANY, replace(MANY, seed=1, order=1, prompts=20), Tabulated(2)], ids=str)
def test_traces_pass_every_check_of_the_reader(setting: Setting | Tabulated, tmp_path: Path) -> None:
    synthetic = Synthetic(setting)
    trace = synthetic.load(tmp_path / "trace")
    assert trace.manifest.vocabulary == VOCABULARY
    assert set(trace.prompts["finish"]) == {"eos", "length"}
    for model in (SMALL, MIDDLE):
        assert trace.owns[model].tolist() == right(synthetic, model).tolist()


# Scenarios.


def test_every_chain_and_rule_is_there() -> None:
    found = list(all_scenarios([MANY]))
    pairs = {(s.chain, s.rule) for s in found}
    assert len(pairs) == len(found)
    assert pairs == {(c, r if c.drafter else None) for c, r in product(CHAINS, RULES)}


@pytest.mark.parametrize("chain", CHAINS, ids=lambda c: f"{c} {c.semantics}")
def test_every_chain_is_drawn(chain: Chain) -> None:
    find(scenarios(), lambda s: s.chain == chain, settings=SEARCH)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_rule_is_drawn(rule: object) -> None:
    find(scenarios(), lambda s: s.rule == rule, settings=SEARCH)


@given(scenarios(batch=3))
@examples(0.4)
def test_drawn_scenarios_replay(scenario: Scenario) -> None:
    runs = replay(scenario)
    batches = in_batches(scenario.setting.prompts, scenario.batch)
    assert batches.shape[1] == scenario.batch
    assert set(batches.ravel().tolist()) == set(range(scenario.setting.prompts))
    times = price(scenario, runs, batches)
    assert (times.seconds > 0).all()
    if scenario.prices is not None:  # exact: a whole number of eighths
        assert (times.seconds * 8 == np.round(times.seconds * 8)).all()
    assert scenario.plain.rule is None


def test_a_chain_and_its_rule_go_together() -> None:
    with pytest.raises(ValueError, match="needs one"):
        Scenario(MANY, Chain((SMALL, TARGET)))
    with pytest.raises(ValueError, match="needs one"):
        Scenario(MANY, Chain((TARGET,)), Static(2))
    with pytest.raises(ValueError, match="batch must be at least 1"):
        Scenario(MANY, Chain((TARGET,)), batch=0)


def test_prices_are_what_they_say() -> None:
    """Two requests of 3 tokens and 5 cached: 2 + 1 x 6 + 1 x 10 = 18 s of the target, 9 of the middle."""
    from simspec.cost.shape import uniform

    cost = Prices(2, token=1, context=1, middle=Fraction(1, 2)).model()
    shape = uniform(np.array([2]), np.array([3]), np.array([5]))
    assert cost.forward_seconds(TARGET, shape).tolist() == [18.0]
    assert cost.forward_seconds(MIDDLE, shape).tolist() == [9.0]


def test_decoding_token_by_token_counts_what_it_says() -> None:
    """A perfect drafter of 2 tokens, a text of 8: 3 + 3 + 2, the last with 1 draft as there is room for 2."""
    setting = Setting(seed=2, prompts=1, output_tokens=8, block_length=4, middle_rate=1.0, small_rate=1.0)
    assert EOS not in Synthetic(setting).texts[0]
    cycles = decode(Scenario(setting, Chain((SMALL, TARGET)), Static(2)), 0)
    assert COUNTED == ("drafted", "submitted", "width", "accepted", "emitted")
    assert [c.counts for c in cycles] == [(2, 2, 3, 2, 3), (2, 2, 3, 2, 3), (1, 1, 2, 1, 2)]
    assert [t for c in cycles for t in c.emitted] == Synthetic(setting).texts[0]


def test_shares_that_floats_cannot_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="1/3 of a forward is not exact"):
        Prices(1, small=Fraction(1, 3))


def test_a_scenario_says_how_long_its_drafts_are() -> None:
    assert str(Scenario(MANY, Chain((SMALL, TARGET)), Static(2))) == "small > target with draft length 2"
    assert str(Scenario(MANY, Chain((TARGET,)))) == "target plainly"


def test_a_scheduler_picks_each_cycle() -> None:
    """A perfect drafter of 2 tokens and plain decoding by turns, a text of 8: 3 + 1 + 3 + 1."""
    setting = Setting(seed=2, prompts=1, output_tokens=8, block_length=4, middle_rate=1.0, small_rate=1.0)
    schedules = (Schedule(Chain((SMALL, TARGET)), Static(2)), Schedule(Chain((TARGET,))))
    cycles = decode_scheduled(Synthetic(setting), 0, schedules, TakeTurns())
    assert [c.chosen for c in cycles] == [0, 1, 0, 1]
    assert [len(c.emitted) for c in cycles] == [3, 1, 3, 1]
    assert [t for c in cycles for t in c.emitted] == Synthetic(setting).texts[0]


def test_a_rule_keeps_its_state_while_another_schedule_has_its_turn() -> None:
    """Two more after a block that was right: 1 and then 3 drafts, whatever comes between."""
    setting = Setting(seed=2, prompts=1, output_tokens=8, block_length=4, middle_rate=1.0, small_rate=1.0)
    schedules = (Schedule(Chain((SMALL, TARGET)), G4(first=1)), Schedule(Chain((TARGET,))))
    cycles = decode_scheduled(Synthetic(setting), 0, schedules, TakeTurns())
    assert [c.counts[1] for c in cycles] == [1, 0, 3, 0]


@given(
    settings_of(prompts=2, output_tokens=(1, 12), block_length=(1, 5)), st.integers(0, 9), st.integers(0, 99)
)
def test_models_with_another_future_live_the_same_past(setting: Setting, cycle: int, luck: int) -> None:
    scenario = Scenario(setting, Chain((SMALL, MIDDLE, TARGET), "funnel-replace"), Static(3))
    before = decode(scenario, 0)
    c = cycle % len(before)
    models, schedule = Synthetic(setting), Schedule(scenario.chain, scenario.rule)
    since = [*models.prompts[0], *(token for one in before[:c] for token in one.emitted)]
    other = OtherFuture(setting, since, luck)
    assert decode_scheduled(other, 0, (schedule,), Fixed())[:c] == before[:c]
    for model in (TARGET, SMALL, MIDDLE):
        assert other.confidence(model, since) != models.confidence(model, since)


@given(st.integers(0, 10**6), st.integers(0, 30), st.integers(0, 4))
def test_another_future_has_the_same_past(luck: int, at: int, drafted: int) -> None:
    trace = recorded(replace(MANY, prompts=3))
    at = min(at, len(trace.tokens) - 1)
    index = trace.drafters[SMALL]
    drafted = min(drafted, int(index.length[at]))
    other = with_other_future(trace, SMALL, at, drafted, luck)
    changed = other.drafters[SMALL]
    for was, now in (
        (index.matched, changed.matched),
        (index.length, changed.length),
        (index.confidence, changed.confidence),
        (index.agreed[MIDDLE], changed.agreed[MIDDLE]),
        (trace.owns[MIDDLE], other.owns[MIDDLE]),
    ):
        np.testing.assert_array_equal(was[:at], now[:at])
    np.testing.assert_array_equal(index.confidence[at, :drafted], changed.confidence[at, :drafted])
    assert changed.length[at] >= drafted
    assert (changed.matched <= changed.length).all()
    assert (changed.confidence[np.arange(MANY.block_length)[None] >= changed.length[:, None]] == 0).all()


def test_another_future_is_another_one() -> None:
    trace = recorded(replace(MANY, prompts=3))
    changed = with_other_future(trace, SMALL, 0, 0, luck=1).drafters[SMALL]
    assert (changed.matched != trace.drafters[SMALL].matched).any()
    assert (changed.confidence != trace.drafters[SMALL].confidence).any()


def test_listing_strategies_and_claims_loads_no_tables() -> None:
    """pandas and pyarrow take longer to load than all of the rest: only a trace that is made needs them."""
    modules = "simspec.strategies.scenarios, simspec.claims.ledger"
    code = f"import sys, {modules}; print(*({{'pandas', 'pyarrow'}} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []
