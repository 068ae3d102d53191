"""Figures of the critic's experiment and of validation, counted by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from simspec.cli import main
from simspec.compare.critic import COUNTS, judge_rejection
from simspec.compare.critic import summarise as critic_summary
from simspec.compare.validation import Compared, fit_overhead
from simspec.compare.validation import summarise as validation_summary


def ids(*tokens: int) -> np.ndarray:
    return np.array(tokens, dtype=np.int32)


@pytest.mark.parametrize(
    ("block", "survived", "ahead", "kind", "lost"),
    [
        (ids(1, 2, 3), 3, ids(9, 9, 9), "none", 0),
        (ids(1, 2, 3), 1, ids(1, 2, 3, 4), "wrongly", 2),
        (ids(1, 2, 3), 1, ids(1, 2, 9, 4), "wrongly", 1),
        (ids(1, 2, 3), 1, ids(1, 9, 3, 4), "rightly", 0),
        (ids(1, 2, 3), 1, ids(9, 2, 3, 4), "moot", 0),
        (ids(1, 2, 3), 0, ids(1, 2, 3), "wrongly", 3),
        # The text ends before the token that was cut off: it is not the target's.
        (ids(1, 2, 3), 1, ids(1), "rightly", 0),
        (ids(), 0, ids(1), "none", 0),
    ],
)
def test_a_rejection_is_told_by_the_targets_own_text(block, survived, ahead, kind, lost):
    found = judge_rejection(block, survived, ahead)
    assert (found.kind, found.lost_tokens) == (kind, lost)


def group(batch: int, seconds: dict[str, float], **counts: list[int]) -> dict:
    runs = {}
    for name, taken in seconds.items():
        size = len(counts["tokens"])
        runs[name] = {"seconds": taken, **{key: counts.get(key, [0] * size) for key in COUNTS}}
    return {"batch": batch, "requests": list(range(len(counts["tokens"]))), "runs": runs}


def test_the_critics_summary_pools_requests_and_pairs_times():
    seconds = {"target": 4.0, "pair": 2.0, "funnel-truncate": 3.0}
    groups = [
        group(
            2,
            seconds,
            tokens=[4, 6],
            passes=[2, 3],
            rejected=[1, 3],
            wrongly=[0, 1],
            rightly=[1, 1],
            identical=[1, 0],
        ),
        group(2, {k: 2 * v for k, v in seconds.items()}, tokens=[5, 5], passes=[5, 5], identical=[1, 1]),
    ]
    found = critic_summary(groups, 50, 0)
    assert found["requests"] == 4
    entry = found["configurations"]["funnel-truncate"]
    assert entry["totals"]["tokens"] == 20
    assert entry["emitted_per_pass"]["value"] == pytest.approx(20 / 15)
    assert entry["identical_share"]["value"] == pytest.approx(3 / 4)
    assert entry["wrong_share_of_rejections"]["value"] == pytest.approx(1 / 4)
    assert entry["wrong_share_of_decided_rejections"]["value"] == pytest.approx(1 / 3)
    batch = entry["batches"]["2"]
    # (3 + 6) seconds over (2 + 4), the same tokens. Two groups are too few for an interval.
    assert batch["time_over_pair"] == {"value": pytest.approx(1.5), "low": None, "high": None}
    assert batch["time_over_target"]["value"] == pytest.approx(0.75)
    assert batch["seconds_per_token"]["value"] == pytest.approx(9 / 20)
    # Every draw of more groups gives the same ratio.
    more = critic_summary(groups * 3, 50, 0)["configurations"]["funnel-truncate"]["batches"]["2"]
    assert more["time_over_pair"] == pytest.approx({"value": 1.5, "low": 1.5, "high": 1.5})


def compared(measured: float, predicted: float, *, equal: bool | None = True, batch: int = 1) -> Compared:
    return Compared(
        chain=["d", "t"],
        semantics="",
        draft_length=2,
        batch=batch,
        prompts=1,
        measured=measured,
        spread=0.1,
        predicted=predicted,
        measured_forward=0.9 * measured,
        predicted_forward=0.9 * predicted,
        measured_overhead=0.1 * measured,
        predicted_overhead=0.1 * predicted,
        choosing=0.02 * measured,
        packing=0.0,
        measured_accepted=1.0,
        predicted_accepted=1.0,
        counts_equal=equal,
        unit_seconds=[measured],
        unit_tokens=[1],
        priced_by_tokens=0.9 * predicted,
        priced_by_slots=0.9 * predicted,
        table_by_tokens={"t": 1.0},
    )


def test_validations_summary_is_of_relative_errors():
    found = validation_summary([compared(1.0, 1.1), compared(2.0, 1.9), compared(4.0, 4.0, batch=2)])
    assert found["median_abs_error"] == pytest.approx(0.05)
    assert found["worst_abs_error"] == pytest.approx(0.1)
    assert found["median_error"] == pytest.approx(0.0)
    assert found["kendall_tau"] == pytest.approx(1.0)
    assert found["accepted_counts_equal"] is True
    assert found["median_abs_error_of_forwards"] == pytest.approx(0.045)
    assert validation_summary([compared(1.0, 1.0, equal=False)])["accepted_counts_equal"] is False
    assert validation_summary([compared(1.0, 1.0, equal=None)])["accepted_counts_equal"] is None


def test_overhead_is_found_again_where_it_is_one():
    features = np.array(
        [[10.0, 40.0, 3.0, 3.0], [20.0, 50.0, 5.0, 9.0], [7.0, 7.0, 7.0, 7.0], [9.0, 90.0, 2.0, 4.0]]
    )
    truth = np.array([1e-3, 2e-5, 3e-4, 4e-5])
    found = fit_overhead(features, features @ truth)
    assert (found.forward, found.word, found.cycle, found.row) == pytest.approx(tuple(truth))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["critic", "no.toml", "out.json", "--chain", "a,b"], "--chain 'a,b'"),
        (["critic", "no.toml", "out.json", "--chain", "a,b,b"], "--chain"),
        (["critic", "no.toml", "out.json", "--length", "0"], "--length 0"),
        (["critic", "no.toml", "out.json", "--shares", "1:x"], "--shares"),
        (["critic", "no.toml", "out.json", "--shares", "1:2,1:3"], "twice"),
        (["critic", "no.toml", "out.json"], "no.toml"),
        (["validate", "no-trace", "no.toml"], "no-trace"),
        (["validate", "no-trace", "no.toml", "--rounds", "0"], "--rounds 0"),
        (["validate", "no-trace", "no.toml", "--near", "0"], "--near 0"),
        (["validate", "no-trace", "no.toml", "--shares", "1:2,4:6"], "'4:6'"),
        (["validate", "no-trace", "no.toml", "--decoded", "12", "--shares", "8:8"], "--decoded 12"),
        (["masks", "no.toml", "out.json"], "no.toml"),
        (["masks", "no.toml", "out.json", "--chains", "a"], "--chains 'a'"),
        (["masks", "no.toml", "out.json", "--chains", "a,b;a,b"], "twice"),
        (["masks", "no.toml", "out.json", "--cells", "4:64"], "--cells"),
        (["masks", "no.toml", "out.json", "--rounds", "0"], "--rounds 0"),
    ],
)
def test_bad_arguments_are_refused(arguments, problem, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert problem in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "is not JSON"),
        ("[]", "another kind"),
        (json.dumps({"format": "simspec validation 1"}), "another kind"),
    ],
)
def test_a_report_refuses_other_documents(content, problem, capsys, tmp_path):
    path = tmp_path / "critic.json"
    path.write_text(content)
    with pytest.raises(SystemExit) as stopped:
        main(["report", "traces/smollm2-cpu", "--out", str(tmp_path / "page"), "--critic", str(path)])
    assert stopped.value.code == 2
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "page").exists()
