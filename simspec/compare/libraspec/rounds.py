"""LibraSpec's statements (arXiv 2608.08721) round by round: which of them fail on what was recorded.

The bulk form, in floats, of :mod:`simspec.theory.lengths` and :mod:`simspec.theory.libraspec`, whose letters
are used here: p_k, S_j, tau_d with the bonus token, T(d), eta_d = tau_d / T(d), and G_i(d) = sum_{j=i..d}
prod_{k=i..j} p_k. Lengths are 1 .. reach, as in the paper, unless said otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.speculation.lengths import Floats, Ints, LibraSpec, View, expected_tokens
from simspec.speculation.lengths_libraspec import TheoremLibraSpec

Bools = NDArray[np.bool_]

# Values nearer to each other than this share of them count as equal.
CLOSE = 1e-12


@dataclass(frozen=True)
class Rounds:
    """N rounds of a drafter whose chances are taken as known.

    Attributes:
        chances: p_1 .. p_D, 0 past ``reach``, (N, D).
        seconds: T(0) .. T(D), (N, D + 1).
        reach: the longest draft that is possible, 1 .. D, (N,).
    """

    chances: Floats
    seconds: Floats
    reach: Ints

    @cached_property
    def within(self) -> Bools:
        """Whether a length 0 .. D is possible, (N, D + 1)."""
        found: Bools = np.arange(self.seconds.shape[1]) <= self.reach[:, None]
        return found

    @cached_property
    def rates(self) -> Floats:
        """eta_0 .. eta_D, -inf past reach, (N, D + 1)."""
        return np.where(self.within, expected_tokens(self.chances) / self.seconds, -np.inf)

    def best(self, shortest: int = 0) -> Ints:
        """The first of the lengths from ``shortest`` on whose eta is greatest, (N,)."""
        found: Ints = self.rates[:, shortest:].argmax(axis=1) + shortest
        return found

    def rate(self, length: Ints) -> Floats:
        """eta of one length a round; below 1 or past reach that of the nearest, (N,)."""
        inside = np.clip(length, 1, self.reach)
        return np.take_along_axis(self.rates, inside[:, None], axis=1)[:, 0]

    def below_best(self, length: Ints) -> Bools:
        """Whether a length's eta is less than the greatest, (N,)."""
        found: Bools = self.rate(length) < self.rates[:, 1:].max(axis=1) * (1 - CLOSE)
        return found

    @cached_property
    def gains(self) -> Floats:
        """G_i(d) at [:, i - 1, d - 1], 0 where d < i, (N, D, D)."""
        rounds, depth = self.chances.shape
        found = np.zeros((rounds, depth, depth))
        for i in range(depth):
            found[:, i, i:] = np.cumsum(np.cumprod(self.chances[:, i:], axis=1), axis=1)
        return found

    @cached_property
    def own_limits(self) -> Ints:
        """min over i = 1..d of Theorem 3.4's eps_i, each place's own cost in it, for d = 1 .. D, (N, D).

        eps_i is the larger of i - 1 and the greatest d' <= reach with T(d') - T(i) < (T(i) / tau_i) G_i(d').
        """
        time = self.seconds[:, 1:]
        worth = time / expected_tokens(self.chances)[:, 1:]
        repaid = time[:, None, :] - time[:, :, None] < worth[:, :, None] * self.gains
        repaid &= _upper(time.shape[1]) & self.within[:, None, 1:]
        length = np.arange(1, time.shape[1] + 1)
        last = np.where(repaid, length, 0).max(axis=2)
        return np.minimum.accumulate(np.maximum(last, length - 1), axis=1)

    def pass_limits(self, alpha: float) -> Ints:
        """Algorithm 1's e at present length d: min over i = 1..d of floor(alpha G_i(d) + i), (N, D)."""
        place = np.arange(1, self.chances.shape[1] + 1)[:, None]
        floors = np.floor(alpha * self.gains + place)
        found: Ints = np.where(_upper(len(place)), floors, np.inf).min(axis=1).astype(np.int64)
        return found


