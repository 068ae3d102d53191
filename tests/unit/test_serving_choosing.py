"""Choosing among chains by what a token is expected to take."""

from __future__ import annotations

import pytest

from simspec.errors import BadInput
from simspec.serving.arrivals import OpenLoop
from simspec.serving.candidates import Candidate
from simspec.serving.chain_verdicts import LevelRates
from simspec.serving.choosing import ChainView, Routed
from simspec.serving.config import Serving, Speculation
from simspec.serving.pricing import Costs
from simspec.serving.request import Request
from simspec.serving.simulate import simulate
from simspec.serving.switching import DrafterView, Switching
from simspec.serving.verdicts import Rates
from tests.varied_chains import cost_of

COST = cost_of("ticks")


def seen(rates: list[float], ns: float, plain: float = 5.0) -> ChainView:
    """A chain of which much is known: drafts are free, an intermediate's forward takes ``ns``, the last 5."""
    top = len(rates) + 1
    counts = [(1e9 * rate, 1e9) for rate in rates]
    return ChainView(counts, plain, lambda n: 0.0, lambda i, width: 5.0 if i == top else ns, False)


def test_routed_takes_the_least_expected_time_a_token():
    """A pair of .5 and one draft: 5 / 1.5. A triple of 1 and .8 with a middle of 1: 6 / 1.8, the same."""
    pair, triple = seen([0.5], 0.0), seen([1.0, 0.8], 1.0)
    assert Routed((1,), margin=0.0).choose([pair, triple], None) == (0, 1)
    assert Routed((1,), margin=0.0).choose([seen([0.49], 0.0), triple], None) == (1, 1)
    assert Routed((1, 2), margin=0.0).choose([pair, triple], None) == (1, 2)  # 6 / 2.44 against 5 / 1.75
    assert Routed((0, 1), margin=0.0).choose([seen([0.5], 0.0, plain=3.0)], None) == (0, 0)
    # With 0 the chain stays.
    assert Routed((0, 1), margin=0.0).choose([seen([0.0], 0.0, 3.0), triple], (1, 1)) == (1, 0)


def test_routed_stays_for_less_than_its_margin():
    """5 / 1.5 against 5 / 1.4 is better by 7%."""
    chains = [seen([0.4], 0.0), seen([0.5], 0.0)]
    assert Routed((1,), margin=0.08).choose(chains, (0, 1)) == (0, 1)
    assert Routed((1,), margin=0.06).choose(chains, (0, 1)) == (1, 1)
    assert Routed((1,), margin=0.08).choose(chains, None) == (1, 1)


def test_routed_looks_again_every_so_many_steps():
    class Turns(Routed):
        asked = 0

        def choose(self, chains, using):
            Turns.asked += 1
            return Turns.asked % 2, 1

    others = (Candidate("ngram", LevelRates((0.0, 0.0), 1), COST, True, ("middle",)),)
    speculation = Speculation(Turns((1,), every=3), Rates((0.0,)), others=others)
    serving = Serving(Costs(COST, "target", "small"), 1, speculation)
    steps = simulate(serving, OpenLoop([(0, Request(0, 3, 14))]), 0).steps.to_pandas()
    assert steps[steps["decoding_requests"] > 0]["drafter"].tolist()[:7] == [1, 1, 1, 0, 0, 0, 1]


def test_variants_see_different_things():
    """A middle whose forward over n tokens takes .6 n, before a block of 4 and .9 at both levels.

    A pair of .7 takes 5 / 2.77 = 1.80 a token. The chain: narrow 5.6 / 3.43 = 1.63, as wide as the block
    (5 + 5 x .6) / 3.43 = 2.33, by mean blocks (5 + 3) / (1 + 2.47) = 2.31, exactly 8 / 3.43.
    """
    pair, chain = seen([0.7], 0.0), seen([0.9, 0.9], 0.0)
    chain = chain._replace(verify=lambda level, width: 5.0 if level == 3 else 0.6 * width)
    for variant, chosen in (("reach", 1), ("reach-wide", 0), ("funnel", 0), ("exact", 0)):
        assert Routed((4,), variant=variant).choose([pair, chain], None) == (chosen, 4)


def test_switching_follows_a_chain_up_the_funnel():
    """Everything sure: n + 1 tokens for the middle's and the target's time; catching up is spread."""
    pair = DrafterView(1e9 * 0.5, 1e9, [5.0, 5.0, 5.0], 0.0)
    chain = DrafterView(1e9, 1e9, [5.0], 0.0, seen([1.0, 1.0], 1.0))
    assert Switching(2, 0.0).choose([pair, chain], 0) == (1, 2)  # 3 / 6 against 1.75 / 5
    late = chain._replace(catch_up_seconds=100.0)
    assert Switching(2, 0.0, horizon=32).choose([pair, late], 0) == (0, 2)  # 3 / (6 + 100 / 32) = .33
    assert Switching(2, 0.0, horizon=64).choose([pair, late], 0) == (1, 2)
    # A middle that refuses everything is never worth its time, nor is drafting.
    never = DrafterView(0.0, 1e9, [5.0], 0.0, seen([0.0, 1.0], 1.0))
    assert Switching(2, 0.0).choose([never], 0) == (0, 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Routed(()), r"lengths \[\]"),
        (lambda: Routed((1, 1)), r"lengths \[1, 1\]"),
        (lambda: Routed((-1,)), r"lengths \[-1\]"),
        (lambda: Routed((1,), every=0), "every is 0"),
        (lambda: Routed((1,), margin=-1.0), "margin is -1"),
        (lambda: Routed((1,), variant="reech"), "variant is 'reech'; allowed: reach"),
        (lambda: Routed((1,), prior=2.0), "prior is 2"),
        (lambda: Routed((1,), prior_drafts=0.0), "prior_drafts is 0"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(BadInput, match=message):
        make()
