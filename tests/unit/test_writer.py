"""A trace is written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from simspec.errors import BadInput
from simspec.tables import LATENCY
from simspec.traces.files import behaviour_hash, read_table, write_table, write_trace
from simspec.traces.reader import read_tables
from tests.toy import Setting, Toy, table_of

SETTING = Setting(seed=17, prompts=2, output_tokens=21, block_length=4, order=3)


@pytest.fixture(scope="module")
def toy() -> Toy:
    return Toy(SETTING)


def with_bad_latency(toy: Toy) -> dict[str, pa.Table]:
    rows = toy.tables["latency"].to_pylist()
    rows[3]["seconds"] = float("nan")
    return {**toy.tables, "latency": table_of(LATENCY, rows)}


def test_what_is_written_is_read_back(toy: Toy, tmp_path: Path) -> None:
    manifest = toy.write(tmp_path / "toy")
    read = read_tables(tmp_path / "toy")
    assert read.manifest == manifest
    for name, table in toy.tables.items():
        assert read.tables[name].to_pylist() == table.to_pylist(), name
    assert [p.name for p in tmp_path.iterdir()] == ["toy"]


# Fails when written: behaviour_hash sees how Arrow holds a list (its item's name, for one), which a
# round through Parquet changes. The recorder is spared because its tables come from shards.
def test_tables_made_in_memory_are_read_back(toy: Toy, tmp_path: Path) -> None:
    write_trace(tmp_path / "toy", toy.manifest, toy.tables)
    read_tables(tmp_path / "toy")


def test_the_same_trace_gives_the_same_bytes(toy: Toy, tmp_path: Path) -> None:
    toy.write(tmp_path / "a")
    Toy(SETTING).write(tmp_path / "b")
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


def test_an_existing_folder_is_refused_and_left_alone(toy: Toy, tmp_path: Path) -> None:
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "mine.txt").write_text("keep")
    with pytest.raises(BadInput, match="exists"):
        toy.write(folder)
    assert [p.name for p in folder.iterdir()] == ["mine.txt"]
    assert (folder / "mine.txt").read_text() == "keep"


def test_nothing_appears_when_a_table_is_invalid(toy: Toy, tmp_path: Path) -> None:
    folder = tmp_path / "toy"
    with pytest.raises(BadInput, match="row 3, column 'seconds'"):
        write_trace(folder, toy.manifest, with_bad_latency(toy))
    assert not folder.exists()
    # What was begun does not stand in the way of a second attempt.
    toy.write(folder)
    assert [p.name for p in tmp_path.iterdir()] == ["toy"]


def test_an_invalid_table_leaves_no_file(toy: Toy, tmp_path: Path) -> None:
    path = tmp_path / "latency.parquet"
    with pytest.raises(BadInput, match=r"latency\.parquet"):
        write_table(path, LATENCY, with_bad_latency(toy)["latency"])
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_is_replaced_is_replaced_whole(toy: Toy, tmp_path: Path) -> None:
    path = tmp_path / "latency.parquet"
    first = write_table(path, LATENCY, toy.tables["latency"])
    second = write_table(path, LATENCY, toy.tables["latency"].slice(0, 5))
    assert (first.rows, second.rows) == (toy.tables["latency"].num_rows, 5)
    assert read_table(path, LATENCY, second).num_rows == 5
    with pytest.raises(BadInput, match="hash"):
        read_table(path, LATENCY, first)


def test_latency_is_not_behaviour(toy: Toy) -> None:
    fewer = {**toy.tables, "latency": toy.tables["latency"].slice(0, 3)}
    assert behaviour_hash(fewer) == behaviour_hash(toy.tables)
    shorter = {**toy.tables, "pairs": toy.tables["pairs"].slice(0, 3)}
    assert behaviour_hash(shorter) != behaviour_hash(toy.tables)
