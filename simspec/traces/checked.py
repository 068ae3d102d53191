"""A trace's tables as they were read, and how one of them is refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa

from simspec.errors import BadInput
from simspec.traces.manifest import Manifest


@dataclass(frozen=True)
class Tables:
    """A trace's checked tables, as Arrow tables by name, with its manifest."""

    folder: Path
    manifest: Manifest
    tables: dict[str, pa.Table]

    def frame(self, name: str) -> pd.DataFrame:
        """A table as a pandas frame."""
        frame: pd.DataFrame = self.tables[name].to_pandas()
        return frame


def refuse(read: Tables, table: str, row: int | None, column: str, value: object, allowed: str) -> None:
    place = f"row {row}, column {column!r}" if row is not None else f"column {column!r}"
    raise BadInput(f"{place}: {value}", where=read.folder / read.manifest.tables[table].file, allowed=allowed)
