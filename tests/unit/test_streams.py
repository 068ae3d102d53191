"""Named streams: same name, same numbers; another name, other numbers; no stream moves another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.streams import stream

names = st.lists(st.one_of(st.text(max_size=5), st.integers(0, 9)), min_size=1, max_size=3)


@given(st.integers(0, 2**40), names)
def test_same_seed_and_name_same_numbers(seed: int, name: list[str | int]) -> None:
    assert stream(seed, *name).random(4).tolist() == stream(seed, *name).random(4).tolist()


def test_other_seed_or_name_other_numbers() -> None:
    drawn = [
        tuple(generator.random(4).tolist())
        for generator in (
            stream(0, "a"),
            stream(1, "a"),
            stream(0, "b"),
            stream(0, "a", "b"),
            stream(0, "ab"),
            stream(0, "a", 1),
            stream(0, "a", 2),
            stream(0),
        )
    ]
    assert len(set(drawn)) == len(drawn)


def test_asking_one_stream_leaves_another() -> None:
    alone = stream(3, "arrivals").random(5).tolist()
    busy, other = stream(3, "acceptance"), stream(3, "arrivals")
    found = []
    for _ in range(5):
        busy.random(7)
        found.append(other.random())
    assert found == alone


def test_negative_seed() -> None:
    with pytest.raises(ValueError, match="-1"):
        stream(-1, "a")
