"""The ledger's example, and how near the bounds on adapting come to what adapting gains."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.claims.base import Claim, Effort, decide
from simspec.claims.scheduling import adaptive as adapting
from simspec.claims.scheduling import dynamic_program, hindsight, kinds, on_traces, own_ratio, texts
from simspec.replay import lockstep, trajectories
from simspec.speculation.lengths import Static
from simspec.strategies.costs import affine
from simspec.strategies.made_up_models import LOOKUP, Setting, settings_of
from simspec.strategies.survivals import survival
from simspec.theory import renewal

ONE, HALF = Fraction(1), Fraction(1, 2)
LEDGER = hindsight.Text((1, 1, 1, 1, 1, 0) * 10, ((0, ONE), (2, Fraction(3, 2)), (4, Fraction(12, 5))))


def test_the_ledgers_example_of_hindsight_takes_34_and_two_drafts_30() -> None:
    """A stretch of 6: 4 drafts make 5 tokens in 2.4 and the sixth costs 1; two cycles of 2 drafts cost 3."""
    assert hindsight.least_seconds(LEDGER, hindsight.hindsight)[0] == 34
    assert hindsight.least_seconds(LEDGER, hindsight.only(1))[0] == 30
    assert hindsight.least_seconds(LEDGER, hindsight.any_scheme)[0] == 30


def test_no_text_of_two_tokens_refutes_hindsight_with_these_prices() -> None:
    smaller = [case for case in hindsight._texts(1, ((0, 1, 2),), range(1, 9)) if len(case.agreed) < 3]
    assert len(smaller) > 100
    assert all(hindsight.S10.statement.rule(case) is None for case in smaller)


@given(st.lists(st.sampled_from([1, 1, 0]), min_size=1, max_size=6), st.data())
def test_least_seconds_is_the_least_over_all_schedules_one_by_one(
    agreed: list[int], data: st.DataObject
) -> None:
    prices = data.draw(st.lists(st.integers(1, 9), min_size=3, max_size=3))
    text = hindsight.Text(tuple(agreed), tuple(zip((0, 1, 3), map(Fraction, prices), strict=True)))
    times = []
    for schedule in product(range(3), repeat=len(agreed)):
        at, seconds = 0, Fraction(0)
        for i in schedule:
            if at < len(agreed):
                at, seconds = text.end(at, text.schemes[i][0]), seconds + text.schemes[i][1]
        times.append(seconds)
    assert hindsight.least_seconds(text, hindsight.any_scheme)[0] == min(times)


@pytest.mark.parametrize("claim", [hindsight.S10, own_ratio.L17, texts.S47B], ids=lambda c: c.id)
def test_a_counterexample_is_found_without_the_pinned_one(claim: Claim) -> None:
    assert decide(claim.statement, Effort(), claim.id).verdict == "refuted"


def test_all_schedules_are_walked() -> None:
    """Three places, nothing agreed: every cycle makes one token, so 3 x 3 x 3 schedules."""
    scene = dynamic_program.Scene(((0, 0, 0), (0, 0, 0)), ((0, 0), (0, 1), (1, 2)), (0, 1), (4, 1), 1)
    walked = list(dynamic_program.all_schedules(scene))
    assert len(walked) == 27
    # Plain decoding: three forwards of one token at 4 + 1.
    assert {taken: seconds for seconds, taken in walked}[0, 0, 0] == 15
    # Plain, then drafter 0 reads two tokens (2) and one draft is verified (4 + 2), a switch (1); then plain
    # again after another switch.
    assert {taken: seconds for seconds, taken in walked}[0, 1, 0] == 5 + (2 + 6 + 1) + (5 + 1)


@given(kinds.random_kinds(own_costs=True))
def test_dinkelbachs_iteration_finds_the_best_policy(case: kinds.Kinds) -> None:
    assert renewal.best_rate(case.weights, case.tokens, case.curves) == case.best()[0]


def test_the_bounds_follow_from_one_another() -> None:
    """excess <= spread <= the bound by the rate's variance, as squares."""
    for case in adapting._constant_kinds(1):
        spread = renewal.spread(case.weights, [survival(p) for p in case.accepted])
        depth = len(case.accepted[0])
        rates = [p[0] for p in case.accepted]
        assert renewal.excess(case.weights, case.tokens) <= spread
        assert spread**2 <= renewal.spread_squared_at_most(case.weights, rates, depth)


