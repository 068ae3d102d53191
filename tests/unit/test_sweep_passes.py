"""Where the time of a token goes: sums that are the figures, and a margin that says who is faster."""

from __future__ import annotations

from fractions import Fraction

import pyarrow.parquet as pq
import pytest

from simspec.scenario.config import CoolDownPart, WarmUpPart
from simspec.scenario.period import period
from simspec.scenario.run import run
from simspec.sweep.passes import IDLE, PARTS, TOKENS, parts_of, passes, terms
from tests.unit.test_scenario_paired import made

ENGINES = {
    "mixed": {},
    "chunked": {"engine": {"prefill": "chunked", "token_budget": 30}},
    "apart": {"engine": {"mixed": False}},
    "tight": {"memory": {"block_tokens": 4, "target_blocks": 60}, "workload": {"rate": 200.0}},
    "swapped": {
        "memory": {
            "block_tokens": 4,
            "target_blocks": 60,
            "preemption": "swap",
            "block_swap_seconds": 1e-4,
        },
        "workload": {"rate": 200.0},
    },
}


def ran(folder, **changes):
    """Tables and figures of a run."""
    built = made(folder, **changes)
    (folder / "tables").mkdir(exist_ok=True)
    figures = run(built, 0, folder=folder / "tables").figures
    steps, requests = (pq.read_table(folder / "tables" / f"{name}.parquet") for name in ("steps", "requests"))
    return steps, requests, figures


EVERYTHING = WarmUpPart()


def told(steps, requests, engines=1, warm_up=EVERYTHING):
    """Passes after a warm-up."""
    return passes(steps, requests, period(warm_up, CoolDownPart(), steps, requests, engines))


@pytest.mark.parametrize("name", ENGINES)
def test_parts_over_tokens_are_the_throughput_and_the_tpot(tmp_path, name):
    steps, requests, figures = ran(tmp_path, **ENGINES[name])
    found = told(steps, requests)
    engine = sum(found[f"engine.{part}"] for part in (*PARTS, IDLE)) / found["engine.tokens"]
    assert engine == pytest.approx(1 / figures["throughput_tokens_per_second"], rel=1e-12)
    # Pooled: all time after first tokens over all tokens after them, whole nanoseconds.
    rows = requests.to_pylist()
    assert all(row["outcome"] == "finished" for row in rows)
    spent = sum(row["ended_at_ns"] - row["first_token_at_ns"] for row in rows)
    tokens = sum(row["produced_tokens"] - 1 for row in rows)
    wanted = float(Fraction(spent, tokens * 10**9))
    of_requests = sum(found[f"requests.{part}"] for part in PARTS) / found["requests.tokens"]
    assert of_requests == pytest.approx(wanted, rel=1e-12)
    if name in ("tight", "swapped"):
        assert figures["preemptions"] > 0
        assert (found["requests.swap"] > 0) == (name == "swapped")


def test_a_warm_up_is_left_out(tmp_path):
    steps, requests, figures = ran(tmp_path, warm_up={"seconds": 0.7})
    found = told(steps, requests, warm_up=WarmUpPart(seconds=0.7))
    engine = sum(found[f"engine.{part}"] for part in (*PARTS, IDLE)) / found["engine.tokens"]
    assert engine == pytest.approx(1 / figures["throughput_tokens_per_second"], rel=1e-12)
    nothing = told(steps, requests, warm_up=WarmUpPart(requests=1000))
    assert set(nothing.values()) == {None}
    assert nothing.keys() == found.keys()


@pytest.mark.parametrize("rate", [5.0, 60.0, 500.0])
@pytest.mark.parametrize("view", ["engine", "requests"])
def test_the_margin_is_above_zero_where_a_token_takes_less(tmp_path, rate, view):
    workload = {"rate": rate}
    on = told(*ran(tmp_path / "on", workload=workload)[:2])
    off = told(*ran(tmp_path / "off", workload=workload, speculation={"policy": {"kind": "off"}})[:2])
    found = terms(view, on, off)
    token = [sum(run[f"{view}.{p}"] for p in parts_of(view)) / run[f"{view}.{TOKENS}"] for run in (on, off)]
    assert (found["margin"] > 0) == (token[0] < token[1])
    assert found["margin"] == pytest.approx(found["tokens"] - sum(found[part] for part in parts_of(view)))
    if view == "requests":
        assert found["tokens"] > 0
        assert found["draft"] > 0
    assert set(terms(view, on, on).values()) == {0.0}
    assert terms(view, on, dict.fromkeys(off)) is None
