"""Ours, where it could deceive itself."""

from __future__ import annotations

import numpy as np

from simspec.speculation.lengths import Decision
from simspec.speculation.planners_longrun import LongRun
from simspec.speculation.planning import Happened, Waiting

ROWS, DEPTH = 4, 8


def waiting(confidence: float) -> Waiting:
    """Rows that are alike; a drafted token takes as long as a forward of the target."""
    shape = (1, ROWS, DEPTH)
    return Waiting(
        running=np.ones(shape[:2], dtype=bool),
        fresh=np.zeros(shape[:2], dtype=bool),
        confidence=np.full(shape, confidence),
        limit=np.full(shape[:2], DEPTH),
        draft=lambda n: np.broadcast_to(0.5 * n, (1, DEPTH + 1)),
        verify=lambda widest, submitted: np.broadcast_to(1.0 + 0.3 * widest, (1, widest.shape[-1])),
        overhead=0.0,
    )


def cycles(planner: LongRun, blocks: list[tuple[float, bool]]) -> list[tuple[int, int]]:
    """Drafted and submitted in every cycle, of blocks with a confidence that are accepted whole or not."""
    state = planner.begin(1, ROWS, DEPTH)
    done = []
    for confidence, right in blocks:
        seen = waiting(confidence)
        decision = planner.decide(seen, state)
        drafted, submitted = int(decision.drafted.max()), int(decision.submitted.max())
        done.append((drafted, submitted))
        accepted = decision.submitted * right
        spent = (np.array([0.5 * drafted]), np.array([1.0 + 0.3 * submitted]))
        state = planner.observe(
            state,
            Happened(seen, Decision(decision.drafted, decision.submitted), accepted, accepted + 1, *spent),
        )
    return done


def test_what_is_never_worth_submitting_is_soon_not_drafted():
    """One block in ten is good and sure of it, the others doubtful and bad; to look costs too much.

    Once every block was looked at, and most thrown away: what was not submitted was not counted, so the
    first tokens of blocks seemed as good as the few that were.
    """
    done = cycles(LongRun(), ([(0.95, True)] + 9 * [(0.1, False)]) * 60)
    thrown = [drafted > submitted for drafted, submitted in done[300:]]
    assert np.mean(thrown) < 0.1


def test_probes_after_idleness_grow_rare():
    done = cycles(LongRun(), [(0.3, False)] * 400)
    probes = [k for k, (_, submitted) in enumerate(done) if submitted]
    assert probes
    assert np.diff(probes)[-1] >= 32
    assert len(probes) < 20
