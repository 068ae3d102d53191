"""Acceptance estimated request by request: what an average said before each request, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simspec.compare.estimates.maps import Map
from simspec.streams import stream
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]
Order = Literal["mixed", "task after task"]


def orders(trace: Trace, prompts: Ints, order: Order, many: int, seed: int) -> Ints:
    """The same prompts in ``many`` orders, shape (many, n): shuffled, or shuffled tasks one after another."""
    generator = stream(seed, "orders", order)
    rows = np.stack([generator.permutation(prompts) for _ in range(many)])
    if order == "mixed":
        return rows
    task = np.unique(trace.prompts["category"].to_numpy(), return_inverse=True)[1]
    turn = np.stack([generator.permutation(task.max() + 1) for _ in range(many)])
    place = np.take_along_axis(turn, task[rows], axis=1)
    return np.take_along_axis(rows, place.argsort(axis=1, kind="stable"), axis=1)


def before_each(values: Floats, order: Ints, start: Floats, weight: float) -> Floats:
    """An EMA by request as it stands before every request, shape (orders, n, pairs).

    Args:
        values: what a request moves it to, (pairs, P); NaN where it says nothing.
        order: (orders, n).
        start: before the first one, (pairs,).
        weight: 0 never moves.
    """
    now = np.broadcast_to(start, (len(order), len(start)))
    said = np.empty((*order.shape, len(start)))
    for i in range(order.shape[1]):
        said[:, i] = now
        seen = values[:, order[:, i]].T
        now = np.where(np.isnan(seen), now, now + weight * (seen - now))
    return said


@dataclass(frozen=True)
class Requests:
    """Estimates held against requests, one entry an order, request and pair; all shapes (n,).

    Attributes:
        prompt: whose text it was.
        estimate: before it.
        good, tried: its drafts accepted and tried.
    """

    prompt: Ints
    estimate: Floats
    good: Floats
    tried: Floats

    def plus(self, other: Requests) -> Requests:
        return Requests(
            *(np.concatenate([getattr(self, n), getattr(other, n)]) for n in self.__annotations__)
        )

    def errors(self, counts: Floats) -> Floats:
        """Mean and root mean square of estimate - accepted share, over drafts tried, (2, draws).

        The second has the luck of each request's few drafts in it, the same for every estimate.

        Args:
            counts: how often each draw has each prompt, (draws, P).
        """
        share = np.divide(self.good, self.tried, out=np.zeros_like(self.good), where=self.tried > 0)
        gap = self.estimate - share
        by_prompt = [
            np.bincount(self.prompt, weights=self.tried * v, minlength=counts.shape[1])
            for v in (gap, gap**2, np.ones_like(gap))
        ]
        bias, square, tried = (counts @ v for v in by_prompt)
        return np.stack([bias / tried, np.sqrt(square / tried)])

    def bins(self, counts: Floats, many: int) -> list[tuple[int, float, Floats]]:
        """Entries in ``many`` bins of equal counts, estimates rising: entries, mean estimate, accepted share.

        The mean is over drafts tried, the share by draw, (draws,); NaN where a draw has none of the bin.
        """
        kept = np.flatnonzero(self.tried > 0)
        found = []
        for mine in np.array_split(kept[np.argsort(self.estimate[kept], kind="stable")], many):
            if not len(mine):
                continue
            good, tried = (
                counts @ np.bincount(self.prompt[mine], weights=v[mine], minlength=counts.shape[1])
                for v in (self.good, self.tried)
            )
            share = np.divide(good, tried, out=np.full_like(good, np.nan), where=tried > 0)
            found.append((len(mine), float(np.average(self.estimate[mine], weights=self.tried[mine])), share))
        return found


def held_against(
    said: Floats, order: Ints, good: Floats, tried: Floats, mapped: Map | None = None
) -> Requests:
    """Set what :func:`before_each` says, mapped if there is a map, beside what each request realised.

    Args:
        good, tried: drafts of each pair on each prompt, (pairs, P).
    """
    estimate = said if mapped is None else mapped.of(said)
    prompt = np.broadcast_to(order[..., None], said.shape)
    return Requests(
        prompt.ravel(),
        estimate.ravel(),
        *(np.moveaxis(v[:, order], 0, -1).ravel() for v in (good, tried)),
    )
