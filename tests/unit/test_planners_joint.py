"""DSpark and D-Cut, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from simspec.speculation.planners_joint import DCut, DSpark
from simspec.speculation.planning import Waiting

# Survivals .9 .72 and .5 .25: in order .9 .72 .5 .25, together .9 1.62 2.12 2.37.
TWO_ROWS = [[0.9, 0.8], [0.5, 0.5]]


def waiting(confidence, verify, drafting=0.0) -> Waiting:
    """One stream in which every row runs; ``verify`` of drafts in the widest row and in all."""
    q = np.array([confidence])
    return Waiting(
        running=np.ones(q.shape[:2], dtype=bool),
        fresh=np.zeros(q.shape[:2], dtype=bool),
        confidence=q,
        limit=(q > 0).sum(axis=2),
        draft=lambda n: drafting * n.astype(float),
        verify=np.vectorize(verify, otypes=[float]),
        overhead=0.0,
    )


def submitted(planner, seen: Waiting) -> list[int]:
    found = planner.decide(seen, planner.begin(1, 1, 1))
    assert (found.submitted <= found.drafted).all()
    return found.submitted[0].tolist()


def packed(fixed, each):
    return lambda widest, tokens: fixed + each * tokens


@pytest.mark.parametrize("scan", ["first-fall", "all"])
def test_dspark_admits_while_tokens_a_second_rise(scan):
    """2/10, 2.9/11, 3.62/12, 4.12/13 = .317, 4.37/14 = .312: three tokens."""
    assert submitted(DSpark(scan=scan), waiting(TWO_ROWS, packed(10, 1))) == [2, 1]


def test_dspark_stops_before_a_step_that_sglang_looks_beyond():
    """One token or more take 15 for 10: 2/10, 2.9/15 = .193, and at last 4.37/15 = .291."""
    seen = waiting(TWO_ROWS, lambda widest, tokens: 15 if tokens else 10)
    assert submitted(DSpark(), seen) == [0, 0]
    assert submitted(DSpark(scan="all"), seen) == [2, 2]


def test_dspark_pays_for_drafting_whatever_it_admits():
    """10 seconds of drafting: 2/20, 2.9/21, 3.62/22, 4.12/23 = .179, 4.37/24 = .182."""
    assert submitted(DSpark(), waiting(TWO_ROWS, packed(10, 1), drafting=5.0)) == [2, 2]


@pytest.mark.parametrize(("each", "kept"), [(1, [2, 2]), (3, [2, 1]), (10, [2, 0]), (100, [1, 0])])
def test_dcut_keeps_the_share_of_most_accepted_tokens_a_second(each, kept):
    """Over 10 + n: .082 .135 .163 .169. Over 10 + 3 n: .069 .101 .112 .108. Over 10 + 10 n: .045 .054
    .053 .047. Over 10 + 100 n: .0082 .0077 .0068 .0058; to keep none is no choice."""
    assert submitted(DCut(), waiting(TWO_ROWS, packed(10, each))) == kept


def test_dcut_rounds_a_share_up():
    """Of three tokens a quarter is one, a half two, three quarters all."""
    seen = waiting([[0.9, 0.8], [0.5, 0.0]], packed(0, 1))
    assert submitted(DCut(shares=(0.25,)), seen) == [1, 0]
    assert submitted(DCut(shares=(0.5,)), seen) == [2, 0]
    assert submitted(DCut(shares=(0.75,)), seen) == [2, 1]


@pytest.mark.parametrize("planner", [DSpark(longest=1), DCut(longest=1)], ids=str)
def test_blocks_are_of_one_length(planner):
    seen = waiting([[0.9, 0.8], [0.0, 0.0]], packed(1, 0))
    found = planner.decide(seen, planner.begin(1, 2, 2))
    assert found.drafted.tolist() == [[1, 0]]
    assert found.submitted.tolist() == [[1, 0]]
