"""Length rules: none looks ahead, and each is what its source says, told once more in scalars."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from simspec.speculation.lengths import (
    G4,
    Decision,
    ExactMarginal,
    LengthRule,
    LibraSpec,
    Static,
    View,
    expected_tokens,
)
from simspec.speculation.lengths_libraspec import ClampedLibraSpec, RepairedLibraSpec, TheoremLibraSpec
from simspec.speculation.lengths_thresholds import FailFast, SpecDecPlusPlus, Svip, WeakToken
from tests.profiles import examples

DEPTH = 30
RULES: list[LengthRule] = [
    Static(0),
    Static(3),
    G4(),
    G4(first=1, longest=4),
    LibraSpec(2.2, 16, 24),
    LibraSpec(2.0, 10, 20),
    LibraSpec(2.2, 1, 24),
    LibraSpec(1.2, 3, 7),
    ExactMarginal(),
    ExactMarginal(longest=2),
    ClampedLibraSpec(2.2, 1, 24),
    ClampedLibraSpec(2.0, 10, 5),
    TheoremLibraSpec(2.2, 16, 24),
    TheoremLibraSpec(2.0, 1, 20),
    TheoremLibraSpec(3.7, 4, 40),
    RepairedLibraSpec(16, 24),
    RepairedLibraSpec(1, 24),
    RepairedLibraSpec(4, 40),
    WeakToken(),
    WeakToken(0.6, 6),
    FailFast(),
    FailFast(0.9, 3, 8),
    Svip(),
    SpecDecPlusPlus(),
    SpecDecPlusPlus(0.3, 1, 40),
]
chances = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 0.9, 0.97, 1.0]))


def confidences(rows: int, depth: int = DEPTH) -> st.SearchStrategy[np.ndarray]:
    return st.one_of(
        arrays(np.float64, (rows, depth), elements=chances),
        arrays(np.float64, (rows, depth), elements=st.floats(0.85, 1)),
    )


@st.composite
def views(draw: st.DrawFn, rows: int = 3, depth: int = DEPTH) -> View:
    q = draw(confidences(rows, depth))
    limit = np.array(draw(st.lists(st.integers(0, depth), min_size=rows, max_size=rows)))
    q[np.arange(depth)[None] >= limit[:, None]] = 0.0
    seconds = draw(arrays(np.float64, (rows, depth + 1), elements=st.floats(0.1, 10)))
    if draw(st.booleans()):
        seconds = 10.0 + np.cumsum(seconds, axis=1) * draw(st.sampled_from([0.01, 0.1, 1.0]))
    return View(q, limit, seconds, draw(entropies(rows, depth)))


def entropies(rows: int, depth: int) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.float64, (rows, depth), elements=st.sampled_from([0.0, 0.1, 0.6, 0.61, 3.0]))


def flat_view(q: np.ndarray) -> View:
    rows, depth = q.shape
    return View(q, np.full(rows, depth), np.ones((rows, depth + 1)))


@pytest.mark.parametrize("rule", RULES, ids=str)
@given(view=views(), other=confidences(3), entropy=entropies(3, DEPTH), state=st.integers(1, 20))
@examples(1.6)
def test_tokens_that_are_not_drafted_do_not_move_the_decision(
    rule: LengthRule, view: View, other: np.ndarray, entropy: np.ndarray, state: int
) -> None:
    before = rule.begin(3)
    if isinstance(rule, G4):
        before = np.full(3, float(min(state, rule.longest)))
    decided = rule.decide(view, before)
    assert (decided.submitted <= decided.drafted).all()
    assert (decided.submitted >= 0).all()
    place = np.arange(DEPTH)[None]
    unseen = (place >= decided.drafted[:, None]) & (place < view.limit[:, None])
    entropy = np.where(unseen, entropy, view.entropy)
    changed = View(np.where(unseen, other, view.confidence), view.limit, view.seconds, entropy)
    again = rule.decide(changed, before)
    assert again.drafted.tolist() == decided.drafted.tolist()
    assert again.submitted.tolist() == decided.submitted.tolist()


@pytest.mark.parametrize("rule", RULES, ids=str)
@given(view=views())
@examples(0.6)
def test_requests_do_not_see_each_other(rule: LengthRule, view: View) -> None:
    together = rule.decide(view, rule.begin(3))
    for i in range(3):
        one = View(*(part[i : i + 1] for part in (view.confidence, view.limit, view.seconds, view.entropy)))
        alone = rule.decide(one, rule.begin(1))
        assert (alone.drafted[0], alone.submitted[0]) == (together.drafted[i], together.submitted[i])


# LibraSpec.


def algorithm_one(q: list[float], alpha: float, n: int, d_max: int) -> tuple[int, int, float]:
    """Algorithm 1 as printed, with its budget.

    Returns drafted, submitted, and how close a value that was rounded down came to a whole number
    (where summing in another order may round to the other side).
    """
    drafted = d = n
    budget = 0
    close = 1.0
    while d < d_max:
        floors = []
        for i in range(1, d + 1):
            gain = 0.0
            for j in range(i, d + 1):
                gain += math.prod(q[k - 1] if k <= len(q) else 0.0 for k in range(i, j + 1))
            value = alpha * gain + i
            if gain > 0:
                close = min(close, abs(value - round(value)))
            floors.append(math.floor(value))
        e = min(floors)
        if e <= d:
            d = e
            break
        budget -= e - d
        d = e
        if budget < 0:
            more = math.ceil(-budget / n)
            drafted += more * n
            budget += more * n
    return drafted, d, close


@given(
    q=st.one_of(
        st.lists(st.floats(0, 1), min_size=30, max_size=30),
        st.lists(st.floats(0.85, 1), min_size=30, max_size=30),
    ),
    alpha=st.sampled_from([1.0, 1.5, 1.8, 2.0, 2.2, 3.1]),
    block=st.integers(1, 12),
    longest=st.integers(1, 24),
)
@example(q=[0.5] * 30, alpha=2.0, block=4, longest=12)
@examples(4.8)
def test_libraspec_is_algorithm_one(q: list[float], alpha: float, block: int, longest: int) -> None:
    drafted, submitted, close = algorithm_one(q, alpha, block, longest)
    found = LibraSpec(alpha, block, longest).decide(flat_view(np.array([q])), np.zeros(1))
    if close > 1e-9 or set(q) == {0.5}:  # halves are exact in binary, in any order
        assert (found.drafted[0], found.submitted[0]) == (drafted, submitted)
    if block < longest:
        assert found.submitted[0] <= longest - 1 + math.floor(alpha)


# Algorithm 1 when every confidence is q, worked out from the paper's formulas apart from this code.
CONSTANT = {
    0.5: (2, 3, 2),
    0.7: (5, 6, 4),
    0.8: (8, 9, 7),
    0.9: (14, 17, 17),
    0.95: (30, 24, 35),
    0.97: (51, 24, 60),
}


@pytest.mark.parametrize("q", CONSTANT)
@pytest.mark.parametrize("column", range(3))
def test_libraspec_at_constant_confidence(q: float, column: int) -> None:
    rule = (LibraSpec(2.0, 10, 60), LibraSpec(2.2, 16, 24), LibraSpec(2.2, 1, 60))[column]
    found = rule.decide(flat_view(np.full((1, 80), q)), np.zeros(1))
    assert found.submitted[0] == CONSTANT[q][column]


def test_libraspec_overshoots_as_printed() -> None:
    found = LibraSpec(2.2, 1, 60).decide(flat_view(np.full((1, 80), 0.99)), np.zeros(1))
    assert found.submitted[0] == 61


# The exact marginal rule.


@given(view=views(rows=2, depth=12), longest=st.integers(0, 15))
@examples(6)
def test_exact_marginal_is_its_loop(view: View, longest: int) -> None:
    found = ExactMarginal(longest).decide(view, np.zeros(2))
    for row in range(2):
        reach = min(int(view.limit[row]), longest, 12)
        n, drafted, survival, gain = 0, 0, 1.0, 0.0
        while n < reach:
            drafted = n + 1  # the next token is drafted before it can be judged
            survival *= view.confidence[row, n]
            here = (1.0 + gain) / view.seconds[row, n]
            gain += survival
            if (1.0 + gain) / view.seconds[row, n + 1] <= here:
                break
            n += 1
        assert (found.drafted[row], found.submitted[row]) == (drafted, n)


@given(q=arrays(np.float64, (2, 9), elements=chances))
def test_expected_tokens_is_its_sum(q: np.ndarray) -> None:
    found = expected_tokens(q)
    for row in range(2):
        for n in range(10):
            wanted = 1.0 + sum(math.prod(q[row, :j].tolist()) for j in range(1, n + 1))
            assert found[row, n] == pytest.approx(wanted, rel=1e-12)


# G4.


@given(
    history=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=30),
    first=st.integers(1, 8),
    up=st.integers(1, 3),
    down=st.integers(1, 3),
    longest=st.integers(8, 20),
)
def test_g4_is_its_loop(history: list[tuple[int, int]], first: int, up: int, down: int, longest: int) -> None:
    """Each cycle: a limit that cuts the block, then how many of the submitted drafts were accepted."""
    rule = G4(first, up, down, longest)
    state, length = rule.begin(1), first
    for limit, luck in history:
        decided = rule.decide(flat_view(np.zeros((1, 4))), state)
        assert decided.drafted[0] == decided.submitted[0] == length
        submitted = min(length, limit)
        accepted = min(luck, submitted)
        carried = Decision(np.array([submitted]), np.array([submitted]))
        state = rule.observe(state, carried, np.array([accepted]))
        if submitted and accepted == submitted:
            length = min(length + up, longest)
        elif submitted:
            length = max(length - down, 1)


def test_g4_as_the_paper_states_it() -> None:
    """Two more after full acceptance, one less after any rejection."""
    rule = G4(first=5)
    decision = Decision(np.array([5, 5, 5]), np.array([5, 5, 5]))
    assert rule.observe(rule.begin(3), decision, np.array([5, 4, 0])).tolist() == [7, 4, 4]


@pytest.mark.parametrize("length", [0, 1, 7])
def test_static_is_static(length: int) -> None:
    decided = Static(length).decide(flat_view(np.random.default_rng(1).random((4, 9))), np.zeros(4))
    assert decided.drafted.tolist() == decided.submitted.tolist() == [length] * 4
