"""Formulas for float arrays, for data, and for fractions, for exact claims: constants of either kind."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Number = TypeVar("Number", Fraction, Floats)


@overload
def number(value: Fraction) -> Fraction: ...
@overload
def number(value: Floats) -> Floats: ...
def number(value: Any) -> Any:
    """A fraction as it is, anything else as an array of floats."""
    return value if isinstance(value, Fraction) else np.asarray(value, dtype=np.float64)


@overload
def like(value: Fraction, wanted: int) -> Fraction: ...
@overload
def like(value: Floats, wanted: int) -> Floats: ...
def like(value: Any, wanted: int) -> Any:
    """A whole number as the kind of number that ``value`` is, and of its shape."""
    if isinstance(value, Fraction):
        return Fraction(wanted)
    return np.full_like(np.asarray(value, dtype=np.float64), wanted)


@overload
def width_of(value: Fraction, wanted: int) -> Fraction: ...
@overload
def width_of(value: Floats, wanted: int) -> Floats: ...
def width_of(value: Any, wanted: int) -> Any:
    """One width for all draws: a fraction beside fractions, else an array without dimensions."""
    return Fraction(wanted) if isinstance(value, Fraction) else np.asarray(float(wanted))
