"""Pools of models cover what they should, and a cycle's outcomes are counted right."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from simspec.strategies.chains import (
    Level,
    Plan,
    Pool,
    all_plans,
    all_pools,
    independent,
    laws,
    patterns,
    plans,
    pools,
    renumbered,
)
from simspec.strategies.outcomes import expected
from simspec.strategies.survivals import chances, grid

HALF = Fraction(1, 2)
SEMANTICS = ("funnel-truncate", "funnel-replace", "nested", "rounds")
TRIPLE = Plan((0, 1, 2), 1)


def together(pool: Pool) -> Fraction:
    return dict(pool.law).get((0,) * len(pool.levels), Fraction(0))


def nearly(a: Fraction, b: Fraction) -> bool:
    return a != b and abs(a - b) < a / 10**6


COVERED = {
    "a level nearly as slow as the target": lambda p: nearly(p.levels[0].seconds, p.levels[-1].seconds),
    "a level as slow as the target": lambda p: p.levels[1].seconds == p.levels[-1].seconds,
    "a level slower than the target": lambda p: p.levels[0].seconds > p.levels[-1].seconds,
    "a drafter of next to no cost": lambda p: 20 * p.levels[0].seconds < p.levels[-1].seconds,
    "a perfect drafter": lambda p: p.rate(0, 2) == 1,
    "a perfect middle": lambda p: p.rate(1, 2) == 1 and 0 < p.rate(0, 1) < 1,
    "a worthless drafter": lambda p: p.rate(0, 1) == p.rate(0, 2) == 0 < p.rate(1, 2),
    "a worthless middle": lambda p: p.rate(0, 1) == p.rate(1, 2) == 0 < p.rate(0, 2),
    "equal rates": lambda p: p.rate(0, 1) == p.rate(1, 2) not in (0, 1),
    "agreeing together more often than independently": lambda p: together(p) > p.rate(0, 1) * p.rate(1, 2),
    "agreeing together less often": lambda p: 0 < together(p) < p.rate(0, 1) * p.rate(1, 2),
    "a middle that throws away what the target would take": lambda p: p.rate(0, 2) > together(p) > 0,
    "forwards of the same time at any width": lambda p: all(v.slope == 0 for v in p.levels),
    "forwards that cost by the token": lambda p: p.levels[2].slope > 0 and p.levels[2].tread == 1,
    "forwards that cost in steps": lambda p: p.levels[2].slope > 0 and p.levels[2].tread > 1,
}


@pytest.mark.parametrize("wanted", COVERED)
def test_pools_cover(wanted):
    """Drawn within 1500; not shrunk, since only whether it comes up matters."""
    quick = settings(max_examples=1500, derandomize=True, database=None, phases=[Phase.generate])
    find(pools(), COVERED[wanted], settings=quick)


@given(pools(correlated=False, widths=False))
def test_pools_leave_out_what_they_are_told_to(pool):
    assert together(pool) == pool.rate(0, 1) * pool.rate(1, 2)
    assert all(level.slope == 0 for level in pool.levels)


@given(st.integers(2, 4).flatmap(lambda n: st.tuples(st.just(n), laws(n))))
def test_laws_are_laws(drawn):
    models, law = drawn
    assert sum(p for _, p in law) == 1
    assert all(words in patterns(models) and p > 0 for words, p in law)


def test_patterns_are_the_partitions_of_a_set():
    """Bell's numbers; each pattern numbered by first appearance, no two alike."""
    for models, bell in ((1, 1), (2, 2), (3, 5), (4, 15)):
        found = patterns(models)
        assert len(set(found)) == len(found) == bell
        assert all(renumbered(words) == words for words in found)
    assert renumbered((7, 3, 7)) == (0, 1, 0)


@given(chances(), chances(), chances())
def test_independent_means_what_it_says(low, high, outer):
    """P(M3 = M2) is the same where M2 = M1 and where it is not; the outer agreement is as told."""
    law = dict(independent((low, high), outer))
    same, apart = law.get((0, 0, 0), Fraction(0)), law.get((0, 1, 1), Fraction(0))
    assert same == low * high
    assert apart == (1 - low) * high
    assert law.get((0, 1, 0), 0) == (1 - low) * (1 - high) * outer
    pool = Pool((Level(HALF),) * 3, tuple(law.items()))
    assert (pool.rate(0, 1), pool.rate(1, 2)) == (low, high)


def test_what_no_pool_can_be_is_refused():
    one = Level(Fraction(1))
    with pytest.raises(ValueError, match="three models"):
        independent((HALF,), HALF)
    with pytest.raises(ValueError, match="sum to 1"):
        Pool((one, one), (((0, 0), HALF),))
    with pytest.raises(ValueError, match="2 words"):
        Pool((one, one), (((0, 1, 0), Fraction(1)),))
    with pytest.raises(ValueError, match="takes time"):
        Level(Fraction(0))


