"""Table 2's shape on a made-up trace: bounds above schemes, thresholds reached, sentences and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simspec.compare.asked import Asked
from simspec.compare.specrouter import alpha_map, roofline_models
from simspec.compare.specrouter.alpha_map import fastest, pairs, speed, triples
from simspec.compare.specrouter.roofline_models import prices_of
from simspec.compare.specrouter.table2 import study
from simspec.report.parts import Grid, Picture
from simspec.report.specrouter import table2
from simspec.report.style import drawing
from simspec.theory.padded_chains import pair
from simspec.theory.third_level import independent
from tests.oracles.test_lockstep import measured
from tests.toy import MIDDLE, SMALL, TARGET, Setting, Toy

DEVICE = "a100-80g-sxm"


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(alpha_map, "DRAFTS", range(1, 4))
        patched.setattr(alpha_map, "ROUNDS", ((1, 2), (2, 3)))
        patched.setattr(alpha_map, "BANDS", ((0.0, 1.0), (0.25, 0.75)))
        patched.setattr(alpha_map, "DEVICES", (DEVICE,))
        trace = Toy(Setting(prompts=6, output_tokens=20, block_length=4)).trace()
        asked = Asked(batches=(1, 4), lengths=(1, 3), draws=4, jobs=1)
        return study(trace, [measured(trace)[0]], asked, lambda _: None)


def test_no_scheme_is_above_its_bound_and_two_chains_bound_less_than_all(found: dict[str, Any]) -> None:
    assert set(found["costs"]) == {"toy", f"roofline-{DEVICE}"}
    for cost in found["costs"].values():
        for schemes in cost["batches"].values():
            bound = schemes["bound"]["speedup"] * (1 + 1e-9)
            assert set(schemes) >= {"second", "third", "vanilla", "reach", "ours", "bound_of_two"}
            assert all(s["speedup"] <= bound for s in schemes.values())
            for static in ("second", "third"):
                # Tuned for the other half, it may differ from half to half; each half's bound has its own.
                assert schemes[static]["speedup"] <= schemes["bound_of_two"]["speedup"] * (1 + 1e-9)


def test_roles_go_from_the_cheapest_model_to_the_target(found: dict[str, Any]) -> None:
    roles = found["roles"]
    assert set(roles) == {SMALL, MIDDLE, TARGET}
    assert roles[TARGET] == roofline_models.TARGET
    assert set(roles.values()) == {roofline_models.SMALL, roofline_models.MIDDLE, roofline_models.TARGET}


def test_what_a_speedup_needs_is_where_it_is_first_reached() -> None:
    prices = prices_of(DEVICE, alpha_map.BATCH)
    for goal in (1.31, 1.91):
        needs = alpha_map.needs(prices, goal)
        for name, speeds in (
            ("small", lambda a: fastest(pairs(a, prices.draft, prices), prices)),
            ("middle", lambda a: fastest(pairs(a, float(prices.middle[1]), prices), prices)),
            ("triple", lambda a: fastest(triples(independent(a, a), prices), prices)),
        ):
            least = needs[name]
            assert speeds(np.array(least)) >= goal > speeds(np.array(least - 0.01))
    assert (
        alpha_map.needs(prices_of(DEVICE, alpha_map.BATCH, forward_overhead_seconds=0.05), 1.91)["small"]
        is None
    )


def test_points_at_once_have_both_published_speedups() -> None:
    prices = prices_of(DEVICE, alpha_map.BATCH)
    points = alpha_map.at_once(prices)
    assert any(p["possible"] for p in points)
    for p in points:
        lower, upper, outer = (np.array(p[k]) for k in ("lower", "upper", "outer"))
        second = fastest(pairs(outer, prices.draft, prices), prices)
        assert second == pytest.approx(1.31, abs=0.01)
        assert fastest(pairs(upper, float(prices.middle[1]), prices), prices) <= 1.31
        assert fastest(triples(independent(lower, upper), prices), prices) == pytest.approx(1.20, abs=0.01)


def test_phases_keep_the_published_means_and_choosing_takes_the_faster(found: dict[str, Any]) -> None:
    whole, band = found["theory"]["devices"][DEVICE]["phases"]
    assert whole["speedup"] >= (band["speedup"] or 1.31)
    for told in (whole, band):
        if told["speedup"] is None:
            continue
        share = np.array([p["share"] for p in told["phases"]])
        two, three = (np.array([1 / p[k] for p in told["phases"]]) for k in ("pair", "triple"))
        assert share.sum() == pytest.approx(1)
        assert 1 / (share @ two) == pytest.approx(1.31)
        assert 1 / (share @ three) == pytest.approx(1.20)
        assert 1 / (share @ np.minimum(two, three)) == pytest.approx(told["speedup"])
        assert all(
            told["low"] <= p[k] <= told["high"] for p in told["phases"] for k in ("lower", "upper", "outer")
        )


def test_a_dearer_drafter_is_slower() -> None:
    cheap, dear = prices_of(DEVICE, 16), prices_of(DEVICE, 16, 8.0)
    alpha = np.array(0.6)
    assert speed(pair(alpha, 3, dear.draft, dear), dear) < speed(pair(alpha, 3, cheap.draft, cheap), cheap)


def test_it_is_told_and_drawn(found: dict[str, Any], tmp_path: Path) -> None:
    said = table2.findings(found)
    text = " ".join(said)
    assert f"{found['costs']['toy']['batches']['4']['second']['speedup']:.2f}" in text
    assert "roofline" in text
    assert "SYNTHETIC" in text
    with drawing():
        shown = list(table2.parts(found, tmp_path, "SYNTHETIC behaviour"))
    for part in shown:
        if isinstance(part, Picture):
            assert (tmp_path / part.file).stat().st_size > 10_000
        else:
            assert isinstance(part, Grid)
            assert all(len(row) == len(part.header) for row in part.rows)
