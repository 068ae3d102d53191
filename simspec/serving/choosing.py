"""Choosing among chains by their expected time a token: readings of SpecRouter's Eq. 7 (arXiv 2505.07680)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from simspec.errors import BadInput
from simspec.theory.variants import VARIANTS, Given

Floats = NDArray[np.float64]
# Of simspec.theory.variants those that need no more than rates of neighbours, and know lengths.
Variant = Literal["reach", "reach-wide", "funnel", "exact"]


class ChainView(NamedTuple):
    """What is known of one chain before a step.

    Attributes:
        counts: (accepted, tried) of what each level hands to the next, the drafter's first, older steps
            counting less; tried are the accepted and the first to be refused. A row whose drafter has
            nothing to draft counts as one refusal of its own.
        plain: seconds of a step without drafts.
        drafting: seconds of drafting so many tokens a row.
        verify: seconds of a forward of level i over so many tokens a row, asked with both; the drafter is
            level 1, and the target's forward includes the fixed time of a step.
        replace: whether intermediates add a token of their own.
    """

    counts: Sequence[tuple[float, float]]
    plain: float
    drafting: Callable[[int], float]
    verify: Callable[[int, float], float]
    replace: bool


def seconds_a_token(
    view: ChainView, rates: Sequence[float], length: int, variant: Variant, later: float = 0.0
) -> float:
    """Expected seconds a token of a chain that drafts ``length`` tokens a row.

    Args:
        rates: acceptance of each level's tokens by the next, the drafter's first.
        later: seconds that a step takes longer.
    """
    if not length:
        return view.plain

    def verify(level: int, width: Floats) -> Floats:
        spent = view.verify(level, float(width))
        return np.asarray(spent + later if level > len(rates) else spent)

    alphas = [np.asarray(rate) for rate in rates]
    drafting = np.asarray(view.drafting(length) / length)
    through = np.asarray(math.prod(rates))
    return float(VARIANTS[variant](Given(alphas, length, drafting, verify, through, view.replace)))


def smoothed(counts: Sequence[tuple[float, float]], prior: float, prior_drafts: float) -> list[float]:
    """Acceptance with ``prior_drafts`` drafts of acceptance ``prior`` added."""
    return [(accepted + prior * prior_drafts) / (tried + prior_drafts) for accepted, tried in counts]


@dataclass(frozen=True)
class Routed:
    """The chain and the length with the least expected time a token, looked at anew every ``every`` steps.

    One chain for all rows, as SpecRouter picks; what it has in use is left only for what is better by
    ``margin``. Acceptance is estimated for every pair of models that stand next to each other in some chain,
    from the steps in which one handed tokens to the other: tokens that came through lower levels are not
    told from its own, which is the supposition of Eq. 7. What is not used is forgotten, as in
    :class:`~simspec.serving.switching.Switching`. Catching up is not part of Eq. 7.

    Attributes:
        lengths: draft lengths to choose from; 0 is plain decoding.
        variant: which reading of Eq. 7, as :mod:`simspec.theory.variants` names them; the paper expands none.
    """

    lengths: tuple[int, ...]
    every: int = 16
    margin: float = 0.05
    variant: Variant = "reach"
    prior: float = 0.7
    prior_drafts: float = 50.0
    rows_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.lengths or min(self.lengths) < 0 or len(set(self.lengths)) < len(self.lengths):
            raise BadInput(f"lengths {list(self.lengths)}", allowed="different numbers from 0, at least one")
        if self.every < 1:
            raise BadInput(f"every is {self.every}", allowed="at least 1")
        if not 0 <= self.margin < math.inf:
            raise BadInput(f"margin is {self.margin}", allowed="a finite number, at least 0")
        if self.variant not in get_args(Variant):
            raise BadInput(f"variant is {self.variant!r}", allowed=", ".join(get_args(Variant)))
        if not 0 <= self.prior <= 1:
            raise BadInput(f"prior is {self.prior}", allowed="a probability")
        if not 0 < self.prior_drafts < math.inf:
            raise BadInput(f"prior_drafts is {self.prior_drafts}", allowed="a finite number above 0")

    @property
    def longest(self) -> int:
        return max(self.lengths)

    def choose(self, chains: Sequence[ChainView], using: tuple[int, int] | None) -> tuple[int, int]:
        """Which chain, and how many tokens each row drafts; of equals the first. 0 leaves the chain as it is.

        Args:
            using: the last answer; None before the first.
        """
        found: dict[tuple[int, int], float] = {}
        for i, view in enumerate(chains):
            rates = smoothed(view.counts, self.prior, self.prior_drafts)
            for length in self.lengths:
                at = i if length or using is None else using[0]
                found.setdefault((at, length), seconds_a_token(view, rates, length, self.variant))
        best = min(found, key=lambda option: found[option])
        if using is not None and found[using] <= found[best] * (1 + self.margin):
            return using
        return best
