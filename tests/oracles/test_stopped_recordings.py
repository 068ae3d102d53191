"""Recordings that are stopped: by a full disk, a full memory, a signal. What was finished stays."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from simspec.cli import main
from simspec.errors import BadInput
from tests import recorded

pytestmark = pytest.mark.real_model  # torch and transformers; the weights are made up

SMALL = {"prompts": 3, "output_tokens": 12, "block_length": 6}
COMMAND = ["test"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A recipe, and the behaviour of a recording that nothing stopped."""
    import torch

    from simspec.record.session import record

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    folder = recorded.networks(tmp_path_factory.mktemp("tiny"))
    path = recorded.recipe(folder, **SMALL)
    yield path, record(path, folder / "trace", COMMAND).behaviour_sha256
    torch.set_num_threads(before)


def pieces(folder):
    return sorted(p.name for p in folder.iterdir() if p.is_dir())


def fails_once(function, error, at):
    """``function``, but its call number ``at`` raises ``error``."""
    calls = []

    def wrapped(*arguments, **named):
        calls.append(1)
        if len(calls) == at:
            raise error
        return function(*arguments, **named)

    return wrapped


def full_disk():
    return OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_keeps_what_is_finished(whole, tmp_path, monkeypatch, capsys):
    from simspec.record import shards
    from simspec.record.session import record

    path, behaviour = whole
    with monkeypatch.context() as patched:
        # Five tables a prompt and its own: the third one of the second prompt.
        patched.setattr(shards.pq, "write_table", fails_once(shards.pq.write_table, full_disk(), 9))
        with pytest.raises(SystemExit) as stop:
            main(["record", str(path), str(tmp_path / "out")])
    assert stop.value.code == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert "no space left while making prompt 2 of 3" in told
    assert "1 finished pieces are kept" in told
    assert pieces(tmp_path / "out.partial") == ["prompt-0000"]
    lines = []
    again = record(path, tmp_path / "out", COMMAND, lines.append)
    assert lines[0] == "prompt 1 of 3 (made-up): found"
    assert again.behaviour_sha256 == behaviour
    assert pieces(tmp_path) == ["out"]


def test_a_disk_that_is_full_when_the_trace_is_written(whole, tmp_path, monkeypatch):
    from simspec.record.session import record
    from simspec.traces import files

    path, behaviour = whole
    with monkeypatch.context() as patched:
        patched.setattr(files, "write_table", fails_once(files.write_table, full_disk(), 3))
        with pytest.raises(BadInput, match=r"no space left while writing the trace; .* 3 finished pieces"):
            record(path, tmp_path / "out", COMMAND)
    assert pieces(tmp_path) == ["out.partial"]  # nothing half written takes up room
    assert record(path, tmp_path / "out", COMMAND).behaviour_sha256 == behaviour


def test_other_errors_are_not_taken_for_a_full_disk(whole, tmp_path, monkeypatch):
    from simspec.record import shards
    from simspec.record.session import record

    refused = PermissionError(errno.EACCES, "Permission denied")
    monkeypatch.setattr(shards.pq, "write_table", fails_once(shards.pq.write_table, refused, 1))
    with pytest.raises(PermissionError):
        record(whole[0], tmp_path / "out", COMMAND)


def test_a_missing_model_is_named_and_leaves_nothing_behind(whole, tmp_path, capsys):
    path = tmp_path / "r.toml"
    gone = whole[0].read_text().replace('source = "near"', 'source = "gone"', 1)
    path.write_text(gone.replace("prompts.jsonl", str(whole[0].parent / "prompts.jsonl")))
    (tmp_path / "target").symlink_to(whole[0].parent / "target")
    (tmp_path / "near").symlink_to(whole[0].parent / "near")
    with pytest.raises(SystemExit) as stop:
        main(["record", str(path), str(tmp_path / "out")])
    assert stop.value.code == 2
    assert "gone" in capsys.readouterr().err
    assert not list(tmp_path.glob("out*"))


def test_memory_that_runs_out_for_good_keeps_what_is_finished(whole, tmp_path, monkeypatch):
    import torch

    from simspec.record import tabulate
    from simspec.record.session import record

    path, behaviour = whole
    error = torch.OutOfMemoryError("CUDA out of memory.")
    with monkeypatch.context() as patched:
        patched.setattr(tabulate, "decode_greedy", fails_once(tabulate.decode_greedy, error, 2))
        with pytest.raises(BadInput, match=r"out of memory while making prompt 2 of 3 .* 1 finished pieces"):
            record(path, tmp_path / "out", COMMAND)
    assert pieces(tmp_path / "out.partial") == ["prompt-0000"]
    assert record(path, tmp_path / "out", COMMAND).behaviour_sha256 == behaviour


def test_fewer_tokens_are_read_at_once_when_memory_runs_out(whole, tmp_path, monkeypatch):
    """Every forward over more than 40 tokens of blocks fails, and drafting fails once more."""
    import torch

    from simspec.record import blocks, branches
    from simspec.record.session import record
    from simspec.traces.reader import read_tables

    path, _ = whole
    original, widths = branches.forward, []

    def stop(*_):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    def narrow(network, tokens, *rest):
        if tokens.shape[1] <= 40:
            widths.append(tokens.shape[1])
            return original(network, tokens, *rest)
        # Between two layers: one's cache holds the new tokens, the other's does not.
        hook = network.model.layers[1].register_forward_pre_hook(stop)
        try:
            return original(network, tokens, *rest)
        finally:
            hook.remove()

    monkeypatch.setattr(branches, "forward", narrow)
    late = RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9")
    monkeypatch.setattr(blocks, "roll_out", fails_once(blocks.roll_out, late, 2))
    lines = []
    record(path, tmp_path / "out", COMMAND, lines.append)
    assert sum("out of memory" in line for line in lines) == 1
    assert max(widths) > 6  # several blocks at once, still
    ours, theirs = read_tables(tmp_path / "out"), read_tables(path.parent / "trace")
    for name in ("blocks", "verdicts"):
        # Other portions, another order of rows; the same rows.
        key = [k for k in ("prompt_id", "start", "drafter", "verifier") if k in ours.frame(name)]
        mine, other = (r.frame(name).sort_values(key).reset_index(drop=True) for r in (ours, theirs))
        assert mine[key].equals(other[key]), name
        for column in mine.columns.difference(key):
            for a, b in zip(mine[column], other[column], strict=True):
                assert np.allclose(a, b, atol=2e-3), (name, column)


def test_a_single_block_that_does_not_fit_is_an_error(whole, tmp_path, monkeypatch):
    import torch

    from simspec.record import branches
    from simspec.record.session import record

    def never(*_):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(branches, "forward", never)
    with pytest.raises(BadInput, match=r"out of memory while making prompt 1 of 3 .* 0 finished pieces"):
        record(whole[0], tmp_path / "out", COMMAND)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that cannot be caught")
def test_a_killed_run_loses_one_prompt_at_most(whole, tmp_path):
    from simspec.record.session import record

    path, behaviour = whole
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.Popen(
        [sys.executable, "-m", "simspec", "record", str(path), str(tmp_path / "out")],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert run.stderr is not None
    for line in run.stderr:
        if line.startswith("prompt 1 of 3"):
            run.kill()
            break
    run.wait()
    run.stderr.close()
    assert run.returncode == -signal.SIGKILL
    assert "prompt-0000" in pieces(tmp_path / "out.partial")
    assert not (tmp_path / "out").exists()
    lines = []
    assert record(path, tmp_path / "out", COMMAND, lines.append).behaviour_sha256 == behaviour
    assert lines[0] == "prompt 1 of 3 (made-up): found"
