"""A trace that is wrong in any one way is refused, by file, row and column or by field."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simspec.errors import BadInput
from simspec.provenance import sha256_file
from simspec.tables import TRACE_TABLES
from simspec.traces.manifest import read_manifest
from simspec.traces.reader import read_tables
from tests.toy import EOS, LOOKUP, MIDDLE, SMALL, TARGET, VOCABULARY, Setting, Toy, table_of

SCHEMAS = {t.name: t for t in TRACE_TABLES}
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    toy = Toy(Setting(seed=17, prompts=2, output_tokens=21, block_length=4, order=3))
    finishes = {text[-1] == EOS for text in toy.texts}
    assert finishes == {True, False}, "the cases below need a text of each kind"
    folder = tmp_path_factory.mktemp("traces") / "toy"
    toy.write(folder)
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "toy"))


def edit_manifest(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def rewrite(folder: Path, name: str, data: pa.Table) -> None:
    """Put another table in place, with the manifest telling its hash, as a faulty recorder would."""
    path = folder / f"{name}.parquet"
    pq.write_table(data, path, version="2.6")
    bless(folder, name, data.num_rows)


def bless(folder: Path, name: str, rows: int | None = None) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["tables"][name]["sha256"] = sha256_file(folder / f"{name}.parquet")
        if rows is not None:
            manifest["tables"][name]["rows"] = rows

    edit_manifest(folder, change)


def edit_rows(folder: Path, name: str, change: Callable[[Rows], object]) -> None:
    rows = pq.read_table(folder / f"{name}.parquet").to_pylist()
    change(rows)
    rewrite(folder, name, table_of(SCHEMAS[name], rows))


def refused(folder: Path, *parts: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_tables(folder)
    for part in parts:
        assert part in str(caught.value), f"{part!r} is not in: {caught.value}"


def test_the_untouched_trace_is_read(folder: Path) -> None:
    read = read_tables(folder)
    assert read.manifest.origin == "synthetic"
    assert set(read.tables) == set(SCHEMAS)


# Files.


@pytest.mark.parametrize("name", SCHEMAS)
def test_missing_file(folder: Path, name: str) -> None:
    (folder / f"{name}.parquet").unlink()
    refused(folder, f"{name}.parquet", "cannot be read")


@pytest.mark.parametrize("name", SCHEMAS)
def test_changed_byte(folder: Path, name: str) -> None:
    path = folder / f"{name}.parquet"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    refused(folder, f"{name}.parquet", "hash")


@pytest.mark.parametrize("kept", [0, 3, 100, -1])
def test_truncated_file(folder: Path, kept: int) -> None:
    path = folder / "blocks.parquet"
    path.write_bytes(path.read_bytes()[:kept])
    refused(folder, "blocks.parquet", "hash")
    bless(folder, "blocks")
    refused(folder, "blocks.parquet", "not a readable Parquet file")


def test_row_count_of_the_manifest(folder: Path) -> None:
    edit_manifest(folder, lambda m: m["tables"]["pairs"].update(rows=m["tables"]["pairs"]["rows"] + 1))
    refused(folder, "pairs.parquet", "rows")


# Columns, types and values.


@pytest.mark.parametrize("name", SCHEMAS)
def test_missing_and_extra_columns(folder: Path, name: str) -> None:
    data = pq.read_table(folder / f"{name}.parquet")
    last = data.column_names[-1]
    rewrite(folder, name, data.drop_columns([last]))
    refused(folder, f"{name}.parquet", "missing", repr(last))
    rewrite(folder, name, data.append_column("colour", pa.array(["red"] * data.num_rows)))
    refused(folder, f"{name}.parquet", "unexpected", "'colour'")


@pytest.mark.parametrize(
    ("name", "column", "wrong"),
    [
        ("texts", "token", pa.int64()),
        ("along", "top1_prob", pa.float64()),
        ("prompts", "finish", pa.binary()),
        ("blocks", "confidence", pa.list_(pa.float64())),
        ("latency", "seconds", pa.float32()),
    ],
)
def test_wrong_type(folder: Path, name: str, column: str, wrong: pa.DataType) -> None:
    data = pq.read_table(folder / f"{name}.parquet")
    at = data.column_names.index(column)
    rewrite(folder, name, data.set_column(at, column, data.column(column).cast(wrong)))
    refused(folder, f"{name}.parquet", repr(column), "type", str(SCHEMAS[name].schema.field(column).type))


VALUES = [
    ("along", "top1_prob", float("nan")),
    ("along", "top1_prob", -0.1),
    ("along", "top1_prob", 1.01),
    ("along", "entropy", float("inf")),
    ("along", "top2_margin", -1.0),
    ("along", "greedy_token", -1),
    ("pairs", "tv", 1.5),
    ("pairs", "tv", float("nan")),
    ("texts", "position", -1),
    ("texts", "token", -5),
    ("latency", "seconds", -1e-9),
    ("latency", "seconds", float("nan")),
    ("latency", "seconds", float("inf")),
    ("latency", "batch", 0),
    ("prompts", "finish", "tired"),
    ("prompts", "prompt_tokens", 0),
    ("prompts", "output_tokens", 0),
]


@pytest.mark.parametrize(("name", "column", "value"), VALUES)
def test_value_out_of_range(folder: Path, name: str, column: str, value: object) -> None:
    edit_rows(folder, name, lambda rows: rows[1].update({column: value}))
    refused(folder, f"{name}.parquet", "row 1", repr(column))


@pytest.mark.parametrize(
    ("name", "column", "value"),
    [
        ("blocks", "confidence", 1.5),
        ("blocks", "confidence", float("nan")),
        ("blocks", "tokens", -1),
        ("blocks", "entropy", -0.5),
        ("verdicts", "overlap", 1.5),
        ("verdicts", "greedy_token", -2),
        ("verdicts", "top1_prob", float("nan")),
    ],
)
def test_item_out_of_range(folder: Path, name: str, column: str, value: float) -> None:
    at: list[int] = []

    def change(rows: Rows) -> None:
        at.append(max(i for i, row in enumerate(rows) if row[column]))
        rows[at[0]][column][-1] = value

    edit_rows(folder, name, change)
    refused(folder, f"{name}.parquet", f"row {at[0]},", repr(column))


def test_nulls(folder: Path) -> None:
    loose = pa.schema([f.with_nullable(True) for f in SCHEMAS["along"].schema])
    rows = pq.read_table(folder / "along.parquet").to_pylist()
    rows[2]["entropy"] = None
    rewrite(folder, "along", pa.Table.from_pylist(rows, schema=loose))
    refused(folder, "along.parquet", "row 2", "'entropy'")


def test_null_model_name(folder: Path) -> None:
    loose = pa.schema([f.with_nullable(True) for f in SCHEMAS["along"].schema])
    rows = pq.read_table(folder / "along.parquet").to_pylist()
    rows[3]["model"] = None
    rewrite(folder, "along", pa.Table.from_pylist(rows, schema=loose))
    refused(folder, "along.parquet", "row 3", "'model'")


@pytest.mark.parametrize("name", SCHEMAS)
def test_duplicated_key(folder: Path, name: str) -> None:
    data = pq.read_table(folder / f"{name}.parquet")
    rewrite(folder, name, pa.concat_tables([data, data.slice(1, 1)]))
    refused(folder, f"{name}.parquet", f"rows 1 and {data.num_rows}", "same key", SCHEMAS[name].key[0])


# Table against table.


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("along", "model"),
        ("pairs", "model_a"),
        ("pairs", "model_b"),
        ("blocks", "drafter"),
        ("verdicts", "drafter"),
        ("verdicts", "verifier"),
        ("latency", "model"),
    ],
)
def test_unknown_model(folder: Path, name: str, column: str) -> None:
    edit_rows(folder, name, lambda rows: rows[4].update({column: "stranger"}))
    refused(folder, f"{name}.parquet", "row 4", repr(column), "stranger", TARGET)


def index_of(rows: Rows, wanted: Callable[[dict[str, Any]], bool]) -> int:
    return next(i for i, row in enumerate(rows) if wanted(row))


def test_no_prompts(folder: Path) -> None:
    edit_rows(folder, "prompts", lambda rows: rows.clear())
    refused(folder, "prompts.parquet", "prompt_id")


def test_prompt_numbers_in_order(folder: Path) -> None:
    edit_rows(folder, "prompts", lambda rows: rows.reverse())
    refused(folder, "prompts.parquet", "row 0", "prompt_id")


def test_text_longer_than_the_manifest_allows(folder: Path) -> None:
    edit_manifest(folder, lambda m: m.update(output_tokens=20))
    refused(folder, "prompts.parquet", "output_tokens", "20")


def test_text_with_a_hole(folder: Path) -> None:
    edit_rows(folder, "texts", lambda rows: rows.pop(3))
    refused(folder, "texts.parquet", "position")


def test_text_out_of_order(folder: Path) -> None:
    edit_rows(folder, "texts", lambda rows: rows.insert(0, rows.pop(3)))
    refused(folder, "texts.parquet", "row 0", "position")


@pytest.mark.parametrize("found", ["eos", "length"])
def test_wrong_finish(folder: Path, found: str) -> None:
    other = {"eos": "length", "length": "eos"}[found]

    def change(rows: Rows) -> None:
        rows[index_of(rows, lambda r: r["finish"] == found)]["finish"] = other

    edit_rows(folder, "prompts", change)
    refused(folder, "prompts.parquet", "'finish'", other)


def test_text_token_outside_the_vocabulary(folder: Path) -> None:
    edit_rows(folder, "texts", lambda rows: rows[2].update(token=VOCABULARY))
    refused(folder, "texts.parquet", "row 2", "'token'")


# Fails when written: only the last token of a text is looked at, and replay takes an end of text in
# the middle for a draft like any other.
def test_text_that_goes_on_after_its_end(folder: Path) -> None:
    edit_rows(folder, "texts", lambda rows: rows[2].update(token=EOS))
    edit_rows(
        folder,
        "along",
        lambda rows: [
            row.update(greedy_token=EOS)
            for row in rows
            if row["prompt_id"] == 0 and row["position"] == 2 and row["model"] == TARGET
        ],
    )
    refused(folder, "texts.parquet", "row 2", "'token'")


# Fails when written: a text that ends without an end of text and short of the manifest's length is
# taken, and replay then drafts past its end.
def test_text_cut_short_of_its_length(folder: Path) -> None:
    edit_manifest(folder, lambda m: m.update(output_tokens=30))
    refused(folder, "prompts.parquet", "output_tokens")


def test_along_with_a_hole(folder: Path) -> None:
    edit_rows(folder, "along", lambda rows: rows.pop(5))
    refused(folder, "along.parquet", "rows")


def test_along_past_the_text(folder: Path) -> None:
    edit_rows(folder, "along", lambda rows: rows[5].update(position=500))
    refused(folder, "along.parquet", "row 5", "position")


def test_target_that_did_not_write_the_text(folder: Path) -> None:
    at: list[int] = []

    def change(rows: Rows) -> None:
        at.append(index_of(rows, lambda r: r["model"] == TARGET and r["position"] == 3))
        rows[at[0]]["greedy_token"] = (rows[at[0]]["greedy_token"] + 1) % VOCABULARY

    edit_rows(folder, "along", change)
    refused(folder, "along.parquet", f"row {at[0]},", "greedy_token")


def test_target_off_its_text_by_a_near_tie_is_allowed(folder: Path) -> None:
    def change(rows: Rows) -> None:
        row = rows[index_of(rows, lambda r: r["model"] == TARGET and r["position"] == 3)]
        row.update(greedy_token=(row["greedy_token"] + 1) % VOCABULARY, top2_margin=1e-4)

    edit_rows(folder, "along", change)
    refused(folder, "behaviour_sha256")  # the change itself is seen, by the hash over all tables


@pytest.mark.parametrize("drafter", [SMALL, MIDDLE, LOOKUP])
def test_missing_block(folder: Path, drafter: str) -> None:
    edit_rows(folder, "blocks", lambda rows: rows.pop(index_of(rows, lambda r: r["drafter"] == drafter)))
    refused(folder, "blocks.parquet", "'start'", repr(drafter))


def test_block_where_the_drafter_agrees(folder: Path) -> None:
    at: list[int] = []

    def change(rows: Rows) -> None:
        taken = {r["start"] for r in rows if r["prompt_id"] == 0 and r["drafter"] == SMALL}
        row = dict(rows[index_of(rows, lambda r: r["prompt_id"] == 0 and r["drafter"] == SMALL)])
        row["start"] = min(set(range(20)) - taken)
        rows.append(row)
        at.append(len(rows) - 1)

    edit_rows(folder, "blocks", change)
    refused(folder, "blocks.parquet", f"row {at[0]},", "'start'")


def test_block_too_short_and_too_long(folder: Path) -> None:
    edit_manifest(folder, lambda m: m.update(block_length=5))
    refused(folder, "blocks.parquet", "'tokens'", "4 items")
    edit_manifest(folder, lambda m: m.update(block_length=3))
    refused(folder, "blocks.parquet", "'tokens'", "4 items")


@pytest.mark.parametrize("column", ["confidence", "top1_prob", "top2_margin", "entropy"])
def test_block_with_lists_of_other_lengths(folder: Path, column: str) -> None:
    edit_rows(folder, "blocks", lambda rows: rows[0][column].append(0.5))
    refused(folder, "blocks.parquet", "row 0", repr(column))


def test_block_that_begins_with_another_token(folder: Path) -> None:
    at: list[int] = []

    def change(rows: Rows) -> None:
        at.append(index_of(rows, lambda r: r["drafter"] == SMALL and r["start"] < 15))
        rows[at[0]]["tokens"][0] = (rows[at[0]]["tokens"][0] + 1) % VOCABULARY

    edit_rows(folder, "blocks", change)
    refused(folder, "blocks.parquet", f"row {at[0]},", "'tokens'")


# Fails when written: token ids of blocks, verdicts and along are not held against the vocabulary.
@pytest.mark.parametrize(("name", "column"), [("blocks", "tokens"), ("verdicts", "greedy_token")])
def test_block_token_outside_the_vocabulary(folder: Path, name: str, column: str) -> None:
    def change(rows: Rows) -> None:
        rows[index_of(rows, lambda r: r["drafter"] == SMALL and len(r[column]) > 2)][column][-1] = VOCABULARY

    edit_rows(folder, name, change)
    refused(folder, f"{name}.parquet", repr(column))


def test_verdict_without_its_block(folder: Path) -> None:
    edit_rows(folder, "verdicts", lambda rows: rows[2].update(start=400))
    refused(folder, "verdicts.parquet", "row 2", "'start'")


def test_missing_verdict(folder: Path) -> None:
    edit_rows(folder, "verdicts", lambda rows: rows.pop(2))
    refused(folder, "verdicts.parquet", "'verifier'")


@pytest.mark.parametrize("verifier", [MIDDLE, TARGET])
def test_verdict_of_another_length(folder: Path, verifier: str) -> None:
    at: list[int] = []

    def change(rows: Rows) -> None:
        at.append(index_of(rows, lambda r: r["verifier"] == verifier))
        rows[at[0]]["greedy_token"] += [1] * 6

    edit_rows(folder, "verdicts", change)
    refused(folder, "verdicts.parquet", f"row {at[0]},", "'greedy_token'")


# Fails when written: only verdicts' number is checked, so a drafter can stand in for a verifier and
# replay takes the missing verdict for a rejection of every draft.
@pytest.mark.parametrize("stand_in", [SMALL, LOOKUP])
def test_verdict_by_the_wrong_model(folder: Path, stand_in: str) -> None:
    def change(rows: Rows) -> None:
        row = rows[index_of(rows, lambda r: r["drafter"] == SMALL and r["verifier"] == MIDDLE)]
        row["verifier"] = stand_in

    edit_rows(folder, "verdicts", change)
    refused(folder, "verdicts.parquet", "'verifier'")


# Fails when written: only greedy_token's length is held against the block's.
@pytest.mark.parametrize("column", ["top1_prob", "top2_margin", "drafted_prob", "overlap"])
def test_verdict_with_lists_of_other_lengths(folder: Path, column: str) -> None:
    edit_rows(folder, "verdicts", lambda rows: rows[0][column].append(0.5))
    refused(folder, "verdicts.parquet", "row 0", repr(column))


def test_any_other_change_of_behaviour_is_seen(folder: Path) -> None:
    edit_rows(folder, "along", lambda rows: rows[0].update(entropy=rows[0]["entropy"] + 0.25))
    refused(folder, "manifest.json", "behaviour_sha256")


def test_new_latencies_are_no_change_of_behaviour(folder: Path) -> None:
    edit_rows(folder, "latency", lambda rows: rows[0].update(seconds=9.0))
    assert 9.0 in np.asarray(read_tables(folder).tables["latency"].column("seconds"))


# The manifest.


def test_manifest_missing(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    refused(folder, "manifest.json", "cannot be read", "simspec record")


def test_folder_missing(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "nowhere", "manifest.json")


@pytest.mark.parametrize("text", ["", "{", "not json", "[]", "null", '{"format": 1}', "\xff"])
def test_manifest_that_is_not_one(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_bytes(text.encode("latin-1"))
    refused(folder, "manifest.json")


def test_manifest_with_an_unknown_key(folder: Path) -> None:
    edit_manifest(folder, lambda m: m.update(colour="red"))
    refused(folder, "manifest.json", "colour")


MANIFEST_VALUES = [
    ("format", 2),
    ("origin", "dreamt"),
    ("target", "stranger"),
    ("vocabulary", 0),
    ("vocabulary", "many"),
    ("output_tokens", 0),
    ("block_length", -1),
    ("seed", -1),
    ("behaviour_sha256", "abc"),
    ("recipe_sha256", "0" * 63),
    ("eos_tokens", "2"),
    ("models", {}),
    ("tables", []),
]


@pytest.mark.parametrize(("field", "value"), MANIFEST_VALUES)
def test_manifest_with_a_wrong_value(folder: Path, field: str, value: object) -> None:
    edit_manifest(folder, lambda m: m.update({field: value}))
    with pytest.raises(BadInput) as caught:
        read_manifest(folder)
    assert "manifest.json" in str(caught.value)
    assert field in str(caught.value) or "target" in str(caught.value)


@pytest.mark.parametrize("field", ["format", "target", "tables", "behaviour_sha256", "eos_tokens", "dtype"])
def test_manifest_without_a_field(folder: Path, field: str) -> None:
    edit_manifest(folder, lambda m: m.pop(field))
    refused(folder, "manifest.json", field)


def test_manifest_without_a_table(folder: Path) -> None:
    edit_manifest(folder, lambda m: m["tables"].pop("pairs"))
    refused(folder, "'pairs'")


@pytest.mark.parametrize("name", ["../along.parquet", "/etc/passwd", "along"])
def test_manifest_that_names_a_file_elsewhere(folder: Path, name: str) -> None:
    edit_manifest(folder, lambda m: m["tables"]["along"].update(file=name))
    refused(folder, "manifest.json", "file")


def test_a_target_that_cannot_verify(folder: Path) -> None:
    edit_manifest(folder, lambda m: m.update(target=LOOKUP))
    refused(folder, "target")
