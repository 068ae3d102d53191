"""Mooncake's traces: one JSON object a line, instants in milliseconds, hashes of the prompt's blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from simspec.errors import BadInput
from simspec.interop.lines import json_lines
from simspec.interop.log import RequestLog, in_order

BLOCK_TOKENS = 512


class _Row(msgspec.Struct):
    timestamp: int
    input_length: int
    output_length: int
    hash_ids: list[int] | None = None


def read_mooncake(path: Path) -> RequestLog:
    """``timestamp`` (ms), ``input_length``, ``output_length``, ``hash_ids``.

    A row without ``timestamp`` is refused, not taken to arrive at 0. So are instants that are all the
    same though there are several rows, and hashes that do not cover the prompt in blocks of 512 tokens.
    Raises BadInput naming line, field and value.
    """
    rows: list[_Row] = []
    for line, found in json_lines(path):
        rows.append(_row(found, line, path))
    at = np.array([row.timestamp for row in rows], dtype=np.int64)
    if len(at) > 1 and at.min() == at.max():
        raise BadInput(
            f"all {len(at)} rows have timestamp {at[0]}",
            where=path,
            hint="were the instants lost on the way?",
        )
    return in_order(
        at * 1_000_000,
        np.array([row.input_length for row in rows], dtype=np.int64),
        np.array([row.output_length for row in rows], dtype=np.int64),
        source=f"{path.name} (Mooncake)",
        unit="milliseconds",
    )


def _row(found: Any, line: int, path: Path) -> _Row:
    try:
        row = msgspec.convert(found, _Row)
    except msgspec.ValidationError as error:
        raise BadInput(f"line {line}: {error}", where=path) from error
    for name in ("timestamp", "input_length", "output_length"):
        value = getattr(row, name)
        if not 0 <= value < 10**12:
            raise BadInput(f"line {line}, {name} {value}", where=path, allowed="0 to 1e12")
    if row.hash_ids is not None and len(row.hash_ids) != -(-row.input_length // BLOCK_TOKENS):
        raise BadInput(
            f"line {line}: {len(row.hash_ids)} hash_ids for input_length {row.input_length}",
            where=path,
            allowed=f"one for each {BLOCK_TOKENS} tokens begun",
        )
    return row
