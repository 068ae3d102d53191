"""Policies weigh all blocks of a record at once: each on its own, and with the same lengths as when asked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from simspec.serving.row_policies import ByRule, Joint, RowPolicy, RowView
from simspec.speculation.lengths import ExactMarginal, LibraSpec

DEPTH = 6
POLICIES: list[RowPolicy] = [
    ByRule(ExactMarginal(4), DEPTH),
    ByRule(LibraSpec(2.2, 2, 5), DEPTH),
    ByRule(LibraSpec(1.2, 3, 3), DEPTH),
    Joint(DEPTH),
    Joint(DEPTH, full_scan=True),
]
SURE = st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0])


@st.composite
def blocks(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Confidences, 0 past the end, and lengths of a few blocks."""
    rows = draw(st.integers(1, 5))
    length = np.array(draw(st.lists(st.integers(0, DEPTH + 2), min_size=rows, max_size=rows)))
    confidence = draw(arrays(np.float64, (rows, DEPTH), elements=SURE))
    confidence[np.arange(DEPTH) >= length[:, None]] = 0.0
    return confidence, length


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@given(found=blocks(), steps=st.lists(st.floats(0.01, 2), min_size=DEPTH + 1, max_size=DEPTH + 1))
def test_a_block_is_weighed_on_its_own(policy, found, steps):
    confidence, length = found
    weighed = policy.weigh(confidence, length)
    for i in range(len(length)):
        assert (policy.weigh(confidence[i : i + 1], length[i : i + 1]) == weighed[i]).all()
    # A cost of any form, also one that falls with the length.
    view = RowView(
        np.ones(len(length), np.int64),
        confidence,
        length,
        lambda longest: steps[: longest + 1],
        lambda drafted, widest, total: 1.0 + steps[0] * total,
    )
    state = policy.begin(len(length))
    asked, known = (policy.lengths(seen, state) for seen in (view, view._replace(weighed=weighed)))
    assert asked.drafted.tolist() == known.drafted.tolist()
    assert asked.submitted.tolist() == known.submitted.tolist()
    if isinstance(policy, ByRule):  # row by row, as the rule itself decides
        for i, q in enumerate(confidence):
            one = policy.lengths(view._replace(confidence=q[None], length=length[i : i + 1]), state[:1])
            assert (one.drafted[0], one.submitted[0]) == (known.drafted[i], known.submitted[i])
