"""Rules and statements in floats against rational arithmetic, on rounds of the real record."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, pairwise
from operator import mul
from pathlib import Path

import numpy as np
import pytest

from simspec.compare.costs import open_cost
from simspec.compare.libraspec.rounds import Rounds, affine, statements
from simspec.compare.libraspec.theorem import recalibrated
from simspec.replay.pricing import two_level_seconds
from simspec.replay.trajectories import draft_limit
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import ExactMarginal, LibraSpec, View
from simspec.speculation.lengths_libraspec import RepairedLibraSpec, TheoremLibraSpec
from simspec.theory.lengths import best_lengths, eps_printed, first_stop, is_unimodal, speedups
from simspec.theory.libraspec import algorithm_one, pass_limits, theorem_limit
from simspec.traces.index import load_trace

TRACE = load_trace(Path("traces/smollm2-cpu"))
COST = open_cost(TRACE, "float32")
ALPHA, BLOCK, LONGEST = 2.2, 16, 24
DRAFTERS = ("skip-10", "skip-2")


def sampled(drafter: str, chances: str, many: int = 60) -> Rounds:
    trace = TRACE if chances == "q" else recalibrated(TRACE, drafter)
    limit = draft_limit(trace, drafter, np.arange(len(trace.tokens)))
    at = np.random.default_rng(7).choice(np.flatnonzero(limit > 0), many, replace=False)
    p = trace.drafters[drafter].confidence[at, :LONGEST].astype(np.float64)
    reach = np.minimum(limit[at], LONGEST)
    p[np.arange(LONGEST) >= reach[:, None]] = 0.0
    seconds = two_level_seconds(trace, Chain((drafter, trace.target)), COST, 1)[at, : LONGEST + 1]
    return Rounds(p, seconds, reach)


def exactly(rounds: Rounds, row: int) -> tuple[list[Fraction], list[Fraction]]:
    """p_1 .. p_reach and T(0) .. T(reach), the very numbers that the floats are."""
    reach = int(rounds.reach[row])
    p = [Fraction(float(x)) for x in rounds.chances[row, :reach]]
    return p, [Fraction(float(t)) for t in rounds.seconds[row, : reach + 1]]


@pytest.fixture(scope="module", params=[(d, c) for d in DRAFTERS for c in "qp"], ids=" ".join)
def rounds(request: pytest.FixtureRequest) -> Rounds:
    return sampled(*request.param)


def submitted(rule, rounds: Rounds) -> list[int]:
    view = View(rounds.chances, rounds.reach, rounds.seconds)
    return np.minimum(rule.decide(view, np.zeros(len(rounds.reach))).submitted, rounds.reach).tolist()


@pytest.mark.parametrize("block", [1, BLOCK])
def test_algorithm_one_is_the_rational_one(rounds: Rounds, block: int) -> None:
    wanted = []
    for row in range(len(rounds.reach)):
        p, _ = exactly(rounds, row)
        ran = algorithm_one(p, Fraction(ALPHA), block, LONGEST)
        wanted.append(min(ran.submitted, len(p)))
    assert submitted(LibraSpec(ALPHA, block, LONGEST), rounds) == wanted


@pytest.mark.parametrize("block", [1, BLOCK])
def test_the_theorems_loop_is_the_rational_one(rounds: Rounds, block: int) -> None:
    wanted = []
    for row in range(len(rounds.reach)):
        p, _ = exactly(rounds, row)
        d = drafted = block
        while d < LONGEST:
            known = p[:drafted]
            eps = [
                theorem_limit(known, Fraction(ALPHA), i) if i <= len(known) else i - 1
                for i in range(1, d + 1)
            ]
            before, d = d, min(*eps, LONGEST) if len(eps) > 1 else min(eps[0], LONGEST)
            drafted = max(drafted, -(-d // block) * block)
            if d <= before:
                break
        wanted.append(min(d, len(p)))
    assert submitted(TheoremLibraSpec(ALPHA, block, LONGEST), rounds) == wanted


def test_exact_rules_take_what_exact_speedups_say(rounds: Rounds) -> None:
    marginal, repaired = (
        submitted(ExactMarginal(LONGEST), rounds),
        submitted(RepairedLibraSpec(1, LONGEST), rounds),
    )
    best = rounds.best()
    for row in range(len(rounds.reach)):
        p, cost = exactly(rounds, row)
        eta = speedups(p, cost)
        assert marginal[row] == first_stop(eta)
        assert best[row] == best_lengths(eta)[0]
        if is_unimodal(eta):
            assert repaired[row] == best_lengths(eta)[-1]


def test_limits_are_the_rational_ones(rounds: Rounds) -> None:
    """The greatest d' that pays its cost by the gain as printed; any cost, so tried one by one."""
    passes = rounds.pass_limits(ALPHA)
    for row in range(0, len(rounds.reach), 3):
        p, cost = exactly(rounds, row)
        for d in (1, len(p) // 2, len(p)):
            if d:
                assert passes[row, d - 1] == min(pass_limits(p, Fraction(ALPHA), d))
    line, _ = affine(rounds)
    for row in range(0, len(rounds.reach), 3):
        p, cost = exactly(line, row)
        if any(t <= 0 for t in cost):
            continue
        eps = [eps_printed(p, i, lambda d, cost=cost: cost[d], limit=len(p)) for i in range(1, len(p) + 1)]
        wanted = np.minimum.accumulate(eps)
        assert line.own_limits[row, : len(p)].tolist() == wanted.tolist()


def test_statements_fail_where_they_fail_exactly(rounds: Rounds) -> None:
    _, slope = affine(rounds)
    found = statements(rounds, slope, ALPHA, BLOCK, LONGEST)
    for row in range(0, len(rounds.reach), 2):
        p, cost = exactly(rounds, row)
        eta = speedups(p, cost)
        drafted = eta[1:]
        assert found["3.5-one-peak"].fails[row] == (not is_unimodal(drafted))
        assert found["first-stop"].fails[row] == (eta[first_stop(eta)] < max(eta))
        ran = algorithm_one(p, Fraction(ALPHA), BLOCK, LONGEST)
        assert found["1-within"].fails[row] == (ran.submitted > LONGEST)
        assert found["1-optimal"].fails[row] == (eta[max(min(ran.submitted, len(p)), 1)] < max(drafted))
        moves = [max(1, min(d, len(p))) for d in ran.lengths]
        fell = [eta[b] <= eta[a] for a, b in pairwise(moves) if a != b]
        assert found["1-passes"].applies[row] == bool(fell)
        assert found["1-passes"].fails[row] == any(fell)
        lower = lower_on_extension(p, cost, eta)
        assert (found["3.4-extend"].applies[row], found["3.4-extend"].fails[row]) == lower


def lower_on_extension(
    p: list[Fraction], cost: list[Fraction], eta: tuple[Fraction, ...]
) -> tuple[bool, bool]:
    """Whether min eps_i lengthens any d, and whether it then fails to raise eta somewhere."""
    extends, fails, least = False, False, len(p)
    for d in range(1, len(p) + 1):
        tokens = eta[d] * cost[d]
        gains = accumulate(accumulate(p[d - 1 :], mul))
        paid = [k for k, g in enumerate(gains, start=d) if cost[k] - cost[d] < cost[d] / tokens * g]
        least = min(least, max(paid, default=d - 1))
        if least > d:
            extends = True
            fails |= eta[least] <= eta[d]
    return extends, fails
