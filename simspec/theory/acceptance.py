"""Expected tokens of a cycle under independent acceptance.

alpha = acceptance rate, gamma = draft length (arXiv 2211.17192).

The formulas take float arrays, for data, or fractions, for exact claims.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from simspec.theory.numbers import Floats


@overload
def emitted_tokens(alpha: Fraction, gamma: Fraction | int) -> Fraction: ...
@overload
def emitted_tokens(alpha: ArrayLike, gamma: ArrayLike) -> Floats: ...
def emitted_tokens(alpha: Any, gamma: Any) -> Any:
    """E(alpha, gamma) = (1 - alpha^(gamma+1)) / (1 - alpha), the bonus token included.

    Assumes independent acceptance with one rate. Shapes broadcast. ``gamma`` need not be whole;
    for fractions see :func:`power`.
    """
    if isinstance(alpha, Fraction):
        exact_gamma = Fraction(gamma)
        return exact_gamma + 1 if alpha == 1 else (1 - power(alpha, exact_gamma + 1)) / (1 - alpha)
    a, g = np.asarray(alpha, dtype=np.float64), np.asarray(gamma, dtype=np.float64)
    sure = a >= 1.0
    safe = np.where(sure, 0.0, a)
    return np.where(sure, g + 1.0, (1.0 - safe ** (g + 1.0)) / (1.0 - safe))


@overload
def surviving_tokens(alpha: Fraction, n: Fraction | int) -> Fraction: ...
@overload
def surviving_tokens(alpha: ArrayLike, n: ArrayLike) -> Floats: ...
def surviving_tokens(alpha: Any, n: Any) -> Any:
    """S(alpha, n) = alpha (1 - alpha^n) / (1 - alpha): expected accepted drafts of n."""
    return emitted_tokens(alpha, n) - 1


def power(base: Fraction, exponent: Fraction) -> Fraction:
    """base^exponent for a base and an exponent of at least 0.

    Raises ValueError where the result is no fraction, such as (1/2)^(1/2): a rounded number would end
    an exact claim without a word.
    """
    if base < 0 or exponent < 0:
        raise ValueError(f"base and exponent must be at least 0, not {base} and {exponent}")
    order = exponent.denominator
    top, bottom = _whole_root(base.numerator, order), _whole_root(base.denominator, order)
    if top**order != base.numerator or bottom**order != base.denominator:
        raise ValueError(f"({base})^({exponent}) is not a fraction")
    return Fraction(top, bottom) ** exponent.numerator


def _whole_root(n: int, order: int) -> int:
    """The largest whole number whose power of ``order`` is at most n; by Newton's method from above."""
    if order == 1 or n < 2:
        return n
    x = 1 << -(-n.bit_length() // order)
    while True:
        y = ((order - 1) * x + n // x ** (order - 1)) // order
        if y >= x:
            return x
        x = y
