"""Ours, where it could deceive itself."""

from __future__ import annotations

import numpy as np

from simspec.speculation.lengths import Decision
from simspec.speculation.planners_longrun import LongRun
from simspec.speculation.planning import Happened, Waiting

ROWS, DEPTH = 4, 8


def waiting(confidence: float, behind: float = 0.0, step: float = 0.3) -> Waiting:
    """Rows that are alike; a drafted token takes half a forward of the target, a submitted one ``step``."""
    shape = (1, ROWS, DEPTH)
    return Waiting(
        running=np.ones(shape[:2], dtype=bool),
        fresh=np.zeros(shape[:2], dtype=bool),
        confidence=np.full(shape, confidence),
        limit=np.full(shape[:2], DEPTH),
        draft=lambda n: np.broadcast_to(0.5 * n, (1, DEPTH + 1)),
        verify=lambda widest, submitted: np.broadcast_to(1.0 + step * widest, (1, widest.shape[-1])),
        overhead=0.0,
        behind=np.array([behind]),
    )


def cycles(planner: LongRun, blocks: list[tuple[float, bool]], step: float = 0.3) -> list[tuple[int, int]]:
    """Drafted and submitted in every cycle, of blocks with a confidence that are accepted whole or not."""
    state = planner.begin(1, ROWS, DEPTH)
    done = []
    for confidence, right in blocks:
        seen = waiting(confidence, step=step)
        decision = planner.decide(seen, state)
        drafted, submitted = int(decision.drafted.max()), int(decision.submitted.max())
        done.append((drafted, submitted))
        accepted = decision.submitted * right
        spent = (np.array([0.5 * drafted]), np.array([1.0 + step * submitted]))
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


def lengths_tried(idle: int, good: float, tried: float, **waits: float) -> int:
    """Tokens tried after idle cycles, after so many acceptances at each place."""
    planner = LongRun()
    state = planner.begin(1, ROWS, DEPTH)
    state["idle"] = np.array([idle])
    state["place_good"][:], state["place_tried"][:] = good, tried
    state["after_good"][:], state["after_tried"][:] = 0.0, 100.0  # by itself it would draft nothing
    return int(planner.decide(waiting(0.5, **waits), state).submitted.max())


def test_what_is_tried_would_pay_with_a_little_luck():
    """A cycle of n tokens takes 1 + .8 n. Never tried: one token pays if it is accepted. One of 64 accepted:
    it would not, however lucky. Half of 64: (32 + 7) / (64 + 7) = .55 after 63 cycles, and .8 is asked."""
    assert lengths_tried(63, 0.0, 0.0) == 1
    assert lengths_tried(63, 1.0, 64.0) == 0
    assert lengths_tried(63, 32.0, 64.0) == 0
    assert lengths_tried(63, 56.0, 64.0) == 1


def test_what_the_drafter_has_to_read_first_is_weighed():
    """A token is worth 1 second: n repay .8 n + .5 from 3 on, and .8 n + 5 not within 8."""
    assert lengths_tried(63, 0.0, 0.0, behind=0.5) == 3
    assert lengths_tried(63, 0.0, 0.0, behind=5.0) == 0


def test_probes_after_idleness_grow_rare():
    done = cycles(LongRun(), [(0.3, False)] * 600, step=0.05)
    probes = [k for k, (_, submitted) in enumerate(done) if submitted]
    assert probes
    assert len(probes) >= 3
    assert (np.diff(np.diff(probes)) > 0).all()
    assert np.diff(probes)[-1] >= 100
