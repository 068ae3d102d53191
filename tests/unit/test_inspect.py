"""What inspect counts and doubts, on inputs small enough to count by hand or by a plain loop."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from simspec.compare.doubts import drafter_doubts, latency_doubts, prompt_doubts
from simspec.compare.inspect_trace import inspect_trace
from simspec.compare.inspection import POSITIONS, acceptance, auroc, table_errors, width_curves
from simspec.errors import BadInput
from simspec.traces.drafters import DrafterIndex
from simspec.traces.index import Trace
from simspec.traces.manifest import Manifest, ModelEntry, TableEntry

TIMED = ["model", "device", "dtype", "batch", "new_tokens", "context", "repetition", "seconds"]


def drafter(length, matched, confidence=None, depth=8) -> DrafterIndex:
    length, matched = np.array(length, dtype=np.int64), np.array(matched, dtype=np.int64)
    if confidence is None:
        confidence = np.full((len(length), depth), 0.5)
    return DrafterIndex(
        length=length,
        ended=np.zeros(len(length), dtype=bool),
        confidence=np.asarray(confidence, dtype=np.float32),
        matched=matched,
        agreed={},
    )


def timed(seconds, models=("target",), batches=(1,), widths=(1, 2, 3), repetitions=1) -> pd.DataFrame:
    """A latency table from a function of model, batch, width and repetition."""
    rows = [
        (m, "cpu", "float32", b, n, 128, r, seconds(m, b, n, r))
        for m in models
        for b in batches
        for n in widths
        for r in range(repetitions)
    ]
    return pd.DataFrame(rows, columns=TIMED)


def prompts(count=20, finish=None, hashes=None) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "prompt_id": range(count),
            "category": ["maths"] * count,
            "prompt_hash": hashes or [f"hash {i}" for i in range(count)],
            "prompt_tokens": [5] * count,
            "output_tokens": [2] * count,
            "finish": finish or ["eos"] + ["length"] * (count - 1),
        }
    )


def along(count=20, top1=0.8, entropy=0.5) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "prompt_id": np.repeat(range(count), 2),
            "position": [0, 1] * count,
            "model": "target",
            "top1_prob": top1,
            "entropy": entropy,
        }
    )


def kinds(doubts) -> list[str]:
    return [d.kind for d in doubts]


# Five starts: all accepted; cut at the second; empty; a block past the end of the text; refused at once.
HAND = drafter([3, 3, 0, 3, 3], [3, 1, 0, 1, 0])
HAND_REMAINING = np.array([9, 8, 7, 1, 5])


def test_acceptance_counts_only_where_block_and_text_go_that_far():
    found = acceptance("d", HAND, HAND_REMAINING)
    first, second, third, fourth = found.positions[:4]
    assert (first.drafts, first.survival.value) == (4, 3 / 4)
    # The block at the end of its text has no second position to be accepted or refused.
    assert (second.drafts, second.survival.value) == (3, 1 / 3)
    assert (second.chances, second.conditional.value) == (2, 1 / 2)
    assert (third.chances, third.conditional.value) == (1, 1.0)
    assert (fourth.drafts, fourth.chances, fourth.survival.value) == (0, 0, None)
    assert found.empty_share == 1 / 5
    assert found.mean_accepted_run == (3 + 1 + 0 + 1 + 0) / 5
    assert found.uncut_share == 2 / 5


def test_acceptance_agrees_with_a_plain_loop():
    rng = np.random.default_rng(7)
    length = rng.integers(0, 27, 300)
    matched = np.minimum(rng.geometric(0.15, 300) - 1, length)
    remaining = rng.integers(1, 40, 300)
    found = acceptance("d", drafter(length, matched, depth=26), remaining)
    assert [p.position for p in found.positions] == list(POSITIONS)
    for p in found.positions:
        drafts = chances = good = 0
        for size, run, left in zip(length, matched, remaining, strict=True):
            if size < p.position or left < p.position:
                continue
            drafts += 1
            chances += run >= p.position - 1
            good += run >= p.position
        assert (p.drafts, p.chances) == (drafts, chances)
        assert p.survival.value == pytest.approx(good / drafts)
        assert p.conditional.value == (pytest.approx(good / chances) if chances else None)
        assert p.survival.low <= p.survival.value <= p.survival.high


def test_no_position_beyond_the_block_length():
    assert [p.position for p in acceptance("d", HAND, HAND_REMAINING).positions] == list(range(1, 9))


def test_auroc_is_the_share_of_pairs_in_order():
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 6, 60).astype(float)
    labels = rng.random(60) < 0.4
    pairs = [(g > b) + 0.5 * (g == b) for g in scores[labels] for b in scores[~labels]]
    assert auroc(scores, labels) == pytest.approx(np.mean(pairs))
    assert auroc(scores, np.ones(60, dtype=bool)) is None


def test_confidence_counts_only_drafts_that_had_a_chance():
    # Accepted drafts at 0.9, the refused one at 0.1; what follows the cut, at 1, has no say.
    confidence = np.tile([0.9, 0.1, 1.0], (5, 1))
    found = acceptance("d", drafter([3] * 5, [1] * 5, confidence), np.full(5, 9))
    assert found.confidence_auroc == 1.0
    lookup = acceptance("d", drafter([3] * 5, [1] * 5, confidence), np.full(5, 9), lookup=True)
    assert lookup.confidence_auroc is None


def test_width_curves_use_batch_1_and_the_nearest_widths():
    table = timed(lambda m, b, n, r: b * (1 + n) + r, batches=(1, 2), widths=(1, 2, 4, 8, 17), repetitions=3)
    (curve,) = width_curves(table)
    assert curve.step_seconds == 3.0
    assert curve.ratios == {2: 4 / 3, 4: 6 / 3, 8: 10 / 3, 17: 19 / 3}


def test_width_curves_without_single_token_forward():
    (curve,) = width_curves(timed(lambda m, b, n, r: n, widths=(2, 4)))
    assert curve.step_seconds is None
    assert curve.ratios == {2: None, 4: None}


def test_table_errors_are_null_without_an_interior_point():
    def seconds(m, b, n, r):
        return 1.0 + n if n != 3 else 8.0

    (error,) = table_errors(timed(seconds, widths=(1, 2)))
    assert error.median is None
    assert error.p90 is None
    # Between 2 s and 6 s the line predicts 4 s where 8 s were measured.
    (error,) = table_errors(timed(seconds, widths=(1, 3, 5)))
    assert error.median == pytest.approx(0.5)


def test_prompts_without_fault_raise_no_doubt():
    assert not list(prompt_doubts(prompts(), along(), 1000))


@pytest.mark.parametrize(
    ("table", "target", "kind", "numbers"),
    [
        (prompts(19), along(19), "few-prompts", "19 prompts"),
        (prompts(hashes=["same"] * 3 + list("abcdefghijklmnopq")), along(), "repeated-prompts", "2 of 20"),
        (prompts(finish=["length"] * 20), along(), "all-cut", "All 20 texts"),
        (
            prompts(),
            along(top1=[0.1] * 4 + [0.8] * 36),
            "random-prompts",
            "2 of 20 prompts (prompt 0, 1): its mean top-1",
        ),
        (
            prompts(),
            along(entropy=[0.5] * 38 + [6.0] * 2),
            "random-prompts",
            "1 of 20 prompts (prompt 19): its mean entropy",
        ),
    ],
)
def test_prompt_doubts(table, target, kind, numbers):
    (doubt,) = prompt_doubts(table, target, 1000)
    assert doubt.kind == kind
    assert numbers in doubt.text


def doubts_of(length, matched, confidence=None):
    index = drafter(length, matched, confidence)
    return list(drafter_doubts(acceptance("d", index, np.full(len(length), 99))))


def test_drafter_doubts_on_acceptance():
    assert kinds(doubts_of([3] * 10, [0] * 10)) == ["never-accepted"]
    assert kinds(doubts_of([3] * 10, [3] * 10)) == ["always-accepted"]
    assert kinds(doubts_of([0] * 10, [0] * 10)) == ["no-drafts"]


def test_second_position_never_accepted_needs_more_than_1000_drafts():
    # The confidence orders acceptance, so that it gives no doubt of its own.
    def confidence(matched):
        return np.array([[0.9, 0.1] if m else [0.2, 0.1] for m in matched])

    many = [1] * 600 + [0] * 401
    (doubt,) = doubts_of([2] * 1001, many, confidence(many))
    assert doubt.kind == "second-never-accepted"
    assert "1001 drafts, in 600 of which" in doubt.text
    assert "broken drafter, not a hard workload" in doubt.text
    assert not doubts_of([2] * 1000, many[1:], confidence(many[1:]))
    rare = [1] * 5 + [0] * 996
    (doubt,) = doubts_of([2] * 1001, rare, confidence(rare))
    assert "too few to tell" in doubt.text
    once = [2, *many[1:]]
    assert not doubts_of([2] * 1001, once, confidence(once))


def test_confidence_that_orders_nothing():
    length, matched = [1] * 40, [1, 0] * 20
    (doubt,) = doubts_of(length, matched, np.full((40, 1), 0.7))
    assert doubt.kind == "unordered-confidence"
    assert "AUROC 0.500" in doubt.text
    assert not doubts_of(length, matched, np.where(np.array(matched)[:, None] == 1, 0.8, 0.3))


def test_latency_doubts():
    def steady(m, b, n, r):
        return 1.0 + n + 0.1 * r

    clean = timed(steady, repetitions=3)
    assert not list(latency_doubts(clean, ["target"]))
    assert kinds(latency_doubts(clean.iloc[:0], ["target"])) == ["no-latency"]
    (doubt,) = latency_doubts(clean, ["target", "small"])
    assert doubt.kind == "no-latency"
    assert "1 of 2 models have no latency row: small" in doubt.text


def test_latency_spread_over_a_tenth_of_the_cells():
    def spread(cells):
        def seconds(m, b, n, r):
            return (1 + n) * (3.5 if r == 1 and n <= cells else 1)

        return timed(seconds, widths=range(1, 11), repetitions=2)

    # Spread of the first cells also moves their medians: only its own doubt is looked at here.
    assert "latency-spread" not in kinds(latency_doubts(spread(1), ["target"]))
    (doubt,) = (d for d in latency_doubts(spread(2), ["target"]) if d.kind == "latency-spread")
    assert "2 of 10 latency cells (20%)" in doubt.text


def test_latency_that_falls_with_width():
    falling = timed(lambda m, b, n, r: {1: 1.0, 2: 2.0, 3: 1.5}[n], batches=(1, 2))
    (doubt,) = latency_doubts(falling, ["target"])
    assert doubt.kind == "latency-not-monotone"
    assert "2 of 4 steps" in doubt.text
    assert "25%, is 'target' (float32) reaching 3 new tokens at batch 1, context 128" in doubt.text
    # Within noise, and across batches, nothing falls.
    level = timed(lambda m, b, n, r: (1.0 - 0.01 * n) / b, batches=(1, 2))
    assert not list(latency_doubts(level, ["target"]))


def tiny_trace(latency: pd.DataFrame) -> Trace:
    """Two prompts of two tokens, a target and a look-up that has a block at one place in four."""
    sha = "0" * 64
    manifest = Manifest(
        format=1,
        name="tiny",
        origin="synthetic",
        created="2000-01-01T00:00:00Z",
        command=["made", "up"],
        recipe={},
        recipe_sha256=sha,
        target="target",
        models={
            "target": ModelEntry("autoregressive", {"layers": 4, "parameters": 1000}),
            "look": ModelEntry("prompt-lookup"),
        },
        tokenizer_sha256=sha,
        vocabulary=1000,
        eos_tokens=[0],
        output_tokens=2,
        block_length=2,
        context_limit=9,
        seed=0,
        device="cpu",
        dtype="float32",
        machine={},
        versions={},
        units={},
        near_ties={},
        recording_seconds={},
        behaviour_sha256=sha,
        tables={"latency": TableEntry("latency.parquet", len(latency), sha)},
    )
    ones = np.ones(4, dtype=bool)
    return Trace(
        folder=Path("tiny"),
        manifest=manifest,
        prompts=prompts(2),
        latency=latency,
        pairs=pd.DataFrame(
            {
                "prompt_id": [0],
                "position": [0],
                "model_a": ["target"],
                "model_b": ["look"],
                "tv": [0.2],
                "argmax_agree": [True],
            }
        ),
        tokens=np.array([5, 0, 5, 6]),
        offsets=np.array([0, 2, 4]),
        remaining=np.array([2, 1, 2, 1]),
        position=np.array([0, 1, 0, 1]),
        prompt=np.array([0, 0, 1, 1]),
        context=np.array([5, 6, 5, 6]),
        owns={"target": ones},
        drafters={"look": drafter([2, 0, 0, 0], [1, 0, 0, 0], depth=2)},
    )


def test_whole_inspection_is_json_and_says_what_the_trace_is():
    found = inspect_trace(tiny_trace(timed(lambda m, b, n, r: 1.0 + n, models=("target", "look"))), along(2))
    assert json.loads(json.dumps(found, allow_nan=False)) == json.loads(json.dumps(found))
    assert found["origin"] == "synthetic"
    assert found["prompts"] == {
        "count": 2,
        "by_category": {"maths": 2},
        "ended_by": {"eos": 1, "length": 1},
        "positions": 4,
    }
    assert found["models"][0] == {"name": "target", "kind": "autoregressive", "layers": 4, "parameters": 1000}
    (pair,) = found["pairs"]
    # One place of four has both models; at the others nothing overlaps.
    assert pair["simscore"] == pytest.approx(0.8 / 4)
    assert pair["argmax_agreement"] == 1 / 4
    assert [d["kind"] for d in found["doubts"]] == ["few-prompts"]


def test_whole_inspection_without_latency():
    found = inspect_trace(tiny_trace(timed(lambda m, b, n, r: 1.0).iloc[:0]), along(2))
    json.dumps(found, allow_nan=False)
    assert found["latency"]["grid"]["rows"] == 0
    assert found["latency"]["batch_1"] == []
    assert "no-latency" in [d["kind"] for d in found["doubts"]]


def test_latency_grid_with_holes_is_a_doubt():
    holes = timed(lambda m, b, n, r: 1.0 + n, batches=(1, 2)).iloc[:-1]
    with pytest.raises(BadInput, match="holes"):
        table_errors(holes)
    found = inspect_trace(tiny_trace(holes), along(2))
    assert "latency-table" in [d["kind"] for d in found["doubts"]]
    assert found["latency"]["leave_one_out"] == []
