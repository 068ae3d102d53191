"""Azure's LLM inference traces of 2023 and 2024: production arrivals with token counts."""

from __future__ import annotations

from pathlib import Path

from simspec.interop.columns import instants, read_csv, whole
from simspec.interop.log import RequestLog, in_order


def read_azure(path: Path) -> RequestLog:
    """``TIMESTAMP,ContextTokens,GeneratedTokens``; dates with up to nine digits of a second, all kept.

    Raises BadInput naming row, column and value.
    """
    table = read_csv(path, ("TIMESTAMP", "ContextTokens", "GeneratedTokens"))
    return in_order(
        instants(table, "TIMESTAMP", path),
        whole(table, "ContextTokens", path),
        whole(table, "GeneratedTokens", path),
        source=f"{path.name} (Azure)",
        unit="date and time, to the last digit given",
    )
