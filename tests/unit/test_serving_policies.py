"""Policies: what they answer, by hand or by trying every length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.errors import BadInput
from simspec.serving.policies import ByRows, Fixed, Goodput, OffAbove, View
from simspec.theory.acceptance import emitted_tokens


def view(rows: int = 1, accepted: float = 0.0, tried: float = 0.0, seconds: tuple[float, ...] = ()) -> View:
    """What a policy sees, of no interest where it is not said."""
    return View(rows, 0, 0, 0, accepted, tried, lambda longest: seconds[: longest + 1])


def answers(policy, rows: list[int]) -> list[int]:
    """Lengths for steps of so many rows."""
    state, found = policy.begin(), []
    for n in rows:
        length, state = policy.length(view(n), state)
        found.append(length)
    return found


def test_off_above_has_hysteresis():
    assert answers(OffAbove(3, off_above=8, on_at=4), [8, 9, 8, 5, 4, 8, 9]) == [3, 0, 0, 0, 3, 3, 0]


def test_by_rows():
    policy = ByRows(((1, 2, 4), (3, 8, 1)))
    assert policy.longest == 4
    assert answers(policy, [1, 2, 3, 8, 9]) == [4, 4, 1, 1, 0]


@pytest.mark.parametrize("policy", [Fixed(2), OffAbove(3, 8, 4), ByRows(((1, 2, 4),))])
@given(rows=st.lists(st.integers(1, 12), max_size=6))
def test_policies_of_rows_only_say_the_same_when_asked_again(policy, rows):
    """What lets several steps be computed at once."""
    assert policy.rows_only
    assert answers(policy, [n for n in rows for _ in range(3)])[::3] == answers(policy, rows)


@given(
    st.floats(0, 100),
    st.floats(0, 100),
    st.floats(0, 1),
    st.lists(st.floats(1e-4, 1e-1), min_size=1, max_size=8),
)
def test_goodput_takes_the_best_ratio(accepted, refused, prior, seconds):
    policy = Goodput(len(seconds) - 1, prior, probe_every=0)
    seen = view(3, accepted, accepted + refused, tuple(seconds))
    length, _ = policy.length(seen, policy.begin())
    alpha = (accepted + 50 * prior) / (accepted + refused + 50)
    ratios = [float(emitted_tokens(alpha, n)) / s for n, s in enumerate(seconds)]
    assert ratios[length] >= max(ratios) * (1 - 1e-12)


def test_goodput_tries_again_now_and_then():
    policy = Goodput(2, prior=0.0, probe_every=3)
    state, found = policy.begin(), []
    for _ in range(9):
        length, state = policy.length(view(1, seconds=(1.0, 1.1, 1.2)), state)
        found.append(length)
    assert found == [0, 0, 0, 1, 0, 0, 0, 1, 0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Fixed(-1), "draft length -1"),
        (lambda: OffAbove(2, 3, 4), "on_at is 4"),
        (lambda: ByRows(((1, 4, 2), (4, 8, 1))), "do not overlap"),
        (lambda: ByRows(((3, 2, 1),)), "ascending"),
        (lambda: Goodput(2, 1.5), "prior is 1.5"),
        (lambda: Goodput(2, prior_drafts=0.0), "prior_drafts is 0.0"),
        (lambda: Goodput(2, probe_every=-1), "probe_every is -1"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(BadInput, match=message):
        make()
