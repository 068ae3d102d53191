"""Routers that predict: SpecRouter's re-picking, Polybasic's insertion, CAS-Spec's choice of a drafter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.errors import BadInput
from simspec.speculation.predicting import Curves, alike, catching_up, predict, tokens_a_cycle
from simspec.speculation.routing import Clock, Evidence, Ints, Pool, Seen, State, View
from simspec.theory.acceptance import emitted_tokens

Floats = NDArray[np.float64]

# Cycles between two choices at most.
_NEVER = 1_000_000


@dataclass(frozen=True)
class _Learning:
    """Acceptance of each ordered pair of models, moved towards what was seen.

    Attributes:
        prior: acceptance before the first cycle, one number for every ordered pair (see
            :meth:`~simspec.speculation.routing.Pool.pair`), or one for all.
        weight: how much one token of each request's text moves it (an exponential moving average
            along the text); a pair that was not looked at stays as it was.
        evidence: where acceptance is learned from.
    """

    prior: tuple[float, ...] = (0.5,)
    weight: float = 0.02
    evidence: Evidence = "realised"

    def __post_init__(self) -> None:
        if not 0.0 <= self.weight <= 1.0:
            raise BadInput(f"weight of the moving average is {self.weight}", allowed="0 to 1")

    def begin(self, pool: Pool, deciders: int) -> State:
        pairs = len(pool.names) ** 2
        return {"alpha": np.broadcast_to(np.asarray(self.prior), (deciders, pairs)).copy()}

    def observe(self, pool: Pool, state: State, seen: Seen) -> State:
        alpha, looked = state["alpha"], seen.tried > 0
        rate = np.divide(seen.good, seen.tried, out=alpha.copy(), where=looked)
        share = 1.0 - (1.0 - self.weight) ** (seen.tried / np.maximum(seen.rows, 1)[:, None])
        return {**state, "alpha": alpha + share * (np.clip(rate, 0.0, 1.0) - alpha)}


@dataclass(frozen=True)
class SpecRouter(_Learning):
    """The candidate of least predicted time a token, looked for again every ``every`` cycles.

    SpecRouter's scheduler (arXiv 2505.07680) with Eq. 7 read as ``variant``. Seconds come from the
    profile at the batch's present size and context, or are learned.

    Attributes:
        horizon: cycles that what a lagging model must catch up on is spread over, by the profile; 0 leaves
            it out, as the paper does.
        margin: how much better, as a share, another candidate must be to be switched to.
        latency_weight: how much one forward moves its model's T_i, an exponential moving average of the
            forwards that the batch saw of it in any role and at any width, as the paper prints T_i. The
            forwards of one cycle count as alike. Until its first forward a model has the profile's time of
            one token, and then that forward's. 0: the profile throughout.
    """

    variant: str = "reach"
    every: int = 1
    horizon: int = 0
    margin: float = 0.0
    latency_weight: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.latency_weight <= 1.0:
            raise BadInput(f"latency_weight is {self.latency_weight}", allowed="0 to 1")
        for name, value, least in (("every", self.every, 1), ("horizon", self.horizon, 0)):
            if not least <= value <= _NEVER:
                raise BadInput(f"{name} is {value}", allowed=f"{least} to {_NEVER}")

    def begin(self, pool: Pool, deciders: int) -> State:
        state = super().begin(pool, deciders)
        if self.latency_weight:
            state["took"] = np.full((deciders, len(pool.names)), np.nan)
        return state

    def observe(self, pool: Pool, state: State, seen: Seen) -> State:
        after = super().observe(pool, state, seen)
        if self.latency_weight:
            assert seen.clock is not None
            after["took"] = _moved(state["took"], seen.clock, self.latency_weight)
        return after

    def scores(self, pool: Pool, state: State, view: View) -> Floats:
        """Predicted seconds a token of each candidate for one request's text, (D, K)."""
        found = predict(pool, self.variant, state["alpha"], view, state.get("took"))
        if self.horizon:
            found = found + catching_up(pool, view) / (self.horizon * tokens_a_cycle(pool, state["alpha"]))
        return found

    def choose(self, pool: Pool, state: State, view: View) -> Ints:
        if view.cycle % self.every:
            return view.last
        score = view.among(self.scores(pool, state, view), np.inf)
        best = score.argmin(axis=1)
        if self.margin and view.cycle:
            rows = np.arange(len(best))
            stay = score[rows, best] > (1.0 - self.margin) * score[rows, view.last]
            best = np.where(stay, view.last, best)
        return np.asarray(best, dtype=np.int64)


def _moved(took: Floats, clock: Clock, weight: float) -> Floats:
    """Seconds a forward of each model after a cycle, (D, models); NaN where none was ever seen."""
    ran = clock.forwards > 0
    mean = np.divide(clock.seconds, clock.forwards, out=took.copy(), where=ran)
    before = np.where(np.isnan(took), mean, took)
    return np.asarray(before + (1.0 - (1.0 - weight) ** clock.forwards) * (mean - before))


