"""Rows of a table, gathered one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from simspec.tables import Table


class Rows:
    """Rows of one table, kept as columns."""

    def __init__(self, table: Table):
        self.table = table
        self.columns: dict[str, list[Any]] = {c.name: [] for c in table.columns}

    def add(self, **values: Any) -> None:
        for name, value in values.items():
            self.columns[name].append(value)

    def __len__(self) -> int:
        return len(self.columns[self.table.columns[0].name])

    def cut(self, length: int) -> None:
        """Forget all but the first ``length`` rows."""
        for values in self.columns.values():
            del values[length:]

    def finish(self) -> pa.Table:
        arrays = []
        for column in self.table.columns:
            values = self.columns[column.name]
            if column.type == pa.list_(pa.float16()):
                values = [np.asarray(v, dtype=np.float16) for v in values]
            arrays.append(pa.array(values, type=column.type))
        return pa.Table.from_arrays(arrays, schema=self.table.schema)