@pytest.mark.parametrize("half_gap", [Fraction(1, 10), Fraction(1, 100)])
def test_the_spread_is_reached_but_for_a_factor_that_goes_to_one(half_gap: Fraction) -> None:
    """One place, probability h or 0 equally often, T(d) = 1 + d h/2: 1/(1 + h/4) of the bound."""
    case = kinds.Kinds((ONE, ONE), ((half_gap,), (Fraction(0),)), (affine(ONE, half_gap / 2, 1),))
    adaptive, static = adapting.gain(adapting._of_lengths(case))
    bound = renewal.spread(case.weights, [survival(p) for p in case.accepted])
    assert (adaptive - static) / bound == 1 / (1 + half_gap / 4)


def test_how_much_of_the_spread_usual_settings_reach() -> None:
    """Rates .9 and .5 equally often, up to 8 drafts, T = 10 + d: 2.63 against 2.26, bound 1.03 more."""
    rates = (Fraction(9, 10), HALF)
    case = kinds.Kinds((ONE, ONE), tuple((a,) * 8 for a in rates), (affine(Fraction(10), ONE, 8),))
    adaptive, static = adapting.gain(adapting._of_lengths(case))
    bound = renewal.spread(case.weights, [survival(p) for p in case.accepted])
    assert float(adaptive) == pytest.approx(2.63, abs=0.005)
    assert float(static) == pytest.approx(2.26, abs=0.005)
    assert float(bound) == pytest.approx(1.03, abs=0.005)


def test_on_a_text_the_bound_for_kinds_drawn_afresh_fails() -> None:
    """Wrong 4 times, right once, repeated; plain 1, a draft 13/10 (as 10 and 13).

    Decoding plainly from place 1 to 3 and drafting at 4 makes 5 tokens in 3 + 1.3: 50/43. Ahead is place 4
    alone, by 2 - 6/5, a fifth of the time: 4/25.
    """
    case = texts.S47B.pinned
    assert texts.best(case) == (Fraction(50, 43), (4, 1, 2, 3))
    assert texts.best_single(case) == 1
    assert texts.ahead(case) == Fraction(4, 25)


def test_counting_the_schedules_own_cycles_alone_the_bound_may_be_nothing() -> None:
    """Wrong once, right 3 times: 1, then 3 tokens in 10 + 16 s, from places that are alike; 1 draft always
    makes 4 in 28."""
    case = texts.Loop((0, 1, 1, 1), ((0, 10), (1, 14), (2, 16)))
    speed, begins = texts.best(case)
    assert speed - texts.best_single(case) == Fraction(40, 26) - Fraction(40, 28) == Fraction(10, 91)
    assert sorted(begins) == [1, 2]
    assert texts.ahead(case, own_cycles=True) == 0 < texts.ahead(case)


@given(texts._random_loops())
def test_a_stretch_repeated_often_is_decoded_as_fast_as_without_end(case: texts.Loop) -> None:
    """But for less than a cycle's time at either end: the other program for schedules of a text, S10's."""
    again = 40
    schemes = tuple((drafts, Fraction(seconds)) for drafts, seconds in case.schemes)
    text = hindsight.Text(case.agreed * again, schemes)
    seconds = hindsight.least_seconds(text, hindsight.any_scheme)[0]
    endless = case.schemes[0][1] * len(text.agreed) / texts.best(case)[0]
    assert abs(seconds - endless) <= 2 * len(case.agreed) * case.schemes[-1][1]


@given(
    settings_of(prompts=2, output_tokens=(1, 8), block_length=(1, 4)),
    st.integers(0, len(on_traces.SCHEMES) - 1),
)
def test_a_scheme_lived_through_takes_what_replay_says(setting: Setting, scheme: int) -> None:
    chain, length = on_traces.SCHEMES[scheme]
    models, trace = on_traces._recorded(setting)
    rule = Static(length) if chain.drafter else None
    runs = trajectories.run(trace, chain, rule, trace.offsets[:-1])
    alone = np.arange(len(trace.prompts))[:, None]
    for prices in (on_traces.RISING, on_traces.UNEVEN):
        priced = lockstep.price(runs, alone, [prices], lookup=chain.drafter == LOOKUP)[0].seconds
        lived = [on_traces.least(models, prices, p, (scheme,)) for p in range(len(models.prompts))]
        assert priced.tolist() == lived
