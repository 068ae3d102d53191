"""Anchors printed in papers, and two roads to the same expected cycle."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.claims.base import Against, Claim, Effort, decide
from simspec.claims.chains import inserted, polybasic, sloped_cascades, third_level
from simspec.claims.chains.walked import Cascade, cascade_tokens, right_by_round, walked_cascade
from simspec.strategies.survivals import chances
from simspec.theory import chains, exact_chains
from simspec.theory import third_level as theory
from simspec.theory.acceptance import emitted_tokens

HALF = Fraction(1, 2)


@given(chances(), st.integers(0, 5))
def test_phi_is_a_generating_function(inner: Fraction, reviewed: int) -> None:
    """Of a number of at least 1."""
    assert chains.round_generating((inner,), reviewed, (), Fraction(1)) == 1
    assert chains.round_generating((inner,), reviewed, (), Fraction(0)) == 0


def test_phi_as_printed() -> None:
    """1 + (x - 1)(1 - a^(k+1) x^(k+1)) / (1 - a x): a 1/2, k 1, x 1/2: 1 - 1/2 (1 - 1/16) / (3/4) = 3/8."""
    assert chains.round_generating((HALF,), 1, (), HALF) == Fraction(3, 8)


def test_the_ledgers_first_numbers_for_a_slope() -> None:
    """slope .2, c .3, n 2, alpha .2: 1.24 tokens for 1 + .4 + .6 = 2; .39 is 1.243 for 1 + .2 x 8 + .6."""
    alpha, slope, cost = Fraction(1, 5), Fraction(1, 5), Fraction(3, 10)
    alone = theory.pair(alpha, theory.relative(Fraction(0), cost, slope), 2)
    assert (alone.tokens, alone.seconds) == (Fraction(124, 100), 2)
    tokens = chains.round_tokens((alpha, alpha), 4, (2,))
    assert float(tokens / (1 + slope * 8 + 2 * cost)) == pytest.approx(0.39, abs=0.005)
    read = [float(_speed(alpha, Fraction(inner, 10), cost, slope)) for inner in (2, 5, 10)]
    assert read == pytest.approx([0.48, 0.44, 0.31], abs=0.005)


def _speed(alpha: Fraction, inner: Fraction, cost: Fraction, slope: Fraction) -> Fraction:
    walked = walked_cascade(Cascade(alpha, inner, 2, 4, cost, slope))
    return walked.tokens / walked.seconds


@given(chances(), st.integers(0, 6))
def test_emitted_tokens_are_their_sum(rate: Fraction, drafts: int) -> None:
    """As fractions, also at rates 0 and 1; tests/unit/test_theory.py has the floats."""
    assert emitted_tokens(rate, drafts) == sum(rate**j for j in range(drafts + 1))


LEAST, MOST = Fraction(0), Fraction(9)


@given(chances(), chances(), st.integers(1, 4), st.integers(1, 4))
def test_relative_costs_are_those_of_theorem_4_3(
    middle: Fraction, lower: Fraction, rounds: int, reviewed: int
) -> None:
    """Without a slope a cycle costs 1 + n c_d1 + n k c_d2, whatever is accepted; with one, a forward over w
    tokens 1 + slope (w - 1) times its first."""
    flat = theory.relative(middle, lower, Fraction(0))
    found = theory.nested(HALF, HALF, flat, rounds, reviewed)
    assert found.seconds == 1 + rounds * (middle + reviewed * lower)
    sloped = theory.relative(middle, lower, HALF)
    assert sloped.middle(reviewed) == middle * (1 + HALF * (reviewed - 1))
    assert sloped.target(reviewed) == 1 + HALF * (reviewed - 1)


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
    """exact_chains follows the block's length as a Markov chain; here are sums in closed form."""
    law = theory.independent(lower, upper)

    def verify(level: int, width: Fraction) -> Fraction:
        return costs.middle(width) if level == 2 else costs.target(width)

    rates = (lower, upper)
    for form, replace in ((theory.truncate, False), (theory.replace, True)):
        found = form(law, costs, drafts)
        assert found.seconds / found.tokens == exact_chains.exact(
            rates, drafts, costs.draft, verify, replace=replace
        )
    found = theory.nested(lower, upper, costs, rounds, drafts)
    assert found.seconds / found.tokens == exact_chains.exact_rounds(
        rates, drafts, rounds, costs.draft, verify
    )


def test_closed_forms_take_arrays_as_well() -> None:
    """Two draws at once, each as the fractions say."""
    rates, prices = (
        (Fraction(1, 3), Fraction(3, 4)),
        (Fraction(1, 10), HALF, Fraction(1, 8), Fraction(1), Fraction(1, 4)),
    )
    law, costs = theory.independent(*rates), theory.Costs(*prices)
    arrays = [np.full(2, float(rate)) for rate in rates]
    many, each = theory.independent(*arrays), theory.Costs(*(np.full(2, float(price)) for price in prices))
    for exact, found in (
        (theory.pair(law.outer, costs, 3), theory.pair(many.outer, each, 3)),
        (theory.truncate(law, costs, 3), theory.truncate(many, each, 3)),
        (theory.replace(law, costs, 3), theory.replace(many, each, 3)),
        (theory.nested(*rates, costs, 2, 3), theory.nested(*arrays, each, 2, 3)),
    ):
        np.testing.assert_allclose(found.tokens, [float(exact.tokens)] * 2, rtol=1e-12)
        np.testing.assert_allclose(found.seconds, [float(exact.seconds)] * 2, rtol=1e-12)


