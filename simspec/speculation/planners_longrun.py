"""Ours: draft and submit what raises tokens per second in the long run (claim L17).

When cycles differ, the best ratio of each cycle by itself is not the best overall. What is best overall is
argmax E[tokens] - lambda T, lambda the long-run tokens per second (renewal reward), and the running figure
stands in for it. Nothing is tuned.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from simspec.speculation.calibrating import KNOTS, Calibration, between_knots, reached
from simspec.speculation.joint import allocate
from simspec.speculation.learned_times import LearnedTimes
from simspec.speculation.lengths import Decision
from simspec.speculation.planning import Happened, State, Waiting

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Objective = Literal["long-run", "own-ratio"]


@dataclass(frozen=True)
class LongRun:
    """All rows of a batch draft while it pays, then submit what pays.

    Whether to go on drafting is settled before the next token is seen: from the survival of what is drafted,
    and from the mean acceptance of tokens that came after one of such a confidence, as if that went on.
    All numbers of further tokens are weighed, since costs rise in stairs. What is drafted is paid for;
    of it, tokens are submitted by descending survival as :func:`~simspec.speculation.joint.allocate` says.

    A second is worth what the best static length would emit in one, by the acceptance of each place so far
    and with the rows that run now, times what this rule has emitted over that (at least 1). So its worth
    follows the number of rows at once; where that stays it is the running tokens per second.

    Who never drafts learns nothing, so it starts out hopeful (a first token is accepted) and, after
    drafting nothing for 1, 2, 4, .. cycles, drafts the least that could pay if all of it were accepted:
    rarer with each probe in a row, so that what probes cost grows with the logarithm of the cycles.

    Attributes:
        objective: ``long-run``, or ``own-ratio``: each cycle's own tokens per second, for comparison.
        calibration: how confidence becomes a chance; None takes it as it is.
        times: how costs are learned from step times; None takes the profile's.
    """

    objective: Objective = "long-run"
    calibration: Calibration | None = field(default_factory=Calibration)
    times: LearnedTimes | None = None

    # What is submitted is settled after all drafted confidences were seen.
    sampling_safe: ClassVar[bool] = False

    def begin(self, streams: int, batch: int, depth: int) -> State:
        follow = np.broadcast_to(np.append(KNOTS, 1.0), (streams, len(KNOTS) + 1))
        state: State = {
            "tokens": np.zeros(streams),
            "foreseen": np.zeros(streams),
            "rate": np.zeros(streams),
            "place_good": np.zeros((streams, depth)),
            "place_tried": np.zeros((streams, depth)),
            # One made-up observation each: a token is followed by its like.
            "after_good": follow.copy(),
            "after_tried": np.ones(follow.shape),
            "idle": np.zeros(streams, dtype=np.int64),
            "probes": np.zeros(streams, dtype=np.int64),
        }
        if self.calibration:
            state |= {f"calibration.{k}": v for k, v in self.calibration.begin(streams).items()}
        if self.times:
            state |= {f"times.{k}": v for k, v in self.times.begin(streams).items()}
        return state

    def decide(self, waiting: Waiting, state: State) -> Decision:
        known = waiting
        if self.times:
            known = self.times.priced(_part(state, "times"), waiting)
        chance = waiting.confidence
        if self.calibration:
            chance = self.calibration.chances(_part(state, "calibration"), chance)
        survival = np.asarray(np.cumprod(chance, axis=2), dtype=np.float64)
        rows = waiting.running.sum(axis=1)
        depth = survival.shape[2]
        n = np.arange(depth + 1)
        draft = known.draft(n)
        verify = known.verify(np.broadcast_to(n, draft.shape), n * rows[:, None])
        # No place is taken to be accepted before it was seen to be.
        usual = np.cumprod(state["place_good"] / (state["place_tried"] + 1.0), axis=1)
        emitted = rows[:, None] * np.concatenate(
            [np.ones((len(rows), 1)), 1.0 + np.cumsum(usual, axis=1)], axis=1
        )
        static = (emitted / (draft + verify + waiting.overhead)).max(axis=1)
        state["rate"] = static
        rate = static * np.maximum((state["tokens"] + rows) / (state["foreseen"] + rows), 1.0)
        whole = draft + verify
        follow = np.clip(state["after_good"] / state["after_tried"], 0.0, 1.0)
        drafted = np.zeros(len(rows), dtype=np.int64)
        some = np.any(waiting.limit, axis=1)  # look-ups often find nothing
        drafted[some] = self._drafted(
            waiting.confidence[some],
            waiting.limit[some],
            survival[some],
            follow[some],
            rows[some],
            whole[some],
            rate[some],
            waiting.overhead,
        )
        probe = (drafted == 0) & (state["idle"] >= 1 << np.minimum(state["probes"], 40))
        pays = (n * rows[:, None] > rate[:, None] * (whole - whole[:, :1])) & (n > 0)
        hope = pays.argmax(axis=1)  # 0 where even that could not pay
        drafted = np.where(probe, hope, drafted)
        if self.times:
            drafted = self.times.explored(_part(state, "times"), drafted)
        inside = np.arange(depth) < drafted[:, None, None]
        paid = np.take_along_axis(draft, drafted[:, None], axis=1)[:, 0] + waiting.overhead
        submitted = allocate(
            np.where(inside, survival, 0.0),
            known.verify,
            rows,
            rate if self.objective == "long-run" else None,
            paid,
        )
        submitted = np.where(probe[:, None], np.minimum(drafted[:, None], waiting.limit), submitted)
        if self.times:
            submitted = self.times.handed(_part(state, "times"), submitted, drafted, waiting.limit)
        return Decision(np.minimum(drafted[:, None], waiting.limit), submitted)

    def _drafted(
        self,
        confidence: Floats,
        limit: Ints,
        survival: Floats,
        follow: Floats,
        rows: Ints,
        whole: Floats,
        rate: Floats,
        overhead: float,
    ) -> Ints:
        """Tokens that every row drafts, (G,): the first n after which no number of further ones pays.

        ``follow`` is the acceptance of tokens that came after one of each knot; ``whole`` the seconds of
        drafting and verifying n = 0..D tokens in all rows.
        """
        streams, _, depth = survival.shape
        # Further tokens expected of a row of survival 1, by its last token's knot, (k, G, knots).
        further, power = np.empty((depth, *follow.shape)), follow
        further[0] = follow
        for k in range(1, depth):
            power = power * follow
            np.add(further[k - 1], power, out=further[k])
        # Survival of all rows by that knot, before each place, (G, D, knots); none comes before the first.
        mass = np.zeros((streams, depth, follow.shape[1]))
        can = np.arange(depth) < limit[..., None]
        mass[:, 0, -1] = can[..., 0].sum(axis=1)
        if depth > 1:
            low, share = between_knots(confidence[..., :-1])
            weight = np.where(can[..., 1:], survival[..., :-1], 0.0)
            place = np.arange(mass.size).reshape(mass.shape)[:, 1:, 0]  # that of the first knot
            cell = (low + place[:, None]).ravel()
            for offset, part in ((0, 1.0 - share), (1, share)):
                values = (weight * part).ravel()
                mass += np.bincount(cell + offset, weights=values, minlength=mass.size).reshape(mass.shape)
        gained = mass @ further.transpose(1, 2, 0)  # (G, D, k)
        # Seconds more for k further tokens after n.
        later = np.concatenate([whole, np.repeat(whole[:, -1:], depth - 1, axis=1)], axis=1)
        more = sliding_window_view(later[:, 1:], depth, axis=1) - whole[:, :depth, None]
        if self.objective == "own-ratio":
            sure = rows[:, None] + np.concatenate(
                [np.zeros((streams, 1)), np.cumsum(survival.sum(axis=1), axis=1)[:, :-1]], axis=1
            )
            price = (sure / (whole[:, :depth] + overhead))[..., None]
        else:
            price = rate[:, None, None]
        inside = np.add.outer(np.arange(depth), np.arange(1, depth + 1)) <= depth
        pays = ((gained - price * more > 0) & inside).any(axis=2)
        return np.asarray(np.where(pays.all(axis=1), depth, (~pays).argmax(axis=1)), dtype=np.int64)

    def observe(self, state: State, happened: Happened) -> State:
        looked, accepted = reached(happened)
        good, tried = state["after_good"], state["after_tried"]
        g, b, j = np.nonzero(looked)
        low, share = between_knots(happened.waiting.confidence[g, b, np.maximum(j - 1, 0)])
        knots = good.shape[1]
        low, share = np.where(j == 0, knots - 1, low), np.where(j == 0, 0.0, share)
        right = accepted[g, b, j]
        for offset, weight in ((0, 1.0 - share), (1, share)):
            cell = g * knots + np.minimum(low + offset, knots - 1)
            tried = tried + np.bincount(cell, weights=weight, minlength=good.size).reshape(good.shape)
            good = good + np.bincount(cell, weights=weight * right, minlength=good.size).reshape(good.shape)
        # A probe is the only drafting after idle cycles; drafting in a row ends the waiting.
        drew = happened.decision.drafted.any(axis=1)
        moved: State = {
            "tokens": state["tokens"] + happened.emitted.sum(axis=1),
            "foreseen": state["foreseen"] + state["rate"] * happened.seconds,
            "rate": state["rate"],
            "place_good": state["place_good"] + (looked & accepted).sum(axis=1),
            "place_tried": state["place_tried"] + looked.sum(axis=1),
            "after_good": good,
            "after_tried": tried,
            "idle": np.where(drew, 0, state["idle"] + 1),
            "probes": np.where(drew, np.where(state["idle"] > 0, state["probes"] + 1, 0), state["probes"]),
        }
        if self.calibration:
            inner = self.calibration.observe(_part(state, "calibration"), happened)
            moved |= {f"calibration.{k}": v for k, v in inner.items()}
        if self.times:
            learned = self.times.observe(_part(state, "times"), happened)
            moved |= {f"times.{k}": v for k, v in learned.items()}
        return moved


def _part(state: State, name: str) -> State:
    return {k.removeprefix(f"{name}."): v for k, v in state.items() if k.startswith(f"{name}.")}
