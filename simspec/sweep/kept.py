"""Finished cells, kept as they come, so that a sweep that was stopped goes on where it was."""

from __future__ import annotations

from pathlib import Path

import msgspec

from simspec.errors import BadInput
from simspec.sweep.cell import Figures


class _Line(msgspec.Struct, frozen=True):
    key: str
    figures: Figures


class Kept:
    """One JSON line a cell, under the hash of all that its figures depend on.

    A line that was cut short when the sweep was stopped is passed over; so are cells of other scenarios or of
    other code, whose hashes nobody asks for.

    Args:
        path: the file; None keeps nothing.

    Raises:
        BadInput: when the file cannot be read or written.
    """

    def __init__(self, path: Path | None):
        self.path = path
        self.found: dict[str, Figures] = {}
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            data = path.read_bytes() if path.exists() else b""
            if data and not data.endswith(b"\n"):
                with path.open("ab") as file:
                    file.write(b"\n")
        except OSError as error:
            raise BadInput(f"cannot be used: {error.strerror}", where=path) from error
        for raw in data.splitlines():
            try:
                line = msgspec.json.decode(raw, type=_Line)
            except msgspec.DecodeError:
                continue
            self.found[line.key] = line.figures

    def keep(self, key: str, figures: Figures) -> None:
        """Add a cell, on the disk before this returns to the caller's loop."""
        self.found[key] = figures
        if self.path is not None:
            try:
                with self.path.open("ab") as file:
                    file.write(msgspec.json.encode(_Line(key, figures)) + b"\n")
            except OSError as error:
                raise BadInput(f"cannot be written: {error.strerror}", where=self.path) from error

    def forget(self) -> None:
        """The sweep is complete and written: the file goes."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
