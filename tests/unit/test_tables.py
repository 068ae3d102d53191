"""The schema itself, and the check of a table against it without any file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from simspec.errors import BadInput
from simspec.tables import BLOCKS, CHOICES, TRACE_TABLES, VERDICTS, Column, Table, check_table
from tests.toy import Setting, Toy, table_of


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return Toy(Setting(seed=17, prompts=2, output_tokens=21, block_length=4, order=3)).tables


@pytest.mark.parametrize("table", [*TRACE_TABLES, CHOICES], ids=lambda t: t.name)
def test_every_column_says_what_it_is(table: Table) -> None:
    names = [c.name for c in table.columns]
    assert len(set(names)) == len(names)
    assert set(table.key) <= set(names)
    assert all(c.unit and c.meaning for c in table.columns)
    assert table.schema.names == names
    assert [f.nullable for f in table.schema] == [c.nullable for c in table.columns]


@pytest.mark.parametrize("table", [*TRACE_TABLES, CHOICES], ids=lambda t: t.name)
def test_a_column_name_means_one_thing(table: Table) -> None:
    """A name that several tables use has the same item type and range in all of them."""
    for column in table.columns:
        for other in TRACE_TABLES:
            for twin in other.columns:
                if twin.name == column.name:
                    assert (twin.low, twin.high) == (column.low, column.high)


@pytest.mark.parametrize("table", TRACE_TABLES, ids=lambda t: t.name)
def test_good_and_empty_tables_pass(table: Table, tables: dict[str, pa.Table]) -> None:
    check_table(table, tables[table.name], "here")
    check_table(table, table.schema.empty_table(), "here")


@pytest.mark.parametrize("table", TRACE_TABLES, ids=lambda t: t.name)
def test_rows_in_many_chunks_are_checked_alike(table: Table, tables: dict[str, pa.Table]) -> None:
    data = tables[table.name]
    pieces = pa.concat_tables([data.slice(0, 1), data.slice(1, 2), data.slice(3)])
    check_table(table, pieces, "here")
    twice = pa.concat_tables([pieces, data.slice(0, 1)])
    with pytest.raises(BadInput, match=f"rows 0 and {data.num_rows} have the same key"):
        check_table(table, twice, "here")


@pytest.mark.parametrize(("value", "allowed"), [(1.0005, True), (1.01, False), (-0.001, False)])
def test_half_precision_may_round_over_one(tables: dict[str, pa.Table], value: float, allowed: bool) -> None:
    rows = tables["verdicts"].to_pylist()
    rows[0]["overlap"] = [np.float16(value)] * len(rows[0]["overlap"])
    data = table_of(VERDICTS, rows)
    if allowed:
        check_table(VERDICTS, data, "here")
    else:
        with pytest.raises(BadInput, match="here: row 0, column 'overlap'"):
            check_table(VERDICTS, data, "here")


def test_a_null_list_and_a_null_in_a_list_name_their_row(tables: dict[str, pa.Table]) -> None:
    data = tables["blocks"]
    at = data.column_names.index("tokens")
    for bad, row in ((None, 1), ([1, None], 2)):
        items = data.column("tokens").to_pylist()
        items[row] = bad
        changed = data.set_column(at, "tokens", pa.array(items, pa.list_(pa.int32())))
        with pytest.raises(BadInput, match=f"row {row}, column 'tokens'"):
            check_table(BLOCKS, changed, "here")


def test_the_first_bad_row_is_named_after_empty_lists(tables: dict[str, pa.Table]) -> None:
    rows = tables["blocks"].to_pylist()
    empty = {"tokens": [], "confidence": [], "top1_prob": [], "top2_margin": [], "entropy": []}
    rows[0].update(empty)
    rows[1].update(empty)
    rows[2]["confidence"] = [0.5, 1.5, 2.5]
    with pytest.raises(BadInput, match=r"row 2, column 'confidence': 1\.5"):
        check_table(BLOCKS, table_of(BLOCKS, rows), "here")


def test_nulls_are_left_out_of_a_column_that_may_have_them() -> None:
    column = Column("at_ns", pa.int64(), "nanoseconds", "an instant that may never come", 0, nullable=True)
    row = Column("row", pa.int64(), "index", "the row", 0)
    table = Table("made up", (row, column), key=("row",))
    strict = Table("strict", (row, replace(column, nullable=False)), key=("row",))

    def of(values: list[int | None]) -> pa.Table:
        return pa.table({"row": range(len(values)), "at_ns": pa.array(values, pa.int64())})

    check_table(table, of([None, 3, None]), "here")
    check_table(table, of([None, None]), "here")
    with pytest.raises(BadInput, match="here: row 2, column 'at_ns': -1"):
        check_table(table, of([None, 3, -1]), "here")
    with pytest.raises(BadInput, match="here: row 0, column 'at_ns': None"):
        check_table(strict, of([None, 3]), "here")