def _upper(depth: int) -> Bools:
    """Whether i <= d, (D, D)."""
    return np.triu(np.ones((depth, depth), dtype=bool))


def passes(limits: Ints, start: Ints, longest: Ints) -> Ints:
    """Lengths in Algorithm 1's loop, from ``start`` on; the last is repeated, (N, passes + 1).

    While d < ``longest``: e = ``limits`` at d. If e <= d, it ends with e; otherwise it goes on from d = e.
    """
    d, path = start.copy(), [start]
    going = np.flatnonzero(d < longest)
    while len(going):
        before = d[going]
        after = limits[going, np.maximum(before, 1) - 1]
        d = d.copy()
        d[going] = after
        path.append(d)
        going = going[(after > before) & (after < longest[going])]
    return np.stack(path, axis=1)


def affine(rounds: Rounds) -> tuple[Rounds, Floats]:
    """The same with T(d) = T0 + c d fitted by least squares to d = 1 .. D of each round; c, (N,).

    A plain step, T(0), stays what it was: it pays for no draft.
    """
    d = np.arange(1, rounds.seconds.shape[1])
    time = rounds.seconds[:, 1:]
    away = d - d.mean()
    slope = (time * away).sum(axis=1) / (away**2).sum() if len(d) > 1 else np.zeros(len(time))
    line = time.mean(axis=1)[:, None] + slope[:, None] * away
    return replace(rounds, seconds=np.concatenate([rounds.seconds[:, :1], line], axis=1)), slope


@dataclass(frozen=True)
class Verdict:
    """Of each round whether a statement says something of it and whether that is false, (N,) each."""

    applies: Bools
    fails: Bools


def statements(
    rounds: Rounds, slope: Floats, alpha: float, block: int, longest: int, *, first: int = 1
) -> dict[str, Verdict]:
    """Every statement on optimal lengths, the chances granted, both of the theory and of Algorithm 1.

    Args:
        slope: c, what one more place costs where a statement needs one number, (N,).
        alpha, block, longest: Algorithm 1's constants; reach is at most ``longest``, a block at most D.
        first: the other block size that Algorithm 1 is begun with.

    Returns:
        ``3.2-printed``: for every 1 <= d < d', G_d(d') / (T(d') - T(d)) > eta_d iff eta_d' > eta_d.
        ``3.4-extend``: wherever min eps_i > d it raises eta. ``3.4-truncate``: wherever it is < d.
        ``3.5-one-peak``: eta, once fallen, never rises. ``3.5-marginal``: eta rises from d to d + 1 iff
        S_{d+1} > c eta_d.
        ``3.6-iteration``: moves to min eps_i from ``block`` on end at the greatest eta. ``3.6-steps``:
        steps of one, taken where they raise eta, do.
        ``first-stop``: from 0 on, the first length that the next does not beat is best (CaDDTree's stop).
        ``1-optimal``, ``1-passes``, ``1-within``, ``1-block``, ``1-theorem``: Algorithm 1 ends at the
        greatest eta; each pass that moves raises eta; it ends within ``longest``; begun with ``first`` it
        ends alike; the theorem's eps with the same alpha end alike.
    """
    rates, reach = rounds.rates, rounds.reach
    every = np.ones(len(reach), dtype=bool)
    start = np.minimum(block, reach)
    found = {"3.2-printed": Verdict(reach > 1, _printed_gain_misleads(rounds))}

    limits = np.clip(rounds.own_limits, 1, reach[:, None])
    length = np.arange(1, limits.shape[1] + 1)
    inside = rounds.within[:, 1:]
    raised = np.take_along_axis(rates[:, 1:], limits - 1, axis=1) > rates[:, 1:] * (1 + CLOSE)
    for name, moved in (("extend", limits > length), ("truncate", limits < length)):
        moved &= inside
        found[f"3.4-{name}"] = Verdict(_some(moved), _some(moved & ~raised))

    here, then = rates[:, 1:-1], rates[:, 2:]
    pair = rounds.within[:, 2:]
    rises, falls = pair & (then > here * (1 + CLOSE)), pair & (then < here * (1 - CLOSE))
    fallen = np.cumsum(falls, axis=1) > 0
    found["3.5-one-peak"] = Verdict(every, _some(rises & fallen))
    survival, asked = np.cumprod(rounds.chances, axis=1)[:, 1:], slope[:, None] * np.maximum(here, 0.0)
    wrong = (rises & (survival < asked * (1 - 1e-9))) | (falls & (survival > asked * (1 + 1e-9)))
    found["3.5-marginal"] = Verdict(reach > 1, _some(wrong))

    ended = passes(limits, start, reach)[:, -1]
    found["3.6-iteration"] = Verdict(every, rounds.below_best(ended))
    found["3.6-steps"] = Verdict(every, rounds.below_best(_climbed(rates, start)))
    stops = np.pad(rates[:, 1:] <= rates[:, :-1], ((0, 0), (0, 1)), constant_values=True)
    at_stop = np.take_along_axis(rates, stops.argmax(axis=1)[:, None], axis=1)[:, 0]
    found["first-stop"] = Verdict(every, at_stop < rates.max(axis=1) * (1 - CLOSE))
    return found | _of_algorithm(rounds, alpha, block, longest, first)


