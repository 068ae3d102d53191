"""Cost models: what they say on, between and beyond what they were given, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.cost.models import AffineCost, MeasuredCost, leave_one_out, read_affine
from simspec.cost.shape import StepShape, uniform
from simspec.errors import BadInput
from tests.reference import affine_price, measured_price
from tests.toy import BATCHES, CONTEXTS, LOOKUP, MODELS, TARGET, WIDTHS, Setting, Toy

LATENCY = Toy(Setting(seed=4, prompts=1)).tables["latency"].to_pandas()


def cost(latency: pd.DataFrame = LATENCY) -> MeasuredCost:
    return MeasuredCost(latency, "float32", "toy", "synthetic")


def at(model: str, rows: int, width: int, context: int, of: MeasuredCost | None = None) -> float:
    shape = uniform(np.array([rows]), np.array([width]), np.array([context]))
    return float((of or cost()).forward_seconds(model, shape)[0])


@pytest.mark.parametrize("model", MODELS)
def test_grid_points_are_medians(model: str) -> None:
    for (context, batch, width), group in LATENCY[LATENCY["model"] == model].groupby(
        ["context", "batch", "new_tokens"]
    ):
        assert at(model, batch, width, context) == pytest.approx(np.median(group["seconds"]), rel=1e-12)


def test_a_median_is_not_moved_by_one_slow_repetition() -> None:
    one = LATENCY[(LATENCY["repetition"] == 0)]
    slow = one.assign(repetition=2, seconds=one["seconds"] + 100)
    three = pd.concat([one, one.assign(repetition=1), slow])
    assert at(TARGET, 2, 4, 8, cost(three)) == pytest.approx(at(TARGET, 2, 4, 8, cost(one)))


def test_straight_between_and_in_proportion_beyond() -> None:
    model = TARGET
    assert at(model, 1, 3, 8) == pytest.approx((at(model, 1, 2, 8) + at(model, 1, 4, 8)) / 2)
    assert at(model, 3, 1, 8) == pytest.approx((at(model, 2, 1, 8) + at(model, 4, 1, 8)) / 2)
    assert at(model, 1, 1, 36) == pytest.approx((at(model, 1, 1, 8) + at(model, 1, 1, 64)) / 2)
    assert at(model, 1, 80, 8) == pytest.approx(10 * at(model, 1, 8, 8))
    assert at(model, 40, 1, 8) == pytest.approx(10 * at(model, 4, 1, 8))
    assert at(model, 1, 1, 0) == at(model, 1, 1, 8)
    assert at(model, 1, 1, 5000) == at(model, 1, 1, 64)


@given(st.sampled_from(MODELS), st.integers(1, 12), st.integers(1, 40), st.integers(0, 100))
def test_measured_is_its_scalar_twin(model: str, rows: int, width: int, context: int) -> None:
    price = measured_price(LATENCY.to_dict("records"), "float32")
    wanted = price(model, rows, width, rows * width, context, rows * context)
    assert at(model, rows, width, context) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(
    "hole",
    [
        {"batch": BATCHES[1], "context": CONTEXTS[0]},
        {"batch": 1, "new_tokens": WIDTHS[2], "context": CONTEXTS[1]},
    ],
)
def test_holes_are_refused(hole: dict[str, int]) -> None:
    gone = LATENCY["model"] == TARGET
    for column, value in hole.items():
        gone &= LATENCY[column] == value
    with pytest.raises(BadInput, match="hole"):
        cost(LATENCY[~gone])


def test_a_number_format_that_was_not_measured() -> None:
    with pytest.raises(BadInput, match=r"no latency of dtype 'int4'; allowed: float32"):
        MeasuredCost(LATENCY, "int4", "toy", "synthetic")


def test_number_formats_are_kept_apart() -> None:
    half = LATENCY[LATENCY["dtype"] == "float32"].assign(dtype="int8-dynamic")
    half["seconds"] *= 0.5
    both = pd.concat([LATENCY, half])
    quick = MeasuredCost(both, "int8-dynamic", "toy", "synthetic")
    assert at(TARGET, 1, 2, 8, quick) == pytest.approx(0.5 * at(TARGET, 1, 2, 8, cost(both)))
    assert at(LOOKUP, 1, 2, 8, quick) == at(LOOKUP, 1, 2, 8), "look-ups have no number format"


def test_one_context_and_one_width_are_enough() -> None:
    few = LATENCY[(LATENCY["context"] == 8) & (LATENCY["new_tokens"] == 1) & (LATENCY["batch"] == 1)]
    assert at(TARGET, 1, 1, 999, cost(few)) == at(TARGET, 1, 1, 8)


def test_leave_one_out_is_exact_on_a_plane() -> None:
    plane = LATENCY.assign(seconds=1.0 + 0.5 * LATENCY["new_tokens"] + 0.25 * LATENCY["batch"])
    found = leave_one_out(plane, "float32")
    assert set(found) == set(MODELS) - {LOOKUP}
    assert all(errors.p90 == pytest.approx(0, abs=1e-12) for errors in found.values())
    bent = leave_one_out(LATENCY.assign(seconds=1.0 * LATENCY["new_tokens"] ** 2), "float32")
    # Dropping 2 from (1, 2, 4): the line says 6 where 4 is true; dropping 4 from (2, 4, 8): 24 for 16.
    assert sorted({round(float(e), 9) for e in bent[TARGET].relative_error}) == [0.0, 0.5]


PROFILE = """
name = "made-up"
label = "not measured"
target = "target"
base_seconds = 0.01
token_seconds = 1e-3
context_token_seconds = 1e-5
step_overhead_seconds = 0.002
[ratios]
small = 0.25
ngram = 0.0
"""


def test_affine_profile(tmp_path: Path) -> None:
    path = tmp_path / "profile.toml"
    path.write_text(PROFILE)
    found = read_affine(path)
    assert found.models == {"target", "small", "ngram"}
    shape = StepShape(*(np.array([n]) for n in (3, 5, 11, 40, 100)))
    for model in found.models:
        wanted = affine_price(found)(model, 3, 5, 11, 40, 100)
        assert found.forward_seconds(model, shape)[0] == pytest.approx(wanted)
    assert found.forward_seconds("target", shape)[0] == pytest.approx(0.01 + 0.011 + 0.001)
    assert found.forward_seconds("ngram", shape)[0] == 0.0


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("base_seconds = 0.01", "base_seconds = -1.0", "base_seconds"),
        ("base_seconds = 0.01", "base_seconds = nan", "base_seconds"),
        ("base_seconds = 0.01", "base_seconds = inf", "base_seconds"),
        ("base_seconds = 0.01", 'base_seconds = "slow"', "base_seconds"),
        ("base_seconds = 0.01", "", "base_seconds"),
        ("base_seconds = 0.01", "base_seconds = 0.01\ncolour = 1", "colour"),
        ("small = 0.25", "small = -0.1", "small"),
        ("small = 0.25", "small = nan", "small"),
        ("small = 0.25", "small = 11.0", "small"),
        ('name = "made-up"', "name = 3", "name"),
        ('name = "made-up"', "name = ", "line"),
    ],
)
def test_affine_profile_that_is_refused(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = tmp_path / "profile.toml"
    path.write_text(PROFILE.replace(old, new))
    with pytest.raises(BadInput) as caught:
        read_affine(path)
    assert "profile.toml" in str(caught.value)
    # A value in a table is told by the table's path.
    assert told in str(caught.value) or "ratios" in str(caught.value)


def test_affine_profile_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_affine(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match=r"bytes\.toml"):
        read_affine(tmp_path / "bytes.toml")


def test_the_affine_cost_prices_every_row_it_is_given() -> None:
    made = AffineCost("a", "b", "target", 0.0, 1.0, 0.0, 0.0, {})
    found = made.forward_seconds("target", uniform(np.array([1, 2]), np.array([3, 4]), np.array([0, 0])))
    assert found.tolist() == [3.0, 8.0]
