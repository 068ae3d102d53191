"""Lengths for each row, counted by hand; and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.errors import BadInput
from simspec.serving.arrivals import OpenLoop
from simspec.serving.candidates import Candidate
from simspec.serving.config import Serving, Speculation
from simspec.serving.policies import ByRowsAndContext, Fixed, View
from simspec.serving.pricing import Costs
from simspec.serving.request import Request
from simspec.serving.row_policies import ByRule, Joint, RowView
from simspec.serving.simulate import simulate
from simspec.serving.switching import Switching
from simspec.serving.verdicts import Blocks, Mean, Rates, Recorded
from simspec.speculation.lengths import G4, Decision, ExactMarginal, LibraSpec, Static
from simspec.strategies.small_engines import affine

# A forward of n tokens takes 4 + n ns, a fourth of it for the drafter; a step's overhead is 1 ns.
COSTS = Costs(affine(4e-9, 1e-9, 0.0), "target", "small")


def view(confidence: list[list[float]], verifying: Callable[[np.ndarray], np.ndarray]) -> RowView:
    """Rows that all decode; a step's seconds by the number of tokens that are submitted."""
    rows = np.array(confidence, float)
    length = (rows > 0).sum(axis=1)
    ones = np.ones(len(rows), int)
    return RowView(
        ones,
        rows,
        length,
        lambda n: verifying(np.arange(n + 1) * len(rows)).tolist(),
        lambda n, widest, total: verifying(total),
    )


def shared(policy: Joint, seen: RowView) -> list[int]:
    found = policy.lengths(seen, policy.begin(len(seen.decoding)))
    assert found.drafted.tolist() == np.minimum(seen.length, policy.longest).tolist()
    return found.submitted.tolist()


def test_drafts_are_shared_by_survival():
    """Survivals .9 .81 and .5 .25; 10 + n seconds for 0..4 tokens.

    Rates 2/10 2.9/11 3.71/12 4.21/13 4.46/14, that is .2 .264 .309 .324 .319: three are admitted, two of
    the first row.
    """
    seen = view([[0.9, 0.9], [0.5, 0.5]], lambda total: 10.0 + total)
    assert shared(Joint(2), seen) == shared(Joint(2, full_scan=True), seen) == [2, 1]


def test_the_first_stop_misses_what_lies_beyond_a_step_of_a_staircase():
    """One row, survivals 1 .9 .81 ..: 2 s for up to 1 token, 4 s for all that is more (claim L15b).

    Rates for 0..4 tokens: 1/2 2/2 2.9/4 3.71/4 4.44/4 = .5 1 .725 .93 1.11.
    """
    seen = view([[1.0, 0.9, 0.9, 0.9]], lambda total: np.where(total > 1, 4.0, 2.0))
    assert shared(Joint(4), seen) == [1]
    assert shared(Joint(4, full_scan=True), seen) == [4]


def test_of_equals_the_lower_slot_goes_first_and_places_in_their_order():
    """Sure drafts everywhere; the third token is not worth its second."""
    seen = view([[1.0, 1.0], [1.0, 1.0]], lambda total: np.where(total > 3, 100.0, 1.0 + total / 10))
    assert shared(Joint(2), seen) == [2, 1]


@given(
    st.lists(st.lists(st.sampled_from([0.2, 0.5, 0.9, 1.0]), min_size=2, max_size=2), min_size=1, max_size=3),
    st.lists(st.floats(0.1, 9), min_size=7, max_size=7),
)
def test_a_full_scan_is_the_best_of_all_allocations(confidence, seconds):
    """L15b, in whatever way the step's time depends on the number of tokens: against every allocation."""
    cost = np.array(seconds)

    def rate(shares: tuple[int, ...]) -> float:
        expected = [1 + sum(np.cumprod(row)[:n]) for row, n in zip(confidence, shares, strict=True)]
        return float(sum(expected) / cost[sum(shares)])

    seen = view(confidence, lambda total: cost[total])
    best = max(map(rate, product(range(3), repeat=len(confidence))))
    assert rate(tuple(shared(Joint(2, full_scan=True), seen))) >= best * (1 - 1e-12)


@pytest.mark.parametrize("rule", [Static(2), G4(2, 2, 1, 3), ExactMarginal(3), LibraSpec(2.2, 2, 2)])
def test_a_rule_decides_as_it_does_for_one_row_alone(rule):
    policy = ByRule(rule, 3)
    seen = view([[0.9, 0.9, 0.1], [0.3, 0.0, 0.0], [1.0, 1.0, 1.0]], lambda total: 10.0 + total)
    together = policy.lengths(seen, policy.begin(3))
    for i in range(3):
        alone = seen._replace(confidence=seen.confidence[[i]], length=seen.length[[i]])
        found = policy.lengths(alone, policy.begin(1))
        assert found.drafted.tolist() == [together.drafted[i]]
        assert found.submitted.tolist() == [together.submitted[i]]


def one_text(confidence: list[float], right: int, tokens: int = 40) -> Recorded:
    """A text in which every block looks the same."""
    depth = len(confidence)
    blocks = Blocks(np.tile(np.array(confidence, np.float32), (tokens, 1)), np.full(tokens, depth))
    available = np.minimum(depth, np.arange(tokens)[::-1])
    return Recorded(np.array([0, tokens]), np.minimum(right, available), available, blocks)


