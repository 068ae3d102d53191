"""What a router expects of each candidate: a reading of Eq. 7 over all candidates and deciders at once.

The readings and what each assumes: :mod:`simspec.theory.variants`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from simspec.errors import unknown_name
from simspec.speculation.routing import Candidate, Pool, View
from simspec.theory.acceptance import emitted_tokens
from simspec.theory.variants import VARIANTS, Given, Variant

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def variant_named(name: str) -> Variant:
    """The reading of that name; :class:`~simspec.errors.BadInput` where there is none."""
    if name not in VARIANTS:
        raise unknown_name("variant of Eq. 7", name, VARIANTS)
    return VARIANTS[name]


@dataclass(frozen=True)
class Alike:
    """Candidates that a formula treats in one call: C of one draft length, depth and funnel.

    ``which`` are their numbers, (C,), ``levels`` their models' numbers, drafter first, (depth, C).
    """

    which: Ints
    length: int
    levels: Ints
    replace: bool


@lru_cache(maxsize=8)
def _alike(candidates: tuple[Candidate, ...], names: tuple[str, ...]) -> tuple[Alike, ...]:
    groups: dict[tuple[int, int, bool], list[int]] = {}
    for k, (chain, length) in enumerate(candidates):
        if chain.drafter is not None:
            replace = bool(chain.intermediates) and chain.semantics == "funnel-replace"
            groups.setdefault((length, len(chain.levels), replace), []).append(k)
    return tuple(
        Alike(
            np.array(which),
            length,
            np.array([[names.index(m) for m in candidates[k][0].levels] for k in which]).T,
            replace,
        )
        for (length, _, replace), which in groups.items()
    )


def alike(pool: Pool) -> tuple[Alike, ...]:
    """The candidates that draft, sorted into groups."""
    return _alike(pool.candidates, pool.names)


class Curves:
    """Seconds of forwards of every model over widths 1.., as the profile in a view has them.

    Or as they were seen: ``took`` has one number a model whatever the width, (D, models); where it is NaN the
    profile's forward of one token stands for all.
    """

    def __init__(self, pool: Pool, view: View, took: Floats | None = None) -> None:
        longest = max(n for _, n in pool.candidates)
        widest = max(longest + 1, *(2 * b for b in pool.at_once.values()), 2)
        width = np.arange(1, widest + 1)[None]
        self.pool, self.overhead = pool, view.overhead
        used = {m for chain, _ in pool.candidates for m in chain.levels}
        self.of = np.zeros((len(pool.names), len(view.rows), widest))
        for i in (i for i, m in enumerate(pool.names) if m in used):
            if took is None:
                self.of[i] = view.seconds(i, width)
            else:
                known = took[:, [i]]
                self.of[i] = np.where(np.isnan(known), view.seconds(i, width[:, :1]), known)
        self.deciders = np.arange(len(view.rows))
        self.target = pool.names.index(pool.target)

    def at(self, models: Ints, width: Floats) -> Floats:
        """Seconds over widths that need not be whole, shape (C, D); those of the target with the overhead."""
        own = models == self.target
        more = np.where(own, self.overhead, 0.0)[:, None]
        if np.size(width) == 1 and float(np.ravel(width)[0]).is_integer():
            at = min(max(int(np.ravel(width)[0]), 1), self.of.shape[2])
            return np.asarray(self.of[models, :, at - 1] + more)
        place = np.clip(width - 1.0, 0.0, self.of.shape[2] - 1.0)
        low = np.minimum(place.astype(np.int64), self.of.shape[2] - 2)
        # One flat index a cell: much faster than three.
        cell = (models[:, None] * len(self.deciders) + self.deciders) * self.of.shape[2] + low
        flat = self.of.ravel()
        below = flat[cell]
        found: Floats = below + (place - low) * (flat[cell + 1] - below) + more
        return found

    def drafted_token(self, models: Ints, length: int) -> Floats:
        """Seconds a drafted token of a block of ``length``, when all of the text but one token was read."""
        known = np.zeros(self.of.shape[:2])
        for model in np.unique(models).tolist():
            name, curve = self.pool.names[model], self.of[model]
            at_once = self.pool.at_once.get(name, 1)
            if name in self.pool.lookups:
                known[model] = curve[:, length - 1] / length
            else:
                # Widths of simspec.replay.trajectories, which lies above this room.
                more = -(-length // at_once) - 1
                known[model] = (curve[:, at_once - 1] + more * curve[:, 2 * at_once - 2]) / length
        return known[models]


def adjacent(alphas: Floats, group: Alike, names: int) -> list[Floats]:
    """Acceptance of each level's tokens by the next, from (D, pairs) to (C, D) each."""
    return [alphas.T[a * names + b] for a, b in zip(group.levels[:-1], group.levels[1:], strict=True)]


def predict(pool: Pool, variant: str, alphas: Floats, view: View, took: Floats | None = None) -> Floats:
    """Seconds that each candidate takes a token, shape (D, K); ``took`` as for :class:`Curves`."""
    curves, reading = Curves(pool, view, took), variant_named(variant)
    out = np.empty((len(pool.candidates), len(view.rows)))
    if pool.plain is not None:
        out[pool.plain] = curves.at(np.array([pool.names.index(pool.target)]), np.ones((1, 1)))
    for group in alike(pool):

        def verify(level: int, width: Floats, levels: Ints = group.levels) -> Floats:
            return curves.at(levels[level - 1], width)

        draft = curves.drafted_token(group.levels[0], group.length)
        rates = adjacent(alphas, group, len(pool.names))
        through = alphas.T[group.levels[0] * len(pool.names) + group.levels[-1]]
        out[group.which] = reading(Given(rates, group.length, draft, verify, through, group.replace))
    return out.T


def catching_up(pool: Pool, view: View) -> Floats:
    """Seconds that the next cycle of each candidate would take longer because its models lag, (D, K)."""
    out = np.zeros((len(pool.candidates), len(view.rows)))
    behind = np.maximum(view.lag - 1, 0)
    for role, widest in ((pool.drafter, 0), (pool.middle, max(n for _, n in pool.candidates))):
        for model in np.unique(role[role >= 0]):
            name = pool.names[model]
            if name in pool.lookups:
                continue
            # An intermediate reads the block and one token, a drafter's first forward the masked places.
            least = np.arange(2, widest + 2) if widest else np.array([pool.at_once.get(name, 1)])
            late = view.seconds(int(model), behind[:, [model]] + least) - view.seconds(
                int(model), np.broadcast_to(least, (len(behind), len(least)))
            )
            mine = np.flatnonzero(role == model)
            lengths = np.array([pool.candidates[k][1] for k in mine])
            out[mine] += late[:, lengths - 1 if widest else 0 * lengths].T
    return out.T


def tokens_a_cycle(pool: Pool, alphas: Floats) -> Floats:
    """Tokens of a cycle of each candidate as ``reach`` has them, (D, K): E(prod alpha, n)."""
    out = np.ones((len(pool.candidates), len(alphas)))
    for group in alike(pool):
        through = np.prod(np.stack(adjacent(alphas, group, len(pool.names))), axis=0)
        out[group.which] = emitted_tokens(through, group.length)
    return out.T
