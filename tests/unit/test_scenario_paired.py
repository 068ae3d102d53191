"""Same seeds, same luck: loads, replications, differences, and assumptions fitted to a record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.errors import BadInput
from simspec.scenario.build import build
from simspec.scenario.documents import comparison, simulation, under_assumptions
from simspec.scenario.fitting import fit
from simspec.scenario.paired import FIGURES, assumptions, over_replications, replicate, replicated
from simspec.scenario.reading import read_scenario
from simspec.scenario.run import run
from simspec.serving.verdicts import Recorded
from simspec.streams import stream
from tests.unit.test_scenario_reading import written


def quiet(line: str) -> None:
    """Progress that nobody reads."""


def made(folder: Path, **changes: Any):
    folder.mkdir(exist_ok=True)
    return build(read_scenario(written(folder, **changes)))


def made_up_texts(count: int = 30, longest: int = 3) -> list[np.ndarray]:
    """Texts of unlike acceptance: made up."""
    random = stream(0, "made-up texts")
    return [
        1 + random.binomial(longest, random.random(), size=int(random.integers(20, 60))) for _ in range(count)
    ]


def acc_len_file(folder: Path) -> Path:
    path = folder / "runs.jsonl"
    rows = [
        {
            "id": i,
            "prompt_token_ids": [1],
            "generated_token_ids": list(range(len(text))),
            "acc_eagle": {"acc_len": text.tolist()},
        }
        for i, text in enumerate(made_up_texts())
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


REPLAY = {"verdicts": {"kind": "acc_len", "path": "runs.jsonl", "method": "eagle", "longest": 3}}


# -- loads -------------------------------------------------------------------------------------------------


def arrivals(built: Any, seed: int) -> list[tuple[int, int, int]]:
    return [(at, r.prompt_tokens, r.output_tokens) for at, r in built.load.workload(seed).arrivals]


def azure_file(folder: Path, rows: str) -> None:
    (folder / "log.csv").write_text(f"TIMESTAMP,ContextTokens,GeneratedTokens\n{rows}")


ROWS = "".join(f"2023-11-16 18:15:{s:02}.5000000,{100 + s},{10 + s}\n" for s in range(0, 50, 5))
LOG = {"kind": "log", "format": "azure", "path": "log.csv"}


def test_policies_and_verdicts_do_not_move_arrivals_and_lengths(tmp_path):
    azure_file(tmp_path, ROWS)
    lengths = {"kind": "log", "format": "azure", "path": "log.csv"}
    one = made(tmp_path, lengths=lengths)
    other = made(tmp_path, lengths=lengths, speculation={"policy": {"kind": "off"}}, engine={"slots": 2})
    assert arrivals(one, 5) == arrivals(other, 5)
    for column in range(3):
        drawn = ([row[column] for row in arrivals(one, seed)] for seed in (5, 6))
        assert next(drawn) != next(drawn), column
    pairs = {(100 + s, 10 + s) for s in range(0, 50, 5)}
    assert {(p, o) for _, p, o in arrivals(one, 5)} <= pairs
    # A longer workload begins with the same requests.
    longer = made(tmp_path, lengths=lengths, workload={"requests": 100})
    assert arrivals(longer, 5)[:60] == arrivals(one, 5)


def test_a_log_brings_its_instants_and_lengths(tmp_path):
    azure_file(tmp_path, ROWS + "2023-11-16 18:16:00.0000000,5,0\n")
    built = made(tmp_path, workload=LOG, lengths=None)
    found = arrivals(built, 0)
    assert found == [(s * 10**9, 100 + s, 10 + s) for s in range(0, 50, 5)] == arrivals(built, 1)
    assert built.load.logs[0]["dropped"] == {"no output": 1}
    assert "log.csv" in built.inputs
    halved = made(tmp_path, workload={**LOG, "time_scale": 0.5, "window": [10.0, 30.0]}, lengths=None)
    assert [at for at, _, _ in arrivals(halved, 0)] == [0, 2_500_000_000, 5_000_000_000, 7_500_000_000]
    faster = made(tmp_path, workload={**LOG, "rate": 2.0, "requests": 5}, lengths=None)
    assert [at for at, _, _ in arrivals(faster, 0)] == [i * 500_000_000 for i in range(5)]
    fixed = {"kind": "fixed", "prompt_tokens": 7, "output_tokens": 3}
    alike = made(tmp_path, workload=LOG, lengths=fixed)
    assert {(p, o) for _, p, o in arrivals(alike, 0)} == {(7, 3)}


def test_a_log_refuses_more_requests_than_it_has(tmp_path):
    azure_file(tmp_path, ROWS)
    with pytest.raises(BadInput, match=r"workload\.requests is 11.*at most 10"):
        made(tmp_path, workload={**LOG, "requests": 11}, lengths=None)


def test_sharegpt_lengths_say_how_tokens_were_counted(tmp_path):
    said = [{"from": "human", "value": "x" * 400}, {"from": "gpt", "value": "y" * 39}]
    (tmp_path / "s.json").write_text(json.dumps([{"conversations": said}]))
    lengths = {"kind": "log", "format": "sharegpt", "path": "s.json", "characters_per_token": 4.0}
    built = made(tmp_path, lengths=lengths)
    assert {(p, o) for _, p, o in arrivals(built, 0)} == {(100, 10)}
    assert any("characters over 4" in words for words in built.approximations)


# -- replications ------------------------------------------------------------------------------------------


def test_a_scenario_less_itself_is_nought(tmp_path):
    """Common random numbers: the same engine under the same seeds does not differ at all."""
    built = made(tmp_path)
    found = comparison(built, made(tmp_path), [0, 1, 2], None, quiet)
    for name, difference in found["differences"].items():
        if difference["value"] is not None:
            assert difference == {"value": 0.0, "low": 0.0, "high": 0.0}, name
    spread = found["scenarios"][0]["figures"]["tpot_seconds_mean"]
    assert spread["low"] < spread["value"] < spread["high"]


def test_paired_intervals_are_narrower_than_unpaired_ones(tmp_path):
    one = made(tmp_path, workload={"rate": 120.0})
    other = made(tmp_path, workload={"rate": 120.0}, engine={"slots": 9})
    seeds = range(8)
    first, second, apart = (
        replicated(replicate(b, s, None, quiet))
        for b, s in ((one, seeds), (other, seeds), (other, range(100, 108)))
    )
    name = "e2e_seconds_mean"
    paired, unpaired = second.less(first)[name], apart.less(first)[name]
    assert paired["high"] - paired["low"] < 0.5 * (unpaired["high"] - unpaired["low"])


def test_replication_i_is_the_run_with_that_seed(tmp_path):
    built = made(tmp_path)
    document, _ = simulation(built, [4, 5], None, None, quiet)
    values = document["replications"]["figures"]["tpot_seconds_p99"]["values"]
    assert values == [run(built, s).figures["tpot_seconds"]["p99"] for s in (4, 5)]
    assert document["tpot_seconds"]["p99"] == values[0]
    assert document["replications"]["drawn"] == ["arrivals", "verdicts"]


def test_every_replicated_figure_is_in_the_figures_of_a_run(tmp_path):
    found = replicated([run(made(tmp_path, objectives={"ttft_seconds": 1.0}), 0)])
    assert set(found.values) == set(FIGURES)
    assert [name for name, (value,) in found.values.items() if value is None] == []


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_intervals_hold_the_mean_and_shrink_to_it_without_spread(values):
    found = over_replications(values)
    assert found.low <= found.value <= found.high
    assert found.value == pytest.approx(float(np.mean(values)))
    same = over_replications([values[0]] * len(values))
    assert same.low == pytest.approx(same.high)


def test_intervals_need_two_replications_and_all_of_them():
    assert over_replications([1.0]).low is None
    assert over_replications([1.0, None]).value is None
    # Student's t with one degree of freedom: 12.706 times half the difference.
    found = over_replications([1.0, 3.0])
    assert found.high - 2.0 == pytest.approx(12.7062, abs=1e-4)


def test_replications_of_what_has_no_luck_are_refused(tmp_path):
    built = made(
        tmp_path,
        workload={"kind": "closed", "clients": 2, "requests": 4},
        speculation={"policy": {"kind": "off"}},
    )
    with pytest.raises(BadInput, match="every replication would be the same"):
        simulation(built, [0, 1], None, None, quiet)
    with pytest.raises(BadInput, match="replays nothing"):
        under_assumptions(built, [0], None, quiet)


# -- assumptions -------------------------------------------------------------------------------------------


def test_a_fit_is_what_a_loop_over_requests_counts():
    """Every position begins one request, each of so many tokens that its text's length does not matter."""
    texts, length = made_up_texts(count=6), 2
    record = Recorded.of_lengths(texts, 3)
    shares = np.zeros(length + 1)
    for text in texts:
        for begin in range(len(text)):
            at, left = begin, len(text)
            while left > 0:
                accepted = min(int(text[at]) - 1, length, len(text) - 1 - at)
                shares[accepted] += 1 / len(text)
                at, left = (at + accepted + 1) % len(text), left - accepted - 1
    shares /= shares.sum()
    wanted = [shares[j + 1 :].sum() for j in range(length)]
    assert fit(record, length).survival == pytest.approx(wanted)


