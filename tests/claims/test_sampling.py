"""Exact distributions of sampled text: how they are composed, and the claims tied to the code that runs."""

from __future__ import annotations

import inspect
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.claims.base import Against
from simspec.claims.lossless import (
    acting,
    early_emit,
    length_cases,
    length_criterion,
    length_rules,
    length_scans,
    sampled_cases,
    sampling,
)
from simspec.claims.lossless.chance import State, Texts, beginnings, compared, joint, own_joint, parting
from simspec.claims.lossless.cycles import OneByOne, Rule, arrays, decode, drawn, play, submitting
from simspec.claims.lossless.faulty_judges import AsDrafted, Fresh, Trusting, after_another, late, seldom
from simspec.claims.lossless.luck import EveryLuck, every
from simspec.speculation import lengths, lengths_libraspec, lengths_thresholds
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import (
    G4,
    Decision,
    ExactMarginal,
    LengthRule,
    LibraSpec,
    Stateless,
    Static,
    View,
    expected_tokens,
)
from simspec.speculation.lengths_libraspec import ClampedLibraSpec, RepairedLibraSpec, TheoremLibraSpec
from simspec.speculation.lengths_thresholds import FailFast, SpecDecPlusPlus, Svip, WeakToken
from simspec.speculation.verify import NOTHING, RejectionJudge
from simspec.strategies.costs import Curve
from simspec.strategies.distributions import all_distributions, normalised
from simspec.strategies.models import Chances, Table, Text, distribution_levels

EVEN, UNEVEN = (Table(2, 0, (normalised(w),)) for w in ((1, 1), (3, 1)))


@given(models=distribution_levels(3, 2, 1), semantics=st.sampled_from(["funnel-truncate", "funnel-replace"]))
def test_cycles_compose_to_whole_texts(models, semantics):
    """A text cycle by cycle has the distribution of whole decodings, and no weight is lost."""
    held = [arrays(model) for model in models]
    chain = Chain(("a", "b", "c"), semantics)
    whole = every(lambda luck: decode(chain, RejectionJudge(luck), held, drawn(held[0], luck, 2), 3))
    assert sum(whole.values()) == 1
    assert sampled_cases.texts_of(sampled_cases.Case(semantics, 2, 3, models)) == whole


def test_every_luck_weighs_what_it_chose():
    """A coin of 1/3, and after heads another of 1/4: by hand 1/12, 3/12 and 8/12."""

    def run(luck: EveryLuck) -> tuple[bool, ...]:
        first = luck.happens(Fraction(1, 3), 1)
        return (first, luck.happens(1, 4)) if first else (first,)

    assert every(run) == {
        (True, True): Fraction(1, 12),
        (True, False): Fraction(3, 12),
        (False,): Fraction(8, 12),
    }


def test_a_difference_is_told_at_the_shortest_beginning():
    half = Fraction(1, 2)
    same, other = {(0, 0): half, (1, 1): half}, {(0, 1): half, (1, 1): half}
    assert parting(same, same) is None
    assert beginnings(other, 1) == {(0,): half, (1,): half}
    assert parting(same, other) == (0, 0)


FAULTS = [Fresh, AsDrafted, Trusting, late(Fresh, 1), seldom(AsDrafted), after_another(Trusting)]


@given(
    models=distribution_levels(3, 2, 1),
    semantics=st.sampled_from(["funnel-truncate", "funnel-replace", "early-emit"]),
    fault=st.sampled_from(FAULTS),
)
def test_the_ways_of_a_counterexample_add_up(models, semantics, fault):
    """What is told of a probability is all of it: each way's product, and the sum over the ways."""
    case = sampled_cases.Case(semantics, 2, 3, models)
    outcome = compared(sampled_cases.step_of(case, fault), case.own, lambda: ())
    texts = sampled_cases.texts_of(case, fault)
    begins = parting(texts, case.own)
    assert (outcome is None) == (begins is None)
    if begins is None:
        return
    assert isinstance(outcome, Against)
    ways = [line for line in outcome.working if line.startswith("- ")]
    told = sum((Fraction(line.split()[-1]) for line in ways), Fraction(0))
    assert told == beginnings(texts, len(begins)).get(begins, 0)
    assert f"with probability {told};" in outcome.working[-1]
    for line in ways:
        *_, product_, total = line.replace(": ", " = ").split(" = ")
        if " x " in product_:
            factors = [Fraction(factor) for factor in product_.split(" x ")]
            assert np.prod(np.array(factors, dtype=object)) == Fraction(total)


