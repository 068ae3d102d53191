"""The study of all rules: bounds hold, verdicts are those worked out by hand, and the page's part."""

from __future__ import annotations

import copy
import json
from dataclasses import fields, replace
from typing import Any

import msgspec
import numpy as np
import pytest

from simspec.compare.asked import Asked
from simspec.compare.length_runs import LengthSettings, replayed
from simspec.compare.lengths import OURS, TUNED, LengthStudy, RuleResult, rules_under_test
from simspec.compare.libraspec import rules
from simspec.compare.libraspec.rules import ORACLE, TOLD, bound_per_token, study, verdict
from simspec.report.libraspec.rules import findings, parts
from simspec.report.libraspec.rules_tables import verdicts
from simspec.report.parts import Grid
from simspec.report.style import drawing
from simspec.speculation.lengths import Static
from tests.oracles.test_lockstep import AFFINE, measured
from tests.toy import LOOKUP, MIDDLE, SMALL, Setting, Toy

CHEAP = msgspec.structs.replace(AFFINE, name="made-up", ratios={LOOKUP: 0.0, SMALL: 0.1, MIDDLE: 0.01})
ASKED = Asked(batches=(1, 3, 4), draws=12)


@pytest.fixture(scope="module")
def trace():
    return Toy(Setting(seed=8, prompts=6, output_tokens=14, block_length=5, middle_rate=0.9)).trace()


def carried_out(trace, jobs: int) -> dict[str, Any]:
    wanted = ("static-0", "static-1", "static-3", "libraspec", OURS, "vllm-goodput")
    some = {name: rule for name, rule in rules_under_test(trace).items() if name in wanted}
    asked = replace(ASKED, jobs=jobs)
    return study(trace, [CHEAP, measured(trace)[0]], asked, lambda _: None, rules=some)


@pytest.fixture(scope="module")
def found(trace) -> dict[str, Any]:
    return carried_out(trace, 1)


def test_results_do_not_depend_on_processes(trace, found):
    assert json.dumps(carried_out(trace, 2), allow_nan=False) == json.dumps(found, allow_nan=False)


def test_every_drafter_is_tried_where_verdicts_are_asked_for(found):
    for cost in found["costs"].values():
        tried = [(s["batch"], s["drafter"], s["fastest"]) for s in cost["studies"]]
        assert len(tried) == len(set(tried)) == 1 + 2 * 3
        assert sorted(b for b, _, fastest in tried if fastest) == [1, 3, 4]
        assert {d for b, d, _ in tried if b == 4} == {LOOKUP, SMALL, MIDDLE}


def test_nothing_beats_the_bound_and_the_bound_is_what_gaps_are_to(found):
    for cost in found["costs"].values():
        for each in cost["studies"]:
            low = each["lower_bound_seconds_per_token"]
            for kind in ("rules", "oracles"):
                for name, result in each[kind].items():
                    assert result["seconds_per_token"] >= low * (1 - 1e-5), name
            static = each["rules"][each["best_static"]]["seconds_per_token"]
            ours = each["rules"][OURS]["seconds_per_token"]
            if static > 1.001 * low:  # the document's six digits do not tell a smaller gap well
                assert each["verdict"]["closed"] == pytest.approx((static - ours) / (static - low), rel=0.02)
            assert each["plain_over_bound"] >= -1e-9


def test_regrets_are_over_every_oracle(found):
    for cost in found["costs"].values():
        for each in cost["studies"]:
            for oracle, other in each["oracles"].items():
                ours = each["rules"][OURS]
                over = 100 * (ours["seconds_per_token"] / other["seconds_per_token"] - 1)
                assert ours[f"regret_{oracle}"] == pytest.approx(over, abs=1e-2)


def test_plain_decoding_in_full_batches_of_equal_texts_reaches_its_bound(trace):
    """A cost that hangs on no context, prompts that end together: dividing a forward loses nothing."""
    flat = msgspec.structs.replace(CHEAP, context_token_seconds=0.0)
    same = int(trace.prompts["output_tokens"].min())
    equal = trace.shortened(same)
    settings = LengthSettings(batch=3, draws=2)
    took = replayed(equal, MIDDLE, flat, settings, {"plain": Static(0)})["plain"].seconds_per_token
    np.testing.assert_allclose(bound_per_token(equal, MIDDLE, flat, settings, longest=0), took)