@given(
    st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=15), min_size=1, max_size=5), st.integers(1, 6)
)
def test_a_fit_never_rises_and_its_rate_keeps_the_mean(texts, length):
    found = fit(Recorded.of_lengths(texts, 4), length)
    survival = np.array(found.survival)
    assert (np.diff(survival) <= 0).all()
    assert ((survival >= 0) & (survival <= 1)).all()
    kept = 1 + (found.rate ** np.arange(1, length + 1)).sum()
    assert kept == pytest.approx(found.emitted_per_pass, abs=1e-9)
    assert survival.sum() / length <= found.drafted_share + 1e-12


def test_assumptions_keep_the_mean_of_replay_and_lose_its_spread(tmp_path):
    acc_len_file(tmp_path)
    built = made(
        tmp_path,
        speculation=REPLAY,
        workload={"requests": 600, "rate": 100.0},
        lengths={"output_tokens": 60},
    )
    variants, fitted = assumptions(built)
    emitted = {name: run(b, 0).figures["emitted_per_pass"] for name, b in variants.items()}
    for name in emitted:
        assert emitted[name]["pooled"] == pytest.approx(fitted.emitted_per_pass, rel=0.05), name
    spread = {name: e["deviation_between_requests"] for name, e in emitted.items()}
    assert spread["replay"] > 2 * max(spread["rates"], spread["iid"])
    assert min(spread["rates"], spread["iid"]) > 3 * spread["mean"]


