"""``simspec inspect`` on the trace that comes with the project."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simspec.cli import main
from simspec.provenance import sha256_file

TRACE = Path(__file__).parents[2] / "traces" / "smollm2-cpu"

needs_trace = pytest.mark.skipif(
    not (TRACE / "manifest.json").exists(), reason=f"the trace {TRACE.name} is not in traces/"
)


def call(capsys, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(words)
    printed = capsys.readouterr()
    return stop.value.code, printed.out, printed.err


@pytest.fixture(scope="module")
def printed() -> str:
    """What --json prints, made once: reading the whole trace takes a while."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as stop:
        main(["inspect", str(TRACE), "--json"])
    assert (stop.value.code, err.getvalue()) == (0, "")
    return out.getvalue()


@needs_trace
def test_json_is_one_document_that_fits_the_manifest(printed):
    found = json.loads(printed)
    manifest = json.loads((TRACE / "manifest.json").read_text())
    assert found["name"] == manifest["name"]
    assert found["origin"] == manifest["origin"]
    assert [m["name"] for m in found["models"]] == list(manifest["models"])
    assert found["prompts"]["count"] == manifest["tables"]["prompts"]["rows"]
    assert found["prompts"]["positions"] == manifest["tables"]["texts"]["rows"]
    assert sum(found["prompts"]["ended_by"].values()) == found["prompts"]["count"]
    assert found["latency"]["grid"]["rows"] == manifest["tables"]["latency"]["rows"]
    assert found["provenance"]["command"] == ["simspec", "inspect", TRACE.as_posix(), "--json"]
    inputs = found["provenance"]["inputs"]
    assert inputs[f"{manifest['name']}/behaviour"] == manifest["behaviour_sha256"]


@needs_trace
def test_a_drafter_that_sees_the_text_agrees_as_often_as_its_first_draft_is_accepted(printed):
    # Two roads to one number: table pairs along the text, and the blocks drafted from every start.
    found = json.loads(printed)
    agrees = {p["model_b"]: p["argmax_agreement"] for p in found["pairs"] if p["model_a"] == found["target"]}
    kinds = {m["name"]: m["kind"] for m in found["models"]}
    slack = found["near_ties"]["count"] / found["near_ties"]["positions"] + 1e-9
    compared = 0
    for each in found["acceptance"]:
        if kinds[each["drafter"]] == "autoregressive":
            first = each["positions"][0]
            assert first["drafts"] == found["prompts"]["positions"]
            assert first["survival"]["value"] == pytest.approx(agrees[each["drafter"]], abs=slack)
            compared += 1
    assert compared


@needs_trace
def test_tables_name_every_model_and_doubt(capsys, printed):
    code, out, err = call(capsys, "inspect", str(TRACE))
    assert (code, err) == (0, "")
    found = json.loads(printed)
    for model in found["models"]:
        assert model["name"] in out
    for doubt in found["doubts"]:
        assert doubt["text"] in out
    assert f"Doubts: {len(found['doubts'])}" in out
    assert ("SYNTHETIC" in out) == (found["origin"] == "synthetic")


@needs_trace
def test_synthetic_is_shown_loudly(capsys, tmp_path):
    copy = shutil.copytree(TRACE, tmp_path / "copy")
    edit_manifest(copy, origin="synthetic")
    code, out, _ = call(capsys, "inspect", str(copy))
    assert code == 0
    assert "SYNTHETIC TRACE" in out.splitlines()[0]


@needs_trace
def test_confidence_above_one_is_refused_with_file_row_and_column(capsys, tmp_path):
    copy = shutil.copytree(TRACE, tmp_path / "copy")
    path = copy / "blocks.parquet"
    blocks = pq.read_table(path)
    sizes = np.diff(blocks.column("confidence").combine_chunks().offsets.to_numpy())
    row = int(np.flatnonzero(sizes)[-1])
    values = blocks.column("confidence").to_pylist()
    values[row][0] = 1.5
    at = blocks.schema.get_field_index("confidence")
    field = blocks.schema.field(at)
    pq.write_table(blocks.set_column(at, field, pa.array(values, field.type)), path)
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["tables"]["blocks"]["sha256"] = sha256_file(path)
    edit_manifest(copy, tables=manifest["tables"])
    code, out, err = call(capsys, "inspect", str(copy))
    assert (code, out) == (2, "")
    assert "blocks.parquet" in err
    assert f"row {row}, column 'confidence': 1.5" in err


def edit_manifest(folder: Path, **fields) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_a_folder_without_a_trace_is_bad_input(capsys, tmp_path):
    code, out, err = call(capsys, "inspect", str(tmp_path))
    assert (code, out) == (2, "")
    assert "manifest.json" in err


def test_importing_the_verb_loads_neither_torch_nor_matplotlib():
    script = "import sys, simspec.cli.inspect; print(sorted({'torch', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
