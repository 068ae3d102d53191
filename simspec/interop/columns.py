"""CSV columns as whole numbers and instants, refused by row and column where they are not."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simspec.errors import BadInput

Ints = NDArray[np.int64]

# Longer than any count of tokens or instant in ns needs, and short enough for int64.
_WHOLE = r"\d{1,15}"
_INSTANT = r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|\+00:00)?"


def read_csv(path: Path, wanted: Sequence[str], optional: Sequence[str] = ()) -> pd.DataFrame:
    """The ``wanted`` columns as text, and the ``optional`` ones that there are.

    Raises BadInput if the file cannot be read, lacks one or has a ragged row.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            rows = csv.reader(lines, strict=True)
            header = next(rows, [])
            held = list(rows)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=path) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"is no CSV: {error}", where=path) from error
    wrong = next((i for i, row in enumerate(held) if row and len(row) != len(header)), None)
    if wrong is not None:
        # A row that is too long or short has lost track of its columns; what it means is a guess.
        raise BadInput(f"row {wrong + 2} has {len(held[wrong])} fields, the header {len(header)}", where=path)
    if len(set(header)) < len(header):
        raise BadInput(f"names a column twice: {', '.join(header)}", where=path)
    # The index is the row as an editor counts; row 1 is the header. Blank rows are none.
    numbers = [i + 2 for i, row in enumerate(held) if row]
    table = pd.DataFrame([row for row in held if row], columns=header, index=numbers, dtype=str)
    missing = [name for name in wanted if name not in table.columns]
    if missing:
        raise BadInput(
            f"has no column {missing[0]!r}", where=path, allowed=f"a file with {', '.join(wanted)}"
        )
    return table[[*wanted, *(name for name in optional if name in table.columns)]]


def whole(table: pd.DataFrame, name: str, path: Path) -> Ints:
    """A column of whole numbers of at least 0, (N,)."""
    text = table[name].str.strip()
    _refuse(~text.str.fullmatch(_WHOLE), text, name, path, "a whole number of at least 0")
    return text.to_numpy(dtype=np.int64)


def seconds(table: pd.DataFrame, name: str, path: Path) -> Ints:
    """A column of seconds of at least 0, as whole nanoseconds, (N,); digits past those are cut."""
    text = table[name].str.strip()
    parts = text.str.extract(r"^(\d{1,9})(?:\.(\d*))?$")
    _refuse(parts[0].isna(), text, name, path, "seconds of at least 0, such as 12.5")
    return _joined(parts[0].to_numpy(dtype=np.int64), parts[1])


def instants(table: pd.DataFrame, name: str, path: Path) -> Ints:
    """A column of dates with times, as whole nanoseconds since 1970, (N,).

    Up to nine digits of a second are kept. Without a zone, or all in UTC.
    """
    text = table[name].str.strip()
    parts = text.str.extract(f"^{_INSTANT}$")
    _refuse(
        parts[0].isna(), text, name, path, "such as 2023-11-16 18:17:03.9799600, without a zone or in UTC"
    )
    zoned = parts[3].notna()
    if zoned.any() and not zoned.all():
        raise BadInput(f"column {name!r} has a zone in some rows only", where=path)
    whole_seconds = []
    for row, (day, clock) in enumerate(zip(parts[0], parts[1], strict=True)):
        try:
            whole_seconds.append(np.datetime64(f"{day}T{clock}", "s"))
        except ValueError as error:
            raise BadInput(
                f"row {text.index[row]}, column {name!r}: {text.iloc[row]!r}",
                where=path,
                allowed="a date of the calendar",
            ) from error
    return _joined(np.array(whole_seconds, dtype="datetime64[s]").astype(np.int64), parts[2])


def _joined(whole_seconds: Ints, digits: pd.Series) -> Ints:
    """Whole seconds and the digits after the point, as nanoseconds."""
    nine = digits.fillna("").str.slice(0, 9).str.ljust(9, "0")
    return np.asarray(whole_seconds * 1_000_000_000 + nine.to_numpy(dtype=np.int64))


def _refuse(bad: pd.Series, text: pd.Series, name: str, path: Path, allowed: str) -> None:
    if bad.any():
        row = int(np.argmax(bad.to_numpy()))
        raise BadInput(
            f"row {text.index[row]}, column {name!r}: {text.iloc[row]!r}", where=path, allowed=allowed
        )