def test_assumptions_as_a_document(tmp_path):
    acc_len_file(tmp_path)
    found = under_assumptions(made(tmp_path, speculation=REPLAY), [0, 1], None, quiet)
    assert set(found["assumptions"]) == {"replay", "rates", "iid", "mean"}
    assert set(found["differences"]) == {"rates", "iid", "mean"}
    for name, difference in found["differences"].items():
        for figure, estimate in difference.items():
            ours, replay = (found["assumptions"][n][figure]["value"] for n in (name, "replay"))
            if estimate["value"] is not None:
                assert estimate["value"] == pytest.approx(ours - replay)


def test_assumptions_are_refused_where_nothing_is_replayed_or_drafted(tmp_path):
    with pytest.raises(BadInput, match="replays nothing"):
        assumptions(made(tmp_path))
    acc_len_file(tmp_path)
    nought = {**REPLAY, "policy": {"kind": "fixed", "draft_tokens": 0}}
    with pytest.raises(BadInput, match="drafts nothing"):
        assumptions(made(tmp_path, speculation=nought))


def test_a_policy_asks_no_more_than_was_recorded(tmp_path):
    acc_len_file(tmp_path)
    with pytest.raises(BadInput, match="at most 3"):
        made(tmp_path, speculation={**REPLAY, "policy": {"kind": "goodput", "longest": 4}})


def test_the_drafters_own_cost_is_taken(tmp_path):
    own = (written(tmp_path).parent / "cost.toml").read_text().replace("small = 0.1", "small = 5.0")
    (tmp_path / "slow.toml").write_text(own.replace("made-up", "slow"))
    alone = run(made(tmp_path), 0).figures["utilisation"]["draft"]
    apart = run(made(tmp_path, cost={"drafter": "slow.toml"}), 0).figures["utilisation"]["draft"]
    assert apart > 2 * alone
    built = made(tmp_path, cost={"drafter": "slow.toml"})
    assert built.serving.costs.drafter_cost.name == "slow"
    assert replace(built.serving.costs, drafter_cost=None) == made(tmp_path).serving.costs