def test_eq_3_as_printed() -> None:
    lengths, seconds = (Fraction(5), Fraction(3)), (Fraction(22), Fraction(7), Fraction(4))
    # 22/5 + 7/3 + 2 x 4/3
    assert chains.polybasic(lengths, seconds, Fraction(2)) == Fraction(47, 5)


def test_a_target_that_accepts_less_after_an_insertion_makes_the_first_right_side_negative() -> None:
    """Polybasic's third reported case is of this sort (.800 < -.116); printed without its sign (.117) it
    would still say no."""
    one = theory.Insertion(10.0, 8.0, 1.0, 1.0, 3.0, 2.5, 2.0)
    assert one.saved_above < 0
    assert not one.published
    assert not one.exact


@pytest.mark.parametrize(
    "claim",
    [polybasic.S12, polybasic.S12B, polybasic.S12C, polybasic.S42, sloped_cascades.S11B],
    ids=lambda c: c.id,
)
def test_a_counterexample_is_found_without_the_pinned_one(claim: Claim) -> None:
    assert decide(claim.statement, Effort(), claim.id).verdict == "refuted"


@pytest.mark.parametrize(
    "claim", [polybasic.S12, polybasic.S12B, polybasic.S12C, polybasic.S42], ids=lambda c: c.id
)
def test_the_smallest_case_is_pinned(claim: Claim) -> None:
    """Among whole seconds up to 7, ways of agreeing in halves, 1 or 2 rounds, 1 or 2 drafts."""
    cases = inserted.insertions(1)
    assert next(c for c in cases if isinstance(claim.statement.rule(c), Against)) == claim.pinned


@pytest.mark.parametrize("sides", [(".318", ".330"), (".403", ".462")])
def test_two_of_the_printed_cases_of_theorem_3_2_leave_open_whether_it_helps(sides: tuple[str, str]) -> None:
    """The first inequality's sides with one round, and with two and a drafter that weighs more.

    T_i = 1, L_i = 2, L_(i-new) = n L_new, so the right side is L_new / 2 - 1/n; T_(i+1) < T_new, beta 4.
    """
    left, right = map(Fraction, sides)
    helps = []
    for rounds in (1, 2):
        new_after = 2 * (right + Fraction(1, rounds))
        small = left * Fraction(99, 100)
        one = theory.Insertion(
            Fraction(1), left, small, Fraction(4), Fraction(2), rounds * new_after, new_after
        )
        assert one.new_after * (1 / one.before - 1 / one.above_after) == right
        assert inserted.first(one)
        helps.append(one.exact)
    assert helps == [True, False]


def test_where_the_target_runs_more_often_as_in_the_third_printed_case_nothing_is_gained() -> None:
    """.800 against -.116: L_(i-new) < L_i. Tokens of the text for each forward of M_new are fewer, too."""
    cases = [c for c in inserted.insertions(1) if inserted.insertion(c).saved_above < 0]
    assert len(cases) > 100
    for case in cases:
        before, after = inserted.both(case)
        assert inserted.insertion(case).saved_below < 0
        assert before.faster_than(after)


@given(chances(), chances(), st.integers(1, 3), st.integers(1, 4))
def test_right_tokens_by_round_are_theorem_4_3s_where_agreements_are_independent(
    lower: Fraction, upper: Fraction, rounds: int, drafts: int
) -> None:
    walked = right_by_round(theory.independent(lower, upper), rounds, drafts)
    assert 1 + sum(walked) == cascade_tokens(upper, lower, rounds, drafts)


def test_where_the_targets_cost_is_flat_truncation_never_pays_and_replacement_has_a_threshold() -> None:
    """Corollaries that the proofs of S43 and S44 name, over a grid of place laws."""
    for law, drafts in product(third_level._laws(4), (1, 2, 3)):
        for middle in (Fraction(1, 10), HALF, Fraction(1)):
            costs = theory.Costs(Fraction(1, 10), middle, Fraction(0), Fraction(1), Fraction(0))
            pair = theory.pair(law.outer, costs, drafts)
            assert not theory.truncate(law, costs, drafts).faster_than(pair)
            if law.only_outer:
                continue
            # A middle whose slope is the target's does not pay by truncating either.
            sloped = theory.Costs(Fraction(1, 10), Fraction(0), Fraction(1), middle, Fraction(1))
            assert not theory.truncate(law, sloped, drafts).faster_than(
                theory.pair(law.outer, sloped, drafts)
            )
            grown = law.all_agree ** (drafts + 1) / emitted_tokens(law.all_agree, drafts)
            pays = middle / pair.seconds < law.only_upper + grown
            assert theory.replace(law, costs, drafts).faster_than(pair) == pays
