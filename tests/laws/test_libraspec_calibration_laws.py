"""What holds of scores by draws of prompts, and of acting on p-hat where the theory's costs are granted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from simspec.compare.calibration import auroc, calibrate
from simspec.compare.calibration_scores import aurocs, brier_parts, scores
from simspec.compare.libraspec.slower_rounds import slower_rounds
from simspec.cost.models import AffineCost
from simspec.strategies.traces import synthetic_traces
from tests.profiles import examples
from tests.toy import LOOKUP, MIDDLE, SMALL, TARGET

TOKENS = st.lists(st.tuples(st.integers(0, 8), st.booleans(), st.integers(0, 2)), min_size=1, max_size=40)
DRAWS = st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=1, max_size=4)


def arrays(rows):
    return tuple(
        np.array(x) for x in ([c / 8 for c, _, _ in rows], [a for _, a, _ in rows], [p for *_, p in rows])
    )


@given(rows=TOKENS, draws=DRAWS)
@examples(2)
def test_a_draw_scores_as_its_prompts_repeated(rows, draws):
    sure, right, prompt = arrays(rows)
    counts = np.array([[1, 1, 1], *draws], dtype=float)
    # Nine values and many bins: a value is a bin, whatever is drawn.
    found = scores(sure, right, prompt, counts, bins=400)
    for k, draw in enumerate(counts):
        again = np.repeat(np.arange(len(rows)), draw[prompt].astype(int))
        if not len(again):
            assert np.isnan(found.bias[k])
            continue
        each = calibrate(sure[again], right[again], bins=400)
        assert found.brier[k] == pytest.approx(each.brier)
        assert found.bias[k] == pytest.approx(each.mean_confidence - each.accepted_share, abs=1e-12)
        assert found.ece[k] == pytest.approx(each.expected_error, abs=1e-12)
        told = auroc(sure[again], right[again])
        assert np.isnan(found.auroc[k]) if told is None else found.auroc[k] == pytest.approx(told)
    assert found.ece[0] == pytest.approx(calibrate(sure, right, bins=400).expected_error, abs=1e-12)


@given(rows=TOKENS)
def test_the_parts_of_the_brier_score_add_up_and_none_is_below_0(rows):
    sure, right, _ = arrays(rows)
    off, sorted_out, left = brier_parts(sure, right)
    assert off - sorted_out + left == pytest.approx(((sure - right) ** 2).mean())
    assert min(off, sorted_out, left) >= -1e-12


@given(rows=TOKENS)
def test_auroc_does_not_hang_on_the_scale_of_confidence(rows):
    sure, right, prompt = arrays(rows)
    assume(0 < right.sum() < len(right))
    one, other = (aurocs(s, right, prompt, np.ones((1, 3)))[0] for s in (sure, sure**3 - 5))
    assert one == pytest.approx(other)
    assert aurocs(-sure, right, prompt, np.ones((1, 3)))[0] == pytest.approx(1 - one)


@given(
    made=synthetic_traces(output_tokens=(8, 20)),
    token=st.sampled_from([1e-5, 1e-4, 1e-3]),
    ratio=st.sampled_from([0.01, 0.1, 0.5]),
)
@examples(0.4)
def test_the_exact_rule_is_never_slower_by_p_hat_where_costs_are_affine(made, token, ratio):
    ratios = {SMALL: ratio, MIDDLE: 0.4, LOOKUP: 0.0}
    cost = AffineCost("made-up", "SYNTHETIC", TARGET, 2e-3, token, 0.0, 0.0, ratios)
    found = slower_rounds(made.trace(), SMALL, cost, 2, 0)
    exact = found["rules"]["exact-marginal"]
    # No round at all can draft where texts end at once.
    assert exact["faster"][0] in (0.0, None)
    assert exact["loss"][0] is None or exact["loss"][0] >= 0.0
    for example in found["examples"]:
        assert example["lost"] > 0.0
        assert example["speed_q"] < example["speed_p"]
        assert example["length_q"] != example["length_p"]
