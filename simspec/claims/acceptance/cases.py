"""Distributions of two or three models over one vocabulary."""

from __future__ import annotations

from hypothesis import strategies as st

from simspec.strategies.distributions import Distribution, distributions

Pair = tuple[Distribution, Distribution]
Triple = tuple[Distribution, Distribution, Distribution]
OVER_PAIRS = "all pairs over 2 and 3 tokens with small denominators; random pairs over 2 to 4 tokens"


def alike(count: int) -> st.SearchStrategy[tuple[Distribution, ...]]:
    """``count`` distributions over one vocabulary."""
    return st.integers(2, 4).flatmap(lambda n: st.tuples(*[distributions(n)] * count))
