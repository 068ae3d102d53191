"""Choosing among several drafters, step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from simspec.errors import BadInput
from simspec.serving.choosing import ChainView, seconds_a_token, smoothed


class DrafterView(NamedTuple):
    """What is known of one drafter before a step.

    Attributes:
        accepted, tried: as in :class:`simspec.serving.policies.View`, of steps that this drafter drafted in.
            Every step of the engine makes them count less.
        seconds: what a step of the rows costs at its draft lengths 0..longest; with intermediates, at 0.
        catch_up_seconds: what it costs to read what it has missed, before it can draft.
        chain: where there are intermediates, which read what they have missed, too.
    """

    accepted: float
    tried: float
    seconds: Sequence[float]
    catch_up_seconds: float
    chain: ChainView | None = None


@dataclass(frozen=True)
class Switching:
    """The drafter and the length with the most expected tokens a second, as in
    :class:`simspec.serving.policies.Goodput`; a drafter is left only for one that is better by ``margin``.

    The time in which a drafter catches up is spread over ``horizon`` steps. What is not used is forgotten:
    the recent acceptance of a drafter that is idle, or of all where nothing is drafted, goes back to
    ``prior``, so it is tried again in the end. State is the drafter in use. A drafter may have intermediates
    above it; of such a chain each level's acceptance counts, and it is followed up the funnel
    (:func:`simspec.theory.chains.funnel`).
    """

    longest: int
    margin: float = 0.05
    horizon: int = 32
    prior: float = 0.7
    prior_drafts: float = 50.0
    rows_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, least in (("longest", 0), ("horizon", 1)):
            if getattr(self, name) < least:
                raise BadInput(f"{name} is {getattr(self, name)}", allowed=f"at least {least}")
        if not 0 <= self.margin < math.inf:
            raise BadInput(f"margin is {self.margin}", allowed="a finite number, at least 0")
        if not 0 <= self.prior <= 1:
            raise BadInput(f"prior is {self.prior}", allowed="a probability")
        if not 0 < self.prior_drafts < math.inf:
            raise BadInput(f"prior_drafts is {self.prior_drafts}", allowed="a finite number above 0")

    def choose(self, drafters: Sequence[DrafterView], using: int) -> tuple[int, int]:
        """Which drafter, and how many tokens each row drafts; 0 leaves the drafter as it is."""
        best = [self._best(drafter) for drafter in drafters]
        most = max(range(len(best)), key=lambda i: best[i][0])
        if best[most][0] <= best[using][0] * (1 + self.margin):
            most = using
        length = best[most][1]
        return (most if length else using), length

    def _best(self, drafter: DrafterView) -> tuple[float, int]:
        """Most expected tokens a second, and the least length that has them."""
        if drafter.chain is not None:
            return self._best_of_chain(drafter.chain, drafter.catch_up_seconds / self.horizon)
        alpha = (drafter.accepted + self.prior * self.prior_drafts) / (drafter.tried + self.prior_drafts)
        late = drafter.catch_up_seconds / self.horizon
        tokens, reached = 0.0, 1.0
        best, length = -1.0, 0
        for n, seconds in enumerate(drafter.seconds):
            tokens += reached
            reached *= alpha
            spent = seconds + (late if n else 0.0)
            rate = tokens / spent if spent else math.inf
            if rate > best:
                best, length = rate, n
        return best, length

    def _best_of_chain(self, chain: ChainView, late: float) -> tuple[float, int]:
        rates = smoothed(chain.counts, self.prior, self.prior_drafts)
        spent = [seconds_a_token(chain, rates, n, "funnel", late) for n in range(self.longest + 1)]
        length = min(range(len(spent)), key=lambda n: spent[n])
        return (1 / spent[length] if spent[length] else math.inf), length
