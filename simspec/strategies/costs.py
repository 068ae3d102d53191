"""What a verification of d drafted tokens costs, d = 0, 1, ..., D, as fractions of some unit.

A curve is T(0) .. T(D); T(0) is a plain step. Curves never fall and are positive, except where a
strategy says that T(0) may be 0 (LibraSpec's T0 = 0, where nothing is not charged for).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate, pairwise

from hypothesis import strategies as st

# T(0) .. T(D).
Curve = tuple[Fraction, ...]

# Seconds of a step in ms at K = 0..5 drafted tokens, from a table published with vLLM's dynamic
# speculation manager (Llama on one GPU, batch 1, 16 and 32): measured curves, neither convex nor concave.
VLLM_STEP_MS: dict[int, tuple[str, ...]] = {
    1: ("6.87", "7.97", "9.41", "9.91", "10.8", "12.29"),
    16: ("7.3", "8.39", "9.95", "10.8", "11.59", "13.11"),
    32: ("7.64", "8.97", "10.78", "11.79", "12.81", "14.86"),
}


def affine(fixed: Fraction, slope: Fraction, depth: int) -> Curve:
    """T(d) = fixed + slope d."""
    return tuple(fixed + slope * d for d in range(depth + 1))


def staircase(fixed: Fraction, step: Fraction, tread: int, depth: int) -> Curve:
    """Padding to a multiple of ``tread`` tokens: T(d) = fixed + step ceil((d + 1) / tread)."""
    return tuple(fixed + step * -(-(d + 1) // tread) for d in range(depth + 1))


def is_convex(curve: Curve) -> bool:
    """Whether no step up is smaller than the one before it."""
    rises = [b - a for a, b in pairwise(curve)]
    return all(a <= b for a, b in pairwise(rises))


def _amounts(least: int = 0) -> st.SearchStrategy[Fraction]:
    return st.builds(Fraction, st.integers(least, 40), st.integers(1, 10))


@st.composite
def affine_costs(draw: st.DrawFn, depth: int, *, free_start: bool = False) -> Curve:
    """T0 + c d with c > 0; T0 > 0 unless ``free_start``, which makes it 0."""
    fixed = Fraction(0) if free_start else draw(_amounts(1))
    return affine(fixed, draw(_amounts(1)), depth)


@st.composite
def convex_costs(draw: st.DrawFn, depth: int) -> Curve:
    """Steps up that never get smaller, flat beginnings (memory-bound) included."""
    rises = sorted(draw(st.lists(_amounts(), min_size=depth, max_size=depth)))
    return tuple(accumulate(rises, initial=draw(_amounts(1))))


@st.composite
def concave_costs(draw: st.DrawFn, depth: int) -> Curve:
    """Steps up that never get larger."""
    rises = sorted(draw(st.lists(_amounts(), min_size=depth, max_size=depth)), reverse=True)
    return tuple(accumulate(rises, initial=draw(_amounts(1))))


@st.composite
def staircase_costs(draw: st.DrawFn, depth: int) -> Curve:
    """Padding to multiples of 2 to 8 tokens."""
    return staircase(draw(_amounts(1)), draw(_amounts(1)), draw(st.integers(2, 8)), depth)


@st.composite
def measured_costs(draw: st.DrawFn, depth: int) -> Curve:
    """A published table of measured steps (``VLLM_STEP_MS``, ms); past its end its last rise goes on."""
    told = [Fraction(ms) for ms in VLLM_STEP_MS[draw(st.sampled_from(sorted(VLLM_STEP_MS)))]]
    while len(told) <= depth:
        told.append(2 * told[-1] - told[-2])
    return tuple(told[: depth + 1])


def rising_costs(depth: int) -> st.SearchStrategy[Curve]:
    """Any of the above."""
    return st.one_of(
        affine_costs(depth),
        convex_costs(depth),
        concave_costs(depth),
        staircase_costs(depth),
        measured_costs(depth),
    )


def all_affine_costs(depth: int, largest: int, *, free_start: bool = False) -> Iterator[Curve]:
    """T0 in 1..``largest`` (only 0 if ``free_start``); c = 1, since the unit of time is free."""
    for fixed in (0,) if free_start else range(1, largest + 1):
        yield affine(Fraction(fixed), Fraction(1), depth)
