"""The figures a drafter is chosen by, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from simspec.compare.drafter_figures import cost_ratios, drafter_figures
from simspec.traces.manifest import ModelEntry
from tests.unit.test_inspect import drafter, prompts, timed, tiny_trace


def trace_of(models, drafters, latency=None, categories=("maths", "code")):
    """Two texts: of four tokens and of two."""
    tiny = tiny_trace(timed(lambda m, b, n, r: 1.0) if latency is None else latency)
    kinds = {"target": tiny.manifest.models["target"], **models}
    table = prompts(2)
    table["category"] = list(categories)
    return replace(
        tiny,
        manifest=msgspec.structs.replace(tiny.manifest, models=kinds),
        prompts=table,
        tokens=np.arange(6),
        offsets=np.array([0, 4, 6]),
        remaining=np.array([4, 3, 2, 1, 2, 1]),
        position=np.array([0, 1, 2, 3, 0, 1]),
        prompt=np.array([0, 0, 0, 0, 1, 1]),
        context=np.array([5, 6, 7, 8, 5, 6]),
        owns={"target": np.ones(6, dtype=bool)},
        drafters=drafters,
    )


def sure(*rows):
    return np.array([[*row, *[0.0] * (4 - len(row))] for row in rows])


# From the first text's start one draft is right, from its third place two; in the second text none.
MATCHED = [1, 0, 2, 1, 0, 0]
CONFIDENCE = sure((0.9, 0.4), (0.5,), (0.8, 0.8), (0.7,), (0.3,), (0.1,))


def one(found, category):
    (figures,) = [f for f in found if f.category == category]
    return figures


def test_figures_by_hand():
    student = drafter([4] * 6, MATCHED, CONFIDENCE, depth=4)
    found = drafter_figures(trace_of({"student": ModelEntry("autoregressive")}, {"student": student}))
    assert [(f.drafter, f.category, f.starts) for f in found] == [
        ("student", "all", 6),
        ("student", "code", 2),
        ("student", "maths", 4),
    ]
    # Of the six starts three are right at once; of the four with two tokens of text left, one is right twice.
    assert one(found, "all").survival == {1: 3 / 6, 2: 1 / 4, 4: 0 / 1, 8: None, 16: None}
    assert one(found, "code").survival == {1: 0.0, 2: 0.0, 4: None, 8: None, 16: None}
    # First text: from 0 one and the target's own, from 2 both and the end. Second: a token a cycle.
    assert one(found, "maths").emitted == {4: 4 / 2, 8: None, 16: None}
    assert one(found, "code").emitted == {4: 2 / 2, 8: None, 16: None}
    assert one(found, "all").emitted[4] == 6 / 4
    # Second places that had a chance: .4 refused, .8 accepted; each a bin of its own.
    assert one(found, "maths").ece[2] == pytest.approx((0.4 + 0.2) / 2)
    assert one(found, "code").ece == {1: pytest.approx(0.2), 2: None, 4: None, 8: None, 16: None}


def test_a_look_up_has_no_calibration_and_one_category_is_not_told_twice():
    look = drafter([2, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0], depth=4)
    (figures,) = drafter_figures(
        trace_of({"look": ModelEntry("prompt-lookup")}, {"look": look}, categories=("maths", "maths"))
    )
    assert set(figures.ece.values()) == {None}
    # 0 to 3, the last token, then two tokens of the second text.
    assert figures.emitted[4] == 6 / 4


def test_cost_ratios_take_a_block_whole_and_one_token_otherwise():
    seconds = {"target": 4.0, "student": 1.0, "block": 0.5}
    latency = timed(
        lambda m, b, n, r: seconds[m] * b * (1 + 0.1 * (n - 1)) * (1 + r),
        models=tuple(seconds),
        batches=(1, 4),
        widths=(1, 3, 8),
        repetitions=3,
    )
    models = {"student": ModelEntry("autoregressive"), "block": ModelEntry("block-parallel", {"block": 4})}
    blank = drafter([0] * 6, [0] * 6, depth=4)
    found = cost_ratios(trace_of(models, {"student": blank, "block": blank}, latency))
    assert [(f.drafter, f.batch, f.new_tokens) for f in found] == [
        ("student", 1, 1),
        ("student", 4, 1),
        ("block", 1, 3),
        ("block", 4, 3),
    ]
    assert [f.ratio for f in found] == pytest.approx([0.25, 0.25, 0.15, 0.15])


@pytest.mark.parametrize("missing", ["target", "student"])
def test_no_ratio_without_both_single_token_forwards(missing):
    latency = timed(lambda m, b, n, r: 1.0, models=("target", "student"))
    gone = (latency["model"] == missing) & (latency["new_tokens"] == 1)
    blank = drafter([0] * 6, [0] * 6, depth=4)
    trace = trace_of({"student": ModelEntry("autoregressive")}, {"student": blank}, latency[~gone])
    assert cost_ratios(trace) == []
