"""Anchors printed in papers, and two roads to the same expected cycle."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.claims.base import Against, Claim, Effort, decide
from simspec.claims.chains import cascades, polybasic, third_level
from simspec.claims.chains.walked import Cascade, walked_cascade
from simspec.strategies.survivals import chances
from simspec.theory import chains
from simspec.theory import third_level as theory
from simspec.theory.acceptance import emitted_tokens

HALF = Fraction(1, 2)


def test_cs_drafting_prints_4_257_tokens_for_the_power_and_not_the_iterate_of_phi() -> None:
    """CS-Drafting (2312.11462) after Thm 4.3: alpha .8, inner .7, n 3, k 4."""
    alpha, inner = Fraction(4, 5), Fraction(7, 10)
    assert float(theory.cascade_tokens(alpha, inner, 3, 4)) == pytest.approx(4.257, abs=5e-4)
    assert theory.cascade_tokens(0.8, 0.7, 3, 4) == pytest.approx(4.257, abs=5e-4)
    x = alpha
    for _ in range(3):
        x = theory.phi(inner, 4, x)
    assert float((1 - alpha * x) / (1 - alpha)) == pytest.approx(4.558, abs=5e-4)


@given(chances(), st.integers(0, 5))
def test_phi_is_a_generating_function(inner: Fraction, reviewed: int) -> None:
    assert theory.phi(inner, reviewed, Fraction(1)) == 1
    assert theory.phi(inner, reviewed, Fraction(0)) == 0


def test_phi_as_printed() -> None:
    """1 + (x - 1)(1 - a^(k+1) x^(k+1)) / (1 - a x): a 1/2, k 1, x 1/2: 1 - 1/2 (1 - 1/16) / (3/4) = 3/8."""
    assert theory.phi(HALF, 1, HALF) == Fraction(3, 8)


def test_the_ledgers_first_numbers_for_a_slope() -> None:
    """slope .2, c .3, n 2, alpha .2: 1.24 tokens for 1 + .4 + .6 = 2; .39 is 1.243 for 1 + .2 x 8 + .6."""
    alpha, slope, cost = Fraction(1, 5), Fraction(1, 5), Fraction(3, 10)
    assert theory.emitted(alpha, 2) / theory.pair_seconds(2, cost, slope) == Fraction(62, 100)
    tokens = theory.cascade_tokens(alpha, alpha, 2, 4)
    assert float(tokens / (1 + slope * 8 + 2 * cost)) == pytest.approx(0.39, abs=0.005)
    read = [float(_speed(alpha, Fraction(inner, 10), cost, slope)) for inner in (2, 5, 10)]
    assert read == pytest.approx([0.48, 0.44, 0.31], abs=0.005)


def _speed(alpha: Fraction, inner: Fraction, cost: Fraction, slope: Fraction) -> Fraction:
    walked = walked_cascade(Cascade(alpha, inner, 2, 4, cost, slope))
    return walked.tokens / walked.seconds


@given(chances(), st.integers(0, 6))
def test_emitted_tokens_agree_with_what_the_simulator_uses(rate: Fraction, drafts: int) -> None:
    assert float(theory.emitted(rate, drafts)) == pytest.approx(float(emitted_tokens(float(rate), drafts)))


LEAST, MOST = Fraction(0), Fraction(9)


@given(
    chances(),
    chances(),
    st.builds(theory.Costs, *[st.fractions(LEAST, MOST, max_denominator=10)] * 5),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_closed_forms_agree_with_the_law_followed_from_level_to_level(
    lower: Fraction, upper: Fraction, costs: theory.Costs[Fraction], drafts: int, rounds: int
) -> None:
    """simspec.theory.chains follows the block's length as a Markov chain; here are sums in closed form."""
    law = theory.independent(lower, upper)

    def verify(level: int, width: Fraction) -> Fraction:
        return costs.middle(width) if level == 2 else costs.target(width)

    rates = (lower, upper)
    for form, replace in ((theory.truncate, False), (theory.replace, True)):
        found = form(law, costs, drafts)
        assert found.seconds / found.tokens == chains.exact(
            rates, drafts, costs.draft, verify, replace=replace
        )
    found = theory.nested(lower, upper, costs, rounds, drafts)
    assert found.seconds / found.tokens == chains.exact_rounds(rates, drafts, rounds, costs.draft, verify)


def test_eq_3_is_the_one_that_ranks_chains() -> None:
    lengths, seconds = (Fraction(5), Fraction(3)), (Fraction(22), Fraction(7), Fraction(4))
    said = theory.polybasic_seconds(lengths, seconds, Fraction(2))
    # 22/5 + 7/3 + 2 x 4/3
    assert said == Fraction(47, 5)
    assert float(np.asarray(chains.polybasic(lengths, seconds, Fraction(2)))) == pytest.approx(9.4)


def test_a_target_that_accepts_less_after_an_insertion_makes_the_first_right_side_negative() -> None:
    """Polybasic's third reported case is of this sort (.800 < -.116); printed without its sign (.117) it
    would still say no."""
    one = theory.Insertion(10.0, 8.0, 1.0, 1.0, 3.0, 2.5, 2.0)
    assert one.saved_above < 0
    assert not one.published
    assert not one.exact


@pytest.mark.parametrize(
    "claim", [polybasic.S12, polybasic.S12B, polybasic.S42, cascades.S11B], ids=lambda c: c.id
)
def test_a_counterexample_is_found_without_the_pinned_one(claim: Claim) -> None:
    assert decide(claim.statement, Effort(), claim.id).verdict == "refuted"


def test_s12_pins_the_smallest_case_with_a_drafter_that_is_accepted() -> None:
    """Among whole seconds up to 9, 1 or 2 rounds, 1 or 2 drafts, acceptance 1/2 or 1."""
    against = [
        case
        for case in polybasic._insertions(1)
        if case.lower and case.upper and isinstance(polybasic.S12.statement.rule(case), Against)
    ]
    assert against[0] == polybasic.S12.pinned


def test_where_the_targets_cost_is_flat_truncation_never_pays_and_replacement_has_a_threshold() -> None:
    """Corollaries that the proofs of S43 and S44 name, over a grid of place laws."""
    for law, drafts in product(third_level._laws(4), (1, 2, 3)):
        for middle in (Fraction(1, 10), HALF, Fraction(1)):
            costs = theory.Costs(Fraction(1, 10), middle, Fraction(0), Fraction(1), Fraction(0))
            pair = theory.pair(law, costs, drafts)
            assert not theory.truncate(law, costs, drafts).faster_than(pair)
            if law.only_outer:
                continue
            # A middle whose slope is the target's does not pay by truncating either.
            sloped = theory.Costs(Fraction(1, 10), Fraction(0), Fraction(1), middle, Fraction(1))
            assert not theory.truncate(law, sloped, drafts).faster_than(theory.pair(law, sloped, drafts))
            grown = law.all_agree ** (drafts + 1) / theory.emitted(law.all_agree, drafts)
            pays = middle / pair.seconds < law.only_upper + grown
            assert theory.replace(law, costs, drafts).faster_than(pair) == pays