@pytest.mark.parametrize(("right", "wrong_at"), [(0, 1), (1, 2), (2, 3)])
def test_a_late_fault_shows_no_earlier(right, wrong_at):
    """With a fault from place ``right`` + 1 on, beginnings of ``right`` tokens are the target's own."""
    case = sampled_cases.Case("none", 3, 4, sampled_cases.memoryless((0, 1), (3, 1)))
    begins = parting(sampled_cases.texts_of(case, late(Fresh, right)), case.own)
    assert begins is not None
    assert len(begins) == wrong_at


@pytest.mark.parametrize("level", [0, 1])
def test_every_enumerated_chain_drafts(level):
    """A text too short for a draft to be asked for would pass any claim; nested chains need longer ones."""
    for statement in (sampling.S5_STATEMENT, sampling.S5C_STATEMENT, sampling.S33_STATEMENT):
        assert statement.every is not None
        for case in statement.every(level):
            asked: list[int] = []

            def none(text, most, asked=asked):
                asked.append(most)
                return NOTHING

            models = [arrays(model) for model in case.models]
            every(
                lambda luck, c=case, m=models, d=none: (
                    play(c.chain, RejectionJudge(luck), m, d, (), c.want).kept
                )
            )
            assert max(asked, default=0) >= case.length, case


@pytest.mark.parametrize("level", [0, 1])
def test_blocks_of_three_are_drafted_in_every_kind_of_chain(level):
    """What is wrong from a block's third place on would not be seen in shorter ones."""
    for statement in (sampling.S5_STATEMENT, sampling.S5C_STATEMENT, sampling.S33_STATEMENT):
        assert statement.every is not None
        assert any(case.length == 3 and len(case.models) == 3 for case in statement.every(level))


# The simulator's length rules, as they are.

# One step up that any number of drafts shares, and one for every draft.
STEP: Curve = tuple(map(Fraction, (4, 7, 7, 7)))
SLOPE: Curve = tuple(map(Fraction, (4, 5, 6, 7)))
# A step that even odds do not pay for: a first draft is then worth it only where a later one is likely.
LEAP: Curve = tuple(map(Fraction, (4, 9, 9, 9)))

RULES: list[LengthRule] = [
    Static(0),
    Static(2),
    G4(first=1, up=1, down=1, longest=3),
    G4(first=2, up=2, down=2, longest=3),
    ExactMarginal(),
    ExactMarginal(longest=2),
    LibraSpec(1.0, 3, 4),
    ClampedLibraSpec(1.0, 3, 4),
    TheoremLibraSpec(1.4, 3, 4),
    TheoremLibraSpec(1.4, 1, 4),
    TheoremLibraSpec(2.1, 2, 3),
    RepairedLibraSpec(3, 4),
    WeakToken(0.6, 3),
    FailFast(0.6, 1, 3),
    FailFast(0.6, 2, 3),
    Svip(longest=3),
    SpecDecPlusPlus(0.3, 1, 3),
    SpecDecPlusPlus(0.7, 2, 3),
]


def texts_under(rule: LengthRule, drafter: Chances, target: Chances, seconds: Curve, want: int) -> Texts:
    """Sampled texts of a pair with a rule as the simulator has it: its decisions, and what it learns."""
    models = [arrays(target)] * 2
    place = OneByOne(drafter).place
    depth = len(seconds) - 1

    def step(luck: EveryLuck, text: Text, state: State, room: int) -> tuple[Text, State]:
        before = np.array([state], dtype=np.float64)
        most = min(room - 1, depth)

        def submitted(tokens: Text, rows) -> int:
            confidence, entropy = np.zeros((1, depth)), np.zeros((1, depth))
            confidence[0, : len(rows)] = [float(max(row)) for row in rows]
            entropy[0, : len(rows)] = [length_rules.entropy(row) * np.log(2) for row in rows]
            view = View(confidence, np.array([most]), np.array([[float(s) for s in seconds]]), entropy)
            return min(int(rule.decide(view, before).submitted[0]), most)

        done = play(
            length_cases.PAIR,
            RejectionJudge(luck),
            models,
            submitting(Rule(submitted), place, luck, most),
            text,
            room,
        )
        carried = Decision(np.array([len(done.block)]), np.array([len(done.block)]))
        after = rule.observe(before, carried, np.array([done.kept]))
        return tuple(done.emitted.tolist()), float(after[0])

    return joint(step, want, float(rule.begin(1)[0]))


