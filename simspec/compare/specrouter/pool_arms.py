"""What routers are offered while a pool grows, and a bandit's arms among it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.compare.route_schedulers import Tuned
from simspec.replay.candidates import CandidateTable
from simspec.speculation.routing import Pool, State
from simspec.speculation.schedulers_bandit import Bandit

Bools = NDArray[np.bool_]

UCB = ("ucb", "ucb-prior")


@dataclass(frozen=True)
class Arm:
    """What some deciders are offered, (K,): before the newcomer joins, and after."""

    newcomer: str
    before: Bools
    after: Bools


def arms_of(table: CandidateTable, known: list[str], made: list[str]) -> list[Arm]:
    """For each newcomer the pool that it joins, and the same pool without it; made-up ones share theirs."""

    def without(*models: str) -> Bools:
        return np.array([not set(models) & set(c.levels) for c, _ in table.pool.candidates])

    base = without(*made)
    arms = []
    for model in known:
        small = base & without(model)
        if small.sum() > 1:  # something else drafts
            arms += [Arm(model, small, base), Arm(model, small, small)]
    arms += [Arm(name, base, without(*(m for m in made if m != name))) for name in made]
    return [*arms, Arm("", base, base)]


def bandit_arms(tuned: Tuned, arms: list[Arm]) -> tuple[Bools, Bools]:
    """Candidates of bandits, (arms, K), before: the target, each drafter's best pair, the best triple; after,
    also the newcomer's.

    No length of a newcomer is tuned, so all its pairs are in it, and it in the middle of the best pair.
    """
    candidates = tuned.table.pool.candidates
    drafters = sorted({c.drafter for c, _ in candidates if c.drafter})
    before, after = np.zeros((2, len(arms), len(candidates)), dtype=bool)
    for i, arm in enumerate(arms):
        best: dict[tuple[int, str | None], int] = {}
        for levels, drafter in [*((2, d) for d in drafters), (3, None)]:
            fits = [
                ok and len(c.levels) == levels and drafter in (None, c.drafter)
                for ok, (c, _) in zip(arm.before, candidates, strict=True)
            ]
            if any(fits):
                best[levels, drafter] = int(np.where(fits, tuned.seconds, np.inf).argmin())
        before[i, list(best.values())] = True
        if tuned.table.pool.plain is not None:
            before[i, tuned.table.pool.plain] = True
        pairs = [k for (levels, _), k in best.items() if levels == 2]
        chain, length = candidates[min(pairs, key=lambda k: float(tuned.seconds[k]))]
        after[i] = before[i]
        if (arm.after == arm.before).all():
            continue
        for k, (c, n) in enumerate(candidates):
            pair = len(c.levels) == 2 and c.drafter == arm.newcomer
            between = c.intermediates == (arm.newcomer,) and (c.drafter, n) == (chain.drafter, length)
            after[i, k] |= pair or between
    return before, after


@dataclass(frozen=True)
class _Bandit(Bandit):
    """One that says which candidates its arms are, so that a newcomer's priors can be put there."""

    def begin(self, pool: Pool, deciders: int) -> State:
        arms = np.broadcast_to(np.asarray(self.arms), (deciders, len(self.arms)))
        return {**super().begin(pool, deciders), "arms": arms}


def bandit(tuned: Tuned, name: str, before: Bools, after: Bools) -> Bandit:
    """As :data:`~simspec.compare.route_schedulers.SCHEDULERS` has it, with the arms of every pool.

    Args:
        before, after: candidates that are ever offered, (..., K).
    """
    candidates = len(tuned.seconds)
    arms = np.flatnonzero((before | after).reshape(-1, candidates).any(axis=0))
    rates = 1.0 / tuned.seconds
    most = float(rates[before.reshape(-1, candidates).any(axis=0)].max())
    if name == "ucb":
        return _Bandit(tuple(arms.tolist()), most)
    return _Bandit(tuple(arms.tolist()), 0.1 * most, tuple(float(r) for r in rates[arms]), 4.0)
