"""Logs of requests from other people's files: instants exact, rows refused by name or counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from simspec.errors import BadInput
from simspec.interop.azure import read_azure
from simspec.interop.burstgpt import read_burstgpt
from simspec.interop.log import RequestLog
from simspec.interop.mooncake import read_mooncake
from simspec.interop.specdecode_bench import read_emitted_runs

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
BURST = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
BURST_2 = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"


def file(folder: Path, text: str, name: str = "log") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_azure_keeps_every_digit_and_starts_at_zero(tmp_path: Path) -> None:
    text = AZURE + "2023-11-16 23:59:59.9799600,4808,10\n2023-11-17 00:00:00.0319607,3180,8\n"
    found = read_azure(file(tmp_path, text))
    assert found.at_ns.tolist() == [0, 52_000_700]
    assert found.prompt_tokens.tolist() == [4808, 3180]
    assert found.output_tokens.tolist() == [10, 8]
    assert found.dropped == {}


@pytest.mark.parametrize("zone", ["", "+00:00", "Z"])
def test_azure_without_digits_and_in_utc(tmp_path: Path, zone: str) -> None:
    text = AZURE + f"2024-05-12 00:00:00{zone},5,1\n2024-05-12T00:00:00.5{zone},5,1\n"
    assert read_azure(file(tmp_path, text)).at_ns.tolist() == [0, 500_000_000]


def test_rows_without_output_are_counted_and_late_rows_sorted(tmp_path: Path) -> None:
    stamps = [("03.5", 7, 1), ("01.0", 8, 2), ("02.0", 9, 0), ("04.0", 0, 3)]
    text = AZURE + "".join(f"2023-11-16 18:17:{s},{p},{o}\n" for s, p, o in stamps)
    found = read_azure(file(tmp_path, text))
    assert found.dropped == {"no output": 1, "no prompt": 1}
    assert found.reordered == 1
    assert found.prompt_tokens.tolist() == [8, 7]
    assert found.at_ns.tolist() == [0, 2_500_000_000]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("2023-11-16 18:17:03,-1,10", r"row 4, column 'ContextTokens': '-1'"),
        ("2023-11-16 18:17:03,1.5,10", r"row 4, column 'ContextTokens': '1.5'"),
        ("2023-11-16 18:17:03,nan,10", r"row 4, column 'ContextTokens': 'nan'"),
        ("2023-11-16 18:17:03,,10", r"row 4, column 'ContextTokens': ''"),
        ("2023-11-16 18:17:03,1,99999999999999999999", r"row 4, column 'GeneratedTokens'"),
        (",1,10", r"row 4, column 'TIMESTAMP': ''"),
        ("0,1,10", r"row 4, column 'TIMESTAMP': '0'"),
        ("2023-13-16 18:17:03,1,10", r"row 4, column 'TIMESTAMP': '2023-13-16"),
        ("2023-11-16 18:17:03+02:00,1,10", r"row 4, column 'TIMESTAMP'"),
        ("2023-11-16 18:17:03Z,1,10", r"zone in some rows only"),
    ],
)
def test_azure_refuses_a_row_by_its_name(tmp_path: Path, row: str, said: str) -> None:
    path = file(tmp_path, AZURE + "\n2023-11-16 18:17:03,1,1\n" + row + "\n")
    with pytest.raises(BadInput, match=said) as error:
        read_azure(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no column"),
        ("a,b\n1,2\n", "has no column 'TIMESTAMP'"),
        (AZURE.replace("ContextTokens", "TIMESTAMP"), "a column twice"),
        (AZURE, "no request with a prompt and output"),
        (AZURE + "2023-11-16 18:17:03,1,0\n", "no request with a prompt and output"),
        (AZURE + "2023-11-16 18:17:03,1,1,1,1,1\n2023-11-16 18:17:03,1,1\n", "row 2 has 6 fields"),
        (AZURE + "2023-11-16 18:17:03,1\n", "row 2 has 2 fields"),
        (AZURE + '"2023-11-16 18:17:03,1,1\n', "is no CSV"),
    ],
)
def test_azure_refuses_files_that_are_none(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read_azure(file(tmp_path, text))
    with pytest.raises(BadInput, match="cannot be read"):
        read_azure(tmp_path / "absent")


def test_burstgpt_in_both_layouts(tmp_path: Path) -> None:
    first = (
        BURST + "5,ChatGPT,472,18,490,Conversation log\n45.25,ChatGPT,10,0,10,API log\n50,GPT-4,7,9,16,x\n"
    )
    found = read_burstgpt(file(tmp_path, first))
    assert found.at_ns.tolist() == [0, 45_000_000_000]
    assert found.dropped == {"no output": 1}
    assert found.sessions is None
    second = BURST_2 + "100.0,b,1,GPT-4,906,446,1352,c\n101.5,a,1,GPT-4,1,2,3,c\n102,b,1,GPT-4,4,5,9,c\n"
    found = read_burstgpt(file(tmp_path, second))
    assert found.sessions is not None
    assert found.sessions.tolist() == [0, 1, 0]
    assert found.at_ns.tolist() == [0, 1_500_000_000, 2_000_000_000]


def test_burstgpt_refuses_what_is_no_second(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="row 2, column 'Timestamp': '-5'"):
        read_burstgpt(file(tmp_path, BURST + "-5,m,1,1,2,x\n"))


def mooncake(**changes: object) -> str:
    row = {"timestamp": 27482, "input_length": 600, "output_length": 52, "hash_ids": [46, 47]}
    return json.dumps({k: v for k, v in {**row, **changes}.items() if v is not None}) + "\n"


def test_mooncake_is_in_milliseconds(tmp_path: Path) -> None:
    found = read_mooncake(file(tmp_path, mooncake() + "\n" + mooncake(timestamp=27485)))
    assert found.at_ns.tolist() == [0, 3_000_000]
    assert found.unit == "milliseconds"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (mooncake(timestamp=None), "line 2: .*timestamp"),
        (mooncake(timestamp=1.5), "line 2: .*timestamp"),
        (mooncake(timestamp=-1), "line 2, timestamp -1"),
        (mooncake(timestamp="27482"), "line 2: .*timestamp"),
        (mooncake(hash_ids=[1]), "line 2: 1 hash_ids for input_length 600"),
        (mooncake(output_length=10**13), "line 2, output_length"),
        ("{not json\n", "line 2 is no JSON"),
        ("[]\n", "line 2: "),
        (mooncake(), "all 2 rows have timestamp 27482"),
    ],
)
def test_mooncake_refuses_a_line_by_its_number(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read_mooncake(file(tmp_path, mooncake() + line))


def log(at_ns: list[int]) -> RequestLog:
    ones = np.ones(len(at_ns), dtype=np.int64)
    return RequestLog(np.array(at_ns, dtype=np.int64), np.arange(1, len(at_ns) + 1), ones, "made up", "ns")


def test_windows_scales_and_rates() -> None:
    whole = log([0, 1_000_000_000, 2_000_000_000, 4_000_000_001])
    part = whole.window(1, 4)
    assert part.at_ns.tolist() == [0, 1_000_000_000]
    assert part.prompt_tokens.tolist() == [2, 3]
    assert whole.scaled(0.5).at_ns.tolist() == [0, 500_000_000, 1_000_000_000, 2_000_000_000]
    assert whole.at_rate(3).rate == pytest.approx(3, rel=1e-8)
    assert whole.rate == pytest.approx(0.75)
    assert len(whole.first(2)) == 2
    with pytest.raises(BadInput, match="no request arrives from 5"):
        whole.window(5, 9)
    with pytest.raises(BadInput, match="no request arrives"):
        whole.window(2, 1)
    for bad in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(BadInput, match="time scale"):
            whole.scaled(bad)
        with pytest.raises(BadInput, match="rate"):
            whole.at_rate(bad)
    with pytest.raises(BadInput, match="window"):
        whole.window(float("nan"), 1)
    with pytest.raises(BadInput, match="all requests arrive at once"):
        log([0, 0]).at_rate(1)


def bench(**changes: object) -> str:
    row: dict[str, object] = {
        "id": 1,
        "prompt_token_ids": [1, 2],
        "generated_token_ids": [3, 4, 5],
        "acc_eagle": {"acc_len": [2, 1, 1]},
        "acc_ngram": {"acc_len": [1, 1, 1]},
    }
    return json.dumps({**row, **changes}) + "\n"


def test_emitted_runs(tmp_path: Path) -> None:
    found = read_emitted_runs(file(tmp_path, bench() + bench()), "eagle")
    assert [run.tolist() for run in found.emitted] == [[2, 1, 1]] * 2
    assert found.prompt_tokens.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (bench(acc_eagle={"acc_len": [2, 1]}), "2 entries of acc_len for 3"),
        (bench(acc_eagle={"acc_len": [2, 0, 1]}), "acc_len holds 0"),
        (bench(acc_eagle={"acc_len": [2, True, 1]}), "acc_len holds True"),
        (bench(acc_eagle={}), "lacks acc_eagle"),
        ("[1]\n", "is no object"),
    ],
)
def test_emitted_runs_refuse_a_line_by_its_number(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(BadInput, match="line 2") as error:
        read_emitted_runs(file(tmp_path, bench() + line), "eagle")
    assert said in str(error.value)
    with pytest.raises(BadInput, match="did you mean 'eagle'"):
        read_emitted_runs(file(tmp_path, bench()), "eagel")


@pytest.mark.shared
@pytest.mark.parametrize(("name", "rows", "near"), [("code", 8819, 0.387), ("conv", 19366, 0.069)])
def test_the_real_azure_traces(shared_folder: Path, name: str, rows: int, near: float) -> None:
    """All rows are kept, and so are arrivals less than 10 ms apart, which are many."""
    found = read_azure(shared_folder / "data" / f"AzureLLMInferenceTrace_{name}.csv")
    assert len(found) == rows
    assert found.dropped == {}
    gaps = np.diff(found.at_ns)
    assert float((gaps < 10_000_000).mean()) == pytest.approx(near, abs=0.001)
    assert (gaps[gaps < 10_000_000] > 0).any()