def test_forwards_cost_by_the_token_or_in_steps():
    by_token, in_steps = Level(Fraction(3), Fraction(2)), Level(Fraction(3), Fraction(2), 4)
    assert [by_token.forward(n) for n in (1, 2, 5)] == [3, 5, 11]
    assert by_token.forward(Fraction(3, 2)) == 4
    assert [in_steps.forward(n) for n in (1, 2, 5, 6)] == [3, 5, 5, 7]


def test_plans_and_pools_are_all_there_smallest_first():
    assert all_plans(3, 1) == [Plan((2,), 0), Plan((0, 2), 1), Plan((1, 2), 1), TRIPLE]
    assert len(all_plans(3, 2, rounds=2)) == 1 + 2 * 2 + 2 * 2
    found = list(all_pools(3, 2, grid(1)))
    # Rates 0 and 0 leave it open whether the outer two agree; the other three pairs do not.
    assert len(set(found)) == len(found) == 8 * 5
    sums = [sum(level.seconds for level in pool.levels) for pool in found]
    assert sums == sorted(sums)


# What a cycle does, counted by hand. M1 drafts one token; rates 1/2 and 1/3, independent; V_i(n) = i n.

BY_HAND = Pool(tuple(Level(Fraction(i), Fraction(i)) for i in (1, 2, 3)), independent((HALF, Fraction(1, 3))))


@pytest.mark.parametrize(
    ("semantics", "rounds", "seconds", "tokens"),
    [
        # 1 drafted, M2 reads 2: 1 + 4. It survives with 1/2: the target reads 2, else 1. 1/6 come through.
        ("funnel-truncate", 1, 5 + Fraction(1, 2) * 6 + Fraction(1, 2) * 3, Fraction(7, 6)),
        # The target reads 3 or 2: M2's own token after one draft or none. It accepts one with 1/3, and the
        # second, which is there with 1/2, with 1/9.
        (
            "funnel-replace",
            1,
            5 + Fraction(1, 2) * 9 + Fraction(1, 2) * 6,
            1 + Fraction(1, 3) + Fraction(1, 18),
        ),
        # Until there are two tokens: one round with 1/2, else another one that only M2 runs, over one token.
        ("nested", 1, 5 + Fraction(1, 2) * 2 + 9, 1 + Fraction(1, 3) + Fraction(1, 9)),
        ("rounds", 1, 5 + Fraction(1, 2) * 9 + Fraction(1, 2) * 6, 1 + Fraction(1, 3) + Fraction(1, 18)),
        # Two rounds make 2, 3 or 4 tokens with 1/4, 1/2, 1/4; the target reads one more, 4 on average.
        (
            "rounds",
            2,
            10 + 12,
            1 + Fraction(1, 3) + Fraction(1, 9) + Fraction(3, 4) / 27 + Fraction(1, 4) / 81,
        ),
    ],
)
def test_a_cycle_counted_by_hand(semantics, rounds, seconds, tokens):
    found = expected(BY_HAND, Plan((0, 1, 2), 1, rounds), semantics)
    assert (found.seconds, found.tokens) == (seconds, tokens)


def test_plain_decoding_and_pairs():
    alone = expected(BY_HAND, Plan((2,), 0), "funnel-truncate")
    assert (alone.seconds, alone.tokens, alone.forwards) == (3, 1, (1,))
    # M2 > M3, 2 drafted: 2 x 2 and one forward of 3 tokens; 1 + 1/3 + 1/9 tokens.
    pair = expected(BY_HAND, Plan((1, 2), 2), "funnel-truncate")
    assert (pair.seconds, pair.tokens) == (4 + 9, 1 + Fraction(1, 3) + Fraction(1, 9))


@given(pools(), plans(3, 2, 1), st.sampled_from(SEMANTICS))
def test_outcomes_are_all_there(pool, plan, semantics):
    """The target runs once in every outcome, so its expected forwards are the sum of all probabilities."""
    found = expected(pool, plan, semantics)
    assert found.forwards[-1] == 1
    assert 1 <= found.tokens == found.passed[-1]


@given(pools(), st.integers(1, 2), st.booleans())
def test_a_funnel_agrees_with_a_plain_sum_over_all_places(pool, drafts, replaces):
    """A second road, without the rules of a cycle and without leaving out places that nothing hangs on."""
    seconds = tokens = Fraction(0)
    drafter, middle, target = pool.levels
    for places in product(pool.law, repeat=drafts + 1):
        chance = Fraction(1)
        for _, p in places:
            chance *= p
        words = [w for w, _ in places]
        survived = next((i for i in range(drafts) if words[i][1] != words[i][0]), drafts)
        handed = survived + replaces
        # What is handed on is what the middle says, whether it was drafted or not.
        accepted = next((i for i in range(handed) if words[i][2] != words[i][1]), handed)
        seconds += chance * (
            drafts * drafter.forward(1) + middle.forward(drafts + 1) + target.forward(handed + 1)
        )
        tokens += chance * (accepted + 1)
    semantics = "funnel-replace" if replaces else "funnel-truncate"
    found = expected(pool, Plan((0, 1, 2), drafts), semantics)
    assert (found.seconds, found.tokens) == (seconds, tokens)