def _printed_gain_misleads(rounds: Rounds) -> Bools:
    time, rate = rounds.seconds[:, 1:], np.maximum(rounds.rates[:, 1:], 0.0)
    said = rounds.gains > (time[:, None, :] - time[:, :, None]) * rate[:, :, None]
    truly = rate[:, None, :] > rate[:, :, None] * (1 + CLOSE)
    later = np.triu(np.ones(said.shape[1:], dtype=bool), k=1)
    wrong = np.zeros(said.shape, dtype=np.bool_)
    np.not_equal(said, truly, out=wrong)
    wrong &= later & rounds.within[:, None, 1:]
    return _some(wrong.reshape(len(wrong), -1))


def _some(flags: NDArray[Any]) -> Bools:
    """Whether there is any in a round, (N, K) to (N,)."""
    return np.asarray(flags.any(axis=1), dtype=np.bool_)


def _climbed(rates: Floats, start: Ints) -> Ints:
    """Where steps of one end that are taken while they raise eta; the longer is tried first."""
    d, row = start.copy(), np.arange(len(start))
    padded = np.concatenate([rates, np.full((len(rates), 1), -np.inf)], axis=1)
    padded[:, 0] = -np.inf
    for move in (1, -1):
        going = row
        while len(going):
            going = going[padded[going, d[going] + move] > padded[going, d[going]] * (1 + CLOSE)]
            d[going] += move
    return d


def _of_algorithm(rounds: Rounds, alpha: float, block: int, longest: int, first: int) -> dict[str, Verdict]:
    view, state = View(rounds.chances, rounds.reach, rounds.seconds), np.zeros(len(rounds.reach))
    printed, other, theorem = (
        rule.decide(view, state).submitted
        for rule in (
            LibraSpec(alpha, block, longest),
            LibraSpec(alpha, first, longest),
            TheoremLibraSpec(alpha, block, longest),
        )
    )
    # A text's end cuts all of them.
    cut = np.minimum(printed, rounds.reach)
    moved = np.zeros(len(cut), dtype=bool)
    lowered = moved.copy()
    begin, most = np.full(len(cut), block), np.full(len(cut), longest)
    path = np.clip(passes(rounds.pass_limits(alpha), begin, most), 1, rounds.reach[:, None])
    for before, after in pairwise(path.T):
        moved |= before != after
        lowered |= (before != after) & (rounds.rate(after) <= rounds.rate(before) * (1 + CLOSE))
    every = np.ones(len(cut), dtype=bool)
    return {
        "1-optimal": Verdict(every, rounds.below_best(cut)),
        "1-passes": Verdict(moved, lowered),
        "1-within": Verdict(every, printed > longest),
        "1-block": Verdict(every, cut != np.minimum(other, rounds.reach)),
        "1-theorem": Verdict(every, cut != np.minimum(theorem, rounds.reach)),
    }
