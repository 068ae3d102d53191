"""Choosing among drafters: what it answers, and what an idle drafter costs when it is taken up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.errors import BadInput
from simspec.serving.arrivals import OpenLoop
from simspec.serving.candidates import Candidate
from simspec.serving.config import Serving, Speculation
from simspec.serving.policies import Fixed
from simspec.serving.pricing import Costs
from simspec.serving.request import Request
from simspec.serving.simulate import simulate
from simspec.serving.switching import DrafterView, Switching
from simspec.serving.verdicts import Rates, Recorded
from simspec.strategies.small_engines import affine

COST = affine(4e-9, 1e-9, 0.0)
COSTS = Costs(COST, "target", "small")


def seen(alpha: float, seconds: list[float], catch_up: float = 0.0) -> DrafterView:
    """A drafter of which so much is known that the prior does not matter."""
    return DrafterView(1e9 * alpha, 1e9, seconds, catch_up)


VIEWS = st.lists(
    st.builds(
        seen,
        st.floats(0, 1),
        st.lists(st.floats(0.1, 9), min_size=4, max_size=4),
        st.sampled_from([0.0, 5.0]),
    ),
    min_size=1,
    max_size=4,
)


@given(VIEWS, st.sampled_from([1, 20]), st.data())
def test_without_a_margin_it_takes_the_best_of_all(views, horizon, data):
    """By trying every drafter with every length."""
    using = data.draw(st.integers(0, len(views) - 1))
    drafter, length = Switching(3, 0.0, horizon, prior_drafts=1e-9).choose(views, using)

    def rate(i: int, n: int) -> float:
        view = views[i]
        tokens = sum((view.accepted / view.tried) ** k for k in range(n + 1))
        return tokens / (view.seconds[n] + (view.catch_up_seconds / horizon if n else 0))

    best = max(rate(i, n) for i in range(len(views)) for n in range(4))
    # With length 0 it stays with the drafter in use, whichever drafter's plain step was the fastest.
    found = max(rate(i, 0) for i in range(len(views))) if not length else rate(drafter, length)
    assert found >= best * (1 - 1e-6)
    assert length or drafter == using


def test_hysteresis():
    """Sure drafts, one token at most: 2 / 1 against 2 / .9 is better by a ninth."""
    views = [seen(1.0, [1.0, 1.0]), seen(1.0, [1.0, 0.9])]
    assert Switching(1, margin=0.1).choose(views, 0) == (1, 1)
    assert Switching(1, margin=0.12).choose(views, 0) == (0, 1)
    assert Switching(1, margin=0.12).choose(views, 1) == (1, 1)


def test_catching_up_is_spread_over_the_horizon():
    """The second drafter gains .1 s a step and takes 2 s to catch up: worth it over more than 20 steps."""
    views = [seen(1.0, [2.0, 1.0]), seen(1.0, [2.0, 0.9], 2.0)]
    assert Switching(1, 0.0, horizon=19).choose(views, 0) == (0, 1)
    assert Switching(1, 0.0, horizon=21).choose(views, 0) == (1, 1)


class AtStep(Switching):
    """Another drafter from the fourth step that decodes on; one token always."""

    steps = 0

    def choose(self, drafters, using):
        AtStep.steps += 1
        return int(AtStep.steps > 3), 1


def test_a_drafter_that_was_idle_reads_what_it_has_missed():
    """A prompt of 10 and its first token; nothing is accepted, a token a step.

    The first drafter has all 11 to read: a forward over 10 of (4 + 10) / 4 = 3.5 ns, 4 rounded, and one of
    (4 + 1) / 4, 1 rounded; then 1 a step. After three steps the second has 14: (4 + 13) / 4 = 4.25, 4, and
    1. No drafter reads the prompt beside the target.
    """
    AtStep.steps = 0
    others = (Candidate("small", Rates((0.0,)), COST),)
    serving = Serving(COSTS, 1, Speculation(AtStep(1), Rates((0.0,)), others=others))
    steps = simulate(serving, OpenLoop([(0, Request(0, 10, 7))]), 0).steps
    # The last token is the target's alone: nothing may be drafted, so none is.
    assert steps["draft_ns"].to_pylist() == [0, 5, 1, 1, 5, 1, 0]
    assert steps["drafter"].to_pylist() == [0, 0, 0, 0, 1, 1, 1]


def test_a_look_up_has_nothing_to_catch_up_with():
    AtStep.steps = 0
    others = (Candidate("ngram", Rates((0.0,)), COST, lookup=True),)
    serving = Serving(COSTS, 1, Speculation(AtStep(1), Rates((0.0,)), others=others))
    steps = simulate(serving, OpenLoop([(0, Request(0, 10, 7))]), 0).steps
    assert steps["draft_ns"].to_pylist() == [0, 5, 1, 1, 0, 0, 0]


def test_it_finds_the_drafter_that_is_right_and_goes_back_when_that_changes():
    """One drafter knows the first half of a text and the other the second; drafts cost the same."""
    half = np.arange(400) < 200
    left = np.minimum(2, np.arange(400)[::-1])
    texts = [Recorded(np.array([0, 400]), np.minimum(2 * mine, left), left) for mine in (half, ~half)]
    others = (Candidate("small", texts[1], COST),)
    policy = Switching(2, horizon=1000, prior=0.5, prior_drafts=2.0)
    serving = Serving(COSTS, 1, Speculation(policy, texts[0], others=others))
    records = simulate(serving, OpenLoop([(0, Request(0, 5, 1200))]), 0)
    steps = records.steps.to_pandas()
    drafted = steps[steps["drafted_tokens"] > 0]
    assert set(drafted["drafter"]) == {0, 1}
    share = drafted["accepted_tokens"].sum() / drafted["submitted_tokens"].sum()
    alone = Serving(COSTS, 1, Speculation(Fixed(2), texts[0]))
    fixed = simulate(alone, OpenLoop([(0, Request(0, 5, 1200))]), 0).steps.to_pandas()
    assert share > 0.7 > 0.5 > fixed["accepted_tokens"].sum() / fixed["submitted_tokens"].sum()
    assert 4 < (drafted["drafter"].diff() != 0).sum() < 30


def test_all_drafters_are_at_the_same_place_of_the_same_text():
    """One record in two forms: which of them drafts cannot matter to what is accepted."""
    rng = np.random.default_rng(5)
    left = np.minimum(3, np.arange(60)[::-1])
    record = Recorded(np.array([0, 60]), np.minimum(rng.integers(0, 4, 60), left), left)
    load = [(0, Request(i, 5, 40)) for i in range(3)]
    passes = []
    for policy in (Switching(2, prior=1.0), AtStep(1)):
        AtStep.steps = 0
        for others in ((Candidate("small", record, COST),), (Candidate("ngram", record, COST, True),)):
            serving = Serving(COSTS, 3, Speculation(policy, record, others=others))
            table = simulate(serving, OpenLoop(load), 1, emissions=True).emissions.to_pandas()
            passes.append(table[["request_id", "drafted_tokens", "emitted_tokens"]].to_numpy().tolist())
    assert passes[2] == passes[3]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Switching(-1), "longest is -1"),
        (lambda: Switching(2, -0.1), "margin is -0.1"),
        (lambda: Switching(2, horizon=0), "horizon is 0"),
        (lambda: Switching(2, prior=1.5), "prior is 1.5"),
        (lambda: Switching(2, prior_drafts=0.0), "prior_drafts is 0.0"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(BadInput, match=message):
        make()
