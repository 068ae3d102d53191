"""How engines and papers choose one length for a whole batch, learning while they serve.

None looks at confidences. Rows that cannot draft so much draft what they can, and their counts are taken as
they are, but for acceptance by place, which counts a place where it was submitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np
from msgspec import Meta

from simspec.errors import BadInput
from simspec.speculation.lengths import Chance, Count, Decision, Factor, Floats, Ints, Positive
from simspec.speculation.planning import Happened, State, Together, Waiting

Lengths = Annotated[tuple[Positive, ...], Meta(min_length=1)]
Remembered = Annotated[float, Meta(ge=0, lt=1)]


def _rising(name: str, lengths: tuple[int, ...]) -> None:
    if not lengths or lengths[0] < 1 or any(b <= a for a, b in pairwise(lengths)):
        raise BadInput(f"{name} are {lengths}", allowed="lengths from 1, rising")


@dataclass(frozen=True)
class EmaWalk(Together):
    """SGLang's adaptive number of steps (its code, adaptive_spec_params.py, mid 2026).

    An exponential mean of accepted drafts, weight ``weight``, of each cycle's mean over the rows that ran;
    it begins at ``first`` - 1, one for the whole server (later releases keep one for each range of batch
    sizes). After ``warmup`` cycles, every ``every`` cycles: while it is at most previous - .5 + ``down``,
    one step down the ``lengths``; then while it is above present - .5 + ``up``, one step up.
    """

    lengths: Lengths = (1, 3, 7)
    first: Positive = 3
    weight: Chance = 0.2
    down: float = -0.25
    up: float = 0.0
    warmup: Count = 10
    every: Positive = 5

    def __post_init__(self) -> None:
        _rising("lengths", self.lengths)
        if self.first not in self.lengths:
            raise BadInput(f"first is {self.first}", allowed=f"one of {self.lengths}")

    def begin(self, streams: int, batch: int, depth: int) -> State:
        return {
            "mean": np.full(streams, self.first - 1.0),
            "at": np.full(streams, self.lengths.index(self.first), dtype=np.int64),
            "cycles": np.zeros(streams, dtype=np.int64),
        }

    def decide(self, waiting: Waiting, state: State) -> Decision:
        return self.all_rows(waiting, np.asarray(self.lengths)[state["at"]])

    def observe(self, state: State, happened: Happened) -> State:
        rows = happened.waiting.running.sum(axis=1)
        seen = happened.accepted.sum(axis=1) / np.maximum(rows, 1)
        mean = (1.0 - self.weight) * state["mean"] + self.weight * seen
        cycles = state["cycles"] + 1
        due = (cycles > self.warmup) & ((cycles - self.warmup) % self.every == 0)
        lengths, at = np.asarray(self.lengths, dtype=np.float64), state["at"]
        for _ in self.lengths[1:]:
            at = at - (due & (at > 0) & (mean <= lengths[np.maximum(at - 1, 0)] - 0.5 + self.down))
        last = len(lengths) - 1
        for _ in self.lengths[1:]:
            at = at + (due & (at < last) & (mean > lengths[at] - 0.5 + self.up))
        return {"mean": mean, "at": at, "cycles": cycles}


@dataclass(frozen=True)
class _MostGoodput(Together):
    """The length of most expected tokens a second, all rows alike; state "idle": cycles in a row without.

    Cycles that draft nothing teach nothing, so after ``probe_every`` of them one token is drafted; 0: never.
    """

    longest: Count = 7
    prior: Chance = 0.7
    prior_drafts: Annotated[float, Meta(gt=0)] = 50.0
    probe_every: Count = 64

    def _gains(self, state: State) -> Floats:
        """Chance that each place of a block is emitted, (G, ``longest``)."""
        raise NotImplementedError

    def begin(self, streams: int, batch: int, depth: int) -> State:
        return {"idle": np.zeros(streams, dtype=np.int64)}

    def decide(self, waiting: Waiting, state: State) -> Decision:
        seconds = waiting.alike()[:, : self.longest + 1]
        gains = np.cumsum(self._gains(state)[:, : seconds.shape[1] - 1], axis=1)
        tokens = np.concatenate([np.ones((len(gains), 1)), 1.0 + gains], axis=1)
        best: Ints = (tokens / seconds).argmax(axis=1)
        probing = (best == 0) & (self.probe_every > 0) & (state["idle"] >= self.probe_every)
        return self.all_rows(waiting, np.where(probing, min(1, self.longest), best))

    def observe(self, state: State, happened: Happened) -> State:
        drew = (happened.decision.submitted > 0).any(axis=1)
        return state | {"idle": np.where(drew, 0, state["idle"] + 1)}


@dataclass(frozen=True)
class GoodputByPlace(_MostGoodput):
    """vLLM's K* = argmax over K of (1 + sum_{i<=K} a_i) / T(rows, K), a_i counted while serving.

    The code of its dynamic manager. a_i is the share of blocks with a place i whose place i was accepted. The
    code takes a given list of rates for so many steps, and then the counts alone, in which a place that was
    never drafted has rate 0: it could not come back to a length it has not tried. Here each place
    starts with ``prior_drafts`` blocks of rate prior^i, and a_i is no more than a_(i-1): a place beyond K is
    tried again when what is known of those before it makes it worth while.
    """

    def begin(self, streams: int, batch: int, depth: int) -> State:
        shape = (streams, self.longest)
        counts = {"accepted": np.zeros(shape), "tried": np.zeros(shape)}
        return super().begin(streams, batch, depth) | counts

    def _gains(self, state: State) -> Floats:
        prior = self.prior ** np.arange(1, self.longest + 1)
        rates = (state["accepted"] + self.prior_drafts * prior) / (state["tried"] + self.prior_drafts)
        return np.minimum.accumulate(rates, axis=1)

    def observe(self, state: State, happened: Happened) -> State:
        place = np.arange(self.longest)
        counts = {
            "accepted": state["accepted"] + (happened.accepted[..., None] > place).sum(axis=1),
            "tried": state["tried"] + (happened.decision.submitted[..., None] > place).sum(axis=1),
        }
        return super().observe(state, happened) | counts


@dataclass(frozen=True)
class GoodputByRate(_MostGoodput):
    """TurboSpec's goodput (arXiv 2406.14066): geometric tokens, 1 + a + .. + a^n, of one acceptance rate.

    The estimate is that of :class:`simspec.serving.policies.Goodput`: accepted drafts over those accepted or
    the first of their block to be refused, a cycle leaving ``remembered`` of what was counted before,
    with ``prior_drafts`` of rate .7, which TurboSpec's code starts from.
    """

    remembered: Remembered = 0.95

    def begin(self, streams: int, batch: int, depth: int) -> State:
        return super().begin(streams, batch, depth) | {
            "accepted": np.zeros(streams),
            "tried": np.zeros(streams),
        }

    def _gains(self, state: State) -> Floats:
        rate = (state["accepted"] + self.prior * self.prior_drafts) / (state["tried"] + self.prior_drafts)
        return rate[:, None] ** np.arange(1, self.longest + 1)

    def observe(self, state: State, happened: Happened) -> State:
        good = happened.accepted.sum(axis=1)
        refused = (happened.accepted < happened.decision.submitted).sum(axis=1)
        counts = {
            "accepted": self.remembered * state["accepted"] + good,
            "tried": self.remembered * state["tried"] + good + refused,
        }
        return super().observe(state, happened) | counts


@dataclass(frozen=True)
class BanditSpec(Together):
    """UCB over lengths, the reward of a cycle its tokens a second (BanditSpec, arXiv 2505.15141).

    Every arm is tried ``rounds`` times in turn, then that of greatest mean + sqrt(``spread`` ln t / pulls) is
    taken at cycle t. Tokens a second enter as they are, so how much is explored hangs on the unit of
    time: so it is in its code, whose bonus moreover is the same for all arms, divided by the pulls of all
    (here by the arm's own, as UCB has it), and whose second round leaves out the last arm. It begins
    anew with each batch unless ``lasting``.
    """

    arms: Lengths = (1, 2, 3, 4)
    rounds: Positive = 2
    spread: Factor = 6.0
    lasting: bool = False

    def __post_init__(self) -> None:
        _rising("arms", self.arms)

    def begin(self, streams: int, batch: int, depth: int) -> State:
        shape = (streams, len(self.arms))
        return {"pulls": np.zeros(shape), "mean": np.zeros(shape), "arm": np.zeros(streams, dtype=np.int64)}

    def decide(self, waiting: Waiting, state: State) -> Decision:
        if not self.lasting:
            anew = np.any(waiting.fresh, axis=1, keepdims=True)
            state["pulls"] = np.where(anew, 0.0, state["pulls"])
            state["mean"] = np.where(anew, 0.0, state["mean"])
        pulls = state["pulls"]
        done = pulls.sum(axis=1)
        bonus = np.sqrt(self.spread * np.log(done + 1.0)[:, None] / np.maximum(pulls, 1.0))
        # In turn: the first of those that were tried least.
        first = done < self.rounds * len(self.arms)
        arm = np.where(first, pulls.argmin(axis=1), (state["mean"] + bonus).argmax(axis=1))
        state["arm"] = arm
        return self.all_rows(waiting, np.asarray(self.arms)[arm])

    def observe(self, state: State, happened: Happened) -> State:
        taken = np.equal.outer(state["arm"], np.arange(len(self.arms))).astype(np.float64)
        reward = (happened.emitted.sum(axis=1) / happened.seconds)[:, None]
        pulls = state["pulls"] + taken
        mean = state["mean"] + taken * (reward - state["mean"]) / np.maximum(pulls, 1.0)
        return {"pulls": pulls, "mean": mean, "arm": state["arm"]}
