"""A latency profile: written whole, checked when read, and used as a cost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from simspec.compare.costs import cost_inputs, open_cost, whole_grid
from simspec.compare.rooflines import measured_study, read_measured
from simspec.cost.models import MeasuredCost
from simspec.cost.shape import uniform
from simspec.errors import BadInput
from simspec.tables import LATENCY
from simspec.traces.index import outline
from simspec.traces.manifest import TableEntry
from simspec.traces.profile import Profile, ProfiledModel, read_profile, write_profile
from simspec.traces.reader import read_tables
from tests.toy import LOOKUP, MODELS, SMALL, TARGET, Setting, Toy, table_of

TOY = Toy(Setting(seed=6, prompts=2))
SIZES = {
    "layers": 2,
    "hidden": 8,
    "intermediate": 16,
    "heads": 2,
    "kv_heads": 1,
    "head_dim": 4,
    "vocabulary": 20,
    "tied": True,
}
# Made up, as everything of the toy is.
PROFILE = Profile(
    format=1,
    kind="latency-profile",
    name="toy-profile",
    origin="synthetic",
    created="2000-01-01T00:00:00Z",
    command=["simspec", "calibrate"],
    recipe={},
    recipe_sha256="0" * 64,
    models={
        name: ProfiledModel(kind="prompt-lookup", weights="none")
        if name == LOOKUP
        else ProfiledModel(kind="autoregressive", weights="random", architecture=SIZES)
        for name in MODELS
    },
    device="cpu",
    device_name="none",
    dtype="float32",
    threads=1,
    clock="none",
    order="none",
    seed=0,
    machine={},
    versions={},
    units={},
    missing=[],
    spread=[],
    peaks={},
    fits={},
    timing_seconds=0.0,
    table=TableEntry(file="latency.parquet", rows=0, sha256="0" * 64),
)


def latency(factor: float = 1.0) -> pa.Table:
    rows = TOY.tables["latency"].to_pylist()
    return table_of(LATENCY, [{**row, "seconds": factor * row["seconds"]} for row in rows])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_profile(tmp_path / "profile", PROFILE, latency(3.0))
    return tmp_path / "profile"


def at(cost: object, model: str) -> float:
    assert isinstance(cost, MeasuredCost)
    return float(cost.forward_seconds(model, uniform(*(np.array([n]) for n in (2, 4, 8))))[0])


def test_what_is_written_is_read_back(folder):
    profile, table = read_profile(folder)
    assert profile.table.rows == len(table) == TOY.tables["latency"].num_rows
    assert msgspec.structs.replace(profile, table=PROFILE.table) == PROFILE
    assert [p.name for p in folder.parent.iterdir()] == ["profile"]
    with pytest.raises(BadInput, match="never overwritten"):
        write_profile(folder, PROFILE, latency())


def test_a_table_that_is_refused_leaves_no_profile(tmp_path):
    bad = latency(float("nan"))
    with pytest.raises(BadInput, match="seconds"):
        write_profile(tmp_path / "profile", PROFILE, bad)
    assert not (tmp_path / "profile").exists()


def test_a_profile_that_was_changed_is_refused(folder):
    (folder / "latency.parquet").write_bytes(b"PAR1")
    with pytest.raises(BadInput, match="hash"):
        read_profile(folder)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("dtype", 3, "dtype"),
        ("kind", "trace", "kind"),
        ("colour", "red", "colour"),
        ("models", {"target": {"kind": "autoregressive", "weights": "real"}}, "unknown model"),
    ],
)
def test_a_manifest_that_is_refused(folder, field, value, told):
    path = folder / "profile.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(BadInput, match=told):
        read_profile(folder)


def test_a_folder_without_a_profile(tmp_path):
    with pytest.raises(BadInput, match="simspec calibrate"):
        read_profile(tmp_path)


def test_a_profile_is_a_cost(folder):
    trace = TOY.trace()
    cost = open_cost(trace, str(folder))
    assert cost.name == "toy-profile"
    for word in ("synthetic", "random weights: middle, small, target", "acceptance from the trace"):
        assert word in cost.label
    for model in MODELS:
        assert at(cost, model) == pytest.approx(3 * at(open_cost(trace, "float32"), model))
    assert set(cost_inputs([str(folder), "float32"])) == {"profile/profile.json"}


def test_a_profile_of_other_models_is_refused(folder):
    path = folder / "profile.json"
    manifest = json.loads(path.read_text())
    manifest["models"]["targets"] = manifest["models"]["target"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(BadInput, match="did you mean 'target'"):
        open_cost(TOY.trace(), str(folder))
    with pytest.raises(BadInput, match="folder of a latency profile"):
        open_cost(TOY.trace(), str(folder.parent))


def without(frame: pd.DataFrame, model: str, batches: set[int], widths: set[int]) -> pd.DataFrame:
    hole = frame["batch"].isin(batches) & frame["new_tokens"].isin(widths) & (frame["model"] == model)
    assert hole.any()
    return frame[~hole]


def test_batches_with_holes_are_left_out_and_named():
    frame = latency().to_pandas()
    # The wider forwards of the largest batch do not fit: half of its line, a third of each width's.
    whole, gone = whole_grid(without(frame, SMALL, {4}, {4, 8}))
    assert gone == [f"{SMALL} (float32) without batch 4"]
    assert set(whole[whole["model"] == SMALL]["batch"]) == {1, 2}
    assert set(whole[whole["model"] == TARGET]["batch"]) == {1, 2, 4}
    assert MeasuredCost(whole, "float32", "", "").models == set(MODELS)
    same, none = whole_grid(frame)
    assert none == []
    assert len(same) == len(frame)


def test_a_width_that_fits_one_row_only_does_not_cost_the_batches():
    whole, gone = whole_grid(without(latency().to_pandas(), SMALL, {2, 4}, {8}))
    assert gone == [f"{SMALL} (float32) without new tokens 8"]
    assert set(whole[whole["model"] == SMALL]["batch"]) == {1, 2, 4}


def test_a_profile_with_holes_says_so_in_its_label(tmp_path):
    frame = without(latency().to_pandas(), TARGET, {4}, {2, 4, 8})
    table = pa.Table.from_pandas(frame, schema=LATENCY.schema, preserve_index=False)
    write_profile(tmp_path / "holes", PROFILE, table)
    label = open_cost(TOY.trace(), str(tmp_path / "holes")).label
    assert "memory ran out: target (float32) without batch 4" in label


def test_a_study_of_a_profile(folder):
    study = measured_study(read_measured(folder, None), "rtx-4090")
    assert study["origin"] == "synthetic"
    assert isinstance(study["affine"], list)
    assert len(study["affine"]) == len(MODELS)
    assert isinstance(study["preset"], dict)
    assert set(study["preset"]["errors"]["float32"]) == set(MODELS) - {LOOKUP}
    with pytest.raises(BadInput, match="--architecture"):
        read_measured(folder, "Qwen3-8B")


def test_a_study_of_a_trace(tmp_path):
    TOY.write(tmp_path / "toy")
    study = measured_study(read_measured(tmp_path / "toy", None), None)
    assert study["roofline"] == []
    assert study["preset"] is None
    with_sizes = measured_study(read_measured(tmp_path / "toy", "llama-68m"), None)
    assert isinstance(with_sizes["roofline"], list)
    assert set(with_sizes["roofline"][0]["by_model"]) == {TARGET}
    with pytest.raises(BadInput, match=r"manifest\.json"):
        read_measured(tmp_path, None)


def test_layer_skips_follow_from_the_targets_sizes():
    folder = Path(__file__).parents[2] / "traces" / "smollm2-cpu"
    if not folder.exists():
        pytest.skip("the trace smollm2-cpu is not in traces/")
    found = read_measured(folder, "SmolLM2-135M")
    assert {m: a.layers for m, a in found.architectures.items()} == {
        "target": 30,
        "skip-10": 20,
        "skip-6": 24,
        "skip-2": 28,
    }
    with pytest.raises(BadInput, match="allowed: 30, the target's"):
        read_measured(folder, "Qwen3-8B")


def test_an_empty_latency_table_is_refused(tmp_path):
    toy = Toy(Setting(seed=6, prompts=2))
    from simspec.traces.files import write_trace

    write_trace(tmp_path / "toy", toy.manifest, {**toy.tables, "latency": LATENCY.schema.empty_table()})
    with pytest.raises(BadInput, match="no rows"):
        read_measured(tmp_path / "toy", None)


def test_whole_grid_keeps_number_formats_apart():
    frame = latency().to_pandas()
    half = frame[(frame["model"] == TARGET) & (frame["batch"] == 1)].assign(dtype="int8-dynamic")
    whole, gone = whole_grid(pd.concat([frame, half]))
    assert gone == []
    assert len(whole) == len(frame) + len(half)


TRACES = Path(__file__).parents[2] / "traces"


def test_another_traces_table_is_a_cost_of_the_models_that_both_have():
    sampled = outline(read_tables(TRACES / "smollm2-sampled-cpu"))
    cost = open_cost(sampled, str(TRACES / "smollm2-cpu"))
    own = open_cost(outline(read_tables(TRACES / "smollm2-cpu")), "float32")
    assert cost.models == set(sampled.manifest.models) < own.models
    assert at(cost, "skip-2") == at(own, "skip-2")
    assert "trace smollm2-cpu" in cost.label
    assert list(cost_inputs([str(TRACES / "smollm2-cpu")])) == ["smollm2-cpu/manifest.json"]


@pytest.mark.parametrize("field", ["kind", "skipped_count"])
def test_a_table_of_another_model_of_that_name_is_refused(field):
    trace = outline(read_tables(TRACES / "smollm2-sampled-cpu"))
    entry = trace.manifest.models["skip-2"]
    changed = (
        msgspec.structs.replace(entry, kind="block-parallel")
        if field == "kind"
        else msgspec.structs.replace(entry, about={**entry.about, "skipped_count": 3})
    )
    models = {**trace.manifest.models, "skip-2": changed}
    other = replace(trace, manifest=msgspec.structs.replace(trace.manifest, models=models))
    with pytest.raises(BadInput, match=f"'skip-2' is another one: {field} "):
        open_cost(other, str(TRACES / "smollm2-cpu"))
