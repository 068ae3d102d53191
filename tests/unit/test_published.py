"""Reading published times without guessing, and setting predictions beside them."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from simspec.cost import presets
from simspec.cost.published import Case, compare, papers, published_errors
from simspec.cost.reports import COLUMNS, read_reports
from simspec.errors import BadInput

# Made-up reports; none of these times was measured.
ROW = {
    "id": "X1",
    "url": "made-up/1",
    "hardware": "H100",
    "target": "Llama-3.1-8B-Instruct",
    "draft": "llama-68m",
    "batch_or_concurrency": "1",
    "k": "4",
    "t_draft_ms": "",
    "t_target1_ms": "7.5",
    "t_verify_ms": "",
}


def reports(tmp_path: Path, *rows: dict[str, str], columns: tuple[str, ...] = COLUMNS) -> Path:
    path = tmp_path / "reports.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows({**ROW, **row} for row in rows)
    return path


def read_one(tmp_path: Path, **row: str) -> Case:
    found = read_reports(reports(tmp_path, row))
    assert not found.not_compared
    assert len(found.cases) == 1
    return found.cases[0]


def test_a_row_may_hold_three_times(tmp_path):
    found = read_reports(reports(tmp_path, {"t_draft_ms": "0.5", "t_verify_ms": "9.25"}))
    assert [(c.id, c.architecture, c.width, c.published_ms) for c in found.cases] == [
        ("X1/t_target1_ms", "Llama-3.1-8B", 1, 7.5),
        ("X1/t_verify_ms", "Llama-3.1-8B", 5, 9.25),
        ("X1/t_draft_ms", "llama-68m", 1, 0.5),
    ]
    assert all(c.device == "h100-sxm" for c in found.cases)


@pytest.mark.parametrize(
    ("row", "field", "value"),
    [
        ({"hardware": "RTX 4090 24GB WSL2"}, "device", "rtx-4090"),
        ({"hardware": "1x H100 80GB"}, "device", "h100-sxm"),
        ({"hardware": "A100 (1x)"}, "device", "a100-80g-sxm"),
        ({"target": "Llama-7B"}, "architecture", "Llama-2-7b"),
        ({"target": "Qwen2.5-Coder-7B"}, "architecture", "Qwen2.5-7B"),
        ({"target": "Llama-3.1-8B-Instruct q8_0"}, "weight_bytes", 1.0625),
        ({"target": "Qwen3-4B"}, "weight_bytes", None),
        ({"t_target1_ms": "68.1 (14.68 t/s)"}, "published_ms", 68.1),
        ({"t_target1_ms": "90.9 (~11 t/s)"}, "published_ms", 90.9),
        ({"batch_or_concurrency": "16"}, "rows", 16),
    ],
)
def test_what_can_be_read(tmp_path, row, field, value):
    assert getattr(read_one(tmp_path, **row), field) == value


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"t_target1_ms": "5.886+0.021*n (ms)"}, "single number"),
        ({"t_target1_ms": "140 (K=2), ~270 (K=4)"}, "single number"),
        ({"t_target1_ms": "0"}, "single number"),
        ({"hardware": "not stated in excerpt"}, "no preset for the device"),
        ({"hardware": "RTX 4090 mobile"}, "no preset for the device"),
        ({"hardware": "2x H100 TP=2"}, "several devices"),
        ({"hardware": "8x H100 TP8"}, "several devices"),
        ({"hardware": "RTX 5080 16GB + RTX 3090 24GB (TP)"}, "several devices"),
        ({"target": "Qwen3.5-27B Q4_K_M"}, "no preset for the model"),
        ({"target": "Llama-3.1-8B-Instruct Q4_K_M"}, "mixed or unknown size"),
        ({"batch_or_concurrency": "QPS=1"}, "batch"),
        ({"t_target1_ms": "", "t_verify_ms": "9", "k": "tree budget 28"}, "verified drafts"),
        ({"t_target1_ms": "", "t_draft_ms": "2", "draft": "EAGLE-3"}, "no preset for the model"),
    ],
)
def test_what_cannot_be_read_is_given_a_reason(tmp_path, row, reason):
    found = read_reports(reports(tmp_path, row))
    assert not found.cases
    assert len(found.not_compared) == 1
    assert reason in found.not_compared[0].reason


def test_the_same_time_of_the_same_report_counts_once(tmp_path):
    other = {"id": "X3", "url": "made-up/2"}
    found = read_reports(reports(tmp_path, {}, {"id": "X2", "k": "7"}, other))
    assert [c.id for c in found.cases] == ["X1/t_target1_ms", "X3/t_target1_ms"]
    assert [(n.id, n.reason) for n in found.not_compared] == [
        ("X2/t_target1_ms", "repeats another row of the same report")
    ]


def test_files_that_are_refused(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        read_reports(tmp_path / "none.csv")
    with pytest.raises(BadInput, match="no column 'k'"):
        read_reports(reports(tmp_path, {}, columns=tuple(c for c in COLUMNS if c != "k")))
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match=r"bytes\.csv"):
        read_reports(tmp_path / "bytes.csv")


def test_short_rows_are_no_trouble(tmp_path):
    path = tmp_path / "short.csv"
    path.write_text(",".join(COLUMNS) + "\nX1,made-up\n")
    found = read_reports(path)
    assert not found.cases
    assert not found.not_compared


def test_the_figures_of_papers():
    found = papers()
    by_id = {c.id: c for c in found.cases}
    assert len(by_id) == len(found.cases)
    # 5.886 + 0.0210 x 16 x 4 + 3.93e-5 x 16 x 512
    assert by_id["specdecode-bench-llama-3.1-8b/16x4@512"].published_ms == pytest.approx(7.5519456)
    assert by_id["libraspec-verify-qwen3-4b"].published_ms == 32.85
    assert found.not_compared
    for case in found.cases:
        assert presets.device(case.device).rates(case.dtype)
        assert presets.architecture(case.architecture)
        assert case.source
        assert case.assumed


def test_predictions_and_their_errors():
    case = papers().cases[0]
    twice = Case(**{f: getattr(case, f) for f in case.__struct_fields__} | {"published_ms": 1.0})
    first, second = compare([case, twice])
    assert first.predicted_ms == second.predicted_ms
    assert first.ratio == first.predicted_ms / case.published_ms
    errors = published_errors([first, second])
    assert set(errors) == {"time", "all"}
    assert errors["all"].points == 2
    assert errors["all"].median == pytest.approx((abs(first.ratio - 1) + abs(second.ratio - 1)) / 2)
    assert published_errors([]) == {}


def test_quantised_weights_take_their_bytes(tmp_path):
    full, eight = (
        compare([read_one(tmp_path, target=f"Llama-3.1-8B{q}")])[0].predicted_ms for q in ("", " q8_0")
    )
    assert eight / full == pytest.approx(1.0625 / 2, rel=0.02)


@pytest.mark.shared
def test_every_time_of_the_public_cases_is_compared_or_given_a_reason(shared_folder):
    path = shared_folder / "data" / "public_cases.csv"
    with path.open(newline="") as file:
        times = sum(
            bool(row[c].strip()) for row in csv.DictReader(file) for c in COLUMNS if c.startswith("t_")
        )
    found = read_reports(path)
    assert len(found.cases) + len(found.not_compared) == times
    assert len(found.cases) >= 5
    assert sum(Counter(n.reason for n in found.not_compared).values()) == len(found.not_compared)
