"""Which drafted tokens of a batch are verified: brute force on small batches, padded and packed."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simspec.speculation.calibrating import KNOTS, between_knots, isotonic
from simspec.speculation.joint import allocate
from simspec.speculation.planners_joint import DSpark
from simspec.speculation.planning import Waiting


@st.composite
def batches(draw):
    rows, depth = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    chance = st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 1.0])
    given_ = np.array([[draw(chance) for _ in range(depth)] for _ in range(rows)])
    return np.cumprod(given_, axis=1)[None]


def best(survival, seconds, rate, paid):
    """Every way of cutting the rows' blocks, in fractions."""
    rows, depth = survival.shape
    found = []
    for cut in product(range(depth + 1), repeat=rows):
        tokens = sum(Fraction(float(survival[i, :n].sum())) for i, n in enumerate(cut))
        time = Fraction(seconds(max(cut), sum(cut)))
        if rate is None:
            found.append((tokens + rows) / (time + Fraction(paid)))
        else:
            found.append(tokens - Fraction(rate) * time)
    return max(found)


def worth(survival, cut, seconds, rate, paid):
    tokens = sum(survival[i, :n].sum() for i, n in enumerate(cut))
    time = seconds(int(max(cut)), int(sum(cut)))
    return (tokens + len(cut)) / (time + paid) if rate is None else tokens - rate * time


@given(
    batches(),
    st.sampled_from([None, 0.25, 1.0, 3.0]),
    st.booleans(),
    st.lists(st.integers(0, 4), min_size=10, max_size=10),
)
def test_nothing_is_better_when_forwards_are_padded_or_packed(survival, rate, padded, steps):
    """Costs that rise in any stairs, of the widest row or of all tokens."""
    stairs = 1.0 + np.cumsum(steps) / 4.0

    def seconds(widest, tokens):
        return stairs[widest if padded else tokens]

    rows = np.array([survival.shape[1]])
    cut = allocate(survival, seconds, rows, None if rate is None else np.array([rate]), np.array([0.5]))[0]
    assert (cut >= 0).all()
    assert (cut <= (survival[0] > 0).sum(axis=1)).all()
    reached = worth(survival[0], cut, seconds, rate, 0.5)
    assert reached >= float(best(survival[0], lambda w, t: float(seconds(w, t)), rate, 0.5)) - 1e-9


@given(batches(), st.lists(st.integers(0, 4), min_size=10, max_size=10))
def test_dspark_reaches_the_best_of_packed_costs_by_looking_at_all(survival, steps):
    stairs = 1.0 + np.cumsum(steps) / 4.0
    before = np.concatenate([np.ones((*survival.shape[:2], 1)), survival[..., :-1]], axis=2)
    rows, depth = survival.shape[1:]
    seen = Waiting(
        running=np.ones((1, rows), dtype=bool),
        fresh=np.ones((1, rows), dtype=bool),
        confidence=np.divide(survival, before, out=np.zeros(survival.shape), where=before > 0),
        limit=np.full((1, rows), depth),
        draft=lambda n: np.zeros((1, np.shape(n)[-1])),
        verify=lambda widest, tokens: stairs[tokens],
        overhead=0.5,
    )

    def reached(scan):
        cut = DSpark(depth, scan).decide(seen, {}).submitted[0]
        return worth(survival[0], cut, lambda widest, tokens: stairs[tokens], None, 0.5)

    most = float(best(survival[0], lambda widest, tokens: float(stairs[tokens]), None, 0.5))
    assert abs(reached("all") - most) <= 1e-9
    # The first fall may come too early, never too late to be no better than nothing.
    assert rows / (stairs[0] + 0.5) - 1e-9 <= reached("first-fall") <= most + 1e-9


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5)), min_size=1, max_size=7),
)
def test_the_isotonic_map_is_the_least_squares_one(counts):
    from scipy.optimize import isotonic_regression

    tried = np.array([float(n) for _, n in counts])
    good = np.array([float(min(g, n)) for g, n in counts])
    found = isotonic(np.stack([good, good]), np.stack([tried, tried]))
    want = isotonic_regression(good / tried, weights=tried).x
    np.testing.assert_allclose(found, np.stack([want, want]), atol=1e-12)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9))
def test_a_confidence_lies_where_its_knots_say(confidence):
    q = np.array(confidence)
    low, share = between_knots(q)
    assert ((share >= 0) & (share <= 1)).all()
    np.testing.assert_allclose((1 - share) * KNOTS[low] + share * KNOTS[low + 1], q, atol=1e-12)
