"""LibraSpec's theorem and its repair as rules, against theory told in single numbers."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from simspec.speculation.lengths import View
from simspec.speculation.lengths_libraspec import RepairedLibraSpec, TheoremLibraSpec
from simspec.theory.lengths import conditional_gain, eps_repaired
from simspec.theory.libraspec import theorem_limit
from tests.profiles import examples

# Eighths: products and sums of up to 15 of them are exact in binary too.
eighths = st.lists(st.integers(0, 8).map(lambda k: Fraction(k, 8)), min_size=1, max_size=15)
likely = st.lists(st.integers(6, 8).map(lambda k: Fraction(k, 8)), min_size=1, max_size=15)
alphas = st.sampled_from([Fraction(n, 4) for n in (1, 3, 4, 6, 8, 9, 13, 40)])


def by_theorem(q, alpha, block: int, longest: int) -> tuple[int, int]:
    """Drafted and submitted."""
    d, drafted = min(block, longest), block
    while d < longest:
        e = min(theorem_limit(q[:drafted], alpha, i) for i in range(1, d + 1))
        grew, d = e > d, min(e, longest)
        drafted = max(drafted, -(-d // block) * block)
        if not grew:
            break
    return drafted, d


def decided(rule, q, seconds=None) -> tuple[int, int]:
    q = np.array([[float(x) for x in q]])
    priced = np.ones((1, q.shape[1] + 1)) if seconds is None else np.array([seconds], dtype=float)
    found = rule.decide(View(q, np.array([q.shape[1]]), priced), rule.begin(1))
    return int(found.drafted[0]), int(found.submitted[0])


@given(q=st.one_of(eighths, likely), alpha=alphas, block=st.integers(1, 8), longest=st.integers(0, 18))
@examples(4)
def test_the_theorems_rule_is_its_fixed_point_on_fractions(q, alpha, block, longest):
    rule = TheoremLibraSpec(float(alpha), block, longest)
    assert decided(rule, q) == by_theorem(q, alpha, block, longest)


@given(
    q=st.lists(st.one_of(st.floats(0, 1), st.floats(0.85, 1)), min_size=1, max_size=26),
    alpha=st.floats(0.1, 16),
    block=st.integers(1, 16),
    longest=st.integers(0, 30),
)
@examples(2)
def test_the_theorems_rule_is_its_fixed_point_on_floats(q, alpha, block, longest):
    # Next to a tie the same sums, rounded alike, can still rise and fall by a rounding.
    for i in range(1, len(q) + 1):
        for d in range(i, len(q) + 1):
            assume(abs(alpha * conditional_gain(q, i, d) - (d - i)) > 1e-9)
    assert decided(TheoremLibraSpec(alpha, block, longest), q) == by_theorem(q, alpha, block, longest)


@given(
    q=eighths,
    fixed=st.integers(1, 30),
    slopes=st.lists(st.integers(1, 6), min_size=15, max_size=15),
    block=st.integers(1, 8),
    longest=st.integers(0, 15),
)
@examples(4)
def test_the_repaired_rule_is_the_least_repaired_eps(q, fixed, slopes, block, longest):
    """With convex costs, as the theory asks; length 0 among the lengths, the bonus counted."""
    steps = np.concatenate([[0], np.cumsum(sorted(slopes))])[: len(q) + 1]
    cost = [Fraction(int(fixed + s)) for s in steps]
    most, drafted = min(longest, len(q)), block
    while True:
        reach = min(drafted, most)
        limits = [
            eps_repaired(q[:drafted], i, lambda d: cost[min(d, len(q))], limit=reach)
            for i in range(reach + 1)
        ]
        if min(limits) < drafted or drafted >= most:
            break
        drafted += block
    # Rates that are equal as fractions are rounded apart or not.
    tokens = [1 + conditional_gain(q, 1, d) for d in range(len(q) + 1)]
    rates = [n / t for n, t in zip(tokens, cost, strict=True)]
    floats = [float(n) / float(t) for n, t in zip(tokens, cost, strict=True)]
    pairs = combinations(range(len(q) + 1), 2)
    assume(all((floats[a] == floats[b]) == (rates[a] == rates[b]) for a, b in pairs))
    found = decided(RepairedLibraSpec(block, longest), q, [float(t) for t in cost])
    assert found == (drafted, min(limits))