def test_every_length_rule_is_looked_at():
    """A rule that is new in the simulator must come into the list above."""
    rules = {
        kind
        for module in (lengths, lengths_libraspec, lengths_thresholds)
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if "sampling_safe" in dir(kind) and kind not in (LengthRule, Stateless)
    }
    assert rules == {type(rule) for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_rule_says_whether_sampling_is_lossless_under_it(rule):
    """Claim L16 and ``sampling_safe``: safe rules lose nothing for any of these models, others for some."""
    lost = [
        values
        for seconds in (STEP, SLOPE, LEAP)
        for values in product(all_distributions(2, 2), repeat=3)
        for target in (EVEN, UNEVEN)
        if texts_under(rule, Table(2, 1, values), target, seconds, 4) != own_joint(arrays(target), 2, 4)
    ]
    assert rule.sampling_safe == (not lost)


def test_libraspec_is_lossy_at_the_papers_alpha_too():
    """Claim L16h: alpha 2, one block; three tokens, so that a greatest probability can be 1/3.

    By hand: the drafter says a third each, and after a 0 surely 0. If the first token is 1, the length is 2
    or more only where the second is 0, so 1 0 is submitted and accepted, and where the second is not 0 it is
    drawn anew: P(1 0) = 1/3 (1/3 + 2/3 x 1/3) = 5/27, not 1/9.
    """
    claim = length_scans.L16H
    found = length_cases.texts_of(claim.pinned, length_rules.libraspec(claim.pinned.setting))
    assert beginnings(found, 2)[1, 0] == Fraction(5, 27)
    assert beginnings(claim.pinned.own, 2)[1, 0] == Fraction(1, 9)


@given(
    confidence=st.lists(st.integers(0, 8).map(lambda k: k / 8), min_size=1, max_size=6),
    rises=st.lists(st.integers(0, 3), min_size=6, max_size=6),
)
def test_the_scan_of_the_claims_is_the_simulators_sum(confidence, rises):
    """Claims L16c, L16e, L16f: the length is where the simulator's expected tokens a second are most."""
    seconds = tuple(Fraction(2 + sum(rises[:n])) for n in range(len(confidence) + 1))
    found = length_rules.best_length([Fraction(q) for q in confidence], seconds)
    rates = expected_tokens(np.array([confidence]))[0] / np.array(seconds, dtype=float)
    assert rates[found] == pytest.approx(rates.max(), rel=1e-12)
    assert (rates[:found] < rates[found] * (1 - 1e-12)).all()


def test_how_many_rules_are_safe():
    """Claims L16 and S32. By hand: no draft ever, or the first always and then, after each first token, as
    for a block that is shorter by one (2 x 2 for two drafts, 5 x 5 for three, 2 x 2 x 2 for three tokens);
    and cuts at 0 to n of blocks of n."""
    rules = [length_criterion.Lengths(2, 2, submitted) for submitted in product(range(3), repeat=4)]
    safe = [rule for rule in rules if length_criterion.by_tokens_before(rule)]
    assert len(safe) == 1 + 4
    assert {*safe} == {*length_criterion.safe_rules(2, 2)}
    assert len([*length_criterion.safe_rules(2, 3)]) == 1 + 25
    assert len([*length_criterion.safe_rules(3, 2)]) == 1 + 8
    assert all(map(length_criterion.by_tokens_before, length_criterion.safe_rules(2, 3)))
    assert [sum(map(acting.is_cut, acting.rules(n))) for n in (1, 2, 3)] == [2, 3, 4]


@given(submitted=st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_one_pair_of_models_tells_every_unsafe_rule(submitted):
    """Claim L16's proof: drafter = target with a prime denominator of its own after each text."""
    rule = length_criterion.Lengths(2, 3, tuple(submitted))
    drafter, target = next(length_criterion.witnesses(rule))
    case = length_cases.Case(None, 3, 4, OneByOne(drafter), target)
    texts = length_cases.texts_of(case, Rule(lambda tokens, rows: rule.of(tokens)))
    assert (texts == case.own) == length_criterion.by_tokens_before(rule)


def test_early_emit_below_the_target_itself():
    """Claim S34, by hand: q1 = (1, 0), q2 = p = (1/2, 1/2). Token 0 survives with 1/2, else p: 1/2 + 1/4."""
    outcome = early_emit.S34.statement.rule(early_emit.S34.pinned)
    assert isinstance(outcome, Against)
    assert "begins with 0 with probability 3/4" in outcome.working[-1]
    assert "together 1/2 + 1/4 = 3/4" in outcome.working