def test_what_is_drafted_and_not_submitted_is_paid_to_the_drafter_alone():
    """Confidences 1 and .1. A step with 0, 1, 2 drafts takes 6, 8, 10 ns: 1/6 < 2/8 > 2.1/10.

    So one is submitted, and the second was drafted to see that: two forwards of the drafter of 1.25 ns
    (1 each), and a forward of the target over 2 tokens (6 ns). Only the submitted one can be accepted, so
    of two drafts the drafter has read the first, and has one token to read: no forward is two wide.
    """
    spec = Speculation(ByRule(ExactMarginal(2), 2), one_text([1.0, 0.1], right=2))
    load = OpenLoop([(0, Request(0, 4, 12))])
    steps = simulate(Serving(COSTS, 1, spec), load, 3).steps.to_pandas().iloc[1:4]
    assert steps["drafted_tokens"].tolist() == [2, 2, 2]
    assert steps["submitted_tokens"].tolist() == steps["accepted_tokens"].tolist() == [1, 1, 1]
    assert steps["draft_ns"].tolist() == [2, 2, 2]
    assert steps["verify_ns"].tolist() == [6, 6, 6]


def test_a_row_keeps_its_state_and_its_successor_begins_anew():
    """G4 from 1, two more after a whole block: 1, 3, 5 and no further, for each request in turn."""
    spec = Speculation(ByRule(G4(1, 2, 1, 5), 5), Rates((1.0,) * 5))
    load = OpenLoop([(0, Request(0, 4, 30)), (0, Request(1, 4, 30))])
    steps = simulate(Serving(COSTS, 1, spec), load, 0).steps
    asked = [n for n in steps["draft_length_tokens"].to_pylist() if n]
    # The first token is the prompt's; 2 + 4 + 6 and so on make 29, of which the last drafts what is left.
    assert asked == [1, 3, 5, 5, 5, 5] * 2


def test_a_look_up_is_asked_before_anybody_knows_that_it_found_nothing():
    costs = Costs(affine(4e-9, 1e-9, 0.0), "target", "small", lookup=True)
    spec = Speculation(ByRule(ExactMarginal(2), 2), one_text([0.0, 0.0], right=0))
    empty = Recorded(
        *(np.array(a) for a in ([0, 2], [0, 0], [0, 0])), Blocks(np.zeros((2, 2)), np.zeros(2, int))
    )
    spec = Speculation(spec.policy, empty)
    steps = simulate(Serving(costs, 1, spec), OpenLoop([(0, Request(0, 4, 3))]), 0).steps
    assert steps["drafted_tokens"].to_pylist() == [0, 0, 0]
    assert steps["draft_ns"].to_pylist() == [0, 1, 1]


def test_by_rows_and_context():
    """Context is the mean of a row, rounded down."""
    policy = ByRowsAndContext(((1, 4, 0, 100, 5), (1, 4, 101, 999, 2), (5, 8, 0, 999, 1)))
    assert policy.longest == 5

    def answer(rows: int, context_tokens: int) -> int:
        return policy.length(View(rows, 0, context_tokens, 0, 0.0, 0.0, lambda n: ()), 0)[0]

    asked = [(1, 100), (2, 201), (4, 404), (5, 4999), (8, 8000), (9, 9)]
    assert [answer(*one) for one in asked] == [5, 5, 2, 1, 0, 0]


def test_a_length_below_0_is_a_fault():
    class Wrong(ByRule):
        def lengths(self, view, state):
            return Decision(view.length - 9, view.length)

    serving = Serving(COSTS, 1, Speculation(Wrong(Static(2), 2), Rates((0.5, 0.5))))
    with pytest.raises(ValueError, match="below 0"):
        simulate(serving, OpenLoop([(0, Request(0, 1, 5))]), 0)


UNSURE = Recorded.of_lengths([[1, 2, 3]], 4)
PRICE = COSTS.cost


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Joint(0), "longest is 0"),
        (lambda: ByRule(Static(1), -1), "longest is -1"),
        (lambda: Speculation(Joint(2), Rates((0.5, 0.5))), "drawn by place in the block has none"),
        (lambda: Speculation(ByRule(ExactMarginal(2), 2), Mean((0.5, 0.5))), "a mean of verdicts has none"),
        (lambda: Speculation(ByRule(LibraSpec(), 2), UNSURE), "a record of accepted lengths alone has none"),
        (lambda: Speculation(Switching(2), UNSURE), "Switching and 1 drafters"),
        (
            lambda: Speculation(Fixed(2), UNSURE, others=(Candidate("small", UNSURE, PRICE),)),
            "Fixed and 2 drafters",
        ),
        (lambda: Candidate("smal", UNSURE, PRICE), "did you mean 'small'"),
        (lambda: ByRowsAndContext(((1, 2, 0, 9, 1), (2, 3, 9, 12, 1))), "overlap"),
        (lambda: ByRowsAndContext(((0, 2, 0, 9, 1),)), "rows from 1"),
        (lambda: ByRowsAndContext(((1, 2, 9, 0, 1),)), "fewest to most"),
        (lambda: ByRowsAndContext(((1, 2, 0, 9, -1),)), "draft length -1"),
        (lambda: Recorded(np.array([0, 1]), np.zeros(1), np.zeros(1), one_text([0.5], 1).blocks), "as many"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(BadInput, match=message):
        make()


@pytest.mark.parametrize("rule", [Static(2), G4(2, 1, 1, 2)])
def test_rules_that_do_not_look_need_no_confidences(rule):
    spec = Speculation(ByRule(rule, 2), Rates((0.9, 0.9)))
    steps = simulate(Serving(COSTS, 1, spec), OpenLoop([(0, Request(0, 1, 9))]), 0).steps
    assert sum(steps["drafted_tokens"].to_pylist()) > 2