@dataclass(frozen=True)
class PolybasicInsertion(_Learning):
    """The best pair by Polybasic's Eq. 3, and a model put between where its Thm 3.2 says so.

    arXiv 2510.26527. L_i is the expected block of :func:`~simspec.theory.acceptance.emitted_tokens`,
    own token included; of several models the one that Eq. 3 likes most is inserted. The paper's stages
    collect tokens as nested chains do; here the inserted model works under funnel-replace, which is
    what a record can replay.
    """

    every: int = 1

    def choose(self, pool: Pool, state: State, view: View) -> Ints:
        if view.cycle % self.every:
            return view.last
        curves, names = Curves(pool, view), len(pool.names)
        target, alphas = pool.names.index(pool.target), state["alpha"].T
        time = predict(pool, "reach-wide", state["alpha"], view).T
        pairs = np.array([len(c.levels) == 2 or c.drafter is None for c, _ in pool.candidates])
        # Two models: Eq. 3 is the reading of Eq. 7 with a forward as wide as the block.
        best = view.among(np.where(pairs, time.T, np.inf), np.inf).argmin(axis=1)
        taken, least = np.full_like(best, -1), np.zeros(len(best))
        number = {(int(pool.drafter[k]), pool.candidates[k][1]): k for k in np.flatnonzero(pairs)}
        for group in alike(pool):
            if not group.replace:
                continue
            drafter, middle = group.levels[:2]
            n = group.length
            wide = np.array(n + 1.0)
            above = curves.at(np.full_like(drafter, target), wide)
            new, below = curves.at(middle, wide), curves.drafted_token(drafter, n)
            before = emitted_tokens(alphas[drafter * names + target], n)
            made = emitted_tokens(alphas[drafter * names + middle], n)
            after = emitted_tokens(alphas[middle * names + target], made)
            saved = above * (1 / before - 1 / after) + n * below * (1 / before - 1 / made) - new / made
            advised = published(above, new, below, n, before, after, made)
            for c, k in enumerate(group.which):
                here = best == number.get((int(drafter[c]), n), -1)
                if view.offered is not None:
                    here &= view.offered[:, k]
                if not (here & advised[c]).any():
                    continue
                better = here & advised[c] & ((saved[c] > least) | (taken < 0))
                taken, least = np.where(better, k, taken), np.where(better, saved[c], least)
        return np.asarray(np.where(taken >= 0, taken, best), dtype=np.int64)


def published(
    above: Floats, new: Floats, below: Floats, beta: float, before: Floats, after: Floats, made: Floats
) -> NDArray[np.bool_]:
    """Thm 3.2, as :class:`simspec.theory.third_level.Insertion` has it for one case; both sides multiplied
    out, so that a drafter that costs nothing divides nothing."""
    first = new < above * made * (1 / before - 1 / after)
    second = new < below * beta * (made / before - 1)
    return np.asarray(first | second)


@dataclass(frozen=True)
class DyTC:
    """CAS-Spec's online choice of drafter and length (arXiv 2510.26843), without its trees.

    alpha = 0.7 old + 0.3 (mean over the last ``window`` cycles of "the first token was accepted"), and
    the pair of most E(alpha, k) / (k c + 1), c the drafter's forward over the target's. Its
    horizontal cascades (a second drafter goes on where the first stopped) are not in a record.

    Attributes:
        prior: alpha of each drafter before the first cycle, by model number, or one for all.
    """

    prior: tuple[float, ...] = (0.5,)
    old: float = 0.7
    window: int = 20
    evidence: Evidence = "realised"

    def begin(self, pool: Pool, deciders: int) -> State:
        models = len(pool.names)
        return {
            "alpha": np.broadcast_to(np.asarray(self.prior), (deciders, models)).copy(),
            "right": np.full((deciders, models, self.window), np.nan),
            "uses": np.zeros((deciders, models), dtype=np.int64),
        }

    def choose(self, pool: Pool, state: State, view: View) -> Ints:
        curves, one = Curves(pool, view), np.ones((1, 1))
        target = curves.at(np.array([pool.names.index(pool.target)]), one)
        gain = np.full((len(pool.candidates), len(view.rows)), -np.inf)
        if pool.plain is not None:
            gain[pool.plain] = 1.0
        for group in alike(pool):
            if len(group.levels) == 2:
                n, drafter = group.length, group.levels[0]
                ratio = curves.drafted_token(drafter, n) / target
                gain[group.which] = emitted_tokens(state["alpha"].T[drafter], n) / (n * ratio + 1.0)
        return np.asarray(view.among(gain.T, -np.inf).argmax(axis=1), dtype=np.int64)

    def observe(self, pool: Pool, state: State, seen: Seen) -> State:
        model = pool.drafter[seen.chosen]
        rows = np.flatnonzero((model >= 0) & (seen.first[:, 1] > 0))
        m = model[rows]
        right, uses, alpha = (state[name].copy() for name in ("right", "uses", "alpha"))
        right[rows, m, uses[rows, m] % self.window] = seen.first[rows, 0] / seen.first[rows, 1]
        uses[rows, m] += 1
        if len(rows):
            recent = np.nanmean(right[rows, m], axis=1)
            alpha[rows, m] = self.old * alpha[rows, m] + (1.0 - self.old) * recent
        return {"alpha": alpha, "right": right, "uses": uses}
