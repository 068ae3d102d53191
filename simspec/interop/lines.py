"""Files of one JSON value a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from simspec.errors import BadInput


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """(line number from 1, value) of each line that is not blank.

    Raises BadInput naming the line that is no JSON, or if the file cannot be read or has no line.
    """
    any_line = False
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                any_line = True
                try:
                    yield number, msgspec.json.decode(line)
                except msgspec.DecodeError as error:
                    raise BadInput(f"line {number} is no JSON: {error}", where=path) from error
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=path) from error
    if not any_line:
        raise BadInput("is empty", where=path)
