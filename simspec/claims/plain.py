"""Cases as JSON and as text: fractions stay fractions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """A case as what JSON can hold; a fraction becomes ``"3/4"``, a class its fields by name.

    Raises TypeError for anything else: a counterexample that cannot be written down is of no use.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {_key(key): plain(held) for key, held in value.items()}
    if isinstance(value, tuple | list | frozenset | set):
        return [plain(held) for held in value]
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    raise TypeError(f"a case cannot hold a {type(value).__name__}: {value!r}")


def _key(key: Any) -> str:
    return key if isinstance(key, str) else shown(key)


def shown(value: Any) -> str:
    """A case on one line, as a reader would write it."""
    held = plain(value)
    if isinstance(held, dict):
        return ", ".join(f"{name} = {shown(part)}" for name, part in held.items())
    if isinstance(held, list):
        return "(" + ", ".join(shown(part) for part in held) + ")"
    if isinstance(held, float):
        return f"{held:.6g}"
    return str(held)


def number(value: Any) -> str:
    """A fraction with its decimal value, as in ``5/32 = 0.15625``; any other number as a decimal."""
    if isinstance(value, Fraction) and value.denominator != 1:
        return f"{value} = {float(value):.5g}"
    return f"{float(value):.5g}" if not isinstance(value, int) else str(value)
