"""What simspec raises. The library raises; only ``simspec.cli`` prints and exits."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SimspecError(Exception):
    """Any refusal that simspec makes on purpose."""


class BadInput(SimspecError):
    """Something that came from outside cannot be used.

    The message says what is wrong with which value, where it came from, what is
    allowed and what to do about it, so that it can be shown as it is.
    """

    def __init__(self, problem: str, *, where: object = "", allowed: str = "", hint: str = ""):
        self.problem = problem
        self.where = str(where)
        self.allowed = allowed
        self.hint = hint
        parts = [f"{self.where}: {problem}" if self.where else problem]
        if allowed:
            parts.append(f"allowed: {allowed}")
        if hint:
            parts.append(hint)
        super().__init__("; ".join(parts))


def unknown_name(kind: str, name: str, known: Iterable[str], *, where: object = "") -> BadInput:
    """An error for a name that is not among ``known``, with the nearest one suggested."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else ""
    return BadInput(f"unknown {kind} {name!r}", where=where, allowed=", ".join(names) or "none", hint=hint)
