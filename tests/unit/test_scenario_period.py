"""What of a run is measured: beginnings found by MSER-5, counted by hand, and ends that are left out."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.scenario.config import CoolDownPart, WarmUpPart
from simspec.scenario.figures import measure
from simspec.scenario.itl import ends_of
from simspec.scenario.mser import FEWEST, TOGETHER, mser, waiting
from simspec.scenario.period import period
from tests.unit.test_scenario_figures import made, measured, simulated

NS = 1_000_000_000


def fives(*sums: int) -> list[int]:
    """Observations whose fives have these sums; they differ among themselves."""
    return [value for total in sums for value in (total, -1, 1, -2, 2)]


def test_mser_by_hand():
    """Sums 10 2 1 2 1 2 1 2 1 2. From the second on: 9 numbers, sum 14, of squares 24, so (24 - 196/9) / 81 =
    20/729 = .0274; from the third: (20 - 144/8) / 64 = .0313; from the first 66.4 / 100; from the fourth
    (19 - 121/7) / 49 = .0350; and so on upwards."""
    found = mser(fives(10, 2, 1, 2, 1, 2, 1, 2, 1, 2))
    assert (found.observations, found.left_out, found.remark) == (50, 5, None)


def test_mser_cuts_a_beginning_of_another_height():
    """15 observations of 100 and then of 7 have a rest without any error; a rest of 4 fives would, too."""
    assert mser([100] * 15 + [7] * 85).left_out == 15
    # A five that is only in part of the beginning goes whole, and what is no whole five counts no more.
    assert mser([100] * 11 + [7] * 93).left_out == 15


def test_mser_leaves_out_nothing_where_nothing_changes():
    """Also where squares are far beyond 64 bits and floats would round them."""
    assert mser([12_345_678_901_234_567] * 200).left_out == 0


def test_mser_says_when_it_is_not_to_be_trusted():
    few = mser([9] * 40 + [1] * 9)
    assert (few.left_out, few.observations) == (0, FEWEST * TOGETHER - 1)
    assert "fewer than 50" in str(few.remark)
    falling = mser(list(range(1000, 0, -1)))
    assert falling.left_out == 500
    assert "too short" in str(falling.remark)


@given(st.lists(st.integers(0, 50), min_size=50, max_size=130))
def test_mser_is_the_least_squared_standard_error(values):
    """Against the textbook's formula in floats."""
    batches = np.array(values[: len(values) // 5 * 5], float).reshape(-1, 5).mean(axis=1)
    errors = [batches[d:].var() / (len(batches) - d) for d in range(len(batches) // 2 + 1)]
    chosen = errors[mser(values).left_out // 5]
    assert chosen <= min(errors) + 1e-9


def test_the_queue_over_time_by_hand():
    """Until 40, in four slices of 10: one waits from 2 to 25, one from 8 to 12, one not at all, one on."""
    arrived, left = np.array([2, 8, 5, 38]), np.array([25, 12, 5, 1000])
    assert waiting(arrived, left, 40) == ([8 + 2, 10 + 2, 5, 2], 10)
    assert waiting(arrived[:0], left[:0], 40) == ([], 0)


WAITS = st.tuples(st.integers(0, 99), st.integers(0, 60))


@given(st.lists(WAITS, min_size=1, max_size=12), st.integers(1, 99))
def test_the_queue_over_time_is_a_sum_over_requests(requests, until):
    arrived = np.array([a for a, _ in requests])
    left = arrived + [w for _, w in requests]
    found, width = waiting(arrived, left, until)
    for i, waited in enumerate(found):
        overlaps = np.minimum(left, (i + 1) * width) - np.maximum(arrived, i * width)
        assert waited == np.maximum(overlaps, 0).sum()


def tables(ttft: list[int], gap: int = 100) -> tuple[pa.Table, pa.Table]:
    """Requests a gap apart with these TTFT, in which they waited; a step begins with each of them."""
    arrived = [gap * (i + 1) for i in range(len(ttft))]
    first = [a + t for a, t in zip(arrived, ttft, strict=True)]
    requests = {"arrived_at_ns": arrived}
    requests |= {f"{name}_at_ns": first for name in ("admitted", "first_token", "ended")}
    steps = dict.fromkeys(("draft", "middle", "prefill", "swap", "wait", "overhead"), [0] * len(ttft))
    columns = {f"{name}_ns": values for name, values in steps.items()}
    columns |= {"started_at_ns": arrived, "verify_ns": [gap] * len(ttft), "replica": [0] * len(ttft)}
    return pa.table(columns), pa.table(requests)


@pytest.mark.parametrize("of", ["ttft", "queue"])
def test_a_warm_up_found_by_mser(of):
    """25 requests wait for 90, the other 75 for 50: it ends as the 26th comes.

    The queue has as many slices, of 100: in the first nobody waits, in the next 25 one for 90, then for 50.
    """
    steps, requests = tables([90] * 25 + [50] * 75)
    found = period(WarmUpPart(rule="mser", of=of), CoolDownPart(), steps, requests, 1)
    assert found.chosen is not None
    assert found.chosen.observations == 100
    # The slice from 2500 on, in which the 25th waits, is the 26th: its five goes with it.
    assert found.since == {"ttft": 2600, "queue": 3000}[of]
    assert found.requests(requests).sum() == {"ttft": 75, "queue": 71}[of]


def test_mser_looks_at_no_request_that_is_left_out_at_the_end():
    """The last 40 wait for ever longer, which the rule would otherwise take for what the run comes to."""
    steps, requests = tables([50] * 60 + [1000 * i for i in range(40)])
    cool_down = CoolDownPart(requests=40)
    found = period(WarmUpPart(rule="mser"), cool_down, steps, requests, 1)
    assert (found.since, found.until, found.requests(requests).sum()) == (0, 6100, 60)


def test_its_choice_is_told_with_the_figures(tmp_path):
    built = made(tmp_path, warm_up={"rule": "mser", "of": "ttft"})
    found = measured(built, simulated(built))["measured"]
    told = found["mser"]
    assert told["of"] == "ttft"
    assert told["observations"] == 60
    assert told["left_out"] % TOGETHER == 0
    assert found["requests_left_out"] == told["left_out"]
    if told["left_out"]:
        assert f"before {told['seconds']:g} s, chosen by MSER-5" in found["rule"]


@pytest.mark.parametrize(
    ("cool_down", "words"),
    [
        ({"seconds": 0.5}, "0.5 s before the last"),
        ({"requests": 10}, "last 10 requests"),
        ({"drain": "leave-out"}, "last arrival"),
    ],
)
def test_a_cool_down_leaves_out_by_arrival_and_by_begin(tmp_path, cool_down, words):
    built = made(tmp_path, cool_down=cool_down)
    records = simulated(built)
    found = measured(built, records)
    arrived = np.sort(records.requests["arrived_at_ns"].to_pylist())
    ends_at = {"seconds": arrived[-1] - NS // 2, "requests": arrived[-10], "drain": arrived[-1]}
    end = ends_at[next(iter(cool_down))]
    began, ends = np.array(records.steps["started_at_ns"].to_pylist()), ends_of(records.steps)
    kept = began < end
    assert found["measured"]["steps"] == kept.sum() < len(kept)
    assert found["measured"]["requests"] == (60 if "drain" in cool_down else (arrived < end).sum())
    assert words in found["measured"]["rule"]
    # It ends at that instant, or where a step across it ends; all but those steps is left out of the time.
    stops = max(int(end), int(ends[kept][-1]))
    assert found["measured"]["span_seconds"] == pytest.approx(stops * 1e-9)
    emitted = np.array(records.steps["emitted_tokens"].to_pylist())[kept].sum()
    assert found["throughput_tokens_per_second"] == pytest.approx(emitted / stops * 1e9)
    assert math.fsum(found["utilisation"].values()) == pytest.approx(1)
    assert found["output_tokens"] == 60 * 20  # of the whole run


def test_a_drain_that_is_left_out_takes_no_request_along(tmp_path):
    """Two slots for more than they can serve: the batch is full until the drain."""
    built = made(tmp_path, workload={"rate": 60.0}, engine={"slots": 2})
    records = simulated(built)
    whole = measured(built, records)
    left_out = measure(
        records, built.cluster, built.scenario.objectives, WarmUpPart(), CoolDownPart(drain="leave-out")
    )
    assert left_out["ttft_seconds"] == whole["ttft_seconds"]  # no request is left out
    assert left_out["batch"]["mean_requests"] > whole["batch"]["mean_requests"]
    assert left_out["measured"]["span_seconds"] < whole["measured"]["span_seconds"]


def test_nothing_is_left_where_both_ends_meet(tmp_path):
    built = made(tmp_path, warm_up={"requests": 40}, cool_down={"requests": 30})
    found = measured(built, simulated(built))
    assert found["measured"]["requests"] == found["measured"]["steps"] == 0
    assert found["throughput_tokens_per_second"] is found["utilisation"] is None
