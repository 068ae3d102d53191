"""Ours: draft and submit what raises tokens per second in the long run (claim L17).

When cycles differ, the best ratio of each cycle by itself is not the best overall. What is best overall is
argmax E[tokens] - lambda T, lambda the long-run tokens per second (renewal reward), and the running figure
stands in for it. No number in it was fitted; how it explores was settled on ``traces/smollm2-cpu``, so what
it does there flatters it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from simspec.speculation.calibrating import KNOTS, Calibration, add, between_knots, reached
from simspec.speculation.joint import allocate
from simspec.speculation.learned_times import LearnedTimes
from simspec.speculation.lengths import Decision
from simspec.speculation.planning import Happened, State, Waiting

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Verify = Callable[[Ints, Ints], Floats]
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

    Who never submits learns nothing, so it starts out hopeful (a first token is accepted) and, after
    submitting nothing for 1, 2, 4, .. cycles, tries the least length that would pay if, at each place, a few
    more tokens had been accepted than were (1 and the logarithm of the idle cycles): rarer with each probe
    in a row, and not at all where even so much luck would not pay. What the drafter has to read before it
    can draft again counts.

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
        follow = np.tile(np.append(KNOTS, 1.0), (streams, 1))
        state: State = {
            "tokens": np.zeros(streams),
            "foreseen": np.zeros(streams),
            "rate": np.zeros(streams),
            "place_good": np.zeros((streams, depth)),
            "place_tried": np.zeros((streams, depth)),
            # One made-up observation each: a token is followed by its like.
            "after_good": follow,
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
        rows = waiting.running.sum(axis=1)
        depth = waiting.confidence.shape[2]
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
        spent = whole + np.where(n > 0, np.broadcast_to(known.behind, rows.shape)[:, None], 0.0)
        drafted = np.zeros(len(rows), dtype=np.int64)
        some = np.flatnonzero(waiting.limit.any(axis=1))  # look-ups often find nothing
        drafted[some] = self._drafted(
            waiting.confidence[some],
            waiting.limit[some],
            lambda which, deep: self._survival(waiting, state, some[which], deep),
            np.clip(state["after_good"][some] / state["after_tried"][some], 0.0, 1.0),
            rows[some],
            spent[some],
            rate[some],
            waiting.overhead,
        )
        submitted = np.zeros(waiting.limit.shape, dtype=np.int64)
        some = np.flatnonzero(drafted)
        if len(some):
            deep = drafted[some].max()
            inside = np.arange(deep) < drafted[some, None, None]
            submitted[some] = allocate(
                np.where(inside, self._survival(waiting, state, some, deep), 0.0),
                _for_some(known.verify, some, len(rows)),
                rows[some],
                rate[some] if self.objective == "long-run" else None,
                (spent - verify)[some, drafted[some]] + waiting.overhead,
            )
        probe = ~submitted.any(axis=1) & (state["idle"] >= 1 << np.minimum(state["probes"], 40))
        # The longer nothing was submitted, the more acceptances are imagined on top of those that were seen.
        luck = 1.0 + np.log2(1.0 + state["idle"])[:, None]
        hoped = np.cumprod((state["place_good"] + luck) / (state["place_tried"] + luck), axis=1)
        gain = rows[:, None] * np.cumsum(hoped, axis=1)
        hope = np.pad(gain > rate[:, None] * (spent[:, 1:] - spent[:, :1]), ((0, 0), (1, 0))).argmax(axis=1)
        drafted = np.where(probe, hope, drafted)
        if self.times:
            drafted = self.times.explored(_part(state, "times"), drafted)
        handed = np.minimum(drafted[:, None], waiting.limit)
        submitted = np.where(probe[:, None], handed, submitted)
        if self.times:
            submitted = self.times.handed(_part(state, "times"), submitted, drafted, waiting.limit)
        return Decision(handed, submitted)

    def _chances(self, state: State, stream: Ints, place: Ints, confidence: Floats) -> Floats:
        """What confidences are taken for; all of one shape, or broadcast to it."""
        if self.calibration is None:
            return confidence
        return self.calibration.chances({"maps": state["calibration.maps"]}, stream, place, confidence)

    def _survival(self, waiting: Waiting, state: State, some: Ints, deep: int) -> Floats:
        """Chance that a token and all before it are accepted, for some streams and the first places."""
        confidence = waiting.confidence[some, :, :deep]
        chance = self._chances(state, some[:, None, None], np.arange(deep), confidence)
        return np.asarray(np.cumprod(chance, axis=2), dtype=np.float64)

    def _drafted(
        self,
        confidence: Floats,
        limit: Ints,
        survival: Callable[[Ints, int], Floats],
        follow: Floats,
        rows: Ints,
        whole: Floats,
        rate: Floats,
        overhead: float,
    ) -> Ints:
        """Tokens that every row drafts, (G,): the first n after which no number of further ones pays.

        ``survival`` is of some of these streams and so many places; ``follow`` the acceptance of tokens that
        came after one of each knot; ``whole`` the seconds of drafting and verifying n = 0..D tokens in all
        rows.
        """
        streams, _, depth = confidence.shape
        long_run = self.objective == "long-run"
        # Nothing was seen before the first place, where most streams end: no survival is needed for it.
        last = np.broadcast_to(follow[:, -1:], (streams, depth))
        gained = (limit > 0).sum(axis=1)[:, None] * np.cumsum(np.cumprod(last, axis=1), axis=1)
        price = rate if long_run else rows / (whole[:, 0] + overhead)
        on = np.flatnonzero((gained - price[:, None] * (whole[:, 1:] - whole[:, :1]) > 0).any(axis=1))
        found = np.zeros(streams, dtype=np.int64)
        if not len(on):
            return found
        lives, follow, whole = survival(on, depth - 1), follow[on], whole[on]
        # Further tokens expected of a row of survival 1, by its last token's knot, (k, G, knots).
        power = np.cumprod(np.broadcast_to(follow, (depth, *follow.shape)), axis=0)
        further = np.cumsum(power, axis=0, out=power)
        # Survival of all rows by that knot, before each place, (G, D, knots); none comes before the first.
        mass = np.zeros((len(on), depth, follow.shape[1]))
        can = np.arange(depth) < limit[on][..., None]
        mass[:, 0, -1] = can[..., 0].sum(axis=1)
        if depth > 1:
            low, share = between_knots(confidence[on, :, :-1])
            weight = np.where(can[..., 1:], lives, 0.0)
            place = np.arange(mass.size).reshape(mass.shape)[:, 1:, 0]  # that of the first knot
            cell = (low + place[:, None]).ravel()
            add(mass, cell, (weight * (1.0 - share)).ravel())
            add(mass, cell + 1, (weight * share).ravel())
        gained = mass @ further.transpose(1, 2, 0)  # (G, D, k)
        # Seconds more for k further tokens after n.
        ahead = np.add.outer(np.arange(depth), np.arange(1, depth + 1))
        more = whole.take(np.minimum(ahead, depth), axis=1) - whole[:, :depth, None]
        if long_run:
            each = rate[on, None, None]
        else:
            sure = rows[on, None] + np.pad(np.cumsum(lives.sum(axis=1), axis=1), ((0, 0), (1, 0)))
            each = (sure / (whole[:, :depth] + overhead))[..., None]
        pays = ((gained - each * more > 0) & (ahead <= depth)).any(axis=2)
        found[on] = np.where(pays.all(axis=1), depth, (~pays).argmax(axis=1))
        return found

    def _told(self, state: State, happened: Happened) -> tuple[Ints, Ints, Ints, Floats]:
        """Stream, row and place of tokens that something is known of, and their acceptance.

        Of the first one that was drafted and not submitted, where all before it was accepted, that is the
        chance it was given. Without it only tokens worth submitting would count, and all seem as good.
        """
        g, b, j, right = reached(happened)
        kept = happened.decision.submitted
        some, row = np.nonzero((happened.decision.drafted > kept) & (happened.accepted == kept))
        if not len(some):
            return g, b, j, right.astype(np.float64)
        place = kept[some, row]
        chance = self._chances(state, some, place, happened.waiting.confidence[some, row, place])
        known = np.concatenate([right.astype(np.float64), chance])
        return np.append(g, some), np.append(b, row), np.append(j, place), known

    def observe(self, state: State, happened: Happened) -> State:
        g, b, j, right = self._told(state, happened)
        good, tried, depth = state["after_good"], state["after_tried"], state["place_tried"].shape[1]
        knots = good.shape[1]
        if len(g):
            low, share = between_knots(happened.waiting.confidence[g, b, np.maximum(j - 1, 0)])
            low, share = np.where(j == 0, knots - 1, low), np.where(j == 0, 0.0, share)
            for offset, weight in ((0, 1.0 - share), (1, share)):
                cell = g * knots + np.minimum(low + offset, knots - 1)
                add(tried, cell, weight)
                add(good, cell, weight * right)
            add(state["place_tried"], g * depth + j, np.ones(len(g)))
            add(state["place_good"], g * depth + j, right)
        # A probe is the only submission after idle cycles; submitting in a row ends the waiting.
        drew = happened.decision.submitted.any(axis=1)
        moved: State = {
            "tokens": state["tokens"] + happened.emitted.sum(axis=1),
            "foreseen": state["foreseen"] + state["rate"] * happened.seconds,
            "rate": state["rate"],
            "place_good": state["place_good"],
            "place_tried": state["place_tried"],
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


def _for_some(verify: Verify, some: Ints, streams: int) -> Verify:
    """The same prices, asked for and given for some of the streams alone."""

    def priced(widest: Ints, submitted: Ints) -> Floats:
        asked = np.zeros((2, streams, widest.shape[1]), dtype=np.int64)
        asked[:, some] = widest, submitted
        return verify(*asked)[some]

    return verify if len(some) == streams else priced


def _part(state: State, name: str) -> State:
    return {k.removeprefix(f"{name}."): v for k, v in state.items() if k.startswith(f"{name}.")}
