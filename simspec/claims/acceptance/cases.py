"""Distributions of two or three models over one vocabulary."""

from __future__ import annotations

from hypothesis import strategies as st

from simspec.strategies.distributions import Distribution, distributions

Pair = tuple[Distribution, Distribution]
Triple = tuple[Distribution, Distribution, Distribution]


def alike(count: int) -> st.SearchStrategy[tuple[Distribution, ...]]:
    """``count`` distributions over one vocabulary."""
    return st.integers(2, 4).flatmap(lambda n: st.tuples(*[distributions(n)] * count))
