"""Results to stdout: one JSON document, or tables that fit a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table


def print_json(document: dict[str, Any]) -> None:
    """One JSON document, keys in the order given, numbers in full."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=2)
    sys.stdout.write(text.decode() + "\n")


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table; the first column to the left, the others to the right."""
    table = Table(title=title, title_justify="left")
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    # A pipe has no width of its own; tables are not to be cut there.
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def interval(ends: Sequence[float | None], digits: int) -> str:
    """``low..high``, or a dash when there is none."""
    low, high = ends
    return "-" if low is None or high is None else f"{low:.{digits}f}..{high:.{digits}f}"


def whole_numbers(text: str, name: str, low: int, high: int) -> tuple[int, ...]:
    """``1,2,8`` or ``1-8`` or both, as rising whole numbers; :class:`BadInput` otherwise."""
    from simspec.errors import BadInput

    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise BadInput(f"{name} {text!r} holds {part!r}", allowed="such as 1,2,4 or 1-8")
        begin, end = int(first), int(last or first)
        # Checked before the range is made, so that a slip of the hand does not fill the memory.
        if not low <= begin <= end <= high:
            raise BadInput(f"{name} {text!r} holds {part!r}", allowed=f"{low} to {high}, rising")
        found.update(range(begin, end + 1))
    return tuple(sorted(found))
