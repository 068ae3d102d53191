"""What a verification of d drafted tokens costs, d = 0, 1, ..., D, as fractions of some unit.

A curve is T(0) .. T(D); T(0) is a plain step. Curves never fall and are positive, except where a
strategy says that T(0) may be 0 (LibraSpec's T0 = 0, where nothing is not charged for).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise, product

from hypothesis import strategies as st

from simspec.strategies.survivals import Conditional, expected_accepted, survival

# T(0) .. T(D).
Curve = tuple[Fraction, ...]

# Milliseconds of a step that verifies K drafted tokens, from a table published with vLLM's dynamic
# speculation manager, by batch size: measured curves, neither convex nor concave.
VLLM_DRAFTED = (0, 1, 3, 4, 5, 7)
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


# Token counts for which a serving engine captures CUDA graphs, as vLLM does by default up to 32.
GRAPH_SIZES = (1, 2, 4, 8, 16, 24, 32)


def padded(fixed: Fraction, slope: Fraction, sizes: Sequence[int], depth: int) -> Curve:
    """T(d) = fixed + slope x (the least of ``sizes``, which rise, that holds d + 1 tokens).

    Raises ValueError where none holds the longest.
    """
    if sizes[-1] <= depth:
        raise ValueError(f"{depth + 1} tokens do not fit into {sizes[-1]}")
    return tuple(fixed + slope * next(size for size in sizes if size > d) for d in range(depth + 1))


def vllm_curve(batch: int, depth: int) -> Curve:
    """One row of ``VLLM_STEP_MS``: straight lines between what was timed; the last goes on past its end."""
    timed = [(drafted, Fraction(ms)) for drafted, ms in zip(VLLM_DRAFTED, VLLM_STEP_MS[batch], strict=True)]
    told = []
    for d in range(depth + 1):
        # The stretch that d lies on, or the last one.
        (low, below), (high, above) = next(
            (pair for pair in pairwise(timed) if d <= pair[1][0]), (timed[-2], timed[-1])
        )
        told.append(below + (above - below) * (d - low) / (high - low))
    return tuple(told)


def is_convex(curve: Curve) -> bool:
    """Whether no step up is smaller than the one before it."""
    rises = [b - a for a, b in pairwise(curve)]
    return all(a <= b for a, b in pairwise(rises))


def is_concave(curve: Curve) -> bool:
    """Whether no step up is larger than the one before it."""
    rises = [b - a for a, b in pairwise(curve)]
    return all(a >= b for a, b in pairwise(rises))


def amounts(least: int = 0) -> st.SearchStrategy[Fraction]:
    """Times from 0 (or 1/10, for ``least`` 1) to 40."""
    return st.builds(Fraction, st.integers(least, 40), st.integers(1, 10))


@st.composite
def affine_costs(draw: st.DrawFn, depth: int, *, free_start: bool = False) -> Curve:
    """T0 + c d with c > 0; T0 > 0 unless ``free_start``, which makes it 0."""
    fixed = Fraction(0) if free_start else draw(amounts(1))
    return affine(fixed, draw(amounts(1)), depth)


@st.composite
def tying_costs(draw: st.DrawFn, p: Conditional, bonus: int) -> Curve:
    """T0 + d, T0 such that two neighbouring lengths have the same speedup, or as good as the same.

    Lengths d and d + 1 tie if S_{d+1} / 1 = tau_d / (T0 + d), so for T0 = tau_d / S_{d+1} - d, which is
    never below 0 because tau_d >= d S_{d+1}. A near tie moves T0 by a millionth. Where no draft can be
    accepted, any affine cost.
    """
    depth = len(p)
    alive = [j for j, s in enumerate(survival(p)) if s > 0]
    if not alive:
        return draw(affine_costs(depth))
    d = draw(st.sampled_from(alive))
    fixed = (bonus + expected_accepted(p)[d]) / survival(p)[d] - d
    moved = fixed + draw(st.sampled_from([0, 1, -1])) * Fraction(1, 10**6)
    if moved <= 0:
        moved = fixed if fixed > 0 else Fraction(1, 10**6)
    return affine(moved, Fraction(1), depth)


@st.composite
def convex_costs(draw: st.DrawFn, depth: int) -> Curve:
    """Steps up that never get smaller, often after a flat beginning (memory-bound)."""
    flat = draw(st.integers(0, depth)) if draw(st.booleans()) else 0
    rises = sorted(draw(st.lists(amounts(), min_size=depth - flat, max_size=depth - flat)))
    return tuple(accumulate([Fraction(0)] * flat + rises, initial=draw(amounts(1))))


@st.composite
def concave_costs(draw: st.DrawFn, depth: int) -> Curve:
    """Steps up that never get larger."""
    rises = sorted(draw(st.lists(amounts(), min_size=depth, max_size=depth)), reverse=True)
    return tuple(accumulate(rises, initial=draw(amounts(1))))


@st.composite
def staircase_costs(draw: st.DrawFn, depth: int) -> Curve:
    """Padding to multiples of 2 to 8 tokens; with a step within the curve wherever ``depth`` allows one."""
    return staircase(draw(amounts(1)), draw(amounts(1)), draw(st.integers(2, min(8, max(2, depth)))), depth)


@st.composite
def padded_costs(draw: st.DrawFn, depth: int) -> Curve:
    """Padding to multiples of 2 to 16 tokens, to ``GRAPH_SIZES``, or to some other irregular sizes."""
    kind = draw(st.sampled_from(["multiples", "graphs", "irregular"]))
    if kind == "multiples":
        tread = draw(st.integers(2, 16))
        sizes = list(range(tread, depth + tread + 1, tread))
    elif kind == "graphs":
        sizes = [*GRAPH_SIZES, *range(GRAPH_SIZES[-1] + 8, depth + 9, 8)]
    else:
        sizes = sorted(
            {*draw(st.lists(st.integers(1, depth + 1), max_size=6)), depth + draw(st.integers(1, 8))}
        )
    return padded(draw(amounts(1)), draw(amounts(1)), sizes, depth)


@st.composite
def measured_costs(draw: st.DrawFn, depth: int) -> Curve:
    """A published table of measured steps (``VLLM_STEP_MS``, ms)."""
    return vllm_curve(draw(st.sampled_from(sorted(VLLM_STEP_MS))), depth)


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


def all_curves(depth: int, largest: int) -> Iterator[Curve]:
    """Every curve that never falls, T(0) in 1..``largest`` and steps up in 0..``largest``."""
    for first in range(1, largest + 1):
        for rises in product(range(largest + 1), repeat=depth):
            yield tuple(accumulate(map(Fraction, rises), initial=Fraction(first)))
