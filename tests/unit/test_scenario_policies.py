"""Policies for each row, choices among drafters and graphs, as a scenario's file says them."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from simspec.errors import BadInput
from simspec.scenario.build import build
from simspec.scenario.paired import assumptions
from simspec.scenario.reading import read_scenario
from simspec.scenario.run import run
from simspec.serving.graphs import Graphs
from simspec.serving.policies import ByRowsAndContext
from simspec.serving.row_policies import ByRule, Joint
from simspec.serving.switching import Switching
from simspec.speculation.lengths import G4, ExactMarginal, LibraSpec
from simspec.traces.index import load_trace
from tests.unit.test_scenario_reading import ROOT, written

TRACE = {"kind": "trace", "path": str(ROOT / "traces" / "smollm2-cpu")}
LOADED = cache(load_trace)
H100 = str(ROOT / "calibrate" / "h100-llama-3.1-8b.toml")


@pytest.fixture(autouse=True)
def _read_once(monkeypatch):
    """The committed trace is read once for all of these."""
    monkeypatch.setattr("simspec.scenario.build.load_trace", LOADED)


def replayed(folder: Path, policy: dict[str, Any], drafter: str = "skip-2", **more: Any) -> Path:
    """A small scenario that replays the committed trace at the published cost."""
    told = {"policy": policy, "drafter": drafter, "verdicts": TRACE, **more}
    return written(folder, cost={"target": H100}, speculation=told)


@pytest.mark.parametrize(
    ("policy", "made"),
    [
        ({"kind": "g4", "first": 2, "longest": 8}, ByRule(G4(2, 2, 1, 8), 8)),
        ({"kind": "g4"}, ByRule(G4(), 20)),
        ({"kind": "exact-marginal", "longest": 8}, ByRule(ExactMarginal(8), 8)),
        # Whole blocks of 16 for at most 24 - 1 + 2 tokens are 32, of which the trace knows 26.
        ({"kind": "libraspec"}, ByRule(LibraSpec(), 26)),
        ({"kind": "libraspec", "block": 4, "longest": 8}, ByRule(LibraSpec(2.2, 4, 8), 12)),
        ({"kind": "libraspec", "block": 4, "longest": 8, "cut": 6}, ByRule(LibraSpec(2.2, 4, 8), 6)),
        ({"kind": "joint", "longest": 5, "full_scan": True}, Joint(5, True)),
        (
            {"kind": "by-rows-and-context", "table": [[1, 4, 0, 99, 5], [1, 4, 100, 999, 2]]},
            ByRowsAndContext(((1, 4, 0, 99, 5), (1, 4, 100, 999, 2))),
        ),
    ],
    ids=lambda x: "_".join(map(str, x.values())) if isinstance(x, dict) else "",
)
def test_a_policy_is_the_one_that_is_named_and_runs(tmp_path, policy, made):
    built = build(read_scenario(replayed(tmp_path, policy)))
    speculation = built.serving.speculation
    assert speculation is not None
    assert speculation.policy == made
    found = run(built, 0).figures
    assert found["requests"]["finished"] == 60
    assert found["draft"]["drafted_tokens"] > 0


def test_switching_and_graphs(tmp_path):
    cost = tmp_path / "small.toml"
    others = [{"drafter": "ngram"}, {"drafter": "skip-6", "cost": "cost.toml"}]
    path = replayed(tmp_path, {"kind": "switching", "longest": 5, "margin": 0.1}, others=others)
    text = path.read_text().replace(
        f'cost = {{target = "{H100}"}}',
        f'cost = {{target = "{H100}", graphs = {{tokens = [8, 64], beyond_factor = 1.5}}}}',
    )
    path.write_text(text)
    (tmp_path / "cost.toml").write_text((tmp_path / "cost.toml").read_text().replace("small", '"skip-6"'))
    cost.write_text("")
    built = build(read_scenario(path))
    speculation = built.serving.speculation
    assert speculation is not None
    assert speculation.policy == Switching(5, 0.1)
    assert [(o.drafter, o.lookup, o.cost.name) for o in speculation.others] == [
        ("ngram", True, built.serving.costs.cost.name),
        ("skip-6", False, "made-up"),
    ]
    assert built.serving.costs.graphs == Graphs(tokens=(8, 64), beyond_factor=1.5)
    assert run(built, 0).figures["requests"]["finished"] == 60


def test_drafts_are_told_by_who_drafted_and_what_was_submitted(tmp_path):
    """By the table of steps; of two drafters of one name, by their places."""
    others = [{"drafter": "ngram"}, {"drafter": "skip-2"}]
    policy = {"kind": "switching", "longest": 5}
    draft = told_of_steps(tmp_path, policy, ["skip-2 #0", "ngram", "skip-2 #2"], others=others)
    assert draft["submitted_tokens"] == draft["drafted_tokens"]
    joint = told_of_steps(tmp_path, {"kind": "joint", "longest": 8}, ["skip-2"])
    assert joint["accepted_tokens"] <= joint["submitted_tokens"] < joint["drafted_tokens"]
    off = run(build(read_scenario(replayed(tmp_path, {"kind": "fixed", "draft_tokens": 0}))), 0).figures
    assert off["draft"]["shares_by_drafter"] == {}


def told_of_steps(folder: Path, policy: dict[str, Any], names: list[str], **more: Any) -> dict[str, Any]:
    """The section, once it is what a loop over the table of steps says."""
    tables = folder / policy["kind"]
    tables.mkdir()
    built = build(read_scenario(replayed(folder, policy, **more)))
    draft: dict[str, Any] = run(built, 0, folder=tables).figures["draft"]
    steps = pq.read_table(tables / "steps.parquet").to_pylist()
    who = Counter(step["drafter"] for step in steps if step["drafted_tokens"])
    shares = {name: who[i] / who.total() for i, name in enumerate(names)}
    assert draft["shares_by_drafter"] == pytest.approx(shares)
    for name in ("drafted_tokens", "submitted_tokens", "accepted_tokens"):
        assert draft[name] == sum(step[name] for step in steps)
    return draft


RATES = {"kind": "rates", "survival": [0.8, 0.5, 0.3]}


def told(policy: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"speculation": {"policy": policy, "drafter": "small", "verdicts": RATES, **more}}


SWITCHING = {"kind": "switching", "longest": 2}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (told({"kind": "exact-marginal"}), "speculation.policy: this kind weighs the drafter's confidences"),
        (told({"kind": "joint", "longest": 2}), "speculation.policy: this kind weighs"),
        (told({"kind": "libraspec"}), "speculation.policy: this kind weighs the"),
        (told({"kind": "joint", "longest": 0}), "speculation.policy.longest"),
        (told({"kind": "g4", "longest": 3}), "[speculation.policy]: first is 5; allowed: 1 to longest"),
        (
            told({"kind": "g4", "first": 2}),
            "[speculation.policy]: drafts of up to 20 tokens; allowed: at most 3",
        ),
        (told({"kind": "g4", "frist": 2}), "did you mean 'first'"),
        (told(SWITCHING), "speculation.others: missing"),
        (told({"kind": "fixed", "draft_tokens": 2}, others=[{"drafter": "small"}]), "means nothing for this"),
        (told(SWITCHING, others=[{"drafter": "small"}]), "speculation.others[0].verdicts: missing"),
        (
            told(SWITCHING, others=[{"drafter": "small", "verdict": RATES}]),
            "[speculation.others[0]]: unknown key 'verdict'",
        ),
        (
            told(SWITCHING, others=[{"drafter": "smal", "verdicts": RATES}]),
            "[speculation.others[0]]: made-up: unknown model 'smal'",
        ),
        (
            told(SWITCHING, others=[{"drafter": "small", "verdicts": {"kind": "rate", "survival": [0.5]}}]),
            "speculation.others[0].verdicts.kind",
        ),
        (
            told({"kind": "by-rows-and-context", "table": [[1, 4, 0, 9, 2], [2, 3, 9, 9, 1]]}),
            "[speculation.policy]: entries [1, 4, 0, 9, 2] and [2, 3, 9, 9, 1] overlap",
        ),
        ({"cost": {"graphs": {"tokens": [8, 4]}}}, "[cost]: tokens [8, 4]"),
        ({"cost": {"graphs": {}}}, "[cost]: graphs without sizes"),
        ({"cost": {"graphs": {"tokens": [8], "beyond_factor": 0.5}}}, "cost.graphs.beyond_factor"),
        ({"cost": {"graphs": {"token": [8]}}}, "[cost.graphs]: unknown key 'token'"),
    ],
    ids=lambda x: x[:50] if isinstance(x, str) else "",
)
def test_refusals_name_the_key(tmp_path, changes, said):
    with pytest.raises(BadInput) as error:
        build(read_scenario(written(tmp_path, **changes)))
    assert said in str(error.value)


def test_drafters_of_two_traces_are_refused(tmp_path):
    others = [{"drafter": "ngram", "verdicts": {"kind": "trace", "path": "elsewhere"}}]
    with pytest.raises(BadInput, match=r"speculation.others.*several traces"):
        build(read_scenario(replayed(tmp_path, SWITCHING, others=others)))
    others = [{"drafter": "ngram", "lookup": True}]
    with pytest.raises(BadInput, match=r"others\[0\]\.lookup: the trace"):
        read_scenario(replayed(tmp_path, SWITCHING, others=others))
    with pytest.raises(BadInput, match=r"\[speculation.others\[0\]\]: .*did you mean 'skip-10'"):
        build(read_scenario(replayed(tmp_path, SWITCHING, others=[{"drafter": "skip-11"}])))


def test_narrower_assumptions_need_a_policy_that_they_can_feed(tmp_path):
    built = build(read_scenario(replayed(tmp_path, {"kind": "joint", "longest": 3})))
    with pytest.raises(BadInput, match="without confidences"):
        assumptions(built)