def made(took: dict[str, list[float]], bound: list[float]) -> LengthStudy:
    results = {n: RuleResult(np.array(t), 0.0, 0.0, {}) for n, t in took.items()}
    oracles = {n: r for n, r in results.items() if n in (ORACLE, TOLD)}
    given: dict[str, Any] = dict.fromkeys((f.name for f in fields(LengthStudy)), None)
    others = {n: r for n, r in results.items() if n not in oracles}
    return LengthStudy(**given | {"rules": others, "oracles": oracles, "bound": np.array(bound)})


HAND = {
    "static-0": [8.0, 8.0, 8.0],
    "static-2": [4.0, 4.0, 4.0],
    TUNED: [4.4, 4.0, 4.0],
    OURS: [3.0, 3.0, 3.0],
    "faster": [2.0, 2.5, 2.5],
    "fastest": [1.5, 1.5, 1.5],
    "unclear": [2.9, 2.5, 3.5],
    ORACLE: [2.5, 2.5, 2.5],
    TOLD: [2.75, 3.0, 2.5],
}


def test_a_verdict_by_hand():
    told = verdict(made(HAND, [2.0, 2.0, 2.0]))
    assert [w["rule"] for w in told["slower_than"]] == ["fastest", "faster"]
    assert told["slower_than"][0]["by"] == pytest.approx(100.0)
    assert told["slower_than"][1]["by_interval"] == pytest.approx([20.0, 20.0])
    assert (told["faster_than"], told["of"]) == (3, 6)
    assert told["over_static"] == pytest.approx(-25.0)
    assert told["over_tuned"] == pytest.approx(100 * (3 / 4.4 - 1))
    shares = {"closed": 0.5, "closed_by_oracle": 0.75, "closed_by_told": 0.625}
    assert {k: told[k] for k in shares} == pytest.approx(shares)
    assert (told["left_to_rule"], told["left_to_planner"]) == pytest.approx((0.25, 0.125))
    assert told["left_to_planner_interval"] == pytest.approx([0.25 * 0.025, 0.25 * 0.975])


def test_no_gap_has_no_shares():
    told = verdict(made(HAND, [4.0, 4.0, 4.0]))
    assert told["closed"] is None
    assert told["left_to_rule"] is None


def test_documents_are_short():
    assert rules._short({"a": [1.23456789, None, "x", 3], "b": {"c": True}}) == {
        "a": [1.23457, None, "x", 3],
        "b": {"c": True},
    }


# The page's part.


def test_it_is_shown(found, tmp_path):
    with drawing():
        one = found | {"costs": {"made-up": found["costs"]["made-up"]}}
        out = list(parts(one, tmp_path, "SYNTHETIC behaviour"))
    for part in out:
        if isinstance(part, Grid):
            assert all(len(row) == len(part.header) for row in part.rows), part.caption
        else:
            assert (tmp_path / part.file).stat().st_size > 1000
            assert part.file.startswith("rules-")
        assert "SYNTHETIC" in part.caption
    assert sum(isinstance(p, Grid) for p in out) == 1 + 1 + 2


def test_findings_name_each_case_that_is_lost(found):
    none = copy.deepcopy(found)
    for cost in none["costs"].values():
        for each in cost["studies"]:
            each["verdict"] |= {"slower_than": [], "over_static_interval": [-2.0, -1.0]}
    text = findings(none)[0]
    assert "prompts, in 0;" in text
    assert "no static length in 0." in text
    lost = copy.deepcopy(none)
    each = lost["costs"]["made-up"]["studies"][0]
    each["verdict"]["slower_than"] = [{"rule": "rival", "by": 7.25, "by_interval": [5.0, 9.0]}]
    each["verdict"]["over_static_interval"] = [1.0, 2.0]
    text = findings(lost)[0]
    case = f"{each['drafter']} at batch {each['batch']} under made-up"
    assert f"prompts, in 1 ({case});" in text
    assert f"no static length in 1 ({case})." in text
    assert "7.2% (95% 5.0 to 9.0%)" in text or "slower than rival" in text
    _, rows = verdicts(lost["costs"]["made-up"])
    assert "rival +7.2 (5.0 to 9.0)" in rows[0]


def test_a_static_length_is_no_rival(found):
    other = copy.deepcopy(found)
    for cost in other["costs"].values():
        for each in cost["studies"]:
            wins = [{"rule": n, "by": 9.0, "by_interval": [8.0, 10.0]} for n in ("static-3", TUNED)]
            each["verdict"]["slower_than"] = wins
    assert "no static length in 0." in findings(other)[0]
