"""A router that only counts: UCB on tokens per second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simspec.errors import BadInput
from simspec.speculation.routing import Evidence, Ints, Pool, Seen, State, View


@dataclass(frozen=True)
class Bandit:
    """UCB1 (Auer, Cesa-Bianchi and Fischer 2002) over some of the candidates.

    Each arm's rate is its tokens over its seconds so far; the arm of greatest rate + ``spread`` *
    sqrt(2 ln t / pulls) is taken, t counting cycles. Where cycles of an arm are drawn alike and take
    equally long, and ``spread`` is the range of their rates, the regret after t cycles is at most
    spread^2 sum 8 ln t / gap + (1 + pi^2 / 3) sum gap (their Theorem 1). On a text they are not.

    Attributes:
        arms: candidates.
        spread: tokens a second.
        prior: rate of each arm, and for how many cycles it counts (``prior_cycles``); without a prior
            every arm is tried once first.
    """

    arms: tuple[int, ...]
    spread: float
    prior: tuple[float, ...] = ()
    prior_cycles: float = 0.0
    evidence: Evidence = "realised"

    def __post_init__(self) -> None:
        if not self.arms:
            raise BadInput("a bandit without arms", allowed="at least one candidate")
        if self.prior and len(self.prior) != len(self.arms):
            raise BadInput(f"{len(self.prior)} prior rates", allowed=f"one for each of {len(self.arms)} arms")

    def begin(self, pool: Pool, deciders: int) -> State:
        shape = (deciders, len(self.arms))
        pulls = np.full(shape, self.prior_cycles if self.prior else 0.0)
        told = np.broadcast_to(np.asarray(self.prior or (0.0,)), shape).copy()
        # A prior's cycles are taken to last a second each, until the first is seen to last otherwise.
        return {"pulls": pulls, "tokens": np.zeros(shape), "seconds": np.zeros(shape), "prior": told}

    def choose(self, pool: Pool, state: State, view: View) -> Ints:
        arms: Ints = np.asarray(self.arms, dtype=np.int64)
        pulls, seconds = state["pulls"], state["seconds"]
        seen = np.divide(state["tokens"], seconds, out=np.zeros_like(seconds), where=seconds > 0)
        own = pulls - (self.prior_cycles if self.prior else 0.0)
        rate = seen
        if self.prior:
            rate = (own * seen + self.prior_cycles * state["prior"]) / np.maximum(pulls, 1e-9)
        open_arms = np.ones_like(pulls, dtype=bool) if view.offered is None else view.offered[:, arms]
        cycles = np.where(open_arms, pulls, 0.0).sum(axis=1, keepdims=True)
        bonus = np.sqrt(2.0 * np.log(np.maximum(cycles, 1.0)) / np.maximum(pulls, 1e-9))
        index = np.where(pulls > 0, rate + self.spread * bonus, np.inf)
        return np.asarray(arms[np.where(open_arms, index, -np.inf).argmax(axis=1)])

    def observe(self, pool: Pool, state: State, seen: Seen) -> State:
        arms = np.asarray(self.arms)
        rows, arm = np.arange(len(seen.chosen)), (seen.chosen[:, None] == arms).argmax(axis=1)
        out = {name: values.copy() for name, values in state.items()}
        out["pulls"][rows, arm] += 1.0
        out["tokens"][rows, arm] += seen.tokens
        out["seconds"][rows, arm] += seen.seconds
        return out
